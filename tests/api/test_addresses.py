"""Arrays by the address of their elements: `__array_interface__`, `__array_struct__` and `ctypes`."""

from __future__ import annotations

import ctypes
import gc
import operator
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import scipy.sparse

import spartan_ng as np
from spartan_ng.api.core.quick import IS_COMPILED
from tests.api.test_memory_for_others import KNOWS_LOOKERS

pytestmark = pytest.mark.skipif(
    not (IS_COMPILED and KNOWS_LOOKERS), reason="nobody knows whether it is NumPy that asks"
)


def _locked(a: Any) -> Any:
    a.flags.writeable = False
    return a


MADE: dict[str, Callable[[Any], Any]] = {
    "line": lambda xp: xp.arange(6.0),
    "computed": lambda xp: xp.arange(6.0) * 2 + 1,
    "blank": lambda xp: xp.zeros((2, 3), "i2"),
    "rows": lambda xp: xp.arange(24).reshape(4, 6)[1:3],
    "columns": lambda xp: xp.arange(24).reshape(4, 6)[:, ::2],
    "backwards": lambda xp: xp.arange(6.0)[::-1],
    "turned": lambda xp: xp.arange(6.0).reshape(2, 3).T,
    "in Fortran's order": lambda xp: xp.asfortranarray(xp.arange(6).reshape(2, 3)),
    "stretched": lambda xp: xp.broadcast_to(xp.arange(3.0), (2, 3)),
    "read-only": lambda xp: _locked(xp.arange(3.0)),
    "a part that may only be read": lambda xp: _locked(xp.arange(6.0)[2:]),
    "of others": lambda xp: xp.asarray(numpy.arange(6.0)),
    "over a buffer": lambda xp: xp.frombuffer(b"abcdef", "u1"),
    "no axes": lambda xp: xp.array(2.5),
    "nothing": lambda xp: xp.zeros((0, 3)),
    "big-endian": lambda xp: xp.arange(6, dtype=">i4"),
    "records": lambda xp: xp.zeros(2, [("a", "i4"), ("b", "f8", (2,))]),
    "a field": lambda xp: xp.zeros(2, [("a", "i4"), ("b", "f8", (2,))])["b"],
    "texts": lambda xp: xp.array(["a", "bcd"]),
    "dates": lambda xp: xp.array(["2020-01-01", "NaT"], "M8[D]"),
    "truths": lambda xp: xp.arange(6) > 2,
    "complex": lambda xp: xp.arange(6) * 1j,
    "imaginary": lambda xp: (xp.arange(6) * 1j).imag,
    "filtered": lambda xp: (a := xp.arange(6.0) * 1)[a > 2],
    "objects": lambda xp: xp.array([None, 1], object),
}
LARGE = {"large": lambda xp: (xp.arange(9e4) + 1).reshape(300, 300)[5:]}
ASKED: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda a: a.__array_interface__,
    "getattr": lambda a: getattr(a, "__array_interface__", None),
    "attrgetter": operator.attrgetter("__array_interface__"),
    "in a function of C": lambda a: [*map(operator.attrgetter("__array_interface__"), [a])][0],
}


class _Shown:
    """What has an address from an array, and that alone, as libraries in C do; it keeps the array."""

    def __init__(self, a: Any, name: str) -> None:
        setattr(self, name, getattr(a, name))
        self.kept = a


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("made", MADE)
def test_interfaces_are_numpys(mode: str, made: str, asked: str) -> None:
    one, other = (MADE[made](xp) for xp in (np, numpy))
    ours, theirs = (ASKED[asked](a) for a in (one, other))
    (address, may_only_be_read), (_, is_locked) = ours.pop("data"), theirs.pop("data")
    assert hasattr(one, "__array_interface__")
    assert (ours, may_only_be_read) == (theirs, is_locked)
    value = numpy.array(one)
    if value.nbytes:
        assert address == one.ctypes.data
    if value.flags.c_contiguous and one.flags.c_contiguous and value.dtype != object:
        assert ctypes.string_at(address, value.nbytes) == value.tobytes()


@pytest.mark.parametrize("name", ["__array_interface__", "__array_struct__"])
@pytest.mark.parametrize("made", [*MADE, *LARGE])
def test_elements_are_there_as_long_as_the_array(mode: str, made: str, name: str) -> None:
    if made == "objects" or (made == "texts" and name == "__array_struct__"):
        pytest.skip("NumPy makes none of an address, and takes bytes for letters")
    made_by = (MADE | LARGE)[made]
    shown, wanted = (numpy.asarray(_Shown(made_by(xp), name)) for xp in (np, numpy))
    gc.collect()
    numpy.full(wanted.shape, 7), np.ones(wanted.shape) * 3
    assert shown.tobytes() == wanted.tobytes()
    assert shown.dtype == wanted.dtype
    assert shown.strides == wanted.strides or not wanted.size
    assert shown.flags.writeable == wanted.flags.writeable


@pytest.mark.parametrize("made", ["line", "computed", "rows", "columns", "of others", "large"])
def test_what_is_written_there_the_array_has(mode: str, made: str) -> None:
    found = []
    for xp in (np, numpy):
        a = (MADE | LARGE)[made](xp)
        shown = numpy.asarray(_Shown(a, "__array_interface__"))
        before = a * 2
        shown[0] = 50
        after = a + 1
        a[-1] = 60
        found.append([x.tolist() for x in (before, after, a, shown)])
    assert found[0] == found[1]


def test_numpy_is_lent_the_memory_as_ever(mode: str) -> None:
    """It asks for addresses first, and would keep them for good."""
    for asks in (numpy.asarray, lambda a: numpy.asarray([a]), lambda a: numpy.add(a, [1]), numpy.atleast_1d):
        a = np.arange(6.0) + 1
        assert hasattr(a, "__array_interface__")
        b = np.arange(6.0) + 1
        lent = asks(b)
        assert not b._cell.shared or b._cell.lent
        del lent
        assert not b._cell.shared


@pytest.mark.parametrize("kind", ["f8", "M8[D]", "m8[s]", "U3", "i2,f8"])
def test_numpy_takes_numbers_and_arrays_of_any_class_by_their_elements(mode: str, kind: str) -> None:
    """Units of dates and fields are nothing that an address alone would say."""
    for made in (
        lambda xp: xp.array([1, 3, 2]).astype(kind),
        lambda xp: xp.array([1, 3, 2]).astype(kind)[1],
        lambda xp: xp.array([1, 3, 2]).astype(kind)[1:2].reshape(()),
        lambda xp: xp.max(xp.array([1, 3, 2]).astype(kind if kind not in ("i2,f8", "U3") else "f8")),
        lambda xp: xp.array([1, 3, 2]).astype(kind) == xp.array([1, 2, 2]).astype(kind),
    ):
        ours, theirs = numpy.asarray(made(np)), numpy.asarray(made(numpy))
        assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist())


def test_sparse_arrays_have_no_address() -> None:
    sparse = np.array(scipy.sparse.csr_array([[0.0, 2.0], [3.0, 0.0]]))
    assert not hasattr(sparse, "__array_interface__")
    assert not hasattr(sparse, "__array_struct__")


@pytest.mark.parametrize("made", ["blank", "rows", "columns", "turned", "stretched", "truths", "read-only"])
def test_pictures(mode: str, made: str) -> None:
    image = pytest.importorskip("PIL.Image")
    found = []
    for xp in (np, numpy):
        a = MADE[made](xp)
        a = a if a.ndim == 2 else a[None]
        a = a.astype("f4") if a.dtype.kind in "if" else a
        picture = image.fromarray(a)
        found.append((picture.mode, picture.size, xp.asarray(picture).tolist()))
    assert found[0] == found[1]
