"""Products and elements of a compressed matrix by compiled loops over codes; NumPy until these are compiled.

The loops are in `dictionary_loops`; here are their tables, which hold addresses, and what they are worth.
Columns without codes are left to BLAS. With several dense columns, too, look-ups cost less than BLAS on
elements that are made strip by strip (measured for 2 to 40 columns).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.compressed.groups import Coding
from spartan_ng.compressed.layouts import Codes, Layout, Offsets
from spartan_ng.compressed.matrix import CompressedMatrix
from spartan_ng.costs.choices import DICTIONARY_LOOKUPS
from spartan_ng.kernels.compiled import dictionary_loops as loops
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.trial import largest, most_elements, unequal
from spartan_ng.kernels.compiled.trust import at_hand

_LISTED = 1
"""The number of groups that list their rows; and"""
_DISTINCT, _COUNTS, _FIELDS = 5, 6, 10
"""where a line has its distinct tuples and the address of their counts, and its length: see
`dictionary_loops`."""


def multiply(a: CompressedMatrix, b: Any) -> Any:
    """The product with a dense vector or matrix, in the dtype that NumPy's has; None where NumPy's loops on
    the elements have to make it: products of bools and of complex numbers, of integers that no kernel is
    ready for, and from the left of infinite words, as a tuple's sum hides the zeros that make NaN of them."""
    dtype = np.result_type(a.dtype, b.dtype)
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        return None
    if a.turned and a.dtype.kind == "f" and _holds_infinities(a):
        return None
    number = "float64" if dtype.kind == "f" else "int64"
    columns = 1 if b.ndim == 1 else b.shape[1]
    worth = a.rows * columns * len(a.coding.groups) >= DICTIONARY_LOOKUPS and fits(a.coding)
    source = loops.from_left(number) if a.turned else loops.from_right(number)
    kinds = (_kinds(a.coding), columns == 1, a.turned)
    wrong = lambda f: _product_flaw(f, a, b, number)  # noqa: E731
    kernel = at_hand(source, kinds, wrong, "products with compressed columns") if worth else None
    if kernel is None:
        return (a @ b).astype(dtype, copy=False) if dtype.kind == "f" else None
    return _product(kernel, a, b, number).astype(dtype, copy=False)


def _holds_infinities(a: CompressedMatrix) -> bool:
    """Whether a coded element is infinite; words of other rows do not count."""
    return bool(np.isinf(a.words).any()) and any(
        np.isinf(words[:, counts > 0]).any()
        for (_, words), counts in zip(a.dictionaries(), a.counts(), strict=True)
    )


def _product(kernel: Function, a: CompressedMatrix, b: Any, number: str) -> Any:
    """The product in the kernel's numbers."""
    columns = 1 if b.ndim == 1 else b.shape[1]
    right = np.ascontiguousarray(b, number).reshape(len(b), columns)
    out = np.empty((a.shape[0], columns), number)
    words = np.ascontiguousarray(a.words, number)
    table, _alive = _table(a, words, right, out, columns)
    if a.turned and number == "float64" and not np.isfinite(words).all():
        counts = [np.ascontiguousarray(c, np.int64) for c in a.counts()]
        table[1:, _COUNTS] = [address(counts[g]) for g in _order(a.coding)]
    kernel(table)
    _add_plain(a, right, out)
    return out[:, 0] if b.ndim == 1 else out


def _product_flaw(kernel: Function, a: CompressedMatrix, b: Any, number: str) -> str:
    """What the kernel makes otherwise than NumPy of the last rows."""
    first, last = _last(a)
    part, b = (a[:, first:last], b[first:last]) if a.turned else (a[first:last], b)
    left, right = part.toarray().astype(number), b.astype(number)
    wanted = left @ right
    scale = largest([left, right, wanted]) if number == "float64" else None
    return unequal(_product(kernel, part, b, number), wanted, scale)


def _last(a: CompressedMatrix) -> tuple[int, int]:
    """The last rows, as many as a trial may take."""
    return max(a.rows - max(most_elements(a.rows * a.width) // a.width, 1), 0), a.rows


def _kinds(coding: Coding) -> frozenset[tuple[int, int]]:
    """The kinds of groups."""
    return coding.remembered(  # type: ignore[no-any-return]
        "kinds", lambda: frozenset(_kind(g.layout) for g in coding.groups)
    )


def uncompressed(a: CompressedMatrix) -> Any:
    """All elements."""
    worth = a.rows * a.width >= DICTIONARY_LOOKUPS and fits(a.coding) and a.dtype.itemsize <= 8
    if not worth:
        return a.toarray()
    source, kinds = loops.all_elements(f"uint{8 * a.dtype.itemsize}"), (_kinds(a.coding), a.turned)
    kernel = at_hand(source, kinds, lambda f: _elements_flaw(f, a), "elements of compressed columns")
    return a.toarray() if kernel is None else _elements(kernel, a)


def _elements_flaw(kernel: Function, a: CompressedMatrix) -> str:
    """What the kernel makes otherwise than NumPy of the last rows."""
    first, last = _last(a)
    part = a[:, first:last] if a.turned else a[first:last]
    return unequal(_elements(kernel, part), part.toarray(), None)


def _elements(kernel: Function, a: CompressedMatrix) -> Any:
    out, words = np.empty((a.rows, a.width), a.dtype), np.ascontiguousarray(a.words)
    table, _alive = _table(a, words, out, out, 0)
    kernel(table)
    if a.plain_columns:
        out[:, list(a.plain_columns)] = a.plain
    return out.T if a.turned else out


def fits(coding: Coding) -> bool:
    """Whether the kernels were written for these codes."""
    return coding.rows < 2**31


def _table(a: CompressedMatrix, words: Any, b: Any, out: Any, columns: int) -> tuple[Any, Any]:
    """A table for these words and arrays, and what must live as long as it is used; what codes say of it is
    remembered. `columns` are those of the dense operand, 0 where elements are asked for."""
    lines, places, kept = a.coding.remembered("table", lambda: _lines(a.coding))
    table = lines.copy()
    distinct = table[1:, _DISTINCT]
    listed = distinct[table[1:, 0] == _LISTED].max(initial=1)
    scratch = np.zeros(loops.scratch_numbers(len(table), int(listed), int(distinct.sum()), columns), np.int64)
    table[0, :7] = a.lo, a.hi, a.width, columns, address(b), address(out), address(scratch)
    table[1:, -1] = address(words) + places * words.itemsize
    return table, (kept, words, b, out, scratch)


def _order(coding: Coding) -> list[int]:
    """Groups with codes of a byte come first."""
    return sorted(range(len(coding.groups)), key=lambda g: _kind(coding.groups[g].layout))


def _kind(layout: Layout) -> tuple[int, int]:
    """A layout's number in the table, and bytes a code."""
    if isinstance(layout, Offsets):
        return _LISTED, layout.offsets.itemsize
    return 0 if isinstance(layout, Codes) else 2, layout.codes.itemsize


def _lines(coding: Coding) -> tuple[Any, Any, list[Any]]:
    """The table without what dictionaries and operands have a share in, where each line's words begin, and
    the arrays that it has addresses of."""
    lines, kept, first = np.zeros((1 + len(coding.groups), _FIELDS), np.int64), [], coding.first_words()
    order = _order(coding)
    for line, g in zip(lines[1:], (coding.groups[k] for k in order), strict=True):
        layout = g.layout
        if isinstance(layout, Codes):
            main, starts, listed = layout.codes, layout.codes, layout.rows
        elif isinstance(layout, Offsets):
            main, starts, listed = layout.offsets, layout.starts, len(layout.offsets)
        else:
            main, starts, listed = layout.codes, layout.starts, len(layout.codes)
        main, starts, columns = (np.ascontiguousarray(x) for x in (main, starts, np.array(g.columns)))
        kept += [main, starts, columns]
        addresses = address(main), address(starts)
        line[:9] = *_kind(layout), *addresses, listed, g.distinct, 0, address(columns), len(columns)
    return lines, np.array([first[k] for k in order], np.int64), kept


def _add_plain(a: CompressedMatrix, b: Any, out: Any) -> None:
    """What columns without codes bring."""
    if a.plain_columns:
        columns = list(a.plain_columns)
        plain = a.plain.astype(out.dtype, copy=False)
        if a.turned:
            out[columns] = plain.T @ b
        else:
            out += plain @ b[columns]
