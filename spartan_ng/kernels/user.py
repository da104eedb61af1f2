"""Calls of users' functions: what one raises comes back with its traceback and the user's own line.

While a function runs it is known in which thread, and for which job: it can be interrupted there, and what it
prints can be told from what others print.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Collection
from copy import copy
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import sparse
from spartan_ng.errors import JobCancelled, OutOfResources, UserFunctionError, raised_as
from spartan_ng.events import record
from spartan_ng.kernels.sampling import Sampler
from spartan_ng.ops.functions import UserFunction
from spartan_ng.sinks.sink import Sink
from spartan_ng.system import faults
from spartan_ng.texts import called_trace, error_line, is_ctrl_c


class Interrupted(BaseException):
    """Raised inside a user's function, wherever it is, when its job is to stop."""


class _UserCall(Struct):
    """A call that is under way."""

    job: str
    function: UserFunction
    hit: bool = False
    """Whether it has been interrupted."""


_MAIN = threading.main_thread().ident
_calls: dict[int, _UserCall] = {}
"""By thread."""
_lock = threading.Lock()
_acting = threading.local()
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = [ctypes.c_ulong, ctypes.py_object]


_sampler = Sampler(
    lambda: {thread: call.job for thread, call in list(_calls.items())}, lambda: call_user.__code__
)


class Acting:
    """A `with` block in which this thread calls functions for `job`; blocks may be nested."""

    __slots__ = ("_before", "_call", "_job")

    def __init__(self, job: str) -> None:
        self._job = job

    def __enter__(self) -> None:
        self._before = getattr(_acting, "job", "")
        self._call = _calls.get(threading.get_ident())
        _acting.job = self._job
        faults.enter()  # a stage looks at its files when it is done

    def __exit__(self, *error: object) -> None:
        faults.leave()
        _acting.job = self._before
        call = _calls.get(threading.get_ident())
        if call is not self._call and call is not None:  # it was interrupted on its way out
            _leave(threading.get_ident(), self._call, call)


def current_job() -> str | None:
    """The job of the user's function that runs in this thread, None outside of any."""
    call = _calls.get(threading.get_ident())
    return None if call is None else call.job


def running(job: str) -> tuple[UserFunction, ...]:
    """The users' functions that run for a job now."""
    return tuple({call.function: None for call in list(_calls.values()) if call.job == job})


def interrupt(job: str, threads: Collection[int] | None = None) -> int:
    """Interrupt the users' functions that run for a job, on all or some threads, as soon as they are in
    Python code; how many run."""
    with _lock:
        ours = [(t, call) for t, call in _calls.items() if threads is None or t in threads]
        running = [(thread, call) for thread, call in ours if call.job == job]
        for thread, call in running:
            call.hit = True
            _raise_in(thread, Interrupted)
    return len(running)


def call_user(
    fn: UserFunction, operator: str, *args: Any, taken: Callable[[Any], Any] | None = None, **keywords: Any
) -> Any:
    """Call a user's function for `operator`; raises `UserFunctionError` where it raises.

    `taken` makes of its result what the operator needs: a generator or `__array__` is the user's code, too.
    Arrays that it is given are for reading: they are others', too. A process that it has forked ends where
    it returns, unless it called from the main thread.
    """
    args = tuple(map(_for_reading, args))
    thread, process = threading.get_ident(), os.getpid()
    before = _calls.get(thread)  # a function may evaluate arrays itself
    call = _calls[thread] = _UserCall(getattr(_acting, "job", ""), fn)
    if record.is_on:
        _sampler.wake()
    try:
        result = fn.function(*args, **keywords)
        return result if taken is None else taken(result)
    except Interrupted:
        raise JobCancelled(f"{operator}: {fn} (at {fn.origin}) was interrupted") from None
    except BaseException as error:
        if is_ctrl_c(error) or (isinstance(error, OutOfResources) and isinstance(fn.function, Sink)):
            raise
        raise _described(fn, operator, error) from error
    finally:
        if os.getpid() != process and thread != _MAIN:
            os._exit(0)  # the function has forked: a copy of this thread, alone, is of use to nobody
        _leave(thread, before, call)


def _for_reading(value: Any) -> Any:
    """An argument whose arrays cannot be written to: one of them, or several, dense or sparse."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            value = value.view()
            value.flags.writeable = False
    elif type(value) in (list, tuple):
        return type(value)(map(_for_reading, value))
    elif sparse.is_csr(value):
        value = copy(value)
        for name in ("data", "indices", "indptr"):
            setattr(value, name, _for_reading(getattr(value, name)))
    return value


def _described(fn: UserFunction, operator: str, error: BaseException) -> UserFunctionError:
    return UserFunctionError(
        f"{operator}: {fn} raised {error_line(error)}\n"
        f"The function was put into the program at {fn.origin}\n\n{called_trace(error)}",
        raised_as(error),
    )


def _leave(thread: int, before: _UserCall | None, call: _UserCall) -> None:
    """Nobody interrupts this thread from now on; an interrupt that has not arrived yet arrives here.

    It is not taken back: Python 3.11 would look for it for ever, in all threads, at each call, and not
    end a call that is traced or profiled.
    """
    while True:
        try:
            with _lock:
                if before is None:
                    _calls.pop(thread, None)
                else:
                    _calls[thread] = before
            if call.hit:
                call.hit = False
                _raise_in(thread, Interrupted)
            return
        except Interrupted:
            continue


def guarded(fn: UserFunction, operator: str) -> Callable[..., Any]:
    """The function as a callable that raises `UserFunctionError`."""
    return lambda *args: call_user(fn, operator, *args)
