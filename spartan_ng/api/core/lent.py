"""An array's own memory, lent to NumPy and to whatever works on NumPy's arrays: `numpy.asarray(a)`.

What `a.__array__()` gives is what NumPy's own arrays give, a view of the memory of `a`:

- What others write into it (`scipy.ndimage` by `output=`, scikit-learn by `copy=False`) `a` has, and its
  views have; what is written to `a` by an index, an operator in place or `out=` they have. `Cell.shared` says
  so: no write replaces the cell's memory as long as anybody has it.
- An expression has the elements that there were when it was built. What had been built on `a` before keeps
  the memory that it reads, and `a` is copied. What is built on it later reads it in the call (`loans.py`), or
  a copy.
- It ends with the last array that looks at the memory, be it a view of a view: these keep a `Keeper`, and its
  end is counted. Then the cell is as it was before. A pointer (`a.ctypes`) or a view by strides has no end
  that anybody sees; `Cell.lent` is 0 then, and the cell stays shared.
- What may not be written to through `a` may not be written to through it.

A copy it is of what has no such memory: numbers, sparse arrays, what lies on workers or in a file, what is
another's to be read only. An array over NumPy's memory takes memory of its own first, as before any write.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from spartan_ng.api.core import quick
from spartan_ng.api.core.cell import Cell, changes


class Keeper:
    """What has a cell's memory, as long as there is an array over it."""

    __slots__ = ("__array_interface__", "_cell", "kept")

    def __init__(self, cell: Cell, shown: np.ndarray[Any, Any]) -> None:
        self._cell, self.kept = cell, shown
        interface = dict(shown.__array_interface__)
        interface["data"] = interface["data"][0], not cell.value.flags.writeable
        self.__array_interface__ = interface

    def __del__(self) -> None:
        cell = self._cell
        with changes:
            if cell.lent:
                cell.lent -= 1
                cell.shared = cell.lent > 0


def lend(a: Any) -> Any:
    """What NumPy is given of an array's memory, which is lent as long as that lives; None where it is not
    here, or somebody else has a claim on it."""
    if quick.lend is not None and type(a._cell) is Cell:
        return quick.lend(a)
    with changes:
        cell, shown = a._cell, a._peek()
        value = cell.value
        if type(value) is not np.ndarray or cell.frozen:
            return None
        if cell.shared and not cell.lent:
            return shown.view()
        is_claimed = cell._node is not None or cell.masked is not None or cell.borrowed or cell.blank
        if not cell.shared and (is_claimed or not value.flags.writeable):
            return None
        cell.shared = True
        cell.lent += 1
        if shown.dtype.kind == "T":  # which no interface tells of: it never ends
            return shown.view()
        memory = np.asarray(Keeper(cell, shown))
        if memory.dtype != shown.dtype:
            memory.dtype = shown.dtype  # type: ignore[misc]  # of records the interface says the bytes
        if memory.strides != shown.strides:  # of axes with an element or none, which lead nowhere
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                memory.strides = shown.strides
    lent = memory.view()
    lent.flags.writeable = shown.flags.writeable
    return lent
