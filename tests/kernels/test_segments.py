"""Into which loops a stage is split: maps over one space share a loop, others are NumPy's between."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.graph import build
from spartan_ng.kernels.compiled.segments import NumpyStep, Segment, split, viewed_axes
from spartan_ng.kernels.compiled.select import _calls_numpy, looped_share
from spartan_ng.plan.rows import Row
from tests.optimizer.fusion.expressions import leaf, matmul
from tests.plan.test_stages import only, planned
from tests.sampling import examples

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


@examples(200)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
def test_each_element_of_a_view_is_where_its_axes_say(shape: list[int], data: st.DataObject) -> None:
    """Axes that a view stretches or leaves out have one element, the first."""
    base: Any = np.arange(prod(shape)).reshape(shape)
    kind = data.draw(st.sampled_from(["transpose", "broadcast", "reshape"]))
    params: tuple[Any, ...] = ()
    if kind == "transpose":
        params = (tuple(data.draw(st.permutations(range(base.ndim)))),)
        view = base.transpose(*params)
    elif kind == "broadcast":
        wide = [data.draw(st.integers(1, 3)) if n == 1 else n for n in shape]
        view = np.broadcast_to(base, (*data.draw(st.lists(st.integers(1, 2), max_size=1)), *wide))
    else:
        long = [n for n in shape if n > 1]
        for at in data.draw(st.lists(st.integers(0, len(long)), max_size=2)):
            long.insert(at, 1)
        view = base.reshape(long)
    labels = tuple(range(view.ndim))
    row = Row(kind, None, (0,), params, base.dtype, view.shape, labels)
    axes = viewed_axes(row, tuple(enumerate(shape)))
    assert axes is not None
    for place in np.ndindex(view.shape):
        assert view[place] == base[tuple([place[axis] if axis >= 0 else 0 for axis in axes])]


@pytest.mark.parametrize("length", range(2, 5))
def test_a_run_waits_for_what_its_kernels_do_and_not_for_its_products(length):
    """All of a chain of maps is theirs; beside a product or a sort, which stay calls, hardly anything."""
    x = leaf(3000, 100)
    stage, steps = steps_of(build.fold("add", chain(x, length), (1,)))
    assert looped_share(stage, steps) == 1
    called = [matmul(x, leaf(100, 40)), build.along_axis("sort", [x], 1, dtype=F8)]
    for node in called:
        few = build.fold("minimum", node, (1,))
        stage, steps = steps_of(chain(few, length))
        assert 0 < looped_share(stage, steps) < 0.1
