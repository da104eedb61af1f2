"""Progress of long work, of a plan or of an iterating algorithm: a bar on a terminal or in a notebook.

Work that ends within a second shows nothing, and pays nothing but a look at the clock for each report.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from functools import lru_cache
from typing import Any

from spartan_ng.config import config

_EVERY_S = 0.1
"""It is drawn so often at most."""
_SHOWN = "{l_bar}{bar}| {n:.4g}/{total} {unit}s [{elapsed}<{remaining}]"
_SIZE = 80, 24
"""Of a terminal that does not know its size, as those that programs make: tqdm would draw nothing."""
_NONE = nullcontext()
DELAY_S = 1.0
"""Work that takes less shows no bar."""


class Bar:
    """Called with (done, in all) while work goes on; draws once it has taken a while."""

    def __init__(self, name: str = "spartan_ng", unit: str = "stage") -> None:
        self._began = time.monotonic()
        self._shows_from = self._began + DELAY_S
        self._name, self._unit = name, unit
        self._bar: Any = None
        self._lock = threading.Lock()

    def __call__(self, done: float, total: int) -> None:
        """Report how far the work has come, from any thread."""
        now = time.monotonic()
        if now < self._shows_from or not self._lock.acquire(blocking=False):
            return
        try:
            self._shows_from = now + _EVERY_S
            self._draw(done, total)
        finally:
            self._lock.release()

    def _draw(self, done: float, total: int) -> None:
        if self._bar is None:
            make = _notebook_bar if in_notebook() else _terminal_bar
            self._bar = make(total, self._name, self._unit)
            self._bar.start_t -= time.monotonic() - self._began  # what was done unseen took its time, too
        self._bar.total = total
        self._bar.n = max(done, self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _terminal_bar(total: int, name: str, unit: str) -> Any:
    from tqdm import tqdm

    size: dict[str, Any] = {"dynamic_ncols": True}
    with suppress(OSError, ValueError):  # it is no terminal
        columns, lines = os.get_terminal_size(sys.stderr.fileno())
        if not columns or not lines:
            size = {"ncols": columns or _SIZE[0], "nrows": lines or _SIZE[1]}
    shown = {"leave": False, "bar_format": _SHOWN, "file": sys.stderr, **size}
    return tqdm(total=total, desc=name, unit=unit, **shown)


def _notebook_bar(total: int, name: str, unit: str) -> Any:
    """A widget where ipywidgets is installed, else a line of text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not installed
        from tqdm.auto import tqdm

        return tqdm(total=total, desc=name, unit=unit, leave=False, bar_format=_SHOWN)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and bool(kernel.IPKernelApp.initialized())


def wanted() -> bool:
    """Whether a bar is shown: as `config.progress` says, else on a terminal and in notebooks."""
    if config.progress is not None:
        return config.progress
    if in_notebook():
        return True
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
    return closing(Bar(name=name, unit=unit)) if wanted() else _NONE
