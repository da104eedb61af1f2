"""Windows over sources: the slabs that some indices need are those that hold them, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.plan.plan import Axis, Read
from spartan_ng.worker.stages.windows import Window, _within
from tests.sampling import examples


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
    window = Window(0, unread, read, 0, ((first, first + size),), data.draw(st.integers(1, 20)))

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
