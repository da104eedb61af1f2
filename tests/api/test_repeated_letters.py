"""Terms of `einsum` with a letter that comes twice: a diagonal is read, and nothing beside it."""

from __future__ import annotations

import random
from math import prod

import numpy
import pytest

import spartan_ng as sp
from spartan_ng.config import config
from spartan_ng.session import Session
from tests.sampling import Some

SIZES = {"i": 12, "j": 5, "k": 6, "l": 2}


def _drawn(seed: int) -> tuple[str, list[tuple[int, ...]]]:
    rng = random.Random(seed)
    terms = ["".join(rng.choices("iijkl", k=rng.randint(2, 4))) for _ in range(rng.randint(1, 2))]
    letters = sorted(set("".join(terms)))
    result = "".join(rng.sample(letters, rng.randint(0, len(letters))))
    return f"{','.join(terms)}->{result}", [tuple(SIZES[c] for c in t) for t in terms]


@pytest.mark.parametrize("small", [0, 100, 4000, 1 << 20])
def test_answers_are_numpys(small: int, some: Some) -> None:
    for seed in some(range(400), 40):
        text, shapes = _drawn(seed)
        arrays = [numpy.random.default_rng(seed).integers(-3, 4, s).astype("f8") for s in shapes]
        wanted = numpy.einsum(text, *arrays)
        with config.override(small_bytes=small):
            found = sp.einsum(text, *(sp.array(a) for a in arrays))
            assert type(found) is not sp.ndarray or found.shape == wanted.shape
            numpy.testing.assert_array_equal(numpy.asarray(found), wanted, err_msg=text)


@pytest.mark.parametrize("text", ["ijik->jk", "iijk->kj", "ijji->", "iijj->ij", "jiki,k->j"])
def test_nothing_beside_a_diagonal_is_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    term, *_ = text.partition("->")[0].split(",")
    shape = tuple(SIZES[c] for c in term)
    read = 8 * prod(SIZES[c] for c in set(term))
    with config.override(small_bytes=read + 100):
        a = sp.array(numpy.arange(float(prod(shape))).reshape(shape))
        more = [sp.arange(float(SIZES["k"]))] if "," in text else []
        sp.compute(a, *more)
        assert a.nbytes > config.small_bytes
        monkeypatch.setattr(Session, "_plan_and_run", None)  # NumPy does it at once
        found = sp.einsum(text, a, *more)
        wanted = numpy.einsum(text, *(numpy.asarray(x) for x in (a, *more)))
        numpy.testing.assert_array_equal(numpy.asarray(found), wanted)


@pytest.mark.parametrize(
    "shape", [(), (3,), (1, 1), (3, 3), (3, 4), (0, 0), (1, 3), (3, 3, 2), (2, 2, 3, 3)], ids=str
)
@pytest.mark.parametrize(
    "text",
    [
        "ii->i",
        "ii",
        "ij->ji",
        "ij",
        "ij->i",
        "ji",
        "i->",
        "...",
        "i...->...i",
        "iij->ji",
        "iijj->ij",
        " i i -> i",
    ],
)
def test_one_operand_is_shown_where_numpy_shows_it(text: str, shape: tuple[int, ...]) -> None:
    x = numpy.arange(float(prod(shape))).reshape(shape)
    a = sp.array(x)
    try:
        wanted = numpy.einsum(text, x)
    except ValueError:
        with pytest.raises(ValueError, match="einsum"):
            sp.einsum(text, a)
        return
    found = sp.einsum(text, a)
    numpy.testing.assert_array_equal(numpy.asarray(found), wanted, strict=True)
    if isinstance(wanted, numpy.ndarray):
        wanted[...], found[...] = -1, -1
        numpy.testing.assert_array_equal(numpy.asarray(a), x)
