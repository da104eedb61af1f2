"""What a page tells programs, as tests read it."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


def rows(url: str, name: str) -> list[dict[str, Any]]:
    """A section's rows. What changed first comes first; jobs come as they began, as the page shows them."""
    found = list(_section(url, name).values())
    return sorted(found, key=lambda job: job["begin"]) if name == "jobs" else found


def keys(url: str, name: str) -> list[str]:
    """What a section's rows are called."""
    return list(_section(url, name))


def _section(url: str, name: str) -> dict[str, dict[str, Any]]:
    with urllib.request.urlopen(url.replace("?token", "state?token")) as answer:
        found: dict[str, dict[str, Any]] = json.load(answer)["rows"].get(name, {})
    return found
