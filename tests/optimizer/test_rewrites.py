"""Rewrites keep values and do what their names say."""

from __future__ import annotations

import numpy as np

from spartan_ng import session
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.optimizer.rewrite.constants import fold_constants, resolve_empty
from spartan_ng.optimizer.rewrite.duplicates import merge_duplicates
from spartan_ng.optimizer.rewrite.slices import push_slices

X = np.random.default_rng(0).random((20, 6))


def value(node: Node) -> object:
    (ref,) = session.evaluate([node])
    return ref.value


def test_equal_steps_merge_and_distinct_draws_do_not() -> None:
    x = build.constant(X)
    twice = build.map_("add", build.map_("exp", x), build.map_("exp", x))
    (merged,) = merge_duplicates([twice])
    assert sum(n.fn == "exp" for n in topological([merged])) == 1
    np.testing.assert_array_equal(value(twice), np.exp(X) + np.exp(X))
    draws = [build.random("random", ("blocks", (s,)), (), (5,), np.dtype(float)) for s in (1, 2)]
    assert len(set(merge_duplicates(draws))) == 2


def test_slices_move_below_maps_that_nobody_else_reads() -> None:
    x, row = build.constant(X), build.constant(X[0])
    chain = build.map_("add", build.map_("exp", x), row)
    part = build.slice_(chain, (18, 5), (-2, -1), (3, 4))
    (pushed,) = push_slices([part])
    assert pushed.op is Op.MAP
    assert all(n.inputs[0].op is Op.DATA for n in topological([pushed]) if n.op is Op.SLICE)
    np.testing.assert_array_equal(value(part), (np.exp(X) + X[0])[18::-2, 5:1:-1][:3])
    both = push_slices([part, chain])
    assert both[0].op is Op.SLICE, "the whole map is needed anyway"


def test_scalars_fold_and_empty_arrays_vanish() -> None:
    scalar = build.map_("multiply", build.constant(2.0), build.map_("exp", build.constant(1.0)))
    (folded,) = fold_constants([scalar])
    assert folded.op is Op.DATA
    assert value(scalar) == 2.0 * np.exp(1.0)
    empty = build.slice_(build.constant(X), (0, 0), (1, 1), (0, 6))
    total = build.fold("add", build.map_("exp", empty), (0,))
    (folded,) = resolve_empty([total])
    assert folded.op is Op.DATA
    np.testing.assert_array_equal(value(total), np.zeros(6))
