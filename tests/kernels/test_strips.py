"""Products with one vector after the other, by strips: SciPy's bits, and where there are none."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from spartan_ng.config import config
from spartan_ng.costs.choices import STRIP_PRODUCTS
from spartan_ng.errors import KernelWarning
from spartan_ng.kernels.compiled import sparse_product, strips, trust
from spartan_ng.kernels.compiled.ready_made import source_of
from spartan_ng.kernels.compiled.sparse_product import multiply, prepare
from spartan_ng.kernels.compiled.strips import StripedProduct, Strips, striped_product

ROWS, COLUMNS = 150_000, 300_000


@pytest.fixture(autouse=True)
def however_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_product, "SPARSE_PRODUCTS", 1)
    monkeypatch.setattr(strips, "STRIP_NONZEROS", 0)
    monkeypatch.setattr(strips, "_earlier", {})
    monkeypatch.setattr(trust, "_ready_made", trust.Trust())


def scattered(number: str = "f8", index: str = "i4", seed: int = 0) -> Any:
    """A matrix whose rows have some elements anywhere, or none."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, ROWS) * (rng.random(ROWS) < 0.7)
    counts[:70_000:7] = 0
    starts = np.concatenate([[0], np.cumsum(counts)])
    keys = np.sort(np.repeat(np.arange(ROWS), counts) * COLUMNS + rng.integers(0, COLUMNS, starts[-1]))
    values = (99 * rng.standard_normal(len(keys))).astype(number)
    return sparse.csr_array(
        (values, (keys % COLUMNS).astype(index), starts.astype(index)), shape=(ROWS, COLUMNS)
    )


@pytest.mark.parametrize("number", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize("index", ["i4", "i8"])
def test_every_product_has_the_same_bits(number: str, index: str) -> None:
    a = scattered(number, index)
    rng = np.random.default_rng(1)
    kinds = []
    with config.override(kernels="compile"):
        for _ in range(STRIP_PRODUCTS + 3):
            x = (99 * rng.standard_normal(COLUMNS)).astype(number)
            np.testing.assert_array_equal(multiply(a, x, False), a @ x)
            (known,) = strips._earlier.values()
            kinds.append(known.strips is not None)
    assert kinds == [False] * STRIP_PRODUCTS + [True] * 3


@pytest.mark.parametrize("number", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize("index", ["i4", "i8"])
def test_every_product_from_the_left_has_the_same_bits(number: str, index: str) -> None:
    """Also of views that are made anew for each."""
    a = scattered(number, index)
    rng = np.random.default_rng(1)
    kinds = []
    with config.override(kernels="compile"):
        for _ in range(STRIP_PRODUCTS + 3):
            x = (99 * rng.standard_normal(ROWS)).astype(number)
            found = multiply(a.T.T, x, True)
            kinds.append(found is not None)
            if found is not None:
                np.testing.assert_array_equal(found, a.T @ x)
    assert kinds == [False] * STRIP_PRODUCTS + [True] * 3


def test_both_ways_have_one_order() -> None:
    a = scattered()
    x, y = np.random.default_rng(3).standard_normal((2, COLUMNS))
    asked(a)
    with config.override(kernels="compile"):
        np.testing.assert_array_equal(multiply(a, x, False), a @ x)
        (known,) = strips._earlier.values()
        order = known.strips
        np.testing.assert_array_equal(multiply(a, y[:ROWS], True), a.T @ y[:ROWS])
    assert known.strips is order


def test_matrices_that_share_some_arrays_have_their_own_orders() -> None:
    a = scattered()
    asked(a)
    others = (a.indices + 1) % COLUMNS
    others.sort()  # ascending in all rows
    b = sparse.csr_array((a.data, others, a.indptr), shape=a.shape)
    wider = sparse.csr_array((a.data, a.indices, a.indptr), shape=(ROWS, COLUMNS + 7))
    x = np.random.default_rng(4).standard_normal(COLUMNS + 7)
    bits = sparse.csr_array((a.data.view("i8"), a.indices, a.indptr), shape=a.shape)
    for other in (b, wider, bits):
        asked(other)
        with config.override(kernels="compile"):
            v = x[: other.shape[1]].astype(other.dtype)
            np.testing.assert_array_equal(multiply(other, v, False), other @ v)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_groups_change_no_bit(count: int) -> None:
    a = scattered()
    x = np.random.default_rng(2).standard_normal((COLUMNS, 1))
    with config.override(kernels="compile"):
        for _ in range(STRIP_PRODUCTS + 1):
            found = striped_product(a, x, False, {})
        assert found is not None
        product = StripedProduct(a, x, False, Strips(a, count), found.kernel, {})
        ranges = product.ranges(1)
        assert len(ranges) == count
        work = [int(a.indptr[hi] - a.indptr[lo]) for lo, hi in ranges]
        assert max(work) - min(work) <= 12
        for _ in range(2):
            out, flipped = np.full((ROWS, 1), np.nan), np.full((1, ROWS), np.nan)
            for rows in reversed(ranges):
                product.run(rows, out, flipped)
            np.testing.assert_array_equal(out, a @ x)
            np.testing.assert_array_equal(flipped, out.T)


def asked(a: Any, **options: Any) -> Any:
    """What there is after more products than are waited for."""
    x = np.ones(a.shape[1], a.dtype)
    with config.override(kernels="compile", **options):
        for _ in range(STRIP_PRODUCTS + 2):
            found = prepare(a, x, False, {})
    return found


def test_what_stays_as_it_lies() -> None:
    a = scattered()
    assert isinstance(asked(a), StripedProduct)
    unsorted = scattered()
    unsorted.indices[:] = unsorted.indices[::-1].copy()
    unsorted.has_sorted_indices = False
    band = sparse.diags_array([1.0, 2.0, 3.0], offsets=[-700, 0, 700], shape=(COLUMNS, COLUMNS)).tocsr()
    short = scattered()[:, :200_000]
    for other in (unsorted, band, short):
        assert not isinstance(asked(other), StripedProduct)
    assert not isinstance(asked(scattered(), memory_bytes=1 << 20), StripedProduct)


def test_thin_matrices_stay_as_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that a strip adds to here and there are as far from each other as elements are."""
    monkeypatch.setattr(strips, "STRIP_NONZEROS", 1 << 15)
    assert not isinstance(asked(scattered()), StripedProduct)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kept", [True, False])
def test_who_writes_into_a_matrix_has_other_products(turned: bool, kept: bool) -> None:
    """Into values, indices or where rows begin; of the matrix itself, or of another one of its arrays."""
    a = scattered()
    rng = np.random.default_rng(5)
    x = rng.standard_normal(ROWS if turned else COLUMNS)
    for _ in range(STRIP_PRODUCTS):
        asked(a)
    at = int(rng.integers(0, a.nnz - 1))
    row = int(np.flatnonzero(np.diff(a.indptr) > 1)[7])

    def swap(values: Any) -> None:
        values[at], values[at + 1] = values[at + 1], values[at].copy()

    writes = (
        lambda: np.multiply(a.data, 2, out=a.data),
        lambda: swap(a.data),
        lambda: a.data.__setitem__(at, np.nextafter(a.data[at], 1e9)),
        lambda: a.indices.__setitem__(a.indptr[row], 0),
        lambda: a.indptr.__setitem__(row + 1, a.indptr[row + 1] - 1),
    )
    for write in writes:
        write()
        other = a if kept else sparse.csr_array((a.data, a.indices, a.indptr), shape=a.shape)
        with config.override(kernels="compile"):
            found = multiply(other, x, turned)
        assert found is not None
        np.testing.assert_array_equal(found, (other.T if turned else other) @ x)


@pytest.mark.parametrize("number", ["f8", "f4", "i8"])
def test_writes_in_pairs_do_not_cancel_each_other_out(number: str) -> None:
    """Highest and lowest bits turned over, elements doubled and halved or swapped, at two places each."""
    a = scattered(number)
    bits = a.data.view(f"u{a.dtype.itemsize}")
    top, one = bits.dtype.type(1 << (8 * a.dtype.itemsize - 1)), bits.dtype.type(1)
    rng = np.random.default_rng(6)
    x = (99 * rng.standard_normal(COLUMNS)).astype(number)
    asked(a)

    def turn_over(mask: Any) -> Any:
        return lambda at: np.bitwise_xor.at(bits, at, mask)

    def swap(at: Any) -> None:
        bits[at] = bits[at[::-1]]

    def trade(at: Any) -> None:
        a.data[at[0]], a.data[at[1]] = a.data[at[0]] * 2, a.data[at[1]] / 2

    for write in (turn_over(top), turn_over(one), turn_over(top | one), swap, trade):
        for _ in range(8):
            write(rng.integers(0, a.nnz, 2))
            with config.override(kernels="compile"):
                np.testing.assert_array_equal(multiply(a, x, False), a @ x)


def test_a_run_looks_at_a_matrix_once() -> None:
    """However many of its products there are; one of another run looks again."""
    a = scattered()
    x = np.random.default_rng(7).standard_normal(COLUMNS)[:, None]
    asked(a)
    one: Any = {}

    def multiplied(run: Any) -> Any:
        out = np.empty((ROWS, 1))
        with config.override(kernels="compile"):
            found = striped_product(a, x, False, run)
        assert found is not None
        for rows in found.ranges(1):
            found.run(rows, out)
        return out

    before = multiplied(one)
    np.testing.assert_array_equal(before, a @ x)
    a.data *= -1
    np.testing.assert_array_equal(multiplied(one), before)
    np.testing.assert_array_equal(multiplied({}), a @ x)


def test_an_order_lives_as_long_as_its_matrix() -> None:
    a = scattered()
    asked(a)
    assert len(strips._earlier) == 1
    del a
    gc.collect()
    assert not strips._earlier


def test_a_wrong_kernel_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    right = source_of
    wrong = lambda *args, **constants: right(*args, **constants).replace("+= values[p] *", "+= values[0] *")  # noqa: E731
    monkeypatch.setattr(strips, "source_of", wrong)
    a = scattered()
    with pytest.warns(KernelWarning, match="sparse products by strips is wrong"):
        assert not isinstance(asked(a), StripedProduct)
