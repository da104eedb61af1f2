"""The physical program: stages over slots, the same for one worker and for a thousand.

A plan says nothing about single tiles. Every worker derives its own task of a stage from the stage's
grid and its rank, reads regions of the arrays it needs, and writes one tile of each result. Stages run
in their order on each worker, and no worker waits for another but for the data it reads.

Slots are the plan's arrays: inputs are bound when it runs, outputs outlive it, the rest are dropped
after their last read. An array that is kept in several tilings has a slot for each. A plan has no values
in it (0-d inputs are slots, too), so that the second iteration of a loop finds the first one's plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spartan_ng.arrays import Tiling
from spartan_ng.arrays.sparse import INDEX_BYTES
from spartan_ng.ops.functions import UserFunction

WHOLE = -1
"""A label: this axis is not cut; every task sees all of it."""
VALUE = -1
"""A slot that is none: a finish reads the value that its stage has just made."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One array of a plan; `scratch` slots hold a stage's partial states or users' updates."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    tiling: Tiling
    format: str = "dense"
    chunks: tuple[int, ...] | None = None
    """Of an array that a source reads where it is worked on, the shape of what is read best; else None."""
    mapped: bool = False
    """Whether its elements are in the memory of a file."""
    expected_bytes: int | None = None
    """Of a sparse or compressed array the bytes that it takes, as far as they are known; else None."""

    @property
    def stored_bytes(self) -> int:
        """Bytes of the form it has."""
        return self.nbytes if self.expected_bytes is None else self.expected_bytes

    @property
    def nonzeros(self) -> int | None:
        """Elements of a sparse array that are stored, as far as is known."""
        if self.expected_bytes is None or self.format != "csr":
            return None
        return self.expected_bytes // (self.dtype.itemsize + INDEX_BYTES)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense form."""
        n = self.dtype.itemsize
        for s in self.shape:
            n *= s
        return n


@dataclass(frozen=True, slots=True)
class Axis:
    """How one axis of an array follows the stage's domain.

    Index `start + step * i` of the array belongs to index i of domain dimension `label`; with label
    `WHOLE`, i runs over all of `[0, size)`.
    """

    label: int
    start: int
    step: int
    size: int


@dataclass(frozen=True, slots=True)
class Read:
    """An operand: an affine view of the array in `slot`.

    `axes` describes the array's axes. The operand has the axes `order`: positions in `axes`, or -1 for
    a new axis; `shape` and `labels` describe the operand's axes. Where the array's axis is shorter (it
    is broadcast) and `expand` is set, blocks are expanded to their full shape.
    """

    slot: int
    axes: tuple[Axis, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]
    labels: tuple[int, ...]
    expand: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One step of a fused body: a function of earlier registers.

    Registers are numbered: the stage's reads first, then the rows. `labels` gives the domain dimension
    of each axis of the value, or WHOLE.
    """

    kind: str
    """"map", "fold", "contract", "bincount", "along_axis", "matrices", "take", "transpose", "broadcast",
    "reshape", "iota", "random", or (in a `ScanTile`) "scan"; kernels may put a "program" in the place of some
    maps, and "inside" in that of those before it."""
    fn: str | UserFunction | None
    args: tuple[int, ...]
    params: tuple[Any, ...]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    labels: tuple[int, ...]
    format: str = "dense"
    sampled: bool = False
    """Whether the value is needed (and computed) at the non-zeros of the stage's driver alone."""


@dataclass(frozen=True, slots=True)
class Folded:
    """An axis that a reducer folds of its operand: the dimension of the domain that it follows, its size, and
    how long its units are (`ops.order`)."""

    axis: int
    dim: int
    size: int
    length: int


@dataclass(frozen=True, slots=True)
class Write:
    """A result of a fused stage.

    A plain result takes register `register` to slot `slots[0]`. With a `reducer`, each block gives
    states instead, combined over the domain dimensions that `labels` lacks. When the grid cuts none of
    those (`partial` is empty), the states are finalized at once into `slots[0]`; else they go to one slot
    a state, with one leading axis for each dimension in `partial`, and a `Combine` stage follows. A leading
    axis has one element for each part of its dimension, or where the order of the fold shows and `units` are
    given, one for each subtree of units that a part has.
    """

    slots: tuple[int, ...]
    register: int
    labels: tuple[int, ...]
    reducer: Row | None = None
    partial: tuple[int, ...] = ()
    units: tuple[Folded, ...] = ()


@dataclass(frozen=True, slots=True)
class Fused:
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

    name: str
    domain: tuple[int, ...]
    grid: Tiling
    reads: tuple[Read, ...]
    rows: tuple[Row, ...]
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

    @property
    def is_sampled(self) -> bool:
        """Whether rows are computed at the driver's non-zeros."""
        return any(row.sampled for row in self.rows)

    @property
    def calls_users(self) -> bool:
        """Whether a user's function is called, which may cost anything."""
        reducers = [w.reducer for w in self.writes if w.reducer is not None]
        return any(isinstance(row.fn, UserFunction) for row in (*self.rows, *reducers))

    @property
    def driver_labels(self) -> tuple[int, int]:
        """The domain dimensions of the driver's stored rows and columns."""
        rows, columns = self.reads[self.driver].axes
        return rows.label, columns.label


@dataclass(frozen=True, slots=True)
class Combine:
    """Combine partial states along their `lead` leading axes in index order; finalize into `slot`, by way of
    a `finish` as in `Fused`. With `spans`, which has the units of each state along each leading axis, they
    are subtrees, and combined as such."""

    name: str
    row: Row
    states: tuple[int, ...]
    lead: int
    slot: int
    finish: Fused | None = None
    spans: tuple[tuple[tuple[int, int], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ScanTotals:
    """A level of a scan's forward cascade: the state of each part of `grid`, as one row along `axis`.

    Arrays of states have a leading axis for the arrays of a state. The first level scans the registers
    `args` of reads and rows over the `domain`, the others (`of_states`) read an array of states.
    """

    name: str
    fn: str | UserFunction
    axis: int
    domain: tuple[int, ...]
    reads: tuple[Read, ...]
    rows: tuple[Row, ...]
    args: tuple[int, ...]
    slot: int
    grid: Tiling
    of_states: bool


@dataclass(frozen=True, slots=True)
class ScanOffsets:
    """A level of a scan's backward cascade: each of the `states` becomes the state of all before it.

    A task continues its own row of `offsets` (None: it sees the whole line).
    """

    name: str
    fn: str | UserFunction
    axis: int
    states: int
    offsets: int | None
    slot: int


@dataclass(frozen=True, slots=True)
class ScanTile:
    """One pass with a cumulative aggregate among its rows: each tile's own, behind its row of `offsets`
    (None: the axis is not cut; `totals` is where the parts' states are from). `writes` says what becomes of
    the last row: it is stored, or folded, or both."""

    name: str
    domain: tuple[int, ...]
    reads: tuple[Read, ...]
    rows: tuple[Row, ...]
    offsets: int | None
    writes: tuple[Write, ...]
    grid: Tiling
    totals: int | None = None
    exact: bool = False

    @property
    def scan(self) -> Row:
        """The row that is the cumulative aggregate."""
        return next(row for row in self.rows if row.kind == "scan")

    @property
    def axis(self) -> int:
        """The scanned dimension of the domain."""
        (axis,) = self.scan.params
        return int(axis)


@dataclass(frozen=True, slots=True)
class Assemble:
    """Build each output tile from regions of the inputs: `how` is "reshape", "concatenate",
    "assign" or "copy"; params as in `ops.joins`. A read's labels are the axes of its operand."""

    name: str
    how: str
    params: tuple[Any, ...]
    reads: tuple[Read, ...]
    slot: int


@dataclass(frozen=True, slots=True)
class Join:
    """A tile function with inputs seen whole or along a joined axis: `how` is "scatter", "compress",
    "take" or "user". A user's tasks follow `grid`, the cut of the joined axis; see `worker.joins`."""

    name: str
    how: str
    fn: UserFunction | None
    params: tuple[Any, ...]
    reads: tuple[Read, ...]
    slot: int
    grid: Tiling


@dataclass(frozen=True, slots=True)
class SortParts:
    """Sort each part of a 1-d array by itself into `values`, and where its elements came from into
    `indices` (None: not asked for). With `spans`, only these ranks of the array are asked for. With a
    `length`, a part does not fit: it is sorted in runs of so many elements."""

    name: str
    read: Read
    values: int
    indices: int | None
    grid: Tiling
    spans: tuple[tuple[int, int], ...] = ()
    length: int = 0


@dataclass(frozen=True, slots=True)
class MergeParts:
    """Each output tile is a range of ranks: find the cuts of the sorted parts, pull and merge them.

    With `spans`, the output has the elements of these ranks, and lies on one worker. With a `length`, parts
    are sorted in runs of so many elements, and as many are merged at a time.
    """

    name: str
    values: int
    indices: int | None
    slot: int
    grid: Tiling
    spans: tuple[tuple[int, int], ...] = ()
    length: int = 0


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Put the updates of a user's join, in rank order, into the output tiles; conflicts accumulate."""

    name: str
    accumulate: str | UserFunction
    updates: int
    slot: int
    grid: Tiling
    """The grid of the join: which ranks hold updates."""


Stage = (
    Fused
    | Combine
    | ScanTotals
    | ScanOffsets
    | ScanTile
    | Assemble
    | Join
    | Accumulate
    | SortParts
    | MergeParts
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Stages in the order in which every worker runs them."""

    key: str
    slots: tuple[Slot, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    stages: tuple[Stage, ...]
    workers: int = 1
    predicted_bytes: tuple[int, ...] = field(default=())
    """Bytes each stage moves between workers, as predicted."""
    ranks: int = 1
    """The first so many ranks hold tiles or have tasks; the others need not hear of the plan."""
    also: tuple[tuple[int, int], ...] = ()
    """What the last inputs are: `(n, k)` is copy k of input n, in another tiling."""
    keeps: tuple[int, ...] = ()
    """What the last outputs are: new copies of these inputs, in another tiling."""
