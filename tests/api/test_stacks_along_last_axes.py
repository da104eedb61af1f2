"""Products of small matrices whose stack lies along the last axes, as in finite elements."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.api.algebra.contractions import _without_ellipses, _work
from spartan_ng.config import config
from spartan_ng.kernels import contract
from tests.sampling import examples

TEXTS = {
    "matrices": "ijk,jlk->ilk",
    "turned": "jik,ljk->ilk",
    "two axes": "ijkl,jmkl->imkl",
    "ellipsis": "ij...,jk...->ik...",
    "vectors": "ij...,j...->i...",
    "dots": "ij...,ij...",
    "first": "...ij,...jk->...ik",
    "all": "ijk,ijk->ijk",
    "outer": "ik,jk->ijk",
}


@st.composite
def contractions(draw: Any) -> tuple[str, list[Any]]:
    """Two terms, with an ellipsis or without one, and operands for them."""
    stack = draw(st.sampled_from(("s", "st", "...", "")))
    terms = [draw(st.permutations("abc"))[: draw(st.integers(0, 3))] for _ in range(2)]
    letters = sorted({c for t in terms for c in t})
    result = draw(st.permutations(letters))[: draw(st.integers(0, len(letters)))]
    lengths = {c: draw(st.integers(1, 4)) for c in "abc"} | {"s": draw(st.sampled_from((1, 7, 40))), "t": 2}
    rest = {"...": [(draw(st.sampled_from((1, 40))), 40), (40,)]}.get(stack)
    kind = draw(st.sampled_from(("f8", "f4", "c16", "i8", "?")))
    operands = []
    for k, term in enumerate(terms):
        own = rest[k] if rest else tuple(lengths[c] for c in stack)
        shape = (*(lengths[c] for c in term), *own)
        values = numpy.random.default_rng(k).integers(-3, 4, shape).astype(kind)
        operands.append(numpy.asarray(values, order=draw(st.sampled_from("CF"))))
    text = ",".join("".join(t) + stack for t in terms)
    return text + "->" + "".join(result) + stack, operands


@examples(150)
@given(contractions())
def test_they_are_numpys_wherever_the_stack_lies(drawn: tuple[str, list[Any]]) -> None:
    text, operands = drawn
    wanted = numpy.einsum(text, *operands)
    for small_bytes in (config.small_bytes, 0):
        with config.override(small_bytes=small_bytes):
            found = np.einsum(text, *map(np.asarray, operands))
            assert found.dtype == wanted.dtype
            numpy.testing.assert_array_equal(found, wanted)


@examples(150)
@given(contractions())
def test_an_ellipsis_is_as_many_letters(drawn: tuple[str, list[Any]]) -> None:
    text, operands = drawn
    shapes = [x.shape for x in operands]
    spelled = _without_ellipses(text, shapes)
    assert "." not in spelled
    numpy.testing.assert_array_equal(numpy.einsum(spelled, *operands), numpy.einsum(text, *operands))
    assert _work(text, *shapes) == _work(spelled, *shapes)
    assert _work(text, *shapes).made == numpy.einsum(text, *operands).size


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("length", [40, 3000])
@pytest.mark.parametrize("name", TEXTS)
def test_no_small_matrix_is_a_product_of_its_own(
    name: str, length: int, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLAS would be called for each, of copies that have its elements side by side."""

    def batched(*_: Any) -> Any:
        raise AssertionError("each is a product of its own")

    text = TEXTS[name]
    terms = _without_ellipses(text, [(0,) * 4, (0,) * (3 if name == "vectors" else 4)]).partition("->")[0]
    operands = []
    for term in terms.split(","):
        shape = [3] * (len(term) - 1) + [length] if name != "first" else [length, 3, 3]
        operands.append(numpy.random.default_rng(len(term)).random(shape))
    if name != "first":
        monkeypatch.setattr(contract, "_batched", batched)
    with config.override(small_bytes=config.small_bytes if small else 0):
        numpy.testing.assert_allclose(np.einsum(text, *operands), numpy.einsum(text, *operands), rtol=1e-12)


@pytest.mark.parametrize(
    "text", ["ij...,jk...->ik...->", "i...j,..k->i", "ij...,jk->ikz", "abcdefgh...,i->i..."]
)
def test_what_is_no_text_is_numpys_error(text: str) -> None:
    x = numpy.ones((3, 3, 40))
    with pytest.raises(ValueError) as wanted:  # noqa: PT011 - compared below
        numpy.einsum(text, x, x)
    with pytest.raises(ValueError) as found:  # noqa: PT011 - as NumPy's
        np.einsum(text, np.asarray(x), np.asarray(x))
    assert type(found.value).__mro__[-4:] == type(wanted.value).__mro__[-4:]
