"""Arrays that compiled classes hold are kept when the classes' operators compute with them."""

from __future__ import annotations

import itertools
import platform
import shutil
import subprocess
import sysconfig
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

import numpy
import pytest

import spartan_ng as np

SIGNS = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")


@pytest.fixture(autouse=True)
def done_at_once():
    with np.config.override(small_bytes=1 << 24):
        yield


def values(dtype, size, turn=1):
    return (numpy.arange(size) * turn % 7 + 1).astype(dtype)


@pytest.fixture(scope="module", params=["-O0", "-O2", "-O2 -fno-optimize-sibling-calls"])
def owner_class(request, tmp_path_factory):
    """The class of owner.c."""
    compiler = shutil.which("cc")
    if compiler is None or platform.system() != "Linux":
        pytest.skip("no compiler")
    source, built = Path(__file__).with_name("owner.c"), tmp_path_factory.mktemp("owner") / "owner.so"
    options = ["-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", *request.param.split()]
    subprocess.run([compiler, *options, source, "-o", built], check=True)
    loader = ExtensionFileLoader("owner", str(built))
    module = module_from_spec(ModuleSpec("owner", loader, origin=str(built)))
    loader.exec_module(module)
    return module.Owner


@pytest.mark.parametrize("size", [4_200, 60_000])
@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_what_compiled_classes_hold_is_kept(owner_class, dtype, size):
    """Their operators are called by Python's, with arrays to which they have the only reference."""
    expressions = [f"owner {sign} other" for sign in SIGNS]
    expressions += [f"other {sign} owner" for sign in SIGNS]
    expressions += ["-owner", "+owner", "~owner", "abs(owner)", "owner + owner", "(owner + 1) + owner"]
    expressions += ["sum([owner, other])", "sum([other, owner])", "sum([1.5, owner])", "sum([owner], owner)"]
    others = {"owner @ other": "owner + other", "owner[other]": "owner - other"}  # called by other operators
    tried = 0
    for expression, turn in itertools.product([*expressions, *others], (None, 3)):
        a = np.array(values(dtype, size))
        owner = owner_class(a + a)
        other = 2 if turn is None else np.array(values(dtype, size, turn))
        wanted, given = values(dtype, size) * 2, 2 if turn is None else values(dtype, size, turn)
        try:
            found = eval(expression, {"owner": owner, "other": other})
        except TypeError:  # bits of doubles
            continue
        theirs = eval(others.get(expression, expression), {"owner": wanted, "other": given})
        numpy.testing.assert_array_equal(owner.array, wanted, err_msg=expression)
        numpy.testing.assert_array_equal(found, theirs, err_msg=expression)
        tried += 1
    assert tried > 30


@pytest.mark.parametrize("function", [numpy.array, numpy.asarray, numpy.asanyarray, numpy.ascontiguousarray])
def test_what_numpy_takes_of_what_compiled_classes_hold(owner_class, function):
    """Is a copy where it is one of NumPy's array."""
    a = np.array(values("f8", 60_000))
    for keywords in {}, {"dtype": "f8"}, {"dtype": "f4"}:
        owner = owner_class(np.cumsum(a))
        taken = owner(function, **keywords)
        wanted = numpy.cumsum(values("f8", 60_000))
        numpy.testing.assert_array_equal(taken, wanted.astype(taken.dtype))
        taken[...] = -1
        function(wanted, **keywords)[...] = -1
        numpy.testing.assert_array_equal(owner.array, wanted)
