"""What every test shares: no deadlines of Hypothesis's or the compiler's, for a busy machine to pass, and an
error state that no test leaves changed for those after it.

Ctrl-C interrupts, whatever started the tests: a shell's background jobs begin with the signal ignored, and
hand that on to the processes of tests that send it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest

from spartan_ng.kernels.compiled.compile import Compiler

hypothesis.settings.register_profile("spartan", deadline=None, print_blob=True)
hypothesis.settings.load_profile("spartan")
Compiler.patience_s = 86_400.0
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def error_state_is_kept() -> Iterator[None]:
    """What is under test, and what it is compared with, set NumPy's error state for themselves only."""
    before = np.geterr()
    with np.errstate():
        yield
        after = np.geterr()
    assert after == before
