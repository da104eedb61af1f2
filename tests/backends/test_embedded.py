"""The embedded backend: threads share the work, errors and Ctrl-C leave it well."""

from __future__ import annotations

import operator
import os
import signal
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

import numpy as np
import pytest
from msgspec.structs import replace

import spartan_ng as sp
from spartan_ng import interrupts, session
from spartan_ng.api.core import dispatch
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.backends import embedded
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError
from spartan_ng.graph import build
from spartan_ng.interrupts import run_interruptibly
from spartan_ng.ops.matrices import MATRIX_FUNCTIONS
from spartan_ng.session import Session
from tests.cluster.programs import evaluate, total, user
from tests.test_programs import running_on
from tests.waiting import endless_in_c, endless_in_python, until


def test_memory_is_limited_by_the_first_plan_that_would_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "budget_bytes", lambda: 4 << 20)
    value = np.random.default_rng(0).random(1 << 20)
    backend = EmbeddedBackend(2)
    with running_on(backend), config.override(small_bytes=0):
        x = sp.from_function(lambda box: value[box[0][0] : box[0][1]], value.shape, float)
        held = sp.exp(sp.asarray(value[:1000])).persist()
        assert np.allclose(x.sum(), value.sum())
        before = backend.profile.limited
        found = sp.sort(x).compute()
        assert np.array_equal(found, np.sort(value))
        assert (before, backend.profile.limited) == (False, True)
        assert np.allclose(held.compute(), np.exp(value[:1000]))
        assert np.array_equal((x * 2).compute(), value * 2)


def test_threads_share_the_blocks_of_a_stage() -> None:
    seen = set()

    def note(block: np.ndarray) -> np.ndarray:
        seen.add(threading.get_ident())
        until(lambda: len(seen) == 2)
        return block

    with running_on(EmbeddedBackend(2)):
        x = sp.asarray(np.random.default_rng(0).random((2000, 200)))
        np.testing.assert_array_equal(sp.map(note, x, dtype=float).compute(), x.compute())


def one_after_the_other(
    work: Callable[[], None],
    helpers: int,
    is_done: Callable[[], bool] | None = None,
    there: Callable[[], None] | None = None,
) -> None:
    """What threads do, with the second to begin when the first has ended."""
    errors = []
    for each in (work, *[there or work] * helpers):
        try:
            each()
        except BaseException as error:  # noqa: BLE001  # raised below, as threads do
            errors.append(error)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("error", [ValueError("bad block"), KeyboardInterrupt()])
def test_a_failing_block_stops_the_others(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    calls: list[int] = []

    def fails(block: np.ndarray) -> np.ndarray:
        calls.append(1)
        raise error

    backend = EmbeddedBackend(2)
    with running_on(backend):
        x = sp.asarray(np.random.default_rng(0).random((4000, 1000)))
        with monkeypatch.context() as patch:
            patch.setattr(backend._executor._helpers, "run", one_after_the_other)
            with pytest.raises((UserFunctionError, KeyboardInterrupt)):
                sp.map(fails, x, dtype=float).compute()
        assert calls == [1]
        with pytest.raises((UserFunctionError, KeyboardInterrupt)):
            sp.map(fails, x, dtype=float).compute()
        np.testing.assert_allclose((x + 1).sum().compute(), x.compute().sum() + x.size)


def test_ctrl_c_stops_a_job_and_the_next_one_runs() -> None:
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        x = sp.asarray(np.random.default_rng(0).random((4000, 1000)))
        main = threading.main_thread().ident
        assert main is not None
        pressed = threading.Event()

        def pressing(block: np.ndarray) -> np.ndarray:
            if not pressed.is_set():
                pressed.set()
                signal.pthread_kill(main, signal.SIGINT)
            return block

        with pytest.raises(KeyboardInterrupt):
            sp.map(pressing, x, dtype=float).compute()
        np.testing.assert_allclose(float(x.sum()), x.compute().sum())


def test_a_memory_budget() -> None:
    """Arrays that fit go on fitting, and what does not goes to disk."""
    value = np.arange(500_000.0).reshape(500, 1000)
    backend = EmbeddedBackend(2, memory_bytes=9_000_000)
    with running_on(backend), config.override(small_bytes=0):
        x = sp.asarray(value)
        for i in range(5):
            np.testing.assert_array_equal((x * i + x).compute(), value * i + value)
        y, square, z = sp.persist(x * 2 + 1, x.T @ x, x * 3 - 1)
        assert is_mapped(np.asarray(square, copy=False))
        for found, expected in ((y, value * 2 + 1), (square, value.T @ value), (z, value * 3 - 1)):
            np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose((square + 1).compute() - 1, square)
        del y, z
        square[3] = 0  # where it lies
        assert is_mapped(np.asarray(square, copy=False))
        assert (np.asarray(square).sum(axis=1) == 0).tolist() == [k == 3 for k in range(1000)]
        assert float((x * x).sum()) == (value * value).sum()
        assert not backend._store.complete()


def test_the_option_for_memory_is_heeded() -> None:
    try:
        with config.override(memory_bytes=5_000_000, small_bytes=0):
            session.embed()
            x = (sp.arange(1_000_000.0) + 1).persist()
            assert is_mapped(np.asarray(x, copy=False))
            np.testing.assert_array_equal(x, np.arange(1_000_000.0) + 1)
    finally:
        session.embed()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("make", [endless_in_python, endless_in_c])
def test_ctrl_c_leaves_a_function_that_never_stops(make, threads):
    backend = EmbeddedBackend(threads)
    session = Session(backend)
    started = threading.Event()
    node = build.constant(np.ones((300_000, 4)))

    def press():
        started.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        evaluate(session, total(user(make(started.set), node)))
    thread.join()
    assert evaluate(session, total(node)) == 1_200_000.0
    assert evaluate(session, total(user(lambda tile: tile + 1.0, node))) == 2_400_000.0
    backend.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_planned"),
    [("svd", False), ("svd", True), ("eigh", True), ("median", False)],  # planned, it is in blocks
)
def test_ctrl_c_leaves_numpys_long_calls(monkeypatch, name, is_planned):
    """One call is one step, which nothing interrupts: so it is never the main thread that makes it."""
    calling, left = [], threading.Event()

    def endless(*arguments, **keywords):
        calling.append(threading.current_thread())
        if calling == [threading.main_thread()]:
            return 0.0
        os.kill(os.getpid(), signal.SIGINT)
        left.wait()
        raise np.linalg.LinAlgError

    call = getattr(sp, name, None) or getattr(sp.linalg, name)
    with running_on(EmbeddedBackend(1)), config.override(small_bytes=0 if is_planned else 1 << 30):
        x = sp.asarray(np.random.default_rng(0).random((1000, 1000)))
        with monkeypatch.context() as patch:
            if not is_planned:
                patch.setattr(dispatch, "_answer", endless)
            else:
                patch.setitem(MATRIX_FUNCTIONS, name, replace(MATRIX_FUNCTIONS[name], function=endless))
            with pytest.raises(KeyboardInterrupt):
                call(x)
        assert threading.main_thread() not in calling
        left.set()
        assert float((x + 1).sum()) > 1_000_000


@pytest.mark.parametrize("name", ["inv", "qr", "solve", "median", "partition"])
def test_short_calls_take_no_thread(monkeypatch, name):
    """BLAS shares a product by threads of its own, one a core: another one would be beside one of them."""
    calling = []
    answer = dispatch._answer

    def noted(*arguments, **keywords):
        calling.append(threading.current_thread())
        return answer(*arguments, **keywords)

    monkeypatch.setattr(dispatch, "_answer", noted)
    x = np.random.default_rng(0).random((370, 370)) + 1j * np.eye(370)  # two megabytes
    more = {"solve": (x,), "partition": (3,)}.get(name, ())
    numpys, ours = (getattr(m.linalg, name, None) or getattr(m, name) for m in (np, sp))
    x = x.real.copy() if name == "median" else x
    with running_on(EmbeddedBackend(1)), config.override(small_bytes=1 << 25):
        found = ours(sp.asarray(x), *more)
    assert set(calling) <= {threading.main_thread()}
    for ours, theirs in zip(
        *(r if isinstance(r, tuple) else (r,) for r in (found, numpys(x, *more))), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def _at_once() -> list[str]:
    """Functions that NumPy answers as a whole, also where that takes long."""
    found = []
    for prefix, module in (("", sp), ("linalg.", sp.linalg)):
        for name in dir(module):
            call = getattr(module, name)
            names = getattr(getattr(call, "__code__", None), "co_freevars", ())
            held = dict(zip(names, getattr(call, "__closure__", None) or (), strict=True))
            if "whole" in held and held["whole"].cell_contents:
                found.append(prefix + name)
    assert found
    return found


@pytest.mark.parametrize("name", _at_once())
def test_whatever_numpy_answers_as_a_whole_leaves_the_main_thread_to_ctrl_c(monkeypatch, name):
    """In lists of arrays, too."""
    threads = []

    def noted(*_):
        threads.append(threading.current_thread())
        return 0.0

    monkeypatch.setattr(dispatch, "_answer", noted)
    call = operator.attrgetter(name)(sp)
    x = sp.asarray(np.ones((410, 410)))
    with running_on(EmbeddedBackend(1)), config.override(small_bytes=1 << 30):
        for arguments in ((x,), (x, x), ([x, x],), ((x, x), 0)):
            with suppress(TypeError):  # it wants more of them, or none in a list
                call(*arguments)
    assert threads
    assert threading.main_thread() not in threads


def test_plans_that_take_long_leave_the_main_thread_to_ctrl_c(monkeypatch):
    threads = []
    backend = EmbeddedBackend(1)
    run = backend._run

    def noted(*told):
        threads.append(threading.current_thread())
        return run(*told)

    monkeypatch.setattr(backend, "_run", noted)
    with running_on(backend), config.override(small_bytes=0):
        for size, away in ((1000, False), (3_000_000, True)):
            monkeypatch.setattr(embedded, "INTERRUPTIBLE_S", 1e-3)
            assert float(sp.exp(sp.ones(size)).sum()) > size
            assert (threads.pop() is not threading.main_thread()) == away


@pytest.mark.parametrize("is_first", [True, False])
def test_ctrl_c_as_the_work_begins_stops_it_too(monkeypatch, is_first):
    begun, stopped = threading.Event(), threading.Event()
    take = interrupts._JobThread.take

    def slowly(thread, job):
        take(thread, job)
        begun.wait()
        raise KeyboardInterrupt

    def work():
        begun.set()
        stopped.wait()

    monkeypatch.setattr(interrupts, "_free", [] if is_first else [interrupts._JobThread()])
    monkeypatch.setattr(interrupts._JobThread, "take", slowly)
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(work, stopped.set, stopped.set)
    assert stopped.is_set()


def test_one_thread_does_what_the_main_thread_waits_for(monkeypatch):
    """Unless what it did was given up; and it keeps nothing of what it has done."""
    monkeypatch.setattr(interrupts, "_free", [])
    first = run_interruptibly(threading.current_thread)
    assert first is not threading.main_thread()
    assert all(run_interruptibly(threading.current_thread) is first for _ in range(5))
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(lambda: 1 / 0)
    assert run_interruptibly(threading.current_thread) is first
    answer = run_interruptibly(lambda: np.ones(1000))
    kept = weakref.ref(answer)
    run_interruptibly(int)
    del answer
    until(lambda: kept() is None)

    held, end = threading.Event(), threading.Event()

    def interrupted():
        held.set()
        end.wait()

    class Pressed(Future):
        def result(self, timeout=None):
            if not held.is_set():
                held.wait()
                raise KeyboardInterrupt
            return super().result(timeout)

    monkeypatch.setattr(interrupts, "Future", Pressed)
    monkeypatch.setattr(interrupts, "_GRACE_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(interrupted)
    assert run_interruptibly(threading.current_thread) is not first
    end.set()


def test_a_thread_that_is_free_as_ctrl_c_comes_does_what_it_is_given(monkeypatch):
    class Pressed(Future):
        def set_result(self, result):
            super().set_result(result)
            for thread in interrupts._free:
                thread.is_last = True

    monkeypatch.setattr(interrupts, "_free", [])
    with monkeypatch.context() as pressed:
        pressed.setattr(interrupts, "Future", Pressed)
        first = run_interruptibly(threading.current_thread)
    assert run_interruptibly(threading.current_thread) is first
    assert run_interruptibly(threading.current_thread) is not first


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_what_a_function_raises_comes_back_with_the_users_line(error):
    def ends(tile):
        raise error("mine")

    session = Session(EmbeddedBackend(2))
    with pytest.raises(UserFunctionError, match=rf"ends raised {error.__name__}: mine\n.*programs.py:\d+"):
        evaluate(session, total(user(ends, build.constant(np.ones((60, 4))))))
