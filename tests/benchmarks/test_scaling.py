"""Plans, messages and bytes at 4 and at 64 workers."""

from __future__ import annotations

import pytest

from benchmarks.scaling import PROGRAMS, measure


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_plans_and_messages_do_not_grow_with_tiles(name):
    few, many = measure(PROGRAMS[name], 4), measure(PROGRAMS[name], 64)
    assert many.tiles > 8 * few.tiles
    assert many.plan_bytes <= 1.5 * few.plan_bytes
    assert few.messages == 2 * 4 + 2
    assert many.messages == 2 * 64 + 2
    for scale in (few, many):
        assert scale.counted_bytes == scale.predicted_bytes
    assert many.planning_ms < 10 * few.planning_ms + 5
