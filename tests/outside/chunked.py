"""xarray's tests with this package as whoever works on arrays in parts.

Chunks are ours where a test does not say whose, and what tests ask to be an array of dask's is to be one of
ours. Tests that have had none of ours are counted as skipped.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Generator
from typing import Any

import pytest
import xarray

from spartan_ng.api.core.handle import Handle
from spartan_ng.xarrays import ChunkManager

_WORDS = re.compile("chunk|dask")


class Chunked:
    """A plugin of the suite's pytest."""

    def __init__(self) -> None:
        xarray.set_options(chunk_manager="spartan_ng")
        tests: Any = importlib.import_module("xarray.tests")
        tests.dask_array_type = Handle
        utils: Any = importlib.import_module("xarray.core.utils")
        utils.is_duck_dask_array = _is_ours  # where a test imports it; xarray's modules have it already
        self._made = 0
        make = ChunkManager.from_array

        def noted(*arguments: Any, **keywords: Any) -> Any:
            self._made += 1
            return make(*arguments, **keywords)

        ChunkManager.from_array = noted  # type: ignore[method-assign]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Tests whose text says neither chunk nor dask, most of all, have none."""
        items[:] = [item for item in items if _WORDS.search(_text(item))]

    def pytest_runtest_logstart(self) -> None:
        """A test begins."""
        self._made = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """What becomes of it."""
        report = yield
        ended = report.when == "call" or report.failed
        if ended and not self._made and not _is_given_ours(item):
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, "no chunks of ours")
        return report


def _is_ours(value: Any) -> bool:
    return isinstance(value, Handle)


def _text(item: Any) -> str:
    return inspect.getsource(item.function) + item.nodeid if hasattr(item, "function") else "chunk"


def _is_given_ours(item: Any) -> bool:
    """Whether one of its parameters holds an array of ours, made when its file was imported."""
    given = getattr(item, "callspec", None)
    return given is not None and any(map(_holds_ours, given.params.values()))


def _holds_ours(value: Any) -> bool:
    if isinstance(value, xarray.Dataset):
        return any(isinstance(v._data, Handle) for v in value.variables.values())
    variable = value.variable if isinstance(value, xarray.DataArray) else value
    return isinstance(getattr(variable, "_data", None), Handle)
