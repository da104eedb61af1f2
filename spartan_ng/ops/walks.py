"""Streams whose numbers take no fixed number of steps of the generator each, drawn in their order.

Nobody can jump to such a number: a generator walks there. What it was like at some places on the way is kept,
few enough to be small, so that a part which is asked for again begins at the last such place before it, and
the state behind all numbers is known as soon as somebody has been there. Each process walks by itself.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.ops.narrow import Narrow, is_narrow
from spartan_ng.system.processes import after_fork

PIECE = 1 << 16
"""Numbers that are drawn at a time, at most, on the way to others."""
_PLACES = 128
"""Places of a walk whose states are kept, of up to 3 kB each, and"""
_WALKS = 16
"""walks that a process keeps, the last ones that were asked for something."""
_CURSORS = 8
"""Generators of a walk that wait where somebody has stopped drawing: one for each thread that goes on."""

Draws = Callable[[int], np.ndarray[Any, Any]]


class Stream(Struct, frozen=True):
    """Numbers of one of NumPy's generators, from a state on.

    Parameters
    ----------
    bits : the name of NumPy's class of bit generators
    is_legacy : whether a `RandomState` draws them
    state : of the generator before the first, `frozen`
    method : of the generator
    given : its arguments in order and by name, but for the size, `frozen`
    inner : the last lengths of the size that it is asked for, `()` where the numbers are independent
    unit : how many elements each draw gives
    """

    bits: str
    is_legacy: bool
    state: Any
    method: str
    given: Any
    inner: tuple[int, ...] = ()
    unit: int = 1

    @property
    def key(self) -> tuple[Any, ...]:
        """The same as plain values, which can travel."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)


def frozen(value: Any) -> Any:
    """Dictionaries, tuples, arrays and what is in them as tuples that never change."""
    if isinstance(value, dict):
        return "dict", tuple((name, frozen(one)) for name, one in value.items())
    if isinstance(value, tuple | list):
        return "tuple", tuple(map(frozen, value))
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        array = np.ascontiguousarray(value)
        return "array", array.dtype.str, np.shape(value), array.tobytes()
    return value


def thawed(value: Any) -> Any:
    """What was frozen."""
    if not isinstance(value, tuple):
        return value
    kind, *rest = value
    if kind == "dict":
        return {name: thawed(one) for name, one in rest[0]}
    if kind == "tuple":
        return tuple(map(thawed, rest[0]))
    dtype, shape, found = rest
    return np.frombuffer(found, dtype).reshape(shape)


def state_of(generator: Any) -> Any:
    """What one of NumPy's generators has to be set to in order to draw the same."""
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.bit_generator.state


def set_state(generator: Any, state: Any) -> None:
    """Have a generator draw what another one, of the same kind, did in that state."""
    if isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


class _Cursor:
    """A generator on its way through a stream."""

    def __init__(self, stream: Stream, state: Any) -> None:
        bits = getattr(np.random, stream.bits)(0)
        self._generator: Any = (np.random.RandomState if stream.is_legacy else np.random.Generator)(bits)
        args, named = thawed(stream.given)
        method = getattr(self._generator, stream.method)
        self._draws: Draws = lambda n: method(*args, size=(n, *stream.inner), **named)
        self._narrow = Narrow(method, *args, **named) if is_narrow(stream.method, named) else None
        behind, left = state
        set_state(self._generator, behind)
        if self._narrow is not None and left is not None:
            self._narrow.left = left

    def draw(self, n: int) -> np.ndarray[Any, Any]:
        """The next ones, in one line."""
        return (self._draws if self._narrow is None else self._narrow.draw)(n).reshape(-1)

    @property
    def state(self) -> Any:
        """Where it is: the generator's state, and what it has drawn and not used."""
        return state_of(self._generator), None if self._narrow is None else self._narrow.left


class Passage:
    """The way of one process through a stream; threads may ask at one time."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._unit = stream.unit
        self._lock = threading.Lock()
        self._places = [0]
        self._states: dict[int, Any] = {0: (thawed(stream.state), None)}
        self._gap = PIECE
        self._cursors: OrderedDict[int, _Cursor] = OrderedDict()
        self._turns = threading.Condition()
        self._waiting: list[int] = []
        self._is_taken = False

    @contextmanager
    def turn(self, place: int) -> Iterator[None]:
        """Wait for who draws, and for who waits for earlier numbers."""
        with self._turns:
            insort(self._waiting, place)
            self._turns.wait_for(lambda: not self._is_taken and self._waiting[0] == place)
            self._waiting.remove(place)
            self._is_taken = True
        try:
            yield
        finally:
            with self._turns:
                self._is_taken = False
                self._turns.notify_all()

    def numbers(self, first: int, count: int) -> np.ndarray[Any, Any]:
        """So many numbers from a place on, in one line."""
        start, end = first // self._unit, -(-(first + count) // self._unit)
        place, cursor = self._before(start)
        self._go(cursor, place, start)
        drawn = list(self._steps(cursor, start, end))
        with self._lock:
            self._cursors[end] = cursor
            if len(self._cursors) > _CURSORS:
                self._cursors.popitem(last=False)
        every = drawn[0] if len(drawn) == 1 else np.concatenate(drawn)
        return every[first - start * self._unit :][:count]

    def end(self, count: int, report: Callable[[float, int], None] | None = None) -> Any:
        """The generator's state behind so many numbers, for `set_state`; `report` hears how far it has come,
        and of how many."""
        draws = count // self._unit
        place, cursor = self._before(draws)
        self._go(cursor, place, draws, report)
        self._note(draws, cursor, must=True)
        behind, _ = cursor.state
        return behind

    def knows(self, place: int) -> bool:
        """Whether the way to a number is short: somebody has been near before."""
        return place // self._unit <= self._places[-1] + self._gap

    def _before(self, draws: int) -> tuple[int, _Cursor]:
        """A generator that is there, or on the way, and where it is."""
        with self._lock:
            found = self._cursors.pop(draws, None)
            if found is not None:
                return draws, found
            place = self._places[bisect_right(self._places, draws) - 1]
            state = self._states[place]
            waiting = max((at for at in self._cursors if place < at < draws), default=None)
            if waiting is not None:  # who has stopped there may go on from there
                place, state = waiting, self._cursors[waiting].state
        return place, _Cursor(self.stream, state)

    def _go(
        self, cursor: _Cursor, place: int, to: int, report: Callable[[float, int], None] | None = None
    ) -> None:
        for _ in self._steps(cursor, place, to, report):
            pass

    def _steps(
        self, cursor: _Cursor, place: int, to: int, report: Callable[[float, int], None] | None = None
    ) -> Iterator[np.ndarray[Any, Any]]:
        """What is drawn from one place to another, a piece at a time."""
        most = max(PIECE // self._unit, 1)
        while place < to:
            n = min(most, to - place)
            yield cursor.draw(n)
            place += n
            self._note(place, cursor)
            if report is not None:
                report(place, to)

    def _note(self, place: int, cursor: _Cursor, must: bool = False) -> None:
        """Keep the state at a place, unless that is near to another one's."""
        with self._lock:
            before = self._places[bisect_right(self._places, place) - 1]
            if before == place or (place - before < self._gap and not must):
                return
            self._places.insert(bisect_right(self._places, place), place)
            self._states[place] = cursor.state
            if len(self._places) > _PLACES:
                self._thin()

    def _thin(self) -> None:
        """Keep fewer of them, farther apart; the farthest one stays."""
        self._gap *= 2
        kept = [0]
        for place in self._places[1:-1]:
            if place - kept[-1] >= self._gap:
                kept.append(place)
        kept.append(self._places[-1])
        self._states = {place: self._states[place] for place in kept}
        self._places = kept


_walks: OrderedDict[tuple[Any, ...], Passage] = OrderedDict()
_lock = threading.Lock()


def _begin_anew() -> None:
    """In a fork, where nobody goes on who held a lock."""
    global _lock
    _lock = threading.Lock()
    _walks.clear()


after_fork(_begin_anew)


def walk_of(key: tuple[Any, ...]) -> Passage:
    """The way of this process through the stream of a key."""
    with _lock:
        found = _walks.pop(key, None) or Passage(Stream(*key))
        _walks[key] = found
        if len(_walks) > _WALKS:
            _walks.popitem(last=False)
        return found
