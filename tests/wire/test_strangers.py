"""How often strangers may come, from one host and from all; and that it costs nothing to prove who one is."""

from dataclasses import dataclass
from typing import Any

import pytest

from spartan_ng.rates import Rate
from spartan_ng.wire import strangers as room
from spartan_ng.wire.strangers import Strangers


@dataclass(eq=False)
class Coming:
    """A connection that ends when it is cut."""

    host: str | None
    received_bytes: int = 0
    is_cut: bool = False

    def cut(self):
        self.is_cut = True


class Crowd:
    """Strangers by a clock that stands still, unless it is told to go on."""

    def __init__(self):
        self.now = 0.0
        self.here: list[Coming] = []
        self.known: set[Coming] = set()
        fakes: Any = (lambda: self.here, lambda: self.known)
        self.strangers = Strangers(lambda: self.now, *fakes)

    def come(self, host):
        connection = Coming(host)
        self.here.append(connection)
        self.strangers.come()
        self.here = [c for c in self.here if not c.is_cut]
        return not connection.is_cut

    def leave(self):
        self.here = []


@pytest.fixture
def crowd(monkeypatch):
    monkeypatch.setattr(room, "OF_A_HOST", Rate(5, 2.0))
    monkeypatch.setattr(room, "OF_ALL_HOSTS", Rate(12, 4.0))
    return Crowd()


def test_a_host_that_connects_too_often_waits(crowd, caplog):
    assert [crowd.come("a") for _ in range(7)] == [True] * 5 + [False] * 2
    assert crowd.come("b")
    assert caplog.text.count("a connects too often") == 1
    crowd.now = 1.0
    assert [crowd.come("a") for _ in range(3)] == [True, True, False]
    crowd.now = 1000.0
    crowd.leave()
    assert [crowd.come("a") for _ in range(6)] == [True] * 5 + [False]


def test_all_hosts_together_wait_too(crowd):
    assert [crowd.come(f"{n}") for n in range(14)] == [True] * 12 + [False] * 2
    crowd.now = 0.5
    assert [crowd.come(f"{n}") for n in range(14, 17)] == [True, True, False]


def test_who_greets_may_come_as_often_as_they_like(crowd):
    for _ in range(50):
        assert crowd.come("a")
        crowd.strangers.greeted(crowd.here[-1])
    assert [crowd.come("a") for _ in range(6)] == [True] * 5 + [False]


def test_few_hosts_are_remembered(crowd, monkeypatch):
    monkeypatch.setattr("spartan_ng.rates._REMEMBERED", 3)
    monkeypatch.setattr(room, "_TEXTS", 3)
    for n in range(100):
        crowd.now += 1.0
        crowd.come(f"{n}")
    assert len(crowd.strangers._hosts) == 3
    assert len(crowd.strangers._said) <= 3


def test_the_oldest_strangers_make_room(crowd, monkeypatch):
    monkeypatch.setattr(room, "MOST", 3)
    for _ in range(3):
        crowd.come("a")
        crowd.known.add(crowd.here[-1])
    crowd.now = 100.0
    first = [Coming("b") for _ in range(3)]
    crowd.here += first
    assert crowd.come("c")
    assert [c.is_cut for c in first] == [True, False, False]
    assert not any(c.is_cut for c in crowd.known)


def test_who_sends_much_and_says_nothing_is_cut_off(crowd, caplog):
    for host in "abc":
        crowd.come(host)
    known, loud, quiet = crowd.here
    crowd.known.add(known)
    known.received_bytes, loud.received_bytes = 1 << 40, room.MOST_BYTES + 1
    quiet.received_bytes = room.MOST_BYTES
    crowd.strangers.look()
    assert [c.is_cut for c in (known, loud, quiet)] == [False, True, False]
    assert "b sends much" in caplog.text


def test_who_is_refused_is_told_once(crowd):
    crowd.come("a")
    crowd.come("b")
    one, other = crowd.here
    assert crowd.strangers.may_be_answered(one)
    assert crowd.strangers.may_be_answered(other)
    assert not crowd.strangers.may_be_answered(one)
    crowd.leave()
    crowd.come("c")
    assert crowd.strangers.may_be_answered(crowd.here[-1])
    assert len(crowd.strangers._refused) == 1
