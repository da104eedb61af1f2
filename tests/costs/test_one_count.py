"""One count of operations, and one of bytes: what tiling says of drafts and `explain` of stages is the same,
and, of operations, what fusion says of nodes.

Stages do more than their nodes only where arrays are cut (`Stage.added`): states are combined, sorted parts
merged, parts of scans gone over twice. They write and read partial states, sorted parts and second copies,
too, which no node of the graph is. Not all know one thing: how many non-zeros a sum of sparse arrays has
that is stored. Fusion takes it for as many as it may have at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy
import pytest
from hypothesis import given, settings
from scipy import sparse

import spartan_ng as np
from spartan_ng.arrays import ArrayRef
from spartan_ng.arrays.sparse import csr_bytes
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import of_node, work_of_node
from spartan_ng.costs.traffic import touched
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.ops.by_ufunc import Fold
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS, ArgFold
from spartan_ng.ops.joins import AXIS_FUNCTIONS
from spartan_ng.ops.matrices import MATRIX_FUNCTIONS
from spartan_ng.ops.random import DISTRIBUTIONS
from spartan_ng.ops.scans import MONOIDS, SCANS
from spartan_ng.optimizer.cuboid.sizes import count_nonzeros, matrix_bytes, operations
from spartan_ng.optimizer.fusion.operators import estimates, stored_parts
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from spartan_ng.plan.lower import Lowering
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import Fused, ScanTotals, Stage
from spartan_ng.plan.stages.stage import stored_in
from tests.programs import Program, programs

DRAWS = numpy.random.default_rng(0)
F8 = numpy.dtype(float)
X, Y = DRAWS.random((2000, 50)), DRAWS.random((50, 30))
I = DRAWS.integers(0, 2000, 7000)  # noqa: E741
S, T = (sparse.random_array((2000, 50), density=d, rng=DRAWS, format="csr") for d in (0.05, 0.02))


def assigned(x: Any) -> Any:
    """Written into."""
    y = x.copy()
    y[3:9] = 0
    return y


def scattered(x: Any, i: Any) -> Any:
    """Written into at places that only data say."""
    y = x.copy()
    y[i] = 0
    return y


PROGRAMS: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "rows looked up": lambda x, y, i, s, t: x[i],
    "few rows looked up": lambda x, y, i, s, t: x[i[:700]],
    "columns looked up": lambda x, y, i, s, t: x[:, i % 50],
    "looked up and summed": lambda x, y, i, s, t: x[i].sum(axis=0),
    "looked up beside wider ones": lambda x, y, i, s, t: x[i[:50], 0] + x,
    "searched": lambda x, y, i, s, t: np.searchsorted(np.sort(x[:, 0]), x[:, 1]),
    "masked": lambda x, y, i, s, t: x[x[:, 0] > 0.5] * 2,
    "places of what is true": lambda x, y, i, s, t: np.nonzero(x[:, 0] > 0.5)[0],
    "assigned": lambda x, y, i, s, t: assigned(x),
    "scattered": lambda x, y, i, s, t: scattered(x[:, 0], i[:900]),
    "put together": lambda x, y, i, s, t: np.concatenate([x, x * 2]),
    "rolled": lambda x, y, i, s, t: np.roll(x, 3, 0),
    "cut by hand": lambda x, y, i, s, t: np.tile_as(x * 2, "column") + 1,
    "reshaped": lambda x, y, i, s, t: (x[3:] * 2).reshape(-1) + 1,
    "sums": lambda x, y, i, s, t: (x * 2 + 1).sum(axis=0),
    "sums of some": lambda x, y, i, s, t: x.sum(where=x > 0.5),
    "variance": lambda x, y, i, s, t: x.var(axis=0),
    "covariance": lambda x, y, i, s, t: np.cov(x, rowvar=False),
    "gram": lambda x, y, i, s, t: x.T @ x,
    "product": lambda x, y, i, s, t: numpy.e * (x @ y),
    "products of a stack": lambda x, y, i, s, t: x.reshape(20, 100, 50) @ y,
    "nearest": lambda x, y, i, s, t: ((x[:, None] - y.T[None]) ** 2).sum(2).argmin(1),
    "grouped sums": lambda x, y, i, s, t: (i[:2000, None] == np.arange(7)).T.astype(float) @ x,
    "triangle": lambda x, y, i, s, t: np.tril(x @ x.T),
    "outer": lambda x, y, i, s, t: np.outer(x[:, 0], y[:, 0]),
    "differences": lambda x, y, i, s, t: np.diff(x, axis=0),
    "sorted rows": lambda x, y, i, s, t: np.sort(x, axis=1),
    "sorted columns": lambda x, y, i, s, t: np.sort(x, axis=0),
    "sorted": lambda x, y, i, s, t: np.sort(x.reshape(-1)),
    "sorted stably": lambda x, y, i, s, t: np.sort(x.reshape(-1), kind="stable"),
    "sorting indices": lambda x, y, i, s, t: np.argsort(x.reshape(-1)),
    "first places": lambda x, y, i, s, t: np.sort(x[:, 0])[:5],
    "quantiles": lambda x, y, i, s, t: np.quantile(x.reshape(-1), [0.3, 0.7]),
    "quantiles of columns": lambda x, y, i, s, t: np.quantile(x, 0.3, axis=0),
    "distinct": lambda x, y, i, s, t: np.unique(i % 7),
    "histogram": lambda x, y, i, s, t: np.histogram(x, 20)[0],
    "counts": lambda x, y, i, s, t: np.bincount(i),
    "scan and fold": lambda x, y, i, s, t: (np.minimum.accumulate(x, 0) * 2).max(),
    "scan of a line": lambda x, y, i, s, t: np.cumsum(x.reshape(-1)),
    "draws": lambda x, y, i, s, t: np.random.default_rng(0).random((2000, 50)).sum(0),
    "function of elements": lambda x, y, i, s, t: np.map(lambda v: v * 2, x),
    "function of tiles": lambda x, y, i, s, t: np.join_update(
        lambda e, v: [((0,), v)], np.add, [x], [0], (50,), dtype=float
    ),
    "CSR times vector": lambda x, y, i, s, t: s @ y[:, 0],
    "CSR times matrix": lambda x, y, i, s, t: s @ y,
    "CSR turned times matrix": lambda x, y, i, s, t: s.T @ x,
    "CSR times CSR": lambda x, y, i, s, t: s.T @ s,
    "CSR doubled": lambda x, y, i, s, t: s * 2,
    "CSR doubled and summed": lambda x, y, i, s, t: (s * 2).sum(0),
    "CSR times dense, by elements": lambda x, y, i, s, t: (s * x).sum(1),
    "CSR rows": lambda x, y, i, s, t: s[30:90] @ y,
    "sums of CSR": lambda x, y, i, s, t: (s + t).sum(0),
    "product at CSR's": lambda x, y, i, s, t: s * (x @ (y @ y.T)),
    "sum of a product at CSR's": lambda x, y, i, s, t: (s * np.exp(x @ (y @ y.T))).sum(),
}

AT_MOST = {"sums of CSR"}


class Counts(NamedTuple):
    """Operations of one draft of a plan."""

    names: tuple[str, ...]
    nodes: int
    """As fusion says of what it computes, each once."""
    tiled: int
    staged: int
    """Of its stages, without what they add."""
    tiled_bytes: int
    """Bytes that pass through memory for it, as tiling says,"""
    staged_bytes: int
    """and of its stages, but for arrays that are there because others are cut."""


def counts(roots: Sequence[Node], workers: int) -> list[Counts]:
    """What each says of the drafts of a plan."""
    roots = run_passes(PASSES, roots, ())
    order = list(topological(roots))
    lowering = Lowering(order, roots, Settings(Profile(workers=workers)), {})
    choice = lowering.choose()
    plan, known = lowering.plan("plan", choice), estimates(order)
    drafts, (sketches, _), _ = choice

    def of(node: Node) -> int:
        driven = lowering.drivers.get(node)
        share = min(known[d].density for d in driven) if driven else None
        return work_of_node(node, stored_parts(node, known), share) if driven else known[node].work

    makes = {result.slot: number for number, draft in enumerate(drafts) for result in draft.results}
    staged, staged_bytes, waiting = Counter[int](), Counter[int](), list[Stage]()
    for stage in plan.stages:
        waiting.append(stage)
        made = [makes[slot] for slot in stage.written_slots() if slot in makes]
        if made:
            staged[made[0]] += sum(s.operations(plan.slots) - s.added(plan.slots) for s in waiting)
            staged_bytes[made[0]] += bytes_of_nodes(waiting, plan.slots, len(lowering.nodes))
            waiting = []
    assert not waiting, "every stage helps to make something"
    return [
        Counts(
            tuple(map(str, draft.members)),
            sum(map(of, {*draft.members})),
            sketch.flops,
            staged[number],
            sketch.touched_bytes,
            staged_bytes[number],
        )
        for number, (draft, sketch) in enumerate(zip(drafts, sketches, strict=True))
    ]


def bytes_of_nodes(stages: Sequence[Stage], slots: Sequence[Slot], nodes: int) -> int:
    """Bytes that stages read and write of the first slots, which nodes have, or of copies of these."""
    copies = {
        stage.written_slots()[0]: stage.read_slots()[0]
        for stage in stages
        if isinstance(stage, Fused) and not stage.every_row and stage.written_slots()[0] >= nodes
    }
    passes = [stage for stage in stages if not isinstance(stage, ScanTotals)]
    seen = [
        (slot, elements, turned)
        for stage in passes
        if stage.written_slots()[0] not in copies
        for read, elements, turned in stage.seen(slots)
        if (slot := copies.get(read, read)) < nodes
    ]
    written = [slot for stage in passes for slot in stage.written_slots() if slot < nodes]
    return sum(touched(seen, written, stored_in(slots)).values())


def check(roots: Sequence[Node], at_most: bool = False) -> None:
    """All say the same, on one worker and on four; or fusion says what it is `at_most`."""
    for workers in (1, 4):
        for found in counts(roots, workers):
            assert found.tiled == found.staged, (workers, found)
            assert found.tiled_bytes == found.staged_bytes, (workers, found)
            assert found.nodes == found.tiled or (at_most and found.nodes > found.tiled), (workers, found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    with np.config.override(small_bytes=0):
        made = PROGRAMS[name](*map(np.array, (X, Y, I, S, T)))
        check([made._node()], at_most=name in AT_MOST)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(program=programs(most=12))
def test_random_programs(program: Program) -> None:
    with np.config.override(small_bytes=0):
        made = program.run(np, np.array)
        check([a._node() for a in made if isinstance(a, np.ndarray)])


def leaf(*shape: int, dtype: Any = F8) -> Node:
    """An array that is there, as far as plans are concerned."""
    return build.data(ArrayRef(shape, numpy.dtype(dtype)))


def mapped(name: str) -> Node:
    """A row of the table of elementwise functions, with a fold behind it."""
    row = ELEMENTWISE[name]
    params = (0,) if row.nout > 1 else ()
    node = build.map_(name, *(leaf(300, 40) for _ in range(row.nin)), dtype=F8, params=params)
    return build.fold("add", node, (1,))


def folded(name: str, axes: tuple[int, ...]) -> Node:
    """A row of the table of folds."""
    whole = name.startswith("bitwise") or name == "gcd"
    return build.fold(name, leaf(300, 40, dtype=int if whole else F8), axes)


def scanned(name: str, axis: int) -> Node:
    """A row of either table of scans, with a step before it and behind it."""
    if name in SCANS:
        whole = name.startswith("bitwise") or name in ("gcd", "lcm")
        x = build.map_("negative", leaf(300, 40, dtype=int if whole else F8))
        return build.scan(name, x, axis)
    x, y = leaf(300, 40), leaf(300, 40)
    return build.map_(
        "negative",
        build.scan(name, x, axis) if MONOIDS[name].inputs == 1 else build.recurrence(name, x, y, axis),
    )


def of_matrices(name: str) -> Node:
    """A row of the table of functions of matrices, on a stack."""
    return build.matrices(name, [leaf(30, 4, 4)], [True], (30,), 16, dtype=F8)


def along(name: str, shape: tuple[int, ...], axis: int) -> Node:
    """A row of the table of functions of whole lines."""
    return build.along_axis(name, [leaf(*shape)], axis, dtype=numpy.dtype(int) if "arg" in name else F8)


def drawn(name: str) -> Node:
    """A row of the table of distributions, with a fold behind it."""
    return build.fold("add", build.random(name, ("seed", 0), (), (300, 40), F8), (0,))


ROWS: dict[str, Callable[[], Node]] = {
    **{f"map {name}": partial(mapped, name) for name in ELEMENTWISE},
    **{
        f"fold {name} {axes}": partial(folded, name, axes)
        for name, row in FOLDS.items()
        for axes in ((0,), (1,), (0, 1))
        if isinstance(row, Fold) or len(axes) == 1 or not (isinstance(row, ArgFold) or "prefix" in name)
    },
    **{f"scan {name} {axis}": partial(scanned, name, axis) for name in (*SCANS, *MONOIDS) for axis in (0, 1)},
    **{
        f"along axis {name} {shape}": partial(along, name, shape, axis)
        for name in AXIS_FUNCTIONS
        for shape, axis in (((300, 40), 0), ((300, 40), 1), ((9000,), 0))
    },
    **{f"matrices {name}": partial(of_matrices, name) for name in MATRIX_FUNCTIONS},
    **{f"draws {name}": partial(drawn, name) for name in DISTRIBUTIONS},
    "product": lambda: build.matmul(leaf(300, 40), leaf(40, 50), F8),
}


@pytest.mark.every
@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_every_table(name: str) -> None:
    check([ROWS[name]()])


@pytest.mark.parametrize("name", ROWS)
def test_cuboids_count_dense_nodes_alike(name: str) -> None:
    """As their paper does, by rates of operations and not of a loop: before BLAS is faster."""
    order = list(topological([ROWS[name]()]))
    nonzeros = count_nonzeros(order)
    for node in order:
        assert node.data is not None or operations(node, node.size, nonzeros) == of_node(node), node
        assert matrix_bytes(node, nonzeros) == node.nbytes


def test_cuboids_leave_out_where_sparse_rows_begin() -> None:
    node = build.data(ArrayRef((300, 40), F8, format="csr", nnz=600))
    whole = csr_bytes(600, 300, F8.itemsize)
    assert whole - csr_bytes(0, 300, F8.itemsize) == matrix_bytes(node, count_nonzeros([node]))


def test_only_cut_arrays_add_work() -> None:
    with np.config.override(small_bytes=0):
        made = np.cumsum(np.array(X), axis=0)._node()
    for workers, adds in ((1, False), (4, True)):
        roots = run_passes(PASSES, [made], ())
        lowering = Lowering(list(topological(roots)), roots, Settings(Profile(workers=workers)), {})
        plan = lowering.plan("plan", lowering.choose())
        added = sum(stage.added(plan.slots) for stage in plan.stages)
        assert (added > 0) == adds
