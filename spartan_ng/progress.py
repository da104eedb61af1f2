"""Progress of long work, of a plan or of an iterating algorithm: a bar on a terminal, nothing otherwise.

Work that ends within a second shows nothing, and pays nothing but a look at the clock for each report.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from functools import lru_cache
from typing import Any

from spartan_ng.config import config

DELAY_S = 1.0
"""Work that takes less shows no bar."""


class Bar:
    """Called with (done, in all) while work goes on; draws once it has taken a while."""

    def __init__(self, delay_s: float = DELAY_S, name: str = "spartan_ng", unit: str = "stage") -> None:
        self._shows_from = time.monotonic() + delay_s
        self._name, self._unit = name, unit
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Report how far the work has come."""
        if self._bar is None:
            if time.monotonic() < self._shows_from:
                return
            self._bar = _terminal_bar(total, self._name, self._unit)
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _terminal_bar(total: int, name: str, unit: str) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, desc=name, unit=unit, leave=False, file=sys.stderr, dynamic_ncols=True)


def wanted() -> bool:
    """Whether a bar is to be shown: as `config.progress` says, else where stderr is a terminal."""
    if config.progress is not None:
        return config.progress
    return sys.stderr is not None and _is_terminal(sys.stderr)


@lru_cache(maxsize=4)
def _is_terminal(stream: Any) -> bool:
    """Asked once a stream: the answer costs more than planning a loop's second iteration."""
    return bool(stream.isatty())


def steps(total: int, name: str) -> Iterator[int]:
    """The numbers 1 to `total`, with a bar that counts the iterations of an algorithm called `name`."""
    with progress(name, "iteration") as bar:
        for step in range(1, total + 1):
            yield step
            if bar is not None:
                bar(step, total)


def progress(name: str = "spartan_ng", unit: str = "stage") -> AbstractContextManager[Bar | None]:
    """A bar for the work inside the `with` block, or None where nobody would see it."""
    return closing(Bar(name=name, unit=unit)) if wanted() else nullcontext()
