"""Steps with their axes in another order have the same elements, and what lies otherwise is not copied."""

from __future__ import annotations

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
from spartan_ng.graph.axes import reordered
from spartan_ng.graph.node import Op, topological
from tests import reference
from tests.test_programs import running_on

STEPS: dict[str, Callable[[Any, Any], Any]] = {
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
SHAPES = [(40, 30), (7, 8, 9)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", STEPS)
def test_elements_are_the_same(name: str, shape: tuple[int, ...]) -> None:
    x = numpy.random.default_rng(0).random(shape)
    axes = tuple(range(len(shape)))[::-1]
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        node = STEPS[name](np, np.array(x))._node()
        order = topological([node])
        found = reordered(node, axes, order)
        (expected,) = reference.evaluate([build.transpose(node, axes)])
        if found is None:  # what it is made of has another shape
            assert node.op in (Op.SLICE, Op.TRANSPOSE, Op.MAP, Op.RESHAPE)
            return
        (value,) = reference.evaluate([found])
    assert value.value.shape == expected.value.shape
    numpy.testing.assert_array_equal(value.value, expected.value)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["array", "file"])
@pytest.mark.parametrize("name", STEPS)
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
        y = STEPS[name](np, np.load(tmp_path / "x.npy") if kind == "file" else np.array(x, order="F"))
        found = numpy.asarray(y)
    assert found.dtype == expected.dtype
    assert found.strides == expected.strides
    numpy.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert not copied.called


def test_what_others_read_is_made_once() -> None:
    """A step that another is made of is not made in two orders, and it stays right."""
    x = numpy.asfortranarray(numpy.random.default_rng(0).random((40, 30)))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        a = np.sort(np.array(x, order="F"), axis=0)
        b = a * 2
        assert reordered(a._node(), (1, 0), topological([a._node(), b._node()])) is None
        sorts = [n for n in topological([_turned(b, a)]) if n.op is Op.JOIN_UPDATE]
        assert sorts == [a._node()]
        np.compute(a, b)
        a += 1
        assert b.tolist() == (numpy.sort(x, axis=0) * 2).tolist()
        assert a.tolist() == (numpy.sort(x, axis=0) + 1).tolist()


def _turned(b: Any, a: Any) -> Any:
    """What is computed for `b` together with what is made of `a` besides."""
    nodes = [b._node(), a.sum(axis=0)._node()]
    return reordered(nodes[0], (1, 0), topological(nodes)) or nodes[0]
