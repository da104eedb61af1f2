"""What a user's function raises is caught by its own type, wherever the function ran."""

from __future__ import annotations

import builtins
import concurrent.futures
import json
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError, WorkerLost, as_raised, raised_as
from spartan_ng.graph.evaluation import in_process
from spartan_ng.wire.failures import describe_error, rebuild_error
from spartan_ng.wire.functions import dump_function, load_function
from tests.test_programs import running_on


class NotMine(KeyError):
    """With a text and arguments of its own."""

    def __init__(self, place: int, what: str) -> None:
        super().__init__(place)
        self.what = what

    def __str__(self) -> str:
        return self.what


class _Both(ZeroDivisionError, LookupError):
    pass


RAISED: dict[str, Exception] = {
    "a value": ValueError("no such value"),
    "a key": KeyError("k"),
    "a type": TypeError("no such type"),
    "arithmetic": ZeroDivisionError("division by zero"),
    "the system's": FileNotFoundError(2, "No such file", "x.txt"),
    "texts": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "algebra": numpy.linalg.LinAlgError("Singular matrix"),
    "an axis": numpy.exceptions.AxisError(3, 2),
    "another's": NotMine(3, "not here"),
    "two at once": _Both("both"),
    "a run's": RuntimeError("no"),
    "memory": MemoryError("no more"),
    "ours": np.errors.ShapeError("no such shape"),
}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "vectorize": lambda a, fail: np.vectorize(lambda v: fail() if v > 5e5 else v)(a + 1),
    "along an axis": lambda a, fail: np.apply_along_axis(
        lambda v: fail() if v[0] > 5e5 else v.sum(), 1, a + 1
    ),
    "a map": lambda a, fail: np.map(lambda block: fail() if block.max() > 5e5 else block, a + 1),
    "a function of boxes": lambda a, fail: np.from_function(lambda box: fail(), (600, 1000)) + 1,
}


NUMPYS = (CALLS["vectorize"], CALLS["along an axis"])
"""Functions of NumPy's, which call what they are given in this process where the elements lie here."""


@pytest.fixture(scope="module", params=[0, 2])
def backend(request: pytest.FixtureRequest) -> Iterator[None]:
    with running_on(SimulatedBackend(request.param) if request.param else EmbeddedBackend(2)):
        yield


def _failing(error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def _seen_as(error: Exception) -> type[Exception]:
    """Its own type, or what one of ours is besides."""
    kinds: Any = type(error).__mro__
    return next(k for k in kinds if not issubclass(k, np.errors.SpartanError))


def _check(call: Callable[[Any, Any], Any], error: Exception) -> None:
    a = np.arange(600_000.0).reshape(600, 1000) + np.zeros((600, 1000))
    kind = _seen_as(error)
    with pytest.raises(kind) as caught:
        numpy.asarray(call(a, _failing(error)))
    if caught.value is error:  # NumPy called the function
        assert in_process()
        assert call in NUMPYS
        return
    assert isinstance(caught.value, UserFunctionError)
    assert type(error).__name__ in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, kind)
    assert str(again) == str(caught.value)


@pytest.mark.some(8)
@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("call", CALLS)
def test_the_functions_own_type_is_caught(call: str, name: str, backend: None) -> None:
    with config.override(small_bytes=0):
        _check(CALLS[call], RAISED[name])


@pytest.mark.slow
def test_it_is_on_a_cluster() -> None:
    with LocalCluster(2) as cluster, running_on(cluster):
        for name in ("a value", "a key", "the system's", "two at once"):
            for call in CALLS.values():
                _check(call, RAISED[name])


@pytest.mark.parametrize("name", RAISED)
def test_types_travel_by_their_names(name: str) -> None:
    error = RAISED[name]
    told = rebuild_error(*describe_error(UserFunctionError("text", raised_as(error))))
    assert type(told) is UserFunctionError
    assert str(told) == "text"
    seen = as_raised(UserFunctionError, str(told), told.raised)
    assert isinstance(seen, _seen_as(error))


_OTHERS = (
    json.JSONDecodeError,
    subprocess.CalledProcessError,
    concurrent.futures.BrokenExecutor,
    NotMine,
    _Both,
)
TYPES = [
    kind
    for kind in (*vars(builtins).values(), *vars(numpy.exceptions).values(), *_OTHERS)
    if isinstance(kind, type) and issubclass(kind, Exception)
]


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_any_type_of_errors_is_caught(kind: type[Exception]) -> None:
    """However its instances are made, and whatever memory they have."""
    names = ",".join(f"{k.__module__}:{k.__qualname__}" for k in kind.__mro__ if issubclass(k, Exception))
    seen = as_raised(UserFunctionError, "text", names)
    ends = issubclass(kind, StopIteration | StopAsyncIteration)
    assert isinstance(seen, kind) or ends or kind is ExceptionGroup  # which wants the errors themselves
    again = pickle.loads(pickle.dumps(seen))
    for error in (seen, again, rebuild_error(*describe_error(seen))):
        assert isinstance(error, UserFunctionError)
        assert str(error) == "text"
    with pytest.raises(UserFunctionError):
        raise seen


class _Unsendable:
    """A value that pickle takes no notice of until it is asked."""

    def __init__(self, error: Exception, where: str) -> None:
        self.error, self.where = error, where

    def __reduce__(self) -> Any:
        if self.where == "sent":
            raise self.error
        return _raising, (type(self.error), self.error.args)


def _raising(kind: type[Exception], args: tuple[Any, ...]) -> Any:
    raise kind(*args)


def _unsendable_sum(value: Any) -> Any:
    """The sum of an array whose function refers to `value`."""

    def refers(box: Any) -> Any:
        return numpy.full([hi - lo for lo, hi in box], 0 if value is None else 1.0)

    return float(np.from_function(refers, (3000, 1000)).sum())


@pytest.mark.slow
def test_a_function_that_cannot_travel_says_which_and_why() -> None:
    with LocalCluster(2) as cluster, running_on(cluster):
        for where in ("sent", "loaded"):
            for error in (
                TypeError("no pickle"),
                ModuleNotFoundError("No module named 'x'"),
                OSError(2, "gone"),
            ):
                with pytest.raises(type(error), match=f"cannot be {where}") as caught:
                    _unsendable_sum(_Unsendable(error, where))
                assert isinstance(caught.value, UserFunctionError)
                assert str(error.args[-1]) in str(caught.value)
        with pytest.raises(TypeError, match=r"from_function: refers cannot be sent to the workers: .*lock"):
            _unsendable_sum(threading.Lock())
        assert _unsendable_sum(3) == 3e6  # the workers go on


@pytest.mark.parametrize("mode", ["r", "r+", "w", "rb"])
def test_an_open_file_is_sent_to_nobody(mode: str, tmp_path: Path) -> None:
    """Each worker would read a copy of its text from where it is now."""
    (tmp_path / "text").write_text("1\n2\n")
    with (
        (tmp_path / "text").open(mode) as file,
        pytest.raises(UserFunctionError, match="cannot be sent") as said,
    ):
        dump_function(lambda: file.readline(), "it")
    assert "file" in str(said.value) or "BufferedReader" in str(said.value)
    name, pickled = dump_function(lambda: (sys.stdout, sys.stderr), "it")
    assert name is None
    assert load_function(None, pickled, "it")() == (sys.stdout, sys.stderr)


class _Tick(Exception):
    pass


class _Handles:
    def __call__(self, *_: Any) -> None:
        raise _Tick

    handle = __call__


class _Interrupted:
    """What a signal interrupts while it is pickled."""

    def __reduce__(self) -> Any:
        signal.raise_signal(signal.SIGALRM)
        return int, ()


@pytest.mark.slow
def test_what_a_signal_raises_meanwhile_goes_through() -> None:
    """Whatever has been under way: it is no error of that."""
    called = _Handles()
    of_one: Any = partial(_Handles.handle, called)
    with LocalCluster(1) as cluster, running_on(cluster):
        for handler in (called, called.handle, of_one, lambda *_: called()):
            before = signal.signal(signal.SIGALRM, handler)
            try:
                with pytest.raises(_Tick) as caught:
                    _unsendable_sum(_Interrupted())
            finally:
                signal.signal(signal.SIGALRM, before)
            assert type(caught.value) is _Tick
        assert _unsendable_sum(3) == 3e6


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(2), KeyboardInterrupt(), WorkerLost("gone")])
def test_what_means_more_than_an_error_is_none_of_them(error: BaseException) -> None:
    assert raised_as(error) == ""


def test_a_type_that_nobody_can_find_is_the_nearest_above() -> None:
    class Local(IndexError):
        pass

    seen = as_raised(UserFunctionError, "text", raised_as(Local("x")))
    assert isinstance(seen, IndexError)
    assert type(as_raised(UserFunctionError, "text", "no.such.module:Name")) is UserFunctionError
    assert type(as_raised(UserFunctionError, "text", "os:system")) is UserFunctionError
