"""Draw the arguments of a call from the arrays that a program has so far.

Most calls are valid, and some are not: NumPy is asked what they should do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

import numpy

from tests.fuzz import indices
from tests.fuzz.chooser import Chooser, Nothing
from tests.fuzz.program import arrays_of

_OPTION = re.compile(r"<<(.*?)>>")
_PLACE = re.compile(r"\{([^{}]+)\}")
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


class Draw(Chooser):
    """A call as text, each place drawn."""

    def text(self, row: str) -> str:
        """A row's text with everything drawn."""
        row = _OPTION.sub(lambda m: m[1] if self.random.random() < 0.4 else "", row)
        return _PLACE.sub(lambda m: self.place(m[1]), row)

    def place(self, word: str) -> str:
        """What stands in a place."""
        return PLACES[word](self) if word in PLACES else self.random.choice(word.split("|"))


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


def _few(least: int, most: int) -> Callable[[Draw], str]:
    """A subject with so few lines along its last axis (a vector: elements) that all pairs of them are few."""

    def fits(v: Any, pairs: int) -> bool:
        lines = v.size if v.ndim == 1 else prod(v.shape[:-1])
        return v.dtype.kind in "iufc" and least <= v.ndim <= most and lines**2 <= pairs

    return lambda d: d.take(lambda v: fits(v, d.most))


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
    dtype, masked = numpy.asarray(d.value).dtype, _is_mask(d)

    def fits(v: Any) -> bool:
        if masked and numpy.may_share_memory(v, d.value):  # NumPy may read what it has overwritten
            return False
        try:
            return bool(numpy.broadcast_shapes(v.shape, shape) == shape) and is_held(v, dtype)
        except ValueError:
            return False

    return _fits_scalar(d) if d.random.random() < 0.3 else d.name(fits)


def _is_mask(d: Draw) -> bool:
    """Whether the key that was drawn is a single mask."""
    try:
        found = d.evaluate(d.key)
    except Nothing:
        return False
    return isinstance(found, numpy.ndarray) and found.dtype == bool


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
    "element": lambda d: d.take(lambda v: v.ndim == 0 and v.dtype.kind in "biuf"),
    "number": _kind("iufc"),
    "real": _kind("biuf"),
    "wide real": lambda d: d.take(lambda v: v.dtype.kind in "biu" or v.dtype == "f8"),
    "integer": _kind("iu"),
    "natural": lambda d: d.take(_natural),
    "float": _kind("f"),
    "inexact": _kind("fc"),
    "waves": _waves,
    "lines": _kind("iufc", 1, full=True),
    "short lines": lambda d: d.take(
        lambda v: v.dtype.kind in "iufc" and v.size > 0 and 0 < max(v.shape, default=0) <= 300
    ),
    "matrix": _kind("iufc", 2, 2),
    "wide matrix": lambda d: d.take(lambda v: v.ndim == 2 and v.dtype.kind in "iufc" and v.dtype.char != "e"),
    "vector": _kind("iuf", 1, 1),
    "few": _few(1, 1),
    "few lines": _few(2, 2),
    "few stacked": _few(3, 3),
    "square": lambda d: d.take(_square),
    "finite square": lambda d: d.take(lambda v: _square(v) and bool(numpy.isfinite(v).all()), always=True),
    "three": lambda d: d.take(lambda v: 0 < v.ndim < 3 and v.shape[-1] == 3 and v.dtype.kind in "if"),
    "small": lambda d: _small(d, True),
    "small also": lambda d: _small(d, False),
    "small vector": lambda d: d.name(lambda v: v.ndim == 1 and 0 < v.size <= 8 and v.dtype.kind in "if"),
    "vector also": lambda d: d.name(lambda v: v.ndim == 1 and v.size <= 40),
    "plain": lambda d: d.take(lambda v: isinstance(v, numpy.ndarray) and v.flags.c_contiguous, always=True),
    "plain target": lambda d: d.take(
        lambda v: isinstance(v, numpy.ndarray) and v.flags.c_contiguous and v.flags.writeable, always=True
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
    "axis": indices.axis,
    "axes": indices.axes,
    "that axis": lambda d: str(d.axis),
    "new axis": lambda d: str(d.random.randint(-1, numpy.ndim(d.value))),
    "order of axes": lambda d: str(tuple(d.random.sample(range(numpy.ndim(d.value)), numpy.ndim(d.value)))),
    "shape": indices.shape,
    "broad": indices.broad,
    "sides": indices.sides,
    "basic": indices.basic,
    "key": indices.key,
    "mask": indices.mask,
    "mask key": indices.mask_key,
    "line mask": indices.line_mask,
    "indices": indices.indices,
    "kth": indices.kth,
    "at kth": lambda d: f"{':, ' * (d.axis % max(numpy.ndim(d.value), 1))}{d.kth}",
    "starts": indices.starts,
    "divisor": indices.divisor,
    "place": indices.place_on_axis,
    "flat places": indices.flat_places,
    "first places": indices.first_places,
    "einsum": _einsum,
}
"""The words of the table of calls, and how each is drawn."""
