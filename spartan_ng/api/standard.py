"""The Python array API standard's view of this package, version 2025.12.

`x.__array_namespace__()` gives this module. Its functions are the package's own, also NumPy's others.
Where NumPy contradicts the standard, the package itself follows NumPy, and what differs is here: `//` of
infinities, `expm1` and `tanh` of complex infinities, the arguments of `clip` and the sorts, complex
eigenvalues of real matrices, Python's numbers in `finfo`, and arrays of texts, which it has none of. Because
`//` is an operator, arrays made here are of a class of their own, which the functions of this module and the
operators hand on.
https://data-apis.org/array-api/2025.12
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.api.algebra import linalg as algebra
from spartan_ng.api.core.borrowed import of_numpy
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.operands import operand, stored
from spartan_ng.api.ndarray.arithmetic import is_operand
from spartan_ng.api.ndarray.array import ndarray
from spartan_ng.api.ndarray.own_classes import complete, of_class
from spartan_ng.api.numeric import fft as fourier
from spartan_ng.submodules import package

__array_api_version__ = "2025.12"
ours = package()
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""The standard's versions, each a superset of the one before."""


def standard(a: Any) -> Any:
    """An array, or all arrays in a tuple or list, in the standard's class and over the same elements.

    What NumPy makes a scalar is an array without axes here, and can be written to.
    """
    return of_class(Array, a)


def _standardly(function: Callable[..., Any]) -> Any:
    """A function whose arrays are the standard's."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **keywords: Any) -> Any:
        return standard(function(*args, **keywords))

    return call


class Array(ndarray, own=True):
    """An array for which `//` is the standard's; all else is `ndarray`'s."""

    __slots__ = ()

    def __floordiv__(self, other: Any) -> Any:
        return floor_divide(self, other) if is_operand(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return floor_divide(other, self) if is_operand(other) else NotImplemented

    def __ifloordiv__(self, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        return stored("floor_divide", floor_divide(self, other), self, broadcast=True)

    def __reduce__(self) -> Any:
        return (_restored, ndarray.__reduce__(self))


complete(Array, _standardly)


def _restored(restore: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """An unpickled array."""
    return standard(restore(*arguments))


# --- what is not NumPy's ---------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """An array of numbers or truth values.

    Raises
    ------
    TypeError : for texts and Python's objects, by which libraries find out that a namespace has none
    """
    asked = {} if device is copy is None else {"device": device, "copy": copy}
    made = ours.asarray(obj, dtype, **asked)
    if made.dtype.kind in "USTO":
        raise TypeError(
            f"the array API standard has no arrays of {made.dtype}: convert them to numbers, or import "
            "spartan_ng in NumPy's place, whose asarray takes them"
        )
    return standard(made)


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """The quotients, rounded down; where one operand is infinite, the limit, an infinity or a zero."""
    x1, x2 = operand(x1), operand(x2)
    dtype = np.result_type(*(a.dtype if isinstance(a, Handle) else a for a in (x1, x2)))
    if dtype.kind != "f":
        return standard(ours.floor_divide(x1, x2))
    x1, x2 = as_handle(x1, dtype), as_handle(x2, dtype)
    apart = ours.not_equal(ours.isinf(x1), ours.isinf(x2))
    rounded = ours.floor_divide(ours.where(apart, 1, x1), ours.where(apart, 1, x2))
    return standard(ours.where(apart, ours.divide(x1, x2), rounded))


def expm1(x: Any, /) -> Any:
    """`exp(x) - 1`; infinite complex numbers follow `exp`, whose limits C99 lays down."""
    x = as_handle(x)
    if x.dtype.kind != "c":
        return standard(ours.expm1(x))
    near = ours.logical_and(ours.isfinite(x), x != 0)
    return standard(ours.where(near, ours.expm1(x), ours.exp(x) - 1))


def tanh(x: Any, /) -> Any:
    """Hyperbolic tangents; of an infinite real part, ±1 with a zero of the imaginary part's sign."""
    x = as_handle(x)
    if x.dtype.kind != "c":
        return standard(ours.tanh(x))
    one = ours.copysign(1, x.real).astype(x.dtype)
    limit = ours.where(ours.signbit(x.imag), ours.conj(one), one)
    far = ours.logical_and(ours.isinf(x.real), ours.isfinite(x.imag))
    return standard(ours.where(far, limit, ours.tanh(x)))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The indices that sort; equal elements keep their order unless `stable` is false."""
    return standard(ours.argsort(x, axis, stable=stable, descending=descending))


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """A sorted copy."""
    return standard(ours.sort(x, axis, stable=stable, descending=descending))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """The elements, at least `min` and at most `max`."""
    return standard(ours.clip(x, min, max))


class FloatInfo(Struct, frozen=True):
    """What `finfo` tells, in Python's numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype, or of an array's."""
    info: Any = np.finfo(getattr(type, "dtype", type) if isinstance(type, Handle) else type)
    eps, greatest, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(int(info.bits), eps, greatest, least, normal, info.dtype)


class __array_namespace_info__(np.__array_namespace_info__):  # type: ignore[misc]
    """What the namespace can do: NumPy's answers, with the devices in a tuple."""

    def devices(self) -> Any:
        """All devices."""
        return tuple(super().devices())


def _complex(a: Any) -> Any:
    """An array, cast to the complex dtype of its precision."""
    return a.astype(np.result_type(a.dtype, np.complex64), copy=False)


def eig(x: Any, /) -> Any:
    """Eigenvalues and eigenvectors of square matrices, always complex."""
    found = algebra.eig(x)
    return standard(type(found)(*map(_complex, found)))


def eigvals(x: Any, /) -> Any:
    """Eigenvalues of square matrices, always complex."""
    return standard(_complex(algebra.eigvals(x)))


def _of(namespace: Any, name: str) -> Any:
    """A name of the package, as the standard has it."""
    found = getattr(namespace, name)
    return found if isinstance(found, type) or not callable(found) else _standardly(found)


def _functions_of(module: Any) -> Any:
    """A module's functions, as the standard has them."""
    return SimpleNamespace(**{n: _of(module, n) for n in module.__all__})


linalg = _functions_of(algebra)
linalg.eig, linalg.eigvals = eig, eigvals
fft = _functions_of(fourier)


def __getattr__(name: str) -> Any:
    """The package's functions, and NumPy's modules."""
    if name != "special" and name not in ours.__all__:
        return of_numpy(name)
    # SciPy finds `special` by this name; it comes with scipy.special.
    globals()[name] = found = _functions_of(ours.special) if name == "special" else _of(ours, name)
    return found


def __dir__() -> list[str]:
    return sorted({*ours.__all__, *__all__})


__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "argsort",
    "asarray",
    "clip",
    "expm1",
    "fft",
    "finfo",
    "floor_divide",
    "linalg",
    "sort",
    "tanh",
]
