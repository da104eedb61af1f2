"""Draw the axes, shapes, indices and masks of a call, which fit its subject."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy

from tests.fuzz.chooser import Chooser, Nothing


def axis(d: Chooser) -> str:
    axis = d.draw_axis()
    return str(numpy.ndim(d.value) if d.random.random() < d.wrong else axis)


def axes(d: Chooser) -> str:
    n = numpy.ndim(d.value)
    if n < 2 or d.random.random() < 0.5:
        return axis(d)
    return str(tuple(d.random.sample(range(n), d.random.randint(0, n))))


def shape(d: Chooser) -> str:
    """A shape of as many elements."""
    n = numpy.size(d.value)
    if n == 0:
        return d.pick("(0, 2)", "(0,)", "-1", "(3, 0)")
    divisors = [k for k in range(1, min(n, 64) + 1) if n % k == 0]
    first, second = d.random.choice(divisors), d.random.choice(divisors)
    third = f"({first}, {second}, -1)" if n % (first * second) == 0 else f"({n // first}, {first})"
    return d.pick("-1", f"(-1, {first})", f"({first}, {n // first})", third, f"({first}, 1, -1)")


def broad(d: Chooser) -> str:
    shape = [
        d.random.choice((2, 3)) if n == 1 and d.random.random() < 0.7 else n for n in numpy.shape(d.value)
    ]
    return str(tuple(([d.random.choice((1, 2, 3))] if d.random.random() < 0.4 else []) + shape))


def basic(d: Chooser) -> str:
    """Integers, slices, an ellipsis, new axes."""
    d.key = _joined(d, [_part(d, n) for n in numpy.shape(d.value)])
    return d.key


def _part(d: Chooser, n: int) -> str:
    low, high = sorted(d.random.randint(-n, n) for _ in range(2))
    step = d.pick(1, 1, 2, -1, -2, 3)
    parts = [":", ":", f"{low}:", f":{high}", f"::{step}", f"{low}:{high}:{step}", f"{high}:{low}:-1"]
    return d.pick(*parts, *([d.random.randint(-n, n - 1)] * 2 if n else []))


def _joined(d: Chooser, parts: list[str]) -> str:
    if parts and d.random.random() < 0.2:
        parts = parts[: d.random.randrange(len(parts))]
    if d.random.random() < 0.1:
        parts.insert(d.random.randint(0, len(parts)), "None")
    if d.random.random() < 0.1:
        parts.append("...")
    return ", ".join(parts) or "()"


def key(d: Chooser) -> str:
    """Arrays of integers among slices and integers, or a mask."""
    shape = numpy.shape(d.value)
    if not shape or 0 in shape or d.random.random() < 0.3:
        return basic(d)
    if d.random.random() < 0.25:
        d.key = mask_key(d)
        return d.key
    parts = [_part(d, n) for n in shape]
    k = d.random.choice((1, 2, 3))
    for axis in d.random.sample(range(len(shape)), d.random.randint(1, min(2, len(shape)))):
        parts[axis] = str([d.random.randint(-shape[axis], shape[axis] - 1) for _ in range(k)])
        if d.random.random() < 0.2:
            parts[axis] = f"N.array([{parts[axis]}])"
    d.key = _joined(d, parts)
    return d.key


def indices(d: Chooser) -> str:
    """Positions along an axis, which it draws, too."""
    n = d.length()
    if n == 0:
        return "[]"
    found = [d.random.randint(-n, n - 1) for _ in range(d.random.randint(1, 4))]
    return d.pick(found, found, found[0], f"np.array({found})", f"[{found}]")


def mask(d: Chooser) -> str:
    """A mask that broadcasts to the subject."""
    shape = numpy.shape(d.value)

    def fits(v: Any) -> bool:
        try:
            return v.dtype.kind == "b" and v.ndim > 0 and numpy.broadcast_shapes(v.shape, shape) == shape
        except ValueError:
            return False

    options = [f"{d.subject} != {d.pick(0, 1)}"]
    if numpy.asarray(d.value).dtype.kind in "iuf":
        options.append(f"{d.subject} > {d.pick(0, 1)}")
    if shape:
        options.append(f"N.arange({shape[-1]}) % 2 == {d.pick(0, 1)}")
    with suppress(Nothing):
        options.append(d.name(fits))
    return d.pick(*options)


def mask_key(d: Chooser) -> str:
    """A mask that indexes the subject."""
    shape = numpy.shape(d.value)
    options = [f"{d.subject} != {d.pick(0, 1)}"]
    if shape:
        options.append(f"N.arange({shape[0]}) % 2 == {d.pick(0, 1)}")
    if numpy.asarray(d.value).dtype.kind in "iuf":
        options.append(f"{d.subject} > {d.pick(0, 1)}")
    with suppress(Nothing):
        options.append(d.name(lambda v: v.dtype.kind == "b" and v.ndim > 0 and v.shape == shape[: v.ndim]))
    return d.pick(*options)


def line_mask(d: Chooser) -> str:
    d.subject = d.name(lambda v: v.ndim > 0)
    return str([d.random.random() < 0.5 for _ in range(d.length())])


def kth(d: Chooser) -> str:
    n = d.length()
    if not n:
        raise Nothing
    d.kth = d.random.randrange(n)
    return str(d.kth)


def starts(d: Chooser) -> str:
    n = d.length()
    if not n:
        raise Nothing
    return str(sorted(d.random.randrange(n) for _ in range(d.random.randint(1, 3))))


def divisor(d: Chooser) -> str:
    n = d.length()
    return d.pick(*[k for k in range(1, n + 1) if n % k == 0][:4] or [1])


def place_on_axis(d: Chooser) -> str:
    n = d.length()
    return str(d.random.randrange(n)) if n else "0"


def flat_places(d: Chooser) -> str:
    n = numpy.size(d.value)
    return str([d.random.randint(-n, n - 1) for _ in range(d.random.randint(1, 3))]) if n else "[]"


def first_places(d: Chooser) -> str:
    n = numpy.shape(d.value)[0] if numpy.ndim(d.value) else 0
    return str([d.random.randrange(n) for _ in range(d.random.randint(1, 4))]) if n else "()"


def sides(d: Chooser) -> str:
    return d.pick("(2, 3)", "3", "(4,)", "()", "(3, 1)", "(2, 1, 4)", "(0, 2)", "(1, 5)")
