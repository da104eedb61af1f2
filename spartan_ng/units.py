"""Shapes, bytes and seconds as people read them."""

from __future__ import annotations


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as `2000000×50`, or `scalar`."""
    return "×".join(map(str, shape)) or "scalar"


_ROUNDED = 999.5
"""From here on three digits are four."""


def size_text(n: int) -> str:
    """Bytes with a fitting unit."""
    value, units = float(n), ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]
    while value >= _ROUNDED and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{n} B" if units[0] == "B" else f"{value:.3g} {units[0]}"


def time_text(s: float) -> str:
    """Seconds with a fitting unit."""
    if s >= 999.5e-3:
        return f"{s:,.0f} s" if s >= _ROUNDED else f"{s:.3g} s"
    return f"{s * 1e3:.3g} ms" if s >= 999.5e-6 else f"{s * 1e6:.3g} µs"


class Listing(str):
    """A text of several lines that shows as it is, not as a literal, where Python shows values."""

    __slots__ = ()
    __repr__ = str.__str__
