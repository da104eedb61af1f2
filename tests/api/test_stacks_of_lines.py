"""Stacks of products of a matrix and a vector: one loop over the matrices, NumPy's where they lie here.

A plan would have that loop run by one thread, and take longer to get there.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from tests.api.test_small_answers import waiting
from tests.test_programs import running_on

LENGTHS = {"b": 11, "c": 3, "r": 4, "k": 8, "l": 2}
OF_LINES = [
    f"{''.join(matrix)},{vector}->{''.join(result)}"
    for letters, vectors in (("brk", ("bk", "kb")), ("bcrk", ("bck", "kbc")), ("brkl", ("bkl", "lbk")))
    for vector in vectors
    for matrix in permutations(letters)
    for result in permutations([c for c in letters if c == "r" or (c in vector and c in "bc")])
]
OTHERS = ["brk,bk->brk", "brk,brk->br", "brk,kl->brl", "brk,bkl->brl", "brk,bk->r", "br,bk->brk", "rk,k->r"]


def operands(text: str, kind: str) -> list[Any]:
    """Of a kind, with a negative zero in each."""
    random = numpy.random.default_rng(5)
    terms = text.partition("->")[0].split(",")
    made = [(random.standard_normal([LENGTHS[c] for c in t]) * 9).astype(kind) for t in terms]
    for a in made:
        a.flat[0] *= -0.0
    return made


@pytest.mark.some(24)
@pytest.mark.parametrize("text", OF_LINES)
def test_they_are_numpys_loops_however_large(text: str) -> None:
    for kind in ("f8", "f4", "i4"):
        given = operands(text, kind)
        for swapped in (text, "{1},{0}->{2}".format(*text.replace("->", ",").split(","))):
            known = given if swapped == text else given[::-1]
            expected = numpy.einsum(swapped, *known)
            with np.config.override(small_bytes=64):
                ours = [np.array(a) for a in known]
                lines = np.einsum(swapped, *ours)
                is_short = min(numpy.array(max(given, key=numpy.size).shape)[-1:]) < 8
                assert is_short or not waiting(lines), (swapped, kind)
            numpy.testing.assert_allclose(lines, expected, rtol=1e-5)
            assert (lines.dtype, lines.shape) == (expected.dtype, expected.shape)


@pytest.mark.parametrize("text", OTHERS)
def test_other_contractions_are_left_to_plans(text: str) -> None:
    given = operands(text, "f8")
    with np.config.override(small_bytes=64):
        found = np.einsum(text, *map(np.array, given))
        assert waiting(found)
        numpy.testing.assert_allclose(found, numpy.einsum(text, *given), rtol=1e-12, atol=1e-12)


def test_elsewhere_they_are_left_to_workers() -> None:
    with running_on(SimulatedBackend(2)), np.config.override(small_bytes=64):
        assert waiting(np.einsum("brk,bk->br", *map(np.array, operands("brk,bk->br", "f8"))))


@pytest.mark.parametrize(
    "shapes", [((5, 1, 8), (5, 8)), ((5, 4, 8), (1, 8)), ((1, 4, 8), (5, 8)), ((5, 4, 1), (5, 8))]
)
def test_stretched_axes(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Of which the result, or the work, may be larger than both operands."""
    a, b = (numpy.random.default_rng(1).random(s) for s in shapes)
    for small in (64, 1 << 20):
        with np.config.override(small_bytes=small):
            found = np.einsum("brk,bk->br", np.array(a), np.array(b))
            numpy.testing.assert_allclose(found, numpy.einsum("brk,bk->br", a, b), rtol=1e-12)


def test_what_is_as_long_as_its_operands_is_numpys_from_small_arrays_on() -> None:
    """Not only up to the number of products that any contraction may have there."""
    with np.config.override(small_bytes=1 << 25):
        a, b = np.ones((70, 32, 64)), np.ones((70, 64))
        assert not waiting(np.einsum("ijk,ik->ij", a, b))
        assert not waiting(np.einsum("ijk,ij->ik", a, a[..., 0]))
