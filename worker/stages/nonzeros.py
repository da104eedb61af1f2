"""A compiled pass over the non-zeros of a sparse tile: runs of stored rows for threads, then the result.

Fusion plans (SystemML), section 2.2: the template Outer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays.sparse import csr_array
from spartan_ng.kernels.compiled.bound import Bound
from spartan_ng.plan.stages import Fused
from spartan_ng.worker.scheduling.shares import Task

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor


def run_nonzeros(ex: Executor, run: Run, stage: Fused, task: Task, bound: Bound) -> list[Any]:
    """Run a sampled stage: store its sparse result, or give the arrays of its reduced one."""
    threads = 1 if bound.is_small else ex.threads
    ex.parallel(run, bound.turns(threads), lambda: bound.run, bound.is_small, is_done=bound.is_done)
    (write,), (reducer,) = stage.writes, task.reducers
    if reducer is None:
        pattern = bound.driver
        parts = (bound.values, pattern.indices.copy(), pattern.indptr.copy())
        ex.put(run, write.slots[0], csr_array(parts, shape=pattern.shape))
        return []
    spans = bound.spans
    if spans:
        ex.parallel(run, spans, lambda: bound.add, small=False)
    value = bound.folded()
    if not write.partial:
        value = reducer.finalize((value,))
    slot = run.plan.slots[write.slots[0]]
    tile = np.asarray(value, slot.dtype, order="C")
    tile = tile.reshape((*(1 for _ in write.partial), *tile.shape)) if write.partial else tile
    if ex.store.pool is None:
        return [tile]
    out = ex.store.allocate(tile.shape, slot.dtype)  # where peers read it
    np.copyto(out, tile)
    return [out]
