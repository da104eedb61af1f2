"""What NumPy's submodules are imported by, with this package's name in place of NumPy's."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import subprocess
import sys
from types import ModuleType

import numpy
import pytest

import spartan_ng as sp
from spartan_ng.submodules import NAMES

NONE_OF_OURS = {"conftest", "distutils", "matlib", "matrixlib", "tests", "version"}
"""Deprecated, or about NumPy itself."""
THEIRS = sorted(
    m.name for m in pkgutil.iter_modules(numpy.__path__) if m.name[0] != "_" and m.name not in NONE_OF_OURS
)
BELOW = [
    *("lib.stride_tricks", "lib.recfunctions", "lib.format", "lib.mixins", "ma.extras", "ma.core"),
    *("polynomial.polynomial", "polynomial.chebyshev", "polynomial.hermite", "random.mtrand"),
]


def test_all_of_numpys_are_there():
    assert set(THEIRS) | {"special"} == NAMES
    assert not {m.name for m in pkgutil.iter_modules(sp.__path__)} & NAMES, "a file would be found instead"


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
@pytest.mark.parametrize("name", [*THEIRS, *BELOW, "special"])
def test_a_submodule_is_the_attribute(name):
    found = importlib.import_module(f"spartan_ng.{name}")
    ours = sp
    for part in name.split("."):
        ours = getattr(ours, part)
    assert isinstance(found, ModuleType)
    assert found is ours
    assert found is sys.modules[f"spartan_ng.{name}"]
    assert found.__spec__ is None or found.__spec__.name != f"spartan_ng.{name}"


IMPORTS = """
from spartan_ng.linalg import norm
from spartan_ng.random import default_rng
import spartan_ng.fft as fft
import spartan_ng.lib.stride_tricks
import spartan_ng.ma as ma
from spartan_ng.testing import *
from spartan_ng.polynomial.polynomial import polyval
from spartan_ng.typing import NDArray
import numpy, spartan_ng
assert norm is spartan_ng.linalg.norm is not numpy.linalg.norm
x = default_rng(1).random((40, 30))
assert isinstance(x, spartan_ng.ndarray)
assert_allclose(x, numpy.random.default_rng(1).random((40, 30)))
assert isinstance(fft.fft(x), spartan_ng.ndarray)
assert spartan_ng.lib.stride_tricks.sliding_window_view(x, (3, 3)).shape == (38, 28, 3, 3)
assert numpy.ma.MaskedArray is ma.MaskedArray
assert polyval(2.0, [1, 2, 3]) == 17
assert numpy.linalg is not spartan_ng.linalg and numpy.lib.__spec__.name == "numpy.lib"
"""


@pytest.mark.slow
def test_programs_import_them_first():
    """In a process of its own: nothing has asked for the attributes before."""
    subprocess.run([sys.executable, "-W", "error", "-c", IMPORTS], check=True)


@pytest.mark.parametrize("name", ["linalgs", "linalg.nothing", "lib.nothing", "fft.norm", "matlib"])
def test_what_is_not_there_is_not_found(name):
    with pytest.raises(ModuleNotFoundError, match="spartan_ng"):
        importlib.import_module(f"spartan_ng.{name}")


def test_functions_are_pickled_by_where_they_lie():
    norm = importlib.import_module("spartan_ng.linalg").norm
    assert pickle.loads(pickle.dumps(norm)) is norm
