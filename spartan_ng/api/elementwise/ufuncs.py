"""The universal functions by NumPy's names, each from its row of the table of elementwise functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.api.elementwise.universal import ufunc
from spartan_ng.ops.elementwise import ELEMENTWISE

# arithmetic
add = ufunc("add")
subtract = ufunc("subtract")
multiply = ufunc("multiply")
divide = true_divide = ufunc("divide")
floor_divide = ufunc("floor_divide")
remainder = mod = ufunc("remainder")
fmod = ufunc("fmod")
divmod = ufunc("divmod")
power = pow = ufunc("power")
float_power = ufunc("float_power")
negative = ufunc("negative")
positive = ufunc("positive")
absolute = abs = ufunc("absolute")
fabs = ufunc("fabs")
sign = ufunc("sign")
reciprocal = ufunc("reciprocal")
square = ufunc("square")
sqrt = ufunc("sqrt")
cbrt = ufunc("cbrt")
gcd = ufunc("gcd")
lcm = ufunc("lcm")
heaviside = ufunc("heaviside")

# rounding, and parts of numbers
rint = ufunc("rint")
floor = ufunc("floor")
ceil = ufunc("ceil")
trunc = ufunc("trunc")

# exponents and logarithms
exp = ufunc("exp")
exp2 = ufunc("exp2")
expm1 = ufunc("expm1")
log = ufunc("log")
log2 = ufunc("log2")
log10 = ufunc("log10")
log1p = ufunc("log1p")
logaddexp = ufunc("logaddexp")
logaddexp2 = ufunc("logaddexp2")

# trigonometry
sin = ufunc("sin")
cos = ufunc("cos")
tan = ufunc("tan")
arcsin = asin = ufunc("arcsin")
arccos = acos = ufunc("arccos")
arctan = atan = ufunc("arctan")
arctan2 = atan2 = ufunc("arctan2")
hypot = ufunc("hypot")
sinh = ufunc("sinh")
cosh = ufunc("cosh")
tanh = ufunc("tanh")
arcsinh = asinh = ufunc("arcsinh")
arccosh = acosh = ufunc("arccosh")
arctanh = atanh = ufunc("arctanh")
degrees = ufunc("degrees")
radians = ufunc("radians")
deg2rad = ufunc("deg2rad")
rad2deg = ufunc("rad2deg")

# comparison and extremes
equal = ufunc("equal")
not_equal = ufunc("not_equal")
less = ufunc("less")
less_equal = ufunc("less_equal")
greater = ufunc("greater")
greater_equal = ufunc("greater_equal")
maximum = ufunc("maximum")
minimum = ufunc("minimum")
fmax = ufunc("fmax")
fmin = ufunc("fmin")

# logic
logical_and = ufunc("logical_and")
logical_or = ufunc("logical_or")
logical_xor = ufunc("logical_xor")
logical_not = ufunc("logical_not")

# bits
bitwise_and = ufunc("bitwise_and")
bitwise_or = ufunc("bitwise_or")
bitwise_xor = ufunc("bitwise_xor")
invert = bitwise_not = bitwise_invert = ufunc("invert")
left_shift = bitwise_left_shift = ufunc("left_shift")
right_shift = bitwise_right_shift = ufunc("right_shift")
bitwise_count = ufunc("bitwise_count")

# floating-point numbers
isfinite = ufunc("isfinite")
isinf = ufunc("isinf")
isnan = ufunc("isnan")
isnat = ufunc("isnat")
signbit = ufunc("signbit")
copysign = ufunc("copysign")
nextafter = ufunc("nextafter")
spacing = ufunc("spacing")
modf = ufunc("modf")
frexp = ufunc("frexp")
ldexp = ufunc("ldexp")

# complex numbers
conjugate = conj = ufunc("conjugate")

# clipping, by the `clip` that takes other arguments
clip3 = ufunc("clip")

_UFUNCS: dict[str, ufunc] = {u.__name__: u for u in list(globals().values()) if isinstance(u, ufunc)}
OURS: frozenset[Any] = frozenset(u.np for u in _UFUNCS.values())
"""NumPy's functions that these stand for."""
_NUMPYS = {f for n in (np, np.strings, np._core.umath) for f in vars(n).values() if type(f) is np.ufunc}
LACKING: frozenset[Any] = frozenset(f for f in _NUMPYS - OURS if f.signature is None)
"""NumPy's other functions of elements, as those of texts, which NumPy does on the driver."""


def of_name(name: str) -> ufunc | None:
    """The ufunc of a row's name, among them SciPy's of `special`; None where there is no such row."""
    if name in _UFUNCS or name not in ELEMENTWISE:
        return _UFUNCS.get(name)
    from spartan_ng.api.elementwise import special

    return getattr(special, name, None)


__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "conj",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "isnat",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "modf",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "spacing",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "ufunc",
]
