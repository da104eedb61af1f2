"""Clients of one program that come and go leave nothing in it, however many they were."""

import gc
import sys
import warnings

import pytest

from spartan_ng.errors import PerformanceWarning
from tests.cluster.conftest import start
from tests.faults.soak import life

MOST_A_CLIENT = 4
"""Blocks of Python's allocator: less than an object for each job, and what dictionaries take as they grow."""


@pytest.fixture(scope="module")
def one():
    yield from start(1)


def blocks():
    gc.collect()
    return sys.getallocatedblocks()


def test_clients_leave_no_objects_in_their_program(one):
    clients, jobs = 30, 6
    warnings.simplefilter("ignore", PerformanceWarning)
    for number in range(10):  # every kind of job, and what is loaded with it
        life(one, jobs, number)
    before = blocks()
    for number in range(10, 10 + clients):
        life(one, jobs, number)
    assert blocks() - before < MOST_A_CLIENT * clients
