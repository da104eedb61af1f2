"""What does for few operands what a function of NumPy's does, and sooner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

QUICKER: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What does at once, for NumPy's values, what a function of NumPy's does, with the same arguments."""
