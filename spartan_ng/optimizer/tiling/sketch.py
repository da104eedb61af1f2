"""What the tiling optimizer sees of a program: boxes of index space, and who reads which part of them.

A stage is a box of tasks (its domain); its grid cuts the domain over the workers. An access says, for
each axis of an array, which domain dimension it follows. Nothing else of a stage matters here: maps,
folds, scans and products differ only in their accesses. A transpose is a permutation of labels and
therefore costs nothing by itself.

Spartan (ATC '15), section 3.3: the tiling graph, with views contracted.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from msgspec import Struct, field
from numpy.typing import NDArray

from spartan_ng.arrays import Tiling
from spartan_ng.ops.units import Folded


class Load(Struct, frozen=True, eq=False):
    """Work along the first axis: `ends[i]` is that of all elements before i."""

    ends: NDArray[Any]


class ArraySketch(Struct, frozen=True):
    """An array that stages read or write.

    Parameters
    ----------
    shape : its shape
    nbytes : its bytes, dense or sparse, as far as they are known
    pinned : its tiling if the workers hold it already; None where the optimizer is to choose
    kept : further tilings in which the workers hold it, too
    load : of a skewed sparse array, how its work is spread over its rows
    outlives : whether later programs may read it, too
    uncut : axes that no tiling may cut (a CSR array is cut along its rows only, one that is whole in
        every state nowhere)
    driver : the value lies on the driver and has to be uploaded, in any tiling
    chunks : it lies outside, where whoever needs a part of it reads that part, in whole chunks of this shape;
        None of what lies on the workers
    row_bytes : bytes of a sparse row, among `nbytes`, that come with every part of it
    piece_bytes : bytes, once among `nbytes`, that come with every piece that is pulled from a tile: where a
        sparse one's first row begins, or the dictionaries of a compressed one
    """

    shape: tuple[int, ...]
    nbytes: int
    pinned: Tiling | None = None
    uncut: tuple[int, ...] = ()
    driver: bool = False
    chunks: tuple[int, ...] | None = None
    kept: tuple[Tiling, ...] = ()
    outlives: bool = False
    load: Load | None = None
    row_bytes: int = 0
    piece_bytes: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)


Span = tuple[int, int, int]
"""`(start, step, size)`: index i of the view's axis is index `start + step * i` of the array's."""


class FlatView(Struct, frozen=True):
    """A view that is read in the order of its elements.

    Parameters
    ----------
    shape : the view's
    along : for each axis of the array the view's axis that goes along it, or -1
    """

    shape: tuple[int, ...]
    along: tuple[int, ...]


class TaskAccess(Struct, frozen=True):
    """How tasks read or write one array.

    Parameters
    ----------
    array : its number among the sketched arrays
    labels : for each axis the domain dimension it follows, or WHOLE; a domain dimension that is missing
        in a write is reduced over
    spans : for each axis the part of it that the view shows; empty where the view is the whole array
    exact : False where the labels are only an approximation (a lookup); needs are scaled to the axis
    run : of a reshape, the view that is read as one run of elements; a task reads the box that covers its own
    state_bytes : for a write that is reduced over, the bytes of one partial state (None: the array's)
    behind : for a read, whether it is needed with the result only: where the grid cuts what the stage reduces
        over, the tasks that combine the partial states read it
    placed : where the array is a piece of the domain, for each axis `(start, step)`: its index i lies at
        index `start + step * i` of the dimension; empty where it covers the domain
    within : of a piece, `(dimension, start, step, length)` where the array has no axis for a dimension along
        which the piece lies in a part of the domain only: tasks elsewhere do not read it
    asked : of a lookup, the axis along which rows are asked for, and the dimensions of the indices that ask;
        the rows are as likely here as there
    part : `(k, n)`: of every n rows that the labels select, k are read
    units : of a write that keeps the last bits, the folded axes: the grid cuts them between units only, and
        partial states are those of subtrees of units
    """

    array: int
    labels: tuple[int, ...]
    spans: tuple[Span, ...] = ()
    exact: bool = True
    state_bytes: int | None = None
    behind: bool = False
    placed: tuple[tuple[int, int], ...] = ()
    within: tuple[tuple[int, int, int, int], ...] = ()
    asked: tuple[int, ...] = ()
    part: tuple[int, int] = (1, 1)
    units: tuple[Folded, ...] = ()
    run: FlatView | None = None


class StageSketch(Struct, frozen=True):
    """One stage of a plan.

    Parameters
    ----------
    domain : sizes of the dimensions of its index space
    cuttable : the dimensions that a grid may cut
    reads, writes : its accesses; every array is written by at most one stage
    flops : floating-point operations of all tasks together
    touched : for each array the bytes of it that pass through their memories (`costs.traffic`)
    update_bytes : of a user's join_update, the bytes of all tasks' updates as the last run measured
        them; None charges one whole output for each task
    replicable : whether every worker may run all of it (a duplicate grid)
    turns : of a product, the summed dimension along which a task may go part after part
    late : dimensions that a grid may cut only if it cuts what is reduced over, too: what needs them whole
        happens where partial states are combined
    dear : dimensions that a grid cuts only if it can cut no others, since the parts' tasks would be as long
        as the whole
    name : what errors call it
    only : the one kind of grid, "row" or "block", that a forced strategy allows
    by_hand : the one grid, or kind of grid, that is allowed, see `forced.exact_tiling`
    sorts : of a distributed sort, the bytes of a key, and those of an element that moves
    product : whether matrices are multiplied, not a matrix and a vector
    finishes : whether a pass over its value makes what is stored
    scanned : the dimension of a scan: a grid that cuts it has tasks go over what they read twice
    """

    domain: tuple[int, ...]
    cuttable: tuple[int, ...]
    reads: tuple[TaskAccess, ...]
    writes: tuple[TaskAccess, ...]
    flops: int = 0
    touched: Mapping[int, int] = field(default_factory=dict)
    update_bytes: int | None = None
    replicable: bool = True
    turns: int | None = None
    late: tuple[int, ...] = ()
    dear: tuple[int, ...] = ()
    name: str = ""
    only: str | None = None
    by_hand: str | Tiling | None = None
    sorts: tuple[int, int] | None = None
    product: bool = False
    finishes: bool = False
    scanned: int | None = None

    @property
    def touched_bytes(self) -> int:
        """Bytes of all arrays that pass through memory."""
        return sum(self.touched.values())


class Copy(Struct, frozen=True):
    """A second copy of an array, in another tiling, and the bytes that making it moves."""

    array: int
    tiling: Tiling
    moved_bytes: int


class Tilings(Struct, frozen=True):
    """The optimizer's decision.

    Tilings are in canonical form: the stride of an axis that is not cut is 0. A duplicate grid means that
    every worker runs the whole stage.
    """

    grids: tuple[Tiling, ...]
    """The grid of each stage over its domain."""
    arrays: tuple[Tiling, ...]
    """The tiling of each array."""
    read_bytes: tuple[int, ...]
    """Bytes each stage's tasks pull from other workers."""
    combine_bytes: tuple[tuple[int, ...], ...]
    """For each stage and each of its writes, bytes of partial states that move when they are combined."""
    sources: tuple[tuple[Tiling, ...], ...] = ()
    """For each stage and each of its reads, the tiling of the copy that is read."""
    copies: tuple[Copy, ...] = ()
    """Arrays to keep a second time."""
    upload_bytes: int = 0
    """Bytes that the driver sends to the workers for arrays it holds."""
    outside_bytes: int = 0
    """Bytes that the workers read of what lies outside, each for itself."""
    cost_ns: int = 0
    """Predicted time by the cost function, in nanoseconds."""
    solver: str = "none"
    """Which solver decided."""
    exact: bool = True
    """Whether no other choice among the candidates costs less."""
    bound_ns: int = 0
    """A lower bound of the cost of every choice; equals `cost_ns` when `exact`."""

    @property
    def moved_bytes(self) -> tuple[int, ...]:
        """Bytes each stage moves between workers, combining included, but without `copies`."""
        return tuple(r + sum(c) for r, c in zip(self.read_bytes, self.combine_bytes, strict=True))

    @property
    def total_bytes(self) -> int:
        """Bytes that move between workers in all."""
        return sum(self.moved_bytes) + sum(c.moved_bytes for c in self.copies)
