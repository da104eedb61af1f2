"""Other ways to bring operands to a product's tasks, to compare cuboids with; never chosen by themselves.

"broadcast" cuts the main operand, the largest, and gives every task all of the others. "replication" cuts the
result into one block a task and gives each task the parts of the others that its block needs. Both leave the
summed dimension whole.

FuseME (SIGMOD '22), section 2.2: BFO and RFO. Its CuboidMM is cuboids without fusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from msgspec.structs import replace

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.tiling.sketch import StageSketch, TaskAccess
from spartan_ng.plan.absorb import has_product
from spartan_ng.plan.draft import Draft
from spartan_ng.plan.rows import VALUE, Slot

_GRIDS = {"broadcast": "row", "replication": "block"}


def side_slots(draft: Draft, arrays: Sequence[Node | Slot]) -> list[int]:
    """The arrays that a product stage reads besides the main one."""
    reads = [*draft.reads, *(draft.after.reads if draft.after is not None else [])]
    slots = list(dict.fromkeys(r.slot for r in reads if r.slot != VALUE))
    main = max(slots, key=lambda s: prod(arrays[s].shape), default=VALUE)
    return [s for s in slots if s != main]


def constrain(sketch: StageSketch, draft: Draft, arrays: Sequence[Node], strategy: str) -> StageSketch:
    """The stage with the one grid that a strategy allows, and the reads it makes."""
    if strategy not in _GRIDS or not has_product(draft):
        return sketch
    grid = _GRIDS[strategy]
    if strategy == "broadcast":
        sides = side_slots(draft, arrays)
        reads = tuple(_whole(a) if a.array in sides else a for a in sketch.reads)
        sketch = replace(sketch, reads=reads)
    kept = tuple(d for d in sketch.cuttable if d in draft.out)
    return replace(sketch, cuttable=kept, only=grid)


def _whole(access: TaskAccess) -> TaskAccess:
    return TaskAccess(access.array, (WHOLE,) * len(access.labels))
