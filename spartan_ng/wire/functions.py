"""Users' functions on the wire: by name where the other side can import them, else by cloudpickle.

Only what is installed (the standard library, site-packages, this package) goes by name: a module next to
the user's script exists on this machine alone, so its functions go by value. Their code keeps the file that
it was written in, which cloudpickle leaves out since 3.1.3: errors and profiles tell people of it.
"""

from __future__ import annotations

import importlib
import io
import pickle
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, reduce
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import cloudpickle
import numpy as np

from spartan_ng.errors import UserFunctionError, raised_as
from spartan_ng.interrupts import is_of_a_handler
from spartan_ng.texts import called_trace, error_line

Pickled = bytes | memoryview


def dump_function(function: Any, known_as: object) -> tuple[str | None, bytes | None]:
    """`("module:qualname", None)` of an installed function, or `(None, pickle)` of any other.

    UserFunctionError, that is also of pickle's type, where something that it refers to has no pickle; it says
    what users know it as.
    """
    name = _importable_name(function)
    if name is not None:
        return name, None
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    goes_whole = module is not None and module.__name__ != "__main__" and not _installed(module.__name__)
    try:
        with _by_value(module) if module is not None and goes_whole else nullcontext():
            return None, _dump(function)
    except Exception as error:
        if is_of_a_handler(error):
            raise
        raise UserFunctionError(
            f"{known_as} cannot be sent to the workers: {error_line(error)}\n"
            "All that a function refers to goes with it, by pickle. Let it open files, connections and locks "
            "itself, from names and numbers.",
            raised_as(error),
        ) from error


def load_function(name: str | None, pickled: Pickled | None, known_as: object) -> Any:
    """The function of `dump_function`. Runs foreign code: only for peers that were let in.

    UserFunctionError, that is also of the type that was raised, where it cannot be had here.
    """
    try:
        if name is None:
            assert pickled is not None, "a function travels by name or by value"
            return pickle.loads(pickled)
        module, _, path = name.partition(":")
        return reduce(getattr, path.split("."), importlib.import_module(module))
    except Exception as error:
        raise UserFunctionError(
            f"{known_as} cannot be loaded on a worker: {error_line(error)}\n\n{called_trace(error)}",
            raised_as(error),
        ) from error


@contextmanager
def _by_value(module: ModuleType) -> Iterator[None]:
    """In which what the module holds is pickled whole."""
    if module.__name__ in cloudpickle.list_registry_pickle_by_value():
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]  # it has no types
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, io.TextIOWrapper) and obj is not sys.stdout and obj is not sys.stderr:
            # A copy of its text, which cloudpickle sends, is read from there again by each worker.
            raise pickle.PicklingError(f"cannot pickle an open file ({obj.name!r})")
        if isinstance(obj, CodeType):
            make, args = self.dispatch_table[CodeType](obj)
            return _made_in, (obj.co_filename, make, args)
        return super().reducer_override(obj)


def _dump(function: Any) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(function)
        return file.getvalue()


def _made_in(filename: str, make: Callable[..., CodeType], args: tuple[Any, ...]) -> CodeType:
    return make(*args).replace(co_filename=filename)


def _importable_name(function: Any) -> str | None:
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", None)
    if isinstance(function, np.ufunc):
        module, path = "numpy", function.__name__
    if not module or not path or module == "__main__" or "<" in path or not _installed(module):
        return None
    try:
        found = reduce(getattr, path.split("."), sys.modules[module])
    except (AttributeError, KeyError):
        return None
    return f"{module}:{path}" if found is function else None


@cache
def _installed(name: str) -> bool:
    """Whether any host with the same packages can import module `name`."""
    if name.partition(".")[0] == "spartan_ng":
        return True
    module: ModuleType | None = sys.modules.get(name)
    if module is None:
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return name in sys.builtin_module_names
    paths = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    at = Path(file).resolve()
    libraries = {Path(p).resolve() for p in paths if p.endswith("-packages") or "python3" in Path(p).name}
    return any(at.is_relative_to(p) for p in libraries)
