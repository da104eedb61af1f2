"""The operations that the tiling weighs and that `explain` predicts are one count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import of_node
from spartan_ng.graph.node import topological
from spartan_ng.optimizer.pipeline import PASSES, run_passes
from spartan_ng.plan.lower import Lowering
from spartan_ng.plan.settings import Settings

PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rows looked up": lambda x, i, b: x[i],
    "few rows looked up": lambda x, i, b: x[i[:700]],
    "columns looked up": lambda x, i, b: x[:, i % 50],
    "looked up and summed": lambda x, i, b: x[i].sum(axis=0),
    "sums": lambda x, i, b: (x * 2 + 1).sum(axis=0),
    "variance": lambda x, i, b: x.var(axis=0),
    "gram": lambda x, i, b: x.T @ x,
    "product": lambda x, i, b: numpy.e * (x @ b),
    "sorted rows": lambda x, i, b: np.sort(x, axis=1),
    "outer": lambda x, i, b: np.outer(x[:, 0], b[:, 0]),
    "differences": lambda x, i, b: np.diff(x, axis=0),
}

CLOSER = {"gram", "product"}
"""Stages know which products BLAS makes, and how fast."""


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_tiling_and_stages_count_alike(name: str, workers: int) -> None:
    draws = numpy.random.default_rng(0)
    x, i, b = draws.random((2000, 50)), draws.integers(0, 2000, 7000), draws.random((50, 30))
    with np.config.override(small_bytes=0):
        root = PROGRAMS[name](np.array(x), np.array(i), np.array(b))._node()
    roots = run_passes(PASSES, [root], ())
    order = list(topological(roots))
    lowering = Lowering(order, roots, Settings(Profile(workers=workers)), {})
    chosen = lowering.choose()
    plan = lowering.plan("plan", chosen)
    tiled = sum(sketch.flops for sketch in chosen[1][0])
    staged = sum(stage.operations(plan.slots) for stage in plan.stages)
    nodes = sum(of_node(node) for node in order)
    assert staged == pytest.approx(tiled, rel=0.1), (tiled, staged, nodes)
    if name not in CLOSER:
        assert staged == pytest.approx(nodes, rel=0.6), (tiled, staged, nodes)
