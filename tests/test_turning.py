"""Elementwise work on turned arrays: NumPy's values and layouts, and memory that nobody else sees."""

from __future__ import annotations

import random

import numpy
import pytest

import spartan_ng
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.turning import turned
from tests.test_programs import running_on

STEPS = {
    "scalar": lambda np, a, b: a * 2 + 1,
    "two": lambda np, a, b: a * b - a,
    "cast": lambda np, a, b: (a > 0.5) & (b.astype("f4") < 0.5),
    "choice": lambda np, a, b: np.where(a > b, a, -1),
    "root": lambda np, a, b: np.sqrt(np.abs(a)) / (b + 2),
    "row": lambda np, a, b: a + np.arange(a.shape[-1]),
    "straight": lambda np, a, b: a + np.ascontiguousarray(b),
    "turned back": lambda np, a, b: a.T * 3,
    "rounded": lambda np, a, b: np.round(a, 1) + b,
    "powers": lambda np, a, b: a**2 + b**0.5,
}
TURNS = {
    "T": lambda a: a.T,
    "ends": lambda a: a.swapaxes(0, -1),
    "around": lambda a: a.transpose(*range(1, a.ndim), 0),
}


def run(np, arrays, turn, drawn):
    a, b = (TURNS[turn](np.asarray(x)) for x in arrays)
    for step in drawn:
        a = STEPS[step](np, a, b)
    return a


@pytest.mark.parametrize("shape", [(40, 30), (30, 30), (7, 8, 9)])
@pytest.mark.parametrize("turn", TURNS)
def test_values_and_layouts(shape, turn):
    rng = numpy.random.default_rng(0)
    arrays = rng.random(shape), rng.random(shape)
    draw = random.Random(str((shape, turn)))
    for _ in range(15):
        drawn = draw.choices([s for s in STEPS if s != "turned back"], k=draw.randint(1, 2))
        with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
            found = run(spartan_ng, arrays, turn, drawn)
            strides = found.strides
            value = found.compute()
        expected = run(numpy, arrays, turn, drawn)
        assert value.dtype == expected.dtype
        assert strides == value.strides == expected.strides, drawn
        numpy.testing.assert_allclose(value, expected, rtol=1e-14, err_msg=str(drawn))


def test_results_are_their_own():
    x = numpy.arange(12.0).reshape(3, 4)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        a = spartan_ng.asarray(x) * 1
        b, c, straight = a.T + 1, a.T + 1, a + 1
        spartan_ng.compute(b, c)
        straight.persist()
        b += 10
        c[0] = -1
        straight *= 100
        later = b.T * 2
        b[1] = 0
    assert a.tolist() == x.tolist()
    assert straight.tolist() == ((x + 1) * 100).tolist()
    assert later.tolist() == ((x.T + 11).T * 2).tolist()
    expected = x.T + 1
    expected[0] = -1
    assert c.tolist() == expected.tolist()
    assert b[0].tolist() == (x.T[0] + 11).tolist()


@pytest.mark.parametrize("memory_bytes", [1 << 20, 3 << 20, 1 << 30])
def test_results_that_memory_may_not_hold(memory_bytes):
    x = numpy.arange(160_000.0).reshape(400, 400)
    with running_on(EmbeddedBackend(2, memory_bytes)), config.override(small_bytes=0):
        found = spartan_ng.asarray(x).T * 2 + 1
        numpy.testing.assert_array_equal(found.persist().compute(), x.T * 2 + 1)


def test_what_lies_in_a_file_is_turned_by_a_plan():
    from spartan_ng.arrays import ArrayRef
    from spartan_ng.graph.node import Op, topological

    with config.override(small_bytes=0):
        root = (spartan_ng.asarray(numpy.ones((30, 20))).T + 1)._node()
    asked = []

    def evaluate(nodes):
        asked.extend(nodes)
        return [ArrayRef(n.shape, n.dtype) for n in nodes]

    found = turned([root], topological([root]), 1 << 30, evaluate)
    assert found is not None
    assert [r.shape for r in found] == [(20, 30)]
    assert [n.op for n in asked] == [Op.MAP, Op.TRANSPOSE]


def test_what_is_not_all_turned_stays_as_it_is():
    from spartan_ng.graph.node import topological

    x = spartan_ng.asarray(numpy.ones((30, 30)))
    with config.override(small_bytes=0):
        for y in (x + x.T, x + 1, x.T + numpy.arange(30.0), (x.T + 1).sum(0)):
            roots = [y._node()]
            assert (
                turned(roots, topological(roots), 1 << 30, lambda nodes: pytest.fail("it is evaluated"))
                is None
            )
