"""What every test shares: no deadlines of Hypothesis's or the compiler's, for a busy machine to pass."""

from __future__ import annotations

import hypothesis

from spartan_ng.kernels.compiled.compile import Compiler

hypothesis.settings.register_profile("spartan", deadline=None, print_blob=True)
hypothesis.settings.load_profile("spartan")
Compiler.patience_s = 86_400.0
