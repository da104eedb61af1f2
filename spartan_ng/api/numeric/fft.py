"""`spartan_ng.fft`: Fourier transforms of whole lines, which cut an array along its other axes.

A transform along several axes is one along each. A single line of a 1-d array is one worker's work, or is
transformed in parts where that has no room (`long_fft`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, creation, joining
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.layouts import lying_as, lying_as_copy
from spartan_ng.api.core.operands import check_output
from spartan_ng.api.core.quick import AS_SHAPE, shortened
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.api.numeric import long_fft
from spartan_ng.api.places import rearranging
from spartan_ng.callers import warn_user
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


test = np.fft.test  # type: ignore[attr-defined]
_HALF = ("irfft", "hfft")
"""Those that are given half a spectrum,"""
_TO_HALF = ("rfft", "ihfft")
"""and that give half of one."""


def _line(name: str, a: Any, n: Any, axis: Any, norm: Any) -> ndarray:
    """A row of the table on the lines along an axis; the result's length and dtype are NumPy's."""
    a = given = as_handle(a)
    where = build.axis_index(axis, a.ndim)
    function: Any = getattr(np.fft, name)
    length = a.shape[where] if n is None else operator.index(n)
    shown = length if n is not None or name not in _HALF else 2 * (length - 1)
    if shown < 1:
        raise ValueError(f"Invalid number of FFT data points ({shown}) specified: {name} of {a.shape}.")
    result = function(np.zeros(1, a.dtype), n=2, norm=norm).dtype
    half = shown // 2 + 1
    taken, made = (half if name in names else shown for names in (_HALF, _TO_HALF))
    if not long_fft.line_fits(a, shown):
        a = _fitted(a, taken, where)
        line = _fitted(long_fft.transform(name, a, shown, where, norm), made, where).copy()
    else:
        a = _fitted(a, min(taken, a.shape[where]), where)  # NumPy fills lines up
        keywords = (("n", shown), ("norm", norm))
        node = build.along_axis(
            f"fft.{name}", [a._node()], where, dtype=result, keywords=keywords, length=made
        )
        line = wrap_node(node)
    return (lying_as if name == "hfft" else lying_as_copy)(line, given)  # of the array's conjugates


def _fitted(a: ndarray, length: int, axis: int) -> ndarray:
    """The axis cut, or filled up with zeros, to a length."""
    shape, before = a.shape, (slice(None),) * axis
    if shape[axis] >= length:
        return a if shape[axis] == length else a[(*before, slice(length))]
    more = constants.zeros((*shape[:axis], length - shape[axis], *shape[axis + 1 :]), a.dtype)
    return joining.concatenate([a, more], axis)


@numpy_function(np.fft.fft, eager=True)
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """The discrete Fourier transform along an axis."""
    return _stored(_line("fft", a, n, axis, norm), out)


@numpy_function(np.fft.ifft, eager=True)
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """The inverse of `fft`."""
    return _stored(_line("ifft", a, n, axis, norm), out)


@numpy_function(np.fft.rfft, eager=True)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """The transform of real input: its non-negative frequencies."""
    return _stored(_line("rfft", a, n, axis, norm), out)


@numpy_function(np.fft.irfft, eager=True)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """The inverse of `rfft`."""
    return _stored(_line("irfft", a, n, axis, norm), out)


@numpy_function(np.fft.hfft, eager=True)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """The transform of a signal with Hermitian symmetry."""
    return _stored(_line("hfft", a, n, axis, norm), out)


@numpy_function(np.fft.ihfft, eager=True)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """The inverse of `hfft`."""
    return _stored(_line("ihfft", a, n, axis, norm), out)


@numpy_function(np.fft.fftn, eager=True)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> ndarray:
    """The transform along several axes."""
    return _stored(_lines(fft, a, *_plan(a, s, axes), norm), out)


@numpy_function(np.fft.ifftn, eager=True)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> ndarray:
    """The inverse of `fftn`."""
    return _stored(_lines(ifft, a, *_plan(a, s, axes), norm), out)


@numpy_function(np.fft.rfftn, eager=True)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> ndarray:
    """`rfft` along the last axis, `fft` along the others."""
    lengths, where = _plan(a, s, axes)
    a = rfft(a, lengths[-1], where[-1], norm)
    return _stored(_lines(fft, a, lengths[:-1], where[:-1], norm), out)


@numpy_function(np.fft.irfftn, eager=True)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> ndarray:
    """The inverse of `rfftn`."""
    lengths, where = _plan(a, s, axes)
    last = None if s is None else lengths[-1]
    for n, axis in zip(lengths[:-1], where[:-1], strict=True):
        a = ifft(a, n, axis, norm)
    return _stored(irfft(a, last, where[-1], norm), out)


@numpy_function(np.fft.fft2, eager=True)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> ndarray:
    """The transform along two axes."""
    return fftn(a, s, axes, norm, out)


@numpy_function(np.fft.ifft2, eager=True)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> ndarray:
    """The inverse of `fft2`."""
    return ifftn(a, s, axes, norm, out)


@numpy_function(np.fft.rfft2, eager=True)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> ndarray:
    """The transform of real input along two axes."""
    return rfftn(a, s, axes, norm, out)


@numpy_function(np.fft.irfft2, eager=True)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> ndarray:
    """The inverse of `rfft2`."""
    return irfftn(a, s, axes, norm, out)


@numpy_function(np.fft.fftfreq, front=shortened(np.fft.fftfreq, 2, AS_SHAPE, frozenset({"d"})))
def fftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> ndarray:
    """The frequencies that `fft` gives, in its order."""
    _whole(n)
    up = creation.arange(0, (n - 1) // 2 + 1)
    down = creation.arange(-(n // 2), 0)
    return _scaled(joining.concatenate([up, down]), n, d, dtype)


@numpy_function(np.fft.rfftfreq, front=shortened(np.fft.rfftfreq, 2, AS_SHAPE, frozenset({"d"})))
def rfftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> ndarray:
    """The frequencies that `rfft` gives."""
    _whole(n)
    return _scaled(creation.arange(0, n // 2 + 1), n, d, dtype)


@numpy_function(np.fft.fftshift, eager=True)
def fftshift(x: Any, axes: Any = None) -> ndarray:
    """The zero frequency moved to the middle."""
    return _rolled(x, axes, 1)


@numpy_function(np.fft.ifftshift, eager=True)
def ifftshift(x: Any, axes: Any = None) -> ndarray:
    """The inverse of `fftshift`."""
    return _rolled(x, axes, -1)


def _rolled(x: Any, axes: Any, sign: int) -> ndarray:
    x = as_handle(x)
    where = tuple(range(x.ndim)) if axes is None else axes if isinstance(axes, tuple | list) else (axes,)
    if not where:
        raise ShapeError(f"fftshift: there is no axis to shift along in shape {x.shape}, axes={axes}")
    halves = [x.shape[a] // 2 if sign > 0 else -(x.shape[a] // 2) for a in where]
    return rearranging.roll(x, halves, tuple(where))


def _whole(n: Any) -> None:
    if not isinstance(n, int | np.integer):
        raise ValueError("n should be an integer")


def _scaled(ranks: ndarray, n: int, d: float, dtype: Any) -> ndarray:
    """Ranks of frequencies as cycles a unit of `d`."""
    found = ranks * (1.0 / (n * d))
    return found if dtype is None else found.astype(dtype)


def _plan(a: Any, s: Any, axes: Any) -> tuple[list[int], list[int]]:
    """Lengths and axes of a transform along several axes."""
    shape = as_handle(a).shape
    if axes is None and s is not None:
        warn_user("`axes` should not be `None` if `s` is not `None`: name them", DeprecationWarning)
    if s is not None and any(n is None for n in s):
        warn_user(
            "Passing an array containing `None` values to `s` is deprecated: -1 means it", DeprecationWarning
        )
    if axes is None:
        axes = list(range(len(shape))) if s is None else list(range(-len(s), 0))
    if s is not None and len(s) != len(axes):
        raise ValueError(f"Shape and axes have different lengths: {s} and {axes}.")
    where = [build.axis_index(axis, len(shape)) for axis in axes]
    lengths = [None if s is None else s[i] for i in range(len(where))]
    return [
        shape[w] if n is None or n == -1 else operator.index(n) for n, w in zip(lengths, where, strict=True)
    ], where


def _lines(
    one: Callable[..., ndarray], a: Any, lengths: Sequence[int], axes: Sequence[int], norm: Any
) -> ndarray:
    """One transform after the other, the last axis first, as NumPy does it."""
    for n, axis in reversed(list(zip(lengths, axes, strict=True))):
        a = one(a, n, axis, norm)
    a = as_handle(a)
    return a if a.ndim else a[...]  # type: ignore[no-any-return]  # NumPy gives an array of a number, too


def _stored(result: ndarray, out: Any) -> ndarray:
    """The result, put into `out` if it is there."""
    if out is None:
        return result
    check_output(out)
    if out.ndim != result.ndim or any(n not in (1, m) for n, m in zip(result.shape, out.shape, strict=True)):
        raise ShapeError(f"output array has wrong shape. It is {out.shape} for a result of {result.shape}")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast the transform's output from {result.dtype!r} to {out.dtype!r} with casting rule "
            "'same_kind'"
        )
    if isinstance(out, Handle):
        out._write(result)
    else:
        out[...] = result._force()
    return out  # type: ignore[no-any-return]


__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "test",
]
