"""Who is sooner is told by the best of some rounds, in turns."""

from __future__ import annotations

import time

import pytest

from spartan_ng.costs import contests


@pytest.mark.parametrize(
    ("ours", "numpys", "wins"),
    [([3, 3, 3], [4, 4, 4], True), ([4, 4, 4], [3, 3, 3], False), ([90, 90, 3], [4, 5, 6], True)],
)
def test_the_best_round_counts(
    ours: list[int], numpys: list[int], wins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, order = [0], []

    def way(name: str, left: list[int]) -> None:
        order.append(name)
        now[0] += left.pop(0)

    monkeypatch.setattr(time, "thread_time_ns", lambda: now[0])
    assert contests.is_sooner(lambda: way("ours", ours), lambda: way("numpys", numpys)) == wins
    assert order == ["ours", "numpys"] * 3
