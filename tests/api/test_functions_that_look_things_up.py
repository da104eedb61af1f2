"""Functions called with elements look up variables, arrays and settings, which change after the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

Function = Callable[[Any, Callable[[Any], Any], Any], Any]
CALLS: dict[str, Function] = {
    "lines": lambda np, f, x: np.apply_along_axis(f, 0, x),
    "lines of rows": lambda np, f, x: np.apply_along_axis(f, 1, x),
    "lines to numbers": lambda np, f, x: np.apply_along_axis(lambda v: f(v).sum(), 1, x),
    "lines to matrices": lambda np, f, x: np.apply_along_axis(lambda v: f(v)[:2, None] * numpy.ones(2), 0, x),
    "vectorize": lambda np, f, x: np.vectorize(f)(x),
    "vectorize as a decorator": lambda np, f, x: np.vectorize(otypes=[float])(f)(x),
    "vectorize, of two": lambda np, f, x: np.vectorize(lambda a, b: f(a) + b)(x, x[0]),
    "vectorize, with a signature": lambda np, f, x: np.vectorize(f, signature="(n)->(n)")(x),
    "frompyfunc": lambda np, f, x: np.frompyfunc(f, 1, 1)(x),
    "fromfunction": lambda np, f, x: np.fromfunction(lambda i, j: f(i) + j, x.shape),
    "fromfunction, vectorized": lambda np, f, x: np.fromfunction(
        np.vectorize(lambda i, j: f(i) + j), x.shape
    ),
    "piecewise": lambda np, f, x: np.piecewise(x, [x > 3], [f, lambda v: -f(v)]),
    "over axes": lambda np, f, x: np.apply_over_axes(lambda a, axis: np.sum(f(a), axis), x, (0, 1)),
    "fromiter": lambda np, f, x: np.fromiter((f(v) for v in x.flat), float),
    "pad": lambda np, f, x: np.pad(x, 1, lambda v, w, axis, keywords: v.__setitem__(slice(0, 1), f(v[1]))),
    "where a function chooses": lambda np, f, x: np.select([x > 2, x <= 2], [f(x), -x]),
}
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "stored": lambda np: np.arange(60.0).reshape(12, 5),
    "to be computed": lambda np: np.arange(60.0).reshape(12, 5) * 2 + 1,
    "drawn": lambda np: np.random.default_rng(3).random((12, 5)),
    "turned": lambda np: (np.arange(60.0).reshape(5, 12) + 1).T,
}


def _changed_afterwards(np: Any, call: Function, x: Any) -> Any:
    """A variable, an array and a setting that the function looks up are others once the call is back."""
    factor, weights, settings = 2.0, numpy.full(1, 3.0), {"shift": 1.0}
    found = call(np, lambda v: v * factor + weights[0] - settings["shift"], x)
    factor, settings["shift"] = -7.0, 100.0
    weights[:] = 0
    return numpy.asarray(found)


@pytest.fixture(params=[0, 1, 3])
def backend(request: pytest.FixtureRequest) -> Iterator[None]:
    with running_on(SimulatedBackend(request.param) if request.param else EmbeddedBackend(2)):
        yield


@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("call", CALLS)
def test_what_was_there_in_the_call_counts(call: str, array: str, small: int, backend: None) -> None:
    expected = _changed_afterwards(numpy, CALLS[call], ARRAYS[array](numpy))
    with config.override(small_bytes=small):
        found = _changed_afterwards(np, CALLS[call], ARRAYS[array](np))
    numpy.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-13)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("call", CALLS)
def test_calls_are_numpys_in_this_process(call: str, array: str) -> None:
    """As many, in the same order, by the end of the call, as a counter, a list and a generator see them."""

    def seen(np: Any) -> tuple[list[float], Any]:
        calls: list[float] = []
        random = numpy.random.default_rng(1)

        def f(v: Any) -> Any:
            calls.append(float(numpy.sum(v)))
            return v + random.random()

        found = CALLS[call](np, f, ARRAYS[array](np))
        told = list(calls)
        return told, numpy.asarray(found).astype(float)

    expected = seen(numpy)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        found = seen(np)
    numpy.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
    numpy.testing.assert_allclose(found[1], expected[1], rtol=1e-13)


@pytest.mark.parametrize("location", [(99,), (-1,), (2,), (0, 0)])
def test_no_update_is_dropped(location: tuple[int, ...]) -> None:
    """`join_update` puts data where its function says, or says that it cannot."""
    with pytest.raises(np.errors.UserFunctionError, match=r"at location .*\(3,\)|at location \(0, 0\)"):
        np.join_update(
            lambda extents, tiles: (location, tiles[0][:2]),
            numpy.add,
            (np.arange(20.0),),
            axes=(0,),
            shape=(3,),
            dtype=float,
        ).compute()


@pytest.mark.parametrize("call", ["lines", "lines of rows", "vectorize"])
def test_what_is_larger_than_memory_is_worked_on_in_parts(call: str) -> None:
    """In the call, too."""
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, memory_bytes=8_000_000):
        x = np.random.default_rng(3).random((12_000, 400))
        factor = 2.0
        some = x if call != "vectorize" else x[:, :40]
        found = CALLS[call](np, lambda v: v * factor, some)
        factor = 7.0
        numpy.testing.assert_allclose(float(found.sum()), 2 * float(some.sum()), rtol=1e-12)
