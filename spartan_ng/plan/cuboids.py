"""What `explain` says of a product's stage: its cuboids, the parts and steps it goes in, and its finish.

FuseME (SIGMOD '22), section 3.
"""

from __future__ import annotations

from math import prod

from spartan_ng.plan.stages import Combine, Fused, Stage


def describe_product(stage: Stage) -> str:
    """One line on a matrix product, or on what finishes one; empty for other stages."""
    if isinstance(stage, Combine):
        return "" if stage.finish is None else _finish(stage.finish)
    if not isinstance(stage, Fused) or len(stage.writes) > 1:
        return ""
    (write,) = stage.writes
    if write.reducer is None or write.reducer.kind != "contract" or len(write.labels) != 2:
        return ""
    rows, columns = (stage.grid.parts[d] for d in write.labels)
    summed = prod(n for d, n in enumerate(stage.grid.parts) if d not in write.labels)
    said = [f"cuboids (P, Q, R) = ({rows}, {columns}, {summed})"]
    if stage.parts > 1:
        said.append(f"{stage.parts} parts, one after the other, along dimension {stage.turns}")
    if stage.steps:
        said.append(f"steps {'×'.join(map(str, stage.steps))}")
    if stage.finish is not None:
        said.append(_finish(stage.finish))
    return "; ".join(said)


def _finish(finish: Fused) -> str:
    return f"finish: {finish.name}"
