"""The plan generator on GNMF, as in the paper's Fig. 10, and the model space of nested products."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.arrays import ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.optimizer.cuboid.exploit import Together, plan_cuboids
from spartan_ng.optimizer.cuboid.explore import explore_products
from spartan_ng.optimizer.cuboid.model import Graph, Units
from spartan_ng.optimizer.cuboid.space import COLUMNS, ROWS, SUMMED, Resources

F8 = np.dtype(float)
PAPER = Resources(8, 12, 10_000_000_000, 125_000_000, 546_000_000_000)
DATA = {
    "MovieLens": (283_228, 58_098, 27_753_444),
    "Netflix": (480_189, 17_770, 100_480_507),
    "YahooMusic": (1_823_179, 136_736, 717_872_016),
}
NAMES = {
    frozenset({ROWS, SUMMED}): "L",
    frozenset({COLUMNS, SUMMED}): "R",
    frozenset({ROWS, COLUMNS}): "O",
    frozenset({ROWS, COLUMNS, SUMMED}): "MM",
}


def space_name(dims: frozenset[int]) -> str:
    """L, R, O or MM; for what a nested product confines further, the dimensions left."""
    return NAMES.get(dims) or "(" + ", ".join("ijk"[d] for d in sorted(dims)) + ")"


def leaf(*shape: int, nnz: int | None = None) -> Node:
    form = "dense" if nnz is None else "csr"
    return build.data(ArrayRef(shape, F8, format=form, nnz=nnz))


def gnmf(users: int, items: int, nnz: int, rank: int) -> tuple[list[Node], list[Node]]:
    """One iteration of Eq. 6; v[0] to v[11] as in Fig. 10, and the wanted values."""
    x, u, v = leaf(users, items, nnz=nnz), leaf(rank, items), leaf(users, rank)
    v0 = build.transpose(v, (1, 0))
    v1 = build.matmul(v0, x, F8)
    v2 = build.matmul(v0, v, F8)
    v3 = build.map_("multiply", u, v1)
    v4 = build.matmul(v2, u, F8)
    v5 = build.map_("divide", v3, v4)
    v6 = build.transpose(v5, (1, 0))
    v7 = build.matmul(x, v6, F8)
    v8 = build.matmul(v5, v6, F8)
    v9 = build.map_("multiply", v, v7)
    v10 = build.matmul(v, v8, F8)
    v11 = build.map_("divide", v9, v10)
    return [v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11], [v5, v11]


def numbers(members: frozenset[Node], v: list[Node]) -> set[int]:
    return {v.index(n) for n in members}


def test_exploration_finds_the_two_candidates() -> None:
    v, roots = gnmf(5000, 3000, 10_000, 200)
    found = explore_products(topological(roots), roots)
    assert [numbers(c.members, v) for c in found] == [{1, 2, 3, 4, 5}, {7, 8, 9, 10, 11}]
    assert [c.top for c in found] == [v[5], v[11]]


@pytest.mark.parametrize("rank", [200, 1000])
@pytest.mark.parametrize("name", sorted(DATA))
def test_exploitation_splits_off_v2_and_v8(name: str, rank: int) -> None:
    v, roots = gnmf(*DATA[name], rank)
    plan = plan_cuboids(topological(roots), roots, PAPER, Units(index_bytes=0))
    assert [numbers(f.candidate.members, v) for f in plan] == [{1, 3, 4, 5}, {7, 9, 10, 11}, {2}, {8}]
    assert [f.main for f in plan] == [v[1], v[7], v[2], v[8]]
    for f in plan:
        assert f.choice.memory_bytes <= PAPER.task_bytes


def test_a_termination_met_as_an_input_seeds_another_candidate() -> None:
    a, b = leaf(4000, 3000), leaf(3000, 4000)
    shared = build.matmul(a, b, F8)
    left = build.matmul(shared, leaf(4000, 10), F8)
    right = build.matmul(shared, leaf(4000, 20), F8)
    found = explore_products(topological([right, left]), [left, right])
    assert {c.top for c in found} == {shared, left, right}


def test_spaces_of_a_nested_product_are_confined() -> None:
    v, _ = gnmf(5000, 3000, 10_000, 2000)
    graph = Graph(topological([v[5]]))
    space = graph.space(v[1:6], v[5])
    assert space.blocks == (2, 3, 5)
    assert [space_name(o.dims) for o in space.operators] == ["MM", "O", "(i)", "O", "O"]
    # Tasks need V.T by rows for v1 (all users' for v2), all of V for v2, and U by columns for v4.
    dense_v, dense_u = 8 * 5000 * 2000, 8 * 2000 * 3000
    spots = sorted((space_name(m.dims), m.nbytes) for m in space.matrices if not m.output)
    assert spots == [("()", dense_v), ("(i)", dense_v), ("(j)", dense_u), ("R", 12 * 10_000)]
    cut = (2, 3, 5)
    assert space.network_bytes(cut) == 30 * dense_v + 15 * dense_v + 10 * dense_u + 2 * 12 * 10_000
    assert space.memory_bytes(cut) == dense_v + dense_v // 2 + dense_u // 3 + 8000 + dense_u // 6


def test_sparse_masks_reach_the_product() -> None:
    x, u, v = leaf(4000, 3000, nnz=600), leaf(4000, 100), leaf(3000, 100)
    product = build.matmul(u, build.transpose(v, (1, 0)), F8)
    out = build.map_("multiply", x, build.map_("log", build.map_("add", product, build.constant(1e-9))))
    order = topological([out])
    (candidate,) = explore_products(order, [out])
    space = Graph(order).space(candidate.members, candidate.top)
    flops = {o.name: o.flops for o in space.operators}
    assert flops["contract"] == 2 * 600 * 100
    assert flops["log"] == 20 * 600
    assert {m.nbytes for m in space.matrices if m.output} == {600 * 12}


def test_what_fits_only_in_parts_is_split() -> None:
    v, roots = gnmf(5000, 3000, 10_000, 200)
    order = topological(roots)
    whole = Graph(order, Units(block=100)).space(v[1:6], v[5])
    least = whole.memory_bytes(whole.blocks)
    tight = Resources(2, 2, int(least) - 1, 10**9, 10**9)
    plan = plan_cuboids(order, roots, tight, Units(block=100))
    assert len(plan) > 2
    assert all(f.choice.memory_bytes <= tight.task_bytes for f in plan)


def test_a_single_product_that_fits_nowhere_is_an_error() -> None:
    _, roots = gnmf(5000, 3000, 10_000, 200)
    with pytest.raises(MemoryBudgetError, match="No cuboid fits"):
        plan_cuboids(topological(roots), roots, Resources(2, 2, 100, 1, 1))


def test_nodes_are_together_unless_a_split_lies_between_them() -> None:
    """Also those that no operator has, as of a product of a matrix and a vector."""
    u, s, v = leaf(30, 20), leaf(20), leaf(30)
    product = build.matmul(u, s, F8)
    after = build.map_("add", build.map_("exp", product), v)
    large = build.matmul(u, build.transpose(u, (1, 0)), F8)
    order = topological([after, large])
    for workers in (1, 4):
        together = Together(order, [after, large], Profile(workers=workers))
        assert together(product, after)
        assert together(after, product)
        assert together(large, large)
