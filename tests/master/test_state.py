"""The master's decisions, event by event, without a socket."""

import itertools

import pytest

from spartan_ng.events import Event
from spartan_ng.master.jobs import JOB_STEPS
from spartan_ng.master.peers import SILENT_S
from spartan_ng.master.state import MasterState
from spartan_ng.wire.codec import Blob
from spartan_ng.wire.messages import (
    PROTOCOL,
    AskStatus,
    Authorized,
    Bye,
    Cancel,
    CancelJob,
    Discard,
    Doing,
    ForgetPlan,
    Happened,
    Hello,
    Here,
    JobDone,
    JobError,
    JobFailed,
    JobFinished,
    Members,
    Printed,
    Progress,
    Release,
    RunJob,
    Shutdown,
    StagesDone,
    Stop,
    Submit,
    Welcome,
)

PLAN = Blob((b"plan",))


def master(workers=3, clients=("c",), now_s=0.0):
    state = MasterState(now_s)
    for i in range(workers):
        state.greet(f"w{i}", "worker", Hello(PROTOCOL, "worker", label=f"label {i}"))
    for c in clients:
        state.greet(c, "client", Hello(PROTOCOL, "client"))
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


def leave(state, worker, left=(), job="c/1"):
    return state.handle(worker, JobError(job, "JobCancelled", "", left))


def test_ranks_follow_the_order_of_joining():
    state = master(3)
    assert [m.name for m in state.members().members] == ["w0", "w1", "w2"]


def test_everybody_hears_of_a_new_worker():
    out = master(1).greet("w9", "worker", Hello(PROTOCOL, "worker"))
    assert out[0] == ("w9", Welcome(PROTOCOL))
    assert {to for to, _ in sent(out, Members)} == {"w0", "w9", "c"}


def test_workers_hear_whose_keys_open_their_doors():
    state = master(2)
    users = (("key", "client alice key"),)
    assert state.authorize(users) == [("w0", Authorized(users)), ("w1", Authorized(users))]
    out = state.greet("w9", "worker", Hello(PROTOCOL, "worker"))
    assert sent(out, Authorized) == [("w9", Authorized(users))]


def test_only_an_admin_ends_a_cluster():
    state = master(2)
    for peer in ("w0", "c"):
        with pytest.raises(ValueError, match="may not say Shutdown"):
            state.handle(peer, Shutdown())
    assert not state.is_over
    state.greet("a", "admin", Hello(PROTOCOL, "admin"))
    assert {to for to, _ in sent(state.handle("a", Shutdown()), Stop)} == {"w0", "w1", "c"}
    assert not state.is_over
    for worker in ("w0", "w1"):
        state.lost(worker)
    assert state.is_over


@pytest.mark.parametrize(
    "fields", [{"ranks": 0}, {"ranks": 4}, {"job": "other/1"}, {"outputs": (("other", 5),)}]
)
def test_a_job_that_no_program_sends_is_refused_and_changes_nothing(fields):
    state = master()
    values = {
        "job": "c/1", "plan_key": "k", "epoch": state.members().epoch, "world": 3, "ranks": 3, "inputs": (),
        "outputs": (), "inline": False, "progress": False, "plan": PLAN, **fields,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"ranks|job|results"):
        state.handle("c", Submit(**values))
    assert submit(state)


def test_parts_that_differ_in_their_form_are_refused():
    state = master(2)
    submit(state, world=2)
    finish(state, "w0")
    with pytest.raises(ValueError, match="form"):
        finish(state, "w1", stats=((0.5, 1, 0, 0), (0.5, 1, 0, 0)))
    assert sent(finish(state, "w1"), JobDone)


@pytest.mark.parametrize("message", [Bye(), Release((1,)), JobFinished("c/1", (), ())])
def test_strangers_are_not_heard(message):
    with pytest.raises(ValueError, match="stranger may not"):
        master().handle("stranger", message)


def test_a_client_may_not_speak_as_a_worker():
    state = master()
    submit(state)
    with pytest.raises(ValueError, match="client may not"):
        state.handle("c", JobFinished("c/1", (), ()))


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
    state.greet("w3", "worker", Hello(PROTOCOL, "worker"))
    newer = sent(submit(state, "c/3", plan=Blob(), world=4), RunJob)
    assert [bool(m.plan) for _, m in newer] == [False, False, False, True]


def test_plans_are_the_clients_own():
    state = master(1, ("c", "d"))
    submit(state, world=1)
    out = submit(state, "d/1", world=1, plan=Blob())
    assert [m.kind for _, m in sent(out, JobFailed)] == ["EvaluationError"]


def test_a_job_uses_as_many_workers_as_its_plan():
    assert [to for to, _ in sent(submit(master(3), world=2), RunJob)] == ["w0", "w1"]


def test_seconds_go_from_one_stages_end_on_all_workers_to_the_nexts_and_bytes_add_up():
    state = master(2)
    submit(state, world=2)
    assert finish(state, "w0", stats=((1.0, 5, 1, 2), (2.0, 7, 0, 0))) == []
    ((to, done),) = finish(state, "w1", stats=((3.0, 1, 2, 1), (1.0, 0, 0, 0)))
    assert to == "c"
    assert done.stats == ((3.0, 6, 3, 3), (1.0, 7, 0, 0))


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


def test_a_worker_that_says_hello_again_has_lost_its_tiles():
    state = master(2)
    submit(state, world=2)
    state.greet("w0", "worker", Hello(PROTOCOL, "worker"))
    assert sent(leave(state, "w1"), JobFailed)[0][1].kind == "WorkerDied"
    assert [m.name for m in state.members().members] == ["w1", "w0"]


def test_progress_is_the_slowest_workers():
    state = master(2)
    submit(state, world=2)
    assert state.handle("w0", StagesDone("c/1", 2)) == []
    assert state.handle("w1", StagesDone("c/1", 1)) == [("c", Progress("c/1", 1))]
    assert state.handle("w0", StagesDone("c/1", 3)) == []


def test_a_job_with_a_deadline_fails_and_says_who_waits_for_whom():
    state = master(2)
    submit(state, world=2, deadline_s=5.0)
    assert state.tick(100.0) == []
    state.handle("w0", Doing("c/1", "waits for worker 1 in stage 'fold add'"))
    state.handle("w1", Doing("c/1", "runs f (at p.py:3)"))
    assert state.tick(104.9) == []
    out = state.tick(105.0)
    ((to, failed),) = sent(out, JobFailed)
    assert (to, failed.kind) == ("c", "JobTimeout")
    assert "more than 5 s" in failed.message
    assert "worker 0 waits for worker 1 in stage 'fold add'; worker 1 runs f (at p.py:3)" in failed.message
    assert {name for name, _ in sent(out, CancelJob)} == {"w0", "w1"}
    assert state.tick(200.0) == []


def test_a_job_without_a_deadline_runs_for_ever_and_status_says_what_it_does():
    state = master(2)
    submit(state, world=2)
    state.tick(0.0)
    assert state.tick(1e6) == []
    state.handle("w1", Doing("c/1", "computes"))
    ((_, status),) = state.handle("c", AskStatus())
    assert status.jobs == (("c/1", "running for 1000000 s; worker 1 computes"),)


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
    events = {"cancelled", "set aside", "client lost", "timed out"} | {
        prefix + e for prefix in ("", "last ") for e in ("part finished", "part failed", "worker lost")
    }
    both = set(itertools.product(("running", "stopping"), events))
    while_saving = events - {"timed out", "part finished", "last part finished"}
    saving = set(itertools.product(("saving", "late"), while_saving)) | {("saving", "waited for too long")}
    assert set(JOB_STEPS) == both | saving


def test_a_worker_that_was_told_to_stop_and_says_nothing_is_held_up():
    state = master(2)
    state.tick(100.0)
    submit(state, world=2)
    state.handle("c", Cancel("c/1"))
    for seconds in (0.5, 3.0, SILENT_S - 1.0, SILENT_S + 1.0):
        state.handle("w0", Here())
        state.tick(100.0 + seconds)
        assert state.held_up() == ([] if seconds < SILENT_S else ["w1"])


def test_a_worker_that_is_told_to_stop_before_the_clock_was_looked_at_has_as_long():
    """The clock does not begin at zero."""
    state = master(1, now_s=5000.0)
    submit(state, world=1)
    state.handle("c", Cancel("c/1"))
    state.tick(5000.25)
    assert state.held_up() == []
    state.tick(5001.0 + SILENT_S)
    assert state.held_up() == ["w0"]


def test_what_was_under_way_when_a_worker_was_told_to_stop_is_no_answer():
    state = master(1)
    state.tick(100.0)
    submit(state, world=1)
    state.handle("c", Cancel("c/1"))
    state.handle("w0", Here())
    state.tick(101.0 + SILENT_S)
    assert state.held_up() == ["w0"]


def test_a_silent_worker_that_nobody_told_to_stop_is_left_alone():
    state = master(2)
    submit(state, world=2)
    state.tick(10 * SILENT_S)
    assert state.held_up() == []


def observed(instructions):
    return {m.observed for _, m in sent(instructions, RunJob)}


def test_workers_tell_what_somebody_wants_to_know():
    state = master(2)
    assert observed(submit(state, "c/1", world=2)) == {""}
    assert observed(submit(state, "c/2", world=2, observed=True)) == {"all"}
    state.watched = True
    assert observed(submit(state, "c/3", world=2)) == {"tasks"}
    assert observed(submit(state, "c/4", world=2, observed=True)) == {"all"}


def test_what_happens_is_told_to_those_who_asked():
    state = master(2, clients=("c", "d"))
    submit(state, "c/1", world=2, observed=True)
    submit(state, "d/1", world=2)
    events = (Event("stage", "add", 1, 2, 3, "c/1"),)
    ((to, told),) = state.handle("w1", Happened("c/1", events))
    assert (to, told) == ("c", Happened("c/1", events, "worker 1 (label 1)"))
    assert state.handle("w1", Happened("d/1", events)) == []
    assert state.handle("w1", Happened("c/9", events)) == []
    with pytest.raises(ValueError, match="a client may not say Happened"):
        state.handle("c", Happened("c/1", events))
