"""What a part knows of a sorted line: few of its elements, sorted, and no more however long the part is.

States of parts combine to that of the line; all have as many elements as the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

State = tuple[Any, ...]
_SAMPLED = 32
"""So many times more elements than may be distinct are looked at first."""
_BEHIND = np.iinfo(np.intp).max
"""An index behind all others."""


@dataclass(frozen=True, slots=True)
class Ends:
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

    def value(self, state: State) -> Any:
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


@dataclass(frozen=True, slots=True)
class Distinct:
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
        return self._filled(few if len(few) >= self.count else np.unique(x))

    def combine(self, a: State, b: State) -> State:
        """The state of two parts together."""
        return self._filled(np.unique(np.concatenate([a[0], b[0]])))

    def value(self, state: State) -> Any:
        """The elements."""
        return state[0]

    def _filled(self, found: Any) -> State:
        found = found[: self.count]
        return (np.concatenate([found, np.repeat(found[-1:], self.count - len(found))]),)


LineState = Ends | Distinct
LINE_STATES: dict[str, Callable[..., LineState]] = {"ends": Ends, "distinct": Distinct}
"""Those of the joins that are reduced to such states, by the joins' names."""
