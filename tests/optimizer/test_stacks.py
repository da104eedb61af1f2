"""Folds across several arrays make no stack of them."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.costs.choices import WINDOW_ELEMENTS
from spartan_ng.graph.node import Op, topological
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from tests.optimizer.test_windows import DTYPES, FOLDS, values
from tests.sampling import examples

WAYS = {
    "a list": lambda xp, parts, fold, axis: getattr(xp, fold)(parts, axis=axis),
    "a stack": lambda xp, parts, fold, axis: getattr(xp.stack(parts), fold)(axis=axis),
    "a last axis": lambda xp, parts, fold, axis: getattr(xp.stack(parts, axis=-1), fold)(axis=-1),
    "an axis between": lambda xp, parts, fold, axis: getattr(xp.stack([parts[0], *parts], axis=1), fold)(
        axis=1
    ),
    "rows": lambda xp, parts, fold, axis: getattr(xp.vstack([p.ravel() for p in parts]), fold)(axis=0),
    "a sum of extremes": lambda xp, parts, fold, axis: getattr(xp.stack(parts) + 1, fold)(axis=axis),
}


def stacks_made(*arrays):
    roots = run_passes(PASSES, [x._node() for x in arrays], ())
    return sum(n.op is Op.JOIN_UPDATE and n.fn == "concatenate" for n in topological(roots))


@examples(120)
@given(st.data())
def test_folds_across_arrays_are_numpys(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from(DTYPES))
    fold = data.draw(st.sampled_from([f for f in FOLDS if f != "argmax" or dtype != "c16"]))
    way = data.draw(st.sampled_from([w for w in WAYS if dtype != "?" or w != "a sum of extremes"]))
    axis = data.draw(st.sampled_from([0, 0, -1, None, (0, 1)]))
    axis = 0 if fold == "argmax" else axis
    parts = [values(shape, data.draw(st.sampled_from([dtype, dtype, "f8"]))) for _ in range(3)]

    def program(xp, parts):
        return WAYS[way](xp, [*parts, xp.abs(parts[0])], fold, axis)

    with config.override(small_bytes=0), numpy.errstate(all="ignore"):
        found, wanted = program(np, [np.asarray(x) for x in parts]), program(numpy, parts)
        numpy.testing.assert_allclose(found, wanted, rtol=3e-3 if dtype == "f2" else 1e-6, atol=1e-6)
        assert found.dtype == wanted.dtype


@pytest.mark.parametrize("way", WAYS)
def test_files_that_a_budget_has_no_room_for_are_folded_across(way, tmp_path):
    """Rewriting gave a file's elements another shape as a leaf, which no plan knew."""
    value = numpy.random.default_rng(0).random(30_000)
    numpy.save(tmp_path / "x.npy", value)
    with config.override(small_bytes=0, memory_bytes=200_000):
        x = np.load(tmp_path / "x.npy")
        for axis in (0, None):
            found, wanted = (WAYS[way](xp, [a, a * 2], "sum", axis) for xp, a in ((np, x), (numpy, value)))
            numpy.testing.assert_allclose(found, wanted)
        numpy.testing.assert_allclose(np.stack([x, x * 2]).sum(), 3 * value.sum())


@pytest.mark.parametrize("fold", ["sum", "prod", "min", "max", "any", "all", "mean"])
def test_no_stack_is_made(fold):
    with config.override(small_bytes=0):
        a, b = np.asarray(numpy.ones((50, 40))), np.asarray(numpy.ones((50, 40)))
        for way, program in WAYS.items():
            assert stacks_made(program(np, [a, b], fold, 0)) == (way == "a sum of extremes"), way
        assert stacks_made(getattr(np, fold)([a, b], axis=1)) == 1, "not across them"
        many = [a * i for i in range(WINDOW_ELEMENTS + 1)]
        assert stacks_made(getattr(np, fold)(many, axis=0)) == 1
        stack = np.stack([a, b])
        assert stacks_made(stack, getattr(stack, fold)(axis=0)) == 1, "it is there in any case"


@pytest.mark.parametrize("function", [np.maximum, np.add, np.logical_or, np.multiply])
def test_universal_functions_fold_lists(function):
    with config.override(small_bytes=0):
        parts = [np.asarray(numpy.ones((50, 40))), np.asarray(numpy.ones((50, 40)))]
        assert stacks_made(function.reduce(parts)) == 0
