"""What is dear is computed once, also where the program has only a view of it, or arrays made of it."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.api.core import forcing
from spartan_ng.api.places.blockwise import on_blocks
from spartan_ng.graph import evaluation
from spartan_ng.graph.node import Node, Op, topological
from tests.sampling import examples

SIDE = 48


@contextmanager
def counted() -> Iterator[Counter[Node]]:
    """How often each dear operator is computed."""
    found: Counter[Node] = Counter()
    evaluate = evaluation.evaluate

    def counting(nodes: Sequence[Node], order: Sequence[Node] | None = None) -> Any:
        found.update(n for n in topological(nodes) if n.op is Op.SCAN or n.fn in ("along_axis", "contract"))
        return evaluate(nodes, order)

    with mock.patch.object(forcing, "evaluate", counting):
        yield found


DEAR: dict[str, Callable[[Any, Any], Any]] = {
    "ifft2": lambda space, x: space.fft.ifft2(x),
    "fft": lambda space, x: space.fft.fft(x * 2),
    "rfft": lambda space, x: space.fft.rfft(x),
    "irfft": lambda space, x: space.fft.irfft(x + 1j),
    "shifted": lambda space, x: space.fft.fftshift(space.fft.fft2(x)),
    "product": lambda space, x: (x * 2) @ x,
    "sort": lambda space, x: space.sort(x, 0),
    "order": lambda space, x: space.argsort(x * 2, 1),
    "sums": lambda space, x: space.cumsum(x, 1),
    "magnitudes": lambda space, x: abs(space.fft.fft(x)),
}
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda space, p: p,
    "real": lambda space, p: space.real(p),
    "imaginary": lambda space, p: p.imag,
    "turned": lambda space, p: p.T,
    "flat": lambda space, p: p.reshape(-1),
    "a row less": lambda space, p: p[1:],
    "backwards": lambda space, p: p[::-1],
    "half of the columns": lambda space, p: p[:, : (p.shape[1] + 1) // 2],
    "columns of the real part": lambda space, p: p.real[:, 1:],
    "a copy": lambda space, p: p.T.copy(),
    "a copy of a part": lambda space, p: p[2:].copy(),
}
READS: dict[str, Callable[[Any, Any, int], Any]] = {
    "sum": lambda space, p, k: (p * k).sum(),
    "largest": lambda space, p, k: abs(p + k).max(),
    "differences": lambda space, p, k: abs(p[1:] - p[:-1] * k).sum(),
    "turned": lambda space, p, k: (p.T + k).sum(),
    "elements": lambda space, p, k: numpy.asarray(p * k),
    "its own elements": lambda space, p, k: numpy.asarray(p),
    "an axis": lambda space, p, k: numpy.asarray(p.sum(0)),
}


def number(a: Any) -> Any:
    return numpy.asarray(a)


def asked_of(
    space: Any, x: Any, dear: str, view: str, reads: Sequence[str], is_built_first: bool
) -> list[Any]:
    """The answers of one who asks one value after the other, of a view that is all that is left."""
    p = VIEWS[view](space, DEAR[dear](space, x))
    if not is_built_first:
        return [number(READS[read](space, p, k)) for k, read in enumerate(reads, 2)]
    built = [(READS[read](space, p, k)) for k, read in enumerate(reads, 2)]
    return [number(each) for each in built]


@examples(150)
@given(
    st.sampled_from(sorted(DEAR)),
    st.sampled_from(sorted(VIEWS)),
    st.lists(st.sampled_from(sorted(READS)), min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 3),
)
def test_it_is_computed_once(
    dear: str, view: str, reads: list[str], is_built_first: bool, turns: int
) -> None:
    x = numpy.random.default_rng(0).random((SIDE, SIDE))
    ours = np.array(x)
    with np.config.override(small_bytes=0), counted() as found:
        for turn in range(turns):
            expected = asked_of(numpy, x + turn, dear, view, reads, is_built_first)
            answers = asked_of(np, ours + turn, dear, view, reads, is_built_first)
            for a, b in zip(answers, expected, strict=True):
                numpy.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert max(found.values(), default=1) == 1, found


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dear", DEAR)
def test_the_whole_table(dear: str, view: str) -> None:
    x = np.array(numpy.random.default_rng(0).random((SIDE, SIDE)))
    with np.config.override(small_bytes=0), counted() as found:
        asked_of(np, x, dear, view, ["sum", "largest"], True)
        asked_of(np, x, dear, view, ["sum", "largest", "differences"], False)
    assert max(found.values(), default=1) == 1, found


def test_a_view_of_little_leaves_the_rest_uncomputed() -> None:
    x = np.array(numpy.random.default_rng(0).random((SIDE, SIDE)))
    with np.config.override(small_bytes=0):
        row = (x @ x)[3]
        float((row * 2).sum())
        assert row._cell.value is None
        rows = (x @ x)[1:]
        float((rows * 2).sum())
        assert rows._cell.value is not None


def test_what_is_kept_goes_with_its_view() -> None:
    """NumPy's view has all of the memory that it shows a part of, and no longer than it lives."""
    x = np.array(numpy.random.default_rng(0).random((SIDE, SIDE)))
    with np.config.override(small_bytes=0):
        p = np.fft.ifft2(x).real
        doubled = p * 2
        float(doubled.sum())
        watch = weakref.ref(p._cell.node.data)
        assert watch() is not None
        del p
        assert watch() is not None, "the product waits for it"
        float((doubled + 1).sum())
        del doubled
        assert watch() is None


MADE: dict[str, Callable[[Any, Any, int], Any]] = {
    "back": lambda space, f, k: space.fft.ifft2(f * k).real,
    "a product": lambda space, f, k: (f @ f.T) * k,
    "magnitudes": lambda space, f, k: abs(f) ** k,
    "a part": lambda space, f, k: f[k:].imag,
    "a sum": lambda space, f, k: abs(f * k).sum(),
}


@examples(60)
@given(
    st.sampled_from([name for name in sorted(DEAR) if name != "order"]),
    st.lists(st.sampled_from(sorted(MADE)), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.integers(1, 3),
)
def test_what_is_made_of_a_temporary_is_computed_with_it(
    dear: str, made: list[str], random: Any, turns: int
) -> None:
    """A function's dear result that several of its answers are made of, and nobody has once it returns."""

    def fields(space: Any, x: Any) -> list[Any]:
        f = DEAR[dear](space, x)
        return [MADE[name](space, f, k) for k, name in enumerate(made, 2)]

    x = numpy.random.default_rng(0).random((SIDE, SIDE))
    ours = np.array(x)
    with np.config.override(small_bytes=0), counted() as found:
        for _ in range(turns):
            expected, answers = fields(numpy, x), fields(np, ours)
            for k in random.sample(range(len(made)), len(made)):
                numpy.testing.assert_allclose(number(answers[k]), expected[k], rtol=1e-9, atol=1e-9)
            x, ours = (old + abs(new[0]).max() * 1e-3 for old, new in ((x, expected), (ours, answers)))
    assert max(found.values(), default=1) == 1, found


def test_what_is_made_of_a_temporary_is_left_where_its_function_may_notice() -> None:
    x = np.array(numpy.random.default_rng(0).random((SIDE, SIDE)))
    called = []

    def noted(a: Any) -> Any:
        called.append(a.shape)
        return a

    with np.config.override(small_bytes=0):
        product = x @ x
        first, second = product + 1, on_blocks(noted, [product], "noted")
        del product
        called.clear()
        float(first.sum())
        assert not called
        numpy.testing.assert_allclose(number(second), number(x) @ number(x))


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f4", "c8", "M8[s]", "m8[s]", "U3", "S2", "O"])
def test_copies_of_views_of_anything(dtype: str) -> None:
    x = numpy.arange(24).reshape(4, 6) % 5
    elements = (x > 2 if dtype == "?" else x).astype(dtype)
    with np.config.override(small_bytes=0):
        for shown in (
            lambda space, a: space.sort(a, 0).T.copy(),
            lambda space, a: space.repeat(a, 2)[1:].copy(),
            lambda space, a: a.T.copy(),
            lambda space, a: space.take(a, [1, 0, 2], 0)[::-1].copy("F"),
        ):
            found = shown(np, np.array(elements))
            expected = shown(numpy, elements)
            assert found.dtype == expected.dtype
            numpy.testing.assert_array_equal(numpy.asarray(found), expected)
            assert found.flags.f_contiguous == expected.flags.f_contiguous
