"""Workers that leave: who waits for whom, event by event."""

import pytest

from spartan_ng.wire.messages import (
    PROTOCOL,
    Drain,
    Hello,
    JobDone,
    JobError,
    Leaving,
    Members,
    Moved,
    RunJob,
    Stop,
)
from tests.master.test_state import finish, master, sent, submit


def told(out, to):
    return dict(sent(out, Members))[to]


def test_a_worker_that_nobody_needs_goes_at_once():
    state = master(3, clients=())
    out = state.handle("w1", Leaving())
    assert sent(out, Stop) == [("w1", Stop())]
    assert state.handle("w1", Leaving()) == []
    assert [m.name for m in told(state.lost("w1"), "w0").lost] == ["w1"]


def test_it_has_no_rank_and_goes_when_all_clients_have_what_is_theirs():
    state = master(3, clients=("c", "d"))
    out = state.handle("w0", Leaving())
    news = told(out, "c")
    assert [m.name for m in news.members] == ["w2", "w1"]
    assert [m.name for m in news.leaving] == ["w0"]
    assert not sent(out, Stop)
    assert not sent(state.handle("c", Moved(("w0",))), Stop)
    assert sent(state.handle("d", Moved(("w0",))), Stop) == [("w0", Stop())]
    assert state.handle("c", Moved(("w0",))) == []
    gone = told(state.lost("w0"), "c")
    assert [m.name for m in gone.members] == ["w2", "w1"]
    assert gone.leaving == ()


def test_a_client_that_goes_is_not_waited_for():
    state = master(2, clients=("c",))
    state.handle("w0", Leaving())
    assert sent(state.lost("c"), Stop) == [("w0", Stop())]


def test_a_job_is_finished_first():
    state = master(2)
    submit(state, world=2)
    state.handle("w1", Leaving())
    assert not sent(state.handle("c", Moved(("w1",))), Stop)
    assert not sent(finish(state, "w1"), Stop)
    assert not sent(state.handle("c", Moved(("w1",))), Stop)  # w0 may still read w1's tiles
    out = finish(state, "w0")
    assert sent(out, JobDone)
    assert sent(out, Stop) == [("w1", Stop())]
    next_job = submit(state, "c/2", world=1)
    assert [to for to, _ in sent(next_job, RunJob)] == ["w0"]


def test_a_worker_that_dies_while_it_leaves_fails_its_jobs():
    state = master(2)
    submit(state, world=2)
    state.handle("w1", Leaving())
    assert told(state.lost("w1"), "c").leaving == ()
    assert "died while the job ran" in str(state.handle("w0", JobError("c/1", "JobCancelled", "")))


def test_an_admin_has_workers_leave():
    state = master(2, clients=())
    state.greet("a", "admin", Hello(PROTOCOL, "admin"))
    assert state.handle("a", Drain("nobody")) == []
    assert [m.name for m in told(state.handle("a", Drain("w0")), "a").leaving] == ["w0"]
    assert sent(state.handle("a", Moved(("w0",))), Stop) == [("w0", Stop())]
    with pytest.raises(ValueError, match="may not say Drain"):
        master().handle("c", Drain("w0"))


def test_whoever_was_told_to_go_is_not_mourned():
    state = master(3, clients=("c",))
    assert not state.is_let_go("w1")
    state.handle("w1", Leaving())
    assert not state.is_let_go("w1"), "what it has is needed yet"
    state.handle("c", Moved(("w1",)))
    assert state.is_let_go("w1")
    assert not state.is_let_go("w2")
    assert not state.is_let_go("c")
