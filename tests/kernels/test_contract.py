"""Products of every arrangement of labels, against einsum."""

from __future__ import annotations

import tracemalloc
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from spartan_ng.kernels import contract as products_of_labels
from spartan_ng.kernels.contract import COPIED_BYTES, contract
from tests.sampling import examples

LETTERS = "abcdefg"


@st.composite
def products(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[int, int]]:
    batch = draw(st.integers(0, 1))
    rows, columns, inner = (draw(st.integers(0, 2 - batch)) for _ in range(3))
    numbers = list(range(batch + rows + columns + inner))
    b, r = numbers[:batch], numbers[batch : batch + rows]
    c, k = numbers[batch + rows : batch + rows + columns], numbers[batch + rows + columns :]
    la = tuple(draw(st.permutations([*b, *r, *k])))
    lb = tuple(draw(st.permutations([*b, *c, *k])))
    lo = tuple(draw(st.permutations([*b, *r, *c])))
    return la, lb, lo, {x: draw(st.integers(1, 4)) for x in numbers}


@examples(300)
@given(products(), st.integers(0, 2**31), st.booleans(), st.sampled_from([8, 40, 200, COPIED_BYTES]))
def test_equals_einsum(
    case: tuple[tuple[int, ...], ...], seed: int, in_threads: bool, copied_bytes: int
) -> None:
    """In one piece, and in parts of which no copy is larger."""
    la, lb, lo, size = case
    rng = np.random.default_rng(seed)
    a = rng.standard_normal([size[x] for x in la])
    b = rng.standard_normal([size[x] for x in lb])
    letters = ["".join(LETTERS[x] for x in labels) for labels in (la, lb, lo)]
    expected = np.einsum(f"{letters[0]},{letters[1]}->{letters[2]}", a, b)
    with mock.patch.object(products_of_labels, "COPIED_BYTES", copied_bytes):
        found = contract(a, b, la, lb, lo, in_threads)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


NOT_LYING = ["abc,bd->adc", "abc,bd->dac", "bd,cab->dca", "acb,abd->acd", "abc,dcb->ad"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("case", [*NOT_LYING, "bad,bad->", "bad,bcd->ac", "bda,bea->dbe", "bfd,bge->fdge"])
def test_operands_of_more_axes_are_not_copied_as_wholes(case: str, order: Any) -> None:
    """Whatever they are rearranged for, and where both are."""
    letters, out = case.split("->")
    one, other = letters.split(",")
    sizes = {"a": 20, "b": 300, "c": 250, "d": 3, "e": 2, "f": 7, "g": 5}
    sizes |= {"b": 30_000} if "c" not in case else {}
    shapes = [[sizes[x] for x in labels] for labels in (one, other)]
    a, b = (np.array(np.random.default_rng(1).random(shape), order=order) for shape in shapes)
    la, lb, lo = (tuple(LETTERS.index(x) for x in labels) for labels in (one, other, out))
    with mock.patch.object(products_of_labels, "COPIED_BYTES", most := 1 << 18):
        tracemalloc.start()
        found = contract(a, b, la, lb, lo)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    np.testing.assert_allclose(found, np.einsum(case, a, b), rtol=1e-10)
    assert peak < 2 * found.nbytes + 4 * most, f"{peak:,} bytes for {a.nbytes:,} and {b.nbytes:,}"


@pytest.mark.parametrize("numbers", [(0.0, np.inf), (np.inf, 0.0), (np.nan, 0.0), (-np.inf, np.inf)])
def test_what_is_not_finite_is_so_in_products_of_every_size(numbers: tuple[float, float]) -> None:
    """Zero times infinity, too: no function may leave zeros out."""
    left, right = [(0, 2), (2, 0), (2,)], [(2, 1), (1, 2), (2,)]
    for la, lb, size in product(left, right, product((1, 2, 3), repeat=3)):
        lo = tuple(x for x in (0, 1) if x in (*la, *lb))
        a, b = (np.ones([size[x] for x in labels]) for labels in (la, lb))
        a.flat[::2], b.flat[::2] = numbers
        letters = ["".join(LETTERS[x] for x in labels) for labels in (la, lb, lo)]
        with np.errstate(invalid="ignore"):
            expected = np.einsum(f"{letters[0]},{letters[1]}->{letters[2]}", a, b)
            for in_threads in (False, True):
                np.testing.assert_array_equal(contract(a, b, la, lb, lo, in_threads), expected)


def test_products_in_threads_raise_what_numpy_raises() -> None:
    a, b = np.array([[np.inf, 1.0]]), np.array([[1.0], [-np.inf]])
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="invalid"):
        contract(a, b, (0, 2), (2, 1), (0, 1), in_threads=True)
    with np.errstate(invalid="ignore"):
        assert np.isnan(contract(a, b, (0, 2), (2, 1), (0, 1), in_threads=True)).all()


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("dtype", ["f", "d", "F"])
def test_products_in_threads_copy_no_operand(rows: int, dtype: str) -> None:
    """Blocks are rows or columns that are cut out of matrices; each would be copied once a block."""
    rng = np.random.default_rng(0)
    whole = rng.random((600, 1200)).astype(dtype)
    left = rng.random((rows, 600)).astype(dtype)
    for b in (whole[:, :900], whole[:, 300:], whole[:, :600].T, whole.T[600:].T, whole):
        for a, other in ((left, b), (left[0], b), (b.T, left.T)):
            la, lb, lo = ((0, 2) if a.ndim == 2 else (2,)), (2, 1), ((0, 1) if a.ndim == 2 else (1,))
            np.testing.assert_allclose(contract(a, other, la, lb, lo, in_threads=True), a @ other, rtol=1e-5)
            tracemalloc.start()
            found = contract(a, other, la, lb, lo, in_threads=True)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < found.nbytes + b.nbytes // 2, (a.strides, other.strides)


@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("which", ["a", "b", "both"])
def test_sparse_operands(turn_a: bool, turn_b: bool, which: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 5)) * (rng.random((4, 5)) < 0.4)
    b = rng.standard_normal((5, 3)) * (rng.random((5, 3)) < 0.4)
    left = sparse.csr_array(a) if which != "b" else a
    right = sparse.csr_array(b) if which != "a" else b
    if turn_a:
        left = left.T
    if turn_b:
        right = right.T
    found = contract(left, right, (2, 0) if turn_a else (0, 2), (1, 2) if turn_b else (2, 1), (0, 1))
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, a @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "text", ["ij,ij->i", "ij,ij->j", "ij,ji->j", "ijk,kij->ik", "ijk,ijk->j", "ij,ij->ij"]
)
def test_sums_along_lines_of_arrays_alike_are_no_products_of_matrices(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which would be one for each line."""
    left, right, out = (tuple("ijk".index(c) for c in t) for t in text.replace("->", ",").split(","))
    rng = np.random.default_rng(0)
    a, b = (rng.random([5 + i for i in term]) for term in (left, right))
    monkeypatch.setattr("spartan_ng.kernels.contract._batched", None)
    np.testing.assert_array_equal(contract(a, b, left, right, out), np.einsum(text, a, b))


STACKS = ("ijk,ik->ij", "ijk,ij->ik", "ik,kij->kj", "kji,jk->ik", "ijk,ki->ij", "hijk,hik->hij", "ij,hij->hi")


@pytest.mark.parametrize("text", STACKS)
@pytest.mark.parametrize("dtype", ["d", "f", "F", "e", "i", "?"])
@pytest.mark.parametrize(
    "sizes", [(3, 10, 11, 9), (2, 40, 1, 30), (4, 2, 3, 2), (2, 0, 3, 12), (1, 70, 30, 3)]
)
def test_stacks_of_matrices_and_vectors(text: str, dtype: str, sizes: tuple[int, ...]) -> None:
    """However they lie, with long lines and short ones."""
    length = dict(zip("hijk", sizes, strict=True))
    one, other, made = text.replace("->", ",").split(",")
    left, right, out = (tuple(map("hijk".index, term)) for term in (one, other, made))
    rng = np.random.default_rng(0)
    a, b = ((3 * rng.random([2 * length[c] for c in term])).astype(dtype) for term in (one, other))
    for step in (1, 2, -1):
        cut = [(slice(None) if step == 1 else slice(0, None, step))] * 4
        x, y = (
            whole[tuple(cut[: whole.ndim])][tuple(slice(length[c]) for c in term)]
            for whole, term in ((a, one), (b, other))
        )
        rtol = {"e": 1e-2, "f": 1e-5, "F": 1e-5}.get(dtype, 1e-12)
        found = contract(x, y, left, right, out)
        expected = np.einsum(text, x, y)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=rtol)


@pytest.mark.parametrize("state", ["warn", "raise"])
def test_stacks_tell_what_products_of_matrices_tell(state: Any) -> None:
    """Einsum is silent about what leaves the range."""
    a, b = np.full((3, 4, 9), 1e200), np.full((3, 9), 1e200)
    with np.errstate(over=state):
        told = pytest.warns(RuntimeWarning) if state == "warn" else pytest.raises(FloatingPointError)
        with told:
            contract(a, b, (0, 1, 2), (0, 2), (0, 1))
