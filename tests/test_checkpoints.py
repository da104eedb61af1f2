"""Checkpoints are whole, whatever ends the program, and any number of workers reads them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import checkpoints
from spartan_ng.config import config
from spartan_ng.errors import OptionError
from tests.test_programs import running_on

X = numpy.random.default_rng(0).random((300, 7))
ARRAYS = [
    X,
    X[0, 0],
    numpy.arange(5),
    numpy.empty((0, 3)),
    X > 0.5,
    X[:, 0] * 1j,
    numpy.array("2020-01-01", "M8[D]"),
]


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("reading", [0, 2])
def test_arrays_come_back(tmp_path, workers, reading):
    def on(n):
        return running_on(SimulatedBackend(n)) if n else config.override()

    with config.override(small_bytes=0):
        with on(workers):
            np.checkpoint(*map(np.asarray, ARRAYS), np.array(X) * 2 + 1, to=tmp_path / "here")
        with on(reading):
            found = np.restore(tmp_path / "here")
            assert len(found) == len(ARRAYS) + 1
            for ours, theirs in zip(found, [*ARRAYS, X * 2 + 1], strict=True):
                assert ours.dtype == theirs.dtype
                numpy.testing.assert_array_equal(ours, theirs)


def test_a_new_checkpoint_takes_the_place_of_the_one_before(tmp_path):
    other = tmp_path / "mine.npy"
    other.write_bytes(b"mine")
    np.checkpoint(np.ones(3), np.ones(4), to=tmp_path)
    (first, _) = np.restore(tmp_path)
    np.checkpoint(np.zeros(2), to=tmp_path)
    (second,) = np.restore(tmp_path)
    numpy.testing.assert_array_equal(second, numpy.zeros(2))
    numpy.testing.assert_array_equal(first, numpy.ones(3))
    assert len(list(tmp_path.glob("*.npy"))) == 2
    assert other.read_bytes() == b"mine"


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_an_interrupted_save_leaves_the_checkpoint_before(tmp_path, monkeypatch, fails):
    np.checkpoint(np.ones(3), np.ones(4), to=tmp_path)
    calls = iter(range(9))

    def save(*args, **keywords):
        if next(calls) == fails:
            raise KeyboardInterrupt
        np.save(*args, **keywords)

    monkeypatch.setattr(checkpoints, "save", save)
    if fails == 2:
        monkeypatch.setattr(checkpoints, "replacing", save)
    with pytest.raises(KeyboardInterrupt):
        np.checkpoint(np.zeros(3), np.zeros(4), to=tmp_path)
    for array in np.restore(tmp_path):
        numpy.testing.assert_array_equal(array, 1.0)
    monkeypatch.undo()
    np.checkpoint(np.zeros(3), to=tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 1


def test_what_cannot_be_written_is_refused_before_anything_is(tmp_path):
    with np.resumable(tmp_path, every_s=0) as state:
        state.update(k=1)
        with pytest.raises(TypeError):
            state.update(k=object())
        state.update(k=2)
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        np.checkpoint(numpy.array([object()]), to=tmp_path)
    with np.resumable(tmp_path) as state:
        assert dict(state) == {"k": 2}
    with pytest.raises(OptionError, match="every_s"):
        np.resumable(tmp_path, every_s=-1)


def test_without_a_checkpoint_there_is_nothing_to_restore(tmp_path):
    with pytest.raises(FileNotFoundError):
        np.restore(tmp_path / "nothing")


def test_saves_take_a_small_share_of_the_time(tmp_path, monkeypatch):
    """By a clock that runs only while something is saved: one second each."""
    now = [0.0]
    monkeypatch.setattr("spartan_ng.checkpoints.time.monotonic", lambda: now[0])
    write, saves = checkpoints._write, []

    def slow(folder, values):
        now[0] += 1.0
        saves.append(now[0])
        write(folder, values)

    monkeypatch.setattr(checkpoints, "_write", slow)
    with np.resumable(tmp_path, every_s=10) as state:
        for k in range(1000):
            now[0] += 1.0
            state.update(k=k)
    assert saves[0] >= 10.0
    assert len(saves) <= now[0] / 50 + 2
    with np.resumable(tmp_path) as state:
        assert state["k"] == 999


LOOP = """
import os, signal, sys
import spartan_ng as np
np.config.small_bytes = 0
with np.resumable(sys.argv[1]) as state:
    w = state.get("w", np.arange(2000.0))
    for k in range(state.get("k", 0), 12):
        print(k, flush=True)
        if k == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        w = (w * 1.25 + k).persist()
        state.update(w=w, k=k + 1)
        state.save()
print(float(w.sum()))
"""


@pytest.mark.slow
def test_a_loop_goes_on_after_its_program_was_killed(tmp_path):
    def run(dies_at):
        command = [sys.executable, "-c", LOOP, str(tmp_path / "run"), str(dies_at)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    w = numpy.arange(2000.0)
    for k in range(12):
        w = w * 1.25 + k
    assert run(4).returncode == -signal.SIGKILL
    assert run(9).returncode == -signal.SIGKILL
    last = run(99)
    assert last.returncode == 0, last.stderr
    *steps, total = last.stdout.split()
    assert int(steps[0]) == 9
    assert float(total) == pytest.approx(w.sum())
    assert run(99).stdout.split() == [total]
    assert os.listdir(tmp_path) == ["run"]


def test_a_state_is_computed_when_it_is_given(tmp_path) -> None:
    """A loop that asks for no element has nothing to save otherwise but what is computed after its end."""
    computed = []

    def counted(block):
        computed.append(block.shape)
        return block + 1

    with config.override(small_bytes=0), np.resumable(tmp_path / "state") as state:
        w = np.zeros(20)
        for k in range(4):
            w = np.map(counted, w)
            before = len(computed)
            state.update(w=w, k=k)
            assert len(computed) > before
    with np.resumable(tmp_path / "state") as state:
        assert state["w"].tolist() == [4.0] * 20


@pytest.mark.parametrize("value", [numpy.random.default_rng(0), {1, 2}, {"a": object()}, len])
def test_what_no_state_holds_is_named(tmp_path, value) -> None:
    with (
        np.resumable(tmp_path / "state") as state,
        pytest.raises(TypeError, match="other is neither"),
    ):
        state.update(w=np.zeros(3), other=value)


@pytest.mark.parametrize("module", [np, numpy])
def test_a_step_that_breaks_off_leaves_the_state_of_the_one_before(tmp_path, module) -> None:
    """Whatever it has written in place by then."""
    w, seen = module.zeros(5), [0]

    def broken_off() -> None:
        nonlocal w
        with np.resumable(tmp_path / "state") as state:
            for k in range(3):
                w += 1
                seen[0] = k + 1
                if k == 2:
                    raise KeyError(k)
                state.update(w=w, seen=seen, k=k + 1)

    with pytest.raises(KeyError):
        broken_off()
    with np.resumable(tmp_path / "state") as state:
        assert (state["k"], state["seen"], state["w"].tolist()) == (2, [2], [2.0] * 5)
