"""Passes over sources go along the dimension that needs the least memory, by as many indices as fit."""

from __future__ import annotations

import itertools
from math import prod
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng import memory
from spartan_ng.arrays import WHOLE, ArrayRef, Box, Tiling
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.plan import bands
from spartan_ng.plan.draft import Draft, DraftResult
from spartan_ng.plan.rows import VALUE, Axis, Read, Slot
from tests.sampling import examples

F8 = np.dtype(float)
STATES = 4
"""States of a result that are in memory at one time, however many bands there are."""


@st.composite
def drafts(draw: st.DrawFn) -> tuple[Draft, list[Slot], Tiling]:
    """Views of sources and of arrays in memory over some domain, and what is stored of them."""
    domain = tuple(draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    dims = range(len(domain))
    slots: list[Slot] = []
    reads: list[Read] = []
    for _ in range(draw(st.integers(1, 3))):
        labels = draw(st.permutations([*dims, WHOLE]))[: draw(st.integers(1, len(domain) + 1))]
        axes = tuple(
            Axis(d, 0, draw(st.sampled_from([1, 2, -3])), domain[d])
            if d != WHOLE
            else Axis(d, 0, 1, draw(st.integers(1, 9)))
            for d in labels
        )
        shape = tuple(abs(a.step) * a.size for a in axes)
        chunks = tuple(draw(st.integers(1, n)) for n in shape) if draw(st.integers(0, 3)) else None
        slot = len(slots) if draw(st.integers(0, 9)) else VALUE
        reads.append(Read(slot, axes, tuple(range(len(axes))), tuple(a.size for a in axes), tuple(labels)))
        slots.append(Slot(shape, F8, Tiling.single(len(shape)), chunks=chunks))
    results = []
    for _ in range(draw(st.integers(1, 2))):
        out = tuple(d for d in dims if draw(st.booleans()))
        shape = tuple(domain[d] for d in out)
        node = build.data(ArrayRef(shape, F8, value=np.zeros(shape)))
        results.append(DraftResult(node, len(slots), out))
        stored = "csr" if len(out) == 2 and not draw(st.integers(0, 9)) else "dense"
        slots.append(Slot(shape, F8, Tiling.single(len(shape)), stored))
    whole = tuple(d for d in dims if not draw(st.integers(0, 5)))
    driver = draw(st.sampled_from([-1] * 8 + [0, 1]))
    grid = Tiling.grid(*(draw(st.integers(1, min(n, 3))) for n in domain))
    return Draft(results, domain, whole, reads=reads, driver=driver), slots, grid


def seen(read: Read, slot: Slot, box: Box) -> int:
    """Bytes of what a box of the domain needs of an array."""
    sizes = [a.size if a.label == WHOLE else box[a.label][1] - box[a.label][0] for a in read.axes]
    return prod(sizes) * slot.dtype.itemsize


def by_hand(draft: Draft, slots: list[Slot], grid: Tiling, target: int) -> dict[int, tuple[int, int]]:
    """For each dimension along which a pass may go, the length of a band, and the bytes that it takes."""
    sources = [r for r in draft.reads if r.slot != VALUE and slots[r.slot].chunks is not None]
    task = tuple((0, -(-n // parts)) for n, parts in zip(draft.domain, grid.parts, strict=True))

    def cut(d: int, length: int) -> Box:
        return (*task[:d], (0, length), *task[d + 1 :])

    found = {}
    for d, (_, size) in enumerate(task):
        lengths = {
            r: -(-chunk // abs(axis.step))
            for r in sources
            for axis, chunk in zip(r.axes, slots[r.slot].chunks or (), strict=True)
            if axis.label == d
        }
        if d in draft.whole or draft.domain[d] == 1 or not lengths:
            continue

        def taken(length: int, along: int = d, followers: dict[Read, int] = lengths) -> int:
            return sum(seen(r, slots[r.slot], cut(along, length)) for r in followers)

        chunk = max(lengths.values())
        fitting = next(n for n in itertools.count(1) if taken(n + 1) > target)
        if fitting >= chunk:
            length = max(n for n in range(1, fitting + 1) if n % chunk == 0)
        else:  # a chunk that is a little too much is read nevertheless
            length = chunk if taken(chunk) <= 2 * target else fitting
        length = min(length, size)
        held = sum(seen(r, slots[r.slot], cut(d, length)) for r in sources)
        again = sum(
            seen(r, slots[r.slot], cut(d, max(n, length))) - seen(r, slots[r.slot], cut(d, length))
            for r, n in lengths.items()
        )
        states = sum(
            r.node.nbytes * min(len(range(0, size, length)), STATES) for r in draft.results if d not in r.out
        )
        found[d] = length, held + again + states
    return found


@pytest.mark.slow
@examples(400)
@given(drafts(), st.integers(8, 20_000), st.integers(0, 1), st.integers(1, 4))
def test_a_band_is_what_counting_finds(
    case: tuple[Draft, list[Slot], Tiling], target: int, limited: int, threads: int
) -> None:
    draft, slots, grid = case
    budget = target * memory.BANDS_SHARE * (threads + memory.BESIDE) if limited else 1 << 60
    with (
        mock.patch.object(memory, "BAND_BYTES", 1 << 60 if limited else target),
        config.override(threads=threads),
    ):
        band = bands.band_of(draft, slots, grid, Profile(memory_bytes=budget))
    known = by_hand(draft, slots, grid, target)
    sparse = any(slots[r.slot].format != "dense" for r in draft.results)
    if not known or draft.driver >= 0 or sparse:
        assert band is None
        return
    assert band is not None
    along, length = band
    assert length == known[along][0]
    # What is no more than is read at a time counts as much, and the largest source's first axis first.
    counted = {d: max(nbytes, target) for d, (_, nbytes) in known.items()}
    sources = [r for r in draft.reads if r.slot != VALUE and slots[r.slot].chunks is not None]
    axes = [a.label for r in sorted(sources, key=lambda r: -slots[r.slot].nbytes) for a in r.axes]
    least = min(counted.values())
    assert along == min((d for d in counted if counted[d] == least), key=axes.index)
