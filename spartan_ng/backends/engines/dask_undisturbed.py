"""Read by dask's workers that were started for a script: Ctrl-C in its terminal is the script's own.

Else each of them ends with a traceback of its own between the script's lines.
"""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """What dask calls in a worker that begins, on its main thread."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
