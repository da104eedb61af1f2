"""Options of the embedded worker hold from the next plan on, whenever they are set."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session as sessions
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random(1 << 16)


@pytest.fixture(autouse=True)
def embedded() -> Iterator[EmbeddedBackend]:
    backend = EmbeddedBackend()
    with running_on(backend), config.override(small_bytes=0):
        numpy.asarray(np.array(VALUE) + 1)  # the first computation
        yield backend
    backend.close()


def _explained() -> str:
    return str(np.explain(np.array(VALUE) * 2 + 1))


def test_memory_is_limited_from_the_next_plan_on_and_no_more_behind_it(embedded: EmbeddedBackend) -> None:
    explained = _explained()
    with config.override(memory_bytes=100_000):
        found = (np.array(VALUE) * 2)._force()
        assert sessions.current().backend is embedded
        assert (embedded.profile.limited, embedded.profile.memory_bytes) == (True, 100_000)
        assert is_mapped(found)
        numpy.testing.assert_array_equal(found, VALUE * 2)
    assert not is_mapped((np.array(VALUE) * 2)._force())
    assert _explained() == explained


def test_threads_follow(embedded: EmbeddedBackend) -> None:
    before = embedded.threads
    with config.override(threads=3):
        assert float((np.array(VALUE) * 2).sum()) == pytest.approx(VALUE.sum() * 2)
        assert embedded.threads == embedded._executor.threads == 3
    assert float((np.array(VALUE) * 2).sum()) == pytest.approx(VALUE.sum() * 2)
    assert embedded.threads == embedded._executor.threads == before


def test_what_runs_meanwhile_goes_on_as_it_began(embedded: EmbeddedBackend) -> None:
    begun, go_on, found = threading.Event(), threading.Event(), []

    def wait(block: numpy.ndarray) -> numpy.ndarray:
        begun.set()
        go_on.wait()
        return block * 2

    def work() -> None:
        x = np.map(wait, np.array(VALUE), dtype=float)
        found.append(numpy.asarray(np.sort(x + 1)))

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    with config.override(memory_bytes=100_000, threads=1):
        numpy.testing.assert_array_equal(np.array(VALUE) - 3, VALUE - 3)
        go_on.set()
        thread.join()
    numpy.testing.assert_array_equal(found[0], numpy.sort(VALUE * 2 + 1))
    numpy.testing.assert_array_equal(np.array(VALUE) - 4, VALUE - 4)


def test_a_backend_that_was_made_with_others_keeps_them() -> None:
    backend = EmbeddedBackend(2, 10_000_000)
    with running_on(backend), config.override(memory_bytes=100_000, threads=1):
        numpy.asarray(np.array(VALUE) + 1)
        assert (backend.threads, backend.profile.memory_bytes) == (2, 10_000_000)
    backend.close()
