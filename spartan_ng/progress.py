"""Progress of long work: a bar on a terminal, nothing otherwise.

Work that ends within a second shows nothing, and pays nothing but a look at the clock for each report.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from spartan_ng.config import config

DELAY_S = 1.0
"""Work that takes less shows no bar."""


class Bar:
    """Called with (stages done, stages in all) while a plan runs; draws once it has taken a while."""

    def __init__(self, delay_s: float = DELAY_S) -> None:
        self._shows_from = time.monotonic() + delay_s
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Report how far the work has come."""
        if self._bar is None:
            if time.monotonic() < self._shows_from:
                return
            self._bar = _terminal_bar(total)
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _terminal_bar(total: int) -> Any:
    from tqdm import tqdm

    return tqdm(
        total=total, desc="spartan_ng", unit="stage", leave=False, file=sys.stderr, dynamic_ncols=True
    )


def wanted() -> bool:
    """Whether a bar is to be shown: as `config.progress` says, else where stderr is a terminal."""
    if config.progress is not None:
        return config.progress
    return sys.stderr is not None and _is_terminal(sys.stderr)


@lru_cache(maxsize=4)
def _is_terminal(stream: Any) -> bool:
    """Asked once a stream: the answer costs more than planning a loop's second iteration."""
    return bool(stream.isatty())


@contextmanager
def progress() -> Iterator[Bar | None]:
    """A bar for the work inside the `with` block, or None where nobody would see it."""
    if not wanted():
        yield None
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.close()
