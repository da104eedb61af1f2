"""This package in NumPy's place, in the test modules of an installed suite and in nothing else.

A test module gets builtins of its own, whose `__import__` gives this package for `numpy`; the code that it
tests keeps NumPy. What no program should use, and a test of NumPy does (`numpy._core`,
`numpy.lib._npyio_impl`), is NumPy's, but functions and classes there that this package has, too, are ours.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy

import spartan_ng
from spartan_ng.api.core.dispatch import FUNCTIONS, by_numpy

_HERE = ("", "linalg", "fft", "random")
"""The namespaces in which both have their own names."""
_IMPORTED = ("matlib",)
"""Modules that are NumPy's alone, and no names in it before they are imported."""


@functools.cache
def _ours() -> dict[int, Any]:
    """This package's object for NumPy's, by its identity; NumPy keeps all of them alive."""
    found = {id(theirs): ours for theirs, ours in FUNCTIONS.items()}
    for space in _HERE:
        theirs = getattr(numpy, space) if space else numpy
        ours = getattr(spartan_ng, space) if space else spartan_ng
        for name in dir(theirs):
            there = getattr(theirs, name)
            if not name.startswith("_") and callable(there) and hasattr(ours, name):
                found[id(there)] = getattr(ours, name)
    return found


class Behind(types.ModuleType):
    """A module of NumPy's behind the public names, with this package's objects where it has them."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__)
        object.__setattr__(self, "_behind", module)

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":  # as a test walks over it
            return {k: _translated(v) for k, v in vars(self._behind).items()}
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        return _translated(getattr(self._behind, name))

    def __setattr__(self, name: str, value: Any) -> None:  # a test that patches means the module itself
        setattr(self._behind, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._behind, name)


class Asserting(Behind):
    """A module of assertions, which get host values, as those of `numpy.testing` do."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._behind, name)
        return functools.partial(by_numpy, found) if name.startswith("assert_") else found


class Front(types.ModuleType):
    """`numpy` or a namespace in it as a test module imports it: this package's, and NumPy's private names."""

    def __init__(self, ours: types.ModuleType, theirs: types.ModuleType) -> None:
        super().__init__(theirs.__name__)
        super().__setattr__("_ours", ours)
        super().__setattr__("_theirs", theirs)

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":  # as a test evaluates text in it
            return vars(self._ours)
        try:
            return super().__getattribute__(name)
        except AttributeError:
            return self.__getattr__(name)

    def __getattr__(self, name: str) -> Any:
        private = name.startswith("_") or self._ours is not spartan_ng or name in _IMPORTED
        if private and not hasattr(self._ours, name):
            return _translated(getattr(self._theirs, name))
        if self._ours is spartan_ng and name in _HERE[1:]:
            return _front(name)
        return getattr(self._ours, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ours, name, value)

    def __dir__(self) -> list[str]:
        return dir(self._ours)


@functools.cache
def _front(space: str) -> Front:
    return Front(getattr(spartan_ng, space), getattr(numpy, space))


FRONT = Front(spartan_ng, numpy)


def _translated(theirs: Any) -> Any:
    """This package's object for one of NumPy's; a module of NumPy's with such objects in it."""
    if isinstance(theirs, types.ModuleType) and theirs.__name__.partition(".")[0] == "numpy":
        return _behind(theirs)
    return _ours().get(id(theirs), theirs)


@functools.cache
def _behind(module: types.ModuleType) -> Behind:
    return Behind(module)


def import_in_test(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """Python's `__import__`, with this package for `numpy`."""
    if level or name.partition(".")[0] != "numpy":
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    module = importlib.import_module(name)
    for part in fromlist or ():  # a submodule that nobody has imported yet
        if part != "*" and not hasattr(module, part):
            importlib.import_module(f"{name}.{part}")
    if not fromlist:
        return FRONT
    if ".tests" in name:
        return module
    if name == "numpy.ma.testutils":
        return Asserting(module)
    found: Any = FRONT
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    if "*" in fromlist:
        chosen = types.ModuleType(name)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        chosen.__dict__.update({n: getattr(found, n) for n in names}, __all__=list(names))
        return chosen
    return found


class _InPlace(Loader):
    """Another loader's module, with builtins of its own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        own = {**vars(builtins), "__import__": import_in_test}
        module.__dict__["__builtins__"] = own
        self._inner.exec_module(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Finder(MetaPathFinder):
    """Finds modules as the other finders do, and loads those in a folder's `tests` with this package."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """The spec of a test module, and of no other."""
        specs = (f.find_spec(fullname, path, target) for f in sys.meta_path if not isinstance(f, Finder))
        spec = next((s for s in specs if s is not None), None)
        if spec is None or spec.loader is None or not self._has(spec.origin):
            return None
        spec.loader = _InPlace(spec.loader)
        return spec

    def _has(self, origin: str | None) -> bool:
        file = Path(origin or "")
        return file.parent.name == "tests" and file.is_relative_to(self._folder)
