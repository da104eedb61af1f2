"""Steps with their axes in another order have the same elements, and what lies otherwise is not copied."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from spartan_ng import scratch
from spartan_ng.api.core import cell
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.axes import as_they_lie
from spartan_ng.graph.node import Node, Op, topological
from tests import reference
from tests.test_programs import running_on

LINES: dict[str, Callable[[Any, Any], Any]] = {
    "fft": lambda m, x: m.fft.fft(x[:, :3], axis=0),
    "half of a spectrum": lambda m, x: m.fft.rfft(x, axis=0),
    "back from it": lambda m, x: m.fft.irfft(x, axis=0),
    "of conjugates": lambda m, x: m.fft.hfft(x, axis=0),
    "sort": lambda m, x: m.sort(x, axis=0),
    "sort of rows": lambda m, x: m.sort(x, axis=1),
    "places": lambda m, x: m.argsort(x, axis=0, kind="stable"),
    "sums so far": lambda m, x: m.cumsum(x, axis=0),
    "products so far": lambda m, x: m.cumprod(x, axis=-1),
    "power": lambda m, x: m.abs(m.fft.fft(x, axis=0)) ** 2,
    "of two": lambda m, x: m.sqrt(m.sort(x + 1, axis=0)) * x,
    "twice": lambda m, x: m.cumsum(m.sort(x, axis=0)[::2], axis=1) * 2,
    "of a scalar": lambda m, x: m.sort(x, axis=0) * x.sum(),
    "of a row": lambda m, x: m.sort(x, axis=0) - x[3],
    "of all": lambda m, x: m.sort(x, axis=0) - x.mean(axis=0),
}
ELEMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "scalar": lambda m, x: x * 2 + 1,
    "choice": lambda m, x: m.where(x > 0.5, x, -1),
    "square": lambda m, x: x**2,
    "centered": lambda m, x: x - x.mean(axis=0),
    "shares": lambda m, x: m.exp(x) / m.exp(x).sum(axis=-1, keepdims=True),
    "row": lambda m, x: x * m.arange(x.shape[-1]),
    "column": lambda m, x: x[..., 2:] * x[..., :1],
    "stretched": lambda m, x: m.broadcast_to(x[0], x.shape) + x,
    "deviations": lambda m, x: x.std(axis=1) * 2,
    "greatest": lambda m, x: x.max(axis=0),
    "where it is": lambda m, x: x.argmax(axis=1),
    "some": lambda m, x: m.sum(x, axis=0, where=x > 0.5),
    "rolled": lambda m, x: m.roll(x, 3, axis=1),
    "joined": lambda m, x: m.concatenate([x, x * 2], axis=0),
    "joined to another": lambda m, x: m.concatenate([x, m.zeros(x.shape)], axis=0),
    "differences": lambda m, x: m.diff(x, axis=1),
    "neighbours": lambda m, x: x[1:-1] + x[2:] - x[:-2, ::-1],
    "looked up": lambda m, x: m.take(x * 2, m.arange(5), axis=1),
    "line": lambda m, x: (x * 2).ravel(),
    "shape": lambda m, x: (x + 1).reshape(-1, 2) * 3,
    "chosen": lambda m, x: (x * 2)[x > 0.5],
    "product": lambda m, x: m.tensordot(x - 1, x, axes=([0], [0])),
    "back": lambda m, x: x.T * 3 + x.T,
    "both": lambda m, x: x[:7, :7] + x[:7, :7].swapaxes(0, 1),
    "straight": lambda m, x: x * m.ones(x.shape),
}
STEPS = {**LINES, **ELEMENTS}
SHAPES = [(40, 30), (17, 8, 10)]
TURNS: dict[str, Callable[[Any, Any], Any]] = {
    "columns": lambda m, x: m.array(numpy.asfortranarray(x)),
    "transpose": lambda m, x: m.array(numpy.ascontiguousarray(x.T)).T,
    "ends": lambda m, x: m.array(numpy.ascontiguousarray(x.swapaxes(0, -1))).swapaxes(0, -1),
    "around": lambda m, x: m.array(numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 0, -1)), -1, 0)),
}


MIXED = ("both", "straight")
"""Of arrays that lie one way and another."""
STRAIGHT = ("line", "shape", "chosen", "places", "looked up", "joined to another")
"""Of results, or steps on the way to them, that are to be in C's order."""


def asked_for(y: Any) -> Node:
    """What is computed for an array: lines in the order of axes in which NumPy's result lies."""
    node: Node = y._node()
    return node if y._cell.order is None else build.transpose(node, y._cell.order)


def lies_turned(node: Node) -> bool:
    """Whether what a leaf holds, or what is seen of an array in C's order, lies in another one."""
    axes = node.params[0] if node.op is Op.TRANSPOSE else range(node.ndim)
    leaf = node.inputs[0] if node.op is Op.TRANSPOSE else node
    strides = range(leaf.ndim, 0, -1) if leaf.data is None else leaf.data.value.strides
    lie = [strides[i] for i in axes if leaf.shape[i] > 1]
    return lie != sorted(lie, reverse=True)


def read_across(root: Node) -> list[Node]:
    """The steps of a graph that read arrays against the order in which they lie."""
    steps = [n for n in topological([root]) if n.op not in (Op.TRANSPOSE, Op.SLICE)]
    return [n for n in steps if any(map(lies_turned, n.inputs))]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", STEPS)
def test_elements_are_the_same(name: str, turn: str, shape: tuple[int, ...]) -> None:
    x = numpy.random.default_rng(0).random(shape)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        node = asked_for(STEPS[name](np, TURNS[turn](np, x)))
        found = as_they_lie([node], topological([node]))
        if found is None:
            assert name in (*MIXED, *STRAIGHT) or not read_across(node)
            return
        (expected,) = reference.evaluate([node])
        (value,) = reference.evaluate(found)
    assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
    numpy.testing.assert_allclose(value.value, expected.value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turn", TURNS)
def test_values_and_layouts(turn: str, shape: tuple[int, ...]) -> None:
    x = numpy.random.default_rng(0).random(shape)
    draw = random.Random(str((shape, turn)))
    for name in draw.sample([*STEPS], 12):
        expected = STEPS[name](numpy, TURNS[turn](numpy, x))
        for small in (0, config.small_bytes):
            with running_on(EmbeddedBackend(2)), config.override(small_bytes=small):
                found = numpy.asarray(STEPS[name](np, TURNS[turn](np, x)))
            assert (found.dtype, found.strides) == (expected.dtype, expected.strides), name
            numpy.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", STEPS)
def test_what_lies_turned_is_read_as_it_lies(name: str, turn: str) -> None:
    """A line of the cache was read for each element."""
    x = numpy.random.default_rng(0).random((40, 30))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        node = asked_for(STEPS[name](np, TURNS[turn](np, x)))
    (found,) = as_they_lie([node], topological([node])) or [node]
    assert name in ("product", *MIXED, *STRAIGHT) or not read_across(found)


def test_sums_keep_their_bits_where_that_is_asked_for() -> None:
    x = numpy.random.default_rng(0).random((400, 300)) ** 9
    found = []
    for turn in (lambda a: a, *[lambda a, t=t: TURNS[t](np, a) for t in TURNS]):
        with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, reproducible=True):
            y = np.asarray(turn(x)) * 3
            found.append(
                (y.sum(axis=1).tolist(), np.cumsum(y, axis=0)[-1].tolist(), (y.T @ y).sum().tolist())
            )
    assert found == [found[0]] * len(found)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["array", "file"])
@pytest.mark.parametrize("name", LINES)
def test_what_lies_as_columns_is_made_so(name: str, kind: str, shape: tuple[int, ...], tmp_path: Any) -> None:
    """All of it was made in C's order, and then copied."""
    x = numpy.asfortranarray(numpy.random.default_rng(0).random(shape))
    numpy.save(tmp_path / "x.npy", x)
    expected = STEPS[name](numpy, x)
    with (
        running_on(EmbeddedBackend(2)),
        config.override(small_bytes=0),
        mock.patch.object(cell, "c_copy", wraps=scratch.c_copy) as copied,
    ):
        y = STEPS[name](np, np.load(tmp_path / "x.npy") if kind == "file" else np.array(x))
        found = numpy.asarray(y)
    assert found.dtype == expected.dtype
    assert found.strides == expected.strides
    numpy.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert not copied.called


def test_what_others_read_is_made_once() -> None:
    """A step that others are made of is not made in two orders, and it stays right."""
    x = numpy.asfortranarray(numpy.random.default_rng(0).random((40, 30)))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        a = np.sort(np.array(x), axis=0)
        b, c = a * 2, a.ravel()
        roots = [build.transpose(b._node(), (1, 0)), c._node()]
        assert as_they_lie(roots, topological(roots)) is None, "the line would be put in order"
        np.compute(a, b, c)
        a += 1
        assert b.tolist() == (numpy.sort(x, axis=0) * 2).tolist()
        assert c.tolist() == numpy.sort(x, axis=0).ravel().tolist()
        assert a.tolist() == (numpy.sort(x, axis=0) + 1).tolist()


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_results_are_their_own(small: int) -> None:
    x = numpy.arange(12.0).reshape(3, 4)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=small):
        a = np.asarray(x) * 1
        b, c, straight = a.T + 1, a.T + 1, a + 1
        np.compute(b, c)
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
def test_results_that_memory_may_not_hold(memory_bytes: int) -> None:
    x = numpy.arange(160_000.0).reshape(400, 400)
    with running_on(EmbeddedBackend(2, memory_bytes)), config.override(small_bytes=0):
        found = np.asarray(x).T * 2 + 1
        numpy.testing.assert_array_equal(found.persist().compute(), x.T * 2 + 1)
        found = np.array(numpy.asfortranarray(x)) * 2
        numpy.testing.assert_array_equal(np.roll(found, 1, axis=0).compute(), numpy.roll(x * 2, 1, axis=0))
