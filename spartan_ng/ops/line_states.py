"""What a part knows of a sorted line: few of its elements, and no more however long the part is.

States of parts combine to that of the line. Where they are stored they have as many elements as the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

State = tuple[Any, ...]
Allocate = Callable[[tuple[int, ...], np.dtype[Any]], Any]
"""Memory for an array of some shape and dtype, where it is to be stored."""
_SAMPLED = 4
"""So many times more elements than may be distinct are looked at first."""
_STRIP = 1 << 16
"""Elements that are compared with one bound after the other: they stay in the cache."""
_COUNT = np.dtype(np.int64)
_ARRAY_BYTES = 1 << 20
"""Elements that were found are put together until an array of them has so many bytes."""
_BEHIND = np.iinfo(np.intp).max
"""An index behind all others."""


class Ends(Struct, frozen=True):
    """The first or last places of the sorted line, and for `argsort` which indices stand there.

    What one part has not among its own first places, no larger one has. Shorter parts are filled up with
    elements that stand behind (before) all others. Of equal elements those with lower indices come first, as
    in a stable sort.

    Parameters
    ----------
    function : "sort" or "argsort"
    count : places
    last : whether they are the last ones
    """

    function: str
    count: int
    last: bool

    def dtypes(self, x: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The dtypes of a state's arrays for elements of dtype `x`."""
        return (x, out) if self.has_indices else (out,)

    @property
    def has_indices(self) -> bool:
        """Whether a state has indices, too."""
        return self.function == "argsort"

    def state(self, x: Any, offset: int) -> State:
        """The state of a part that begins at index `offset`."""
        places = slice(-self.count, None) if self.last else slice(self.count)
        if not self.has_indices:
            return (self._filled(np.sort(self._split(x))[places], self._beyond(x.dtype)),)
        found = self._candidates(x)
        found = found[np.argsort(x[found], kind="stable")][places]
        return (
            self._filled(x[found], self._beyond(x.dtype)),
            self._filled(found + offset, -1 if self.last else _BEHIND),
        )

    def combine(self, a: State, b: State) -> State:
        """The state of two parts together."""
        values = np.concatenate([a[0], b[0]])
        places = slice(-self.count, None) if self.last else slice(self.count)
        if not self.has_indices:
            return (np.sort(values)[places],)
        indices = np.concatenate([a[1], b[1]])
        order = np.lexsort((indices, values))[places]
        return values[order], indices[order]

    def stored(self, state: State, allocate: Allocate = np.empty) -> State:
        """The state as arrays of the result's shape."""
        return state

    def value(self, state: State, allocate: Allocate = np.empty) -> Any:
        """What is asked for, from the state of the whole line."""
        return state[-1]

    def _split(self, x: Any) -> Any:
        """The elements that may be asked for, and as few others as come cheaply."""
        n = len(x)
        if n <= self.count:
            return x
        if self.last:
            return np.partition(x, n - self.count)[n - self.count :]
        return np.partition(x, self.count - 1)[: self.count]

    def _candidates(self, x: Any) -> Any:
        """The indices of elements that may be asked for: all that equal the one at the end, too."""
        if len(x) <= self.count:
            return np.arange(len(x))
        part = self._split(x)
        end = part[0] if self.last else part[-1]
        if end != end:  # NaN, which is behind all: the first places have all others
            return np.flatnonzero(x != x) if self.last else np.arange(len(x))
        return np.flatnonzero(~(x < end) if self.last else x <= end)

    def _filled(self, found: Any, with_what: Any) -> Any:
        """As many elements as there are places."""
        missing = np.full(self.count - len(found), with_what, found.dtype)
        return np.concatenate([missing, found] if self.last else [found, missing])

    def _beyond(self, dtype: np.dtype[Any]) -> Any:
        """What no element of a dtype stands behind, or before."""
        if dtype.kind == "f":
            return -np.inf if self.last else np.nan
        if dtype.kind == "b":
            return not self.last
        info = np.iinfo(dtype)
        return info.min if self.last else info.max


class Distinct(Struct, frozen=True):
    """The distinct elements, where they are fewer than `count`; else any `count` distinct ones.

    The greatest fills up what is missing. All NaN are one element.
    """

    count: int

    def dtypes(self, x: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The dtype of the state's array."""
        return (out,)

    def state(self, x: Any, offset: int) -> State:
        """The state of a part."""
        few = np.unique(x[: self.count * _SAMPLED])  # to find out early that there are many
        return self._filled(few if len(few) >= self.count else _distinct(x))

    def combine(self, a: State, b: State) -> State:
        """The state of two parts together."""
        return self._filled(np.unique(np.concatenate([a[0], b[0]])))

    def stored(self, state: State, allocate: Allocate = np.empty) -> State:
        """The state as arrays of the result's shape."""
        return state

    def value(self, state: State, allocate: Allocate = np.empty) -> Any:
        """The elements."""
        return state[0]

    def _filled(self, found: Any) -> State:
        found = found[: self.count]
        return (np.concatenate([found, np.repeat(found[-1:], self.count - len(found))]),)


_MARKED = 1 << 15
"""Elements that are marked at a time: NumPy makes indices of them, which may be eight times as wide."""


def _distinct(x: Any) -> Any:
    """The distinct elements: of integers that lie close together those that a table of all has marks for."""
    if x.dtype.kind in "iu" and len(x):
        low, high = x.min(), x.max()
        if int(high) - int(low) < len(x):
            marks = np.zeros(int(high) - int(low) + 1, bool)
            for at in range(0, len(x), _MARKED):
                part = x[at : at + _MARKED]
                marks[part - low if x.dtype.kind == "u" else np.subtract(part, low, dtype=np.intp)] = True
            return np.flatnonzero(marks).astype(x.dtype) + low
    return np.unique(x)


Bound = tuple[Any, bool]
"""A value, and whether the elements equal to it are below."""


class Between(Struct, frozen=True):
    """How many elements lie above each bound, how many are numbers, and the elements in some intervals.

    All of it stands in bytes: the counts, how many elements follow, and these, in any order. Where they are
    more than there is room for none follow, and their number is -1. A state that is not stored has the
    counts, and one array of elements after the other.

    Parameters
    ----------
    dtype : the elements', as NumPy spells it
    bounds : in order
    wanted : for the intervals before, between and behind them whether their elements are wanted; NaN never is
    most : elements that there is room for
    """

    dtype: str
    bounds: tuple[Bound, ...]
    wanted: tuple[bool, ...]
    most: int

    @property
    def nbytes(self) -> int:
        """Of the result."""
        return self.head_bytes + self.most * np.dtype(self.dtype).itemsize

    @property
    def head_bytes(self) -> int:
        """Of the counts, and of how many elements follow."""
        return _COUNT.itemsize * (len(self.bounds) + 2)

    def dtypes(self, x: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The dtype of a stored state."""
        return (out,)

    def state(self, x: Any, offset: int) -> State:
        """The state of a part."""
        x = x.ravel("K")
        counts = np.zeros(len(self.bounds) + 1, _COUNT)
        found = [self._of_strip(x[i : i + _STRIP], counts) for i in range(0, len(x), _STRIP)]
        return self.bounded(counts, found or [x[:0]])

    def combine(self, a: State, b: State) -> State:
        """The state of two parts together."""
        a, b = self._unpacked(a), self._unpacked(b)
        return self.bounded(a[0] + b[0], [*a[1:], *b[1:]])

    def stored(self, state: State, allocate: Allocate = np.empty) -> State:
        """The state as the bytes of the result."""
        if len(state) == 1:
            return state
        counts, *found = state
        out = allocate((self.nbytes,), np.dtype(np.uint8))
        size = sum(map(len, found))
        head = np.append(counts, size if size <= self.most else -1)
        out[: head.nbytes] = head.view(np.uint8)
        at = head.nbytes
        for part in found if size <= self.most else ():
            out[at : at + part.nbytes] = part.view(np.uint8)
            at += part.nbytes
        out[at:] = 0
        return (out,)

    def value(self, state: State, allocate: Allocate = np.empty) -> Any:
        """The bytes of the result."""
        return self.stored(state, allocate)[0]

    def opened(self, value: Any) -> tuple[Any, Any]:
        """The counts of a result, the last one of numbers, and the elements; None where they are too many."""
        head = value[: self.head_bytes].view(_COUNT)
        size = int(head[-1])
        if size < 0:
            return head[:-1], None
        return head[:-1], value[self.head_bytes : self.used_bytes(value)].view(self.dtype)

    def used_bytes(self, head: Any) -> int:
        """How many bytes of a result say something, by the first `head_bytes` of them."""
        size = int(head[: self.head_bytes].view(_COUNT)[-1])
        return self.head_bytes + max(size, 0) * np.dtype(self.dtype).itemsize

    def is_wanted(self, x: Any) -> Any:
        """Which elements are in wanted intervals."""
        mask = self._counted(x, np.zeros(len(self.bounds) + 1, _COUNT))
        return np.zeros(x.shape, bool) if mask is None else mask

    def bounded(self, counts: Any, found: list[Any]) -> State:
        """A state of counts and elements, with no more of these than one too many, which tells."""
        if sum(map(len, found)) > self.most:
            return counts, np.zeros(self.most + 1, self.dtype)
        return counts, *_together(found)

    def state_bytes(self, elements: int) -> int:
        """What the state of so many elements takes at most."""
        return self.head_bytes + min(elements, self.most + 1) * np.dtype(self.dtype).itemsize

    def _of_strip(self, x: Any, counts: Any) -> Any:
        """Add to the counts those of some elements; gives the wanted ones."""
        mask = self._counted(x, counts)
        return x[:0] if mask is None else x[mask]

    def _counted(self, x: Any, counts: Any) -> Any:
        """Add to the counts those of some elements; says which are wanted, None where none can be."""
        mask: Any = None
        if self.wanted[0]:
            mask = ~self._above(x, 0) & (x == x) if self.bounds else x == x
        for k in range(len(self.bounds)):
            above = self._above(x, k)
            counts[k] += np.count_nonzero(above)
            if self.wanted[k + 1] != (self.wanted[k] and k > 0):
                mask = above if mask is None else np.logical_xor(mask, above, out=mask)
        counts[-1] += np.count_nonzero(x == x) if x.dtype.kind == "f" else x.size
        return mask

    def _above(self, x: Any, k: int) -> Any:
        value, is_below = self.bounds[k]
        return (np.greater if is_below else np.greater_equal)(x, x.dtype.type(value))

    def _unpacked(self, state: State) -> State:
        if len(state) > 1:
            return state
        counts, found = self.opened(state[0])
        return counts, np.zeros(self.most + 1, self.dtype) if found is None else found


def _together(parts: list[Any]) -> list[Any]:
    """The same elements in few arrays: each is copied as often as a counter of so many parts has digits, and
    no more once an array is large."""
    found: list[Any] = []
    for part in parts:
        found.append(part)
        while len(found) > 1 and found[-2].nbytes <= min(2 * found[-1].nbytes, _ARRAY_BYTES):
            found[-2:] = [np.concatenate(found[-2:])]
    return found


LineState = Ends | Distinct | Between
LINE_STATES: dict[str, Callable[..., LineState]] = {"ends": Ends, "distinct": Distinct, "between": Between}
"""Those of the joins that are reduced to such states, by the joins' names."""
