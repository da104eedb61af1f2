"""While plans are made nobody looks for garbage, because they leave none."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from benchmarks.planning import gradient_steps, shared_values
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.garbage import collected_later
from spartan_ng.graph.node import topological
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from spartan_ng.plan.lower import lower
from spartan_ng.plan.settings import Settings


@pytest.fixture
def collecting() -> Iterator[None]:
    """The collector is on, as in most programs, and afterwards."""
    gc.enable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("program", [gradient_steps, shared_values])
def test_planning_leaves_no_cycles(collecting: None, program, workers: int) -> None:
    with config.override(small_bytes=0, check=False):
        roots = run_passes(PASSES, [program(6)], frozenset())
        order = topological(roots)
        settings = Settings(Profile(workers=workers))
        lower(order, roots, settings, "first")  # what is kept for all plans is made
        gc.collect()
        gc.disable()
        lower(order, roots, settings, "second")
        assert gc.collect() == 0


def test_it_goes_on_after_the_last_has_left(collecting: None) -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collected_later():
            inside.set()
            leave.wait()

    def fails() -> None:
        with collected_later():
            thread.start()
            inside.wait()
            assert not gc.isenabled()
            raise ZeroDivisionError

    thread = threading.Thread(target=other)
    with pytest.raises(ZeroDivisionError):
        fails()
    assert not gc.isenabled(), "another thread is inside"
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_program_that_has_switched_it_off_has_it_off(collecting: None) -> None:
    gc.disable()
    with collected_later():
        assert not gc.isenabled()
    assert not gc.isenabled()
