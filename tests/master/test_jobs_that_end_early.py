"""What the master decides when a job is cancelled, or a worker or a client is lost, without a socket."""

from spartan_ng.master.jobs import SAVE_S
from spartan_ng.wire.codec import Blob
from spartan_ng.wire.messages import (
    Cancel,
    CancelJob,
    Discard,
    DropOwner,
    JobDone,
    JobError,
    JobFailed,
    Members,
    Release,
    RunJob,
)
from tests.master.test_state import finish, leave, master, sent, submit


def test_cancel():
    state = master(2)
    submit(state, world=2)
    out = state.handle("c", Cancel("c/1"))
    assert out[0][1].kind == "JobCancelled"
    assert len(sent(out, CancelJob)) == 2
    assert state.handle("c", Cancel("c/1")) == []  # a second one changes nothing


def test_what_is_left_of_a_job_that_is_set_aside_stays_for_its_client():
    state = master(2)
    submit(state, world=2)
    finish(state, "w0")
    out = state.handle("c", Cancel("c/1", goes_on=True))
    assert out == [(w, CancelJob("c/1", (("c", 5),))) for w in ("w0", "w1")]
    assert state.handle("c", Cancel("c/1", goes_on=True)) == [], "a second one changes nothing"
    assert leave(state, "w1", (("c/1", 1),)) == []
    ((to, failed),) = leave(state, "w0", (("c", 5),))
    assert (to, failed.kind, failed.left) == ("c", "JobSetAside", ((("c", 5),), (("c/1", 1),)))


def test_of_a_job_that_is_set_aside_a_lost_worker_leaves_nothing():
    state = master(2)
    submit(state, world=2)
    state.handle("c", Cancel("c/1", goes_on=True))
    leave(state, "w1", (("c/1", 1),))
    ((_, failed),) = sent(state.lost("w0"), JobFailed)
    assert (failed.kind, failed.left) == ("JobSetAside", ((), (("c/1", 1),)))


def test_a_job_that_ends_by_itself_is_not_set_aside():
    state = master(1)
    submit(state, world=1)
    assert sent(finish(state, "w0"), JobDone)
    assert state.handle("c", Cancel("c/1", goes_on=True)) == []


def test_who_cancels_a_job_that_was_set_aside_wants_nothing_of_it():
    state = master(1)
    submit(state, world=1)
    state.handle("c", Cancel("c/1", goes_on=True))
    assert sent(state.handle("c", Cancel("c/1")), JobFailed)[0][1].kind == "JobCancelled"
    assert state.handle("c", Cancel("c/1", goes_on=True)) == []
    assert sent(leave(state, "w0", (("c/1", 0),)), Discard)


def test_nobody_cancels_anothers_job():
    state = master(1, ("c", "d"))
    submit(state, world=1)
    assert state.handle("d", Cancel("c/1")) == []


def test_a_lost_worker_fails_its_jobs_by_name():
    state = master(3)
    submit(state)
    assert {to for to, _ in sent(state.lost("w1"), CancelJob)} == {"w0", "w2"}
    leave(state, "w0")
    ((_, failed),) = sent(leave(state, "w2"), JobFailed)
    assert failed.kind == "WorkerDied"
    assert "worker 1 (label 1)" in failed.message


def test_what_the_others_have_left_of_a_job_stays_for_its_client():
    state = master(3)
    submit(state)
    finish(state, "w0")
    out = state.lost("w1")
    assert sent(out, CancelJob) == [(w, CancelJob("c/1", (("c", 5),))) for w in ("w0", "w2")]
    assert not sent(out, JobFailed)
    heard = [type(m) for to, m in out if to == "w0"]
    assert heard == [CancelJob, Members], (
        "reads from a lost worker fail what has not been told to keep its tiles"
    )
    first, second = (("c/1", 0), ("c", 5)), (("c/1", 1),)
    assert finish(state, "w2") == [], "its answer to the order is under way"
    assert leave(state, "w2", second) == []
    ((to, failed),) = leave(state, "w0", first)
    assert (to, failed.left) == ("c", (first, (), second))
    assert submit(state, "c/2", world=2, plan=Blob())


def test_of_a_worker_that_is_lost_later_nothing_is_left():
    state = master(3)
    submit(state)
    state.lost("w1")
    leave(state, "w0", (("c/1", 0),))
    ((_, failed),) = sent(state.lost("w2"), JobFailed)
    assert failed.left == ((("c/1", 0),), (), ())


def test_a_client_waits_for_a_moment_only_for_what_is_left():
    state = master(3)
    state.tick(100.0)
    submit(state)
    state.tick(100.0)
    state.lost("w1")
    leave(state, "w0", (("c/1", 0),))
    assert state.tick(100.0 + SAVE_S / 2) == []
    ((to, failed),) = state.tick(100.0 + SAVE_S)
    assert (to, failed.left) == ("c", ((("c/1", 0),), (), ()))
    assert leave(state, "w2", (("c/1", 0),)) == []
    assert state.handle("c", Release((), ("c/1",))), "it goes when its client says so"


def test_what_is_left_of_a_job_that_nobody_wants_goes():
    state = master(3)
    submit(state)
    state.lost("w1")
    leave(state, "w0")
    ((_, failed),) = sent(state.handle("c", Cancel("c/1")), JobFailed)
    assert failed.kind == "JobCancelled"
    assert {to for to, _ in sent(leave(state, "w2"), Discard)} == {"w0", "w2"}


def test_a_job_that_does_not_use_the_lost_worker_goes_on():
    state = master(3)
    submit(state, world=2)
    assert sent(state.lost("w2"), JobFailed) == []
    finish(state, "w0")
    assert isinstance(finish(state, "w1")[0][1], JobDone)


def test_the_last_rank_takes_the_lost_ones_place():
    state = master(4)
    epoch = state.members().epoch
    state.lost("w1")
    assert [m.name for m in state.members().members] == ["w0", "w3", "w2"]
    ((_, failed),) = submit(state, world=2, epoch=epoch)  # planned when rank 1 was another
    assert failed.kind == "WorkersChanged"
    assert sent(submit(state, "c/2", world=1, epoch=epoch), RunJob)  # rank 0 is as it was


def test_a_plan_for_more_workers_than_there_are():
    state = master(2)
    ((_, failed),) = submit(state, world=3)
    assert failed.kind == "WorkersChanged"
    assert "2 are left" in failed.message


def test_a_lost_client_leaves_nothing():
    state = master(2)
    submit(state, world=2)
    out = state.lost("c")
    assert {to for to, _ in sent(out, CancelJob)} == {"w0", "w1"}
    assert sent(out, DropOwner) == [("w0", DropOwner("c")), ("w1", DropOwner("c"))]
    assert sent(out, JobFailed) == []
    finish(state, "w0")
    out = state.handle("w1", JobError("c/1", "JobCancelled", ""))
    assert len(sent(out, Discard)) == 2  # what was finished too late goes, too
