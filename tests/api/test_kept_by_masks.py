"""Places and elements that a mask keeps: what is evaluated for them, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import forcing
from spartan_ng.graph import evaluation
from spartan_ng.graph.node import topological


@contextmanager
def evaluated() -> Iterator[list[Any]]:
    """The steps of evaluations, as often as they are in one."""
    found: list[Any] = []
    plain = evaluation.evaluate

    def noting(nodes: Any, *others: Any) -> Any:
        found.extend(node.fn for node in topological(nodes))
        return plain(nodes, *others)

    with mock.patch.object(forcing, "evaluate", noting):
        yield found


@pytest.mark.parametrize(
    "read", ["x[x > 5]", "x[x > 5][2:]", "np.append(x[x > 5], 1)", "x[np.flatnonzero(x > 5)]", "y[x > 5]"]
)
def test_a_mask_is_made_once_for_the_count_and_the_elements(read: str) -> None:
    here = numpy.arange(900.0).reshape(30, 30) % 13
    with np.config.override(small_bytes=64):
        names = {"np": np, "x": np.array(here.ravel()), "y": np.array(here.ravel()[::-1])}
        with evaluated() as steps:
            found = numpy.asarray(eval(read, names))
        assert steps.count("greater") == 1
    theirs = {"np": numpy, "x": here.ravel(), "y": here.ravel()[::-1]}
    numpy.testing.assert_array_equal(found, eval(read, theirs))


@pytest.mark.parametrize("call", ["np.flatnonzero(m)", "np.nonzero(m)", "np.where(m)", "m.nonzero()"])
@pytest.mark.parametrize("lies", ["m", "m.T", "m[::2, 1:]", "m[:, 0]"])
def test_places_of_marks_that_are_here_take_no_plan(call: str, lies: str) -> None:
    marks = numpy.arange(900).reshape(30, 30) % 7 == 2
    with np.config.override(small_bytes=64):
        ours = eval(lies, {"m": np.array(marks)})
        with evaluated() as steps:
            found = eval(call, {"np": np, "m": ours})
            found = [numpy.asarray(i) for i in (found if isinstance(found, tuple) else (found,))]
        assert steps == []
    expected = eval(call, {"np": numpy, "m": eval(lies, {"m": marks})})
    numpy.testing.assert_array_equal(found, expected if isinstance(expected, tuple) else (expected,))
