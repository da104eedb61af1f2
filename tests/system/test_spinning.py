"""Threads of BLAS sleep soon after they have worked, whoever imports what first."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="OpenBLAS's threads are known on Linux")

VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
THREADS = "import os; threads = lambda: set(os.listdir('/proc/self/task'))\n"
WORK = """
a = numpy.random.default_rng(0).random((400, 400)) + numpy.eye(400)
assert numpy.allclose(a @ numpy.linalg.solve(a, a), a)
import scipy.linalg
assert numpy.allclose(a @ scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), a), a)
"""


def _said(script: str, **variables: str) -> str:
    """What a script prints in a process of its own, with two threads for BLAS."""
    environment = {k: v for k, v in os.environ.items() if k != VARIABLE and not k.endswith("_NUM_THREADS")}
    environment |= {"OPENBLAS_NUM_THREADS": "2", **variables}
    command = [sys.executable, "-c", THREADS + script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_numpy_reads_it_as_it_is_loaded() -> None:
    script = f"import spartan_ng, numpy\nprint(os.environ[{VARIABLE!r}]){WORK}"
    assert int(_said(script)) < 28


@pytest.mark.slow
@pytest.mark.parametrize("first", ["numpy", "numpy, scipy.linalg"])
def test_threads_that_are_there_are_begun_anew(first: str) -> None:
    """One for each library that is loaded: who kept its threads would go on as it was. What has ended may be
    there a moment longer."""
    script = f"import {first}\nbefore = threads()\nimport spartan_ng\n"
    script += f"while len(before & threads()) > 1: os.sched_yield()\nprint(*before & threads()){WORK}"
    assert len(_said(script).split()) == 1


@pytest.mark.slow
def test_nothing_is_begun_anew_where_other_threads_may_be_in_it() -> None:
    script = f"""
import numpy, threading
done = threading.Event()
other = threading.Thread(target=done.wait)
other.start()
before = threads()
import spartan_ng
print(before <= threads())
done.set(){WORK}"""
    assert _said(script) == "True"


@pytest.mark.slow
def test_who_has_decided_is_not_overruled() -> None:
    script = "import numpy\nbefore = threads()\nimport spartan_ng\n"
    script += f"print(os.environ[{VARIABLE!r}], before <= threads())"
    assert _said(script, **{VARIABLE: "28"}) == "28 True"
