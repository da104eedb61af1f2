"""Elementwise functions: one row for each of NumPy's ufuncs, and the few maps that are not ufuncs.

A row says all the rooms need: the function on blocks, its number of operands and results, whether
a zero operand makes a zero result (so that sparse blocks stay sparse), and its cost.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from numpy._core import umath

Zero = Literal["none", "unary", "any", "all", "first"]
"""When the result is zero: never for sure; for a zero operand; for any zero operand; for all zero; for a zero
that is sparse and comes first: 0 / 0 is no number, but zeros of a CSR array stay zeros under division, as do
those of SciPy."""


class Elementwise(Struct, frozen=True):
    """One elementwise function.

    Parameters
    ----------
    name : NumPy's name, or SciPy's
    call : called on blocks, with `out=` where it is a ufunc; a name of scipy.special, which is imported when
        the function is first asked for
        (only rows of ufuncs have a function in the API: others serve nodes that the API builds)
    nin, nout : number of operands and results
    zero : when the result is zero for sure
    flops : cost of one element, in floating-point operations, of which a thread does `THREAD_FLOPS_S`:
        between doubles and whole numbers, and compiled loops and NumPy's, where these differ
        (`benchmarks counts`)
    """

    name: str
    call: Callable[..., Any] | str
    nin: int = 1
    nout: int = 1
    zero: Zero = "none"
    flops: int = 1

    @property
    def function(self) -> Callable[..., Any]:
        """What computes a block."""
        call = self.call
        return _of_scipy(call) if isinstance(call, str) else call

    @property
    def is_ufunc(self) -> bool:
        """Whether the function takes `out=` and `where=` as ufuncs do."""
        return isinstance(self.call, np.ufunc | str)


@functools.cache
def _of_scipy(name: str) -> Callable[..., Any]:
    """A function of scipy.special: a ufunc, also under SCIPY_ARRAY_API, which wraps the public names."""
    found: Callable[..., Any] = getattr(importlib.import_module("scipy.special._ufuncs"), name)
    return found


def _cast(x: Any, *, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype, copy=False)


_CLIP: Any = umath.clip  # type: ignore[attr-defined]
"""The ufunc behind `np.clip`, which takes `out=` as the others do."""

_ROWS = [
    # arithmetic
    Elementwise("add", np.add, 2, zero="all"),
    Elementwise("subtract", np.subtract, 2, zero="all"),
    Elementwise("multiply", np.multiply, 2, zero="any"),
    Elementwise("divide", np.divide, 2, zero="first", flops=4),
    Elementwise("floor_divide", np.floor_divide, 2, flops=65),
    Elementwise("remainder", np.remainder, 2, flops=35),
    Elementwise("fmod", np.fmod, 2, flops=58),
    Elementwise("divmod", np.divmod, 2, nout=2, flops=65),
    Elementwise("power", np.power, 2, flops=30),
    Elementwise("float_power", np.float_power, 2, flops=85),
    Elementwise("negative", np.negative, zero="unary"),
    Elementwise("positive", np.positive, zero="unary"),
    Elementwise("absolute", np.absolute, zero="unary"),
    Elementwise("fabs", np.fabs, zero="unary", flops=4),
    Elementwise("sign", np.sign, zero="unary", flops=2),
    Elementwise("reciprocal", np.reciprocal, flops=4),
    Elementwise("square", np.square, zero="unary"),
    Elementwise("sqrt", np.sqrt, zero="unary", flops=6),
    Elementwise("cbrt", np.cbrt, zero="unary", flops=20),
    Elementwise("gcd", np.gcd, 2, flops=120),
    Elementwise("lcm", np.lcm, 2, zero="any", flops=130),
    Elementwise("heaviside", np.heaviside, 2, flops=10),
    # rounding
    Elementwise("rint", np.rint, zero="unary"),
    Elementwise("floor", np.floor, zero="unary"),
    Elementwise("ceil", np.ceil, zero="unary"),
    Elementwise("trunc", np.trunc, zero="unary"),
    # exponents and logarithms
    Elementwise("exp", np.exp, flops=16),
    Elementwise("exp2", np.exp2, flops=20),
    Elementwise("expm1", np.expm1, zero="unary", flops=25),
    Elementwise("log", np.log, flops=20),
    Elementwise("log2", np.log2, flops=20),
    Elementwise("log10", np.log10, flops=20),
    Elementwise("log1p", np.log1p, zero="unary", flops=25),
    Elementwise("logaddexp", np.logaddexp, 2, flops=135),
    Elementwise("logaddexp2", np.logaddexp2, 2, flops=135),
    # trigonometry
    Elementwise("sin", np.sin, zero="unary", flops=50),
    Elementwise("cos", np.cos, flops=50),
    Elementwise("tan", np.tan, zero="unary", flops=25),
    Elementwise("arcsin", np.arcsin, zero="unary", flops=25),
    Elementwise("arccos", np.arccos, flops=25),
    Elementwise("arctan", np.arctan, zero="unary", flops=25),
    Elementwise("arctan2", np.arctan2, 2, flops=35),
    Elementwise("hypot", np.hypot, 2, zero="all", flops=100),
    Elementwise("sinh", np.sinh, zero="unary", flops=25),
    Elementwise("cosh", np.cosh, flops=25),
    Elementwise("tanh", np.tanh, zero="unary", flops=25),
    Elementwise("arcsinh", np.arcsinh, zero="unary", flops=30),
    Elementwise("arccosh", np.arccosh, flops=30),
    Elementwise("arctanh", np.arctanh, zero="unary", flops=30),
    Elementwise("degrees", np.degrees, zero="unary", flops=12),
    Elementwise("radians", np.radians, zero="unary", flops=15),
    Elementwise("deg2rad", np.deg2rad, zero="unary", flops=15),
    Elementwise("rad2deg", np.rad2deg, zero="unary", flops=15),
    # comparison
    Elementwise("equal", np.equal, 2),
    Elementwise("not_equal", np.not_equal, 2, zero="all"),
    Elementwise("less", np.less, 2, zero="all"),
    Elementwise("less_equal", np.less_equal, 2),
    Elementwise("greater", np.greater, 2, zero="all"),
    Elementwise("greater_equal", np.greater_equal, 2),
    Elementwise("maximum", np.maximum, 2, zero="all"),
    Elementwise("minimum", np.minimum, 2, zero="all"),
    Elementwise("fmax", np.fmax, 2, zero="all"),
    Elementwise("fmin", np.fmin, 2, zero="all"),
    # logic
    Elementwise("logical_and", np.logical_and, 2, zero="any"),
    Elementwise("logical_or", np.logical_or, 2, zero="all"),
    Elementwise("logical_xor", np.logical_xor, 2, zero="all"),
    Elementwise("logical_not", np.logical_not),
    # bits
    Elementwise("bitwise_and", np.bitwise_and, 2, zero="any"),
    Elementwise("bitwise_or", np.bitwise_or, 2, zero="all"),
    Elementwise("bitwise_xor", np.bitwise_xor, 2, zero="all"),
    Elementwise("invert", np.invert),
    Elementwise("left_shift", np.left_shift, 2),
    Elementwise("right_shift", np.right_shift, 2),
    Elementwise("bitwise_count", np.bitwise_count, zero="unary", flops=4),
    # floating point
    Elementwise("isfinite", np.isfinite),
    Elementwise("isinf", np.isinf, zero="unary"),
    Elementwise("isnan", np.isnan, zero="unary"),
    Elementwise("isnat", np.isnat),
    Elementwise("signbit", np.signbit),
    Elementwise("copysign", np.copysign, 2, flops=4),
    Elementwise("nextafter", np.nextafter, 2, flops=40),
    Elementwise("spacing", np.spacing, flops=16),
    Elementwise("modf", np.modf, nout=2, zero="unary", flops=14),
    Elementwise("frexp", np.frexp, nout=2, zero="unary", flops=2),
    Elementwise("ldexp", np.ldexp, 2, flops=12),
    Elementwise("conjugate", np.conjugate, zero="unary"),
    # not ufuncs of NumPy's namespace, and still elementwise
    Elementwise("clip", _CLIP, 3, flops=4),
    Elementwise("where", np.where, 3),
    Elementwise("cast", _cast, zero="unary"),
    Elementwise("real", np.real, zero="unary"),
    Elementwise("imag", np.imag, zero="unary"),
    # SciPy's
    Elementwise("expit", "expit", flops=25),
    Elementwise("erf", "erf", zero="unary", flops=30),
    Elementwise("erfc", "erfc", flops=30),
    Elementwise("gammaln", "gammaln", flops=40),
    Elementwise("ndtr", "ndtr", flops=30),
    Elementwise("log_ndtr", "log_ndtr", flops=160),
    Elementwise("xlogy", "xlogy", 2, flops=25),
]

ELEMENTWISE: dict[str, Elementwise] = {row.name: row for row in _ROWS}
"""Every elementwise row by its name."""


def resolved_dtypes(
    function: np.ufunc, operands: Iterable[Any], outs: Iterable[Any], **asked: Any
) -> tuple[np.dtype[Any], ...]:
    """What `function.resolve_dtypes` says of dtypes (or Python's types) of operands and of outputs, or None.

    For Python's numbers under "equiv" it ends the process in NumPy 2.4: the function itself says what it
    refuses, of arrays of one element.
    """
    operands = tuple(operands)
    if asked.get("casting") == "equiv" and any(isinstance(o, type) for o in operands):
        with np.errstate(all="ignore"):
            function(*(o(1) if isinstance(o, type) else np.ones(1, o) for o in operands), **asked)
        asked = {**asked, "casting": "same_kind"}
    resolve: Any = function.resolve_dtypes
    found: tuple[np.dtype[Any], ...] = resolve((*operands, *outs), **asked)
    return found
