"""What notebooks and IPython show of an error: the user's lines, and not ours between them.

Our own errors say so themselves. NumPy's errors and Ctrl-C, which come through this package as well, are
shown so where IPython runs when the package is imported; `%tb` shows all frames of these.
"""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

from spartan_ng.callers import cells, ipython, is_internal, is_ours

_SHOWN, _FRAMES = 12, 3
"""Lines of a message, and frames of the user's, that are shown."""


def folded(error: BaseException) -> list[str]:
    """The user's frames and what was wrong, in 24 lines at most."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not is_internal(f.filename)]
    said = str(error).splitlines()
    if len(said) > _SHOWN:
        said = [*said[: _SHOWN // 2], "...", *said[-_SHOWN // 2 :]]
    name = type(error).__name__
    lines = "".join(traceback.format_list(frames[-_FRAMES:])).splitlines()
    lines += [""] * bool(lines) + [f"{name}: {said[0]}" if said else name, *said[1:]]
    return [_with_cells(line) for line in lines]


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
    ours = any(is_ours(f.filename) for f in traceback.extract_tb(trace))
    if not ours or isinstance(error, AssertionError) or hasattr(error, "_render_traceback_"):
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        return
    lines = folded(error)
    error._render_traceback_ = lambda: [*lines, "(%tb shows all frames)"]  # type: ignore[attr-defined]
    try:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    finally:
        del error._render_traceback_  # type: ignore[attr-defined]
