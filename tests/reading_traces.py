"""What a trace file has to be, and how much of the time its spans explain."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

Row = dict[str, Any]
_ALWAYS = {"name", "ph", "pid", "tid"}
_NEEDS = {
    "X": {"ts", "dur", "cat"},
    "b": {"ts", "id", "cat"},
    "e": {"ts", "id", "cat"},
    "i": {"ts", "s"},
    "M": {"args"},
}


def read(path: Path) -> list[Row]:
    """The rows of a trace that is as it has to be."""
    found = json.loads(path.read_text())
    rows: list[Row] = found["traceEvents"]
    named = {row["pid"] for row in rows if row["name"] == "process_name"}
    opened: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        assert _NEEDS[row["ph"]] | _ALWAYS <= set(row), row
        assert isinstance(row["pid"], int), row
        assert isinstance(row["tid"], int), row
        assert row["pid"] in named, row
        assert row.get("ts", 0) >= 0, row
        assert row.get("dur", 0) >= 0, row
        at = (row["pid"], row.get("cat"), row.get("id"), row["name"])
        if row["ph"] == "b":
            assert at not in opened, row
            opened[at] = row
        if row["ph"] == "e":
            assert opened.pop(at)["ts"] <= row["ts"], row
    assert not opened
    for lane in lanes(rows).values():
        _check_nesting(lane)
    return rows


def lanes(rows: list[Row]) -> dict[tuple[int, int], list[Row]]:
    """The spans of each thread, the outer ones first."""
    found = defaultdict(list)
    for row in rows:
        if row["ph"] == "X":
            found[row["pid"], row["tid"]].append(row)
    return {at: sorted(spans, key=lambda r: (begin(r), -end(r))) for at, spans in found.items()}


def begin(row: Row) -> int:
    """In nanoseconds."""
    return round(row["ts"] * 1000)


def end(row: Row) -> int:
    """In nanoseconds."""
    return round((row["ts"] + row["dur"]) * 1000)


def _check_nesting(spans: list[Row]) -> None:
    """No span of a thread begins in another and ends after it."""
    open_until: list[int] = []
    for row in spans:
        while open_until and open_until[-1] <= begin(row):
            open_until.pop()
        assert not open_until or end(row) <= open_until[-1], row
        open_until.append(end(row))


def of_kind(rows: list[Row], kind: str) -> list[Row]:
    """The spans of a kind."""
    return [row for row in rows if row.get("cat") == kind and row["ph"] in "Xbi"]


def covered(rows: list[Row], outer: Row) -> float:
    """The share of a span's time that the spans inside it have."""
    inside = [
        row
        for row in lanes(rows)[outer["pid"], outer["tid"]]
        if row is not outer and begin(outer) <= begin(row) and end(row) <= end(outer)
    ]
    total, until = 0, begin(outer)
    for row in inside:
        total += max(0, end(row) - max(begin(row), until))
        until = max(until, end(row))
    return total / max(1, end(outer) - begin(outer))


def usual_cover(rows: list[Row], kind: str) -> float:
    """The median of `covered` over all spans of a kind: one that was interrupted by others does not count."""
    return median(covered(rows, outer) for outer in of_kind(rows, kind))
