"""Run a NumPy script unmodified: in it, and only in it, `import numpy` imports this package.

`python -m spartan_ng.as_numpy script.py arguments...`. The script gets builtins of its own, with another
`__import__`; the libraries that it imports keep NumPy.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import numpy


def import_in_script(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """Python's `__import__`, with this package for `numpy` and its submodules."""
    if level or name.partition(".")[0] != "numpy":
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    importlib.import_module(name)  # NumPy's own error; and its C code imports by the script's means, too
    if not fromlist or name == "numpy":
        return _numpy
    if name == "numpy.version":
        return numpy.version
    return importlib.import_module(name.replace("numpy", "spartan_ng", 1))


class _AsNumpy(ModuleType):
    """The package as the script's `numpy`, with NumPy's version, by which scripts decide, and with what the
    script puts there. `from numpy import *` brings NumPy's names alone: `map` and `filter` stay Python's."""

    __version__ = numpy.__version__
    version = numpy.version
    __all__ = numpy.__all__

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module("spartan_ng"), name)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*dir(importlib.import_module("spartan_ng")), *self.__dict__})


_numpy = _AsNumpy("numpy", numpy.__doc__)


def run(script: str, arguments: Sequence[str]) -> None:
    """Run a script as the program's main module: what it sees of itself, and how it ends, is as under
    `python script.py`."""
    path = Path(script).absolute()
    main = ModuleType("__main__")
    own = {**vars(builtins), "__import__": import_in_script}
    archive = pkgutil.get_importer(str(path))
    spec: Any = None if archive is None else archive.find_spec("__main__")
    about: dict[str, Any]
    if spec is None:
        name, folder = str(path), str(path.resolve().parent)
        about = {"__cached__": None, "__loader__": SourceFileLoader("__main__", name)}
    else:  # of an application in a zip file
        name, folder = str(spec.origin), str(path)
        about = {"__cached__": spec.cached, "__loader__": spec.loader, "__package__": "", "__spec__": spec}
    main.__dict__.update(about, __file__=name, __builtins__=own)
    sys.modules["__main__"] = main
    sys.argv[:] = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = folder
    elif spec is not None:
        sys.path.insert(0, folder)
    try:
        if spec is None:
            code = compile(path.read_bytes(), name, "exec", dont_inherit=True)
        else:
            code = spec.loader.get_code("__main__")
        exec(code, main.__dict__)
    except BaseException:
        sys.excepthook = functools.partial(_show, sys.excepthook, name)
        raise


def _show(
    hook: Callable[[type[BaseException], BaseException, TracebackType | None], object],
    path: str,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    """Tell a hook of an error, from the script's first frame on."""
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    hook(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
