"""The memo table: the paper's examples, and the conditions of the four templates."""

from __future__ import annotations

import pytest

from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.optimizer.fusion.explore import Memo, explore
from spartan_ng.optimizer.fusion.operators import Fit, operators
from spartan_ng.optimizer.fusion.partitions import Point, partitions
from spartan_ng.optimizer.fusion.templates import Status, Template
from tests.optimizer.fusion.expressions import (
    als_update,
    leaf,
    matmul,
    minus,
    mlogreg,
    plus,
    row_sums,
    scalar,
    sparse_leaf,
    times,
    total,
    turned,
)

ONE = Profile()


def memo_of(*roots: Node) -> Memo:
    return explore(operators(topological(roots), set(roots), ONE))


def entries(memo: Memo, node: Node) -> set[str]:
    (operator,) = (o for o in memo.operators if o.node is node)
    return {str(e) for e in memo.entries(operator.number)}


def test_mlogreg_has_the_groups_of_figure_5() -> None:
    """P[:, :k] and X.T are views here, index maps of the operands, so their groups of the figure are gone.

    Operators 0 to 5 are the figure's 4 (X @ v), 6 (Q), 7 (rowSums), 8, 9 and 11.
    """
    steps = mlogreg(leaf(100_000, 50), leaf(50, 4), leaf(100_000, 5), 4)
    memo = memo_of(steps["h"])
    assert entries(memo, steps["product"]) == {"R(-1,-1)"}
    assert entries(memo, steps["q"]) == {"R(-1,0)", "R(-1,-1)", "C(-1,-1)"}
    assert entries(memo, steps["sums"]) == {"R(1)", "R(-1)", "C(1)"}, "C(-1) would be one closed operator"
    assert entries(memo, steps["scaled"]) == {"R(-1,2)", "R(-1,-1)", "C(-1,-1)"}
    rows = {"R(1,3)", "R(1,-1)", "R(-1,3)"}
    assert entries(memo, steps["difference"]) == rows | {"C(1,3)", "C(1,-1)", "C(-1,3)", "C(-1,-1)"}
    assert entries(memo, steps["h"]) == {"R(-1,4)"}, "the column aggregate closes: R(-1,-1) is pruned"


def test_mlogreg_has_one_partition_and_its_interesting_points() -> None:
    steps = mlogreg(leaf(100_000, 50), leaf(50, 4), leaf(100_000, 5), 4)
    memo = memo_of(steps["h"])
    (partition,) = partitions(memo)
    assert partition.roots == {5}
    assert partition.shared == {1}, "Q has two consumers"
    assert set(partition.points) == {Point(2, 1), Point(4, 1), Point(5, 4)}


def test_an_outer_template_needs_a_sparse_driver() -> None:
    u, v = leaf(20_000, 100), leaf(20_000, 100)
    product = matmul(u, turned(v))
    log = build.map_("log", plus(product, scalar(1e-15)))
    for x, is_outer in ((sparse_leaf(20_000, 20_000, density=0.01), True), (leaf(20_000, 20_000), False)):
        loss = total(times(x, log))
        memo = memo_of(loss)
        assert (Template.OUTER in memo.groups[-1]) == is_outer
        assert all(
            g[Template.OUTER].status is Status.OPEN_INVALID for g in memo.groups[:3] if Template.OUTER in g
        )


def test_an_addition_of_dense_cells_does_not_fuse_an_outer_product() -> None:
    x, y = sparse_leaf(20_000, 20_000, density=0.01), leaf(20_000, 20_000)
    product = matmul(leaf(20_000, 20), turned(leaf(20_000, 20)))
    masked = times(x, product)
    out = plus(y, masked)
    memo = memo_of(out)
    assert entries(memo, masked) == {"O(-1,0)", "C(-1,-1)"}
    assert entries(memo, out) == {"C(-1,1)", "C(-1,-1)"}
    (partition,) = (p for p in partitions(memo) if p.points)
    assert partition.points == (Point(2, 1),), "the template switch"


def test_a_product_of_wide_factors_opens_no_outer_template() -> None:
    product = matmul(leaf(200, 5000), leaf(5000, 200))
    out = times(sparse_leaf(200, 200, density=0.1), product)
    assert not any(Template.OUTER in g for g in memo_of(out).groups)


def test_a_row_template_opens_at_the_product_and_merges_cells_below() -> None:
    """The paper's X.T @ (y * z)."""
    y, z = leaf(100_000), leaf(100_000)
    cells = times(y, z)
    out = matmul(turned(leaf(100_000, 50)), cells)
    assert entries(memo_of(out), out) == {"R(-1,0)"}


def test_a_full_aggregate_has_cell_and_multi_aggregate_plans() -> None:
    x = leaf(1000, 50)
    product = times(x, x)
    out = total(product)
    assert entries(memo_of(out), out) == {"R(0)", "M(0)", "C(0)"}


def test_a_column_aggregate_closes_and_parts_the_graph() -> None:
    x = leaf(100_000, 50)
    squares = times(x, x)
    centred = minus(squares, build.fold("add", squares, (0,)))
    memo = memo_of(total(build.map_("exp", centred)))
    edges = {(o.number, e.producer): e.fit for o in memo.operators for e in o.edges}
    assert edges[(2, 1)] is Fit.NONE
    assert [p.operators for p in partitions(memo)] == [(0, 1, 2, 3, 4)], "joined by the shared squares"


def test_row_sums_stay_open_for_their_consumers() -> None:
    x = leaf(100_000, 50)
    shares = build.map_("divide", x, row_sums(x))
    assert entries(memo_of(total(shares)), shares) == {"R(-1,0)", "R(-1,-1)", "C(-1,-1)"}


def test_als_update_is_an_outer_and_a_cell_plan() -> None:
    n = 20_000
    steps = als_update(sparse_leaf(n, n, density=0.01), leaf(n, 20), leaf(n, 20), leaf(n, 1))
    memo = memo_of(steps["out"])
    outer = {o.node for o, g in zip(memo.operators, memo.groups, strict=True) if Template.OUTER in g}
    assert {steps["product"], steps["masked"], steps["update"]} <= outer
    assert steps["out"] not in outer


@pytest.mark.parametrize("length", [10, 1000])
def test_a_long_chain_has_linearly_many_entries(length: int) -> None:
    node = leaf(1000)
    for _ in range(length):
        node = build.map_("negative", node)
    memo = memo_of(node)
    assert sum(1 for o in memo.operators for _ in memo.entries(o.number)) == 2 * length - 1
