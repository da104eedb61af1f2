"""Workers that share hosts: plans expect of all together what the hosts have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.hosts import profile
from spartan_ng.costs import Profile
from spartan_ng.costs.measured import PROFILE_VARIABLE, assumed
from spartan_ng.costs.tuned import PART_NS
from spartan_ng.system import machine
from spartan_ng.wire.messages import Member

RATES = (20_000, 4_000)


def member(number: int, host: str = "here", threads: int = 1, processors: Any = (0, 1)) -> Member:
    return Member(f"w{number}", "", "", host, threads, 0, processors=processors, rates=RATES)


def test_workers_without_processors_are_assumed() -> None:
    assert profile(()) == Profile()
    silent = [Member(f"w{i}", "", "", "", 2, 0) for i in range(3)]
    assert profile(silent) == Profile(workers=3)
    assert profile([*silent, member(3)]) == Profile(workers=4, weights=(16, 16, 16, 8))


@pytest.mark.parametrize("workers", [1, 2, 4, 7])
def test_workers_of_a_host_do_together_what_it_does(workers: int) -> None:
    found = profile([member(i) for i in range(workers)])
    assert (found.memory_bytes_s, found.flops_s) == (10_000, 2_000), "one of them has a processor"
    busy = min(workers, 2)
    assert found.together(workers) == (busy * 10_000, busy * 2_000)


def test_hosts_add_up() -> None:
    found = profile([member(i, host=f"host {i // 4}") for i in range(8)])
    assert found.together(8) == (40_000, 8_000)
    assert found.together(1) == (10_000, 2_000)
    apart = profile([member(i, host="") for i in range(3)])
    assert apart.together(3) == (30_000, 6_000), "who does not say its host shares none"


@pytest.mark.parametrize(
    ("workers", "threads", "times"), [(1, 1, 1), (2, 1, 1), (4, 1, 2), (6, 1, 3), (4, 8, 4)]
)
def test_parts_of_a_job_share_the_processors(workers: int, threads: int, times: int) -> None:
    """Each takes the same of a processor: those of workers beyond the processors come one after the other."""
    found = profile([member(i, threads=threads) for i in range(workers)])
    assert found.part_s() * 1e9 == pytest.approx(times * PART_NS)
    assert Profile(workers=workers).part_s() == 0, "of workers that say nothing, nothing is known"


def test_workers_of_a_crowded_host_take_less() -> None:
    crowded = [member(i) for i in range(4)]
    assert profile(crowded).weights == (), "all alike"
    assert profile([*crowded, member(4, host="another")]).weights == (8, 8, 8, 8, 16)
    assert profile([*crowded, member(4, host="another", threads=2)]).weights == (4, 4, 4, 4, 16)


def test_workers_that_are_bound_to_processors_have_their_own() -> None:
    found = profile([member(i, processors=(i,)) for i in range(4)])
    assert found.together(4) == (4 * 20_000, 4 * 4_000)


def test_threads_beyond_the_processors_bring_nothing() -> None:
    assert profile([member(0, threads=8)]).together(1) == RATES
    assert profile([member(i, threads=8) for i in range(3)]).together(3) == RATES


def test_a_cost_counts_what_is_shared() -> None:
    shared = Profile(10**9, 10**9, 10**9, workers=4, task_ns=0, all_bytes_s=2 * 10**9, all_flops_s=2 * 10**9)
    assert [shared.compute_ns(10**6, 0, n) for n in (1, 2, 3, 4)] == [10**6, 5 * 10**5, 5 * 10**5, 5 * 10**5]
    assert shared.memory_ps == shared.flop_ps == 500
    alone = Profile(10**9, 10**9, 10**9, workers=4, task_ns=0)
    assert [alone.compute_ns(10**6, 0, n) for n in (1, 2, 4)] == [10**6, 5 * 10**5, 25 * 10**4]
    assert shared.faster(4).compute_ns(10**6, 0, 4) * 4 == shared.compute_ns(10**6, 0, 4)


@pytest.mark.slow
def test_a_cluster_plans_with_its_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv(PROFILE_VARIABLE, str(tmp_path / "profile.json"))
    with sp.cluster(2):
        assert float(sp.asarray(np.ones(1 << 20)).sum()) == 1 << 20
        found: Any = session.current().backend.profile
    bytes_s, flops_s = assumed(machine.cores())
    busy = min(2 * max(1, machine.cores() // 2), machine.cores())
    shares = busy / machine.cores()
    assert found.together(2) == pytest.approx((bytes_s * shares, flops_s * shares))
