"""Logs of masters and workers: lines for people, or an object a line for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LEVELS = ("debug", "info", "warning", "error")
FACTS = "facts"
"""`extra={FACTS: {...}}` of a line: what it says, for programs."""


class LogFormat(logging.Formatter):
    """`2026-01-31 12:00:00,123 spartan_ng.master: ...`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(name)s: %(message)s")


class Objects(logging.Formatter):
    """One JSON object a line: `time` in UTC, `level`, `logger`, `process`, `message`, `error` with its
    traceback, and the line's facts."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        found: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps({**found, **getattr(record, FACTS, {})}, default=str)


def set_up(level: str = "warning", as_json: bool = False) -> None:
    """Log to stderr from `level` on; other libraries' lines from "warning" on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Objects() if as_json else LogFormat())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("spartan_ng").setLevel(level.upper())
