"""Quantiles of lines that do not fit take a sample and a look, and are NumPy's to the bit."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import selecting, session
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.ops.line_states import Between
from spartan_ng.plan.stages import Combine
from spartan_ng.worker.blocks import BlockThreads
from spartan_ng.worker.scheduling.shares import task_of
from tests.sampling import examples
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

N = 1 << 18
MEMORY = 3 << 20
"""Half again of the largest line's bytes: it does not fit, with what is sorted of it."""
FRACTIONS = [0.1, 0.25, 0.9]
_DRAWS = numpy.random.default_rng(0)
_RANDOM = _DRAWS.random(N)
_WALK = numpy.cumsum(_DRAWS.normal(size=N))


def _with(value: float, share: float) -> Any:
    """Random elements, of which a share is one value."""
    return numpy.where(_DRAWS.random(N) < share, value, _RANDOM)


LINES: dict[str, Any] = {
    "random": _RANDOM,
    "sorted": numpy.sort(_RANDOM),
    "sorted the other way": numpy.sort(_RANDOM)[::-1].copy(),
    "a walk": _WALK,
    "with a period": numpy.tile(numpy.arange(1024.0), N // 1024),
    "of long tails": 1 / _RANDOM**3,
    "close to each other": 1e9 + _RANDOM,
    "float32": _RANDOM.astype("f4"),
    "integers": (_RANDOM * 1e9).astype("i8"),
    "bytes": (_RANDOM * 256).astype("u1"),
    "of one value": numpy.full(N, 3.5),
    "of two values": numpy.round(_RANDOM),
    "of ten values": numpy.floor(_RANDOM * 10),
    "of a thousand values": numpy.floor(_RANDOM * 1000),
    "half of them alike": _with(0.25, 0.5),
    "few that are NaN": _with(numpy.nan, 1e-5),
    "mostly NaN": _with(numpy.nan, 0.95),
    "NaN": numpy.full(N, numpy.nan),
    "with infinities": numpy.where(_RANDOM < 0.2, -numpy.inf, numpy.where(_RANDOM > 0.8, numpy.inf, _RANDOM)),
    "both zeros": numpy.where(_RANDOM < 0.6, 0.0, _RANDOM),
}


@pytest.fixture(autouse=True)
def small_samples() -> Iterator[None]:
    with (
        config.override(small_bytes=0),
        mock.patch.multiple(selecting, _CLUSTERS=1024, _CLUSTER=16, _SPARE=4),
    ):
        yield


@pytest.fixture(params=[0, 2])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    n = request.param
    profile = Profile(workers=n or 1, memory_bytes=MEMORY // 2, limited=True)
    backend: Any = SimulatedBackend(n, profile) if n else EmbeddedBackend(2, MEMORY)
    with running_on(backend):
        yield n


def _ask(xp: Any, line: Any) -> list[Any]:
    """Quantiles by several rules, and a median."""
    return [
        xp.quantile(line, FRACTIONS),
        xp.median(line),
        xp.quantile(line, 0.9, method="higher"),
    ]


@pytest.mark.some(8)
@pytest.mark.parametrize("name", LINES)
def test_lines_of_all_kinds(name: str, workers: int) -> None:
    line = LINES[name]
    line = line[: len(line) - 7]
    source = Recorder(line, (1000,))
    x = over(source)
    looks = mock.patch.object(selecting, "_of_ranks", wraps=selecting._of_ranks)
    with looks as asked, numpy.errstate(all="ignore"):
        found = np.compute(*_ask(np, x))
    if line.dtype.itemsize == 8:
        asked.assert_called_once()
        assert source.times.max() <= 2
        assert source.times.mean() < 1.9  # small chunks are read for a few elements of them
    with numpy.errstate(all="ignore"):
        answers = _ask(numpy, line)
    for one, expected in zip(found, answers, strict=True):
        expected = numpy.asarray(expected)
        assert one.dtype == expected.dtype
        numpy.testing.assert_array_equal(numpy.asarray(one), expected)


def _expected_quantiles(value: Any) -> Any:
    return numpy.quantile(value, FRACTIONS), numpy.median(value)


@pytest.mark.parametrize("shape", [(-1, 8), (1 << 14, -1), (64, 64, -1)])
def test_rows_and_what_is_made_of_them(shape: tuple[int, ...], workers: int) -> None:
    """Elements come in runs of whole rows; where these are few and wide the line is sorted."""
    value = _WALK.reshape(shape)
    source = Recorder(value)
    x = over(source)
    y = (np.sin(x) * 2 + x).T
    found = np.compute(np.quantile(y, FRACTIONS), np.median(y))
    for one, expected in zip(found, _expected_quantiles(np.sin(_WALK) * 2 + _WALK), strict=True):
        numpy.testing.assert_array_equal(numpy.asarray(one), numpy.asarray(expected))
    if value.ndim == 2:
        assert source.times.max() <= 2


def test_one_value_is_counted_in_one_look(workers: int) -> None:
    source = Recorder(LINES["of one value"], (1000,))
    assert "only if a sample and a look do not find" in str(np.explain(np.median(over(source))))
    assert float(np.median(over(source))) == 3.5
    assert source.times.max() <= 2
    assert source.times.mean() < 1.2


def test_a_look_is_combined_where_it_lies_and_read_as_far_as_it_goes() -> None:
    """Each worker's state is an operand of its own, and the program reads no room that stayed empty."""
    backend: Any = SimulatedBackend(2, Profile(workers=2, memory_bytes=MEMORY // 2, limited=True))
    line = build.constant(_RANDOM)
    with running_on(backend), config.override(small_bytes=0):
        node = build.between(line, [(0.4, False), (0.6, True)], [False, True, False], N // 2)
        session.current().evaluate([node])
        ran = session.current().last_run
        assert ran is not None
        plan, _ = ran
        (stage,) = (s for s in plan.stages if isinstance(s, Combine))
        tasks = [task_of(plan, stage, rank) for rank in range(2)]
        assert {len(o.pieces) for t in tasks for o in t.operands} == {1}
        x = over(Recorder(_RANDOM, (1000,)))
        with mock.patch.object(backend, "gather", wraps=backend.gather) as asked:
            found = numpy.asarray(np.quantile(x, FRACTIONS))
    numpy.testing.assert_array_equal(found, numpy.quantile(_RANDOM, FRACTIONS))
    looks = [(ref, box) for (ref, box), _ in asked.call_args_list if ref.dtype == numpy.uint8]
    assert looks
    assert all(box[0][1] < ref.shape[0] for ref, box in looks)


@pytest.mark.parametrize("workers", [2], indirect=True)
def test_workers_count_on_from_where_rows_of_a_sample_begin(workers: int) -> None:
    """All places of a sample were sent to them."""
    backend: Any = session.current().backend
    with mock.patch.object(backend, "run", wraps=backend.run) as asked:
        found = numpy.asarray(np.quantile(over(Recorder(_RANDOM, (1000,))), FRACTIONS))
    numpy.testing.assert_array_equal(found, numpy.quantile(_RANDOM, FRACTIONS))
    sent = [ref.value.size for call in asked.call_args_list for ref in call.args[1] if ref.value is not None]
    assert sent
    assert max(sent) <= 1024  # rows, of 16 places each


@pytest.mark.parametrize("wrong", ["places", "amount", "room"])
def test_a_sample_that_misleads_costs_a_look(wrong: str, workers: int) -> None:
    """Where elements are not between the bounds, or too many are, runs are sorted; without a look where the
    sample says so."""
    bounds = {"places": (0.01, 0.02), "amount": (0.0, 1.0), "room": (0.0, 1.0)}[wrong]
    expected = mock.Mock(return_value=5) if wrong == "room" else selecting._expected
    cuts = selecting.Cuts(tuple((b, False) for b in bounds), (False, True, False))
    source = Recorder(_RANDOM, (1000,))
    with mock.patch.multiple(selecting, bracketed=mock.Mock(return_value=cuts), _expected=expected):
        found = np.quantile(over(source), FRACTIONS)
        numpy.testing.assert_array_equal(numpy.asarray(found), numpy.quantile(_RANDOM, FRACTIONS))
    assert source.times.max() == (2 if wrong == "amount" else 3)


@pytest.mark.some(6)
@pytest.mark.parametrize("name", [n for n, line in LINES.items() if line.dtype.itemsize == 8])
def test_ranks_that_have_no_room_together_are_looked_for_apart(
    name: str, workers: int, tmp_path: Path
) -> None:
    """They had the line's runs sorted."""
    line, shares = LINES[name], [0.1, 0.4, 0.6, 0.9]
    numpy.save(tmp_path / "x.npy", line)
    made: list[list[selecting.Look]] = []

    def planned(drawn: Any, ranks: Any, size: int, room: int, at_most: int) -> list[selecting.Look]:
        if made:  # in itself
            return plan(drawn, ranks, size, room, at_most)
        places = numpy.split(ranks, numpy.flatnonzero(numpy.diff(ranks) > 1) + 1)
        *alone, last = (plan(drawn, place, size, size, 1)[0].most for place in places)
        made.append([])
        # The last element is asked for, too: whether it is NaN.
        made[0] += plan(drawn, ranks, size, max(alone) + last, at_most)
        return made[0]

    looked = mock.patch.object(selecting, "_of_look", wraps=selecting._of_look)
    with mock.patch.object(selecting, "planned", planned), looked as asked, numpy.errstate(all="ignore"):
        found = numpy.asarray(np.quantile(np.load(tmp_path / "x.npy", mmap_mode="r"), shares))
        numpy.testing.assert_array_equal(found, numpy.quantile(line, shares))
    (looks,) = made
    assert 1 <= len(looks) <= 4
    assert asked.call_count == len(looks)


def test_what_is_read_in_each_look_is_looked_at_once(workers: int) -> None:
    """Reading may take longer than sorting."""
    source = Recorder(_RANDOM, (1000,))
    with mock.patch.object(selecting, "planned", wraps=plan) as asked:
        found = numpy.asarray(np.quantile(over(source), FRACTIONS))
    numpy.testing.assert_array_equal(found, numpy.quantile(_RANDOM, FRACTIONS))
    assert [call.args[-1] for call in asked.call_args_list] == [1]


plan = selecting.planned


@examples(60)
@given(
    seed=st.integers(0, 1 << 16),
    count=st.integers(1, 12),
    room=st.sampled_from([300, 600, 1000, 2000, 5000, 1 << 16]),
    distinct=st.sampled_from([3, 500, 1 << 40]),
    at_most=st.sampled_from([1, 2, 4, 8]),
)
def test_looks_have_room_and_find_all_ranks(
    seed: int, count: int, room: int, distinct: int, at_most: int
) -> None:
    rng = numpy.random.default_rng(seed)
    size = 1 << 16
    line = rng.integers(0, distinct, size)
    pairs = rng.integers(0, size - 1, count)
    ranks = numpy.unique([pairs, pairs + rng.integers(0, 2, count)])
    drawn = line[rng.integers(0, size, (512, 8))]
    looks = plan(drawn, ranks, size, room, at_most)
    assert len(looks) <= at_most
    for look in looks:
        assert look.most <= room
        assert look.cuts == selecting.bracketed(drawn, look.ranks / size)
    if looks:
        numpy.testing.assert_array_equal(numpy.concatenate([look.ranks for look in looks]), ranks)
        ends = [(a.ranks[-1], b.ranks[0]) for a, b in itertools.pairwise(looks)]
        assert all(b > a for a, b in ends)
    else:
        cuts = selecting.bracketed(drawn, ranks / size)
        assert selecting._expected(drawn, cuts, size) > room


def test_all_threads_look_where_what_is_found_is_much_for_the_budget() -> None:
    """Room for all that may be found was taken for what each block finds."""
    with (
        running_on(EmbeddedBackend(2, MEMORY)),
        config.override(memory_bytes=MEMORY),
        mock.patch.object(selecting, "_expected", return_value=MEMORY // 4 // 8),
        mock.patch.object(BlockThreads, "parallel", autospec=True, side_effect=_parallel) as asked,
    ):
        found = numpy.asarray(np.quantile(over(Recorder(_RANDOM, (1000,))), FRACTIONS))
    numpy.testing.assert_array_equal(found, numpy.quantile(_RANDOM, FRACTIONS))
    looks = [call.args for call in asked.call_args_list if call.kwargs.get("bands") is not None]
    assert looks
    assert not any(small for _, _, _, _, small, *_ in looks)


_parallel = BlockThreads.parallel


def test_what_is_found_is_copied_seldom() -> None:
    """It was all copied again for each 64 blocks."""
    line = Between("<f8", ((0.5, True),), (False, True), 1 << 20)
    block, copied = numpy.full(64, 0.75), 0
    counts = numpy.array([64, 64])
    plain = numpy.concatenate

    def joined(parts: Any) -> Any:
        nonlocal copied
        found = plain(parts)
        copied += found.size
        return found

    state: Any = (counts, block)
    with mock.patch.object(numpy, "concatenate", joined):
        for _ in range(4095):
            state = line.combine(state, (counts, block))
    assert state[0].tolist() == [64 * 4096] * 2
    assert sum(map(len, state[1:])) == 64 * 4096
    assert len(state) < 16
    assert copied <= 12 * 64 * 4096


def test_lines_that_fit_are_not_sampled(workers: int) -> None:
    with mock.patch.object(selecting, "_of_ranks") as asked:
        assert float(np.median(over(Recorder(_RANDOM[: N // 8])))) == numpy.median(_RANDOM[: N // 8])
        line = over(Recorder(_RANDOM))
        numpy.testing.assert_array_equal(np.sort(line)[::5], numpy.sort(_RANDOM)[::5])
    asked.assert_not_called()


def test_rows_of_a_mapped_file_cut_by_columns_are_looked_up_where_they_lie(tmp_path: Any) -> None:
    value = _RANDOM.reshape(-1, 64)
    numpy.save(tmp_path / "x.npy", value)
    rows = numpy.arange(0, len(value), 40)
    backend: Any = SimulatedBackend(2)
    backend.is_local = True
    with running_on(backend), config.override(tiling="column"):
        x = np.load(tmp_path / "x.npy")
        tracemalloc.start()
        try:
            found = numpy.asarray(x[rows])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        numpy.testing.assert_array_equal(found, value[rows])
    assert peak < value.nbytes // 2


@pytest.mark.parametrize("name", LINES)
def test_what_a_look_keeps_is_looked_at_again_and_not_sorted(name: str) -> None:
    """But where values are alike, or too few to be worth it."""
    line = LINES[name]
    line = line[line == line][: N - 3]
    lengths: list[int] = []

    def noted(x: Any) -> Any:
        lengths.append(x.size)
        return numpy.sort(x, axis=None)

    sums = [0, 1, len(line) // 3, len(line) // 2, len(line) // 2 + 1, len(line) - 1]
    ranks = numpy.array(sorted({r for r in sums if 0 <= r < len(line)}), int)
    with (
        mock.patch.object(selecting, "LOOKED_AGAIN", 1 << 12),
        mock.patch.object(selecting, "sorted_lines", noted),
    ):
        numpy.testing.assert_array_equal(selecting.picked(line, ranks), numpy.sort(line)[ranks])
    assert len(line) < 1 << 12 or max(lengths) < len(line) // 2
