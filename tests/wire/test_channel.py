"""Channels over a connection that breaks, delays and loses: every message arrives once and in order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.wire.channel import Channel, has_header


class Pair:
    """Two ends and what is under way between them; the ends greet each other anew after every break."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ends = Channel(), Channel()
        self.under_way: tuple[list, list] = ([], [])
        """To each end."""
        self.said: tuple[list, list] = ([], [])
        self.heard: tuple[list, list] = ([], [])

    def say(self, end: int, text: bytes) -> None:
        self.said[end].append(text)
        self.under_way[1 - end].extend(self.ends[end].send([text]))

    def hear(self, end: int) -> None:
        """One end takes the next message; a gap is as good as a break."""
        frames = self.under_way[end].pop(0)
        assert has_header(frames)
        if not self.ends[end].is_open:
            return
        match self.ends[end].take(frames):
            case "new":
                self.heard[end].append(frames[1])
            case "gap":
                self.cut()

    def lose(self, end: int) -> None:
        """Some message on its way to an end is lost, and nobody says so."""
        self.under_way[end].pop(self.rng.randrange(len(self.under_way[end])))

    def cut(self) -> None:
        """The connection breaks: all that is under way is lost."""
        for end in self.ends:
            end.close()
        for way in self.under_way:
            way.clear()

    def greet(self) -> None:
        """The ends connect; what is under way from before is not heard."""
        self.cut()
        confirmed = [end.heard for end in self.ends]
        for i, end in enumerate(self.ends):
            self.under_way[1 - i].extend(end.open(confirmed[1 - i]))

    def settle(self) -> None:
        """Let everything arrive."""
        for _ in range(50):
            if not all(end.is_open for end in self.ends):
                self.greet()
            for i in (0, 1):
                self.under_way[1 - i].append(self.ends[i].note())
            for i in (0, 1):
                while self.under_way[i]:
                    self.hear(i)
        assert self.heard[0] == self.said[1]
        assert self.heard[1] == self.said[0]
        assert [end.unconfirmed for end in self.ends] == [0, 0]


@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(["say", "hear", "hear", "lose", "cut", "greet"]), max_size=200),
)
def test_what_is_said_is_heard_once_and_in_order(seed, events):
    pair = Pair(seed)
    for number, event in enumerate(events):
        end = pair.rng.randrange(2)
        if event == "say":
            pair.say(end, b"%d" % number)
        elif event in ("hear", "lose") and pair.under_way[end]:
            getattr(pair, event)(end)
        elif event in ("cut", "greet"):
            getattr(pair, event)()
    pair.settle()


def test_nothing_goes_out_before_the_greeting_and_everything_after_it():
    channel = Channel()
    assert channel.send([b"a"]) == []
    assert channel.send([b"b"]) == []
    assert [frames[1] for frames in channel.open(0)] == [b"a", b"b"]
    assert channel.unconfirmed == 2


def test_what_is_confirmed_is_not_kept():
    here, there = Channel(), Channel()
    here.open(0)
    there.open(0)
    for text in (b"a", b"b"):
        (frames,) = here.send([text])
        assert there.take(frames) == "new"
    (answer,) = there.send([b"c"])
    assert here.take(answer) == "new"
    assert here.unconfirmed == 0
    assert here.take(there.note()) == "old"


def test_large_messages_are_confirmed_at_once_and_small_ones_by_and_by():
    here, there = Channel(), Channel()
    here.open(0)
    there.open(0)
    (small,) = here.send([b"a"])
    there.take(small)
    assert [there.owes, there.is_due] == [True, False]
    (large,) = here.send([bytes(1 << 20)])
    there.take(large)
    assert [there.owes, there.is_due] == [True, True]
    there.note()
    assert [there.owes, there.is_due] == [False, False]


@pytest.mark.parametrize("frames", [[], [b""], [b"{}"], [b'{"k":["Welcome",1,""]}'[:17]]])
def test_greetings_are_no_part_of_a_channel(frames):
    assert not has_header(frames)
