"""Scans: cumulative aggregates by an associative ufunc, as (f_agg, f_off, f_cumagg, init).

Distributed cumulative aggregates (BTW '19), section 3 and Table 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Scan:
    """A cumulative aggregate by an associative ufunc (`add` makes cumulative sums)."""

    name: str
    ufunc: np.ufunc
    flops: int = 1

    def dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The result's dtype for elements of `dtype`, as `ufunc.accumulate` has it."""
        return self.ufunc.accumulate(np.ones(1, dtype)).dtype

    def aggregate(self, x: Any, axis: int, out: np.dtype[Any]) -> Any:
        """f_agg: one row of aggregates of a block, `axis` kept with length 1."""
        return self.ufunc.reduce(x, axis=axis, dtype=out, keepdims=True)

    def cumulate(self, x: Any, axis: int, out: Any) -> None:
        """f_cumagg: the block's own cumulative aggregate, into `out`."""
        self.ufunc.accumulate(x, axis=axis, dtype=out.dtype, out=out)

    def offset(self, total: Any, block: Any) -> None:
        """f_off: put the aggregate of everything before a block in front of its cumulative values."""
        self.ufunc(total, block, out=block)


_ROWS = [
    Scan("add", np.add),
    Scan("multiply", np.multiply),
    Scan("minimum", np.minimum),
    Scan("maximum", np.maximum),
    Scan("fmin", np.fmin),
    Scan("fmax", np.fmax),
    Scan("logical_and", np.logical_and),
    Scan("logical_or", np.logical_or),
    Scan("bitwise_and", np.bitwise_and),
    Scan("bitwise_or", np.bitwise_or),
    Scan("bitwise_xor", np.bitwise_xor),
    Scan("logaddexp", np.logaddexp, 45),
]

SCANS: dict[str, Scan] = {row.name: row for row in _ROWS}
"""Every scan by its name."""
