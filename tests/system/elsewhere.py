"""A program on another system than Linux, as the package sees it: `python elsewhere.py PLATFORM FOLDER`.

The package's modules get the standard library's without the names that the platform lacks, and find no /proc;
libraries come for every system, and the standard library is each one's own: they are left as they are.
"""

import builtins
import ctypes
import importlib
import io
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import numba
import numexpr
import numpy
import prometheus_client
import zarr

from tests.system.platforms import MODULES, lacking, names

LIBRARIES = (numba, numexpr, prometheus_client, zarr)
"""Imported before anything is hidden, as they are loaded late."""
OF_THREADPOOLCTL = "/proc/self/maps"
WITH_ENGINES = "spartan_ng.backends.engines."
"""Modules that import engines, which know systems of their own."""


def hide(platform: str) -> None:
    """Let the package find only what the platform has."""
    there = {}
    for name in MODULES:
        if not names(name, platform):
            vars(sys)["modules"][name] = None  # an ImportError for who asks
            continue
        module = importlib.import_module(name)
        there[name] = ModuleType(name)
        missing = lacking(name, platform)
        vars(there[name]).update((n, value) for n, value in vars(module).items() if n not in missing)
    plain = builtins.__import__

    def of_platform(name, *arguments):
        return there[name] if name in there and of_package() else plain(name, *arguments)

    builtins.__import__ = of_platform
    for place, name in ((builtins, "open"), (io, "open"), (os, "open"), (os, "stat"), (os, "listdir")):
        setattr(place, name, without_proc(getattr(place, name)))
    for library in (ctypes.CDLL, ctypes.PyDLL):
        library.__init__ = with_a_name(library.__init__)  # type: ignore[method-assign]


def of_package():
    return sys._getframe(2).f_globals.get("__name__", "").startswith("spartan_ng")


def without_proc(plain):
    def call(path, *arguments, **keywords):
        if str(path).startswith(("/proc/", "/sys/")) and path != OF_THREADPOOLCTL:
            raise FileNotFoundError(2, "no such file", str(path))
        return plain(path, *arguments, **keywords)

    return call


def with_a_name(plain):
    def load(self, name, *arguments, **keywords):
        if name is None and of_package():
            raise TypeError("a library has a name")
        plain(self, name, *arguments, **keywords)

    return load


def compute(np, folder: Path) -> None:
    """Arrays in memory and in files, in passes with helpers, interpreted and compiled."""
    from spartan_ng.kernels.compiled.compile import wait_for_compiles

    value = numpy.random.default_rng(0).random((700, 500))
    x = np.array(value)
    for _ in range(3):
        numpy.testing.assert_allclose(((x * 2 + 1) ** 0.5).sum(axis=1), ((value * 2 + 1) ** 0.5).sum(axis=1))
        assert wait_for_compiles()
    numpy.testing.assert_allclose(x.T @ x, value.T @ value)
    numpy.testing.assert_array_equal(np.sort(x, axis=0), numpy.sort(value, axis=0))
    for name in ("there.npy", "there.zarr"):
        for _ in range(2):  # a new one, and one in the place of another
            np.save(folder / name, x + 1)
        numpy.testing.assert_array_equal(np.load(folder / name), value + 1)
        numpy.testing.assert_allclose((np.load(folder / name) * 2).mean(axis=0), (value * 2 + 2).mean(axis=0))
    with np.config.override(memory_bytes=2_000_000):  # some of it on disk
        numpy.testing.assert_array_equal(np.load(folder / "there.npy") * 3, (value + 1) * 3)


def main() -> None:
    hide(sys.argv[1])
    import spartan_ng as np

    for found in pkgutil.walk_packages(np.__path__, "spartan_ng."):
        if not found.name.startswith(WITH_ENGINES):
            importlib.import_module(found.name)
    with np.config.override(small_bytes=0):
        compute(np, Path(sys.argv[2]))
    try:
        np.cluster(2)
    except np.errors.OptionError as error:
        print(error)


if __name__ == "__main__":
    main()
