"""What notebooks and IPython show of an error: the user's lines, and not ours between them.

Our own errors say so themselves. NumPy's errors and Ctrl-C, which come through this package as well, are
shown so where IPython runs when the package is imported; `%tb` shows all frames of these.
"""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Iterator
from itertools import pairwise
from types import TracebackType
from typing import Any

from spartan_ng.callers import cells, ipython, is_internal, is_ours

_LINES, _SHOWN, _FRAMES, _CHAINED = 25, 12, 3, 3
"""Lines in all, of a message, frames of the user's and errors of a chain that are shown at most."""
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_FRAME = re.compile(r'(\s*)File "(.+)", line (\d+)')


def folded(error: BaseException) -> list[str]:
    """The user's frames and what was wrong, in 25 lines at most, with the errors that led to it."""
    chain = _chain(error)
    lines: list[str] = []
    for link, one in chain:
        lines += ["", link, ""] if lines else []
        lines += _one(one, len(chain))
    return [_with_cells(line) for line in lines]


def _chain(error: BaseException) -> list[tuple[str, BaseException]]:
    """An error after those that it was raised from, each with what joins it to the one before.

    What was handled inside of this package and its libraries, and not in the user's code, is none of these.
    """
    found: list[tuple[str, BaseException]] = []
    last: BaseException | None = error
    while last is not None and len(found) < _CHAINED:
        cause = last.__cause__
        context = None if last.__suppress_context__ else last.__context__
        before = cause if cause is not None else context
        found.insert(0, (_CAUSE if cause is not None else _CONTEXT, last))
        last = before if before is not None and _frames(before) else None
    return found


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The user's frames."""
    return [f for f in traceback.extract_tb(error.__traceback__) if not is_internal(f.filename)]


def _one(error: BaseException, shares: int) -> list[str]:
    """An error of a chain of so many."""
    most = min(_SHOWN, (_LINES - 3 * (shares - 1)) // shares - 3)
    said = list(_with_sources(str(error).splitlines()))
    if len(said) > most:
        said = [*said[: most // 2], "...", *said[-(most - most // 2 - 1) or len(said) :]]
    name = type(error).__name__
    lines = "".join(traceback.format_list(_frames(error)[-(_FRAMES // shares) :])).splitlines()
    lines += [""] * (bool(lines) and shares == 1)
    return [*lines, f"{name}: {said[0]}" if said else name, *said[1:]]


def _with_sources(lines: list[str]) -> Iterator[str]:
    """The lines, with the source after each frame that a worker had none of: cells are known here only."""
    for line, after in pairwise([*lines, ""]):
        yield line
        frame = _FRAME.match(line)
        if frame is not None and not after.startswith(frame[1] + "  "):
            source = linecache.getline(frame[2], int(frame[3])).strip()
            if source:
                yield f"{frame[1]}  {source}"


def _with_cells(line: str) -> str:
    """The line, where files that stand for cells have the cells' own names."""
    for filename, number in cells().items():
        line = line.replace(f'File "{filename}"', f"Cell In[{number}]").replace(filename, f"In[{number}]")
    return line


def fold_in_ipython() -> None:
    """Have IPython, if it runs, fold errors that came through this package; who has its own way keeps it."""
    shell = ipython()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception, KeyboardInterrupt), _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show an error as IPython does, folded if it is a user's mistake that we or NumPy noticed."""
    frames = [f for _, one in _chain(error) for f in traceback.extract_tb(one.__traceback__)]
    ours = any(is_ours(f.filename) for f in frames)
    if not ours or isinstance(error, AssertionError) or hasattr(error, "_render_traceback_"):
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        return
    lines = folded(error)
    error._render_traceback_ = lambda: [*lines, "(%tb shows all frames)"]  # type: ignore[attr-defined]
    try:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    finally:
        del error._render_traceback_  # type: ignore[attr-defined]
