"""What runs in one pass: the stages of well-known expressions."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.optimizer.tiling.profile import ClusterProfile
from spartan_ng.plan.lower import Settings, lower
from spartan_ng.plan.plan import Fused, Plan

F8 = np.dtype(float)


def plan_of(*roots: Node, workers: int = 1, fuse: bool = True) -> Plan:
    settings = Settings(ClusterProfile(workers=workers), fuse=fuse)
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
    assert len(plan_of(total, fuse=False).stages) == 3


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


def test_a_value_with_two_stages_of_readers_is_stored() -> None:
    x = leaf(1000, 50)
    e = build.map_("exp", x)
    assert len(plan_of(build.fold("add", e, (0,)), build.fold("maximum", e, (1,))).stages) == 3


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
    for _ in range(20_000):
        node = build.map_("negative", node)
    assert len(plan_of(node).stages) == 1
