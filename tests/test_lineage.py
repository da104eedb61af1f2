"""What a lost worker took with it is computed again from where it came from, and no more than that."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng import lineage
from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.graph.rows import flatten
from spartan_ng.lineage import Recipe, record
from spartan_ng.recovery import computed_again
from tests import reference
from tests.programs import programs
from tests.sampling import examples

X = np.arange(12.0).reshape(4, 3)


class Machine:
    """Evaluates recipes by NumPy in this process, and forgets arrays when it is told to: whole ones, or where
    they are cut into `parts` along rows, some of these."""

    def __init__(self, parts=1):
        self.lost = set()
        self.parts = parts
        self.tiles = {}
        self.runs = 0
        self.recipes = {}

    def is_lost(self, ref):
        return ref.serial in self.lost

    def sparse_left(self, refs):
        return None

    def tiles_of(self, ref):
        return self.tiles.get(ref.serial, {})

    def lose(self, part, *refs):
        """Lose a part of each array; whoever reads more than what is left of it fails."""
        for ref in refs:
            value, ref.value = ref.value, None
            self.lost.add(ref.serial)
            cut = Tiling.grid(*(min(self.parts, n) for n in ref.shape[:1]), *(1,) * (value.ndim - 1))
            self.tiles[ref.serial] = {
                box: None if p == part % cut.ntiles else driver(value[tuple(slice(*i) for i in box)])
                for p, (_, box) in enumerate(cut.tiles(ref.shape, box_of(ref.shape)))
            }

    def evaluate(self, nodes):
        self.runs += 1
        found = sp.compute(*(sp.api.core.wrapping.wrap_node(n) for n in nodes))
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
        found = computed_again(refs, self, self.evaluate)
        if found is not None:
            self.amount = found[1]
            return found[0]
        return None


def driver(value):
    return ArrayRef(value.shape, value.dtype, value=value)


def plus(k):
    return lambda a: [build.map_("add", a, build.constant(np.asarray(k)))]


MATRIX = np.random.default_rng(1).random((3, 3))


def plus_mean(a):
    mean = build.map_("divide", build.fold("add", a, (1,)), build.constant(np.asarray(3.0)))
    return [build.map_("add", a, build.reshape(mean, (a.shape[0], 1)))]


def product(a):
    return [build.matmul(a, build.constant(MATRIX), a.dtype)]


def neighbours(a):
    n = a.shape[0]
    above, below = (build.slice_(a, (k, 0), (1, 1), (n - 2, 3)) for k in (0, 2))
    mean = build.map_("divide", build.map_("add", above, below), build.constant(np.asarray(2.0)))
    edge = build.constant(np.zeros((1, 3)))
    return [build.concatenate([edge, mean, edge], 0)]


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


@pytest.mark.some(3)
@pytest.mark.parametrize("part", [0, 2])
@pytest.mark.parametrize(
    ("step", "numpy_step", "most"),
    [
        (lambda a: [build.map_("sin", a)], np.sin, 1.0),
        (plus_mean, lambda x: x + x.mean(axis=1, keepdims=True), 1.0),
        (product, lambda x: x @ MATRIX, 1.0),
        (neighbours, lambda x: np.pad((x[:-2] + x[2:]) / 2, ((1, 1), (0, 0))), 1.3),
    ],
)
def test_no_more_is_computed_than_was_lost(step, numpy_step, most, part):
    m = Machine(parts=4)
    wanted = x = np.random.default_rng(0).random((80, 3))
    (y,) = m.step(step, driver(x))
    kept = [y]
    for k in range(6):
        (y,) = m.step(step, y)
        kept += [y] * (k in (1, 5))
    for _ in range(7):
        wanted = numpy_step(wanted)
    del y
    gc.collect()
    m.lose(part, *kept)
    found = m.again(*kept)
    np.testing.assert_allclose(found[-1].value, wanted, rtol=1e-12)
    np.testing.assert_allclose(found[0].value, numpy_step(x), rtol=1e-12)
    assert m.amount.lost == 7 * 20 * 3
    assert m.amount.computed <= most * m.amount.lost


class Reference(Machine):
    """Evaluates node after node."""

    def evaluate(self, nodes):
        return reference.evaluate(nodes)


@examples(60)
@given(program=programs(), data=st.data())
def test_any_arrays_of_any_program_are_made_again_of_any_that_are_left(program, data):
    m = Reference(parts=3)
    with config.override(small_bytes=0), np.errstate(all="ignore"):
        refs = [driver(np.asarray(a)) for a in program.inputs]
        for step in program.steps:

            def make(*nodes, step=step):
                made = sp.asarray(step.apply(sp, *map(sp.api.core.wrapping.wrap_node, nodes)))
                return [made._node()]

            refs += m.step(make, *(refs[i] for i in step.operands))
        kept = [data.draw(st.sampled_from(["lost", "there", "gone"])) for _ in program.steps]
        results = [(ref, ref.value, k) for ref, k in zip(refs[len(program.inputs) :], kept, strict=True)]
        lost = [ref for ref, _, k in results if k == "lost"]
        wanted = [value for _, value, k in results if k == "lost"]
        still = [ref for ref, _, k in results if k == "there"]
        del refs, results
        for ref in lost:
            m.lose(data.draw(st.integers(0, 2)), ref)
        found = m.again(*lost)
    for whole, part in zip(wanted, found, strict=True):
        np.testing.assert_allclose(part.value, whole, rtol=1e-9, atol=1e-9)
    del still


def test_what_all_depend_on_is_put_together_of_what_is_left():
    m = Machine(parts=4)
    x = np.random.default_rng(0).random((80, 3))
    (y,) = m.step(plus(1.0), driver(x))
    (z,) = m.step(lambda a: [build.map_("subtract", a, build.fold("add", a, (0,)))], y)
    m.lose(1, y, z)
    (found,) = m.again(z)
    np.testing.assert_allclose(found.value, x + 1 - (x + 1).sum(axis=0), rtol=1e-12)
    assert (m.amount.lost, m.amount.computed) == (2 * 20 * 3, 2 * 20 * 3)


def test_reproducible_arrays_are_computed_as_a_whole():
    m = Machine(parts=4)
    x = np.random.default_rng(0).random((80, 3))
    (y,) = m.step(plus(1.0), driver(x))
    m.lose(1, y)
    with config.override(reproducible=True):
        (found,) = m.again(y)
    np.testing.assert_array_equal(found.value, x + 1)
    assert m.amount.computed == x.size


@pytest.mark.slow
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
    (found,), _ = computed_again([x], m, evaluate)  # type: ignore[misc]
    np.testing.assert_array_equal(found.value, np.full(3, float(steps)))
    assert len(made) == steps
    assert most <= 3


@pytest.mark.slow
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
    monkeypatch.setattr(lineage, "free_disk_bytes", lambda: 0)
    with config.override(keep_uploads=2 * X.nbytes):
        results = [m.step(plus(1.0), driver(X + k))[0] for k in range(4)]
    assert [m.again(r) is not None for r in results] == [False, False, True, True]


def test_uploads_beyond_their_budget_are_kept_on_disk(monkeypatch):
    monkeypatch.setattr(lineage, "_uploads", lineage.Uploads())
    m = Machine()
    with config.override(keep_uploads=2 * X.nbytes):
        results = [m.step(plus(1.0), driver(X + k))[0] for k in range(4)]
    kept = [r.origin.parents[0].source.on_disk for r in results]
    assert kept == [True, True, False, False]
    for k, (again,) in enumerate(map(m.again, results)):
        np.testing.assert_array_equal(again.value, X + k + 1)


def test_what_is_mapped_from_a_file_stays_there(monkeypatch, tmp_path):
    monkeypatch.setattr(lineage, "_uploads", lineage.Uploads())
    np.save(tmp_path / "x.npy", X)
    m = Machine()
    with config.override(keep_uploads=0):
        mapped = driver(np.load(tmp_path / "x.npy", "r"))
        (found,) = m.step(plus(1.0), mapped)
    assert found.origin.parents[0].source is mapped
    np.testing.assert_array_equal(m.again(found)[0].value, X + 1)


def test_uploads_that_no_file_can_hold_are_not_kept_beyond_their_budget(monkeypatch):
    monkeypatch.setattr(lineage, "_uploads", lineage.Uploads())
    m = Machine()
    with config.override(keep_uploads=0):
        (found,) = m.step(lambda a: [a], driver(np.array([None, 1])))
        (disk,) = m.step(plus(1.0), driver(X))
    assert found.origin.parents[0].source is None
    assert m.again(disk) is not None


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
