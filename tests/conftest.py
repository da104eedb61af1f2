"""What every test shares: no deadlines, which a busy machine would pass, and settings that no
test leaves changed for those after it. An array of a megabyte is large here, as it would be of sixteen: what
is planned, moved and compiled has to be small for thousands of questions.

Ctrl-C interrupts, whatever started the tests: a shell's background jobs begin with the signal ignored, and
hand that on to the processes of tests that send it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from spartan_ng import kept_plans, session
from spartan_ng.api.core.quick import read_after
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config, environment_variable
from spartan_ng.costs.measured import PROFILE_VARIABLE
from spartan_ng.kernels import user
from spartan_ng.kernels.compiled import select, trust
from spartan_ng.kernels.compiled.compile import Compiler
from tests.sampling import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_configure_node,
    pytest_generate_tests,
    pytest_report_header,
    same_draws,
    some,
)

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_configure_node",
    "pytest_generate_tests",
    "pytest_report_header",
    "same_draws",
    "some",
]

os.environ[PROFILE_VARIABLE] = "assumed"  # plans are the same on every machine, also those of processes
Compiler.patience_s = config.timeout_s = 86_400.0
os.environ[environment_variable("timeout_s")] = str(config.timeout_s)  # whoever waits for nobody says so
# Which kernels lie on disk depends on the tests before.
vars(select)["SOON_S"], vars(trust)["WARM"] = float("inf"), 1
vars(kept_plans)["MOST"] = 0  # so does which plans do, and some tests have passes go wrong
read_after(0)
config.small_bytes = 1 << 20
config.check = True
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What is there before the first test stays: thousands of tests, which every collection would look at."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def settings_are_kept() -> Iterator[None]:
    """What is under test, and what it is compared with, set options and error states for themselves, and run
    programs elsewhere: those after them run where they did, or as the options say.

    An interrupt that waits for a function that never comes back from C is taken back: Python 3.11 stands in
    whatever is traced or profiled as long as it waits, and later tests count calls.
    """
    before, ran = np.geterr(), session.current().backend
    with np.errstate(), config.override():
        yield
        after = np.geterr()
    assert after == before
    runs = session.current().backend
    assert runs is ran or (isinstance(runs, EmbeddedBackend) and runs.follows_options)
    waiting = [thread for thread, call in list(user._calls.items()) if call.hit]
    for thread in waiting:
        user._raise_in(thread, ctypes.py_object())
    if waiting:  # the sign that one waits goes with the next that arrives
        with suppress(user.Interrupted):
            user._raise_in(threading.get_ident(), user.Interrupted)
            for _ in range(1000):
                pass


@pytest.fixture(autouse=True)
def nothing_stays_on_the_driver() -> Iterator[None]:
    """What is asked is what workers do; see tests/cluster/test_home.py for what they do not."""
    with config.override(disabled_passes=frozenset({"home"})):
        yield
