"""The pass that most plans are made of: maps, products, folds and what follows them, block by block."""

from __future__ import annotations

from spartan_ng.memory import BLOCK_BYTES
from spartan_ng.plan.rows import Write
from spartan_ng.plan.stages.passes import Pass


class Fused(Pass, frozen=True):
    """One pass over a domain cut by `grid`: every block runs the body's rows.

    `whole` names the domain dimensions that blocks must not cut, `heavy` marks a body dominated by one
    matrix product, which runs on tiles and not on cache-sized blocks. `driver` is the read whose
    stored rows the blocks follow: the sparse one at whose non-zeros the sampled rows are computed, or a
    compressed one; -1 where there is none. `steps` says into how many blocks a heavy body's tile is cut along
    each dimension (empty: it is one block); `parts` cuts it along its reduced dimension `turns` before:
    operands of one part after the other are fetched, while the part before is worked on. With a `finish`, the
    one result is not stored: the finish, a pass over the result's indices whose last read is `VALUE`, makes
    of it what is stored.
    """

    writes: tuple[Write, ...]
    whole: tuple[int, ...] = ()
    heavy: bool = False
    driver: int = -1
    steps: tuple[int, ...] = ()
    parts: int = 1
    turns: int = 0
    finish: Fused | None = None
    exact: bool = False
    """Whether it keeps the last bits, whatever runs it: `config.reproducible`."""
    band: tuple[int, int] | None = None
    """Of a pass over sources: the domain dimension that it goes along, and how many indices of it are read at
    a time."""
    block_bytes: int = BLOCK_BYTES
    """What a thread's block may take at most where it is not made for the cache: `memory.block_bytes`."""

    @property
    def is_sampled(self) -> bool:
        """Whether rows are computed at the driver's non-zeros."""
        return any(row.sampled for row in self.rows)

    @property
    def driver_labels(self) -> tuple[int, int]:
        """The domain dimensions of the driver's stored rows and columns."""
        rows, columns = self.reads[self.driver].axes
        return rows.label, columns.label

    @property
    def _driven_by(self) -> int:
        return self.driver
