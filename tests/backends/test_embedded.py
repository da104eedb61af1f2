"""The embedded backend: threads share the work, errors and Ctrl-C leave it well."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import MemoryBudgetError, UserFunctionError
from tests.test_programs import running_on


def slow(block: np.ndarray) -> np.ndarray:
    """A tenth of a second a block."""
    time.sleep(0.1)
    return block


def test_threads_share_the_blocks_of_a_stage() -> None:
    seen = set()

    def note(block: np.ndarray) -> np.ndarray:
        seen.add(threading.get_ident())
        return slow(block)

    with running_on(EmbeddedBackend(2)):
        x = sp.asarray(np.random.default_rng(0).random((2000, 200)))
        np.testing.assert_array_equal(sp.map(note, x, dtype=float).compute(), x.compute())
    assert len(seen) == 2


def test_a_failing_block_stops_the_others() -> None:
    def fails(block: np.ndarray) -> np.ndarray:
        slow(block)
        raise ValueError("bad block")

    with running_on(EmbeddedBackend(2)):
        x = sp.asarray(np.random.default_rng(0).random((4000, 1000)))
        start = time.monotonic()
        with pytest.raises(UserFunctionError, match="bad block"):
            sp.map(fails, x, dtype=float).compute()
        assert time.monotonic() - start < 2, "more than a hundred blocks were left"
        np.testing.assert_allclose((x + 1).sum().compute(), x.compute().sum() + x.size)


def test_ctrl_c_stops_a_job_and_the_next_one_runs() -> None:
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        x = sp.asarray(np.random.default_rng(0).random((4000, 1000)))
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT])
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            sp.map(slow, x, dtype=float).compute()
        assert time.monotonic() - start < 2
        np.testing.assert_allclose(float(x.sum()), x.compute().sum())


def test_a_memory_budget() -> None:
    """Arrays that fit go on fitting, and what cannot is an error that says how much it wants."""
    value = np.arange(500_000.0).reshape(500, 1000)
    backend = EmbeddedBackend(2, memory_bytes=9_000_000)
    with running_on(backend), config.override(small_bytes=0):
        x = sp.asarray(value)
        for i in range(5):
            np.testing.assert_array_equal((x * i + x).compute(), value * i + value)
        with pytest.raises(MemoryBudgetError, match="8,000,000 bytes does not fit"):
            sp.compute(x * 2 + 1, x.T @ x, x * 3 - 1)
        assert float((x * x).sum()) == (value * value).sum()
        assert not backend._store.complete()


def test_the_option_for_memory_is_heeded() -> None:
    try:
        with config.override(memory_bytes=5_000_000, small_bytes=0):
            session.embed()
            with pytest.raises(MemoryBudgetError, match="budget of 5,000,000 bytes"):
                (sp.arange(1_000_000.0) + 1).compute()
    finally:
        session.embed()
