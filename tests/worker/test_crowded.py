"""States that memory has no room for many of: one thread adds each block's to what all have come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.arrays import box_slices
from spartan_ng.costs import Profile
from spartan_ng.worker.stages import reduced, results, sweep
from spartan_ng.worker.stages.results import is_crowded, is_tight
from tests.test_programs import running_on

LENGTH, GROUPS = 1_200_000, 20_000


def _line(at: Any) -> Any:
    ((lo, hi),) = at
    return numpy.arange(lo, hi) * 7919 % 1009 / 8


def _at(m: Any, x: Any, i: Any) -> Any:
    out = m.zeros((GROUPS // 2, 2))
    m.add.at(out, i[::2] // 2, x.reshape(-1, 2))
    return out


def _added(m: Any, x: Any, i: Any, dtype: str) -> Any:
    out = m.zeros(GROUPS, dtype)
    m.add.at(out, i, x)
    return out


def _moments(m: Any, x: Any) -> Any:
    return m.stack([x.mean(axis=0), x.std(axis=0), x.max(axis=0) * 1.0])


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "counts": lambda m, x, i: m.bincount(i),
    "sums": lambda m, x, i: m.bincount(i, weights=x),
    "sums of rows": _at,
    "sums in single precision": lambda m, x, i: _added(m, x.astype("f4"), i, "f4"),
    "sums of integers": lambda m, x, i: _added(m, i, i, "i8"),
    "short sums of integers": lambda m, x, i: _added(m, i.astype("u2"), i, "u2"),
    "counts by edges": lambda m, x, i: m.histogram(x, bins=GROUPS, range=(0, 130))[0],
    "both": lambda m, x, i: m.bincount(i, weights=x) / m.bincount(i, minlength=1),
    "columns": lambda m, x, i: x.reshape(-1, 15_000).sum(axis=0),
    "computed columns": lambda m, x, i: m.sqrt(x * 2 + i).reshape(-1, 15_000).sum(axis=0),
    "extremes": lambda m, x, i: m.ptp(x.reshape(-1, 15_000), axis=0),
    "places": lambda m, x, i: x.reshape(-1, 15_000).argmax(axis=0),
    "products": lambda m, x, i: x.reshape(-1, 150).T @ x.reshape(-1, 150),
    "deviations": lambda m, x, i: x.reshape(-1, 15_000).std(axis=0),
    "covariances": lambda m, x, i: m.cov(x.reshape(-1, 150), rowvar=False),
    "moments": lambda m, x, i: _moments(m, x.reshape(-1, 15_000)),
}


MEMORY = 1 << 18
"""Bytes that a worker has; the states of these programs are a third or half as large each."""
IN_PARTS = {*PROGRAMS} - {"sums of integers", "short sums of integers"}  # written at computed places


FINISHES: dict[str, Callable[[Any], Any]] = {
    "": lambda y: y,
    "finished": lambda y: y * 2 + 1,
    "narrowed": lambda y: (y * 0.5).astype("f4"),
}


@pytest.mark.some(24)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", ["array", "source"])
@pytest.mark.parametrize("memory", [1 << 18, 1 << 22])
def test_results_are_numpys_where_their_states_are_large(
    name: str, kind: str, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if memory == 1 << 22:  # with room for the blocks of other plans
        for module in (reduced, results, sweep):
            monkeypatch.setattr(module, "is_tight", lambda state_bytes, threads: True)
        for module in (reduced, sweep):
            monkeypatch.setattr(module, "is_crowded", lambda states_bytes: True)
    value = _line(((0, LENGTH),))
    places = numpy.arange(LENGTH) * 104_729 % GROUPS
    with numpy.errstate(all="ignore"):
        wanted = PROGRAMS[name](numpy, value, places)
        with np.config.override(memory_bytes=memory, small_bytes=0):
            x = np.array(value) if kind == "array" else np.from_function(_line, (LENGTH,), float)
            found = numpy.asarray(PROGRAMS[name](np, x, np.array(places)))
    assert found.dtype == wanted.dtype
    numpy.testing.assert_allclose(found, wanted, rtol=1e-12 if found.dtype != numpy.float32 else 1e-5)


@pytest.mark.some(12)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("finish", FINISHES)
def test_states_of_workers_come_together_in_parts(name: str, workers: int, finish: str) -> None:
    """All states of a tile were brought, put together and copied at once; what a pass makes of them is made
    of what they come to."""
    value, places = _line(((0, LENGTH),)), numpy.arange(LENGTH) * 104_729 % GROUPS
    with numpy.errstate(all="ignore"):
        wanted = FINISHES[finish](PROGRAMS[name](numpy, value, places))
        backend = SimulatedBackend(workers, Profile(memory_bytes=MEMORY, limited=True))
        with running_on(backend), np.config.override(memory_bytes=MEMORY, small_bytes=0):
            x = np.from_function(_line, (LENGTH + 1,), float)[:-1]
            y = FINISHES[finish](PROGRAMS[name](np, x, np.array(places)))
            assert ("parts, one after the other" in str(np.explain(y))) == (name in IN_PARTS)
            found = numpy.asarray(y)
    assert found.dtype == wanted.dtype
    numpy.testing.assert_allclose(found, wanted, rtol=1e-12 if found.dtype != numpy.float32 else 1e-5)


def test_what_is_tight_is_crowded_and_follows_the_budget_and_the_threads() -> None:
    with np.config.override(memory_bytes=60_000_000):
        assert is_crowded(16_000_001)
        assert not is_crowded(14_000_000)
        assert is_tight(6_000_000, 2)
        assert not is_tight(4_000_000, 2)
        assert is_tight(4_000_000, 8)


def test_deviations_of_a_pass_for_several_results_are_kept_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of n runs there are log2(n) states, where memory has no room for n."""
    most = 0

    class Watched(results.InTurn):
        def add(self, turn: int, state: Any) -> bool:
            nonlocal most
            done = super().add(turn, state)
            most = max([most, *(len(states) for known in self.total for states in known.values())])
            return done

    monkeypatch.setattr(sweep, "InTurn", Watched)
    monkeypatch.setattr(sweep, "is_tight", lambda state_bytes, threads: False)
    value = _line(((0, LENGTH),)).reshape(-1, 1000)
    with np.config.override(memory_bytes=MEMORY, small_bytes=0, kernels="interpret"):
        x = np.from_function(
            lambda box: value[tuple(slice(*r) for r in box)], value.shape, float, chunks=(10, 1000)
        )
        most_of, std = np.compute(x.max(axis=0), x.std(axis=0))
    assert 1 < most <= 11
    numpy.testing.assert_array_equal(most_of, value.max(axis=0))
    numpy.testing.assert_allclose(std, value.std(axis=0), rtol=1e-12)


def test_deviations_of_many_runs_are_combined_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The states of all runs were there until the last had come: more than the file, of some."""
    lengths: list[int] = []

    def counted(known: list[Any], *rest: Any) -> None:
        results.put_behind(known, *rest)
        lengths.append(len(known))

    monkeypatch.setattr(reduced, "put_behind", counted)
    value = numpy.random.default_rng(0).random((4000, 30))
    with np.config.override(memory_bytes=1 << 16, small_bytes=0):
        x = np.from_function(lambda box: value[box_slices(box)], value.shape, value.dtype)
        numpy.testing.assert_allclose(np.std(x, axis=0), value.std(axis=0), rtol=1e-12)
    assert len(lengths) > 100
    assert max(lengths) <= len(lengths).bit_length()
