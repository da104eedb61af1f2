"""How many workers there should be."""

import pytest

from spartan_ng.backends.adapting import Bounds

BOUNDS = Bounds(2, 6, busy_s=3.0, idle_s=10.0)


@pytest.mark.parametrize(
    ("workers", "is_busy", "for_s", "wanted"),
    [
        (2, True, 2.9, 2),
        (2, True, 3.0, 4),
        (4, True, 3.0, 6),
        (6, True, 99.0, 6),
        (6, False, 9.9, 6),
        (6, False, 10.0, 2),
        (2, False, 99.0, 2),
        (1, False, 0.0, 2),
        (9, True, 0.0, 6),
    ],
)
def test_workers_by_what_they_do(workers, is_busy, for_s, wanted):
    assert BOUNDS.wanted(workers, is_busy, for_s) == wanted
