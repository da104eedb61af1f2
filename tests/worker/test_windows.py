"""Windows over sources: the slabs that some indices need are those that hold them, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.api.files.sources import over
from spartan_ng.config import config
from spartan_ng.plan.rows import Axis, Read
from spartan_ng.worker.memory import store
from spartan_ng.worker.stages.windows import Window, _within
from tests.sampling import examples
from tests.sources.recorder import Recorder


@examples(400)
@given(st.data())
def test_slabs_hold_what_is_asked_for(data: st.DataObject) -> None:
    size, step = data.draw(st.integers(1, 40)), data.draw(st.sampled_from([1, 2, 5]))
    start, down = data.draw(st.integers(0, 30)), data.draw(st.booleans())
    first = data.draw(st.integers(0, 20))
    source = SimpleNamespace(chunks=(data.draw(st.integers(1, 12)),))
    region = ((start, start + (size - 1) * step + 1, step),)
    unread: Any = SimpleNamespace(shape=(size,), source=source, dtype=np.dtype("f8"), region=region)
    read = Read(0, (Axis(0, 0, -step if down else step, size),), (0,), (size,), (0,))
    window = Window(
        0, unread, read, 0, ((first, first + size),), data.draw(st.one_of(st.just(1), st.integers(1, 20)))
    )

    lo = data.draw(st.integers(0, size - 1))
    hi = data.draw(st.integers(lo + 1, size))
    asked = {size - 1 - i if down else i for i in range(lo, hi)}
    every = [set(range(*window.span(slab))) for slab in window.slabs(first, first + size)]
    assert [i for slab in every for i in sorted(slab)] == list(range(size)), "slabs part the indices"
    found = window.slabs(first + lo, first + hi)
    assert set(found) == {slab for slab, inside in enumerate(every) if inside & asked}


RANGES = st.builds(
    lambda start, step, n: (start, start + step * (n - 1) + 1, step),
    *(st.integers(0, 6), st.integers(1, 4), st.integers(1, 5)),
)


@examples(300)
@given(RANGES, RANGES)
def test_a_range_is_within_another_where_all_its_indices_are(part, whole) -> None:
    """Steps that do not follow the other's are no part of it, even where few indices happen to be."""
    inside = set(range(*part)) <= set(range(*whole))
    follows = part == whole or part[2] % whole[2] == 0
    assert _within(part, whole) == (inside and follows)


@examples(300)
@given(st.data())
def test_a_read_is_shown_what_lies_inside_slab_by_slab(data: st.DataObject) -> None:
    """Of the same array, the same way along the bands, all of that axis, and of the others what is there."""
    regions = st.sampled_from([(0, 9, 1), (0, 9, 2), (3, 9, 1), (3, 9, 2)])
    whole, part = data.draw(st.tuples(regions, regions)), data.draw(st.tuples(regions, regions))
    axis, other = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    down, up = data.draw(st.booleans()), data.draw(st.booleans())
    slot, asked = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))

    def reading(at: int, turned: bool) -> Read:
        axes = tuple(Axis(d, 0, -1 if turned and d == at else 1, 9) for d in range(2))
        return Read(0, axes, (0, 1), (9, 9), (0, 1))

    shape = tuple(len(range(*r)) for r in whole)
    source = SimpleNamespace(chunks=(2, 2))
    unread: Any = SimpleNamespace(shape=shape, source=source, dtype=np.dtype("f8"), region=whole)
    window = Window(slot, unread, reading(axis, down), axis, ((0, 9), (0, 9)), 3)
    alike = (asked, other, up) == (slot, axis, down) and part[axis] == whole[axis]
    there = set(range(*part[1 - axis])) <= set(range(*whole[1 - axis]))
    assert window.shows(asked, reading(other, up), part, other) == (alike and there)


@pytest.mark.parametrize("share", [10, 4, 3])
def test_long_rows_are_folded_one_at_a_time(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows that memory has no room for several of; they went to disk as a whole."""
    monkeypatch.setattr(store, "on_disk", lambda *args: pytest.fail("something went to disk"))
    value = np.random.default_rng(0).random((8, 50_000))
    with config.override(memory_bytes=share * value[0].nbytes, small_bytes=1 << 10):
        for fold in (
            lambda a: a.sum(),
            lambda a: a.max(axis=1),
            lambda a: (a * 2).mean(axis=1),
            lambda a: ((a - a.mean()) ** 2).sum(),
        ):
            source = Recorder(value, (1, 50_000))
            np.testing.assert_allclose(fold(over(source)), fold(value))
            assert len(source.asked) <= 16
