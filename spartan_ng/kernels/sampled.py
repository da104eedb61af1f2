"""Tier 0 of sampled bodies: rows computed at the non-zeros of a sparse block, with NumPy calls on vectors.

Of a block's sampled rows every value is a vector with one element a non-zero of the driver's block, and a
matrix product is a dot product for each of them. No dense block is made, unless so many elements are
non-zero that the block's whole product costs less. Where other rows read a sampled one, they see it as a
sparse block.

"On Optimizing Operator Fusion Plans", section 2.2: the Outer template.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.kernels.body import Body, Runner
from spartan_ng.kernels.formats import dense, is_sparse
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.plan.rows import Row

_GATHER_BYTES = 1 << 19
"""What the gathered rows of a chunk's dot products may take: a share of the cache."""
_DENSE_BYTES = 1 << 22
"""What a piece of a block's whole product may take."""
_DENSE_SHARE = 1 / 32
"""Share of non-zeros from which on the whole product costs less than gathering for dot products."""


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


class Pattern:
    """Where a sparse block has its non-zeros, in the order in which they are stored."""

    def __init__(self, block: Any) -> None:
        self.block = block if block.format in ("csr", "csc") else block.tocsr()
        self.data = self.block.data
        self._places: tuple[Any, Any] | None = None

    @property
    def places(self) -> tuple[Any, Any]:
        """The row and the column of each non-zero."""
        if self._places is None:
            block = self.block
            major = np.repeat(
                np.arange(len(block.indptr) - 1, dtype=block.indices.dtype), np.diff(block.indptr)
            )
            self._places = (major, block.indices) if block.format == "csr" else (block.indices, major)
        return self._places

    def matrix(self, data: Any) -> Any:
        """A sparse block with these non-zeros."""
        data = np.broadcast_to(data, self.data.shape)
        return type(self.block)((data, self.block.indices, self.block.indptr), shape=self.block.shape)

    def at(self, value: Any) -> Any:
        """The elements of a block's value (dense or sparse, stretched to the block) at the non-zeros."""
        if value is self.block:
            return self.data
        if is_sparse(value) and value.shape == self.block.shape:
            return dense(value.tocsr()[self.places]).reshape(-1)
        value = dense(value)
        if value.size == 1:
            return value.reshape(())
        return np.broadcast_to(value, self.block.shape)[self.places]


def _sample(row: Row, registers: list[Any], sampled: dict[int, Any], pattern: Pattern) -> Any:
    """A sampled row's vector."""
    if row.kind == "contract":
        a, b = (registers[a] for a in row.args)
        return _dots(row, a, b, pattern)
    args = [sampled[a] if a in sampled else pattern.at(registers[a]) for a in row.args]
    if row.fn == "cast":
        return args[0].astype(row.dtype, copy=False)
    known = ELEMENTWISE[str(row.fn)]
    value = known.function(*args)
    return value[row.params[0]] if known.nout > 1 else value


def _dots(row: Row, a: Any, b: Any, pattern: Pattern) -> Any:
    """The elements of a matrix product at the non-zeros."""
    la, lb, lo = row.params
    left, right = (a, b) if lo[0] in la else (b, a)
    labels = (la, lb) if lo[0] in la else (lb, la)
    left, right = (_lines(x, names, lo) for x, names in zip((left, right), labels, strict=True))
    rows, columns = pattern.places
    out = np.empty(len(rows), row.dtype)
    if len(rows) > _DENSE_SHARE * pattern.block.shape[0] * pattern.block.shape[1]:
        return _from_products(left, right, pattern, out)
    step = max(64, _GATHER_BYTES // max(2 * left.shape[1] * row.dtype.itemsize, 1))
    for k in range(0, len(rows), step):
        i, j = rows[k : k + step], columns[k : k + step]
        out[k : k + step] = np.einsum("ij,ij->i", left[i], right[j])
    return out


def _lines(x: Any, labels: tuple[int, ...], out: tuple[int, ...]) -> Any:
    """An operand with one line for each index of the result's axis that it has."""
    if x.ndim == 1:
        return x[:, None]
    return x if labels[0] in out else x.T


def _from_products(left: Any, right: Any, pattern: Pattern, out: Any) -> Any:
    """The same from whole products of pieces of the stored axis."""
    block = pattern.block
    turned = block.format == "csc"
    major, other = (right, left) if turned else (left, right)
    step = max(1, _DENSE_BYTES // max(len(other) * out.itemsize, 1))
    places = pattern.places[1 if turned else 0], block.indices
    for k in range(0, len(major), step):
        here = slice(block.indptr[k], block.indptr[min(k + step, len(major))])
        product = major[k : k + step] @ other.T
        out[here] = product[places[0][here] - k, places[1][here]]
    return out
