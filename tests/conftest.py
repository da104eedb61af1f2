"""What every test shares: Hypothesis without deadlines, so that a busy machine fails no test."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("spartan", deadline=None, print_blob=True)
hypothesis.settings.load_profile("spartan")
