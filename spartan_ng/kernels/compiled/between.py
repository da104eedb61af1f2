"""Compiled counts of elements above bounds, and the elements between some of them: a look for quantiles.

NumPy goes over the elements some four times for each bound. Here a strip that is in the first-level cache is
compared with all of them, 64 elements to a word of bits, and what is wanted is picked by such words. The
answer is that of `ops.line_states.Between`, in the same order.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.costs.choices import BETWEEN_ELEMENTS
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import constant_of, source_of
from spartan_ng.kernels.compiled.trial import end_of, first_flaw
from spartan_ng.kernels.compiled.trust import at_hand
from spartan_ng.ops.line_states import Between, State

_WORD = 64
"""Elements that are compared at a time, one bit each."""
_STRIP: int = constant_of("between", "STRIP")
_AT_ONCE = 4
"""Bounds that an element is compared with at a time."""
_WIDTHS = {"f": (4, 8), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8)}


def state_between(line: Between, x: Any) -> State | None:
    """The state of a part, as from `Between.state`, or None: NumPy has to make it (for now)."""
    dtype = x.dtype
    if (
        x.size < max(BETWEEN_ELEMENTS, _WORD)
        or dtype.itemsize not in _WIDTHS.get(dtype.kind, ())
        or not dtype.isnative
    ):
        return None
    least = "-np.inf" if dtype.kind == "f" else str(np.iinfo(dtype).min)
    source = source_of("between", NUMBER=f"np.{dtype.name}", LEAST=least, WIDTH=str(dtype.itemsize))
    bounds = _strict(line, dtype)
    if bounds is None:
        return None
    x = x.ravel("K")
    kernel = at_hand(source, None, lambda f: _flaw(f, line, bounds, x), "elements between bounds")
    return None if kernel is None else _state(kernel, line, bounds, x)


def _flaw(kernel: Function, line: Between, bounds: list[Any], x: Any) -> str:
    """What the kernel makes otherwise than NumPy of the last elements."""
    part = end_of(x)
    (counts, *found), (numbers, *wanted) = _state(kernel, line, bounds, part), line.state(part, 0)
    return first_flaw([(counts, numbers), (np.concatenate(found), np.concatenate(wanted))], None)


def _strict(line: Between, dtype: np.dtype[Any]) -> list[Any] | None:
    """Bounds that elements of a dtype lie strictly above; None where there are no such."""
    found = []
    for value, is_below in line.bounds:
        bound = dtype.type(value)
        if not is_below and bound == (-np.inf if dtype.kind == "f" else np.iinfo(dtype).min):
            return None
        found.append(bound if is_below else _before(bound))
    return found


def _before(bound: Any) -> Any:
    """The next smaller number of a dtype; of the least one there is nothing to tell."""
    if bound.dtype.kind != "f":
        return bound - bound.dtype.type(1)
    with np.errstate(all="ignore"):
        return np.nextafter(bound, bound.dtype.type(-np.inf))


def _state(kernel: Function, line: Between, bounds: list[Any], x: Any) -> State:
    # Bounds turn marks, those with as much wanted above as below twice. Nothing lies above the last ones.
    times = [1 if above != below else 2 for below, above in pairwise(line.wanted)]
    asked = [b for bound, turns in zip(bounds, times, strict=True) for b in [bound] * turns]
    size = _AT_ONCE * max(-(-len(asked) // _AT_ONCE), 1)
    asked += [np.nan if x.dtype.kind == "f" else np.iinfo(x.dtype).max] * (size - len(asked))
    of_bounds, counts = np.array(asked, x.dtype), np.zeros(size + 2, np.int64)
    marks = np.empty(_STRIP, np.int64)
    most = min(x.size, line.most + 1)
    out = np.empty(most + _STRIP * _WORD, x.dtype)
    at, bounds_at, counts_at, into, strip = map(address, (x, of_bounds, counts, out, marks))
    row = [at, x.size, bounds_at, size, counts_at, into, len(out), strip]
    kernel(np.array([[*row, -line.wanted[0], any(line.wanted)]], np.int64))
    *above, numbers, found = counts.tolist()
    known = [above[k - 1] for k in accumulate(times)]
    return line.bounded(np.array([*known, numbers], np.int64), [out[: min(found, most)].copy()])
