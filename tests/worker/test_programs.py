"""What the ranks' tasks of random programs have in common: together they do a stage's work once, each reads
what the others expect it to, and every slot dies once.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import TILINGS, config
from spartan_ng.costs import Profile
from spartan_ng.costs.tuned import BLAS_SPEEDUP
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.kernels.blocks import block_sizes
from spartan_ng.plan.lower import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import Fused
from spartan_ng.worker.scheduling.program import Program
from tests.optimizer.fusion.expressions import leaf, sparse_leaf
from tests.programs import programs
from tests.sampling import examples
from tests.test_programs import running_on


def ran(program, workers, tiling) -> Plan:
    """The plan that computed a program's results."""
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling, small_bytes=0):
        with np.errstate(all="ignore"):
            sp.compute(*program.run(sp, sp.array))
        last = session.current().last_run
    assume(last is not None)  # a program may have nothing to compute
    assert last is not None
    return last[0]


def cells(box):
    """Elements of a box."""
    return int(np.prod([hi - lo for lo, hi in box], dtype=int))


@pytest.mark.slow
@examples(200)
@given(program=programs(), workers=st.sampled_from([2, 3, 5]), tiling=st.sampled_from([None, *TILINGS]))
def test_tasks_of_a_plan(program, workers, tiling) -> None:
    plan = ran(program, workers, tiling)
    ranks = [Program(plan, rank) for rank in range(workers)]
    for s, stage in enumerate(plan.stages):
        if isinstance(stage, Fused):
            tasks = [p.tasks[s] for p in ranks if p.tasks[s].box is not None]
            made = [(task.flops, cells(task.box)) for task in tasks]
            times = workers if stage.grid.duplicate else 1
            assert sum(n for _, n in made) == times * cells([(0, n) for n in stage.domain])
            assert len({flops / n for flops, n in made if n}) <= 1, "operations go with the elements"
            assert all(flops >= n for flops, n in made)
    read: dict[int, Counter[int]] = {rank: Counter() for rank in range(workers)}
    for reader in ranks:
        for task in reader.tasks:
            for operand in task.asks():
                for piece in operand.pieces:
                    read[piece.rank][operand.slot] += piece.rank != reader.rank
    kept = {*plan.inputs, *plan.outputs}
    last = {
        slot: s
        for s, stage in enumerate(plan.stages)
        for slot in (*stage.read_slots(), *stage.written_slots())
    }
    for p in ranks:
        assert +p.remote_reads == +read[p.rank]
        assert {slot: s for s, slots in enumerate(p.dying) for slot in slots} == {
            slot: s for slot, s in last.items() if slot not in kept
        }


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("formats", list(product(["dense", "csr"], repeat=2)))
def test_blocks_count_what_is_stored_of_sparse_operands(formats, workers) -> None:
    """And all elements of the others, of which a scalar is one."""
    shape = (400_000, 300)
    leaves = [leaf(*shape) if f == "dense" else sparse_leaf(*shape, density=0.01) for f in formats]
    node = build.map_("multiply", build.map_("add", *leaves), build.constant(2.0))
    plan = lower(topological([node]), [node], Settings(Profile(workers=workers)), "key")
    sparse = {i: 0.03 for i, slot in enumerate(plan.slots) if slot.format == "csr"}  # of one in a hundred
    for rank in range(workers):
        for stage, task in zip(plan.stages, Program(plan, rank).tasks, strict=True):
            assert isinstance(stage, Fused)
            assert task.box is not None
            assert task.sizes == block_sizes(stage, task.box, sparse=sparse)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(8, 3000, 400), (400, 3000, 8), (1, 20_000, 50), (30, 30, 30)]
)
def test_tasks_count_what_products_within_them_add(rows, inner, columns, workers) -> None:
    """However few results they have: threads share what takes long, and each thread's BLAS has one then."""
    x, w, b = leaf(rows, inner), leaf(inner, columns), leaf(columns)
    node = build.map_("maximum", build.map_("add", build.matmul(x, w, x.dtype), b), build.constant(0.0))
    plan = lower(topological([node]), [node], Settings(Profile(workers=workers)), "key")
    counted = sum(task.flops for rank in range(workers) for task in Program(plan, rank).tasks)
    assert counted >= sum(stage.operations(plan.slots) for stage in plan.stages)
    assert counted >= 2 * rows * inner * columns // BLAS_SPEEDUP
