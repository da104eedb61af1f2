"""Users' functions that end their process, never stop, print, or raise what ends programs."""

import ctypes
import os
import signal
import threading
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from spartan_ng.config import config
from spartan_ng.errors import EvaluationError, JobTimeout, UserFunctionError, WorkerLost
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.texts import LONGEST
from tests.cluster.conftest import once, start
from tests.cluster.programs import doubled, evaluate, expected, total, user
from tests.faults.usage import children
from tests.unspeakable import ERRORS, SAID, raiser
from tests.waiting import Gate, endless_in_c, endless_in_python, until

rng = np.random.default_rng(0)


@pytest.fixture
def three():
    """A cluster of three workers that are started again, and a client."""
    for cluster in start(3):
        client = cluster.connect()
        yield cluster, client
        client.close()


def exits(tile):
    os._exit(0)


def aborts(tile):
    os.abort()


def reads_nothing(tile):
    ctypes.string_at(0)


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("function", [exits, aborts, reads_nothing])
def test_a_function_that_ends_its_process_takes_two_workers_and_its_name_is_said(three, function):
    cluster, client = three
    session = Session(client)
    before = list(cluster.workers)
    node = build.constant(rng.random((60, 4)))
    line = rf"{function.__name__} \(at .*programs.py:\d+\): the processes of two workers ended"
    with pytest.raises(UserFunctionError, match=line):
        evaluate(session, total(user(function, node)))
    ended = lambda: [w for w in before if w.poll() is not None]  # noqa: E731
    until(lambda: len(ended()) > 1)  # a connection may end before its process, which writes what it had
    until(lambda: client.workers == 3)
    assert len(ended()) == 2
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))


@pytest.mark.slow
@pytest.mark.parametrize("nbytes", [100_000, 600_000, 40_000_000])
def test_functions_may_bring_much_along(three, nbytes):
    """Over ports and sockets, which take frames of different lengths."""
    session = Session(three[1])
    brought = np.arange(nbytes // 8)
    node = build.constant(rng.random((60, 4)))
    found = evaluate(session, user(lambda tile: tile + brought[-1], node))
    np.testing.assert_allclose(found, evaluate(session, node) + brought[-1])


def signals(number):
    """Until the process ends: told once, a worker first waits for what it runs, which is us."""
    while True:
        signal.raise_signal(number)


def terminates(tile):
    signals(signal.SIGTERM)


def interrupts(tile):
    signals(signal.SIGINT)


@pytest.fixture
def two():
    """A client of a cluster of two workers that are started again."""
    for cluster in start(2):
        client = cluster.connect()
        yield client
        client.close()


@pytest.mark.slow
def test_workers_whom_functions_ended_are_waited_for(two):
    """However often all of them went: jobs at once after it wait, and nobody plans for no workers."""
    session = Session(two)
    node = build.constant(rng.random((60, 4)))
    for function in (terminates, interrupts, exits):
        with pytest.raises(UserFunctionError, match="the processes of two workers ended"):
            evaluate(session, total(user(function, node)))
        np.testing.assert_allclose(evaluate(session, total(node)), expected(node))
    until(lambda: two.workers == 2)


def forks(tile):
    os.fork()
    return tile + 1.0


def forks_and_raises(tile):
    if os.fork() == 0:
        raise ValueError("in the child")
    return tile + 1.0


def ends_a_child(tile):
    """As a pool of processes does when it is left."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"x")
        while True:
            signal.pause()
    os.read(reading, 1)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    return tile + (os.WTERMSIG(status) - 14.0)


@pytest.mark.parametrize("function", [forks, forks_and_raises, ends_a_child])
def test_what_a_function_forks_is_no_second_worker(two, function):
    x = rng.random((60, 4))
    np.testing.assert_array_equal(evaluate(Session(two), user(function, build.constant(x))), x + 1.0)
    workers = [int(m.label.split()[1]) for m in two.status().members.members]
    until(lambda: not any(children(pid) for pid in workers))
    np.testing.assert_array_equal(evaluate(Session(two), doubled(build.constant(x))), 2 * x)


def test_building_asks_nothing_of_workers_that_are_not_there(cluster):
    """Where none comes again, evaluating says so, and nothing else does."""
    client = cluster.connect()
    for worker in cluster.workers:
        worker.kill()
    until(lambda: not client.status().members.members and client.wait_for_workers(0, 0.0))
    assert client.profile.workers == 1
    node = total(build.constant(rng.random((60, 4))))
    with config.override(timeout_s=0.1), pytest.raises(WorkerLost, match=r"no workers left.* 0\.1 s"):
        evaluate(Session(client), node)
    client.close()


def endless_in_c_with_the_interpreter(touch):
    """Nothing of Python's runs in the process any more, and so nothing of ours."""

    def function(tile):
        try:
            touch(exist_ok=False)
        except FileExistsError:
            return tile
        return ctypes.PyDLL(None).sleep(100_000)

    return function


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("make", "stays"),
    [(endless_in_python, True), (endless_in_c, False), (endless_in_c_with_the_interpreter, False)],
)
def test_ctrl_c_leaves_a_function_that_never_stops_and_so_do_the_workers(three, tmp_path, make, stays):
    cluster, client = three
    session = Session(client)
    before = list(cluster.workers)
    started = tmp_path / "started"
    node = build.constant(rng.random((60, 4)))

    once(started.exists, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        evaluate(session, total(user(make(started.touch), node)))
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))
    if stays:
        until(lambda: client.status().jobs == ())
        assert [w.poll() for w in before] == [None] * 3
    else:
        until(lambda: any(w.poll() is not None for w in before))
        until(lambda: client.workers == 3 and client.status().jobs == ())
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))


def test_ctrl_c_may_come_as_soon_as_a_job_has_begun(two, tmp_path, monkeypatch):
    """Before anybody waits for it: it is stopped all the same."""
    started = tmp_path / "started"
    submit = two._link.submit

    def submitted(*arguments):
        submit(*arguments)
        raise KeyboardInterrupt

    node = build.constant(rng.random((60, 4)))
    with monkeypatch.context() as patch:
        patch.setattr(two._link, "submit", submitted)
        with pytest.raises(KeyboardInterrupt):
            evaluate(Session(two), total(user(endless_in_python(started.touch), node)))
    until(lambda: two.status().jobs == ())
    np.testing.assert_allclose(evaluate(Session(two), total(node)), expected(node))


def test_what_functions_print_comes_to_the_program_with_the_workers_name(session, shared, capsys):
    def speaks(tile):
        print("hello from", tile.shape[1], "columns")
        print("and no end", end="")
        return tile

    evaluate(session, total(user(speaks, build.constant(rng.random((60, 4))))))
    lines = capsys.readouterr().out.splitlines()
    pids = {w.pid for w in shared.workers}
    assert lines
    for line in lines:
        where, said = line.split("] ")
        assert where.startswith("[worker ")
        assert any(f"pid {pid} " in where for pid in pids)
        assert said in ("hello from 4 columns", "and no end")
    assert any(line.endswith("and no end") for line in lines)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_would_end_a_program_comes_back_with_the_users_line(session, error):
    def ends(tile):
        raise error("mine")

    node = build.constant(rng.random((60, 4)))
    with pytest.raises(UserFunctionError, match=rf"ends raised {error.__name__}: mine\n.*programs.py:\d+"):
        evaluate(session, total(user(ends, node)))
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))


@pytest.mark.parametrize("name", [n for n in ERRORS if n != "no name"])  # that has no pickle
def test_whatever_a_function_raises_comes_back_with_the_users_line(session, name):
    node = build.constant(rng.random((60, 4)))
    with pytest.raises(UserFunctionError, match=rf"raises raised {SAID[name]}") as caught:
        evaluate(session, total(user(raiser(name), node)))
    assert "programs.py:" in str(caught.value)
    assert len(str(caught.value)) <= LONGEST + 100
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))


def test_a_failure_that_cannot_be_told_ends_the_job(session):
    """As any mistake in telling would: the worker's own text is what cannot be encoded."""
    node = build.constant(rng.random((60, 4)))

    def spoils(tile):
        parts: Any = import_module("spartan_ng.worker.parts")
        honest = parts.describe_error

        def unencodable(error, worker=""):
            parts.describe_error = honest
            return "ValueError", "\udc80"

        parts.describe_error = unencodable
        raise ValueError("mine")

    with pytest.raises(EvaluationError, match=r"UnicodeEncodeError: how .* cannot be told"):
        evaluate(session, total(user(spoils, node)))
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))


@pytest.mark.parametrize(
    ("printed", "shown"), [("a\udc80b", r"a\udc80b"), ("\ud800\udfff", r"\ud800\udfff"), ("é 漢", "é 漢")]
)
def test_whatever_a_function_prints_is_shown(session, capsys, printed, shown):
    def speaks(tile):
        print(printed)
        return tile

    evaluate(session, total(user(speaks, build.constant(rng.random((60, 4))))))
    assert {line.split("] ")[1] for line in capsys.readouterr().out.splitlines()} == {shown}


@pytest.mark.slow
def test_a_deadline_ends_a_job(session, backend, tmp_path):
    node = build.constant(rng.random((60, 4)))
    endless = total(user(endless_in_python((tmp_path / "started").touch), node))
    with config.override(job_timeout_s=1.0), pytest.raises(JobTimeout, match="has run for more than 1 s"):
        evaluate(session, endless)
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))
    until(lambda: backend.status().jobs == ())


@pytest.mark.slow
def test_status_says_who_waits_for_whom(shared, session, tmp_path):
    """The one worker that has the first row runs a function; those who sum its result wait for it."""
    watcher = shared.connect()
    x = np.ones((60, 4))
    x[0] = 0.0
    found = []
    with Gate(tmp_path / "gate") as gate, config.override(tiling="row"):

        def waits(tile):
            if 0.0 in tile:
                gate.enter()
            return tile

        product = build.matmul(user(waits, build.constant(x)), build.constant(np.ones((4, 60))), x.dtype)
        node = build.fold("add", build.transpose(product, (1, 0)), (1,))
        thread = threading.Thread(target=lambda: found.append(evaluate(session, node)))
        thread.start()
        until(lambda: "runs waits (at " in str(watcher.status().jobs))
        until(lambda: "waits for worker 0 in stage" in str(watcher.status().jobs))
        gate.open()
        thread.join()
    np.testing.assert_allclose(found[0], np.full(60, x.sum()))
    watcher.close()


class Heavy:
    """No number, though it looks like one."""

    def __float__(self):
        raise LookupError("too heavy")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda t: t[:1, :1], r"made a tile of shape \(1, 1\)"),
        (lambda t: np.full(t.shape, "abc"), "made <U3 elements, which are no float64: could not convert"),
        (lambda t: np.full(t.shape, {}), "made object elements, which are no float64"),
        (lambda t: np.full(t.shape, Heavy(), object), "made object elements, .*: too heavy"),
    ],
    ids=["shape", "strings", "objects", "their own"],
)
def test_what_a_function_makes_and_nobody_can_take_is_said_with_its_line(session, made, said):
    node = build.constant(rng.random((60, 4)))
    with pytest.raises(UserFunctionError, match=rf"map: .* \(at .*:\d+\) {said}"):
        evaluate(session, total(user(made, node)))
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))
