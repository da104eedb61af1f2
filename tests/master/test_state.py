"""The master's decisions, event by event, without a socket."""

import itertools

import pytest

from spartan_ng.master.state import JOB_STEPS, MasterState
from spartan_ng.wire.codec import Blob
from spartan_ng.wire.messages import (
    PROTOCOL,
    Bye,
    Cancel,
    CancelJob,
    Discard,
    DropOwner,
    ForgetPlan,
    Hello,
    JobDone,
    JobError,
    JobFailed,
    JobFinished,
    Members,
    Printed,
    Progress,
    Refused,
    Release,
    RunJob,
    StagesDone,
    Submit,
    Welcome,
)

PLAN = Blob((b"plan",))


def master(workers=3, clients=("c",)):
    state = MasterState()
    for i in range(workers):
        state.handle(f"w{i}", Hello(PROTOCOL, "worker", f"w{i}", label=f"label {i}"))
    for c in clients:
        state.handle(c, Hello(PROTOCOL, "client", c))
    return state


def submit(state, job="c/1", key="k", world=3, plan=PLAN, **fields):
    client = job.partition("/")[0]
    values = {"inputs": (), "outputs": ((client, 5),), "inline": False, "progress": True, **fields}
    epoch = values.pop("epoch", state.members().epoch)
    return state.handle(client, Submit(job, key, epoch, world, world, plan=plan, **values))


def sent(instructions, kind):
    return [(to, m) for to, m in instructions if isinstance(m, kind)]


def finish(state, worker, job="c/1", stats=((0.5, 10, 0, 0),)):
    return state.handle(worker, JobFinished(job, stats, (0,)))


def test_ranks_follow_the_order_of_joining():
    state = master(3)
    assert [m.name for m in state.members().members] == ["w0", "w1", "w2"]


def test_everybody_hears_of_a_new_worker():
    out = master(1).handle("w9", Hello(PROTOCOL, "worker", "w9"))
    assert out[0] == ("w9", Welcome(PROTOCOL))
    assert {to for to, _ in sent(out, Members)} == {"w0", "w9", "c"}


def test_another_protocol_is_refused():
    state = master(0, ())
    ((to, answer),) = state.handle("x", Hello(PROTOCOL + 1, "worker", "x"))
    assert to == "x"
    assert isinstance(answer, Refused)
    assert answer.reason == "version"
    assert state.peers == []


def test_a_wrong_token_is_refused():
    state = MasterState("secret")
    ((_, answer),) = state.handle("x", Hello(PROTOCOL, "client", "x", token="guess"))
    assert isinstance(answer, Refused)
    assert answer.reason == "token"


@pytest.mark.parametrize("message", [Bye(), Release((1,)), JobFinished("c/1", (), ())])
def test_strangers_are_not_heard(message):
    ((to, answer),) = master().handle("stranger", message)
    assert to == "stranger"
    assert isinstance(answer, Refused)


def test_a_client_may_not_speak_as_a_worker():
    state = master()
    submit(state)
    assert isinstance(state.handle("c", JobFinished("c/1", (), ()))[0][1], Refused)


def test_a_plan_travels_once_to_each_worker():
    state = master()
    first = sent(submit(state), RunJob)
    assert [to for to, _ in first] == ["w0", "w1", "w2"]
    assert all(m.plan for _, m in first)
    for w in ("w0", "w1", "w2"):
        out = finish(state, w)
    assert isinstance(out[0][1], JobDone)
    again = sent(submit(state, "c/2", plan=Blob()), RunJob)
    assert len(again) == 3
    assert not any(m.plan for _, m in again)
    state.handle("w3", Hello(PROTOCOL, "worker", "w3"))
    newer = sent(submit(state, "c/3", plan=Blob(), world=4), RunJob)
    assert [bool(m.plan) for _, m in newer] == [False, False, False, True]


def test_plans_are_the_clients_own():
    state = master(1, ("c", "d"))
    submit(state, world=1)
    out = submit(state, "d/1", world=1, plan=Blob())
    assert [m.kind for _, m in sent(out, JobFailed)] == ["EvaluationError"]


def test_a_job_uses_as_many_workers_as_its_plan():
    assert [to for to, _ in sent(submit(master(3), world=2), RunJob)] == ["w0", "w1"]


def test_costs_are_the_slowest_workers_seconds_and_all_bytes():
    state = master(2)
    submit(state, world=2)
    assert finish(state, "w0", stats=((1.0, 5, 1, 2), (2.0, 7, 0, 0))) == []
    ((to, done),) = finish(state, "w1", stats=((3.0, 1, 2, 1), (1.0, 0, 0, 0)))
    assert to == "c"
    assert done.stats == ((3.0, 6, 3, 3), (2.0, 7, 0, 0))


def test_an_error_stops_the_others_and_leaves_nothing():
    state = master(3)
    submit(state)
    finish(state, "w0")
    out = state.handle("w1", JobError("c/1", "IndexError", "index 3"))
    assert ("c", JobFailed("c/1", "IndexError", "index 3")) in out
    assert sent(out, CancelJob) == [("w2", CancelJob("c/1"))]
    assert sent(out, Discard) == []
    out = state.handle("w2", JobError("c/1", "JobCancelled", ""))
    assert out == [(w, Discard((("c", 5),), ("c/1",))) for w in ("w0", "w1", "w2")]
    assert sent(submit(state, "c/2"), RunJob)  # the next job runs


def test_cancel():
    state = master(2)
    submit(state, world=2)
    out = state.handle("c", Cancel("c/1"))
    assert out[0][1].kind == "JobCancelled"
    assert len(sent(out, CancelJob)) == 2
    assert state.handle("c", Cancel("c/1")) == []  # a second one changes nothing


def test_nobody_cancels_anothers_job():
    state = master(1, ("c", "d"))
    submit(state, world=1)
    assert state.handle("d", Cancel("c/1")) == []


def test_a_lost_worker_fails_its_jobs_by_name():
    state = master(3)
    submit(state)
    out = state.lost("w1")
    ((_, failed),) = sent(out, JobFailed)
    assert failed.kind == "WorkerDied"
    assert "worker 1 (label 1)" in failed.message
    assert {to for to, _ in sent(out, CancelJob)} == {"w0", "w2"}


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
    assert failed.kind == "WorkerLost"
    assert sent(submit(state, "c/2", world=1, epoch=epoch), RunJob)  # rank 0 is as it was


def test_a_plan_for_more_workers_than_there_are():
    state = master(2)
    ((_, failed),) = submit(state, world=3)
    assert failed.kind == "WorkerLost"
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


def test_a_worker_that_says_hello_again_has_lost_its_tiles():
    state = master(2)
    submit(state, world=2)
    out = state.handle("w0", Hello(PROTOCOL, "worker", "w0"))
    assert sent(out, JobFailed)[0][1].kind == "WorkerDied"
    assert [m.name for m in state.members().members] == ["w1", "w0"]


def test_progress_is_the_slowest_workers():
    state = master(2)
    submit(state, world=2)
    assert state.handle("w0", StagesDone("c/1", 2)) == []
    assert state.handle("w1", StagesDone("c/1", 1)) == [("c", Progress("c/1", 1))]
    assert state.handle("w0", StagesDone("c/1", 3)) == []


def test_what_functions_print_goes_to_their_program_with_the_workers_name():
    state = master(2, ("c", "d"))
    submit(state, world=2)
    where = "worker 1 (label 1)"
    assert state.handle("w1", Printed("c/1", "hello")) == [("c", Printed("c/1", "hello", where))]
    assert state.handle("w1", Printed("d/1", "hello")) == []


def test_released_arrays_are_dropped_everywhere():
    state = master(2)
    keys = (("c", 3), ("c", 4))
    assert state.handle("c", Release((3, 4))) == [("w0", Discard(keys)), ("w1", Discard(keys))]
    out = submit(state, world=1, released=(8,))
    assert sent(out, RunJob)[0][1].released == (("c", 8),)
    assert sent(out, Discard) == [("w1", Discard((("c", 8),)))]


def test_the_scratch_of_jobs_that_are_over_goes_but_only_the_clients_own():
    state = master(2)
    out = submit(state, "c/2", world=1, retired=("c/1", "d/1", "cc/1"))
    assert sent(out, RunJob)[0][1].retired == ("c/1",)
    assert sent(out, Discard) == [("w1", Discard((), ("c/1",)))]
    assert state.handle("c", Release((), ("c/2", "d/1"))) == [
        (w, Discard((), ("c/2",))) for w in ("w0", "w1")
    ]


def test_forgotten_plans():
    state = master(2)
    submit(state, world=1)
    assert state.handle("c", ForgetPlan("k")) == [("w0", ForgetPlan("k", "c"))]
    assert sent(submit(state, "c/2", world=1), RunJob)[0][1].plan


def test_the_work_for_a_job_does_not_grow_with_anything_but_workers():
    for workers in (1, 4, 16):
        state = master(workers)
        messages = len(submit(state, world=workers))
        for w in range(workers):
            messages += len(finish(state, f"w{w}"))
        assert messages == workers + 1


def test_every_job_state_answers_every_event():
    events = {"cancelled", "client lost"} | {
        prefix + e for prefix in ("", "last ") for e in ("part finished", "part failed", "worker lost")
    }
    assert set(JOB_STEPS) == set(itertools.product(("running", "stopping"), events))
