"""Integers of one or two bytes, and truth values, drawn some at a time.

NumPy cuts them out of words of 32 bits, and drops what a call leaves of its last word: calls for parts would
drop some at each. So words are drawn here, and cut as NumPy does (`random_bounded_uint8_fill` and its like in
its `distributions.c`; Lemire, Fast Random Integer Generation in an Interval, TOMACS '19), and what is left of
the last one is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_METHODS = {"integers": False, "randint": True}
"""Whether what is too large under a mask is dropped, as in the legacy generator."""
_WORD = np.dtype("<u4")


Draws = Callable[[int], np.ndarray[Any, Any]]


def is_narrow(method: str, named: dict[str, Any]) -> bool:
    """Whether a method of NumPy's generators draws such integers."""
    return method in _METHODS and np.dtype(named.get("dtype", np.int64)).itemsize < _WORD.itemsize


class Narrow:
    """Draws integers from `low` to below `high` by `method` of one of NumPy's generators."""

    def __init__(self, method: Callable[..., Any], low: int, high: int, dtype: Any) -> None:
        self._words: Draws = lambda n: np.asarray(method(0, 1 << 32, n, np.uint32), _WORD)
        self._kind = np.dtype(dtype)
        self._first, self._most = int(low), int(high) - 1 - int(low)
        self._is_masked = _METHODS[method.__name__]
        self._raw = np.dtype("u1" if self._kind.kind == "b" else f"<u{self._kind.itemsize}")
        self.left = np.empty(0, self._raw)
        """What has been cut out of the last word, and not been looked at."""

    def draw(self, n: int) -> np.ndarray[Any, Any]:
        """The next ones."""
        out = np.empty(n, self._raw)
        done = 0 if self._most else n
        while done < n:
            cut = self.left if len(self.left) else self._cut(n - done)
            values, are_taken = self._chosen(cut)
            places = np.flatnonzero(are_taken)[: n - done]
            out[done : done + len(places)] = values[places]
            done += len(places)
            self.left = cut[places[-1] + 1 :].copy() if done == n else cut[:0]
        if not self._most:
            out[:] = 0
        if self._kind.kind == "b":
            return out.astype(bool) if self._most else np.full(n, bool(self._first))
        found: np.ndarray[Any, Any] = out + np.array(self._first).astype(self._raw)
        return found.view(self._kind)

    def _cut(self, n: int) -> np.ndarray[Any, Any]:
        """What as many words as are needed for so many, at the least, are cut into: the low bits first."""
        if self._kind.kind == "b":
            return np.unpackbits(self._words(-(-n // 32)).view(np.uint8), bitorder="little")
        return self._words(-(-n * self._kind.itemsize // 4)).view(self._raw)

    def _chosen(self, cut: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The numbers that are made of what was cut, and which of them are taken."""
        bits = 8 * self._raw.itemsize
        top = (1 << bits) - 1
        if self._kind.kind == "b" or self._most == top:
            return cut, np.ones(len(cut), bool)
        if self._is_masked:
            found = cut & self._raw.type((1 << self._most.bit_length()) - 1)
            return found, found <= self._most
        wide = cut.astype(np.uint32) * np.uint32(self._most + 1)
        least = (top - self._most) % (self._most + 1)
        return (wide >> np.uint32(bits)).astype(self._raw), (wide & np.uint32(top)) >= least
