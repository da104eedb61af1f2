"""Searches whose values are sorted first find NumPy's places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.kernels import searches
from tests.sampling import examples

_FLOATS = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan]


@examples(60)
@given(
    seed=st.integers(0, 1 << 16),
    code=st.sampled_from(["f8", "f4", "i8", "u4", "i2", "f2", "M8[s]", "U2"]),
    size=st.integers(1, 300),
    asked=st.sampled_from([(1,), (6,), (7,), (40, 3), (0,), (2, 0), ()]),
    side=st.sampled_from(["left", "right"]),
    turned=st.booleans(),
)
def test_places_are_numpys(
    seed: int, code: str, size: int, asked: tuple[int, ...], side: Any, turned: bool
) -> None:
    rng = np.random.default_rng(seed)

    def numbers(shape: Any) -> Any:
        if code.startswith("f"):
            return rng.choice(np.array([*_FLOATS, *rng.standard_normal(9)], code), shape)
        return rng.integers(0, 99, shape).astype(code)

    line, values = np.sort(numbers(size)), numbers(asked)
    values = values.T[::-1] if turned and values.ndim else values
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "SEARCH_ELEMENTS", 1)
        patch.setattr(searches, "_PIECE", 6)
        found = searches.searched(line, values, side)
    wanted = np.searchsorted(line, values, side)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_a_long_search_asks_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    search = np.searchsorted

    def noted(line: Any, values: Any, side: Any) -> Any:
        asked.append(values)
        return search(line, values, side)

    monkeypatch.setattr(np, "searchsorted", noted)
    rng = np.random.default_rng(0)
    searches.searched(np.sort(rng.random(5000)), rng.random(5000), "left")
    assert all((values[1:] >= values[:-1]).all() for values in asked)
    assert sum(map(len, asked)) == 5000
