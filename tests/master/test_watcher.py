"""What the master hears and says is what the board shows."""

import json

from spartan_ng.events import Event
from spartan_ng.master.watcher import Watcher
from spartan_ng.web.board import Board
from spartan_ng.wire.messages import (
    Discard,
    Doing,
    DropOwner,
    Happened,
    Here,
    JobDone,
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
