"""What every test shares: no deadlines of Hypothesis's or the compiler's, for a busy machine to pass.

Ctrl-C interrupts, whatever started the tests: a shell's background jobs begin with the signal ignored, and
hand that on to the processes of tests that send it.
"""

from __future__ import annotations

import signal

import hypothesis

from spartan_ng.kernels.compiled.compile import Compiler

hypothesis.settings.register_profile("spartan", deadline=None, print_blob=True)
hypothesis.settings.load_profile("spartan")
Compiler.patience_s = 86_400.0
signal.signal(signal.SIGINT, signal.default_int_handler)
