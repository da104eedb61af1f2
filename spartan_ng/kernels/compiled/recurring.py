"""The loop of an expression that comes again and again: the source of its kernel.

An expression is what `api/core/plain/recurring.h` knows of it: functions of places and of earlier results,
each of which NumPy has a loop for; a line of the kernel's table has some lines of all arrays. Only what has
NumPy's bits is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.emit import emit
from spartan_ng.kernels.compiled.formulas import DTYPES, OF_OUR_OWN, code, obstacle
from spartan_ng.kernels.compiled.layout import Layout
from spartan_ng.kernels.compiled.segments import Operand, Segment
from spartan_ng.plan.rows import Row

Called = tuple[str, np.dtype[Any], tuple[int, ...]]
"""A function's name, or "cast"; the dtype of its results; its operands by their places, earlier results by
`~` their number."""
_SPACE = ((0, 2), (1, 2))
"""Lines of elements, whatever their number."""


def loop_source(functions: Sequence[Called], dtypes: Sequence[Any], letters: str) -> str | None:
    """The kernel's source; None where one of its functions has no formula that gives NumPy's bits.

    Parameters
    ----------
    functions : in their order
    dtypes : of the places, None for numbers, and the result's last
    letters : how elements lie along lines, as in `Layout.inner`
    """
    found = _with_numbers(functions, dtypes)
    if found is None or not all(code(d) in DTYPES for d in found):
        return None
    operands = [Operand(k, k, (0, 1), dtype) for k, dtype in enumerate(found)]
    known, rows = list(found), []
    values: dict[Any, Any] = {}
    for name, dtype, given in functions:
        args = tuple(len(found) + ~k if k < 0 else k for k in given)
        row = Row("map", name, args, (), dtype, (2, 2), (0, 1))
        if name in OF_OUR_OWN or obstacle(row, [known[a] for a in args]):
            return None
        same = tuple(values.get(a, a) for a in args)
        if _needs_nothing(name, dtype, same):
            return None
        values[len(known)] = (name, dtype, same)
        rows.append((len(known), row))
        known.append(dtype)
    segment = Segment(_SPACE, tuple(operands), tuple(rows), (len(known) - 1,), ())
    layout = Layout(((0,), (1,)), tuple(letters), (), (False,) * len(letters), apart=True)
    return emit([(segment, layout)])


def _needs_nothing(name: str, dtype: np.dtype[Any], values: tuple[Any, ...]) -> bool:
    """Whether a result is the same whatever its operands are, which are compared by how they are made: a
    compiler leaves those out, and with them the errors that they come upon."""
    if len(values) < 2 or (dtype.kind == "f" and name != "where"):
        return False
    taken = values[1:] if name == "where" else values
    opposed = [v[2][0] for v in taken if isinstance(v, tuple) and v[0] in ("invert", "logical_not")]
    return len({*taken}) == 1 or any(v in taken for v in opposed)


def _with_numbers(functions: Sequence[Called], dtypes: Sequence[Any]) -> list[np.dtype[Any]] | None:
    """The dtypes of all places: a number has that of the other operands of its function, or of what is
    chosen; None where functions take one as several."""
    *found, _ = dtypes
    for name, dtype, given in functions:
        chosen = name == "where"
        others = [functions[~k][1] if k < 0 else dtypes[k] for k in given]
        own = dtype if chosen else next((d for d in others if d is not None), None)
        for k, other in zip(given, others, strict=True):
            if other is None and k >= 0:
                if own is None or (found[k] is not None and found[k] != own):
                    return None
                found[k] = own
    return found
