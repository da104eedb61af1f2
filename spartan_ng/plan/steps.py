"""Cut a product's tile into steps: parts that threads share, and that side work is done for one by one.

BLAS shares a dense product between threads by itself, and wants it whole; of a stack of them threads take
some each. SciPy does not share a sparse one: it is cut along the rows of the CSR operand, few times where
those are summed over, for each part then has a state of the size of the result. Where an operand is computed
on the way, only a step's part of it is ever there; a step is long enough along i and j that computing an
operand again for each is nothing beside the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.costs.choices import STACKED_FLOPS
from spartan_ng.plan.absorb import stacked_dimensions
from spartan_ng.plan.draft import Draft
from spartan_ng.plan.rows import Slot

_STATES_SHARE = 16
_SUMMED_PARTS, _KEPT_PARTS = 4, 8
KEPT_STEP, SUMMED_STEP = 2048, 256
"""Elements of a step along a dimension of the result, and along a summed one."""


def heavy_steps(
    draft: Draft, slots: Sequence[Slot], grid: Tiling, memory_bytes: int | None = None
) -> tuple[int, ...]:
    """The number of blocks along each domain dimension of a heavy draft's tile; empty for one block. With
    `memory_bytes` a step's result takes no more than one part in `_STATES_SHARE` of them."""
    steps = [1] * len(draft.domain)
    tile = [-(-n // parts) for n, parts in zip(draft.domain, grid.parts, strict=True)]
    stacked = stacked_dimensions(draft.reducers[-1]) if draft.reducers else []
    if stacked:
        d = max(stacked, key=lambda d: tile[d])
        steps[d] = min(tile[d], max(2 * prod(tile) // STACKED_FLOPS, 1))
    if draft.rows and draft.reducers:
        for d, n in enumerate(tile):
            steps[d] = max(1, n // (KEPT_STEP if d in draft.out else SUMMED_STEP))
        kept = [d for d in draft.out if d != WHOLE and d not in draft.whole]
        itemsize = draft.reducers[0].dtype.itemsize
        while memory_bytes is not None and kept:
            step = {d: -(-tile[d] // steps[d]) for d in kept}
            longest = max(kept, key=lambda d: step[d])
            if step[longest] == 1 or prod(step.values()) * itemsize * _STATES_SHARE <= memory_bytes:
                break
            steps[longest] *= 2
    for read in draft.reads:
        if slots[read.slot].format == "csr" and (d := read.axes[0].label) != WHOLE:
            parts = _KEPT_PARTS if d in draft.out else _SUMMED_PARTS
            steps[d] = max(steps[d], min(parts, draft.domain[d]))
    for d in draft.whole:
        steps[d] = 1
    return tuple(steps) if max(steps, default=1) > 1 else ()


def turning(draft: Draft) -> int | None:
    """The summed dimension along which a product's task may go part after part, if there is one."""
    if len(draft.results) > 1 or not draft.reducers or draft.driver >= 0:
        return None
    summed = [d for d, n in enumerate(draft.domain) if d not in draft.out and n > 1 and d not in draft.whole]
    return summed[0] if len(summed) == 1 else None
