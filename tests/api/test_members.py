"""Lines of integers that are compared with one number after the other, and what their masks keep."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import members, quick
from spartan_ng.api.core.door import PLAIN_BYTES
from tests.sampling import Some

SIZE = PLAIN_BYTES // 4 + 100
ASKED = 8
"""Comparisons, of which the last ones are looked up."""


def _increased(a: Any) -> None:
    a += 1


def _assigned(a: Any) -> None:
    a[3:700:5] = 2


def _set_through_a_view(a: Any) -> None:
    a[::-1][10] = 4


def _set_by_a_mask(a: Any) -> None:
    a[a == 3] = 1


def _filled(a: Any) -> None:
    a[:50].fill(6)


def _written_as_output(a: Any) -> None:
    numpy.add(a, 1, out=a) if isinstance(a, numpy.ndarray) else np.add(a, 1, out=a)


def _written_by_numpy(a: Any) -> None:
    numpy.asarray(a)[5:90] = 0


def _lent_and_written(a: Any) -> None:
    memory = numpy.asarray(a)
    for value in range(ASKED):
        a == value  # noqa: B015
    memory[7:77] = 5


def _sorted(a: Any) -> None:
    a.sort()


def _shuffled(a: Any) -> None:
    numpy.copyto(a, a[::-1].copy()) if isinstance(a, numpy.ndarray) else np.copyto(a, a[::-1].copy())


def _left_alone(a: Any) -> None:
    a.sum()


WRITES: tuple[Callable[[Any], None], ...] = (
    *(_increased, _assigned, _set_through_a_view, _set_by_a_mask, _filled, _written_as_output),
    *(_written_by_numpy, _lent_and_written, _sorted, _shuffled, _left_alone),
)


def _labels(rng: random.Random, numbers: Any) -> Any:
    low, high = rng.choice([(0, 9), (-4, 5), (-(10**6), 10**6), (0, 5000), (7, 8)])
    dtype = rng.choice(["i8", "i8", "i4", "u4", "i2", ">i8"])
    drawn = numbers.integers(low, high, SIZE)
    drawn[:20] = numbers.integers(0, 9, 20)
    return numpy.sort(drawn).astype(dtype) if rng.random() < 0.2 else drawn.astype(dtype)


def _same(found: Any, wanted: Any, told: Any) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), told
    numpy.testing.assert_array_equal(found.copy(), wanted, err_msg=str(told))


@pytest.mark.slow
def test_masks_of_one_value_after_the_other_are_numpys(some: Some) -> None:
    for seed in some(range(400), 12):
        rng, numbers = random.Random(seed), numpy.random.default_rng(seed)
        theirs = _labels(rng, numbers)
        table = numbers.random((SIZE, *rng.choice([(), (3,), (2, 2)])))
        ours, rows = np.array(theirs), np.array(table)
        if rng.random() < 0.2:
            theirs, ours = theirs.copy(), np.asarray(theirs)
        for _ in range(3):
            for value in (*range(ASKED), numpy.int16(2), -3, 2**70):
                mask, wanted = ours == value, theirs == value
                _same(rows[mask], table[wanted], (seed, value))
                _same(rows[ours == value, ...], table[wanted, ...], (seed, value))
                if rng.random() < 0.3:
                    mask[4:9], wanted[4:9] = True, True
                _same(mask, wanted, (seed, value))
                _same(rows[mask], table[wanted], (seed, value))
                _same(ours[mask], theirs[wanted], (seed, value))
            write = rng.choice(WRITES)
            write(ours)
            write(theirs)
            _same(ours, theirs, (seed, write))


@pytest.mark.skipif(not quick.IS_COMPILED, reason="there NumPy compares")
@pytest.mark.parametrize("is_evaluated", [False, True])
def test_a_line_is_gone_through_once_between_two_writes(
    is_evaluated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone_through: list[int] = []
    grouped = quick.grouped
    assert grouped is not None

    def noted(line: Any) -> Any:
        gone_through.append(len(line))
        return grouped(line)

    monkeypatch.setattr(members, "grouped", noted)
    labels = np.array(numpy.arange(SIZE) % 10)
    if is_evaluated:
        labels = np.argmin(np.array(numpy.random.default_rng(0).random((SIZE, 10))), axis=1)
        labels.persist()
    for times in (1, 2):
        for value in range(10):
            labels == value  # noqa: B015
        assert len(gone_through) == times
        labels[0] = 3
    for value in range(3):  # few are compared as they lie
        labels == value  # noqa: B015
    assert len(gone_through) == 2


@pytest.mark.skipif(not quick.IS_COMPILED, reason="there NumPy compares")
def test_loops_that_write_between_comparisons_write_nothing_down(monkeypatch: pytest.MonkeyPatch) -> None:
    gone_through: list[int] = []
    monkeypatch.setattr(members, "grouped", lambda line: gone_through.append(len(line)))
    labels = np.array(numpy.arange(SIZE) % 50)
    for value in range(50):
        labels[labels == value] = 7
        labels[value] = 1
    assert not gone_through
