"""Loops over compressed columns: products from either side, and the elements themselves.

They are written in `loops/dictionary_*.py`.

Rows are taken in strips that stay in the cache while all groups pass over them: short ones where results are
written, longer ones where they are only read. From the right a row looks up
its tuple's product; for a vector, four groups with codes of a byte are taken together, and a group of zeros
for each that lacks: their look-ups do not wait for each other. From the left a row is added to its tuple's
sum, where equal codes in neighbouring rows wait for each other's store; for groups of few columns it is
cheaper to multiply by the tuple, with sums in registers. What the lists of offsets do not name is summed from
a copy of the strip in which the named rows are zeros: a difference of sums would lose digits.

Elgohary et al., "Compressed Linear Algebra for Large-Scale Machine Learning" (VLDB 2016), section 4.

A table's first line has: the first row and the last, columns of the matrix, columns of the dense operand, its
address, the result's address. Each other line is a group: layout (0 codes, 1 offsets, 2 runs), bytes a code,
codes or offsets, starts, their number, distinct tuples, counts (0: all tuples have rows), columns, their
number, words. What a kernel needs besides, it takes one after the other of zeroed memory whose address
the first line has next; `scratch_numbers` says how much.
"""

from __future__ import annotations

from spartan_ng.kernels.compiled.ready_made import constant_of, source_of

_STRIP: int = constant_of("dictionary_elements", "STRIP")
_READ_STRIP: int = constant_of("dictionary_left", "STRIP")
_PAD: int = constant_of("dictionary_right", "PAD")
_MOST: int = constant_of("dictionary_left", "MOST")


def from_right(number: str) -> str:
    """The kernel of `X @ b` in float64 or int64."""
    return source_of("dictionary_right", NUMBER=f"np.{number}")


def from_left(number: str) -> str:
    """The kernel of `X.T @ b` in float64 or int64."""
    return source_of("dictionary_left", NUMBER=f"np.{number}")


def all_elements(number: str) -> str:
    """The kernel that writes all elements, as unsigned numbers of their size."""
    return source_of("dictionary_elements", NUMBER=f"np.{number}")


def scratch_numbers(lines: int, cursors: int, words: int, columns: int) -> int:
    """The 64-bit numbers that a kernel takes of its scratch at most; `lines` are the table's, `cursors` the
    longest list of starts, `words` the distinct tuples of all groups, `columns` those of the dense operand
    (0: the elements are asked for)."""
    places = lines * cursors + (lines + 1)
    if columns == 0:
        return places + lines * _STRIP // 4
    results = max((words + _PAD) * columns, 4 * words + _MOST * lines)
    return places + results + _READ_STRIP + 8
