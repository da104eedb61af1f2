"""A few of the programs of `python -m tests.faults cuts`."""

from __future__ import annotations

import pytest

from tests.faults.cuts import outcomes

NAMED = {"WorkerDied", "WorkerLost", "WorkerUnreachable", "MasterUnreachable"}


@pytest.mark.parametrize("seed", [21, 27, 28, 47])
def test_programs_over_breaking_connections_are_right_or_say_why(seed):
    found = outcomes(seed)
    assert found.pop("connections broken") > 0
    assert set(found) <= {"right", *NAMED}
    assert found["right"] > 0
