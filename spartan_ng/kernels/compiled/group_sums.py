"""Compiled sums of a block's rows by their labels, in the order of the rows.

SciPy's product with a matrix of ones adds in the same order, and gives the same bits; to make that matrix
takes longer than the sums of a block that lies in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.arrays.sparse import is_imported
from spartan_ng.costs.choices import GROUP_SUM_ELEMENTS, SCIPY_S
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import real, source_of
from spartan_ng.kernels.compiled.trial import first_flaw, most_elements
from spartan_ng.kernels.compiled.trust import at_hand


def group_sums(labels: Any, rows: Any, count: int) -> Any:
    """The sums of contiguous rows with each of the labels 0 to `count`, or None: SciPy has to do it (for
    now)."""
    number = real(rows.dtype)
    if rows.size < GROUP_SUM_ELEMENTS or number is None or not rows.flags.c_contiguous:
        return None
    if labels.dtype != np.int64 or not labels.flags.c_contiguous:
        return None
    source = source_of("group_sums", NUMBER=number)
    worth_s = 0.0 if is_imported() else SCIPY_S
    kernel = at_hand(source, None, lambda f: _flaw(f, labels, rows, count), "sums by labels", worth_s)
    return None if kernel is None else _sums(kernel, labels, rows, count)


def _flaw(kernel: Function, labels: Any, rows: Any, count: int) -> str:
    """What the kernel makes otherwise than NumPy of the last rows."""
    first = max(len(rows) - max(most_elements(rows.size) // max(rows.shape[1], 1), 1), 0)
    wanted = np.zeros((count, rows.shape[1]), rows.dtype)
    np.add.at(wanted, labels[first:], rows[first:])
    return first_flaw([(_sums(kernel, labels[first:], rows[first:], count), wanted)], None)


def _sums(kernel: Function, labels: Any, rows: Any, count: int) -> Any:
    out = np.empty((count, rows.shape[1]), rows.dtype)
    addresses = [address(a) for a in (labels, rows, out)]
    kernel(np.array([[*addresses, *rows.shape, count]], np.int64))
    return out
