"""Choose between the interpreter and compiled loops for a task, and have compiled what is worth it.

The rule: a stage that the interpreter has worked on for `HOT_S` seconds in all will be run again, and is
compiled in the background; the first run that finds all its kernels ready uses them. A run never changes
its tier under way, so that runs of one plan give the same bits once the tier is settled. Compiled loops do
not report floating-point errors: where NumPy's error state asks for more than warnings, the
interpreter stays.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.config import config
from spartan_ng.kernels.blocks import Cut, block_sizes, cut
from spartan_ng.kernels.compiled.compile import PATIENCE_S, compiler
from spartan_ng.kernels.compiled.prepared import Compiled, Signature, signature
from spartan_ng.kernels.compiled.segments import VIEWS, NumpyStep, Segment, Step, compiles, split
from spartan_ng.kernels.formats import is_sparse
from spartan_ng.plan.plan import Fused

HOT_S = 0.02
"""Seconds of interpreting after which a stage is compiled."""
LONGEST = 200
"""Rows of a body beyond which compiling takes too long for what it brings."""
_LAYOUTS = 8
"""Layouts of operands that a task keeps."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A compiled stage and how its tile is cut for it."""

    body: Compiled
    cut: Cut


class Tier:
    """One task's way from the interpreter to compiled loops."""

    def __init__(self, stage: Fused, tile: Box) -> None:
        self.stage = stage
        self.tile = tile
        self._choices: dict[Signature, Choice | None] = {}
        self._seconds = 0.0
        self._lock = threading.Lock()

    def choose(self, operands: list[Any], error_state: dict[str, Any]) -> Choice | None:
        """The compiled stage for these operands, or None: interpret this run."""
        mode = config.kernels
        if mode == "interpret" or self.stage.heavy or any(is_sparse(o) for o in operands):
            return None
        if any(v not in ("ignore", "warn") for v in error_state.values()):
            return None
        if mode == "auto" and self._seconds < HOT_S:
            return None
        choice = self._prepared([np.asarray(o) for o in operands])
        if choice is None:
            return None
        waiting = [k for k in choice.body.kernels if not k.settled]
        for kernel in waiting:
            compiler.request(kernel)
        if waiting and mode == "compile":
            compiler.wait(PATIENCE_S)
        return choice if all(k.function is not None for k in choice.body.kernels) else None

    def record(self, seconds: float) -> None:
        """The interpreter has worked on the task for so long."""
        self._seconds += seconds

    def _prepared(self, operands: list[Any]) -> Choice | None:
        key = signature(operands)
        with self._lock:
            if key not in self._choices:
                if len(self._choices) >= _LAYOUTS:
                    self._choices.clear()
                self._choices[key] = prepare(self.stage, self.tile, key)
            return self._choices[key]


def prepare(stage: Fused, tile: Box, operands: Signature) -> Choice | None:
    """A stage laid out for a tile and its operands; None where there is nothing worth compiling."""
    if len(stage.rows) > LONGEST:
        return None
    steps = split(stage, [d for d, _, _ in operands])
    if not compiles(steps, stage):
        return None
    sizes = block_sizes(stage, tile, _held(stage, steps))
    body = Compiled(stage, tile, sizes, operands)
    return Choice(body, cut(stage, tile, sizes, together=True))


def _held(stage: Fused, steps: list[Step]) -> frozenset[int]:
    """The registers that lie in memory between steps, and the reads that several steps see."""
    first = len(stage.reads)
    seen: Counter[int] = Counter()
    held: set[int] = set()
    for step in steps:
        if isinstance(step, Segment):
            seen.update({o.source for o in step.operands})
            held.update(step.stores, (e.register for e in step.endings))
        else:
            seen.update(set(stage.rows[step.register - first].args))
            held.add(step.register)
    views = {i for i, row in enumerate(stage.rows, first) if row.kind in VIEWS}
    return frozenset((held | {r for r, n in seen.items() if n > 1 and r < first}) - views)


def explain_tiers(stage: Fused, dtypes: list[np.dtype[Any]]) -> list[str]:
    """For people: what of a stage is compiled, and why the rest is not; reads have `dtypes`."""
    if len(stage.rows) > LONGEST:
        return [f"interpreted: {len(stage.rows)} rows take too long to compile"]
    out = []
    for step in split(stage, dtypes):
        if isinstance(step, NumpyStep):
            row = stage.rows[step.register - len(stage.reads)]
            if row.kind not in VIEWS:
                out.append(f"{row.fn or row.kind}: interpreted ({step.reason})")
            continue
        names = [*(str(r.fn) for _, r in step.rows), *(e.fold for e in step.endings)]
        out.append(f"{' > '.join(names)}: compiled")
    return out
