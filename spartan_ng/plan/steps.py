"""Cut a product's tile into steps: parts that threads share, or that side work is done for one by one.

BLAS shares a dense product between threads by itself, and wants it whole. SciPy does not share a sparse
one: it is cut along the rows of the CSR operand, few times where those are summed over, for each part then
has a state of the size of the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from spartan_ng.plan.draft import Draft
from spartan_ng.plan.plan import WHOLE, Slot

_SUMMED_PARTS, _KEPT_PARTS = 4, 8


def heavy_steps(draft: Draft, slots: Sequence[Slot]) -> tuple[int, ...]:
    """The number of blocks along each domain dimension of a heavy draft's tile; empty for one block."""
    steps = [1] * len(draft.domain)
    for read in draft.reads:
        if slots[read.slot].format == "csr" and (d := read.axes[0].label) != WHOLE:
            parts = _KEPT_PARTS if d in draft.out else _SUMMED_PARTS
            steps[d] = min(parts, draft.domain[d])
    return tuple(steps) if max(steps, default=1) > 1 else ()
