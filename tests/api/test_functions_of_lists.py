"""Functions that see an array in another way, of lists, tuples and numbers, which an array is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np

PLAIN = (
    *(
        "ravel",
        "transpose",
        "squeeze",
        "real",
        "imag",
        "flip",
        "fliplr",
        "flipud",
        "rot90",
        "diagonal",
    ),
    *("atleast_1d", "atleast_2d", "atleast_3d", "asarray", "asanyarray", "ascontiguousarray"),
    *("asfortranarray", "matrix_transpose", "diag", "ndim", "shape", "size", "isscalar", "copy"),
)


def plain(name: str) -> Callable[[Any, Any], Any]:
    return lambda xp, a: getattr(xp, name)(a)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: plain(name) for name in PLAIN},
    "reshape": lambda xp, a: xp.reshape(a, (-1, 1)),
    "swapaxes": lambda xp, a: xp.swapaxes(a, 0, -1),
    "moveaxis": lambda xp, a: xp.moveaxis(a, 0, -1),
    "rollaxis": lambda xp, a: xp.rollaxis(a, 0),
    "expand_dims": lambda xp, a: xp.expand_dims(a, 0),
    "broadcast_to": lambda xp, a: xp.broadcast_to(a, (2, *xp.shape(a))),
    "repeat": lambda xp, a: xp.repeat(a, 2),
    "tile": lambda xp, a: xp.tile(a, 2),
}
GIVEN: dict[str, Callable[[Any], Any]] = {
    "arrays": lambda xp: [xp.arange(3.0), xp.ones(3)],
    "parts": lambda xp: [xp.arange(6.0)[::2], xp.arange(6.0)[1::2]],
    "lazy": lambda xp: [xp.arange(3.0) * 2, xp.ones(3) + 1],
    "tuples": lambda xp: ((1, 2), (3, 4)),
    "sums": lambda xp: [xp.arange(4).sum(), xp.arange(4.0).mean()],
    "one": lambda xp: [xp.arange(4)],
    "complex": lambda xp: [1j, 2.0],
    "texts": lambda xp: ["ab", "c"],
    "nothing": lambda xp: [],
    "objects": lambda xp: [None, 1],
    "unlike": lambda xp: [xp.arange(3), xp.arange(2)],
    "sum": lambda xp: xp.arange(4.0).sum(),
    "float": lambda xp: 3.0,
    "int": lambda xp: 3,
    "float32": lambda xp: numpy.float32(2),
    "text": lambda xp: "ab",
}


def told(function: Callable[[Any, Any], Any], xp: Any, given: Callable[[Any], Any]) -> Any:
    """A result's class, dtype, elements and order, and what becomes of it where it is written to."""
    try:
        found = function(xp, given(xp))
    except Exception as error:  # noqa: BLE001 - which is compared
        return type(error)
    if not isinstance(found, numpy.ndarray | np.ndarray):
        return type(found).__name__, numpy.asarray(found).dtype, numpy.asarray(found).tolist()
    elements = numpy.array(found)
    is_writeable = bool(found.flags.writeable)
    if is_writeable and found.size and found.dtype.kind in "ifc":
        found[(0,) * found.ndim] = 7
        assert numpy.asarray(found)[(0,) * found.ndim] == 7
    order = found.flags.c_contiguous, found.flags.f_contiguous
    return found.dtype, found.shape, elements.tolist(), is_writeable, order


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_numpys(name: str, given: str) -> None:
    found, wanted = (told(FUNCTIONS[name], xp, GIVEN[given]) for xp in (np, numpy))
    if isinstance(wanted, type):  # an error, of which ours may say more
        assert issubclass(found, wanted)
    else:
        assert found == wanted


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {"ndim", "shape", "size", "isscalar", "rollaxis"}))
def test_arrays_in_lists_stay_as_they_are(name: str) -> None:
    inside = np.arange(3.0)
    found = FUNCTIONS[name](np, [inside, inside])
    if found.flags.writeable:
        found[(0,) * found.ndim] = 9
    numpy.testing.assert_array_equal(inside, [0, 1, 2])
