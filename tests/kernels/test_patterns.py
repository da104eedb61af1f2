"""Dot products at non-zeros: what is compiled, and NumPy's of gathered lines, of whatever lies wherever."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from spartan_ng.kernels import patterns
from spartan_ng.kernels.patterns import Pattern, dots
from tests.sampling import examples

ROWS, COLUMNS = 30, 40
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "in order": lambda x: x,
    "by columns": np.asfortranarray,
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "backwards in lines": lambda x: x[:, ::-1].copy()[:, ::-1],
    "one line": lambda x: np.broadcast_to(x[:1], x.shape),
    "unaligned": lambda x: np.frombuffer(b"_" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "the other order of bytes": lambda x: x.astype(x.dtype.newbyteorder()),
}
needs_compiled = pytest.mark.skipif(patterns._module is None, reason="nothing is compiled")


def _product(dtype: Any) -> Any:
    return SimpleNamespace(params=((0, 1), (1, 2), (0, 2)), dtype=np.dtype(dtype), fn="contract")


def _pattern(nnz: int, index: str, kind: str, seed: int = 0, lying: str = "in order") -> Pattern:
    random = np.random.default_rng(seed)
    rows, columns = random.integers(0, ROWS, nnz), random.integers(0, COLUMNS, nnz)
    block = sparse.coo_array((np.ones(nnz), (rows, columns)), (ROWS, COLUMNS)).asformat(kind)
    block.indices, block.indptr = (LAYOUTS[lying](x.astype(index)) for x in (block.indices, block.indptr))
    return Pattern(block)


@examples(200)
@given(
    length=st.integers(0, 40),
    nnz=st.integers(0, 1500),
    dtype=st.sampled_from(["f4", "f8", "c16", "i8"]),
    index=st.sampled_from(["i4", "i8"]),
    kind=st.sampled_from(["csr", "csc"]),
    lying=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 2),
    places=st.sampled_from(["in order", "unaligned", "read-only"]),
)
def test_as_elements_of_the_whole_product(
    length: int, nnz: int, dtype: str, index: str, kind: str, lying: tuple[str, str], places: str
) -> None:
    """Also of what came in a message, at any address."""
    random = np.random.default_rng(nnz)
    if not length and "one line" in lying:
        length = 1
    u = LAYOUTS[lying[0]](random.integers(-9, 9, (ROWS, length)).astype(dtype))
    v = LAYOUTS[lying[1]](random.integers(-9, 9, (COLUMNS, length)).astype(dtype))
    pattern = _pattern(nnz, index, kind, lying=places)
    found = dots(_product(dtype), u, v.T, pattern)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, (u @ v.T)[pattern.places])  # small integers: all sums are exact


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rounded_and_without_end_as_numpys(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    u, v = (
        random.standard_normal((ROWS, 100)).astype(dtype),
        random.standard_normal((COLUMNS, 100)).astype(dtype),
    )
    u[3, 5], u[4, 99], v[7, 0] = np.inf, np.nan, -np.inf
    pattern = _pattern(200, "i4", "csr")
    found = dots(_product(dtype), u, v.T, pattern)
    monkeypatch.setattr(patterns, "_module", None)
    with np.errstate(invalid="ignore"):
        expected = dots(_product(dtype), u, v.T, pattern)
    rounding = {"f4": 1e-5, "f8": 1e-13}[dtype]
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding)


@needs_compiled
def test_lines_are_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they lie like, where they are as many as are asked for."""
    monkeypatch.setattr(np, "einsum", None)
    for name in ("in order", "by columns", "every second row", "unaligned"):
        make = LAYOUTS[name]
        u, v = make(np.ones((ROWS, 5))), make(np.ones((COLUMNS, 5)))
        assert (dots(_product("f8"), u, v.T, _pattern(200, "i8", "csr")) == 5).all()


@needs_compiled
@pytest.mark.parametrize("place", [-1, ROWS, 1 << 30])
@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_not_there_is_an_error(place: int, index: str, side: int) -> None:
    places = np.zeros((2, 5), index)
    places[side, 3] = place
    u = np.ones((ROWS, 3))
    with pytest.raises(IndexError, match="place 3"):
        patterns._module.dots(u, u, *places, np.empty(5))


@needs_compiled
def test_other_things_than_lines_are_an_error() -> None:
    u, places, out = np.ones((ROWS, 3)), np.zeros(5, "i8"), np.empty(5)
    read_only = np.frombuffer(out.tobytes())
    for given_ in (
        (u[0], u, places, places, out),
        (u, u[:, :2], places, places, out),
        (u, u.T, places, places, out),
        (u.astype("f4"), u, places, places, out),
        (u, u, places[:4], places, out),
        (u, u, places.astype("i4"), places, out),
        (u, u, places.astype("f8"), places, out),
        (u, u, places, places.astype("u8"), out),
        (u, u, places, places, out.astype("i8")),
        (u, u, places, places, read_only),
        (u, u, places, places, out.astype("c16")),
        (u, None, places, places, out),
    ):
        with pytest.raises((TypeError, ValueError, BufferError)):
            patterns._module.dots(*given_)
