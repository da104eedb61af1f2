"""Work of one piece over the driver's own arrays: NumPy's where workers, who would be sent them, are no
sooner done; and panels only where all workers do enough more than one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import pytest
from msgspec.structs import replace

import spartan_ng as np
from benchmarks.programs import PROGRAMS, run
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.api.algebra.factorizations import is_large
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import BLOCKED
from spartan_ng.home import is_sooner_at
from tests.test_programs import running_on

A = numpy.random.default_rng(0).random((120, 120)) / 320 + numpy.eye(120)
A = A + A.T
LINE = numpy.random.default_rng(1).integers(0, 99, 30_000)
SLOW = Profile(flops_s=1_000)
"""Workers that have more to compute than they can."""
FAST = Profile(flops_s=10**13, memory_bytes_s=10**13, network_bytes_s=10**12, message_ns=0, task_ns=5)
"""Workers that are done at once, and have whatever they are sent at once."""

CALLS = {
    "cholesky": lambda xp, a, line: xp.linalg.cholesky(a),
    "solve": lambda xp, a, line: xp.linalg.solve(a, a[:, :3]),
    "inv": lambda xp, a, line: xp.linalg.inv(a),
    "det": lambda xp, a, line: xp.linalg.det(a),
    "slogdet": lambda xp, a, line: xp.linalg.slogdet(a)[1],
    "qr": lambda xp, a, line: xp.linalg.qr(a)[1],
    "lstsq": lambda xp, a, line: xp.linalg.lstsq(a, a[:, 0], rcond=None)[0],
    "eigh": lambda xp, a, line: xp.linalg.eigh(a)[0],
    "eigvalsh": lambda xp, a, line: xp.linalg.eigvalsh(a),
    "svd": lambda xp, a, line: xp.linalg.svd(a)[1],
    "pinv": lambda xp, a, line: xp.linalg.pinv(a),
    "searchsorted": lambda xp, a, line: xp.searchsorted(xp.sort(line), line[:100]),
    "bincount": lambda xp, a, line: xp.bincount(line),
    "quantile": lambda xp, a, line: xp.quantile(line, [0.2, 0.7]),
    "convolve": lambda xp, a, line: xp.convolve(line, line[:9]),
    "cov": lambda xp, a, line: xp.cov(a),
}


class Counted(SimulatedBackend):
    """It has the plans of all programs that it ran."""

    def __init__(self, workers: int, profile: Profile | None = None) -> None:
        super().__init__(workers, profile)
        self.plans: list[Any] = []

    @property
    def runs(self) -> int:
        return len(self.plans)

    def run(self, plan: Any, inputs: Any, progress: Any = None) -> Any:
        self.plans.append(plan)
        return super().run(plan, inputs, progress)


@contextmanager
def workers_of(profile: Profile, **options: Any) -> Iterator[Counted]:
    backend = Counted(4, profile)
    with config.override(disabled_passes=frozenset(), small_bytes=100_000, **options), running_on(backend):
        yield backend


def runs_of(call: str, profile: Profile) -> int:
    """Programs that workers have run for a call over the driver's arrays, whose answer is NumPy's."""
    with workers_of(profile) as backend:
        a, line = np.array(A), np.array(LINE)
        found = numpy.asarray(CALLS[call](np, a, line))
        numpy.testing.assert_allclose(found, CALLS[call](numpy, A, LINE), rtol=1e-8, atol=1e-8)
        return backend.runs


@pytest.mark.parametrize("call", sorted(set(CALLS) - {"searchsorted"}))
def test_numpy_does_what_workers_would_take_longer_for(call: str) -> None:
    assert runs_of(call, SLOW) == 0


@pytest.mark.parametrize("call", sorted(CALLS))
def test_workers_do_what_they_are_sooner_done_with(call: str) -> None:
    assert runs_of(call, FAST) > 0


def test_workers_that_share_the_drivers_processors_are_never_sooner() -> None:
    """However much there is to compute: the arrays have to be sent besides."""
    with workers_of(Profile()) as backend:
        home = session.current()._home
        assert home is not None, "it has workers"
        here = home.here().backend.profile
        shared = replace(here, workers=4, all_flops_s=here.flops_s, all_bytes_s=here.memory_bytes_s)
        for steps in (1, 10**6, 10**12, 10**18):
            backend.profile = shared
            assert is_sooner_at(home, steps, 10**8)
            backend.profile = replace(shared, all_flops_s=10**3 * here.flops_s, flops_s=10**3 * here.flops_s)
            assert is_sooner_at(home, steps, 10**8) == (steps < 10**9)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs_of_small_arrays_are_not_for_workers(name: str) -> None:
    backend = Counted(4)
    with running_on(backend), config.override(small_bytes=1 << 25, disabled_passes=frozenset()):
        run(name, np, 100_000)
        assert backend.runs == 0


def stencil(xp: Any, steps: int) -> Any:
    """Heat by slices, and values held at the edges."""
    u = xp.random.default_rng(0).random((300, 300))
    for _ in range(steps):
        inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        u[1:-1, 1:-1] = 0.25 * inner
        u[0] = 1
        u[:, -1] = 0
    return u


def waves(xp: Any, steps: int) -> Any:
    u = xp.random.default_rng(0).random((300, 300))
    v = u.copy()
    for _ in range(steps):
        apart = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1) - 4 * u
        u, v = 2 * u - v + 0.1 * apart, u
    return u


def descent(xp: Any, steps: int) -> Any:
    x = xp.random.default_rng(0).random((9000, 10))
    y, w = x[:, 0], xp.zeros(10)
    for _ in range(steps):
        w = w - 0.1 * (x.T @ (x @ w - y)) / len(y)
    return w


def powers(xp: Any, steps: int) -> Any:
    a, v = xp.random.default_rng(0).random((300, 300)), xp.ones(300)
    for _ in range(steps):
        w = a @ v
        v = w / xp.linalg.norm(w)
    return v


@pytest.mark.parametrize("loop", [stencil, waves, descent, powers])
def test_the_steps_of_a_loop_are_planned_once_and_go_together(loop: Any) -> None:
    """No step waits for the master's word on the one before."""
    with workers_of(Profile()) as backend:
        for _ in range(2):
            before = backend.runs
            found = numpy.asarray(loop(np, 6))
            assert backend.runs == before + 1
        assert len({id(plan) for plan in backend.plans}) == 1
        numpy.testing.assert_allclose(found, loop(numpy, 6), rtol=1e-9)


@pytest.mark.parametrize("times", [1.0, 2.0, BLOCKED - 0.1, BLOCKED])
def test_panels_are_for_workers_that_do_enough_more_than_one(times: float) -> None:
    profile = Profile(all_flops_s=int(times * Profile().flops_s))
    with workers_of(profile):
        assert is_large(np.zeros((2100, 2100))) == (times >= BLOCKED)
    with workers_of(replace(profile, limited=True, memory_bytes=50_000_000)):  # no task has room
        assert is_large(np.zeros((2100, 2100)))
