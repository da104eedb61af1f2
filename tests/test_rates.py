"""Token buckets, by a clock that stands still unless it is told to go on."""

from spartan_ng import rates as room
from spartan_ng.rates import Rate, Tries, TriesOfEach


def test_a_bucket_fills_with_the_time_and_never_overflows():
    tries = Tries(Rate(3, 2.0), 10.0)
    assert [tries.take(10.0) for _ in range(4)] == [True] * 3 + [False]
    assert [tries.take(11.0) for _ in range(3)] == [True] * 2 + [False]
    assert not tries.take(11.4)
    assert tries.take(11.5)
    assert [tries.take(1000.0) for _ in range(4)] == [True] * 3 + [False]


def test_what_was_of_use_comes_back():
    tries = TriesOfEach(Rate(2, 0.0))
    for _ in range(50):
        assert tries.take("a", 0.0)
        tries.give_back("a")
    assert [tries.take("a", 0.0) for _ in range(3)] == [True, True, False]
    assert tries.take("b", 0.0)
    tries.give_back("nobody")


def test_who_has_come_least_lately_is_forgotten(monkeypatch):
    monkeypatch.setattr(room, "_REMEMBERED", 2)
    tries = TriesOfEach(Rate(1, 0.0))
    assert tries.take("a", 0.0)
    assert tries.take("b", 0.0)
    assert not tries.take("a", 0.0)
    assert tries.take("c", 0.0)
    assert len(tries) == 2
    assert not tries.take("a", 0.0)
    assert tries.take("b", 0.0)
