"""What NumPy gives, and how far another's answer may be from it.

Every program is run three times by NumPy: as it is, and with each result that rounding reaches moved a
little, at random, to one side and to the other. Where the runs differ, they say how well-conditioned a value
is, and what differs in kind (a comparison, an order, a shape, an error) depends on rounding, and is left out
of programs. Where they do not differ, rounding has no part in a value, and answers must be equal.

By how much a result is moved follows from what becomes of it if the operands' last bits are others: all of
them moved upwards (a sum then moves by units of the sum of magnitudes, its condition), or to either side at
random. It is moved by some units of its own, too. A unit is that of the dtype that is added up in. Where
NumPy adds one element after the other its own error is larger: what it gives of wider operands shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from tests.fuzz.program import Line, Rounding, execute, numpys

_UNITS = {2: 2.0**-10, 4: 2.0**-23, 8: 2.0**-52, 16: 2.0**-52}
"""The last bit of 1.0, by the bytes of a real number."""
_OWN = {Rounding.NEVER: 1, Rounding.SUMS: 1, Rounding.ALWAYS: 8}
"""By how many units results are moved, relative to the largest of them, whatever their operands."""
_SOUND = {2: 2.0**-4, 4: 2.0**-8, 8: 2.0**-18, 16: 2.0**-18}
"""By how much of the largest element two runs may differ: beyond it a program is too badly conditioned."""
_SAFETY = 8
"""The answer may be so many times as far away as the moved runs are."""
_OTHERS = 3
"""Half of what is moved is allowed at least: NumPy's own error, which is known, and half as much, as ours is
less where lines are added as trees."""
_LARGEST = {2: 2.0**9, 4: 2.0**24, 8: 2.0**60, 16: 2.0**60}
"""What finite numbers may reach: beyond it, they soon overflow in one order of work and not in another."""


@dataclass(frozen=True, slots=True)
class Values:
    """What NumPy's three runs gave for an array."""

    plain: Any
    up: Any
    down: Any


def real_bytes(dtype: numpy.dtype[Any]) -> int:
    """Bytes of a real number of an inexact dtype."""
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)


def size_of(a: Any) -> float:
    """The largest finite magnitude of an array."""
    a = numpy.asarray(a)
    if not a.size:
        return 0.0
    with numpy.errstate(all="ignore"):
        magnitudes = numpy.abs(a.astype("c16" if a.dtype.kind == "c" else "f8", copy=False))
        most = float(magnitudes.max())
    return most if most < numpy.inf else float(magnitudes[numpy.isfinite(magnitudes)].max(initial=0.0))


def is_moved(line: Line, operands: dict[str, Any], result: Any) -> bool:
    """Whether a result may be another's by rounding."""
    dtype = numpy.asarray(result).dtype
    if dtype.kind not in "fc":
        return False
    if line.rounding is Rounding.NEVER:
        return _hangs_on_layout(line, operands, numpy.asarray(result))
    if line.rounding is Rounding.ALWAYS:
        return True
    inexact = [numpy.asarray(a) for a in operands.values() if numpy.asarray(a).dtype.kind in "fciub"]
    most = max((size_of(a) for a in inexact), default=1.0)
    count = max((a.size for a in inexact), default=1)
    exact = 2.0 ** {2: 10, 4: 23, 8: 52, 16: 52}[real_bytes(dtype)]
    return not (all(map(_on_grid, inexact)) and max(count, 1) * max(most, 1.0) ** 2 * 16 < exact)


def _hangs_on_layout(line: Line, operands: dict[str, Any], result: Any) -> bool:
    """Whether NumPy itself gives other bits for copies of the operands, which lie one after the other:
    its loops over what lies backwards or apart round products of complex numbers otherwise."""
    environment = {**numpys(), **operands}
    if execute(line, environment) is not None or line.defines is None:
        return False
    found = numpy.asarray(environment[line.defines])
    return found.shape == result.shape and found.dtype == result.dtype and not _same(found, result)


def _on_grid(a: Any) -> bool:
    """Whether all numbers are multiples of a quarter."""
    if a.dtype.kind in "iub":
        return True
    parts = [a.real, a.imag] if a.dtype.kind == "c" else [a]
    return all(bool((p * 4 == numpy.rint(p * 4)).all()) and bool(numpy.isfinite(p).all()) for p in parts)


def noise_for(line: Line, operands: dict[str, Any], result: Any, random: numpy.random.Generator) -> Any:
    """By how much to move each element of a result of such operands; None where that cannot be said."""
    result = numpy.asarray(result)
    unit = _UNITS[real_bytes(result.dtype)]
    most = size_of(result) * unit * _OWN[line.rounding]
    own = _error(line, {n: _wider(v) for n, v in operands.items()}, result)
    for upwards in (True, False):
        beside = {n: _beside(v, result.dtype, upwards, random, own is None) for n, v in operands.items()}
        error = _error(line, beside, result)
        if error is None:
            return None
        most += error
    most += _OTHERS / _SAFETY * (own or 0.0)
    noise = numpy.zeros(result.shape, result.dtype)
    most /= len(_parts(noise)) ** 0.5
    for part in _parts(noise):
        part[...] = (
            random.choice((-1.0, 1.0), part.shape) * random.uniform(0.5, 1, part.shape) * (most or unit)
        )
    return noise


def _beside(
    a: Any, result: numpy.dtype[Any], upwards: bool, random: numpy.random.Generator, grows: bool
) -> Any:
    """An operand with other last bits, in a dtype in which its call may add; where NumPy's own error `grows`
    unseen, more of them for more elements: that of sums is one of the root of their number."""
    dtype = numpy.asarray(a).dtype
    if dtype.kind not in "fc":
        return a
    wide = max(real_bytes(dtype), real_bytes(result))
    found = numpy.array(a, f"{dtype.kind}{wide * (2 if dtype.kind == 'c' else 1)}")
    units = _UNITS[wide] * (1 + (found.size**0.5 / 32 if grows else 0))
    with numpy.errstate(all="ignore"):
        for part in _parts(found):
            signs = 1.0 if upwards else random.choice((-1.0, 1.0), part.shape)
            part[...] += numpy.where(numpy.isfinite(part), numpy.abs(part) * signs * units, 0).astype(
                part.dtype
            )
    return found.item() if isinstance(a, float | complex) and not isinstance(a, numpy.generic) else found[()]


def _wider(a: Any) -> Any:
    """An operand in the dtype in which rounding is no matter of NumPy's any more."""
    dtype = numpy.asarray(a).dtype
    if dtype.kind not in "fc" or not isinstance(a, numpy.ndarray | numpy.generic):
        return a
    wide = {2: "f8", 4: "f8", 8: "f16"} if dtype.kind == "f" else {4: "c16", 8: "c32"}
    return a.astype(wide.get(real_bytes(dtype), dtype))


def _error(line: Line, operands: dict[str, Any], result: Any) -> float | None:
    """How far a line's result for other operands is from its result; None where it is of another kind."""
    environment = {**numpys(), **operands}
    if execute(line, environment) is not None or line.defines is None:
        return None
    found = numpy.asarray(environment[line.defines])
    if found.shape != result.shape or found.dtype.kind != result.dtype.kind:
        return None
    if not numpy.array_equal(numpy.isfinite(found), numpy.isfinite(result)):
        return None
    return _distance(found, result)


def last_bits_of(a: Any) -> Any:
    """The last bit of each number of an array."""
    return (numpy.abs(a) * _UNITS[real_bytes(a.dtype)]).astype(a.dtype)


def moved(a: Any, noise: Any, plain: Any) -> Any:
    """A result moved by rounding, and more; in place where it is an array. Where that brings what moved
    operands have given back to NumPy's `plain` result, it is moved twice as far."""
    with numpy.errstate(all="ignore"):
        noise = numpy.where(a + noise == plain, 2 * noise, noise).astype(noise.dtype)
        if isinstance(a, numpy.ndarray) and a.flags.writeable and a.shape == noise.shape:
            a += noise
            return a
        return numpy.asarray(a + noise).astype(numpy.asarray(a).dtype)[()]


def is_sound(a: Any, b: Any) -> bool:
    """Whether two runs' values tell the same, so that a third run's can be judged by them."""
    a, b = numpy.asarray(a), numpy.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return a.dtype.kind in "biu" and bool((a == b).all())
    width = real_bytes(a.dtype)
    if size_of(a) > _LARGEST[width]:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if not _same_kinds(a, b):
        return False
    return _distance(a, b) <= _SOUND[width] * max(size_of(a), 2.0**-40)


def mismatch(found: Any, values: Values) -> str | None:
    """What is wrong with a value, where NumPy's runs gave `values`."""
    found, a, up, down = (numpy.asarray(v) for v in (found, values.plain, values.up, values.down))
    if found.shape != a.shape:
        return f"shape {found.shape}, NumPy's {a.shape}"
    if found.dtype != a.dtype:
        return f"dtype {found.dtype}, NumPy's {a.dtype}"
    if _same(found, a):
        return None
    if a.dtype.kind not in "fc" or (_same(a, up) and _same(a, down)):
        return _first(found, a)
    spread = max(_distance(a, up), _distance(a, down))
    allowed = _SAFETY * (spread + size_of(a) * _UNITS[real_bytes(a.dtype)] / 2)
    if not _same_kinds(found, a) or _distance(found, a) > allowed:
        return f"{_first(found, a)}, {_distance(found, a):.3g} away, allowed {allowed:.3g}"
    return None


def _parts(a: Any) -> list[Any]:
    return [a.real, a.imag] if a.dtype.kind == "c" else [a]


def _same(a: Any, b: Any) -> bool:
    return all(
        numpy.array_equal(p, q, equal_nan=p.dtype.kind == "f")
        for p, q in zip(_parts(a), _parts(b), strict=True)
    )


def _same_kinds(a: Any, b: Any) -> bool:
    """Whether what is not finite is the same; a complex number with a NaN is one."""
    nan = numpy.isnan(a)
    if not numpy.array_equal(nan, numpy.isnan(b)):
        return False
    return all(
        bool((numpy.where(numpy.isinf(p), p, 0) == numpy.where(numpy.isinf(q), q, 0))[~nan].all())
        for p, q in zip(_parts(a), _parts(b), strict=True)
    )


def _distance(a: Any, b: Any) -> float:
    """How far apart two arrays' finite numbers are at most."""
    wide = "c16" if a.dtype.kind == "c" else "f8"
    finite = numpy.isfinite(a) & numpy.isfinite(b)
    return float(numpy.abs(a[finite].astype(wide) - b[finite].astype(wide)).max(initial=0.0))


def _first(found: Any, wanted: Any) -> str:
    """Where two arrays differ, and how often."""
    with numpy.errstate(all="ignore"):
        differ = (found != wanted) & ~((found != found) & (wanted != wanted))
    at = tuple(int(i) for i in numpy.argwhere(differ)[0]) if differ.any() else (0,) * wanted.ndim
    return (
        f"{int(differ.sum())} of {wanted.size} differ, first at {at}: {found[at]!r}, NumPy's {wanted[at]!r}"
    )
