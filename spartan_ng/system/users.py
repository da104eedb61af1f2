"""Who this process belongs to."""

from __future__ import annotations

import os


def user_id() -> int | None:
    """The number of the user in whose name this process acts; None where users have none."""
    return os.geteuid() if hasattr(os, "geteuid") else None
