"""NumPy's three runs of a program, line by line; a line that cannot be judged leaves no trace."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy

from tests.fuzz.oracle import Values, is_moved, is_sound, last_bits_of, moved, noise_for
from tests.fuzz.program import Environment, Line, Step, arrays_of, execute, numpys

_MOST_AXES = 32
"""Axes that NumPy broadcasts; arrays may have twice as many."""
_AT = re.compile(r"\.at\((\w+),")
_PRODUCTS = re.compile(r"[*/]=|multiply|divide|square|power|reciprocal")
_SHOWN = ("str(", "array_repr", "array_str", "array2string", ".view(", "tobytes", "signbit", "copysign")
_OF_NAN = ("signbit", "copysign", "unique_inverse", ".view('")
"""What shows the sign of NaN, which is nobody's (infinities subtracted give either), and which of
several NaN comes first, which NumPy's sort that is not stable decides."""
_NEGATED = re.compile(r"negative\((\w+), out=\1\)")
_MOMENTS = re.compile(r"(var|std)\(")
_SUMMED = re.compile(r"@|dot|matmul|inner|einsum|linalg|convolve|correlate")
"""Products whose order decides what becomes of infinities (docs/differences.md, "Infinities in products")."""


class Triplet:
    """Three environments of NumPy's: plain, and with what is rounded moved to either side."""

    def __init__(self, seed: int, most_elements: int) -> None:
        self.plain, self.up, self.down = numpys(), numpys(), numpys()
        self._random = numpy.random.default_rng(seed)
        self._most_elements = most_elements
        self._sparse = False
        self._of_infinities: set[str] = set()
        """What comes of products of infinities: its sums hang on the order of additions, too."""

    def run(self, step: Step) -> bool:
        """Run a step three times; whether its results can be judged. If not, it has not run."""
        before = [_Kept(e) for e in (self.plain, self.up, self.down)]
        lines = [step] if isinstance(step, Line) else list(step.lines) * step.times
        if all(self._line(line) for line in lines):
            self._sparse |= any(map(_is_sparse, lines))
            return True
        for kept in before:
            kept.restore()
        return False

    def _line(self, line: Line) -> bool:
        if self._writes_where_it_may_not(line):
            return False
        operands = {name: copy(self.plain[name]) for name in line.uses if name in self.plain}
        plain, up, down = (execute(line, e) for e in (self.plain, self.up, self.down))
        if plain is not None or up is not None or down is not None:
            return type(plain) is type(up) is type(down) and not isinstance(plain, MemoryError)
        name = line.defines
        summed = bool(_SUMMED.search(line.text)) or not self._of_infinities.isdisjoint(line.uses)
        if summed and self._hangs_on_infinities(line, operands.values()):
            return False
        if _MOMENTS.search(line.text) and self._overflows_in_half(line, operands.values()):
            return False
        if (self._sparse or _is_sparse(line)) and self._is_left_out(line):
            return False
        if any(word in line.text for word in _OF_NAN) and any(map(_has_nan, operands.values())):
            return False
        if self._reads_what_it_has_written(line, operands):
            return False
        if name is not None:
            result = self.plain[name]
            if not is_array(result) or numpy.size(result) > self._most_elements:
                return False
            keep = (
                self._of_infinities.add if summed and not _is_finite(result) else self._of_infinities.discard
            )
            keep(name)
            if numpy.ndim(result) > _MOST_AXES:
                return False
            if any(numpy.shape(e[name]) != numpy.shape(result) for e in (self.up, self.down)):
                return False
            if is_moved(line, operands, result):
                noise = noise_for(line, operands, result, self._random)
                if noise is None:
                    return False
                self.up[name] = moved(self.up[name], noise, result)
                self.down[name] = moved(self.down[name], -noise, result)
        elif _PRODUCTS.search(line.text):
            self._move_products_in_place(line)
        names = arrays_of(self.plain) if line.writes or name is None else {name: None}
        return all(is_sound(self.plain[n], e[n]) for n in names for e in (self.up, self.down))

    def _move_products_in_place(self, line: Line) -> None:
        """Complex products that are written: where memory begins decides their last bits, in NumPy, too."""
        for name in line.uses:
            target = self.plain.get(name)
            if isinstance(target, numpy.ndarray) and target.dtype.kind == "c" and target.flags.writeable:
                noise = last_bits_of(target)
                self.up[name] = moved(self.up[name], noise, target)
                self.down[name] = moved(self.down[name], -noise, target)

    def _writes_where_it_may_not(self, line: Line) -> bool:
        """Whether a line is `ufunc.at` of a read-only array, into which NumPy (2.4) writes all the same."""
        found = _AT.search(line.text)
        target = self.plain.get(found[1]) if found else None
        return isinstance(target, numpy.ndarray) and not target.flags.writeable

    def _reads_what_it_has_written(self, line: Line, before: dict[str, Any]) -> bool:
        """Whether NumPy (2.4) negates a strided array in place, and some of its elements twice."""
        found = _NEGATED.search(line.text)
        name = found[1] if found else ""
        return name in before and not is_sound(self.plain[name], numpy.negative(before[name]))

    def _overflows_in_half(self, line: Line, operands: Iterable[Any]) -> bool:
        """Whether NumPy (2.4) adds halves in half precision to more than that holds (docs/differences.md)."""
        arrays = [numpy.asarray(v) for v in operands if is_array(v)]
        made = self.plain.get(line.defines) if line.defines else None
        half = any(a.dtype == numpy.float16 for a in arrays)
        return half and all(map(_is_finite, arrays)) and made is not None and not _is_finite(made)

    def _hangs_on_infinities(self, line: Line, operands: Iterable[Any]) -> bool:
        """Whether a product's infinities may become NaN by its order, or half of a complex number."""
        arrays = [v for v in operands if is_array(v)]
        if all(map(_is_finite, arrays)):
            return False
        made = self.plain.get(line.defines) if line.defines else None
        return any(map(numpy.iscomplexobj, arrays)) or _has_nan(made)

    def _is_left_out(self, line: Line) -> bool:
        """Whether a line in a program with CSR arrays gives what these are declared to give otherwise: their
        zeros times infinity and NaN, the signs of zeros (docs/user-guide.md), and their text."""
        shown = any(word in line.text for word in _SHOWN)
        return shown or not all(map(_is_finite, filter(is_array, arrays_of(self.plain).values())))

    def values(self) -> dict[str, Values]:
        """What the three runs have given until now."""
        return {n: Values(v, self.up[n], self.down[n]) for n, v in arrays_of(self.plain).items()}


def _has_nan(value: Any) -> bool:
    return is_array(value) and bool(numpy.isnan(value).any())


def _is_finite(value: Any) -> bool:
    return bool(numpy.isfinite(value).all())


def _is_sparse(line: Line) -> bool:
    return "sparse(" in line.text


def is_array(value: Any) -> bool:
    """Whether a value is an array of numbers, a number, or a list of them."""
    if isinstance(value, numpy.ndarray | numpy.generic):
        return value.dtype.kind in "biufc" and value.dtype.char not in "gG"
    return isinstance(value, bool | int | float | complex)


class _Kept:
    """An environment as it was: names, and the elements of all memory that they lead to."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._names = dict(environment)
        roots = {id(r): r for r in map(_root, arrays_of(environment).values()) if r is not None}
        self._elements = [(r, r.copy()) for r in roots.values() if r.flags.writeable]

    def restore(self) -> None:
        """Make it so again."""
        self._environment.clear()
        self._environment.update(self._names)
        for root, elements in self._elements:
            root[...] = elements


def _root(value: Any) -> Any:
    """The array that owns a view's memory."""
    while isinstance(value, numpy.ndarray) and isinstance(value.base, numpy.ndarray):
        value = value.base
    return value if isinstance(value, numpy.ndarray) else None
