"""NumPy's error state (`np.errstate`, `np.seterr`), read for next to nothing.

Every statement asks what it is, and it hardly ever changes. NumPy keeps it in a context variable, whose value
is replaced and never written to, so that the same object means the same state. The variable is the one that
`np.errstate` sets; where none can be told to be it, NumPy is asked each time.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, copy_context
from operator import itemgetter
from typing import Any

import numpy as np
from msgspec import Struct

_MAY_WAIT = frozenset({"ignore", "warn"})
"""What may be done later about an error, or not at all."""
_AS_IT_IS = nullcontext()


class Heard:
    """What NumPy has said of errors in any thread, each once: its own warnings would name our lines."""

    __slots__ = ("texts",)

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}


class _Ear(threading.local):
    """Whom NumPy tells what it logs: who listens in a thread. There is one, so that the state that has it be
    logged is one, too, and is made and read once."""

    heard: Heard | None = None

    def write(self, text: str) -> None:
        """What NumPy does with what it logs."""
        if self.heard is not None:
            self.heard.texts[said(text)] = None


_ear = _Ear()


def warn_hearer(text: str) -> None:
    """Warn of what is no floating-point error, by who listens in this thread."""
    if _ear.heard is not None:
        _ear.heard.texts[text] = None
    else:
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def said(logged: str) -> str:
    """What NumPy warns of, by what it logs instead."""
    return logged.removeprefix("Warning: ").rstrip()


class ErrorState(Struct, frozen=True):
    """What is done about each kind of floating-point error.

    Parameters
    ----------
    kinds : NumPy's words, as from `np.geterr`
    is_strict : whether some kind of error must be seen at once
    warns : whether some kind is warned of, and none must be seen at once
    tells : whether some kind is warned of, and NumPy calls nobody for another one
    ignored : the kinds that are ignored; none where that is underflow only, as by default
    """

    kinds: dict[str, Any]
    is_strict: bool
    warns: bool
    tells: bool
    ignored: frozenset[str]


def is_strict(kinds: Mapping[str, str]) -> bool:
    """Whether errors must be seen at once, by NumPy's words for what is done about each kind."""
    return not _MAY_WAIT.issuperset(kinds.values())


def _read() -> ErrorState:
    """The state as NumPy tells it; what is heard of is warned of."""
    kinds: dict[str, Any] = dict(np.geterr())
    if np.geterrcall() is _ear:
        kinds = {kind: "warn" if what == "log" else what for kind, what in kinds.items()}
    ignored = frozenset(kind for kind, what in kinds.items() if what == "ignore")
    if ignored == {"under"}:  # as by default
        ignored = frozenset()
    strict = is_strict(kinds)
    warns = "warn" in kinds.values()
    return ErrorState(
        kinds, strict, warns and not strict, warns and not {"call", "log"} & {*kinds.values()}, ignored
    )


def changed_variable(change: AbstractContextManager[object]) -> ContextVar[Any] | None:
    """The one context variable that is changed inside a `with` block, if it is one."""
    before = dict(copy_context().items())
    with change:
        after = copy_context()
    changed = [variable for variable, value in after.items() if before.get(variable) is not value]
    return changed[0] if len(changed) == 1 else None


variable = changed_variable(np.errstate(all="raise"))
"""What has the state, or None."""
_STATES = 8
"""States that are known at a time: that of the program, and those that are entered from there."""
_last: tuple[Any, ErrorState] = (object(), _read())
"""A value of the variable, and its state."""
_states: dict[int, tuple[Any, ErrorState]] = {}
"""The last values and their states, by address: they are kept alive, so that no other gets theirs."""


def error_state() -> ErrorState:
    """The state that is in force in this thread or task."""
    global _last
    if variable is None:
        return _read()
    value = variable.get(None)
    last = _last
    if value is not last[0]:
        known = _states.get(id(value))
        if known is None:
            known = (value, _read())
            if len(_states) >= _STATES:
                _states.clear()
            _states[id(value)] = known
        _last = last = known
    return last[1]


_action = itemgetter(0)
"""What a filter of warnings has done."""


def may_raise() -> bool:
    """Whether somebody may see an error before a statement has written its result: it is one of Python's,
    or a handler is called."""
    return error_state().is_strict or "error" in map(_action, warnings.filters)


def logged(kinds: dict[str, Any], to: Any) -> AbstractContextManager[object]:
    """`np.errstate` of these kinds, but that `to.write` is told of what would be warned of."""
    return np.errstate(call=to, **{kind: "log" if what == "warn" else what for kind, what in kinds.items()})


_hearing: dict[tuple[Any, ...], Any] = {}
"""By kinds, the variable's value under which who listens hears of what would be warned of."""


class _Hearing:
    """The error state of some kinds, whose warnings are heard."""

    __slots__ = ("_before", "_heard", "_kinds", "_state")

    def __init__(self, kinds: dict[str, Any], heard: Heard) -> None:
        self._kinds, self._heard = kinds, heard

    def __enter__(self) -> None:
        self._before = _ear.heard
        if variable is None:
            self._state: Any = logged(self._kinds, _ear)
            self._state.__enter__()
        else:
            key = (*self._kinds.items(),)
            value = _hearing.get(key)
            if value is None:
                with logged(self._kinds, _ear):
                    value = _hearing[key] = variable.get()
            self._state = variable.set(value)
        _ear.heard = self._heard

    def __exit__(self, *raised: object) -> None:
        _ear.heard = self._before
        if variable is None:
            self._state.__exit__(*raised)
        else:
            variable.reset(self._state)


def entered(kinds: dict[str, Any], heard: Heard | None = None) -> AbstractContextManager[object]:
    """`np.errstate` of these kinds, whose warnings are `heard`; nothing where they are in force."""
    if heard is not None:
        return _Hearing(kinds, heard)
    return _AS_IT_IS if kinds == error_state().kinds else np.errstate(**kinds)
