"""Warnings that name the user's line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).parents[1])


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the user's line that called this package."""
    warnings.warn(message, category, stacklevel=_place()[0] - 1)


def user_line() -> tuple[str, int]:
    """The file and line of the user's that called this package."""
    frame = _place()[1]
    return frame.f_code.co_filename, frame.f_lineno


def _place() -> tuple[int, FrameType]:
    """The user's frame, and how many frames it is above this one, this one included."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level, frame


__all__ = ["user_line", "warn_user"]
