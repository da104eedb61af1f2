"""What `config.debug` has logged of each program that runs, a level beside another.

1 a line for its plan, 2 a line for each stage with what it took, 3 the whole explanation: what was decided,
and what else it would have cost, 4 the listing of what runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from spartan_ng.backends.protocol import RunStats
from spartan_ng.graph.node import Node
from spartan_ng.plan.plan import Plan
from spartan_ng.units import shape_text, size_text, time_text

if TYPE_CHECKING:
    from spartan_ng.plan.explanation import Explanation

_log = logging.getLogger("spartan_ng.debug")
_MOST = 160
"""Characters of the operators in a plan's line."""


def tell_run(
    level: int,
    plan: Plan,
    stats: RunStats,
    planning_s: float,
    place: str,
    explain: Callable[[], Explanation],
) -> None:
    """Log a run that the user's `place` asked for; `planning_s` is what it took to find or make the plan."""
    names = " > ".join(name for stage in plan.stages for name in stage.operators())
    names = names if len(names) <= _MOST else f"{names[: _MOST - 3]}..."
    workers = "1 worker" if plan.workers == 1 else f"{plan.workers} workers"
    stages = "1 stage" if len(plan.stages) == 1 else f"{len(plan.stages)} stages"
    number, planned, ran = plan.key.rpartition("/")[2], time_text(planning_s), time_text(stats.seconds)
    took = f"planned in {planned}, run in {ran}"
    lines = [f"plan {number}, for {place}: {stages} on {workers}, {took}: {names}"]
    if level >= 2:
        lines += _stage_lines(plan, stats)
    if level >= 3:
        explained = explain()
        lines += [str(explained)]
        lines += [str(explained.source())] if level >= 4 else []
    _say("\n".join(lines))


def tell_direct(nodes: Sequence[Node], seconds: float) -> None:
    """Log a program that was a call of NumPy's in this process, and never a plan."""
    _say(f"NumPy at once, in {time_text(seconds)}: {', '.join(map(repr, nodes))}")


def tell_stay(here_s: float, there_s: float, sending_s: float) -> None:
    """Log that a program has stayed on the driver, and what that was predicted to save."""
    here, there, sending = map(time_text, (here_s, there_s, sending_s))
    _say(f"stayed on the driver: {here} here, {there} on the workers, and {sending} to send its arrays there")


def _stage_lines(plan: Plan, stats: RunStats) -> list[str]:
    lines = []
    for i, (stage, took) in enumerate(zip(plan.stages, stats.stages, strict=True)):
        share = f"{took.seconds / stats.seconds:4.0%}" if stats.seconds else ""
        moved = f", {size_text(took.bytes_moved)} moved" if took.bytes_moved else ""
        stolen = f", {took.stolen} tasks by idle workers" if took.stolen else ""
        domain, cut = shape_text(stage.space(plan.slots)), stage.cut(plan.slots)
        lines.append(
            f"  {i}: {time_text(took.seconds):>8} {share}  {' > '.join(stage.operators())}"
            f" over {domain} cut {cut}{moved}{stolen}"
        )
    return lines


def _say(text: str) -> None:
    """Log it; to stderr, where the program has set up no logging of its own."""
    if not _log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
        _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    _log.info("%s", text)
