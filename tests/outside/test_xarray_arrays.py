"""The tests that xarray has for arrays it wraps, over ours: where `xarray-array-testing` is installed."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import hypothesis.strategies as st
import numpy
import pytest

import spartan_ng as np

base = pytest.importorskip("xarray_array_testing.base")
creation = pytest.importorskip("xarray_array_testing.creation")
indexing = pytest.importorskip("xarray_array_testing.indexing")
reduction = pytest.importorskip("xarray_array_testing.reduction")


class Ours(base.DuckArrayTestMixin):  # type: ignore[misc, name-defined]
    """Our arrays, as their suite makes and compares them."""

    @property
    def xp(self) -> ModuleType:
        return np

    @staticmethod
    def array_type(op: str) -> type[Any]:
        return np.ndarray

    @staticmethod
    def array_strategy_fn(*, shape: Any, dtype: Any) -> Any:
        return st.builds(np.ones, shape=st.just(shape), dtype=st.just(dtype))

    @staticmethod
    def assert_equal(a: Any, b: Any) -> None:
        numpy.testing.assert_equal(numpy.asarray(a), numpy.asarray(b))


class TestCreation(creation.CreationTests, Ours):  # type: ignore[misc, name-defined]
    pass


class TestReductions(reduction.ReductionTests, Ours):  # type: ignore[misc, name-defined]
    pass


class TestIndexing(indexing.IndexingTests, Ours):  # type: ignore[misc, name-defined]
    pass
