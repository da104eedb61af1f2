"""A drawn part of `python -m tests.budgets`: NumPy's answers within a quarter of the array."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.budgets.__main__ import made, outcome
from tests.budgets.operations import BY_PLACES, OPERATIONS, OVER


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["mapped", "computed"])
@pytest.mark.parametrize("name", [name for name in [*OPERATIONS, *BY_PLACES] if name not in OVER])
def test_a_program_keeps_to_its_budget(name: str, kind: str, tmp_path: Path) -> None:
    """160 MB under a budget of 40 MB: what the process has for itself, by the kernel's word; the command asks
    for 1.2 times the budget."""
    peak, wrong = outcome(name, kind, 0, made(str(tmp_path)), bound=1.5)
    assert not wrong, f"{wrong}, {peak:,} bytes"
