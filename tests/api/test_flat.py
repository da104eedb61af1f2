"""`a.flat[key]` and `a.flat[key] = value`: NumPy's elements and errors, whatever is written where."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core.quick import IS_COMPILED
from spartan_ng.api.places.flat import Flat
from spartan_ng.config import config

ARRAYS = {
    "lines": lambda np, dtype: np.arange(12).reshape(3, 4).astype(dtype),
    "turned": lambda np, dtype: np.arange(12).reshape(4, 3).astype(dtype).T,
    "parts": lambda np, dtype: np.arange(24).reshape(3, 8).astype(dtype)[:, ::2],
    "computed": lambda np, dtype: np.arange(12).reshape(3, 4).astype(dtype) * 1 + 1,
    "no axes": lambda np, dtype: np.array(5).astype(dtype),
    "read-only": lambda np, dtype: np.broadcast_to(np.arange(4).astype(dtype), (3, 4)),
    "zeros": lambda np, dtype: np.zeros((3, 4), dtype),
}
KEYS = (
    *(0, 3, -1, 11, 12, -13, True, numpy.int64(2), 1 << 70, -1 << 70),
    *(slice(None), slice(1, 9, 2), slice(None, None, -1), slice(8, 2, -3), slice(20, 30), slice(3, 3)),
)
NUMBERS = {str(v): v for v in (1, 2.5, -1, 1j, True, 300, numpy.nan, numpy.float32(3), [1, 2])}
MADE: dict[str, Callable[[Any, Any], Any]] = {
    "a line": lambda np, a: np.array([7.0, 8.0]),
    "integers": lambda np, a: np.arange(5),
    "nothing": lambda np, a: np.array([]),
    "a matrix": lambda np, a: np.arange(12.0).reshape(3, 4),
    "itself backwards": lambda np, a: a[::-1] if a.ndim else a,
}


def tried(call: Any) -> Any:
    """What a call gives, or the class of its error."""
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - whatever NumPy raises
        return type(error)
    return None if found is None else (str(numpy.asarray(found).dtype), str(numpy.asarray(found).tolist()))


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("dtype", ["f8", "u1", "c16", "?"])
@pytest.mark.parametrize("name", ARRAYS)
def test_elements_are_read_and_written_as_numpys(name: str, dtype: str, small_bytes: int) -> None:
    for key, value in product(KEYS, [*NUMBERS, *MADE]):
        results = []
        for namespace in (np, numpy):
            with warnings.catch_warnings(), config.override(small_bytes=small_bytes):
                warnings.simplefilter("ignore")
                a = ARRAYS[name](namespace, dtype)
                read = tried(lambda a=a: a.flat[key])  # noqa: B023 - it is asked here
                new = MADE[value](namespace, a) if value in MADE else NUMBERS[value]
                written = tried(lambda a=a, new=new: a.flat.__setitem__(key, new))  # noqa: B023
                results.append((read, written, tried(lambda a=a: a)))
        assert results[0] == results[1], (key, value)


@pytest.mark.skipif(not IS_COMPILED, reason="the methods answer where nothing is compiled")
@pytest.mark.parametrize("name", ["lines", "turned", "parts", "no axes"])
def test_single_elements_are_read_and_written_without_the_methods(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (ARRAYS[name](namespace, "f8") for namespace in (np, numpy))
    a.sum()
    for method in ("_read_flat", "_write_flat"):
        monkeypatch.delattr(Flat, method)
    for x in (a, b):
        elements = x.flat
        elements[-1] = elements[0] + 1
        elements[0] = 7
    assert numpy.asarray(a).tolist() == b.tolist()
