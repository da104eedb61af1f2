"""Memory of arrays of a program's own classes, which functions show: writes are seen both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config


def _own(xp: Any, deep: bool = False) -> Any:
    class Own(xp.ndarray):  # type: ignore[misc]
        pass

    class Deeper(Own):
        pass

    return xp.arange(12.0).reshape(3, 4).view(Deeper if deep else Own)


def _records(xp: Any) -> Any:
    made = xp.zeros((3, 4), [("a", "f8"), ("b", "i4")])
    made["a"] = xp.arange(12.0).reshape(3, 4)
    return made.view(xp.recarray)


MADE: dict[str, Callable[[Any], Any]] = {
    "own": _own,
    "derived from own": lambda xp: _own(xp, deep=True),
    "from a list": lambda xp: xp.array([[1.0, 2, 3], [4, 5, 6]]).view(type(_own(xp))),
    "new": lambda xp: type(_own(xp)).__new__(type(_own(xp)), (3, 4)),
    "masked": lambda xp: xp.ma.array(xp.arange(12.0).reshape(3, 4), mask=False),
    "masked zeros": lambda xp: xp.ma.zeros((3, 4)),
    "matrix": lambda xp: xp.matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    "records": _records,
    "text": lambda xp: xp.char.array([["ab", "c"], ["d", "ef"]]),
    "complex": lambda xp: (xp.arange(12).reshape(3, 4) * 1j).view(type(_own(xp))),
    "columns": lambda xp: xp.asfortranarray(xp.arange(12.0).reshape(3, 4)).view(type(_own(xp))),
    "its part": lambda xp: _own(xp)[1:, ::2],
    "turned": lambda xp: _own(xp).T,
    "its row": lambda xp: _own(xp)[0],
    "a calculated one": lambda xp: _own(xp) * 2,
    "locked": lambda xp: _locked(_own(xp)),
}
SHOWN: dict[str, Callable[[Any, Any], Any]] = {
    "asarray": lambda xp, a: xp.asarray(a),
    "asarray twice": lambda xp, a: xp.asarray(xp.asarray(a)),
    "asarray of its dtype": lambda xp, a: xp.asarray(a, a.dtype),
    "asarray in order": lambda xp, a: xp.asarray(a, order="C"),
    "asarray without a copy": lambda xp, a: xp.asarray(a, copy=False),
    "asarray of a copy": lambda xp, a: xp.asarray(a, copy=True),
    "asanyarray": lambda xp, a: xp.asanyarray(a),
    "array": lambda xp, a: xp.array(a),
    "array without a copy": lambda xp, a: xp.array(a, copy=False),
    "array if need be": lambda xp, a: xp.array(a, copy=None),
    "array with more axes": lambda xp, a: xp.array(a, copy=None, ndmin=4),
    "array of the class": lambda xp, a: xp.array(a, copy=False, subok=True),
    "array of none": lambda xp, a: xp.array(a, copy=False, subok=False),
    "array like": lambda xp, a: xp.array([a]),
    "asarray_chkfinite": lambda xp, a: xp.asarray_chkfinite(a),
    "ascontiguousarray": lambda xp, a: xp.ascontiguousarray(a),
    "asfortranarray": lambda xp, a: xp.asfortranarray(a),
    "require": lambda xp, a: xp.require(a),
    "require memory": lambda xp, a: xp.require(a, None, ["W", "A"]),
    "require an array": lambda xp, a: xp.require(a, requirements=["E", "C"]),
    "copy": lambda xp, a: xp.copy(a),
    "view": lambda xp, a: a.view(numpy.ndarray),
    "view of a view": lambda xp, a: xp.asarray(a.view(type(a)))[1:],
    "atleast_1d": lambda xp, a: xp.atleast_1d(a),
    "atleast_2d": lambda xp, a: xp.atleast_2d(a),
    "atleast_3d": lambda xp, a: xp.atleast_3d(a),
    "ravel": lambda xp, a: xp.ravel(a),
    "reshape": lambda xp, a: xp.reshape(a, -1),
    "squeeze": lambda xp, a: xp.squeeze(a),
    "transpose": lambda xp, a: xp.transpose(a),
    "swapaxes": lambda xp, a: xp.swapaxes(a, 0, -1),
    "moveaxis": lambda xp, a: xp.moveaxis(a, 0, -1),
    "expand_dims": lambda xp, a: xp.expand_dims(a, 0),
    "broadcast_to": lambda xp, a: xp.broadcast_to(a, (2, *a.shape)),
    "broadcast_to of the class": lambda xp, a: xp.broadcast_to(a, (2, *a.shape), subok=True),
    "broadcast_arrays": lambda xp, a: xp.broadcast_arrays(a, xp.zeros(1))[0],
    "broadcast_arrays of the class": lambda xp, a: xp.broadcast_arrays(a, a, subok=True)[0],
    "meshgrid": lambda xp, a: xp.meshgrid(xp.ravel(a)[:3], xp.arange(2.0), copy=False)[0],
    "real": lambda xp, a: xp.real(a),
    "imag": lambda xp, a: xp.imag(a),
    "real_if_close": lambda xp, a: xp.real_if_close(a),
    "diagonal": lambda xp, a: xp.diagonal(a),
    "split": lambda xp, a: xp.split(a, 1)[0],
    "array_split": lambda xp, a: xp.array_split(a, 2, -1)[1],
    "flip": lambda xp, a: xp.flip(a, 0),
    "rot90": lambda xp, a: xp.rot90(a),
    "asarray of its flip": lambda xp, a: xp.asarray(xp.flip(a, 0)),
    "strides": lambda xp, a: xp.lib.stride_tricks.as_strided(a, a.shape, a.strides),
    "windows": lambda xp, a: xp.lib.stride_tricks.sliding_window_view(xp.asarray(a), 1, -1, writeable=True),
    "nan_to_num": lambda xp, a: xp.nan_to_num(a, copy=False),
    "asarray of what gives it": lambda xp, a: xp.asarray(_Giving(a)),
    "unstack": lambda xp, a: xp.unstack(a)[0],
    "matrix_transpose": lambda xp, a: xp.matrix_transpose(a),
    "rollaxis": lambda xp, a: xp.rollaxis(a, -1),
    "trim_zeros": lambda xp, a: xp.trim_zeros(xp.asarray(a)),
    "a part of a ravel": lambda xp, a: xp.ravel(xp.asarray(a)[:1]),
    "an iterator's": lambda xp, a: xp.asarray(next(iter(a))),
    "asmatrix": lambda xp, a: xp.asmatrix(a),
    "masked": lambda xp, a: xp.ma.getdata(xp.ma.asarray(a)),
    "once more of the class": lambda xp, a: xp.asarray(a).view(type(a)),
    "a field": lambda xp, a: xp.asarray(a)["a"],
    "the first": lambda xp, a: xp.asarray(a)[0],
    "in a list": lambda xp, a: [xp.asarray(i) for i in a][0],
}


class _Giving:
    """What has an array that it shows when it is asked."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.a


def _locked(a: Any) -> Any:
    a.flags.writeable = False
    return a


def _said(a: Any) -> Any:
    return numpy.array(a).tolist()


WRITES: list[Callable[[Any, Any, Any], Any]] = [
    lambda xp, view, a: view.__iadd__(1),
    lambda xp, view, a: xp.add(view, 1, out=view),
    lambda xp, view, a: view.fill(4),
    lambda xp, view, a: a.__imul__(2),
    lambda xp, view, a: xp.copyto(view, xp.ones(view.shape) * 3),
    lambda xp, view, a: view.__setitem__(view > 2, 5),
]


def _tried(act: Callable[..., Any], *args: Any) -> Any:
    try:
        return act(*args)
    except Exception as error:  # noqa: BLE001 - whatever NumPy raises
        return type(error).__name__


def _is_none(write: Any, *args: Any) -> bool:
    return write(*args) is None


def _program(xp: Any, made: str, shown: str) -> Any:
    """What is seen after writes through what is shown, and through the array itself; names of errors."""
    a = MADE[made](xp)
    if made == "new":
        a[...] = 0
    view = _tried(SHOWN[shown], xp, a)
    if isinstance(view, str | numpy.generic):
        return [str(view)]
    of_numbers = view.dtype.kind in "fc"
    value = (9, 9) if view.dtype.names else "x" if view.dtype.kind in "US" else 9
    built = view * 2 if of_numbers else None
    told: list[Any] = [view.shape, view.flags.writeable, view.dtype.str]
    for target in (view, a, view[:1] if view.ndim else view):
        told.append(_tried(target.__setitem__, (0,) * target.ndim, value))
        told.append((_said(a), _said(view)))
    for write in WRITES if of_numbers else ():
        told.append(_tried(_is_none, write, xp, view, a))
        told.append((_said(a), _said(view)))
    return [*told, None if built is None else _said(built)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(40)
@pytest.mark.parametrize("small_bytes", [0, config.small_bytes])
@pytest.mark.parametrize("shown", SHOWN)
def test_writes_reach_what_is_shown(shown: str, small_bytes: int) -> None:
    for made in MADE:
        if shown == "a field" and made != "records":
            continue
        with config.override(small_bytes=small_bytes):
            assert _program(np, made, shown) == _program(numpy, made, shown), (made, shown)
