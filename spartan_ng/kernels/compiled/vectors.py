"""Exponential, logarithm, logistic and error function of doubles, in a form that compilers vectorize.

No branches, no tables: ranges are reduced on the bits, polynomials do the rest, and selections put the
special values right. Errors stay within a few units in the last place; NaN, infinities, zeros and subnormals
come out as from NumPy (the tests compare them). The exponential's series is Taylor's; the logarithm is the
series of the inverse hyperbolic tangent; the coefficients of the error function are Chebyshev
interpolants, worked out in 70 digits: below 1 of erf(x) / x in x², from 1 to 6 of exp(x²) erfc(x) in
1 / (1 + x).
"""

from __future__ import annotations

from typing import Any

from spartan_ng.kernels.compiled.intrinsics import (
    choose,
    compiled,
    copysign,
    from_bits,
    fused,
    magnitude,
    to_bits,
)

_ROUND = 6755399441055744.0
"""1.5 * 2**52: adding it leaves the nearest integer in the low bits."""
_ROUND_BITS = 0x4338000000000000
_LN2_HIGH = 0.6931471803691238
"""The upper bits of ln 2: their product with an exponent is exact."""
_LN2_LOW = 1.9082149292705877e-10
_LOG2_E = 1.4426950408889634
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
_INFINITY = float("inf")
_NAN = float("nan")


@compiled
def exp(x: Any) -> Any:
    """The exponential of x."""
    x = choose(x > 710.0, 710.0, x)
    x = choose(x < -746.0, -746.0, x)
    shifted = fused(x, _LOG2_E, _ROUND)
    whole = shifted - _ROUND
    exponent = to_bits(shifted) - _ROUND_BITS
    r = fused(whole, -_LN2_HIGH, x)
    r = fused(whole, -_LN2_LOW, r)
    p = 1.6059043836821613e-10
    p = fused(p, r, 2.08767569878681e-09)
    p = fused(p, r, 2.505210838544172e-08)
    p = fused(p, r, 2.755731922398589e-07)
    p = fused(p, r, 2.7557319223985893e-06)
    p = fused(p, r, 2.48015873015873e-05)
    p = fused(p, r, 0.0001984126984126984)
    p = fused(p, r, 0.001388888888888889)
    p = fused(p, r, 0.008333333333333333)
    p = fused(p, r, 0.041666666666666664)
    p = fused(p, r, 0.16666666666666666)
    p = fused(p, r, 0.5)
    p = fused(p, r, 1.0)
    p = fused(p, r, 1.0)
    half = exponent >> 1  # two steps, so that neither factor overflows and subnormals come out right
    return p * from_bits((half + 1023) << 52) * from_bits((exponent - half + 1023) << 52)


@compiled
def log(x: Any) -> Any:
    """The natural logarithm of x."""
    tiny = x < 2.2250738585072014e-308
    bits = to_bits(choose(tiny, x * 18014398509481984.0, x))
    exponent = (bits - _ROOT_HALF_BITS) >> 52
    f = from_bits(bits - (exponent << 52)) - 1.0
    whole = from_bits(exponent + _ROUND_BITS) - _ROUND - choose(tiny, 54.0, 0.0)
    s = f / (2.0 + f)
    z = s * s
    p = 0.09523809523809523
    p = fused(p, z, 0.10526315789473684)
    p = fused(p, z, 0.11764705882352941)
    p = fused(p, z, 0.13333333333333333)
    p = fused(p, z, 0.15384615384615385)
    p = fused(p, z, 0.18181818181818182)
    p = fused(p, z, 0.2222222222222222)
    p = fused(p, z, 0.2857142857142857)
    p = fused(p, z, 0.4)
    p = fused(p, z, 0.6666666666666666)
    half = 0.5 * f * f
    y = whole * _LN2_HIGH - ((half - (s * fused(z, p, half) + whole * _LN2_LOW)) - f)
    y = choose(x < _INFINITY, y, x)
    return choose(x > 0.0, y, choose(x == 0.0, -_INFINITY, _NAN))


@compiled
def expit(x: Any) -> Any:
    """The logistic function of x."""
    e = exp(-magnitude(x))
    return choose(x < 0.0, e, 1.0) / (1.0 + e)


@compiled
def erf(x: Any) -> Any:
    """The error function of x."""
    a = magnitude(x)
    y = x * x
    u = fused(y, 2.0, -1.0)
    p = -3.80659122412214e-13
    p = fused(p, u, 9.21125018742823e-12)
    p = fused(p, u, -2.035231956483527e-10)
    p = fused(p, u, 4.115751500265885e-09)
    p = fused(p, u, -7.51156925108609e-08)
    p = fused(p, u, 1.2233827638093572e-06)
    p = fused(p, u, -1.75371694412802e-05)
    p = fused(p, u, 0.00021751715603563488)
    p = fused(p, u, -0.0022854855611440855)
    p = fused(p, u, 0.019852496688984218)
    p = fused(p, u, -0.1405360890227171)
    p = fused(p, u, 0.9654687386698673)
    b = choose(a > 6.0, 6.0, a)
    v = (1.0 / (1.0 + b) - 0.32142857142857145) * 5.6
    q = -3.2507245472631206e-12
    q = fused(q, v, 1.544186669027928e-11)
    q = fused(q, v, -1.6339506711038714e-11)
    q = fused(q, v, -1.0466112197732962e-10)
    q = fused(q, v, 6.041644726799597e-10)
    q = fused(q, v, -1.3679714123990281e-09)
    q = fused(q, v, -1.454208181374666e-09)
    q = fused(q, v, 2.3617610520120788e-08)
    q = fused(q, v, -8.035530280378624e-08)
    q = fused(q, v, 1.1743945389397775e-09)
    q = fused(q, v, 1.2089483091690915e-06)
    q = fused(q, v, -4.878961445249466e-06)
    q = fused(q, v, -2.6236616976102473e-06)
    q = fused(q, v, 0.00010776601398950249)
    q = fused(q, v, -0.00030971232519629537)
    q = fused(q, v, -0.0021703781610285878)
    q = fused(q, v, 0.016466202800369905)
    q = fused(q, v, 0.16947097195130428)
    q = fused(q, v, 0.24402507744132426)
    return choose(a < 1.0, x * p, copysign(1.0 - exp(-b * b) * q, x))
