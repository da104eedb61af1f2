"""Systems to compare with take part where they are installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from benchmarks.case import Side


def installed(sides: Mapping[str, Side]) -> dict[str, Side]:
    """The sides whose library, named by the side, can be imported."""
    return {name: side for name, side in sides.items() if find_spec(name.split()[0]) is not None}
