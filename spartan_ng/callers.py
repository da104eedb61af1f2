"""The user's line that called this package.

It is the innermost one that no library has: a program that asks xarray, or that a command line, pytest or
runpy has begun, is told of its own lines. Where libraries call alone (a tool that lies in site-packages, one
of our apps from the command line), it is the innermost of theirs.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import numpy

_PACKAGE = os.path.dirname(__file__) + os.sep
_APPS = _PACKAGE + "apps" + os.sep
_NUMPY = os.path.dirname(numpy.__file__) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_SCRIPTS = sysconfig.get_path("scripts") + os.sep
_LIBRARIES = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))
USERS, LIBRARYS, NOBODYS = range(3)
"""Whose a frame is: a program of the user's; a library's, also an app of ours, which is shown where there is
no other; or what lies under all programs."""


Step = tuple[CodeType, int]


class UserLine(NamedTuple):
    """A line of a file, as people are told of it."""

    file: str
    """Without its folder; a notebook's cell by its number."""
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class _Whose(dict[str, int]):
    """Whose files are, by their names; found out once each."""

    def __missing__(self, filename: str) -> int:
        found = self[filename] = _whose(filename)
        return found


whose = _Whose()


def _whose(filename: str) -> int:
    if filename.startswith((_APPS, _SCRIPTS)):
        return LIBRARYS
    if is_internal(filename) or filename.startswith("<frozen "):
        return NOBODYS
    return LIBRARYS if any(folder in filename for folder in _LIBRARIES) else USERS


def is_ours(filename: str) -> bool:
    """Whether code of this file is this package's."""
    return filename.startswith(_PACKAGE)


def is_internal(filename: str) -> bool:
    """Whether code of this file is this package's, NumPy's, IPython's or the standard library's."""
    if filename.startswith((_PACKAGE, _NUMPY)) or f"{os.sep}IPython{os.sep}" in filename:
        return True
    return filename.startswith(_STANDARD) and "site-packages" not in filename


def user_line() -> tuple[str, int]:
    """The file and line of the user's that called this package."""
    frame = user_frame()[1]
    return frame.f_code.co_filename, frame.f_lineno


def user_place() -> str:
    """The same for people."""
    file, line = user_line()
    return str(UserLine(shown_name(file), line))


def user_frame() -> tuple[int, FrameType]:
    """The user's frame, and how many frames it is above the caller's own, that one included."""
    return frame_of_the_users(sys._getframe(1), 1)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the user's line that called this package."""
    warnings.warn(message, category, stacklevel=user_frame()[0])


_CALL = (lambda function, args, keywords: function(*args, **keywords)).__code__


def for_user(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """What a function of others gives, called from the user's line: warnings of whoever called it name that.

    Nothing of the process is changed meanwhile. `warnings.catch_warnings` would change filters for all
    threads, of which the one that leaves last puts back what another has set.
    """
    frame = frame_of_the_users(sys._getframe(1), 1)[1]
    code = _CALL.replace(co_filename=frame.f_code.co_filename, co_firstlineno=frame.f_lineno)
    return FunctionType(code, frame.f_globals)(function, args, keywords)


def frame_of_the_users(frame: FrameType, level: int) -> tuple[int, FrameType]:
    """The user's frame from this one on, which is of `level`, and its level."""
    second = None
    while found := whose[frame.f_code.co_filename]:
        if second is None and found == LIBRARYS:
            second = level, frame
        if frame.f_back is None:
            return second or (level, frame)
        level, frame = level + 1, frame.f_back
    return level, frame


def user_step() -> Step:
    """The user's code and the instruction in it that called this package: `place_of` makes a line of it."""
    frame = frame_of_the_users(sys._getframe(1), 1)[1]
    return frame.f_code, frame.f_lasti


def place_of(code: CodeType, instruction: int) -> UserLine:
    """Where an instruction was written."""
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return UserLine(shown_name(code.co_filename), next(lines, None) or code.co_firstlineno)


def listed_places(places: Iterable[UserLine]) -> str:
    """Places in order, as in `prog.py:3, 7-9; other.py:1`."""
    lines: dict[str, list[int]] = {}
    for place in sorted(set(places)):
        lines.setdefault(place.file, []).append(place.line)
    return "; ".join(f"{file}:{_spans(found)}" for file, found in lines.items())


def _spans(lines: list[int]) -> str:
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][-1] + 1:
            spans[-1][1:] = [line]
        else:
            spans.append([line])
    return ", ".join("-".join(map(str, span)) for span in spans)


def shown_name(filename: str) -> str:
    """What people call a file of code: its name, or the number of a notebook's cell."""
    number = cells().get(filename)
    return os.path.basename(filename) if number is None else f"In[{number}]"


def cells() -> dict[str, int]:
    """The numbers of a notebook's cells, by the files that stand for them."""
    shell = ipython()
    return {} if shell is None else getattr(shell.compile, "_filename_map", {})


def ipython() -> Any:
    """IPython's shell, where it runs; else None."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()
