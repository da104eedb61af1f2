"""Threads that help with one piece of work at a time."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest

from spartan_ng.worker.scheduling.threads import Threads
from tests.waiting import until


def barrier(count, seen):
    """Work that ends only once so many threads do it."""
    meeting = threading.Barrier(count)

    def work():
        seen.append(threading.get_ident())
        meeting.wait()

    return work


def test_all_work_side_by_side_again_and_again():
    threads = Threads(3)
    for helpers in (3, 1, 0, 2):
        seen: list[int] = []
        threads.run(barrier(helpers + 1, seen), helpers)
        assert len(set(seen)) == helpers + 1
        assert threading.get_ident() in seen
    threads.close()


@pytest.mark.parametrize("here", [True, False])
def test_what_one_raises_is_raised_after_all_have_ended(here):
    threads, ended, main = Threads(2), [], threading.get_ident()
    meeting = threading.Barrier(3)

    def work():
        meeting.wait()
        if (threading.get_ident() == main) == here:
            raise KeyError("mine")
        until(lambda: sys._current_frames()[main].f_code is not work.__code__)  # who raises has left
        ended.append(1)

    with pytest.raises(KeyError, match="mine"):
        threads.run(work, 2)
    assert len(ended) == (2 if here else 1)
    seen: list[int] = []
    threads.run(barrier(3, seen), 2)  # they go on afterwards
    assert len(set(seen)) == 3


def test_several_callers_share_the_threads():
    threads = Threads(1)
    counts: list[list[int]] = [[] for _ in range(4)]

    def call(count):
        for _ in range(50):
            threads.run(lambda: count.append(1), 1)

    callers = [threading.Thread(target=call, args=(count,)) for count in counts]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert [len(c) for c in counts] == [100] * 4


def test_who_sees_that_all_is_done_does_not_wait():
    threads, slow, started = Threads(1), threading.Event(), threading.Event()
    main = threading.get_ident()

    def work():
        if threading.get_ident() == main:
            started.wait()
        else:
            started.set()
            slow.wait()

    threads.run(work, 1, is_done=lambda: True)
    assert not slow.is_set()
    slow.set()
    seen: list[int] = []
    threads.run(barrier(2, seen), 1, is_done=lambda: False)
    assert len(set(seen)) == 2
    threads.close()


def test_helpers_keep_off_the_callers_processor():
    processors = os.sched_getaffinity(0)
    if len(processors) < 2:
        pytest.skip("one processor")
    threads, before = Threads(2), running()
    try:
        for own in sorted(processors)[:2]:
            os.sched_setaffinity(0, {own})  # so that the caller stays where it is
            os.sched_setaffinity(0, processors)
            threads.run(barrier(3, []), 2)
            avoided = threads._avoided
            for thread in running() - before:
                assert os.sched_getaffinity(thread.native_id) == processors - {avoided}
    finally:
        os.sched_setaffinity(0, processors)
        threads.close()


def test_helpers_of_who_waits_run_on_all_processors():
    """The one thread of each of two workers was sent to the same processor, and the other one was idle."""
    threads, before = Threads(2, waits=True), running()
    processors = os.sched_getaffinity(0)
    for _ in range(3):
        threads.run(lambda: None, 2, there=barrier(2, []))
        for thread in running() - before:
            assert os.sched_getaffinity(thread.native_id) == processors
    threads.close()


def running():
    return {t for t in threading.enumerate() if t.name == "blocks"}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "forget"])
def test_threads_end_with_their_owner(how):
    before = running()
    threads = Threads(2)
    threads.run(barrier(3, []), 2)
    own = running() - before
    assert len(own) == 2
    if how == "close":
        threads.close()
        seen: list[int] = []
        threads.run(lambda: seen.append(1), 2)
        assert seen == [1]
    del threads
    gc.collect()
    until(lambda: not own & running())


def test_a_fork_starts_its_own():
    threads = Threads(1)
    threads.run(barrier(2, []), 1)
    child = os.fork()
    if child == 0:
        try:
            threads.run(barrier(2, []), 1)
        except BaseException:  # noqa: BLE001  # a child of a fork must not go on with the tests
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
