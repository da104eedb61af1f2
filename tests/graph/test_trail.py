"""What is told of a program after it was rewritten is told of the right steps, and of all of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given

import spartan_ng as sp
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import Op, topological
from spartan_ng.graph.trail import Trail, passed_down
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from spartan_ng.optimizer.rewrite.constants import VALUE_PASSES
from tests import reference
from tests.programs import programs
from tests.sampling import examples


def rewritten(nodes):
    trail = Trail(nodes)
    with trail.followed():
        return trail, run_passes((*VALUE_PASSES, *PASSES), nodes, ())


@examples(60)
@given(programs(most=12))
def test_what_stands_for_a_step_has_its_value(program):
    with config.override(small_bytes=0):
        nodes = [a._node() for a in program.run(sp, sp.asarray)]
    trail, found = rewritten(nodes)
    now = trail.now()
    assert [now[node] for node in nodes] == found
    kept = [node for node in trail.order if now.get(node, node) is not node]
    before, after = reference.evaluate(kept), reference.evaluate([now[node] for node in kept])
    for node, was, is_now in zip(kept, before, after, strict=True):
        np.testing.assert_allclose(is_now.value, was.value, rtol=1e-6, atol=1e-6, err_msg=str(node))


@examples(60)
@given(programs(most=12))
def test_no_steps_mark_is_lost_and_every_new_step_has_one(program):
    with config.override(small_bytes=0):
        nodes = [a._node() for a in program.run(sp, sp.asarray)]
    trail, found = rewritten(nodes)
    own = {node: n for n, node in enumerate(trail.order) if n % 2 or node in nodes}
    marks = trail.marks(own)
    order = topological(found)
    assert {mark for known in marks.values() for mark in known} == set(own.values())
    assert marks.keys() <= set(order)
    assert passed_down(order, marks).keys() == set(order)


def test_a_root_that_stays_a_step_keeps_its_mark():
    """The cumulative sum of one element is that element, but a leaf is nothing to evaluate."""
    x = sp.asarray(np.array([0.5]))
    with config.override(small_bytes=0):
        nodes = [sp.cumsum(sp.cumsum(x)).cumsum()._node(), sp.cumsum(x)._node()]
    trail, found = rewritten(nodes)
    assert [trail.now()[node] for node in nodes] == found


def times_a_number(x):
    """An array by a step over a number that the program brings."""
    return wrap_node(build.map_("multiply", x._node(), build.map_("exp", build.constant(np.float64(3)))))


CHANGED = {
    "resolve_empty": lambda x: sp.concatenate([x, sp.exp(x[:0])]) * 2,
    "fold_constants": times_a_number,
    "name_ranges": lambda x: (x[:9, None] == np.arange(4)).astype(float) @ np.ones((4, 2)),
    "merge_duplicates": lambda x: sp.exp(x) + sp.exp(x),
    "merge_again": lambda x: sp.exp(x) + sp.exp(x),
    "simplify_scans": lambda x: sp.cumsum(x[:, None], axis=1) + 1,
    "push_slices": lambda x: sp.exp(x)[:7],
    "algebra": lambda x: sp.trace(x.reshape(25, 40) @ x.reshape(40, 25)),
    "select_places": lambda x: sp.sort(x)[:3] * 2,
    "fold_scans": lambda x: sp.cumsum(x).sum(),
    "fold_stacks": lambda x: sp.stack([x, x * 2]).max(0),
    "fold_windows": lambda x: sp.lib.stride_tricks.sliding_window_view(x, 3).sum(-1),
}
"""For each pass, a program that it changes."""


def test_every_pass_tells_what_it_has_changed():
    for name, step in (*VALUE_PASSES, *PASSES):
        with config.override(small_bytes=0):
            root = CHANGED[name](sp.asarray(np.arange(1000.0)))._node()
        trail = Trail([root])
        with trail.followed():
            (found,) = step([root])
        assert found is not root, f"{name} changes its program"
        assert trail.now()[root] is found, name


def test_a_step_that_is_gone_counts_to_what_reads_it():
    x = build.constant(np.arange(12.0))
    root = build.map_("exp", x)
    part = build.slice_(root, (2,), (1,), (3,))
    trail, (found,) = rewritten([part])
    assert found.op is Op.MAP
    assert root not in trail.now()
    assert trail.marks({root: "exp", part: "part"})[found] == ["exp", "part"]


def test_nobody_follows_outside_of_the_block():
    x = build.map_("negative", build.constant(np.arange(12.0)))
    twice = build.map_("add", x, build.map_("negative", x.inputs[0]))
    trail, _ = rewritten([twice])
    before = trail.now()
    run_passes(PASSES, [build.slice_(twice, (0,), (1,), (2,))], ())
    assert trail.now() == before
