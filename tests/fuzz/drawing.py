"""Draw the arguments of a call from the arrays that a program has so far.

Most calls are valid, and some are not: NumPy is asked what they should do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from math import prod
from random import Random
from typing import Any

import numpy

from tests.fuzz.program import Environment, Line, arrays_of, execute

_OPTION = re.compile(r"<<(.*?)>>")
_PLACE = re.compile(r"\{([^{}]+)\}")
_WRONG = 0.01
"""How often a place is drawn without regard to what fits."""
DTYPES = (
    "?",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "i8",
    "u8",
    "f2",
    "f4",
    "f4",
    "f8",
    "f8",
    "f8",
    "c8",
    "c16",
)


class Nothing(Exception):
    """No array fits a place."""


class Draw:
    """One call's draws: the subject, and what was said of it so far."""

    def __init__(self, random: Random, environment: Environment, most: int) -> None:
        self.random, self.environment, self.most = random, environment, most
        self.subject, self.key = "", ""
        self.axis, self.kth, self.axis_drawn = 0, 0, False

    def text(self, row: str) -> str:
        """A row's text with everything drawn."""
        row = _OPTION.sub(lambda m: m[1] if self.random.random() < 0.4 else "", row)
        return _PLACE.sub(lambda m: self.place(m[1]), row)

    def place(self, word: str) -> str:
        """What stands in a place."""
        return PLACES[word](self) if word in PLACES else self.random.choice(word.split("|"))

    @property
    def value(self) -> Any:
        """The subject's value."""
        return self.environment[self.subject]

    def evaluate(self, text: str) -> Any:
        """What NumPy makes of an expression; Nothing where it raises."""
        line = Line(f"a999 = {text}")
        scratch = dict(self.environment)
        if execute(line, scratch) is not None:
            raise Nothing
        return scratch["a999"]

    def name(self, fits: Callable[[Any], bool], recent: bool = True) -> str:
        """An array that fits; the latest are the likeliest."""
        names = [
            n for n, v in arrays_of(self.environment).items() if isinstance(v, numpy.ndarray | numpy.generic)
        ]
        found = [n for n in names if fits(self.environment[n])]
        if self.random.random() < _WRONG:
            found = names
        if not found:
            raise Nothing
        n = len(found)
        return (
            found[max(self.random.randrange(n), self.random.randrange(n))]
            if recent
            else self.random.choice(found)
        )

    def take(self, fits: Callable[[Any], bool]) -> str:
        """An array that fits, as the subject."""
        self.subject = self.name(fits)
        return self.subject

    def draw_axis(self) -> int:
        """An axis of the subject, which `that axis` says again."""
        n = numpy.ndim(self.value)
        self.axis = self.random.randrange(-n, n) if n else 0
        self.axis_drawn = True
        return self.axis

    def length(self) -> int:
        """Elements along an axis, which it draws."""
        if not numpy.ndim(self.value):
            raise Nothing
        return int(numpy.shape(self.value)[self.draw_axis()])

    def pick(self, *texts: Any) -> str:
        """One of several texts."""
        return str(self.random.choice(texts))


# Subjects


def _kind(kinds: str, least: int = 0, most: int = 9, full: bool = False) -> Callable[[Draw], str]:
    """A subject of these kinds of dtypes, with so many axes; with `full`, it has elements."""

    def fits(v: Any) -> bool:
        return v.dtype.kind in kinds and least <= v.ndim <= most and (not full or v.size > 0)

    return lambda d: d.take(fits)


def _writable(kinds: str = "biufc", least: int = 0, most: int = 9) -> Callable[[Draw], str]:
    def fits(v: Any) -> bool:
        array = isinstance(v, numpy.ndarray) and v.flags.writeable
        return array and v.dtype.kind in kinds and least <= v.ndim <= most

    return lambda d: d.take(fits)


def _square(v: Any) -> bool:
    return v.ndim == 2 and 0 < v.shape[0] == v.shape[1] <= 8 and v.dtype.kind in "iuf" and v.dtype.char != "e"


def _natural(v: Any) -> bool:
    return v.ndim == 1 and v.dtype.kind in "bi" and v.size > 0 and v.min() >= 0 and v.max() < 50


def _waves(d: Draw) -> str:
    """What inverse transforms take, with elements on every account: of none, NumPy reads what nobody set."""
    name = _kind("fc", 1, full=True)(d)
    if not numpy.size(d.value):
        raise Nothing
    return name


# Others beside the subject


def _like(d: Draw) -> str:
    """What broadcasts with the subject: an array, or a number."""

    def fits(v: Any) -> bool:
        try:
            return prod(numpy.broadcast_shapes(v.shape, numpy.shape(d.value))) <= d.most
        except ValueError:
            return False

    return _scalar(d) if d.random.random() < 0.3 else d.name(fits)


def _same(d: Draw) -> str:
    return d.name(lambda v: v.shape == numpy.shape(d.value))


def _beside(d: Draw) -> str:
    """What can be joined to the subject along an axis, which it draws, too."""
    shape = numpy.shape(d.value)
    if not d.axis_drawn:
        d.length()
    rest = [n for k, n in enumerate(shape) if k != d.axis % max(len(shape), 1)]

    def fits(v: Any) -> bool:
        return v.ndim == len(shape) and [n for k, n in enumerate(v.shape) if k != d.axis % v.ndim] == rest

    return d.name(fits)


def _factor(d: Draw) -> str:
    """What the subject can be multiplied by as a matrix."""
    n = (numpy.shape(d.value) or (0,))[-1]
    return d.name(
        lambda v: 0 < v.ndim <= 2 and v.shape[0 if v.ndim == 1 else -2] == n and v.dtype.kind in "biufc"
    )


def _small(d: Draw, subject: bool) -> str:
    found = d.name(lambda v: v.size <= 40 and v.dtype.kind != "b")
    d.subject = found if subject else d.subject
    return found


# Numbers


def _scalar(d: Draw) -> str:
    """A number of the subject's kind, or not."""
    kind = numpy.asarray(d.value).dtype.kind if d.subject else "f"
    carried = [n for n, v in arrays_of(d.environment).items() if type(v) in (int, float)]
    if carried and d.random.random() < 0.3:
        return d.random.choice(carried)
    if kind == "c" and d.random.random() < 0.5:
        return d.pick("1j", "(2 - 1j)", "N.complex64(0.5j)")
    if kind in "iub" and d.random.random() < 0.8:
        return d.pick(0, 1, 2, 3, 7, "N.int8(2)", "N.int64(3)", "True", *((-1, -2) if kind == "i" else ()))
    return d.pick(0, 1, 2, -1, 0.5, 2.0, -1.5, 0.25, 3, "N.float32(0.5)", "N.float64(-2.5)")


def _bound(d: Draw) -> str:
    return d.pick("None", -1, 0, 1, 2) if d.random.random() < 0.6 else _like(d)


def _fits_scalar(d: Draw) -> str:
    kind = numpy.asarray(d.value).dtype.kind
    return (
        d.pick(0, 1, 2, 3, 5) if kind in "bu" else d.pick(0, 1, -1, 7, *((0.5, 2.5) if kind in "fc" else ()))
    )


def _assigned(d: Draw, shape: tuple[int, ...]) -> str:
    """A value for a part of the subject: what its dtype can hold."""
    dtype = numpy.asarray(d.value).dtype

    def fits(v: Any) -> bool:
        try:
            return bool(numpy.broadcast_shapes(v.shape, shape) == shape) and is_held(v, dtype)
        except ValueError:
            return False

    return _fits_scalar(d) if d.random.random() < 0.3 else d.name(fits)


def is_held(v: Any, dtype: numpy.dtype[Any]) -> bool:
    """Whether a cast of a value is defined: C leaves open what numbers beyond an integer's range become."""
    if v.dtype.kind not in "fc" or dtype.kind in "fcb":
        return True
    if not numpy.isfinite(v).all():
        return False
    return v.size == 0 or bool(v.real.min() >= (-100 if dtype.kind == "i" else 0) and v.real.max() < 100)


def _castable(d: Draw) -> str:
    found = [t for t in DTYPES if is_held(numpy.asarray(d.value), numpy.dtype(t))]
    return repr(d.random.choice(found))


def _wider(d: Draw) -> str:
    found = [t for t in DTYPES if numpy.can_cast(numpy.asarray(d.value).dtype, t)]
    return repr(d.random.choice(found))


# Shapes, axes, indices


def _axis(d: Draw) -> str:
    axis = d.draw_axis()
    return str(numpy.ndim(d.value) if d.random.random() < _WRONG else axis)


def _axes(d: Draw) -> str:
    n = numpy.ndim(d.value)
    if n < 2 or d.random.random() < 0.5:
        return _axis(d)
    return str(tuple(d.random.sample(range(n), d.random.randint(0, n))))


def _shape(d: Draw) -> str:
    """A shape of as many elements."""
    n = numpy.size(d.value)
    if n == 0:
        return d.pick("(0, 2)", "(0,)", "-1", "(3, 0)")
    divisors = [k for k in range(1, min(n, 64) + 1) if n % k == 0]
    first, second = d.random.choice(divisors), d.random.choice(divisors)
    third = f"({first}, {second}, -1)" if n % (first * second) == 0 else f"({n // first}, {first})"
    return d.pick("-1", f"(-1, {first})", f"({first}, {n // first})", third, f"({first}, 1, -1)")


def _broad(d: Draw) -> str:
    shape = [
        d.random.choice((2, 3)) if n == 1 and d.random.random() < 0.7 else n for n in numpy.shape(d.value)
    ]
    return str(tuple(([d.random.choice((1, 2, 3))] if d.random.random() < 0.4 else []) + shape))


def _basic(d: Draw) -> str:
    """Integers, slices, an ellipsis, new axes."""
    d.key = _joined(d, [_part(d, n) for n in numpy.shape(d.value)])
    return d.key


def _part(d: Draw, n: int) -> str:
    low, high = sorted(d.random.randint(-n, n) for _ in range(2))
    step = d.pick(1, 1, 2, -1, -2, 3)
    parts = [":", ":", f"{low}:", f":{high}", f"::{step}", f"{low}:{high}:{step}", f"{high}:{low}:-1"]
    return d.pick(*parts, *([d.random.randint(-n, n - 1)] * 2 if n else []))


def _joined(d: Draw, parts: list[str]) -> str:
    if parts and d.random.random() < 0.2:
        parts = parts[: d.random.randrange(len(parts))]
    if d.random.random() < 0.1:
        parts.insert(d.random.randint(0, len(parts)), "None")
    if d.random.random() < 0.1:
        parts.append("...")
    return ", ".join(parts) or "()"


def _key(d: Draw) -> str:
    """Arrays of integers among slices and integers, or a mask."""
    shape = numpy.shape(d.value)
    if not shape or 0 in shape or d.random.random() < 0.3:
        return _basic(d)
    if d.random.random() < 0.25:
        d.key = _mask_key(d)
        return d.key
    parts = [_part(d, n) for n in shape]
    k = d.random.choice((1, 2, 3))
    for axis in d.random.sample(range(len(shape)), d.random.randint(1, min(2, len(shape)))):
        parts[axis] = str([d.random.randint(-shape[axis], shape[axis] - 1) for _ in range(k)])
        if d.random.random() < 0.2:
            parts[axis] = f"N.array([{parts[axis]}])"
    d.key = _joined(d, parts)
    return d.key


def _indices(d: Draw) -> str:
    """Positions along an axis, which it draws, too."""
    n = d.length()
    if n == 0:
        return "[]"
    found = [d.random.randint(-n, n - 1) for _ in range(d.random.randint(1, 4))]
    return d.pick(found, found, found[0], f"np.array({found})", f"[{found}]")


def _mask(d: Draw) -> str:
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


def _mask_key(d: Draw) -> str:
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


def _line_mask(d: Draw) -> str:
    d.subject = d.name(lambda v: v.ndim > 0)
    return str([d.random.random() < 0.5 for _ in range(d.length())])


def _kth(d: Draw) -> str:
    n = d.length()
    if not n:
        raise Nothing
    d.kth = d.random.randrange(n)
    return str(d.kth)


def _starts(d: Draw) -> str:
    n = d.length()
    if not n:
        raise Nothing
    return str(sorted(d.random.randrange(n) for _ in range(d.random.randint(1, 3))))


def _divisor(d: Draw) -> str:
    n = d.length()
    return d.pick(*[k for k in range(1, n + 1) if n % k == 0][:4] or [1])


def _place_on_axis(d: Draw) -> str:
    n = d.length()
    return str(d.random.randrange(n)) if n else "0"


def _flat_places(d: Draw) -> str:
    n = numpy.size(d.value)
    return str([d.random.randint(-n, n - 1) for _ in range(d.random.randint(1, 3))]) if n else "[]"


def _first_places(d: Draw) -> str:
    n = numpy.shape(d.value)[0] if numpy.ndim(d.value) else 0
    return str([d.random.randrange(n) for _ in range(d.random.randint(1, 4))]) if n else "()"


def _sides(d: Draw) -> str:
    return d.pick("(2, 3)", "3", "(4,)", "()", "(3, 1)", "(2, 1, 4)", "(0, 2)", "(1, 5)")


_EINSUMS = {
    1: ("'i->', {it}", "'i,i->i', {it}, {it}", "'i,j->ij', {it}, {it}", "'i,i', {it}, {same}"),
    2: (
        "'ij->ji', {it}",
        "'ij->j', {it}",
        "'ij,ij->i', {it}, {same}",
        "'ij,kj->ik', {it}, {it}",
        "'ij,jk', {it}, {factor}",
        "'ij,ij->', {it}, {it}",
        "'...j->...', {it}",
        "'ii->i', {it}",
    ),
    3: ("'ijk->ik', {it}", "'ijk,ijk->jk', {it}, {same}", "'ijk,ilk->ijl', {it}, {it}", "'...k->k...', {it}"),
}


def _einsum(d: Draw) -> str:
    d.take(lambda v: 1 <= v.ndim <= 3 and v.dtype.kind in "iufc" and v.size <= 200)
    choices = _EINSUMS.get(numpy.ndim(d.value), ("'...->...', {it}",))
    if not numpy.size(d.value):  # NumPy's diagonal may be as long as the other axis
        choices = tuple(c for c in choices if "'ii->i'" not in c)
    return _PLACE.sub(lambda m: d.place(m[1]), d.random.choice(choices))


PLACES: dict[str, Callable[[Draw], str]] = {
    "array": _kind("biufc"),
    "number": _kind("iufc"),
    "real": _kind("biuf"),
    "integer": _kind("iu"),
    "natural": lambda d: d.take(_natural),
    "float": _kind("f"),
    "inexact": _kind("fc"),
    "waves": _waves,
    "lines": _kind("iufc", 1, full=True),
    "matrix": _kind("iufc", 2, 2),
    "stack": _kind("iuf", 3, 3),
    "vector": _kind("iuf", 1, 1),
    "square": lambda d: d.take(_square),
    "three": lambda d: d.take(lambda v: 0 < v.ndim < 3 and v.shape[-1] == 3 and v.dtype.kind in "if"),
    "small": lambda d: _small(d, True),
    "small also": lambda d: _small(d, False),
    "small vector": lambda d: d.name(lambda v: v.ndim == 1 and 0 < v.size <= 8 and v.dtype.kind in "if"),
    "vector also": lambda d: d.name(lambda v: v.ndim == 1 and v.size <= 40),
    "plain": lambda d: d.take(lambda v: isinstance(v, numpy.ndarray) and v.flags.c_contiguous),
    "plain target": lambda d: d.take(
        lambda v: isinstance(v, numpy.ndarray) and v.flags.c_contiguous and v.flags.writeable
    ),
    "target": _writable(),
    "target number": _writable("iufc"),
    "target real": _writable("iuf", 1),
    "target lines": _writable("biuf", 1),
    "target matrix": _writable("biuf", 2),
    "it": lambda d: d.subject,
    "alias": _kind("biufc"),
    "any": lambda d: d.name(lambda v: v.size <= 100),
    "like": _like,
    "same": _same,
    "beside": _beside,
    "factor": _factor,
    "scalar": _scalar,
    "scalar0": lambda d: d.pick(0, 1, 2.5, "True", "N.float32(1.5)", "N.uint8(3)"),
    "bound": _bound,
    "fits": lambda d: _assigned(d, numpy.shape(d.evaluate(f"{d.subject}[{d.key}]"))),
    "fits whole": lambda d: _assigned(d, numpy.shape(d.value)),
    "fits scalar": _fits_scalar,
    "castable": _castable,
    "wider": _wider,
    "dtype": lambda d: repr(d.random.choice(DTYPES)),
    "flag": lambda d: d.pick("True", "False"),
    "axis": _axis,
    "axes": _axes,
    "that axis": lambda d: str(d.axis),
    "new axis": lambda d: str(d.random.randint(-1, numpy.ndim(d.value))),
    "order of axes": lambda d: str(tuple(d.random.sample(range(numpy.ndim(d.value)), numpy.ndim(d.value)))),
    "shape": _shape,
    "broad": _broad,
    "sides": _sides,
    "basic": _basic,
    "key": _key,
    "mask": _mask,
    "mask key": _mask_key,
    "line mask": _line_mask,
    "indices": _indices,
    "kth": _kth,
    "at kth": lambda d: f"{':, ' * (d.axis % max(numpy.ndim(d.value), 1))}{d.kth}",
    "starts": _starts,
    "divisor": _divisor,
    "place": _place_on_axis,
    "flat places": _flat_places,
    "first places": _first_places,
    "einsum": _einsum,
}
"""The words of the table of calls, and how each is drawn."""
