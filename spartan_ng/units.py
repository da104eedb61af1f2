"""Shapes, bytes and seconds as people read them."""

from __future__ import annotations


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as `2000000×50`, or `scalar`."""
    return "×".join(map(str, shape)) or "scalar"


def size_text(n: int) -> str:
    """Bytes with a fitting unit."""
    value, units = float(n), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{n} B" if units[0] == "B" else f"{value:.3g} {units[0]}"


def time_text(s: float) -> str:
    """Seconds with a fitting unit."""
    if s >= 1:
        return f"{s:.3g} s"
    return f"{s * 1e3:.3g} ms" if s >= 1e-3 else f"{s * 1e6:.3g} µs"


class Listing(str):
    """A text of several lines that shows as it is, not as a literal, where Python shows values."""

    __slots__ = ()
    __repr__ = str.__str__
