"""The board: what is told comes out again, and whoever follows the changes knows what there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.events import Event
from spartan_ng.web import board as boards
from spartan_ng.web.board import Board

STAGE = {"operators": ["add"], "kind": "fused", "predicted_bytes": 7, "predicted_seconds": 0.5}


def told():
    board = Board("title")
    for rank in range(2):
        board.worker_came(f"w{rank}", rank, f"label {rank}", 4, 1000)
    board.submitted("c/1", "client", "a.py:3", "c:p", 2, is_known=False)
    board.described("c:p", {"stages": [STAGE]})
    return board


def stage(number, begin, end, job="c/1", nbytes=0):
    return Event("stage", "add", begin, end, 1, job, number, nbytes)


def test_a_job_is_followed_through_its_stages():
    board = told()
    board.happened("w0", [stage(0, 0, 2_000_000_000, nbytes=10), Event("wait", "", 5, 25, 1, "c/1")])
    (job,) = board.section("jobs")
    assert job["stages"] == {0: (1, 2.0, 10)}
    assert board.totals.stages == 0
    board.happened("w1", [stage(0, 0, 3_000_000_000, nbytes=5)])
    board.ended("c/1", "done")
    (job,) = board.section("jobs")
    assert (job["state"], job["stages"], job["line"]) == ("done", {0: (2, 3.0, 15)}, "a.py:3")
    totals = board.totals
    assert (totals.submitted, totals.done, totals.failed, totals.stages, totals.tasks) == (1, 1, 0, 1, 2)
    assert (totals.task_ns, totals.waited_ns, totals.moved_bytes) == (5_000_000_000, 20, 15)


def test_a_job_ends_once():
    board = told()
    board.ended("c/1", "failed", "why")
    board.ended("c/1", "done")
    board.ended("c/2", "done")
    (job,) = board.section("jobs")
    assert (job["state"], job["error"]) == ("failed", "why")
    assert (board.totals.done, board.totals.failed) == (0, 1)


def test_a_worker_that_goes_is_a_loss():
    board = told()
    board.vitals("w1", used=5)
    board.doing("w1", "computes")
    board.worker_went("w1", "worker label 1 is gone")
    board.vitals("w1", used=6)  # what was under way
    assert [row["label"] for row in board.section("workers")] == ["label 0"]
    assert [row["text"] for row in board.section("losses")] == ["worker label 1 is gone"]
    assert board.totals.losses == 1


def test_a_worker_keeps_what_it_has_when_its_rank_changes():
    board = told()
    board.vitals("w1", used=5, received=9)
    board.worker_came("w1", 0, "label 1", 4, 1000)
    row = board.section("workers")[1]
    assert (row["rank"], row["used"], row["received"]) == (0, 5, 9)


def test_what_functions_take_adds_up_over_workers():
    board = told()
    for worker, seconds in (("w0", 1), ("w1", 2)):
        board.happened(worker, [Event("sample", "f (a.py:1);g (a.py:5)", 0, seconds * 10**9, 0, "c/1")])
    board.happened("w1", [Event("sample", "f (a.py:1)", 0, 10**9, 0, "c/1")])
    assert board.changes()["rows"]["functions"] == {
        "f (a.py:1);g (a.py:5)": {"seconds": 3.0},
        "f (a.py:1)": {"seconds": 1.0},
    }


def test_functions_that_are_seen_stay(monkeypatch):
    monkeypatch.setitem(boards.MOST, "functions", 2)
    board = told()
    for name in "abacad":
        board.happened("w0", [Event("sample", name, 0, 10**9, 0)])
    assert board.changes()["rows"]["functions"] == {"a": {"seconds": 3.0}, "d": {"seconds": 1.0}}


def test_an_array_keeps_the_line_that_made_it():
    board = told()
    board.holds("c:1", {"shape": [3], "line": "a.py:3"}, is_new=True)
    board.holds("c:1", {"shape": [3], "line": ""}, is_new=False)
    assert [row["line"] for row in board.section("arrays")] == ["a.py:3"]
    board.released(["c:1", "c:2"])
    assert board.section("arrays") == []


def test_what_has_not_changed_is_not_said_again():
    board = told()
    before = board.changes()
    assert set(before["rows"]) == {"workers", "jobs", "plans"}
    assert before["all"]
    board.vitals("w0", used=5)
    board.vitals("w1", used=0)  # as it was
    after = board.changes(before["version"])
    assert not after["all"]
    assert {name: list(rows) for name, rows in after["rows"].items()} == {"workers": ["w0"]}
    assert board.changes(after["version"])["rows"] == {}


def test_a_description_is_shown_when_it_is_asked_for():
    board = told()
    assert set(board.changes()["rows"]["plans"]["c:p"]) == {"stages"}
    assert board.plan("c:p") == {"stages": [STAGE]}
    assert board.plan("no such") is None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["come", "go", "vitals", "job", "end", "log", "hold", "let go", "look"]),
        st.integers(0, 5),
    ),
    max_size=60,
)


@pytest.mark.parametrize("remembered", [3, 4000])
def test_whoever_follows_the_changes_knows_what_there_is(remembered, monkeypatch):
    monkeypatch.setattr(boards, "_GONE", remembered)
    monkeypatch.setitem(boards.MOST, "logs", 4)

    @given(STEPS)
    def follow(steps):
        board, version = Board(""), 0
        known: dict = {name: {} for name in boards.MOST}
        for what, n in [*steps, ("look", 0)]:
            match what:
                case "come":
                    board.worker_came(f"w{n}", n, "", 1, 0)
                case "go":
                    board.worker_went(f"w{n}", "gone")
                case "vitals":
                    board.vitals(f"w{n}", used=len(steps) + n)
                case "job":
                    board.submitted(f"c/{n}", "", "", "p", 1, is_known=False)
                    board.happened("w0", [stage(0, 0, 1, f"c/{n}")])
                case "end":
                    board.ended(f"c/{n}", "done")
                case "log":
                    board.logged("here", "info", f"{n}")
                case "hold":
                    board.holds(f"c:{n}", {"shape": [n]}, is_new=True)
                case "let go":
                    board.released([f"c:{n}"])
                case "look":
                    news = board.changes(version)
                    version = news["version"]
                    if news["all"]:
                        known = {name: {} for name in boards.MOST}
                    for name, rows in news["rows"].items():
                        known[name].update(rows)
                    for name, keys in news["gone"].items():
                        for key in keys:
                            known[name].pop(key, None)
        assert known == {
            name: dict(zip(board.keys(name), board.section(name), strict=True)) for name in boards.MOST
        }

    follow()
