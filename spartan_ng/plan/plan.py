"""The physical program: stages over slots, the same for one worker and for a thousand.

A plan says nothing about single tiles. Every worker derives its own task of a stage from the stage's
grid and its rank, reads regions of the arrays it needs, and writes one tile of each result. Stages run
in their order on each worker, and no worker waits for another but for the data it reads.

Slots are the plan's arrays: inputs are bound when it runs, outputs outlive it, the rest are dropped
after their last read. An array that is kept in several tilings has a slot for each. A plan has no values
in it (0-d inputs are slots, too), so that the second iteration of a loop finds the first one's plan.
"""

from __future__ import annotations

from msgspec import Struct

from spartan_ng.ops.functions import UserFunction, users_of
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stages import Stage
from spartan_ng.sinks.sink import Sink


class Plan(Struct, frozen=True):
    """Stages in the order in which every worker runs them."""

    key: str
    slots: tuple[Slot, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    stages: tuple[Stage, ...]
    workers: int = 1
    predicted_bytes: tuple[int, ...] = ()
    """Bytes each stage moves between workers, as predicted."""
    ranks: int = 1
    """The first so many ranks hold tiles or have tasks; the others need not hear of the plan."""
    also: tuple[tuple[int, int], ...] = ()
    """What the last inputs are: `(n, k)` is copy k of input n, in another tiling."""
    keeps: tuple[int, ...] = ()
    """What the last outputs are: new copies of these inputs, in another tiling."""

    @property
    def asked(self) -> tuple[int, ...]:
        """The outputs that it was made for."""
        return self.outputs[: len(self.outputs) - len(self.keeps)]

    @property
    def suspects(self) -> tuple[UserFunction, ...]:
        """The users' functions that it calls, under which workers may die again; what writes to files is
        ours."""
        return tuple(f for f in users_of(self.stages) if not isinstance(f.function, Sink))
