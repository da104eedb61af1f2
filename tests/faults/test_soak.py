"""Clients of one program that come and go leave nothing in it, however many they were."""

import gc
import sys
import warnings

import numpy as np
import pytest

from spartan_ng.errors import PerformanceWarning
from spartan_ng.session import Session
from tests.cluster.conftest import start
from tests.faults.soak import JOBS, life

MOST_A_CLIENT = 4
"""Blocks of Python's allocator: less than an object for each job, and what dictionaries take as they grow."""


UNREACHABLE = 8
"""Objects that a client leaves in circles: none of a job's, and none of a connection's."""


@pytest.fixture(scope="module")
def one():
    yield from start(1)


def blocks():
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.slow
def test_clients_leave_no_objects_in_their_program(one):
    clients, jobs = 30, 6
    warnings.simplefilter("ignore", PerformanceWarning)
    for number in range(10):  # every kind of job, and what is loaded with it
        life(one, jobs, number)
    before = blocks()
    for number in range(10, 10 + clients):
        life(one, jobs, number)
    assert blocks() - before < MOST_A_CLIENT * clients


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_what_clients_leave_waits_for_no_collector(one, job):
    """What lies in circles stays for as long as the collector sees fit, and what it holds, arrays too."""
    warnings.simplefilter("ignore", PerformanceWarning)
    draw = np.random.default_rng(0)
    for is_measured in (False, True):
        gc.collect()
        gc.disable()
        try:
            backend = one.connect()
            session = Session(backend)
            for _ in range(10):
                job(session, draw)
            backend.close()
            del backend, session
            found = gc.collect()
        finally:
            gc.enable()
        assert not is_measured or found <= UNREACHABLE
