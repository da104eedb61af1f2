"""What NumPy does at once, on the driver, and what is left to be planned: the one door to eager work.

Every bound of it stands here, and nobody else in the API reads one. A chapter has the lazy meaning of its
functions, and asks these questions with the bytes of its operands, or of its result, whichever may be more.
The plain case in C (`_quick.c`) is given the same numbers, and answers the first two questions, which every
call asks.

`config.small_bytes` is the bound that users set. What takes no longer than asking for it, or is bound by the
memory's speed wherever it runs, has a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from math import prod
from typing import Any

import numpy as np

from spartan_ng.api.core import quick
from spartan_ng.api.core.kinds import NUMBERS
from spartan_ng.api.core.late import Late
from spartan_ng.config import config
from spartan_ng.graph.evaluation import in_process, is_sooner_here
from spartan_ng.memory import copied_bytes

_array = np.ndarray
_INTEGERS = frozenset({int})
_PLAIN = NUMBERS | {type(None)}
SURELY = 1 << 17
"""Bytes that every result may have, however operands broadcast."""
PLAIN_BYTES = 1 << 18
"""Functions that are neither elementwise nor folds ask more before NumPy does so many bytes, and so do
comparisons of a line with one number."""
SHORT = 64
"""Items of a list that are looked at one by one: of so few, NumPy makes a copy at once."""
TINY_FLOPS, QUICK_FLOPS, AT_ONCE_FLOPS = 1 << 12, 1 << 20, 1 << 28
"""Operations of a product: so few NumPy does whatever the operands take, so few without further questions,
and so many of small operands at most: BLAS takes some milliseconds, on all cores."""
LOOPED = 1 << 17
"""Products of elements that NumPy adds up before a plan is made."""
_INDEX_BYTES = np.dtype(np.intp).itemsize
_LISTS = (list, tuple)
_DRAWN, _DRAWN_BYTES = 1 << 14, 1 << 17
"""Numbers that are drawn in less time than it takes to ask who should draw them; and where fewer bytes than
these count as small, nothing is NumPy's at once, not even they."""
_BLANK_BYTES = 1 << 28
"""Zeros up to so large are asked of the operating system at once, which has them for nothing."""
_WRITTEN_FLOPS = 6
"""Operations an element, up to those of a root, that NumPy does on one thread in no more time than threads
take together to fill other memory."""
_LINE_BYTES, _FEW_LINES = 64, 8
"""Bytes of a line beside which it is nothing to look whether a mask keeps it; and NumPy copies the lines that
are kept sooner than a pass reads all, where there are at least so many times as many.
(`benchmarks.programs`: groups)"""
_PICKS = 8
"""So many single elements, or lines, are read from a lazy array before it is evaluated for them."""
_PICKED_BYTES = 1 << 28
"""Arrays up to so large are: a loop over elements of a larger one is no reason to store it."""
_TESTS = 10
"""Tests, times a power of the elements, up to which NumPy compares all elements with one after the other."""

_RENTED = 3
"""Comparisons of a line of integers with one number after the other, from which on it is known where the line
has each: to find that out takes as long as so many."""


def _is_small(nbytes: float) -> bool:
    return nbytes <= config.small_bytes


def _is_open() -> bool:
    return config.small_bytes > 0


is_small: Callable[[float], bool] = quick.is_small or _is_small
"""Whether so many bytes are NumPy's at once."""
is_open: Callable[[], bool] = quick.is_open or _is_open
"""Whether NumPy does anything at once. An array of no bytes is small even where it does not."""
is_plain: Callable[[int], bool] = PLAIN_BYTES.__gt__
"""Whether an operator on so few bytes, if they are small, is the plain case."""
is_sure: Callable[[int], bool] = SURELY.__ge__
"""Whether a result may have so few bytes, if they are small, without further questions."""


def few_pair(a: Any, b: Any) -> tuple[Any, Any] | None:
    """`few_values` of two operands, one after the other: most calls that programs make by the million."""
    # Exact classes, asked once: what derives from them may have rules of its own.
    x, y, nbytes = a, b, 0
    if type(a) is Late.ndarray:
        x = a._peek() if a._views else a._cell.value
        if type(x) is not _array:
            return None
        nbytes = x.nbytes
    elif type(a) not in NUMBERS:
        return None
    if type(b) is Late.ndarray:
        y = b._peek() if b._views else b._cell.value
        if type(y) is not _array:
            return None
        # Of two shapes the result may have as many elements as both have together, multiplied.
        if nbytes * y.size > SURELY and x.shape != y.shape:
            return None
        nbytes += y.nbytes
    elif type(b) not in NUMBERS:
        return None
    return (x, y) if is_small(nbytes) else None


def few_values(
    operands: tuple[Any, ...], others: frozenset[type] = NUMBERS, are_broadcast: bool = True
) -> list[Any] | None:
    """NumPy's values of operands that are small arrays on the driver, and stay small where they
    `are_broadcast` together, or are of `others`, classes that NumPy takes as they are; None if one is
    anything else."""
    known = []
    nbytes, size = 0, 1
    for a in operands:
        kind = type(a)
        if kind is Late.ndarray:
            a = a._peek() if a._views else a._cell.value
            if type(a) is not _array:
                return None
            nbytes += a.nbytes
            size *= a.size
        elif kind not in others:
            return None
        known.append(a)
    if not is_small(nbytes):
        return None
    # Elements count, and not bytes: those of one shape, however many operands, stay as they are.
    if are_broadcast and 8 * size > SURELY and len({a.shape for a in known if type(a) is _array}) > 1:
        return None
    return known


def fit_as_indices(operands: Iterable[Any]) -> bool:
    """Whether memory that was set has room for what NumPy makes of operands, and on the way to it: as many
    elements, which may be indices, however narrow the operands' are."""
    if config.memory_bytes is None:
        return True
    return _elements(operands) * _INDEX_BYTES <= copied_bytes()


def _elements(operands: Iterable[Any]) -> int:
    """How many elements the arrays among operands have, also those in lists of them."""
    every = ((type(a), a) for a in operands)
    return sum([a.size if kind is _array else _elements(a) if kind in _LISTS else 0 for kind, a in every])


def most_lines_kept(mask: Any, nbytes: int) -> int:
    """How many of the lines of an array of so many bytes a mask that is here keeps, where these are few, and
    it is nothing to count them; else as many as it could."""
    if mask.size * _LINE_BYTES > nbytes or not is_small(mask.nbytes):
        return int(mask.size)
    count = int(np.count_nonzero(mask))
    return count if count * _FEW_LINES <= mask.size else int(mask.size)


def is_shown_again(value: Any) -> bool:
    """Whether a view shows elements again and again, as windows that lie over each other do, which are few
    bytes in memory, or read where they lie before programs would: NumPy does that, and a pass would make all
    of them."""
    if value.base is None or 0 in value.strides:
        return False
    nbytes = _spanned_bytes(value)
    return bool(0 < nbytes < value.nbytes) and (is_small(nbytes) or _is_read_here(nbytes, value.size))


def _spanned_bytes(value: Any) -> int:
    """Bytes of the memory from the first to the last element of a view."""
    nbytes = value.itemsize
    for n, step in zip(value.shape, value.strides, strict=True):
        nbytes += (n - 1) * abs(step)
    return int(nbytes)


def is_made_of(value: Any, size: int) -> bool:
    """Whether so many numbers are made at once of what shows elements again: they are small, or there is room
    for them where programs run, and no more of them than elements where these run on workers."""
    few = size * value.itemsize <= _spanned_bytes(value)
    return is_small(8 * size) or (8 * size <= copied_bytes() and is_open() and (few or in_process()))


def is_made_here(nbytes: int) -> bool:
    """Whether so many bytes are made at once on the way to a result: they are small, or there is room for
    them where programs run."""
    return is_small(nbytes) or (works_here() and nbytes <= copied_bytes())


def works_here() -> bool:
    """Whether what is bound by the memory's speed is done at once, however large it is: where the array lies
    here, and so do programs. On workers a write is a step of the graph."""
    return is_open() and in_process()


def fits_here(nbytes: int) -> bool:
    """Whether NumPy takes so many bytes, which are not small, where programs run: they fit into the memory
    with what it makes of them."""
    return nbytes < copied_bytes() and works_here()


def is_left_here(nbytes: int, steps: int) -> bool:
    """Whether NumPy takes so many bytes of the driver's, which are not small, as one piece of work of so many
    steps: nothing fuses with that, so that workers gain only what more of them do at a time, and wait for the
    bytes."""
    return nbytes < copied_bytes() and _is_read_here(nbytes, steps)


def _is_read_here(nbytes: int, steps: int) -> bool:
    """Whether NumPy reads so many bytes of the driver's as they lie, in so many steps: programs run here, or
    it is done before workers that have yet to be sent them."""
    return is_open() and (in_process() or is_sooner_here(steps, nbytes))


def is_written_here(target: Any, flops: int) -> bool:
    """Whether NumPy writes so many operations an element into an array, however large that is: into a part,
    which is computed before the call ends in any case, and a pass would make it elsewhere, to be copied; or
    over elements that nobody else reads, where a pass would fill memory that the caches do not have."""
    is_quick = flops <= _WRITTEN_FLOPS and works_here()
    return is_quick and (bool(target._views) or target._cell.is_alone())


def is_blank(nbytes: int) -> bool:
    """Whether so many bytes of zeros, which are not small, are memory that nobody has touched yet."""
    return works_here() and not is_small(nbytes) and nbytes <= _BLANK_BYTES


def is_counted(first: float, end: float, step: float) -> bool:
    """Whether the numbers from one to another are few, at eight bytes each."""
    return abs(end - first) * 8 <= abs(step) * config.small_bytes


def is_short(items: Sized) -> bool:
    """Whether so few items are looked at one by one."""
    return len(items) <= SHORT


def is_quick_work(flops: int) -> bool:
    """Whether a product of what is here is so little work that no plan is faster, whatever runs it."""
    return flops <= QUICK_FLOPS


def is_quick_product(size: int, flops: int, nbytes: int) -> bool:
    """Whether NumPy does a product, with so many elements, of what is here: it is so little work that nothing
    else is asked, as it has no more elements than that, or its operands take so few bytes."""
    is_quick = is_quick_work(flops) and 8 * flops < config.small_bytes
    return is_quick or (is_little_product(size, flops) and is_small(nbytes))


def is_tiny_product(flops: int) -> bool:
    """Whether a product of what is here is done at once, whatever its operands take."""
    return flops <= TINY_FLOPS and is_open()


def is_little_product(size: int, flops: int) -> bool:
    """Whether NumPy does a product of small operands, with so many elements, in so many operations."""
    return flops <= AT_ONCE_FLOPS and is_small(8 * size)


def is_looped(products: int) -> bool:
    """Whether so few products of small operands' elements are added up by NumPy's loops."""
    return products <= LOOPED


def are_few(size: Any, *parameters: Any) -> bool:
    """Whether NumPy draws so many numbers at once, from parameters that are numbers: one, or some thousands
    at most where small arrays are NumPy's at all."""
    if type(size) is tuple:
        if not _INTEGERS.issuperset(map(type, size)):
            return False
        size = prod(size)
    elif size is None:
        return _PLAIN.issuperset(map(type, parameters))
    few = type(size) is int and size <= _DRAWN and is_small(_DRAWN_BYTES)
    return few and _PLAIN.issuperset(map(type, parameters))


def are_few_tests(tests: int, elements: int) -> bool:
    """Whether NumPy finds among so many tests those elements of a small array that are one."""
    # `numpy.isin` has this bound: from there on it sorts.
    return bool(tests < _TESTS * elements**0.145)


def is_grouped(tests: int, nbytes: int) -> bool:
    """Whether a line that is here, and has been compared with so many numbers since it was written to, is
    looked up from now on."""
    return tests > _RENTED and not is_plain(nbytes) and is_small(nbytes)


def is_walked_over(picks: int, nbytes: int) -> bool:
    """Whether a program that has asked for so many elements, or lines, one by one wants an array of those
    here."""
    return picks > _PICKS and nbytes <= _PICKED_BYTES and is_open()
