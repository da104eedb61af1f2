"""What the master hears and says is what the board shows."""

import json
import sys

import pytest

from spartan_ng.events import Event
from spartan_ng.master.watcher import Watcher
from spartan_ng.web.board import Board
from spartan_ng.wire.codec import encode
from spartan_ng.wire.messages import (
    Discard,
    Doing,
    DropOwner,
    Happened,
    Here,
    JobDone,
    JobError,
    JobFailed,
    Member,
    Members,
    Printed,
    Release,
    Submit,
)

ARRAYS = [
    {
        "number": 0,
        "shape": [3],
        "dtype": "int64",
        "tiling": "3",
        "format": "dense",
        "nbytes": 24,
        "role": "input",
    },
    {
        "number": 1,
        "shape": [],
        "dtype": "int64",
        "tiling": "1",
        "format": "dense",
        "nbytes": 8,
        "role": "output",
    },
]
PLAN = json.dumps({"workers": 3, "arrays": ARRAYS, "stages": [], "inputs": [0], "outputs": [1]}).encode()


def member(n):
    return Member(f"w{n}", f"label {n}", "", "", 2, 100)


def watching(workers=3):
    board = Board("")
    watcher = Watcher(board, Members(1, tuple(map(member, range(workers)))))
    return board, watcher


def submit(watcher, job="c/1", described=PLAN, inputs=(("c", 7),), outputs=(("c", 8),), **more):
    message = Submit(
        job, "k", 1, 3, 3, inputs, outputs, False, False, line="a.py:3", described=described, **more
    )
    watcher.heard("c", "pid 1", message)


def test_workers_follow_their_ranks():
    board, watcher = watching()
    watcher.said(Members(2, (member(0), member(2)), (member(1),)))
    assert [(row["label"], row["rank"]) for row in board.section("workers")] == [
        ("label 0", 0),
        ("label 2", 1),
    ]
    assert [row["text"] for row in board.section("losses")] == ["worker label 1 is gone"]
    watcher.said(Members(2, (member(0), member(2))))  # for who has just come
    assert board.totals.losses == 1


def test_jobs_arrays_and_their_ends():
    board, watcher = watching()
    submit(watcher)
    assert sorted(board.keys("arrays")) == ["c:7", "c:8"]
    lines = dict(zip(board.keys("arrays"), (row["line"] for row in board.section("arrays")), strict=True))
    assert lines == {"c:7": "", "c:8": "a.py:3"}
    submit(watcher, "c/2", b"", (("c", 8),), (("c", 9),), released=(7,))
    assert sorted(board.keys("arrays")) == ["c:8", "c:9"]
    watcher.said(JobDone("c/1", (), ()))
    watcher.said(JobFailed("c/2", "EvaluationError", "why"))
    watcher.said(Discard((("c", 9),)))
    assert [(job["state"], job["error"]) for job in board.section("jobs")] == [
        ("done", ""),
        ("failed", "why"),
    ]
    watcher.heard("c", "pid 1", Release((8,)))
    assert board.keys("arrays") == []


@pytest.mark.parametrize("kind", ["WorkerDied", "WorkersChanged", "UserFunctionError", "WorkerUnreachable"])
def test_a_job_that_lost_a_worker_has_not_failed(kind):
    """Its client goes on without the worker, and the others' parts end because they were told to."""
    board, watcher = watching()
    submit(watcher)
    watcher.heard("w1", "label 1", JobError("c/1", "JobCancelled", "job c/1 was cancelled"))
    assert board.section("logs") == []
    stage = Event("stage", "add", 0, 10**9, 1, "c/1", 0, 5, "JobCancelled")
    watcher.heard("w1", "label 1", Happened("c/1", (stage,)))
    assert [task["error"] for task in board.section("tasks")] == ["JobCancelled"]
    watcher.said(JobFailed("c/1", kind, "why"))
    is_loss = kind in ("WorkerDied", "WorkersChanged")
    assert [job["state"] for job in board.section("jobs")] == ["interrupted" if is_loss else "failed"]
    totals = board.totals
    assert (totals.interrupted, totals.failed, totals.tasks) == (is_loss, not is_loss, 0)


def test_a_client_that_leaves_takes_its_arrays_and_jobs():
    board, watcher = watching()
    submit(watcher)
    board.holds("cc:1", {"line": ""}, is_new=True)
    submit(watcher, "c/2", b"")
    watcher.said(JobDone("c/1", (), ()))
    watcher.said(DropOwner("c"))
    assert board.keys("arrays") == ["cc:1"]
    ends = [(job["state"], job["error"]) for job in board.section("jobs")]
    assert ends == [("done", ""), ("failed", "the client is gone")]


def test_what_workers_say():
    board, watcher = watching()
    submit(watcher)
    watcher.heard("w1", "label 1", Here(1, 2, 30, 4, 5, 60, 70))
    watcher.heard("w1", "label 1", Doing("c/1", "computes"))
    watcher.heard("w1", "label 1", Printed("c/1", "so far"))
    watcher.heard("w1", "label 1", Happened("c/1", (Event("stage", "add", 0, 10**9, 1, "c/1", 0, 5),)))
    row = board.section("workers")[1]
    found = {name: row[name] for name in ("used", "free", "spilled", "received", "sent", "doing")}
    assert found == {"used": 30, "free": 4, "spilled": 5, "received": 60, "sent": 70, "doing": "computes"}
    assert [(line["where"], line["text"]) for line in board.section("logs")] == [("label 1", "so far")]
    assert [task["name"] for task in board.section("tasks")] == ["add"]


def test_a_plan_that_nobody_has_described_is_a_job_all_the_same():
    board, watcher = watching()
    submit(watcher, described=b"")
    assert [job["line"] for job in board.section("jobs")] == ["a.py:3"]
    assert board.keys("arrays") == []


def calls_of(work):
    """How many functions are called, Python's and C's: the same on every machine."""
    found = []
    sys.setprofile(lambda frame, event, argument: found.append(event))
    try:
        work()
    finally:
        sys.setprofile(None)
    return sum(event in ("call", "c_call") for event in found)


def stage_of(number):
    kinds = {"number": number, "kind": "fused", "operators": ["add"], "domain": [3], "grid": "3"}
    return kinds | {"reads": [0], "writes": [1], "predicted_bytes": 0, "predicted_seconds": 1e-3}


def test_what_a_page_costs_grows_with_a_jobs_tasks_alone():
    """Of a job of 50 ms, 1 % is 500 µs, and a call takes about 0.1 µs. Jobs that have been, and workers that
    have no part in it, add nothing; nor is there more to hear of a task than a line."""
    stages, workers = 5, 3
    unmeasured = {"measured_bytes": None, "measured_seconds": None}
    plan = {**json.loads(PLAN), "stages": [stage_of(n) | unmeasured for n in range(stages)]}
    _, watcher = watching(1000)

    def tell(job, each):
        submit(watcher, job, json.dumps(plan).encode() if job == "c/0" else b"")
        for n in range(workers):
            tasks = (
                Event("stage", "add", i, i + 9, 1, job, i, 5) for i in range(stages) for _ in range(each)
            )
            watcher.heard(f"w{n}", f"label {n}", Happened("", tuple(tasks)))
        watcher.said(JobDone(job, (), ()))

    tell("c/0", 1)
    for number in range(1, 300):
        assert calls_of(lambda n=number: tell(f"c/{n}", 1)) <= 28 * stages * workers + 150
    assert calls_of(lambda: tell("c/300", 10)) <= 28 * stages * workers * 10 + 150
    event = Event("stage", "add", 10**18, 10**18 + 9, 1 << 48, "c/300", 4, 10**9)
    assert sum(map(len, encode(Happened("", (event,) * 100)))) <= 100 * 100
