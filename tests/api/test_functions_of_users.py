"""What takes a function says so to who gives it something else, as where the arguments are swapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import spartan_ng as np


def add(x, y):
    return x + y


def first(x):
    return x > 0


X: Any = np.ones((3, 4))
SHAPE: Any = (3, 4)
SWAPPED: dict[str, Callable[[], Any]] = {
    "map(function, x)": lambda: np.map(X, first),
    "fold(function, x)": lambda: np.fold(X, add),
    "scan(function, x)": lambda: np.scan(X, add),
    "filter(predicate, x)": lambda: np.filter(X, first),
    "recurrence(plus, times, y, w)": lambda: np.recurrence(X, X, add, add),
    "from_function(read, shape)": lambda: np.from_function(SHAPE, first),
}


@pytest.mark.parametrize("call", SWAPPED)
def test_swapped_arguments_are_told_how_to_stand(call: str) -> None:
    with pytest.raises(TypeError) as told:
        SWAPPED[call]()
    assert str(told.value).startswith(f"{call}: ")
    assert "function" in str(told.value)


@pytest.mark.parametrize("given", [3, "add", None])
def test_what_is_no_function_is_named_by_its_type(given) -> None:
    for call in (np.map, np.fold, np.scan):
        with pytest.raises(TypeError, match=type(given).__name__):
            call(given, X)
