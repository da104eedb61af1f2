"""Lines that are computed are sorted as they are made: NumPy's answers, and none of them stored before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import scratch, session
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.optimizer.fusion import labels
from spartan_ng.plan import lines
from spartan_ng.plan.stages import SortParts
from spartan_ng.system import files
from tests.engines.inline import InlineEngine
from tests.sampling import examples
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

N = 6_007
_DRAWS = numpy.random.default_rng(0)
X = {
    "f8": _DRAWS.standard_normal(N),
    "f4": _DRAWS.random(N).astype("f4"),
    "i2": _DRAWS.integers(-300, 300, N).astype("i2"),
    "u1": _DRAWS.integers(0, 200, N).astype("u1"),
    "c8": (_DRAWS.integers(0, 9, N) + 1j * _DRAWS.random(N)).astype("c8"),
}
Y = _DRAWS.integers(-5, 5, N).astype("f8")


def _drawn(xp: Any, z: Any) -> Any:
    return z + xp.random.default_rng(7).random(N).reshape(z.shape)


STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "multiply": lambda xp, z, y: z * 2,
    "negative": lambda xp, z, y: 0 - z,
    "cast": lambda xp, z, y: z.real.astype("i4"),
    "single": lambda xp, z, y: z.astype("c8" if z.dtype.kind == "c" else "f4"),
    "mask": lambda xp, z, y: z.real > 0.3,
    "where": lambda xp, z, y: xp.where(z.real > 1, z, y),
    "another": lambda xp, z, y: z + y,
    "it again": lambda xp, z, y: xp.maximum(z, y * z),
    "draws": lambda xp, z, y: _drawn(xp, z),
    "indices": lambda xp, z, y: z * 2 + xp.arange(N).reshape(z.shape) % 5,
    "not a number": lambda xp, z, y: xp.where(z.real > 1, numpy.nan, z),
}
"""What may join, each of which makes elements one by one."""
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda xp, z: xp.sort(z),
    "argsort": lambda xp, z: xp.argsort(z, kind="stable"),
    "reversed": lambda xp, z: xp.sort(z[::-1]),
    "strided": lambda xp, z: xp.argsort(z[3::2], kind="stable"),
    "folded": lambda xp, z: (xp.sort(z).imag * 4 - xp.sort(z).real > 1).sum(),
    "places": lambda xp, z: xp.sort(z)[2000:2003],
}
BACKENDS: dict[str, Callable[[], Backend]] = {
    "embedded": lambda: EmbeddedBackend(2),
    "four workers": lambda: SimulatedBackend(4),
    "three workers": lambda: SimulatedBackend(3),
    "an engine": lambda: EngineBackend(InlineEngine(3)),
}


@contextmanager
def in_runs(backend: Backend) -> Iterator[None]:
    """Sort all lines in runs, as if none had room, and cut over all workers, as if it paid."""
    with (
        running_on(backend),
        config.override(small_bytes=0, tiling="row"),
        patch.object(lines, "run_length", lambda n, *_: n // 5 + 1),
        patch.object(labels, "_LONG_LINE_BYTES", 0),
    ):
        yield


def made(xp: Any, x: Any, y: Any, steps: list[str]) -> Any:
    for step in steps:
        x = STEPS[step](xp, x, y)
    return x


def is_alike(found: Any, expected: Any) -> None:
    found = numpy.asarray(found)
    assert found.dtype == expected.dtype
    numpy.testing.assert_array_equal(found, expected)


def is_read_once(source: Recorder, backend: str) -> None:
    """Each element; an engine's tasks have copies of the source."""
    assert backend == "an engine" or source.times.max() == source.times.min() == 1


@examples(60)
@given(
    st.sampled_from(list(X)),
    st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=3),
    st.sampled_from(list(ORDERS)),
    st.sampled_from(list(BACKENDS)),
    st.sampled_from([None, (64,), (1000,), (N,)]),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore")
def test_what_makes_a_line_joins_its_sort(
    kind: str, steps: list[str], order: str, backend: str, chunks: tuple[int, ...] | None, reproducible: bool
) -> None:
    expected = ORDERS[order](numpy, made(numpy, X[kind], Y, steps))
    source = Recorder(X[kind], chunks)
    with in_runs(BACKENDS[backend]()), config.override(reproducible=reproducible):
        found = ORDERS[order](np, made(np, over(source), np.array(Y), steps))
        is_alike(found, numpy.asarray(expected))
        plan, _ = session.current().last_run or (None, None)
    assert plan is not None
    is_same = {*steps} == {"single"}  # which may be what it is
    assert is_same or any(isinstance(stage, SortParts) and stage.rows for stage in plan.stages)
    if order != "strided":  # which leaves elements out
        is_read_once(source, backend)


@pytest.mark.some(4)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_lines_of_rows_and_columns_are_made_one_by_one(backend: str, name: str, axis: int) -> None:
    """Each is read by itself; of chunks with several, all is stored once."""
    value = X["f8"][:6000].reshape((3, 2000) if axis else (2000, 3))
    beside = _DRAWS.integers(0, 5, value.shape[axis ^ 1]).astype(float)
    beside = beside[:, None] if axis else beside
    for chunks in ((1, 500), (500, 1), value.shape):
        source = Recorder(value, chunks)
        with in_runs(BACKENDS[backend]()):
            z = numpy.floor(over(source) * 3) + np.array(beside)
            moved = [z[k] if axis else z[:, k] for k in range(3)]
            found = np.compute(*[getattr(np, name)(line, kind="stable") for line in moved])
            plan, _ = session.current().last_run or (None, None)
        expected = getattr(numpy, name)(numpy.floor(value * 3) + beside, axis=axis, kind="stable")
        numpy.testing.assert_array_equal(numpy.stack(found, axis=1 - axis), expected)
        is_read_once(source, backend)
        assert plan is not None
        joined = [bool(s.rows) for s in plan.stages if isinstance(s, SortParts)]
        assert joined == 3 * [chunks[1 - axis] == 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_line_that_others_want_is_stored(backend: str) -> None:
    """For a sum beside it, for two sorts of it, and as a result of its own."""
    for also in (lambda xp, z: z[::3] * 2, lambda xp, z: xp.argsort(z, kind="stable"), lambda xp, z: z):
        source = Recorder(X["f8"])
        with in_runs(BACKENDS[backend]()):
            z = np.exp(over(source)) + 1
            found = np.compute(np.sort(z), also(np, z))
            plan, _ = session.current().last_run or (None, None)
        expected = numpy.exp(X["f8"]) + 1
        numpy.testing.assert_allclose(found[0], numpy.sort(expected), rtol=1e-14)
        numpy.testing.assert_allclose(found[1], also(numpy, expected), rtol=1e-14)
        is_read_once(source, backend)
        assert plan is not None
        assert not any(stage.rows for stage in plan.stages if isinstance(stage, SortParts))


@pytest.mark.parametrize(
    "make",
    [
        lambda xp, x: xp.cumsum(x),
        lambda xp, x: x.reshape(-1, 7).sum(axis=1),
        lambda xp, x: xp.concatenate([x, x]) * 2,
        lambda xp, x: x[xp.arange(100_003) % len(x)] * 2,
    ],
)
def test_what_is_not_made_element_by_element_is_stored(make: Callable[[Any, Any], Any]) -> None:
    x = X["f8"][: N // 7 * 7]
    with in_runs(EmbeddedBackend(2)):
        is_alike(np.sort(np.round(make(np, np.array(x)), 6)), numpy.sort(numpy.round(make(numpy, x), 6)))


def test_lines_that_fit_are_planned_as_before() -> None:
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        is_alike(np.sort(np.array(X["f8"]) * 2), numpy.sort(X["f8"] * 2))
        plan, _ = session.current().last_run or (None, None)
    assert plan is not None
    assert not any(isinstance(stage, SortParts) and stage.rows for stage in plan.stages)


WRITTEN: dict[str, tuple[float, Callable[[Any, Any], Any]]] = {
    "sort": (1, lambda xp, x: xp.sort(x * 2)),
    "sort of what turns": (1, lambda xp, x: xp.sort((x * 2 + 1)[::-1])),
    "sort in another shape": (1, lambda xp, x: xp.sort((x.reshape(-1, 8) - 1).ravel())),
    "sort of all": (1, lambda xp, x: xp.sort(x.reshape(-1, 8) - 1, axis=None)),
    "sort of integers": (0.5, lambda xp, x: xp.sort((x * 1e6).astype("i4"))),
    "argsort": (2, lambda xp, x: xp.argsort(x * 2, kind="stable")),
}
"""How many bytes of a line's are written to the disk, beside the file with the result."""


@pytest.mark.parametrize("name", WRITTEN)
def test_a_line_is_written_once_sorted_and_not_before(name: str, tmp_path: Path) -> None:
    n, memory = 1 << 19, 1 << 20
    times, make = WRITTEN[name]
    value = numpy.random.default_rng(0).random(n)
    numpy.save(tmp_path / "x.npy", value)
    taken: list[int] = []

    def counted(descriptor: int, start: int, nbytes: int) -> None:
        taken.append(nbytes)
        files.set_aside(descriptor, start, nbytes)

    with (
        config.override(small_bytes=0, memory_bytes=memory),
        running_on(EmbeddedBackend(2)),
        patch.object(scratch, "set_aside", counted),
    ):
        y = make(np, np.load(tmp_path / "x.npy"))
        disk_bytes = np.explain(y).to_dict()["disk_bytes"]
        np.save(tmp_path / "y.npy", y)
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "y.npy"), make(numpy, value))
    assert sum(taken) == times * value.nbytes
    # Where it goes to no file, its result lies there, too.
    assert disk_bytes == sum(taken) + y.nbytes


def test_quantiles_that_samples_miss_are_of_lines_as_they_are_made(tmp_path: Path) -> None:
    """Where no look finds them, runs are sorted."""
    value = numpy.random.default_rng(0).random(1 << 18)
    numpy.save(tmp_path / "x.npy", value)
    profile = Profile(memory_bytes=1 << 20, limited=True)
    for backend in (EmbeddedBackend(2, 1 << 20), SimulatedBackend(3, profile)):
        with running_on(backend), config.override(small_bytes=0, disabled_passes=["select_places"]):
            x = np.load(tmp_path / "x.npy")
            is_alike(np.median(np.sin(x) * 2), numpy.median(numpy.sin(value) * 2))


def test_its_rows_are_told() -> None:
    with in_runs(EmbeddedBackend(2)):
        told = np.explain(np.sort(np.array(Y) * 2 + 1))
        assert [stage["operators"] for stage in told.to_dict()["stages"]] == [
            ["multiply", "add", "sort parts"],
            ["sort merge"],
        ]
