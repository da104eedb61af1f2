"""A master that follows another: who keeps what, event by event."""

import pytest

from spartan_ng.master.state import MasterState
from spartan_ng.master.succession import OWNERS_S, RETURN_S
from spartan_ng.wire.codec import Blob, encode
from spartan_ng.wire.messages import (
    FROM_STRANGER,
    FROM_WORKER,
    PROTOCOL,
    Back,
    DropOwner,
    Hello,
    Here,
    Holds,
    JobError,
    JobFailed,
    Members,
    Retain,
    RunJob,
    Submit,
    Welcome,
)


def former(workers=3):
    """What a master's workers know when it dies."""
    state = MasterState(0.0)
    for i in range(workers):
        state.greet(f"w{i}", "worker", Hello(PROTOCOL, "worker", label=f"label {i}"))
    return state.members()


def sent(instructions, kind):
    return [(to, m) for to, m in instructions if isinstance(m, kind)]


def come(state, name, known, owners=()):
    """A worker comes back; what is said when it has told all."""
    welcome = dict(sent(state.greet(name, "worker", Hello(PROTOCOL, "worker", epoch=known.epoch)), Welcome))
    assert welcome[name].keeps
    return state.handle(name, Back(known, owners))


def greet(state, name, epoch):
    return state.greet(name, "client", Hello(PROTOCOL, "client", epoch=epoch))


@pytest.fixture
def known():
    return former()


@pytest.fixture
def state():
    return MasterState(0.0)


def names(members):
    return [m.name for m in members.members]


def test_those_who_come_back_keep_their_ranks_and_when_they_joined(state, known):
    assert not sent(come(state, "w2", known), Members)
    assert sent(greet(state, "c", known.epoch), Welcome) == [("c", Welcome(PROTOCOL, keeps=True))]
    assert not sent(come(state, "w0", known), Members)
    told = dict(sent(come(state, "w1", known), Members))
    assert set(told) == {"w0", "w1", "w2", "c"}
    assert told["c"].members == known.members
    assert told["c"].epoch > known.epoch
    assert told["c"].lost == ()


def test_nothing_runs_before_all_are_there(state, known):
    come(state, "w0", known)
    out = greet(state, "c", known.epoch)
    assert not sent(out, Members)
    job = Submit("c/1", "k", known.epoch, 3, 3, (), (("c", 5),), False, False, plan=Blob((b"plan",)))
    assert sent(state.handle("c", job), JobFailed)[0][1].kind == "WorkersChanged"


def test_who_does_not_come_in_time_is_lost(state, known):
    come(state, "w2", known)
    greet(state, "c", known.epoch)
    come(state, "w0", known)
    assert not state.tick(RETURN_S / 2)
    told = dict(sent(state.tick(RETURN_S), Members))["c"]
    assert names(told) == ["w0", "w2"]
    assert [m.name for m in told.lost] == ["w1"]
    late = state.greet("w1", "worker", Hello(PROTOCOL, "worker", epoch=known.epoch))
    assert dict(sent(late, Welcome))["w1"] == Welcome(PROTOCOL, keeps=False)
    again = dict(sent(state.handle("w1", Back()), Members))["c"]
    assert names(again) == ["w0", "w2", "w1"]
    assert again.members[2].since == again.epoch


def test_the_latest_list_says_who_had_been_given_up(state, known):
    later = Members(known.epoch + 1, (known.members[0], known.members[2]))
    assert not sent(come(state, "w1", known), Members)
    come(state, "w0", known)
    out = come(state, "w2", later)
    told = dict(sent(out, Members))
    assert set(told) == {"w0", "w2"}
    assert names(told["w0"]) == ["w0", "w2"]
    assert sent(out, Welcome) == [("w1", Welcome(PROTOCOL, keeps=False))]
    assert names(dict(sent(state.handle("w1", Back()), Members))["w0"]) == ["w0", "w2", "w1"]


def test_new_workers_join_after_those_who_were_there(state, known):
    come(state, "w0", known)
    assert not sent(state.greet("new", "worker", Hello(PROTOCOL, "worker")), Members)
    come(state, "w1", known)
    told = dict(sent(come(state, "w2", known), Members))
    assert names(told["new"]) == ["w0", "w1", "w2", "new"]
    assert told["new"].members[3].since == told["new"].epoch


def test_a_new_worker_may_be_there_before_anybody_who_comes_back(state, known):
    state.greet("new", "worker", Hello(PROTOCOL, "worker"))
    for name in ("w0", "w1"):
        come(state, name, known)
    told = dict(sent(come(state, "w2", known), Members))
    assert names(told["new"]) == ["w0", "w1", "w2", "new"]


def test_who_leaves_again_is_waited_for_no_longer_than_others(state, known):
    come(state, "w0", known)
    come(state, "w1", known)
    assert state.lost("w1") == []
    assert not sent(come(state, "w2", known), Members)
    assert names(dict(sent(state.tick(RETURN_S), Members))["w0"]) == ["w0", "w2"]


def test_workers_drop_what_their_clients_have_let_go_of_meanwhile(state, known):
    come(state, "w0", known, ("c",))
    greet(state, "c", known.epoch)
    state.handle("c", Holds((3, 4), 7, 2))
    come(state, "w1", known)
    out = come(state, "w2", known)
    retained = [to for to, m in out if m == Retain("c", Holds((3, 4), 7, 2))]
    assert sorted(retained) == ["w0", "w1", "w2"]
    kinds = [type(m) for _, m in out]
    assert max(i for i, k in enumerate(kinds) if k is Retain) < kinds.index(Members)


def test_clients_that_come_late_still_have_what_is_theirs(state, known):
    for name in ("w0", "w1", "w2"):
        come(state, name, known, ("c", "other"))
    assert sent(greet(state, "c", known.epoch), Welcome) == [("c", Welcome(PROTOCOL, keeps=True))]
    out = state.handle("c", Holds((1,), 1, 0))
    assert sorted(to for to, _ in sent(out, Retain)) == ["w0", "w1", "w2"]
    gone = sent(state.tick(OWNERS_S), DropOwner)
    assert sorted(gone) == [(w, DropOwner("other")) for w in ("w0", "w1", "w2")]
    assert sent(greet(state, "other", known.epoch), Welcome) == [("other", Welcome(PROTOCOL, keeps=False))]


def test_a_living_master_keeps_nothing_of_those_whom_it_has_given_up():
    state = MasterState(0.0)
    state.greet("w0", "worker", Hello(PROTOCOL, "worker"))
    greet(state, "c", 0)
    epoch = state.members().epoch
    assert sent(state.lost("c"), DropOwner)
    assert sent(greet(state, "c", epoch), Welcome) == [("c", Welcome(PROTOCOL, keeps=False))]
    state.lost("w0")
    out = state.greet("w0", "worker", Hello(PROTOCOL, "worker", epoch=epoch))
    assert sent(out, Welcome) == [("w0", Welcome(PROTOCOL, keeps=False))]
    assert not sent(out, Members)
    assert names(dict(sent(state.handle("w0", Back()), Members))["c"]) == ["w0"]


def test_a_third_master_follows_the_second(known):
    second, third = MasterState(0.0), MasterState(0.0)
    for name in ("w0", "w1"):
        come(second, name, known)
    told = dict(sent(come(second, "w2", known), Members))["w0"]
    for name in ("w0", "w1"):
        come(third, name, told)
    again = dict(sent(come(third, "w2", told), Members))["w0"]
    assert again.members == known.members
    assert again.epoch > told.epoch


def test_what_workers_had_to_do_for_the_former_master_is_not_heard(state, known):
    state.greet("w0", "worker", Hello(PROTOCOL, "worker", epoch=known.epoch))
    assert state.handle("w0", JobError("c/1", "JobCancelled", "")) == []
    assert state.handle("w0", Here()) == []
    with pytest.raises(ValueError, match="may not say Holds"):
        state.handle("w0", Holds((), 0, 0))
    state.handle("w0", Back(known))
    with pytest.raises(ValueError, match="said before"):
        state.handle("w0", Back(known))


def test_jobs_are_planned_again_for_the_new_epoch(state, known):
    for name in ("w0", "w1"):
        come(state, name, known)
    greet(state, "c", known.epoch)
    told = dict(sent(come(state, "w2", known), Members))["c"]
    job = Submit("c/9", "k", told.epoch, 3, 3, (), (("c", 5),), False, False, plan=Blob((b"plan",)))
    assert [to for to, _ in sent(state.handle("c", job), RunJob)] == ["w0", "w1", "w2"]


def test_a_clients_word_stops_no_master_that_has_workers():
    state = MasterState(0.0)
    state.greet("w0", "worker", Hello(PROTOCOL, "worker"))
    out = greet(state, "c", 1 << 60)
    assert sent(out, Welcome) == [("c", Welcome(PROTOCOL, keeps=False))]
    assert names(dict(sent(out, Members))["c"]) == ["w0"]


@pytest.mark.parametrize("epoch", [-1, (1 << 62) + 1, 1 << 64])
def test_there_is_a_later_epoch_than_any(epoch):
    with pytest.raises((ValueError, OverflowError)):
        FROM_STRANGER(encode(Hello(PROTOCOL, "client", epoch=epoch)))
    with pytest.raises((ValueError, OverflowError)):
        FROM_WORKER(encode(Back(Members(epoch, ()))))


def test_a_list_with_a_worker_twice_is_refused_and_changes_nothing(state, known):
    state.greet("w0", "worker", Hello(PROTOCOL, "worker", epoch=known.epoch))
    with pytest.raises(ValueError, match="two ranks"):
        state.handle("w0", Back(Members(known.epoch, known.members + known.members)))
    assert state.role("w0") == "coming worker"
    state.handle("w0", Back(known))
    assert names(dict(sent(state.tick(RETURN_S), Members))["w0"]) == ["w0"]
