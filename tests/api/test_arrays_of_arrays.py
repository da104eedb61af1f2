"""Arrays whose elements are arrays: as parameters of a network, or lines of unlike lengths, are kept."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

SHAPES: dict[str, Any] = {
    "lines": [(2,), (3,), (4,)],
    "lines of one length": [(3,), (3,)],
    "layers": [(4, 3), (3,), (3, 2), (2,)],
    "some of one length": [(2, 3), (2, 3), (4, 3)],
    "columns apart": [(2, 3), (2, 4)],
    "one": [(2, 3)],
    "empty ones": [(0,), (2,), (0,)],
    "a number": [(), (2,)],
}
JOINS = ("concatenate", "hstack", "vstack", "stack", "column_stack", "dstack")


def arrays(space: Any, shapes: Any, dtype: Any = float) -> list[Any]:
    return [
        space.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype) + k
        for k, shape in enumerate(shapes)
    ]


def elements(found: Any) -> Any:
    """What an array has, as lists all the way down."""
    if isinstance(found, numpy.ndarray | np.ndarray):
        return [elements(x) for x in found] if found.ndim else found.item()
    return found


def answer(call: Any) -> Any:
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - whatever NumPy raises
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    return numpy.asarray(found).dtype, numpy.shape(found), elements(found)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("name", SHAPES)
def test_arrays_become_elements_where_they_do_by_numpy(name: str, kind: Any, lazy: bool) -> None:
    with config.override(**({"small_bytes": 0} if lazy else {})):
        wanted, given = [[*arrays(s, SHAPES[name])] for s in (numpy, np)]
        for make in (lambda s, a: s.array(a, dtype=object), lambda s, a: s.asarray(a, object)):
            assert answer(lambda m=make: m(np, kind(given))) == answer(lambda m=make: m(numpy, kind(wanted)))
        if name in ("lines", "layers"):
            found: Any = np.array(kind(given), dtype=object)
            assert found.shape == (len(SHAPES[name]),)
            assert all(x is y for x, y in zip(found, given, strict=True))
            mixed: Any = np.array([given[0], *wanted[1:]], dtype=object)
            assert elements(mixed) == elements(numpy.array(wanted, dtype=object))


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("name", SHAPES)
def test_arrays_of_arrays_are_joined_as_lists_of_them(name: str, join: str) -> None:
    def joined(space: Any) -> Any:
        given = space.empty(len(SHAPES[name]), dtype=object)
        for k, part in enumerate(arrays(space, SHAPES[name])):
            given[k] = part
        return getattr(space, join)(given)

    assert answer(lambda: joined(np)) == answer(lambda: joined(numpy))


@pytest.mark.parametrize("join", JOINS[1:])
def test_so_they_are_by_the_name_of_the_parameter(join: str) -> None:
    name = "arrays" if join == "stack" else "tup"
    said = []
    for space in (np, numpy):
        given = space.empty(2, dtype=object)
        given[0], given[1] = space.arange(3.0), space.arange(3.0) + 1
        said.append(answer(lambda s=space, g=given: getattr(s, join)(**{name: g})))
    assert said[0] == said[1]


@pytest.mark.parametrize("join", JOINS)
def test_objects_that_are_no_arrays_are_joined_as_by_numpy(join: str) -> None:
    for items in ([1, 2.5, 3], ["a", None], [[1], [2]]):

        def joined(space: Any, items: Any = items) -> Any:
            given = space.empty(len(items), dtype=object)
            for k, item in enumerate(items):
                given[k] = item
            return getattr(space, join)(given)

        assert answer(lambda j=joined: j(np)) == answer(lambda j=joined: j(numpy))


def test_large_arrays_that_become_elements_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy would have a million objects of each first."""

    def asked(*_: Any) -> Any:
        raise AssertionError("their elements were asked for")

    given = [np.zeros((1000, 1000)), np.zeros(1000), np.zeros((2000, 1000))]
    monkeypatch.setattr(np.ndarray, "__array__", asked)
    found = np.array(given, dtype=object)
    assert found.shape == (3,)
    assert found[2] is given[2]
