"""Sets: distinct elements are the changes in a sorted line, membership a search in one."""

from __future__ import annotations

import functools
from collections import namedtuple
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, creation, cumulative, joining, manipulation, reductions
from spartan_ng.api.core import conversion, door
from spartan_ng.api.core.cell import Cell
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import by_numpy, gathered, numpy_function
from spartan_ng.api.core.handle import copied
from spartan_ng.api.core.operands import small_values
from spartan_ng.api.core.wrapping import make, wrap, wrap_node
from spartan_ng.api.elementwise import logic, ufuncs
from spartan_ng.api.ordering import sorting
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process, together_bytes
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.memory import copied_bytes

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_FEW = 128
"""Distinct elements that others are searched among, where that is less than sorting all."""
_TOLD, _SHARE = 1 << 11, 1 << 11
"""Distinct elements that parts tell each other of before anything is sorted, at most, and one in so many."""
_SPAN = 1 << 16
"""Entries of a table that says each integer's place among distinct ones. (chosen: 512 kB)"""
_LONG = 1 << 14
"""Elements of a line for which that may be worth a pass."""


UniqueAllResult = namedtuple("UniqueAllResult", ["values", "indices", "inverse_indices", "counts"])  # noqa: PYI024


UniqueCountsResult = namedtuple("UniqueCountsResult", ["values", "counts"])  # noqa: PYI024


UniqueInverseResult = namedtuple("UniqueInverseResult", ["values", "inverse_indices"])  # noqa: PYI024


def _is_no_line(given: list[Any]) -> bool:
    """Whether a call is about slices, which it may be if it says more than what array, or no numbers."""
    return not sorting.are_lines([np.ravel(given[0]) if len(given) == 1 else given[0]])


@numpy_function(np.unique, whole=_is_no_line)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The sorted distinct elements, and on request where they are, the inverse, and their counts."""
    a = as_handle(ar)
    if a.dtype.kind in "OV":
        return gathered(np.unique, a, return_index, return_inverse, return_counts, axis, equal_nan=equal_nan)
    if isinstance(axis, tuple | list):  # of which NumPy's versions take none, or one
        np.unique(np.zeros((0,) * a.ndim), axis=axis)  # type: ignore[call-overload]
        (axis,) = axis
    along = None if axis is None else build.axis_index(axis, a.ndim)
    if along is not None and a.ndim != 1:
        return _unique_slices(a, along, return_index, return_inverse, return_counts)
    if a._found() is None and a._node().data is None and door.fits_here(a.nbytes):
        # NumPy, or a table, is sooner done with what is here than a plan that has to make it.
        here = as_handle(a._force())
        return unique(here, return_index, return_inverse, return_counts, equal_nan=equal_nan, sorted=sorted)
    flat = a.reshape(-1 if a.size else 0)
    if flat.size == 0:
        empty = wrap(np.zeros(0, np.intp))
        found = [flat.copy()] + [empty] * (return_index + return_counts)
        if return_inverse:
            found.insert(1 + return_index, empty.reshape(a.shape))
        return found[0] if len(found) == 1 else tuple(found)
    is_looked_up = return_index or return_inverse or return_counts
    is_table = flat.dtype.kind in "iu" or not is_looked_up
    # Workers tell each other: of more, what they say is more than they save.
    most = max(_FEW, min(_TOLD, flat.size // _SHARE)) if is_table and in_process() else _FEW
    values = _few_values(flat, equal_nan, most)
    if values is not None and (len(values) < _FEW or not is_looked_up or _is_narrow(values)):
        return _of_values(values, a, return_index, return_inverse, return_counts)
    searched = (return_inverse or return_index) and _is_searched(flat, equal_nan)
    ordered = (return_index or return_inverse) and not searched
    order = sorting.argsort(flat, kind="stable") if ordered else None
    line = flat[order] if order is not None else sorting.sort(flat)
    changed = line[1:] != line[:-1]
    if equal_nan and a.dtype.kind in "fcmM":
        changed = changed & ~(ufuncs.isnan(line[1:]) & ufuncs.isnan(line[:-1]))
    first = joining.concatenate([constants.ones(1, bool), changed])
    out = [line[first]]
    if searched:
        out = _searched(out[0], a, return_index, return_inverse)
    if return_index and order is not None:
        out.append(order[first])
    if return_inverse and order is not None:
        rank = cumulative.cumsum(first.astype(np.intp)) - 1
        node = build.scatter(
            constants.zeros(flat.size, np.intp)._node(),
            build.cast(order._node(), np.dtype(np.int64)),
            rank._node(),
        )
        out.append(make(Cell(node=build.reshape(node, a.shape))))
    if return_counts:
        starts = sorting.flatnonzero(first)
        out.append(joining.concatenate([starts[1:], constants.full(1, flat.size, np.intp)]) - starts)
    return out[0] if len(out) == 1 else tuple(out)


def _is_searched(flat: ndarray, equal_nan: bool) -> bool:
    """Whether elements are searched among the distinct ones: where memory has no room for the order of all,
    and what stands in it, and equal elements are one."""
    room = copied_bytes() if in_process() else copied_bytes(together_bytes())
    return flat.nbytes > room and (flat.dtype.kind in "biu" or (flat.dtype.kind == "f" and equal_nan))


def _is_narrow(values: Any) -> bool:
    """Whether a table has room for all integers from the least of sorted ones to the greatest."""
    return values.dtype.kind in "iu" and int(values[-1]) - int(values[0]) < _SPAN


def _places(values: ndarray, a: ndarray) -> ndarray:
    """Each element's place among sorted distinct ones, which has all of them."""
    known = values._peek()
    if known is None or known.size <= 1 or not _is_narrow(known):
        return sorting.searchsorted(values, a)
    table = np.zeros(int(known[-1]) - int(known[0]) + 1, np.intp)
    table[_beyond(known, known[0])] = np.arange(known.size)
    return wrap(table)[_beyond(a, known[0])]  # type: ignore[no-any-return]


def _beyond(x: Any, least: Any) -> Any:
    """By how much integers are more than the least of them, which no short integers can say."""
    return (x - least).astype(np.intp) if x.dtype.kind == "u" else x.astype(np.int64) - np.int64(least)


def _searched(values: ndarray, a: ndarray, index: bool, inverse: bool) -> list[Any]:
    """The distinct elements, where each is first, and each element's place among them."""
    place = _places(values, a)
    out: list[Any] = [values]
    if index:
        flat, n = a.reshape(-1), a.size
        places = build.cast(place.reshape(-1)._node(), np.dtype(np.int64))
        nowhere = constants.full(values.size, n, np.intp)
        first = wrap_node(build.scatter(nowhere._node(), places, build.iota(n), "minimum"))
        # Of zeros of both signs, the first is the one that is shown.
        out = [flat[first] if a.dtype.kind == "f" else values, first]
    return [*out, place] if inverse else out


def _few_values(flat: ndarray, equal_nan: bool, most: int = _FEW) -> Any:
    """The distinct elements of a line, where they are fewer than `most`: each part's own first, in the pass
    that makes the elements. None where there are more."""
    node = flat._node()
    if node.dtype.kind not in "biuf" or node.format != "dense" or node.size < _LONG:
        return None
    found = np.unique(wrap_node(build.distinct(node, most))._force())
    nan = found.dtype.kind == "f" and np.isnan(found[-1])
    return None if len(found) == most or (nan and not equal_nan) else found


def _is_at_hand(node: Node) -> bool:
    """Whether the elements are there, or in a file, and have not to be computed."""
    while node.op in VIEWS:
        (node,) = node.inputs
    return node.op is Op.DATA and node.format == "dense"


def _of_values(values: Any, a: ndarray, index: bool, inverse: bool, counts: bool) -> Any:
    """What `unique` gives, from the distinct elements: every other element is looked up."""
    if not (index or inverse or counts):
        return wrap(values)
    out = _searched(wrap(values), a, index, True)
    place = out[-1] if inverse else out.pop()
    if counts:
        out.append(sorting.bincount(place.reshape(-1), minlength=len(values)))
    return tuple(out)


def _ranked_together(ranks: list[Any]) -> Any:
    """The rank of each row of columns of ranks side by side: neighbours become one, until one is left."""
    columns = joining.concatenate(ranks, axis=1)
    while columns.shape[1] > 1:
        pairs = columns.shape[1] // 2
        left, right = columns[:, 0 : 2 * pairs : 2], columns[:, 1 : 2 * pairs : 2]
        ranked = _ranked(left * columns.shape[0] + right)
        columns = joining.concatenate([ranked, columns[:, 2 * pairs :]], axis=1)
    return columns


def _ranked(columns: Any) -> Any:
    """Of each element, how many distinct ones of its column are less; NaNs are equal."""
    across = creation.arange(columns.shape[1])
    order = sorting.argsort(columns, 0, kind="stable")
    lines = columns[order, across]
    before, after = lines[:-1], lines[1:]
    steps = ufuncs.not_equal(before, after)
    if columns.dtype.kind in "fcmM":
        steps = ufuncs.logical_and(steps, ufuncs.logical_or(before == before, after == after))
    first = constants.zeros((1, columns.shape[1]), np.intp)
    counted = cumulative.cumsum(joining.concatenate([first, steps.astype(np.intp)]), 0)
    return counted[sorting.argsort(order, 0), across]


def _unique_slices(a: ndarray, axis: int, *wanted: bool) -> Any:
    """The distinct slices along an axis, in lexicographic order, and on request what `unique` gives besides.

    Slices are ranked by ever more of their elements, twice as many each time, until no two are equal.
    """
    if a.dtype.kind == "c" and bool(reductions.any(ufuncs.isnan(a))):
        return by_numpy(np.unique, a, *wanted, axis=axis)  # halves of a number that is NaN have an order, too
    lines = manipulation.moveaxis(a, axis, 0)
    rows = lines.reshape(a.shape[axis], prod(lines.shape[1:]))
    rank: Any = constants.zeros((rows.shape[0], 1), np.intp)
    done, width = 0, 1
    while done < rows.shape[1] and rows.shape[0] and (not done or int(rank.max()) + 1 < rows.shape[0]):
        rank = _ranked_together([rank, _ranked(rows[:, done : done + width])])
        done, width = done + width, 2 * width
    rank = rank.reshape(-1)
    if a.dtype.kind in "fcmM":  # slices with NaN are never equal, but stand where others would
        holes = reductions.any(ufuncs.isnan(rows), 1)
        own = ufuncs.multiply(holes, creation.arange(1, rows.shape[0] + 1))
        _, rank = unique(rank * (rows.shape[0] + 1) + own, return_inverse=True)
    _, first, counts = unique(rank, return_index=True, return_counts=True)
    found = manipulation.moveaxis(lines[first], 0, axis)
    more = [x for x, asked in zip((first, rank, counts), wanted, strict=True) if asked]
    return (found, *more) if more else found


@numpy_function(np.unique_values)  # NumPy's own does not sort
def unique_values(x: Any) -> ndarray:
    """The distinct elements."""
    return unique(x, equal_nan=False)  # type: ignore[no-any-return]


@numpy_function(np.unique_counts, whole=_is_no_line)
def unique_counts(x: Any) -> Any:
    """The distinct elements and how often they occur."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


@numpy_function(np.unique_inverse, whole=_is_no_line)
def unique_inverse(x: Any) -> Any:
    """The distinct elements and the inverse."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


@numpy_function(np.unique_all, whole=_is_no_line)
def unique_all(x: Any) -> Any:
    """The distinct elements, where they are, the inverse and the counts."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


def _have_tables(a: ndarray, tests: ndarray) -> bool:
    """Whether NumPy may look integers up in a table, and not sort them."""
    return {a.dtype.kind, tests.dtype.kind} <= {*"biu"}


_TABLE = 6
"""A table may have so many times more places than there are elements, as NumPy's may."""


def _by_table(a: ndarray, tests: ndarray, invert: bool) -> Any:
    """Whether each element is a test, by a table of the whole numbers from the least test to the greatest.

    None where there is no such table, and where the tests have yet to be computed.
    """
    whole = np.dtype(np.int64)
    fits = _have_tables(a, tests) and all(np.can_cast(x.dtype, whole) for x in (a, tests))
    if not fits or not _is_at_hand(tests._node()):
        return None
    low, high = (int(x) for x in conversion.values(reductions.min(tests), reductions.max(tests)))
    size = high - low + 3  # with a place on either side for all elements beyond
    limits = np.iinfo(whole)
    if size > min(_TABLE * (a.size + tests.size), copied_bytes()) or low == limits.min or high == limits.max:
        return None
    marks = constants.full(tests.size, not invert, bool)
    places = tests.astype(whole) - (low - 1)
    table = build.scatter(constants.full(size, invert, bool)._node(), places._node(), marks._node())
    asked = as_handle(as_handle(ufuncs.clip3(a.astype(whole), low - 1, high + 1)) - (low - 1))
    return wrap_node(build.take(table, asked._node(), 0))


_COMPARED = 32
"""Tests with which a pass compares all elements one after the other. (Measured with 6 million doubles: a
search takes 9 ns an element among 2, 25 among 17; comparing .4 for each, .1 once it is compiled)"""


def _by_comparing(a: ndarray, tests: ndarray, invert: bool) -> Any:
    """Whether each element is one of few numbers that are here, in one pass; None where they are not."""
    numbers = conversion.numbers_here(tests) if 0 < tests.size <= _COMPARED else None
    if numbers is None or a.dtype.kind not in "biufc":
        return None
    compared, joined = (ufuncs.not_equal, ufuncs.logical_and) if invert else (ufuncs.equal, ufuncs.logical_or)
    return functools.reduce(joined, [compared(a, number) for number in numbers])


def _by_search(a: ndarray, tests: ndarray, invert: bool) -> Any:
    """Whether each element is what stands at its place in the sorted line of the tests."""
    common = np.result_type(a.dtype, tests.dtype)
    line, a = sorting.sort(tests.astype(common)), a.astype(common)
    place = as_handle(ufuncs.minimum(sorting.searchsorted(line, a), line.size - 1))
    there = wrap_node(build.take(line._node(), build.cast(place._node(), np.dtype(np.int64)), 0))
    return there != a if invert else there == a


def _by_counting(a: ndarray, tests: ndarray, invert: bool) -> Any:
    """Whether each of few elements is one of many tests: those are searched among them, where they are."""
    common = np.result_type(a.dtype, tests.dtype)
    line, a, tests = sorting.sort(a.ravel().astype(common)), a.astype(common), tests.astype(common)
    place = as_handle(sorting.searchsorted(line, tests))
    beyond = line.size
    there = line[ufuncs.minimum(place, beyond - 1)] == tests
    counts = sorting.bincount(logic.where(there, place, beyond), minlength=beyond + 1)
    return ((counts == 0) if invert else (counts > 0))[sorting.searchsorted(line, a)]


@numpy_function(np.isin, few=2)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> ndarray:
    """Whether each element is one of the test elements."""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    a, tests = as_handle(element), as_handle(test_elements).ravel()
    alien = a.dtype.kind != tests.dtype.kind and not {a.dtype.kind, tests.dtype.kind} <= {*"biufc"}
    if kind == "table" or alien or a.dtype.hasobject or tests.dtype.hasobject:
        return by_numpy(np.isin, a, tests, assume_unique, invert, kind=kind)  # type: ignore[no-any-return]
    if tests.size == 0:
        return constants.full(a.shape, invert, bool)
    known = small_values((a, tests), broadcast=False)
    if known is not None and (_have_tables(a, tests) or door.are_few_tests(tests.size, a.size)):
        return wrap(np.isin(known[0], known[1], assume_unique, invert, kind=kind))
    is_few = 0 < a.size < _FEW and tests.size >= _LONG and not in_process()  # whose sorts move nothing
    if not is_few and not (in_process() and _is_at_hand(tests._node())):  # which a table takes as they are
        few = _few_values(tests, equal_nan=True)
        tests = tests if few is None else wrap(few)
    found = None if kind == "sort" or is_few else _by_table(a, tests, invert)
    if found is None and not is_few:
        found = _by_comparing(a, tests, invert)
    if found is None:
        found = (_by_counting if is_few else _by_search)(a, tests, invert)
    return found if found.ndim else copied(found)


@numpy_function(np.union1d, few=2)
def union1d(ar1: Any, ar2: Any) -> ndarray:
    """The distinct elements of both."""
    return unique(joining.concatenate((ar1, ar2), None))  # type: ignore[no-any-return]


@numpy_function(np.intersect1d, few=2)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that are in both."""
    kind = np.result_type(as_handle(ar1).dtype, as_handle(ar2).dtype)
    if not return_indices:
        a = unique(as_handle(ar1).astype(kind))
        return a[isin(a, ar2)]
    (a, first), (b, second) = (unique(as_handle(x).astype(kind), return_index=True) for x in (ar1, ar2))
    both = isin(a, b)
    return a[both], first[both], second[isin(b, a)]


@numpy_function(np.setdiff1d, few=2)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The distinct elements of the first that are not in the second."""
    a = as_handle(ar1).ravel() if assume_unique else unique(ar1)
    return a[isin(a, ar2, invert=True)]  # type: ignore[no-any-return]


@numpy_function(np.setxor1d, few=2)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The distinct elements that are in exactly one."""
    a, b = (as_handle(x).ravel() if assume_unique else unique(x) for x in (ar1, ar2))
    line, counts = unique(joining.concatenate((a, b)), return_counts=True, equal_nan=False)
    return line[counts == 1]  # type: ignore[no-any-return]


__all__ = [
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]
