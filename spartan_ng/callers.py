"""The user's line that called this package."""

from __future__ import annotations

import os
import sys
from types import FrameType

_PACKAGE = os.path.dirname(__file__) + os.sep


def is_ours(filename: str) -> bool:
    """Whether code of this file is this package's."""
    return filename.startswith(_PACKAGE)


def user_line() -> tuple[str, int]:
    """The file and line of the user's that called this package."""
    frame = user_frame()[1]
    return frame.f_code.co_filename, frame.f_lineno


def user_place() -> str:
    """The same for people, without the folder."""
    file, line = user_line()
    return f"{os.path.basename(file)}:{line}"


def user_frame() -> tuple[int, FrameType]:
    """The user's frame, and how many frames it is above the caller's own, that one included."""
    level, frame = 0, sys._getframe(0)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level, frame
