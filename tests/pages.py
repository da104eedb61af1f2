"""What a page tells programs, as tests read it."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


def rows(url: str, name: str) -> list[dict[str, Any]]:
    """A section's rows. What changed first comes first; jobs come as they began, as the page shows them."""
    with urllib.request.urlopen(url.replace("?token", "state?token")) as answer:
        found = list(json.load(answer)["rows"].get(name, {}).values())
    return sorted(found, key=lambda job: job["begin"]) if name == "jobs" else found
