"""Large arrays that are written to, and read at an element after each write: NumPy writes them where they
lie, as nobody else reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.core import forcing
from spartan_ng.graph import evaluation
from tests.test_programs import running_on

WRITES = {
    "m += 1.5": "f",
    "m *= -1": "fi",
    "m -= a": "fi",
    "m += m[::-1]": "fi",
    "m **= 2": "f",
    "m += row": "fi",
    "m &= 6": "i",
    "m ^= a": "i",
    "m //= 3": "i",
    "np.add(m, a, out=m)": "fi",
    "np.multiply(a, m, m)": "fi",
    "np.subtract(m, 1, out=m, where=a > 2)": "fi",
    "np.maximum(a, m, out=m)": "fi",
    "np.clip(m, 0, 5, out=m)": "fi",
    "m.clip(1, 4, out=m)": "fi",
    "np.negative(m, out=m)": "fi",
    "np.add(m[::-1], a, out=m)": "fi",
    "np.add(m, 1, out=m, casting='unsafe', dtype='f4')": "f",
}
"""Statements, and the kinds of numbers that they are for."""
READS = ("m[3, 2]", "m[-1, 0]", "float(m[1, 1])", "m[numpy.int64(2), 0]", "m.T[1, 2]")
CASES = [(w, k, r) for (w, kinds), r in product(WRITES.items(), READS) for k in kinds]
STEPS = 9


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many nodes evaluations are asked for."""
    asked: list[int] = []
    plain = evaluation.evaluate

    def counting(nodes: Any, *others: Any) -> Any:
        asked.append(len(nodes))
        return plain(nodes, *others)

    with mock.patch.object(forcing, "evaluate", counting):
        yield asked


def operands(namespace: Any, kind: str) -> dict[str, Any]:
    random = numpy.random.default_rng(3)
    made = {
        "m": random.integers(1, 9, (40, 5)),
        "a": random.integers(1, 5, (40, 5)),
        "row": random.integers(1, 4, 5),
    }
    dtype = "f8" if kind == "f" else "i8"
    return {"np": namespace, "numpy": numpy} | {n: namespace.array(v.astype(dtype)) for n, v in made.items()}


def done(statement: str, read: str, names: dict[str, Any]) -> list[Any]:
    """What is read after each step."""
    found = []
    with numpy.errstate(all="ignore"):
        for _ in range(STEPS):
            exec(statement, names)
            found.append(eval(read, names))
    return found


@pytest.mark.some(60)
@pytest.mark.parametrize(("statement", "kind", "read"), CASES)
def test_values_are_numpys(statement: str, kind: str, read: str) -> None:
    theirs = operands(numpy, kind)
    expected = done(statement, read, theirs)
    with np.config.override(small_bytes=64):
        ours = operands(np, kind)
        found = done(statement, read, ours)
        numpy.testing.assert_array_equal(found, expected)
        numpy.testing.assert_array_equal(ours["m"], theirs["m"])
        assert ours["m"].dtype == theirs["m"].dtype


@pytest.mark.parametrize(
    "statement", ["m += 1.5", "np.clip(m, 0, 5, out=m)", "np.add(m, a, out=m)", "m -= a"]
)
def test_nothing_is_evaluated(statement: str) -> None:
    with np.config.override(small_bytes=64):
        names = operands(np, "f")
        names["m"], names["a"] = np.array(names["m"]), np.array(names["a"])
        with counted() as first:
            done(statement, "m[3, 2]", names)
        with counted() as then:
            done(statement, "m[3, 2]", names)
        assert 0 < sum(first) <= 2, "the copy"
        assert then == []
        lying = names["m"]._cell.value
        done(statement, "m[0, 0]", names)
        assert names["m"]._cell.value is lying, "it was written where it lies"


BEFORE = {
    "nothing": lambda m: None,
    "a sum that was asked for": lambda m: float(m.sum()),
    "a sum that nobody has asked for": lambda m: [m.sum(axis=0)].clear(),
    "a product that is gone": lambda m: (m * 2).sum(axis=0)._force() is None,
    "a view": lambda m: m[1:],
}
"""What a program has done with an array that nobody else reads when it writes to it."""


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("each", [1, 2, 3])
@pytest.mark.parametrize(
    "statement", ["m += 1.5", "m **= 2", "np.add(m, a, out=m)", "np.clip(m, 0, 50, out=m)"]
)
def test_what_nobody_else_reads_is_written_where_it_lies(statement: str, each: int, name: str) -> None:
    with np.config.override(small_bytes=64):
        names, theirs = operands(np, "f"), operands(numpy, "f")
        lying = names["m"]._cell.value
        for _ in range(each):
            BEFORE[name](names["m"])
            exec(statement, names)
            exec(statement, theirs)
            assert names["m"]._cell.value is lying
        numpy.testing.assert_array_equal(names["m"], theirs["m"])


def test_elsewhere_they_are_steps_of_the_graph() -> None:
    with running_on(SimulatedBackend(2)), np.config.override(small_bytes=64):
        names = operands(np, "f")
        for _ in range(STEPS):
            names["m"] += 1.5
            assert names["m"]._peek() is None
            float(names["m"][3, 2])


WAITING: dict[str, Callable[[Any], Any]] = {
    "a map": lambda m: m * 2,
    "a copy": lambda m: m.copy(),
    "a part": lambda m: m[1:3] + 0,
    "a sum": lambda m: m.sum(axis=0),
    "a view": lambda m: m[2:],
}


@pytest.mark.parametrize("name", WAITING)
@pytest.mark.parametrize("statement", ["m += 1.5", "np.clip(m, 0, 5, out=m)", "m -= a"])
def test_what_waits_has_the_elements_of_before(statement: str, name: str) -> None:
    """Of a view, those of after."""

    def run(namespace: Any) -> list[Any]:
        names, made = operands(namespace, "f"), []
        for _ in range(STEPS):
            made.append(WAITING[name](names["m"]))
            exec(statement, names)
            names["m"][3, 2] * 1.0
        return [numpy.asarray(x) for x in (*made, names["m"])]

    with np.config.override(small_bytes=64):
        for ours, theirs in zip(run(np), run(numpy), strict=True):
            numpy.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "statement",
    [
        "m += 0.5",
        "m += np.ones(3)",
        "np.add(m, 0.5, out=m)",
        "np.clip(m, 0.5, 2, out=m)",
        "np.add(m, np.ones((2, 40, 5), int), out=m)",
    ],
)
def test_errors_are_the_same_after_turns(statement: str) -> None:
    raised = []
    for namespace in (np, numpy):
        with np.config.override(small_bytes=64):
            names = operands(namespace, "i")
            done("m += 1", "m[3, 2]", names)
            with pytest.raises((TypeError, ValueError)) as error:
                exec(statement, names)
            raised.append((isinstance(error.value, TypeError), numpy.asarray(names["m"]).tolist()))
    assert raised[0] == raised[1]


def test_read_only_arrays_stay_as_they_are() -> None:
    with np.config.override(small_bytes=64):
        names = operands(np, "f")
        done("m += 1", "m[3, 2]", names)
        before = numpy.asarray(names["m"]).copy()
        names["m"].flags.writeable = False
        for statement in ("m += 1.0", "np.add(m, 1.0, out=m)"):
            with pytest.raises(ValueError, match="read-only"):
                exec(statement, names)
        numpy.testing.assert_array_equal(names["m"], before)
