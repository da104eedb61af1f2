"""Figures as a table for the terminal and as benchmarks/RESULTS.md."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

from benchmarks import machine
from benchmarks.case import OURS, Case
from benchmarks.measure import Row

RESULTS = Path(__file__).with_name("RESULTS.md")
_MADE = "Made on "
"""How a section's line begins that says when and where."""


def seconds(s: float) -> str:
    """Seconds with a fitting unit."""
    if s >= 1:
        return f"{s:.2f} s"
    return f"{s * 1e3:.1f} ms" if s >= 1e-3 else f"{s * 1e6:.1f} µs"


def size(n: int | None) -> str:
    """Bytes with a fitting unit."""
    if n is None:
        return ""
    return f"{n / 1e9:.2f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"


def verdict(case: Case, rows: list[Row]) -> str:
    """What is promised of our side, and whether this run kept it."""
    ours = next((r for r in rows if r.side == OURS or r.side.startswith(OURS + ",")), None)
    if ours is None:
        return ""
    parts = []
    if case.ratio_limit is not None:
        kept = "met" if ours.ratio <= case.ratio_limit else "MISSED"
        parts.append(f"goal: ratio at most {case.ratio_limit:g}: {kept}")
    if case.seconds_limit is not None:
        kept = "met" if ours.seconds <= case.seconds_limit else "MISSED"
        parts.append(f"goal: under {seconds(case.seconds_limit)}: {kept}")
    return "; ".join(parts)


def section(case: Case, rows: list[Row], bandwidth: float) -> str:
    """One case as Markdown."""
    lines = [f"### {case.name}", "", case.title + ".", f"{_MADE}{made_on()}."]
    if case.bytes_read:
        bound = case.bytes_read / bandwidth
        lines.append(
            f"At least {size(case.bytes_read)} of memory traffic: {seconds(bound)} at full bandwidth."
        )
    lines += [
        "",
        f"| system | median | ratio to {rows[0].side} | first run | extra memory |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.side} | {seconds(r.seconds)} | {r.ratio:.3f} | {seconds(r.first_seconds)} "
        f"| {size(r.peak_bytes)} |"
        for r in rows
    ]
    said = verdict(case, rows)
    if case.bytes_read and case.ratio_limit is not None and said:
        said += f" (at full bandwidth the ratio would be {bound / rows[0].seconds:.2f})"
    return "\n".join([*lines, *(["", said + "."] if said else []), ""])


def record(top: str, sections: list[str]) -> None:
    """Put sections into benchmarks/RESULTS.md, in the place of older ones of the same cases, which say what
    they were made on; its top stays where none is given."""
    before, *known = RESULTS.read_text().split("\n### ") if RESULTS.exists() else [""]
    top = top or before + "\n"
    every = {s.partition("\n")[0]: "### " + s.rstrip("\n") + "\n" for s in known}
    every |= {s.partition("\n")[0].removeprefix("### "): s for s in sections}
    RESULTS.write_text(top + "\n".join(every.values()))


def made_on() -> str:
    """The day and the machine."""
    return f"{date.today().isoformat()}, {machine.cpu()}, {machine.memory()}"


def now() -> str:
    """The day, the machine and how busy it is, for a section of its own."""
    load = os.getloadavg()[0]
    return f"{made_on()}; {load:.0f} processes were ready to run"


def heading(triad: float, one: float, every: float) -> str:
    """The machine and the versions, as Markdown; bytes a second of a triad, and of reads on one and all."""
    reads = f"reading three vectors {one / 1e9:.1f} GB/s on one core, {every / 1e9:.1f} GB/s on all"
    return "\n".join(
        [
            "# Benchmark results",
            "",
            "Written by `python -m benchmarks --record`, not by hand. Systems take turns in one process; the",
            "ratios are medians of the rounds' own. Results are compared before anything is timed.",
            "",
            f"- {made_on()}",
            f"- memory bandwidth: {triad / 1e9:.1f} GB/s (triad on all cores); {reads}",
            f"- {', '.join(machine.versions())}",
            "",
            "",
        ]
    )
