"""A plan for people to read: text, a picture, and a dict; predictions beside what a run measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from spartan_ng.plan.advice import Hint
from spartan_ng.plan.fusion import ExplainedFusion
from spartan_ng.plan.picture import draw_plan
from spartan_ng.units import Listing, shape_text, size_text, time_text

STYLES = {
    "bold": r"(?m)^  +\d+  .+$|^\d+ stages? on .*$",
    "cyan": r"%\d+",
    "magenta": r"\b\w+(?= = %\d)",
    "red": r"(?<=predicted )[1-9][\d.,]* \w?B\b|(?<=measured )[1-9][\d.,]* \w?B\b",
    "yellow": r"(?m)^hint: .*$",
    "green": r"(?m)^computed (?:already|before): .*$|\bruns compiled.*$",
    "dim": r"(?m)^ +runs .*interpreted.*$|^ +the plan with this stage cut otherwise: .*$",
}
"""How parts of the text look on a terminal; colours of the terminal's own, for light and dark."""
MOST_ALTERNATIVES = 4
"""The text shows so many of a stage's other grids; the dict has all of them."""


class ExplainedSlot(Struct, frozen=True):
    """One array of a plan; `role` is "input", "output", "both", "between" or "copy": an input, cut otherwise,
    that the workers keep for later plans."""

    number: int
    shape: tuple[int, ...]
    dtype: str
    tiling: str
    format: str
    nbytes: int
    role: str
    name: str = ""
    """What the user calls it."""
    why: str = ""
    """Of one between stages: why it is stored."""

    @property
    def is_scalar(self) -> bool:
        """Whether it is a number that the program brings: there are many, and they cost nothing."""
        return not self.shape and self.role == "input"

    @property
    def label(self) -> str:
        """As in `%3 float64 (1000, 50) 4x1`."""
        kind = self.dtype if self.format == "dense" else f"{self.dtype} {self.format}"
        name = f"{self.name} = " if self.name else ""
        return f"{name}%{self.number} {kind} {shape_text(self.shape)} {self.tiling}"


class ExplainedStage(Struct, frozen=True):
    """One fused operator of a plan; bytes are those that move between workers; None: not measured."""

    number: int
    kind: str
    operators: tuple[str, ...]
    domain: tuple[int, ...]
    grid: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    predicted_bytes: int
    predicted_seconds: float
    measured_bytes: int | None
    measured_seconds: float | None
    alternatives: tuple[tuple[str, int, float], ...] = ()
    """Grids that the stage could have had: bytes and seconds of the cheapest whole plan with each, uploads
    among them."""
    template: str | None = None
    """Of a fused stage: "Cell", "Row", "MAgg", "Outer", or "basic" for one operator alone."""
    tiers: tuple[str, ...] = ()
    """What of a fused stage is compiled once it is hot, and why the rest is interpreted."""
    product: str = ""
    """Of a matrix product: its (P, Q, R), parts, steps and finish."""
    band: str = ""
    """Of a pass over sources: how much of them is in memory."""
    written: str = ""
    """Where the user wrote what it does, as in `program.py:12, 14-16`."""
    reads_apart: bool = False
    """Whether what it reads of sources is unpacked first, or asked of a server in blocks that are kept: the
    predicted seconds have none of that."""


class Earlier(Struct, frozen=True):
    """An array whose elements are there."""

    name: str
    by: str = ""
    """The user's line that asked for the job which made it; empty where none did."""
    seconds: float = 0.0
    """What that job took."""
    at_once_bytes: int = 0
    """Where none did because it is small: up to how many bytes NumPy works on at once."""

    def __str__(self) -> str:
        if self.by:
            return f"{self.name} (by {self.by} in {time_text(self.seconds)})"
        if self.at_once_bytes:
            most = size_text(self.at_once_bytes)
            return f"{self.name} (at once: NumPy works on up to {most}, see config.small_bytes)"
        return self.name


class Explanation(Struct, frozen=True):
    """What a plan does, and why it is cheap or dear. Prints as text, shows as a picture in a notebook."""

    workers: int
    slots: tuple[ExplainedSlot, ...]
    stages: tuple[ExplainedStage, ...]
    outputs: tuple[int, ...] = ()
    """The arrays that were asked for, by their numbers, in that order."""
    measured_seconds: float | None = None
    fusion: ExplainedFusion | None = None
    projected_bytes: int = 0
    """Bytes of arrays that a worker has at one time, at most: the projected peak."""
    disk_bytes: int = 0
    """Bytes of arrays that it has on disk then."""
    working_bytes: int = 0
    """Bytes that its threads work on beside arrays, at most."""
    together_bytes: int = 0
    """Bytes of both at one time, at most: where memory is limited, arrays leave room for what threads work
    on."""
    sources: Callable[[], Sequence[str]] = tuple
    """Makes the listing of each stage; see `source`."""
    there: tuple[Earlier, ...] = ()
    """Arrays that were asked for and have their values already."""
    read: tuple[Earlier, ...] = ()
    """Arrays that are read, and that earlier jobs have made."""
    hints: tuple[Hint, ...] = ()
    """What would make it faster."""

    @property
    def predicted_bytes(self) -> int:
        """Bytes all stages are expected to move between workers."""
        return sum(s.predicted_bytes for s in self.stages)

    @property
    def predicted_seconds(self) -> float:
        """Seconds all stages are expected to take, one after the other."""
        return sum(s.predicted_seconds for s in self.stages)

    @property
    def measured_bytes(self) -> int | None:
        """Bytes all stages moved between workers, or None before a run."""
        if self.measured_seconds is None:
            return None
        return sum(s.measured_bytes or 0 for s in self.stages)

    def source(self, stage: int | None = None) -> Listing:
        """What runs each stage, or the one with this number, on the first worker: the steps that are
        interpreted, numexpr's programs, and the sources of what is compiled once it is hot.

        Operands are taken to lie in C order, as they do unless the program's own arrays lie otherwise.
        """
        every = self.sources()
        return Listing("\n\n".join(every if stage is None else [every[stage]]))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers and strings."""
        return {
            "workers": self.workers,
            "predicted_bytes": self.predicted_bytes,
            "predicted_seconds": self.predicted_seconds,
            "projected_bytes": self.projected_bytes,
            "disk_bytes": self.disk_bytes,
            "working_bytes": self.working_bytes,
            "together_bytes": self.together_bytes,
            "measured_bytes": self.measured_bytes,
            "measured_seconds": self.measured_seconds,
            "outputs": list(self.outputs),
            "arrays": [_plain(s) for s in self.slots],
            "stages": [_plain(s) for s in self.stages],
            "fusion": None if self.fusion is None else self.fusion.to_dict(),
            "there": [asdict(array) for array in self.there],
            "read": [asdict(array) for array in self.read],
            "hints": [asdict(hint) for hint in self.hints],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanation) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.workers, self.slots, self.outputs))

    def __str__(self) -> str:
        worker = "" if self.workers == 1 else " on a worker"
        disk = f", and {size_text(self.disk_bytes)} on disk" if self.disk_bytes else ""
        working = f"; threads work on up to {size_text(self.working_bytes)}" if self.working_bytes else ""
        working += " of that" if working and self.together_bytes <= self.projected_bytes else ""
        peak = f"projected peak {size_text(self.projected_bytes)}{worker}{disk}{working}"
        lines = [summary(self), peak, ""]
        width = max((len(str(s.number)) for s in self.stages), default=1)
        indent = " " * (width + 4)
        inputs = [s.label for s in self.slots if s.role in ("input", "both") and not s.is_scalar]
        if scalars := sum(s.is_scalar for s in self.slots):
            inputs.append("1 scalar" if scalars == 1 else f"{scalars} scalars")
        outputs = [self.slots[n].label for n in self.outputs]
        copies = [s.label for s in self.slots if s.role == "copy"]
        for title, named in (("inputs", inputs), ("outputs", outputs), ("kept for later, cut anew", copies)):
            lines += [f"{title}: {', '.join(named)}"] if named else []
        if self.there:
            lines.append(f"computed already: {', '.join(map(str, self.there))}")
        if read := [str(array) for array in self.read if array not in self.there]:
            lines.append(f"computed before: {', '.join(read)}")
        for stage in self.stages:
            operators = " > ".join(stage.operators)
            lines.append(f"  {stage.number:>{width}}  {operators}")
            arrays = [f"%{r}" for r in stage.reads if not self.slots[r].is_scalar]
            more = ["scalars"] if len(arrays) < len(stage.reads) else []
            reads = ", ".join([*arrays, *more]) or "nothing"
            writes = ", ".join(self.slots[w].label for w in stage.writes)
            kind = stage.kind if stage.template is None else f"{stage.kind} ({stage.template})"
            lines.append(f"{indent}{kind} over {shape_text(stage.domain)} cut {stage.grid}")
            lines.append(f"{indent}{reads} -> {writes}")
            lines += [f"{indent}written at {stage.written}"] if stage.written else []
            lines += [f"{indent}{stage.product}"] if stage.product else []
            lines += [f"{indent}{stage.band}"] if stage.band else []
            lines.append(f"{indent}{costs(stage)}")
            lines += [f"{indent}{line}" for line in _stored([self.slots[w] for w in stage.writes])]
            lines += [f"{indent}runs {tier}" for tier in _condensed(stage.tiers)]
            if stage.alternatives:
                lines.append(f"{indent}the plan with this stage cut otherwise: {others(stage)}")
        if self.fusion is not None and self.fusion.partitions:
            lines.append(f"fusion by {self.fusion.policy}:")
            lines += [f"  {line}" for line in self.fusion.lines]
        lines += [f"hint: {hint}" for hint in self.hints]
        return "\n".join(lines)

    def show(self) -> None:
        """Print it, in colour where rich is installed and the output is a terminal."""
        try:
            from rich.console import Console
        except ModuleNotFoundError:
            print(self)
        else:
            Console(soft_wrap=True).print(self)

    def __rich__(self) -> Any:
        """What rich's `print`, and its pretty interactive Python, show."""
        from rich.text import Text

        text = Text(str(self))
        for style, pattern in STYLES.items():
            text.highlight_regex(pattern, style)
        return text

    def _repr_svg_(self) -> str:
        """The picture that notebooks show."""
        return draw_plan(self, summary(self))

    def _repr_html_(self) -> str:
        """The picture in a box that scrolls."""
        return f'<div style="overflow-x:auto;max-width:100%">{self._repr_svg_()}</div>'

    __repr__ = __str__


def _stored(slots: Sequence[ExplainedSlot]) -> list[str]:
    """Why a stage's results are stored; those with one reason in one line."""
    reasons: dict[str, list[str]] = {}
    for slot in slots:
        if slot.why:
            reasons.setdefault(slot.why, []).append(f"%{slot.number}")
    return [f"{', '.join(n)} {'is' if len(n) == 1 else 'are'} stored: {why}" for why, n in reasons.items()]


def _condensed(tiers: Sequence[str]) -> list[str]:
    """In one line where all is compiled; else what is, and what is not, with its reason."""
    if any("interpreted" in tier for tier in tiers):
        return list(tiers)
    found = [(tier.partition(": ")[2] or tier, tier) for tier in tiers]
    return list(dict.fromkeys(how if how.startswith("compiled") else tier for how, tier in found))


def others(stage: ExplainedStage) -> str:
    """The cheapest grids that were not chosen, with the whole plan's bytes and seconds."""
    rows = [a for a in stage.alternatives if a[0] != stage.grid][:MOST_ALTERNATIVES]
    return (
        "; ".join(f"{grid} {size_text(moved)}, {time_text(s)}" for grid, moved, s in rows) or "nothing else"
    )


def summary(e: Explanation) -> str:
    """One line: stages, workers, bytes and seconds, predicted and measured."""
    workers = "1 worker" if e.workers == 1 else f"{e.workers} workers"
    stages = "1 stage" if len(e.stages) == 1 else f"{len(e.stages)} stages"
    line = f"{stages} on {workers}; predicted {size_text(e.predicted_bytes)} moved"
    line += f", {_predicted(e.predicted_seconds, any(stage.reads_apart for stage in e.stages))}"
    if e.measured_seconds is not None:
        line += f"; measured {size_text(e.measured_bytes or 0)} moved, {time_text(e.measured_seconds)}"
    return line


def _predicted(seconds: float, reads_apart: bool) -> str:
    return time_text(seconds) + (" besides reading" if reads_apart else "")


def costs(stage: ExplainedStage) -> str:
    """Predicted and, after a run, measured bytes and seconds of a stage."""
    seconds = _predicted(stage.predicted_seconds, stage.reads_apart)
    line = f"predicted {size_text(stage.predicted_bytes)}, {seconds}"
    if stage.measured_seconds is not None:
        line += f"; measured {size_text(stage.measured_bytes or 0)}, {time_text(stage.measured_seconds)}"
    return line


def _plain(row: ExplainedSlot | ExplainedStage) -> dict[str, Any]:
    """A row as a dict, tuples as lists."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(row).items()}
