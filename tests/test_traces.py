"""Traces of programs in this process: what stands in them, and that nothing is kept when nobody looks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading

import numpy
import pytest

import spartan_ng as np
from spartan_ng import traces
from spartan_ng.events import KINDS, Event, Record, now_ns, record
from tests.reading_traces import of_kind, read, usual_cover


@pytest.fixture(autouse=True)
def embedded():
    """Plans of several stages, on threads."""
    with np.config.override(small_bytes=0, kernels="interpret"):
        yield


def program():
    x = np.arange(400_000.0).reshape(4000, 100)
    return np.sort((x * x).sum(axis=1))[-1].item(), numpy.asarray(np.cumsum(x[:, 0]))


def test_a_trace_has_what_a_program_does(tmp_path):
    with np.tracing(tmp_path / "run.json"):
        largest, _ = program()
    assert largest == sum(i * i for i in range(399_900, 400_000))
    rows = read(tmp_path / "run.json")
    for kind in ("evaluate", "plan", "run", "stage"):
        assert of_kind(rows, kind), kind
    assert all(row["cat"] in KINDS for row in rows if row["ph"] != "M")
    line = of_kind(rows, "evaluate")[0]["name"]
    assert line.startswith("evaluate test_traces.py:")


def test_spans_explain_where_the_time_went(tmp_path):
    x = np.arange(1_000_000.0).reshape(1000, 1000).persist()
    with np.tracing(tmp_path / "run.json"):
        for _ in range(15):
            np.sort(np.exp(x * 1e-6), axis=1).sum().item()
    rows = read(tmp_path / "run.json")
    assert usual_cover(rows, "evaluate") >= 0.95
    assert usual_cover(rows, "run") >= 0.95
    assert len(of_kind(rows, "run")) == 15


def test_a_trace_is_written_when_the_program_fails(tmp_path):
    def breaks(tile):
        if tile.size > 1:
            raise ValueError("on purpose")
        return tile

    with pytest.raises(np.errors.UserFunctionError, match="on purpose"), np.tracing(tmp_path / "run.json"):
        np.map(breaks, np.ones((2000, 100))).sum().item()
    rows = read(tmp_path / "run.json")
    for kind in ("evaluate", "run", "stage"):  # all that were open are closed, and say what ended them
        (row,) = of_kind(rows, kind)
        assert row["name"].endswith(" (failed)")
        assert row["args"]["error"] == "UserFunctionError"
    assert not any("error" in row["args"] for row in of_kind(rows, "plan"))


def test_a_trace_begins_with_its_block(tmp_path):
    """What others have asked for before is not shown, nor of what is under way the part before."""
    whole = np.tracing(tmp_path / "run.json").begin()
    begun_ns = now_ns()
    late = np.tracing(tmp_path / "late.json")
    before = Event("compile", "before", begun_ns - 9_000, begun_ns - 5_000, 7)
    late.begin()
    across = Event("compile", "across", begun_ns - 4_000, now_ns() + 10_000, 7)
    record.tell("", [before, across])
    program()
    late.end()
    whole.end()
    rows = read(tmp_path / "late.json")
    assert [row["name"] for row in of_kind(rows, "compile")] == ["compile across"]
    assert min(row["ts"] for row in rows if "ts" in row) == 0
    assert of_kind(rows, "compile")[0]["dur"] * 1000 < across.end_ns - across.begin_ns


def _is_on(inside, path=None):
    with np.tracing(path) if inside else contextlib.nullcontext():
        return record.is_on


def test_nobody_looks_after_the_block(tmp_path):
    assert _is_on(inside=True, path=tmp_path / "run.json")
    assert not _is_on(inside=False)
    before = (tmp_path / "run.json").read_text()
    program()
    assert (tmp_path / "run.json").read_text() == before


def test_nothing_is_made_where_nobody_looks(monkeypatch):
    def told(*args):
        raise AssertionError("an event was made")

    monkeypatch.setattr(Record, "tell", told)
    program()


def test_who_looks_at_tasks_has_nothing_else_made():
    told = []

    def look(worker, events):
        told.extend(events)

    record.begin(look, tasks_only=True)
    try:
        program()
        assert {event.kind for event in told} == {"stage"}
        assert not record.is_full
        record.begin(look)
        program()
        assert {"evaluate", "run", "blocks"} <= {event.kind for event in told}
    finally:
        record.end(look)
    assert not record.is_on


def test_blocks_of_several_threads_see_the_same(tmp_path):
    inside = threading.Barrier(2)

    def work(name):
        with np.tracing(tmp_path / name):
            inside.wait()
            if name == "a":
                program()
            inside.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    a, b = (of_kind(read(tmp_path / name), "stage") for name in "ab")
    assert len(a) == len(b) > 0


def test_workers_have_processes_of_their_own_in_the_order_of_their_ranks(tmp_path):
    span = Event("part", "", 5_000, 9_001, 7)
    fetched = [Event("transfer", "from worker 0", 6_000 + i, 8_000, 8, nbytes=10) for i in range(2)]
    lost = Event("lost", "worker 3", 7_000, 7_000, 1)
    found = traces.trace(
        [("worker 10 (x)", span), ("worker 2 (y)", span), *(("", e) for e in (*fetched, lost))]
    )
    names = {r["pid"]: r["args"]["name"] for r in found["traceEvents"] if r["name"] == "process_name"}
    assert [names[pid] for pid in sorted(names)] == ["program", "worker 2 (y)", "worker 10 (x)"]
    (tmp_path / "trace").write_text(json.dumps(found))
    rows = read(tmp_path / "trace")
    (part, _) = of_kind(rows, "part")
    assert (part["ts"], part["dur"]) == (0.0, 4.001)
    assert [t["args"]["bytes"] for t in of_kind(rows, "transfer")] == ["10", "10"]
    assert [m["ph"] for m in of_kind(rows, "lost")] == ["i"]


def test_a_worker_that_gets_another_rank_is_the_same_process():
    spans = [Event("part", "", i, i + 1, 7) for i in range(4)]
    workers = ["worker 0 (a)", "worker 1 (b)", "worker 0 (b)", "worker 1 (c)"]
    found = traces.trace(list(zip(workers, spans, strict=True)))
    names = {r["pid"]: r["args"]["name"] for r in found["traceEvents"] if r["name"] == "process_name"}
    assert sorted(names.values()) == ["program", "worker 0 (a)", "worker 1 (b)", "worker 1 (c)"]
    assert [names[r["pid"]][-2] for r in found["traceEvents"] if r["ph"] == "X"] == ["a", "b", "b", "c"]


def test_samples_are_no_spans(tmp_path):
    with np.tracing(tmp_path / "run.json"):
        record.tell("", [Event("sample", "f (a.py:1)", 0, 10**9, 0)])
        program()
    rows = read(tmp_path / "run.json")
    assert of_kind(rows, "stage")
    assert not of_kind(rows, "sample")


def test_more_than_a_trace_keeps_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "MOST_EVENTS", 3)
    with np.tracing(tmp_path / "run.json"):
        program()
    assert '"events left out"' in (tmp_path / "run.json").read_text()
    assert len([r for r in read(tmp_path / "run.json") if r["ph"] != "M"]) == 3


SCRIPT = """
import os, subprocess, sys
import spartan_ng as np
np.config.small_bytes = 0
print((np.arange(100_000.0) ** 2).sum())
print(subprocess.run([sys.executable, "-c", "import os; print(os.environ.get('SPARTAN_NG_TRACE'))"],
                     capture_output=True, text=True).stdout)
"""


@pytest.mark.slow
def test_the_command_traces_a_script_and_not_what_it_starts(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "spartan_ng.cli", "run", "--trace", "run.json", "script.py"]
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.splitlines()[1] == "None"
    assert of_kind(read(tmp_path / "run.json"), "stage")
