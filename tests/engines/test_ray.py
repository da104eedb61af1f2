"""Plans on a real Ray, whose processes are killed."""

from __future__ import annotations

import os

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError
from tests.engines.test_plans import PROGRAMS, check_one
from tests.waiting import killing_one

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def engine():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture
def on_ray(engine):
    before = session.current().backend
    np.connect("ray")
    with config.override(small_bytes=0):
        yield
    session.current().backend.retire()
    session.use(before)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_numpys_answer(on_ray, name):
    check_one(name)


def test_a_process_that_is_killed_costs_no_answer(on_ray, tmp_path):
    x = np.array(numpy.arange(600.0).reshape(60, 10))
    with killing_one(tmp_path / "gate") as slow:
        found = numpy.asarray(np.map(slow, x * 2, dtype=float).sum(axis=0))
    numpy.testing.assert_allclose(found, (numpy.arange(600.0).reshape(60, 10) * 2 + 1).sum(axis=0))


def fails(block):
    raise ValueError("mine")


def exits(block):
    os._exit(3)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (fails, r"fails raised ValueError: mine\n.*test_ray.py"),
        # Ray starts a process anew for each of its tries: minutes.
        pytest.param(exits, r"exits \(at .*test_ray.py:\d+\)", marks=pytest.mark.whole),
    ],
)
def test_errors_of_functions_come_with_the_users_line(on_ray, function, said):
    x = np.array(numpy.ones((60, 4)))
    with pytest.raises(UserFunctionError, match=said):
        np.map(function, x, dtype=float).compute()
    assert float((x * 2).sum()) == 480.0
