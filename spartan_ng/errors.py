"""Every error the library raises on purpose, in one tree.

    SpartanError
    ├── ShapeError(ValueError)         operands whose shapes do not fit the operation
    ├── NotAssociative(ValueError)     a scan's function depends on where it begins
    ├── OptionError(ValueError)        a configuration value out of its range
    ├── EvaluationError(RuntimeError)  a plan failed while it ran
    │   ├── UserFunctionError          a user's function raised; carries the worker's traceback, and its type
    │   ├── Unfinished                 a job ended before its time, and what is left of it is of use
    │   │   ├── WorkerDied(WorkerLost) below
    │   │   └── JobSetAside            it was stopped to be planned for workers that have joined
    │   ├── WorkerLost                 a worker died while it held tiles that are needed
    │   │   ├── WorkerDied             a worker died while it ran its part of a job
    │   │   ├── WorkersChanged         a plan was for other workers than there are; nothing has run
    │   │   ├── GivenUp                an engine has tried as often as it may, and nothing else was lost
    │   │   └── WorkerUnreachable      a worker lives, but another process cannot reach it
    │   ├── SourceError                a source cannot be read, or is not what it says
    │   ├── JobTimeout                 the job ran for longer than it may
    │   └── JobCancelled               the job was stopped before it ended
    ├── MemoryBudgetError(MemoryError) what must be in memory at once exceeds the budget
    ├── MissingLibrary(ImportError)    a library that need not be installed, and is not
    ├── OutOfResources(OSError)        the system has no disk, memory or descriptors left to give
    └── ConnectionFailed(ConnectionError)
        ├── MasterUnreachable          nobody answered within the timeout
        ├── AuthenticationFailed       keys are missing or wrong
        └── VersionMismatch            the two ends speak different protocol versions

    KernelWarning(RuntimeWarning)      a compiled kernel was wrong on a trial, and is not used

Each error also subclasses what NumPy or Python raises for the same mistake, so that code written for
NumPy keeps catching it. Wrong axes and dtypes raise NumPy's own `AxisError` and `TypeError`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from spartan_ng.tracebacks import folded


class SpartanError(Exception):
    """The root of the library's own errors."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows."""
        return folded(self)


class ShapeError(SpartanError, ValueError):
    """Shapes that the operation cannot combine."""


class NotAssociative(SpartanError, ValueError):
    """A scan's function gives other results when it is applied from the other end."""


class OptionError(SpartanError, ValueError):
    """A configuration value that is not one of the allowed ones."""


class EvaluationError(SpartanError, RuntimeError):
    """A plan failed while it ran."""

    raised = ""
    """Where the type of what stands behind it may be found, as from `raised_as`."""


class UserFunctionError(EvaluationError):
    """A user's function raised on a worker; the message holds its traceback and the user's line.

    What the program sees is of the type that the function raised, too, so that `except ValueError` means the
    same wherever it ran.

    Parameters
    ----------
    message : all that is known
    raised : where the type may be found that the function raised, as from `raised_as`
    """

    def __init__(self, message: str = "", raised: str = "") -> None:
        super().__init__(message)
        self.raised = raised

    def __reduce__(self) -> Any:
        return as_raised, (UserFunctionError, self.args[0], self.raised)


def raised_as(error: BaseException) -> str:
    """Where the type of an error may be found by whoever catches it, and those above it, from the nearest on;
    nothing of one that is no ordinary error, or ours."""
    if isinstance(error, _NO_ERROR):
        return ""
    kinds = [k for k in type(error).__mro__ if issubclass(k, Exception) and not issubclass(k, SpartanError)]
    return ",".join(f"{k.__module__}:{k.__qualname__}" for k in kinds if k not in _ANYWAY)


def as_raised(kind: type[EvaluationError], message: str, raised: str) -> EvaluationError:
    """An error of a plan that is also what was raised behind it, where this process knows that."""
    plain = kind(message)
    plain.raised = raised
    other = next(filter(None, map(_found, raised.split(","))), None)
    if other is None or other in _ANYWAY or issubclass(other, _NO_ERROR):
        return plain
    found = _also.get((kind, other))
    try:
        if found is None:
            own = {"__module__": kind.__module__, "__str__": _message, "__reduce__": _as_it_was}
            found = _also[kind, other] = type(kind.__name__, (kind, other), own)
        made: EvaluationError = _pythons(found).__new__(found, message)
    except TypeError:  # a class that cannot be one of two, or wants more than a message
        return plain
    made.args, made.raised = (message,), raised
    return made


def _message(error: EvaluationError) -> str:
    return str(error.args[0])  # whatever the other type makes of it


def _as_it_was(error: EvaluationError) -> Any:
    return as_raised, (type(error).__bases__[0], error.args[0], error.raised)


def _pythons(kind: type) -> Any:
    """The class of Python's own whose memory the instances of `kind` have: its `__new__` makes them, as a
    constructor of others' may want anything. Not the first of the bases: `MemoryError`'s makes no others."""
    return kind if kind.__module__ == "builtins" else _pythons(kind.__base__)  # type: ignore[arg-type]


_ANYWAY = (Exception, RuntimeError)
_NO_ERROR = (StopIteration, StopAsyncIteration)
"""Which means something else to whoever calls."""
_also: dict[tuple[type, type], type[EvaluationError]] = {}


def _found(name: str) -> type | None:
    """A class of errors, if its module is there."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


class SourceError(EvaluationError, OSError):
    """A file or another source of elements cannot be read, or gives something else than it says."""


class WorkerLost(EvaluationError):
    """A worker died while it held tiles that the program still needs."""


class GivenUp(WorkerLost):
    """An engine has tried a job as often as its settings say, and each time the processes that ran it ended;
    nothing that the program has was lost."""


class Unfinished(EvaluationError):
    """A job ended before its time."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.left: Mapping[int, Any] = {}
        """What workers have left of it: arrays, of which tiles may be missing, by their slots."""


class JobSetAside(Unfinished):
    """A job was stopped so that workers that have joined take part in what is left to do."""


class WorkerDied(WorkerLost, Unfinished):
    """A worker died while it ran its part of the job."""


class WorkersChanged(WorkerLost):
    """A plan was made for other workers than there are by now; nothing of it has run."""


class WorkerUnreachable(WorkerLost):
    """A member of the cluster that another member, or the program, has not reached for `timeout_s`."""


class JobTimeout(EvaluationError, TimeoutError):
    """The job ran for longer than `job_timeout_s`; the message says who waited for whom."""


class JobCancelled(EvaluationError):
    """The job was stopped before it ended."""


class MemoryBudgetError(SpartanError, MemoryError):
    """What must be in memory at one time exceeds the budget; the message names the bytes."""


class MissingLibrary(SpartanError, ImportError):
    """A library that need not be installed is not; the message names the extra that brings it."""


class OutOfResources(SpartanError, OSError):
    """The system has no disk, memory or descriptors to give; the message names process, place and bytes."""


class ConnectionFailed(SpartanError, ConnectionError):
    """A cluster connection could not be made."""


class MasterUnreachable(ConnectionFailed):
    """Nobody answered at the master's address within the timeout."""


class AuthenticationFailed(ConnectionFailed):
    """The keys are missing, or the other end does not accept them."""


class VersionMismatch(ConnectionFailed):
    """The two ends speak different protocol versions."""


class PerformanceWarning(UserWarning):
    """A line of the program's takes long to plan and little to compute."""


@contextmanager
def alone() -> Iterator[None]:
    """For handlers that ask again with better words: what is raised inside stands without what is handled."""
    try:
        yield
    except Exception as error:
        error.__suppress_context__ = True
        raise


_BEFORE = ("broadcast", "read-only", "dimension", "aligned")


def is_refusal(error: ValueError) -> bool:
    """Whether NumPy refused operands by their shapes, or memory by its flags, before it began.

    It may be asked again then, in our words; what an element's own method raises comes when others have been
    written.
    """
    return any(word in str(error) for word in _BEFORE)


class KernelWarning(RuntimeWarning):
    """A compiled kernel computed something else than NumPy on its trial; NumPy's answer stands."""
