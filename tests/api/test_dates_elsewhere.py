"""Dates and durations that are not here are added and refused as NumPy's are, and as early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

DATES = numpy.array(["2020-01-01", "2021-01-01", "2022-03-04"], "M8[s]")
DURATIONS = DATES - DATES[0]

pytestmark = pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")


@pytest.fixture(autouse=True, params=[1, 3])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[None]:
    with running_on(SimulatedBackend(request.param)), config.override(small_bytes=0):
        yield


@pytest.mark.parametrize("value", [DATES, DURATIONS], ids=["dates", "durations"])
@pytest.mark.parametrize(
    "by", [1, numpy.timedelta64(5, "m"), DURATIONS[1:2]], ids=["number", "minutes", "array"]
)
@pytest.mark.parametrize("function", ["add", "subtract"])
def test_what_is_added_at_places_is_numpys(value: Any, by: Any, function: str) -> None:
    expected, found = value.copy(), np.array(value)
    try:
        getattr(numpy, function).at(expected, [0, 0, 1], by)
    except TypeError:
        with pytest.raises(TypeError):
            getattr(np, function).at(found, [0, 0, 1], by)
        return
    getattr(np, function).at(found, [0, 0, 1], by)
    numpy.testing.assert_array_equal(found, expected)


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "vectors": lambda m, x: x @ x,
    "columns": lambda m, x: x[:, None].T @ x[:, None],
    "batches": lambda m, x: m.matmul(x[None, :, None], x[None, None, :]),
    "with numbers": lambda m, x: x @ m.ones(3),
}


@pytest.mark.parametrize("value", [DATES, DURATIONS], ids=["dates", "durations"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_refused_where_they_are_written(value: Any, name: str) -> None:
    with pytest.raises(TypeError):
        PRODUCTS[name](numpy, value)
    with pytest.raises(TypeError):
        PRODUCTS[name](np, np.array(value))
