"""Cuts of sorted parts: as many elements before them as a rank says, equal ones from the parts in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.worker.stages.cuts import Samples, cut
from tests.sampling import examples
from tests.worker.test_picking import KINDS, drawn


class Reading:
    """What a search for a cut reads of sorted parts."""

    def __init__(self, parts: Sequence[Any], steps: Sequence[int]) -> None:
        self.parts, self.steps = [np.sort(p) for p in parts], steps
        self.rounds = self.elements = 0

    def cut(self, rank: int, few: int) -> list[int]:
        samples = [p[::step] for p, step in zip(self.parts, self.steps, strict=True)]
        sizes = np.array([len(p) for p in self.parts])
        search, answer = cut(rank, Samples(samples, sizes, np.array(self.steps)), few), None
        while True:
            try:
                asked = search.send(answer)
            except StopIteration as end:
                return [int(n) for n in end.value]
            assert all(0 <= at.start <= at.stop <= len(self.parts[p]) for p, at in asked)
            answer = [self.parts[p][at.start : at.stop : at.step] for p, at in asked]
            self.rounds += 1
            self.elements += sum(map(len, answer))


def wanted(parts: Sequence[Any], rank: int) -> list[int]:
    """How many of the first `rank` elements of the stable sort of all parts come from each."""
    owners = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    order = np.argsort(np.concatenate(parts), kind="stable")
    return np.bincount(owners[order[:rank]], minlength=len(parts)).tolist()


@pytest.mark.slow
@examples(400)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 3_000),
    kind=st.sampled_from(KINDS),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    step=st.integers(1, 300),
    few=st.sampled_from([1, 8, 64]),
    data=st.data(),
)
def test_cuts_are_those_of_the_stable_sort(
    seed: int, n: int, kind: str, cuts: list[float], step: int, few: int, data: st.DataObject
) -> None:
    parts = np.split(drawn(seed, n, kind), sorted(round(c * n) for c in cuts))
    steps = [max(1, step + k) for k in range(len(parts))]
    reading = Reading(parts, steps)
    ranks = data.draw(st.lists(st.integers(1, n - 1), min_size=1, max_size=4))
    for rank in ranks:
        assert reading.cut(rank, few) == wanted(reading.parts, rank)


@pytest.mark.parametrize("kind", KINDS)
def test_little_is_read_whatever_the_elements_are(kind: str) -> None:
    """Also where a cut lies beside an element that fills half of the line."""
    n, few = 200_000, 64
    parts = np.split(drawn(3, n, kind), 10)
    line = np.sort(np.concatenate(parts))
    edges = np.flatnonzero(line[1:] != line[:-1]) + 1
    for rank in {n // 2, n // 7, int(edges[0]), int(edges[-1]), int(edges[len(edges) // 2])}:
        reading = Reading(parts, [2 * 141] * 10)
        assert reading.cut(rank, few) == wanted(reading.parts, rank)
        assert reading.elements <= 20 * few * len(parts)
        assert reading.rounds <= 20
