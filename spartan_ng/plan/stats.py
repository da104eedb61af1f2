"""What the stages of a run took."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class StageStats(Struct):
    """What one stage took: seconds from the end of the one before, on the slowest worker of each (or on one);
    bytes received from other workers; the bytes made where these cannot be known before (users' updates, CSR
    tiles); and tasks that others took over."""

    seconds: float = 0.0
    bytes_moved: int = 0
    bytes_made: int = 0
    stolen: int = 0
    busy_s: float = 0.0
    """On one worker: for how long it worked, and did not wait for others; 0 where that was not measured."""


Made = Sequence[StageStats]
