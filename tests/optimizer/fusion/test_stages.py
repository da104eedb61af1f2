"""What runs in one pass: the stages of well-known expressions."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.plan.lower import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import Fused

F8 = np.dtype(float)


def plan_of(*roots: Node, workers: int = 1, fusion: str = "cost") -> Plan:
    settings = Settings(Profile(workers=workers), fusion=fusion)
    return lower(topological(roots), list(roots), settings, "test")


def leaf(*shape: int) -> Node:
    return build.constant(np.ones(shape))


def sigmoid(x: Node) -> Node:
    one = build.constant(1.0)
    return build.map_("divide", one, build.map_("add", one, build.map_("exp", build.map_("negative", x))))


def test_a_chain_of_maps_under_a_fold_is_one_stage() -> None:
    x, y = leaf(1000, 50), leaf(1000, 50)
    total = build.fold("add", build.map_("multiply", build.map_("exp", x), y), (0, 1))
    assert len(plan_of(total).stages) == 1
    assert len(plan_of(total, fusion="off").stages) == 3


def test_a_logistic_gradient_reads_its_matrix_in_one_stage() -> None:
    x, w, y = leaf(5000, 50), leaf(50), leaf(5000)
    residual = build.map_("subtract", sigmoid(build.matmul(x, w, F8)), y)
    gradient = build.matmul(build.transpose(x, (1, 0)), residual, F8)
    (stage,) = plan_of(gradient).stages
    assert isinstance(stage, Fused)
    assert not stage.heavy


def test_softmax_is_one_stage_and_cut_along_rows() -> None:
    x = leaf(5000, 50)
    shifted = build.map_("subtract", x, build.reshape(build.fold("maximum", x, (1,)), (5000, 1)))
    e = build.map_("exp", shifted)
    out = build.map_("divide", e, build.reshape(build.fold("add", e, (1,)), (5000, 1)))
    (stage,) = plan_of(out, workers=4).stages
    assert isinstance(stage, Fused)
    assert stage.grid.parts == (4, 1)


def test_folds_of_one_value_are_results_of_one_stage() -> None:
    e = build.map_("exp", leaf(1000, 50))
    (stage,) = plan_of(build.fold("add", e, (0,)), build.fold("maximum", e, (1,)), e).stages
    assert isinstance(stage, Fused)
    assert len(stage.writes) == 3
    assert len(stage.rows) == 1


def test_a_value_with_a_scan_among_its_readers_is_stored_where_it_is_folded() -> None:
    e = build.map_("exp", leaf(1000, 50))
    fused, _ = plan_of(build.scan("add", e, 0), build.fold("add", e, (0,)), fusion="no_redundancy").stages
    assert isinstance(fused, Fused)
    assert len(fused.writes) == 2


def test_sums_of_products_with_one_array_share_its_read() -> None:
    x, y, z = leaf(1000, 50), leaf(1000, 50), leaf(1000, 50)
    sums = [build.fold("add", build.map_("multiply", x, other), (0, 1)) for other in (y, z)]
    (stage,) = plan_of(*sums).stages
    assert isinstance(stage, Fused)
    assert len(stage.reads) == 3


@pytest.mark.parametrize("name", ["add", "maximum"])
def test_what_reads_a_stored_value_shares_its_pass(name: str) -> None:
    """As of an array that is there: here the sums of products with one that is sorted first."""
    y, z = leaf(1000, 50), leaf(1000, 50)
    x = build.along_axis("sort", [leaf(1000, 50)], 0, dtype=F8)
    sums = [build.fold(name, build.map_("multiply", x, other), (0, 1)) for other in (y, z)]
    _, stage = plan_of(*sums).stages
    assert isinstance(stage, Fused)
    assert len(stage.reads) == 3
    assert len(stage.writes) == 2


def test_a_pass_along_lines_takes_in_one_that_sees_them_whole() -> None:
    """Of row sums the logarithm, or a wanted view, and column sums of the same matrix."""
    x = leaf(10_000, 50)
    sums = build.fold("add", x, (1,))
    for rows in (build.map_("log", sums), build.reshape(sums, (10_000, 1))):
        (stage,) = plan_of(rows, build.fold("add", x, (0,))).stages
        assert isinstance(stage, Fused)
        assert stage.domain == (10_000, 50)
        assert stage.whole == (1,)


@pytest.mark.slow
def test_lines_too_long_for_a_block_are_not_kept_whole_for_another_pass() -> None:
    x = leaf(1000, 20_000)
    rows = build.map_("log", build.fold("add", x, (1,)))
    assert len(plan_of(rows, build.fold("add", x, (0,))).stages) >= 2


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_sums_that_share_arrays_in_a_row_share_one_pass(order: tuple[int, ...]) -> None:
    """The first and the last have no array in common."""
    x, y, z, w = (leaf(200_000) for _ in range(4))
    sums = [build.fold("add", build.map_("multiply", *pair), (0,)) for pair in ((x, y), (y, z), (z, w))]
    (stage,) = plan_of(*(sums[i] for i in order), fusion="no_redundancy").stages
    assert isinstance(stage, Fused)
    assert len(stage.reads) == 4


def test_a_result_does_not_join_a_stage_that_waits_for_it() -> None:
    x = leaf(100, 50)
    centred = build.map_("subtract", x, build.fold("add", x, (0,)))
    around = build.fold("multiply", build.map_("multiply", x, build.fold("add", centred, (0,))), (0,))
    names = [s.name for s in plan_of(around, centred).stages]
    assert names == ["add", "subtract > add", "multiply > multiply"]


def test_k_means_sees_its_points_once() -> None:
    x, centers = leaf(10_000, 20), leaf(8, 20)
    scores = build.matmul(x, build.transpose(centers, (1, 0)), F8)
    labels = build.fold("argmin", scores, (1,))
    member = build.map_("equal", build.reshape(labels, (10_000, 1)), build.iota(8))
    ones = build.cast(member, F8)
    sums = build.matmul(build.transpose(ones, (1, 0)), x, F8)
    (stage,) = plan_of(sums, build.fold("add", ones, (0,)), labels, workers=4).stages[:1]
    assert isinstance(stage, Fused)
    assert len(stage.writes) == 3
    assert stage.grid.parts[stage.domain.index(10_000)] == 4


def test_a_large_product_stays_alone() -> None:
    x = leaf(300, 200)
    product = build.matmul(x, leaf(200, 300), F8)
    assert len(plan_of(product, build.fold("add", x, (0,))).stages) == 2


@pytest.mark.parametrize("workers", [1, 4])
def test_a_column_mean_is_not_computed_again_for_each_block(workers: int) -> None:
    x = leaf(50_000, 8)
    centred = build.map_("subtract", x, build.fold("add", x, (0,)))
    names = [s.name for s in plan_of(centred, workers=workers).stages if isinstance(s, Fused)]
    assert len(names) == 2


def test_a_plain_product_runs_on_tiles() -> None:
    (stage,) = plan_of(build.matmul(leaf(100, 200), leaf(200, 300), F8)).stages
    assert isinstance(stage, Fused)
    assert stage.heavy


def test_every_stage_of_a_long_chain_is_planned_without_recursion() -> None:
    node = leaf(4)
    for _ in range(5_000):
        node = build.map_("negative", node)
    assert len(plan_of(node).stages) == 1
