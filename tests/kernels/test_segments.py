"""Into which loops a stage is split: maps over one space share a loop, others are NumPy's between."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.graph import build
from spartan_ng.kernels.compiled.segments import NumpyStep, Segment, split
from spartan_ng.kernels.compiled.select import _calls_numpy
from tests.optimizer.fusion.expressions import leaf, matmul
from tests.plan.test_stages import only, planned

F8 = np.dtype(float)


def steps_of(node):
    """The stage of a graph, and its steps."""
    stage = only(planned(node))
    return stage, split(stage, [F8] * len(stage.reads))


def chain(node, length):
    """So many maps on top of each other, each of them with an operand of its own, too."""
    for i in range(length):
        node = build.map_(("add", "multiply", "maximum")[i % 3], node, leaf(*node.shape))
    return node


@pytest.mark.parametrize("length", range(2, 8))
def test_maps_share_a_loop(length):
    for node in (chain(leaf(300, 40), length), build.fold("add", chain(leaf(300, 40), length), (1,))):
        stage, steps = steps_of(node)
        assert len(steps) == 1
        assert isinstance(steps[0], Segment)
        assert not _calls_numpy(stage, steps)


@pytest.mark.parametrize("length", range(2, 5))
def test_what_has_no_text_stands_between_loops(length):
    sorted_rows = build.along_axis("sort", [chain(leaf(300, 40), length)], 1, dtype=F8)
    stage, steps = steps_of(chain(sorted_rows, length))
    assert [type(s) for s in steps] == [Segment, NumpyStep, Segment]
    assert _calls_numpy(stage, steps)


def test_views_are_no_calls():
    row = build.fold("maximum", a := chain(leaf(300, 40), 2), (1,))
    stage, steps = steps_of(build.map_("subtract", a, build.reshape(row, (300, 1))))
    assert all(
        isinstance(s, Segment) or stage.rows[s.register - len(stage.reads)].kind == "reshape" for s in steps
    )
    assert not _calls_numpy(stage, steps)


def test_products_do_not_share_the_loop_of_their_operands():
    node = chain(matmul(chain(leaf(3000, 40), 2), leaf(40, 3)), 2)
    _, steps = steps_of(node)
    at = [i for i, s in enumerate(steps) if isinstance(s, Segment)]
    assert len(at) >= 2, "what is made for the product, and of it"
