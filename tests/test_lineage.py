"""What a lost worker took with it is computed again from where it came from, and no more than that."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng import lineage
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.graph.rows import flatten
from spartan_ng.lineage import Recipe, computed_again, record

X = np.arange(12.0).reshape(4, 3)


class Machine:
    """Evaluates recipes by NumPy in this process, and forgets arrays when it is told to."""

    def __init__(self):
        self.lost = set()
        self.runs = 0
        self.recipes = {}

    def is_lost(self, ref):
        return ref.serial in self.lost

    def evaluate(self, nodes):
        self.runs += 1
        found = sp.compute(*(sp.api.core.handle.wrap_node(n) for n in nodes))
        return [ArrayRef(v.shape, v.dtype, value=np.asarray(v)) for v in found]

    def step(self, make, *refs):
        """Results of a program over arrays, with their origin."""
        nodes = make(*map(build.data, refs))
        structure, leaves = flatten(topological(nodes), nodes)
        if structure not in self.recipes:
            self.recipes[structure] = Recipe.of(nodes, leaves)
        made = self.evaluate(nodes)
        record(self.recipes[structure], leaves, made)
        return made

    def again(self, *refs):
        self.lost |= {r.serial for r in refs}
        self.runs = 0
        return computed_again(refs, self.is_lost, self.evaluate)


def driver(value):
    return ArrayRef(value.shape, value.dtype, value=value)


def plus(k):
    return lambda a: [build.map_("add", a, build.constant(np.asarray(k)))]


def test_a_result_is_made_of_what_is_still_there():
    m = Machine()
    x = driver(X)
    (y,) = m.step(plus(1.0), x)
    (z,) = m.step(plus(2.0), y)
    (found,) = m.again(z)
    np.testing.assert_array_equal(found.value, X + 3)
    assert m.runs == 1


def test_what_is_gone_is_made_on_the_way_once():
    m = Machine()
    y = m.step(plus(1.0), driver(X))[0]
    a, b = m.step(plus(2.0), y)[0], m.step(plus(3.0), y)[0]
    del y
    gc.collect()
    found = m.again(a, b)
    np.testing.assert_array_equal(found[0].value, X + 3)
    np.testing.assert_array_equal(found[1].value, X + 4)
    assert m.runs == 3


def test_results_of_one_run_are_made_in_one_run():
    m = Machine()
    both = m.step(lambda a: plus(1.0)(a) + plus(2.0)(a), driver(X))
    found = m.again(*both)
    np.testing.assert_array_equal(found[1].value, X + 2)
    assert m.runs == 1


def test_a_chain_of_thousands_needs_no_stack_and_keeps_one_step():
    m = Machine()
    x = driver(np.zeros(3))
    steps = 3000
    for _ in range(steps):
        (x,) = m.step(plus(1.0), x)
    made: list[weakref.ref] = []
    most = 0

    def evaluate(nodes):
        nonlocal most
        results = m.evaluate(nodes)
        made.extend(map(weakref.ref, results))
        most = max(most, sum(watch() is not None for watch in made[-20:]))
        return results

    m.lost.add(x.serial)
    found = computed_again([x], m.is_lost, evaluate)[0]  # type: ignore[index]
    np.testing.assert_array_equal(found.value, np.full(3, float(steps)))
    assert len(made) == steps
    assert most <= 3


def test_a_hundred_thousand_steps_take_less_than_20_mb():
    x = driver(np.zeros(3))
    nodes = plus(1.0)(build.data(x))
    recipe = Recipe.of(nodes, flatten(topological(nodes), nodes)[1])
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100_000):
            new = ArrayRef(x.shape, x.dtype)
            record(recipe, [x], [new])
            x = new
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken < 20_000_000
    del new, x  # which is taken apart without a deep stack


def test_uploads_are_kept_within_their_budget(monkeypatch):
    monkeypatch.setattr(lineage, "_uploads", lineage.Uploads())
    m = Machine()
    with config.override(keep_uploads=2 * X.nbytes):
        results = [m.step(plus(1.0), driver(X + k))[0] for k in range(4)]
    assert [m.again(r) is not None for r in results] == [False, False, True, True]


def test_an_upload_that_nobody_needs_is_not_kept(monkeypatch):
    monkeypatch.setattr(lineage, "_uploads", lineage.Uploads())
    m = Machine()
    for k in range(5):
        m.step(plus(1.0), driver(X + k))
    gc.collect()
    assert len(lineage._uploads) == 0
    assert lineage._uploads._total == 0


def test_an_array_of_unknown_origin_is_not_made_up():
    m = Machine()
    assert m.again(ArrayRef((3,), np.dtype(float))) is None


@pytest.mark.parametrize("wanted", [0, 1])
def test_random_draws_are_the_same_again(wanted):
    m = Machine()
    with config.override(small_bytes=0):
        a = sp.random.default_rng(3).random(50)
        nodes = [(a * 2)._node(), (a + 1)._node()]
        made = m.step(lambda: nodes)
    (found,) = m.again(made[wanted])
    np.testing.assert_array_equal(found.value, made[wanted].value)
