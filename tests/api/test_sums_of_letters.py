"""Einstein's sums as NumPy makes them, in values, dtypes and memory, however they are done."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest

import spartan_ng as sp
from spartan_ng.api.core import quick
from spartan_ng.config import config
from tests.sampling import Some

LETTERS = "ijkl"


def _drawn(seed: int) -> tuple[str, list[Any]]:
    """A sum's text and its operands: their axes in any order, up to some million products."""
    rng, numbers = random.Random(seed), numpy.random.default_rng(seed)
    lengths = {c: rng.choice([1, 2, 5, 24, 40]) for c in LETTERS}
    terms = ["".join(rng.sample(LETTERS, rng.randint(1, 3))) for _ in range(rng.randint(1, 3))]
    letters = sorted(set("".join(terms)))
    arrow = "->" + "".join(rng.sample(letters, rng.randint(0, len(letters)))) if rng.random() < 0.8 else ""
    dtypes = [rng.choice(["f8", "f8", "f4", "i8", "u1", "?", "c16"]) for _ in terms]
    arrays = []
    for term, dtype in zip(terms, dtypes, strict=True):
        a = numbers.integers(0, 3, [lengths[c] for c in term]).astype(dtype)
        order = rng.sample(range(a.ndim), a.ndim) if rng.random() < 0.3 else range(a.ndim)
        arrays.append(numpy.ascontiguousarray(a.transpose(order)).transpose(numpy.argsort(order)))
    return ",".join(terms) + arrow, arrays


def test_sums_are_numpys(some: Some) -> None:
    for seed in some(range(2000), 150):
        text, arrays = _drawn(seed)
        wanted = numpy.einsum(text, *arrays)
        found: Any = sp.einsum(text, *map(sp.array, arrays))
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), (seed, text)
        numpy.testing.assert_array_equal(numpy.asarray(found), wanted, err_msg=f"{seed}: {text}")
        long = [i for i, n in enumerate(wanted.shape) if n > 1]
        if wanted.size:
            assert [found.strides[i] for i in long] == [wanted.strides[i] for i in long], (seed, text)


SPELLED = [
    *("ij,ij->i", "ij,jk->ik", "ij,jk", "ijk,ik->ij", "ij->", "i j , j -> i", "ij,j,i->", "aB,B"),
    *("ij,ij->ij", "ijk,jk->i"),
]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("text", SPELLED)
def test_few_products_are_numpys_without_a_question(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spartan_ng.api.algebra import contractions

    terms = text.replace(" ", "").partition("->")[0].split(",")
    shapes = [tuple(20 + ord(c) % 4 for c in t) for t in terms]
    arrays = [sp.array(numpy.arange(numpy.prod(s)).reshape(s) % 7.0) for s in shapes]
    asked: list[Any] = []
    monkeypatch.setattr(contractions, "values_here", lambda args: asked.append(args))
    with config.override(small_bytes=1 << 20):
        found = sp.einsum(text, *arrays)
        assert not asked
    wanted = numpy.einsum(text, *map(numpy.asarray, arrays))
    numpy.testing.assert_array_equal(numpy.asarray(found), wanted)
    many = [sp.array(numpy.ones((60,) * len(s))) for s in shapes]
    if text == "ij,jk->ik":  # more products than NumPy's loops add up
        sp.einsum(text, *many)
        assert asked
