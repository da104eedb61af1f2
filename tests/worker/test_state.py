"""A worker's decisions about jobs, event by event, without a socket."""

from spartan_ng.wire.codec import NOTHING, Blob
from spartan_ng.wire.messages import (
    CancelJob,
    Discard,
    DropOwner,
    JobError,
    JobFinished,
    Member,
    Members,
    RunJob,
)
from spartan_ng.worker.scheduling.state import (
    Drop,
    DropPlans,
    StartPart,
    StopPart,
    Tell,
    TellLeft,
    WorkerState,
)


def worker():
    state = WorkerState("w1")
    state.handle(Members(1, tuple(Member(f"w{i}", "", "", "", 1, 0) for i in range(3))))
    return state


def run(job="c/1", inputs=(), outputs=(("c", 9),), **fields):
    values = {"inline": False, "progress": False, "released": (), "retired": (), **fields}
    return RunJob(job, "k", 1, 3, inputs, outputs, plan=Blob((b"x",)), **values)


def test_a_part_starts_with_its_rank_and_peers():
    (start,) = worker().handle(run())
    assert isinstance(start, StartPart)
    assert (start.rank, start.names, start.client) == (1, ("w0", "w1", "w2"), "c")


def test_what_is_released_goes_before_the_new_job_needs_room():
    first, second = worker().handle(run(released=(("c", 1),), retired=("c/0",)))
    assert first == Drop((("c", 1),), ("c/0",))
    assert isinstance(second, StartPart)


def test_a_part_that_ends_well():
    state = worker()
    state.handle(run())
    assert state.finished("c/1", ((1.0, 2, 0, 0),), (0,), NOTHING) == [
        Tell(JobFinished("c/1", ((1.0, 2, 0, 0),), (0,), NOTHING))
    ]


def test_a_part_that_fails_leaves_nothing():
    state = worker()
    state.handle(run())
    drop, tell = state.failed("c/1", "ValueError", "no")
    assert drop == Drop((("c", 9),), ("c/1",))
    assert tell == Tell(JobError("c/1", "ValueError", "no"))


def test_a_cancelled_part_stops_and_leaves_nothing_even_if_it_was_done():
    state = worker()
    state.handle(run(inputs=(("c", 1),)))
    (stop,) = state.handle(CancelJob("c/1"))
    assert stop == StopPart("c/1", (("c", 1), ("c", 9)))
    drop, tell = state.finished("c/1", (), (), NOTHING)
    assert drop == Drop((("c", 9),), ("c/1",))
    assert tell.message.kind == "JobCancelled"


def test_a_part_that_is_stopped_for_a_lost_worker_leaves_its_tiles():
    state = worker()
    state.handle(run())
    (stop,) = state.handle(CancelJob("c/1", (("c", 9),)))
    assert isinstance(stop, StopPart)
    assert state.failed("c/1", "JobCancelled", "no") == [TellLeft("c/1", (("c", 9),), "JobCancelled", "no")]


def test_a_part_that_had_ended_when_a_worker_was_lost_tells_what_is_left_of_it():
    (told,) = worker().handle(CancelJob("c/1", (("c", 9),)))
    assert (told.job, told.results) == ("c/1", (("c", 9),))


def test_a_part_leaves_nothing_to_a_client_that_waits_no_longer():
    state = worker()
    state.handle(run())
    state.handle(CancelJob("c/1", (("c", 9),)))
    state.handle(Discard((), ("c/1",)))
    drop, _ = state.finished("c/1", (), (), NOTHING)
    assert drop == Drop((("c", 9),), ("c/1",))


def test_reads_that_another_job_waits_for_are_not_stopped():
    state = worker()
    state.handle(run("c/1", inputs=(("c", 1), ("c", 2))))
    state.handle(run("c/2", inputs=(("c", 1),), outputs=()))
    (stop,) = state.handle(CancelJob("c/1"))
    assert stop.keys == (("c", 2), ("c", 9))


def test_cancelling_what_has_ended_does_nothing():
    state = worker()
    state.handle(run())
    state.finished("c/1", (), (), NOTHING)
    assert state.handle(CancelJob("c/1")) == []


def test_a_client_that_is_gone():
    assert worker().handle(DropOwner("c")) == [Drop((), ("c",)), DropPlans("c", None)]


def test_all_parts_stop_when_the_master_is_gone():
    state = worker()
    state.handle(run("c/1"))
    state.handle(run("d/1"))
    assert {i.job for i in state.master_lost()} == {"c/1", "d/1"}
