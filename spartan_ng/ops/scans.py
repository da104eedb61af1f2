"""Scans: cumulative aggregates by an associative ufunc, or by an associative combination of states.

Distributed cumulative aggregates (BTW '19), section 3 and Table 1; the conditions on recurrences are those
of section 3.4. A compensated sum is Neumaier's (1974).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.ops import frames
from spartan_ng.ops.functions import UserFunction


class Scan(Struct, frozen=True):
    """A cumulative aggregate by an associative ufunc (`add` makes cumulative sums)."""

    name: str
    ufunc: np.ufunc
    flops: int = 8
    """Operations an element: each waits for the one before."""

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
    Scan("logaddexp", np.logaddexp, 260),
    Scan("logaddexp2", np.logaddexp2, 250),
    Scan("gcd", np.gcd, 40),
    Scan("lcm", np.lcm, 250),
]

SCANS: dict[str, Scan] = {row.name: row for row in _ROWS}
"""Every scan by a ufunc, by its name."""


class Monoid(Struct, frozen=True):
    """A scan over states of `states` arrays: `lift` makes an element's state, `combine` joins the states of
    neighbours, `project` gives the value of a state."""

    name: str
    inputs: int
    states: int
    lift: Callable[..., tuple[Any, ...]]
    combine: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]
    project: Callable[[tuple[Any, ...]], Any]


class Recurrence(Struct, frozen=True, eq=False):
    """z_i = plus(y_i, times(w_i, z_(i-1))) with a user's functions.

    Both must be associative, and `times` must distribute over `plus`.
    """

    plus: Callable[[Any, Any], Any]
    times: Callable[[Any, Any], Any]

    def __call__(self, y: Any, w: Any, before: Any) -> Any:
        """One step."""
        return self.plus(y, self.times(w, before))


def recurrence_scan(plus: Any, times: Any, join: Any = None, name: str = "recurrence") -> Monoid:
    """The scan of z_i = plus(y_i, times(w_i, z_(i-1))); `join` multiplies weights, where that is special."""
    join = join or times

    def combine(before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[Any, ...]:
        (a, u), (b, v) = before, after
        return plus(b, times(v, a)), join(v, u)

    return Monoid(name, 2, 2, lambda y, w: (y, w), combine, lambda s: s[0])


def _join_weights(v: Any, u: Any) -> Any:
    """The product of weights: exactly 0 where one of them is."""
    nothing = np.zeros((), v.dtype)
    return np.where(u == 0, nothing, v) * np.where(v == 0, nothing, u)


def _compensated(before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sum, and all that rounding has lost so far; nothing is lost beside an infinity."""
    (a, lost_a), (b, lost_b) = before, after
    total = a + b
    with np.errstate(invalid="ignore"):
        lost = np.where(np.abs(a) >= np.abs(b), (a - total) + b, (b - total) + a)
    return total, np.where(np.isfinite(total), lost_a + lost_b + lost, np.zeros((), total.dtype))


SEGMENTED = "segmented_"
"""Before a scan's name: its values start anew wherever a second operand is not 0."""


def _segmented(row: Scan) -> Monoid:
    """The scan within segments: the state is a value, and whether a segment has begun since."""

    def combine(before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[Any, ...]:
        (a, begun), (b, begins) = before, after
        return np.where(begins != 0, b, row.ufunc(a, b)), np.where(begins != 0, begins, begun)

    return Monoid(f"{SEGMENTED}{row.name}", 2, 2, lambda x, start: (x, start), combine, lambda s: s[0])


MONOIDS: dict[str, Monoid] = {
    m.name: m
    for m in (
        *map(_segmented, _ROWS),
        Monoid("cumsumprod", 2, 5, frames.lift, frames.combine, lambda s: s[0]),
        recurrence_scan(np.add, frames.weighted, _join_weights, "cumsumprod_complex"),
        Monoid("compensated_add", 1, 2, lambda x: (x, np.zeros_like(x)), _compensated, lambda s: s[0] + s[1]),
    )
}
"""Scans whose states are more than a value, by their names."""


def states_of(fn: str | UserFunction) -> int:
    """How many arrays a scan's state has."""
    if isinstance(fn, UserFunction):
        return 2 if isinstance(fn.function, Recurrence) else 1
    return MONOIDS[fn].states if fn in MONOIDS else 1
