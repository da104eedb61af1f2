"""The proof of loops over non-zeros: the last stored rows of a tile, in both tiers, as in `proof`.

The rows make a tile of their own, with the same operands and strides, and a table of several runs; what the
kernel writes to is guarded on both sides.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from spartan_ng.arrays import Box, box_shape
from spartan_ng.kernels.body import Body, slicer
from spartan_ng.kernels.compiled.bound import Bound, LineTables
from spartan_ng.kernels.compiled.proof import is_exact
from spartan_ng.kernels.compiled.sampled import Sampled
from spartan_ng.kernels.compiled.trial import Guards, largest, last_rows, unequal
from spartan_ng.kernels.reducers import reducer_of
from spartan_ng.kernels.sampled import SampledRunner


def flaw_at_nonzeros(body: Sampled, operands: list[Any]) -> str:
    """What a sampled stage makes otherwise than the interpreter of the same rows; empty if nothing."""
    stage = body.stage
    block = _last_rows(body, operands)
    runner = SampledRunner(Body(stage), operands, body.tile, box_shape(block))
    registers = runner.run(block)
    (write,), guards = stage.writes, Guards()
    bound = _compiled(body, operands, block, guards)
    reducer = reducer_of(stage, write)
    if reducer is None:
        found, wanted = bound.values, registers[write.register].data
    else:
        found = bound.folded()
        (wanted,) = reducer.block([registers[a] for a in reducer.row.args], block)
    if not guards.intact:
        return "elements beside the result's are written to"
    values = [getattr(r, "data", r) if hasattr(r, "tocsr") else r for r in registers]
    said = unequal(found, wanted, None if is_exact(stage) else largest([*values, wanted]))
    return f"the result of the block {block}: {said}" if said else ""


def _last_rows(body: Sampled, operands: list[Any]) -> Box:
    """The part of the tile that is computed twice."""
    label = body.stage.driver_labels[0]
    first, last = last_rows(operands[body.stage.driver].indptr, 1)
    low = body.tile[label][0]
    return (*body.tile[:label], (low + first, low + last), *body.tile[label + 1 :])


def _compiled(body: Sampled, operands: list[Any], block: Box, guards: Guards) -> Bound:
    """The kernel's side: the block as a tile."""
    reads = (replace(r, expand=False) for r in body.stage.reads)
    own = [slicer(r, body.tile, o)(o, block) for r, o in zip(reads, operands, strict=True)]
    bound = Bound(replace(body, tile=block, tables=LineTables()), own, guards.empty)
    for turn in bound.turns(1):
        bound.run(turn)
    for span in bound.spans:
        bound.add(span)
    return bound
