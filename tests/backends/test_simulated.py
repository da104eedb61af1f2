"""Simulated workers: a thread each for every job, as real ones have."""

from __future__ import annotations

import threading

import numpy as np

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from tests.test_programs import running_on


def test_a_job_waits_for_no_thread_of_another() -> None:
    """A function that a job runs may begin one, while all workers wait for what it gives."""
    backend, gate = SimulatedBackend(3), threading.Event()
    for _ in range(backend.workers):
        backend._threads.submit(gate.wait)
    try:
        with running_on(backend), config.override(small_bytes=0):
            assert float(sp.sum(sp.asarray(np.ones((60, 4))) * 2)) == 480
    finally:
        gate.set()
