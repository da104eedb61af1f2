"""Tier 0 of sampled bodies: rows computed at the non-zeros of a sparse block, with NumPy calls on vectors.

Of a block's sampled rows every value is a vector with one element a non-zero of the driver's block, and a
matrix product is a dot product for each of them. No dense block is made, unless so many elements are
non-zero that the block's whole product costs less. Where other rows read a sampled one, they see it as a
sparse block.

"On Optimizing Operator Fusion Plans", section 2.2: the Outer template.
"""

from __future__ import annotations

from typing import Any

from spartan_ng.arrays import Box
from spartan_ng.kernels.body import Body, Runner
from spartan_ng.kernels.patterns import Pattern, dots, mapped
from spartan_ng.plan.rows import Row


def runner(body: Body, operands: list[Any], tile: Box, sizes: tuple[int, ...]) -> Runner:
    """The interpreter of a body, one for each thread."""
    kind = SampledRunner if body.is_sampled else Runner
    return kind(body, operands, tile, sizes)


class SampledRunner(Runner):
    """A runner that computes the sampled rows at the driver's non-zeros."""

    def __init__(self, body: Body, operands: list[Any], tile: Box, sizes: tuple[int, ...]) -> None:
        super().__init__(body, operands, tile, sizes)
        stage = body.stage
        self._outside = {a for row in stage.rows if not row.sampled for a in row.args}
        for write in stage.writes:
            self._outside.update((write.register,) if write.reducer is None else write.reducer.args)

    def run(self, block: Box, results: dict[int, Any] | None = None) -> list[Any]:
        """Run all rows on `block`; `results` maps registers of dense rows to arrays to fill."""
        self.load(block)
        registers, body = self.registers, self.body
        pattern = Pattern(registers[body.stage.driver])
        buffers = self._buffers(block)
        sampled: dict[int, Any] = {}
        for i, row in enumerate(body.stage.rows, body.nreads):
            at = i - body.nreads
            if not row.sampled:
                out = buffers[at]
                if results and out is not None and i in results:
                    out = results[i]
                registers[i] = body.evaluates[at](registers, block, out)
                continue
            sampled[i] = _sample(row, registers, sampled, pattern)
            if i in self._outside:
                registers[i] = pattern.matrix(sampled[i])
        return registers


def _sample(row: Row, registers: list[Any], sampled: dict[int, Any], pattern: Pattern) -> Any:
    """A sampled row's vector."""
    if row.kind == "contract":
        a, b = (registers[a] for a in row.args)
        return dots(row, a, b, pattern)
    return mapped(row, [sampled[a] if a in sampled else pattern.at(registers[a]) for a in row.args])
