"""What stages are made of: slots, affine views of them, rows over registers, and what is written."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import Tiling
from spartan_ng.arrays.sparse import csr_nonzeros
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.units import Folded

VALUE = -1
"""A slot that is none: a finish reads the value that its stage has just made."""


class Slot(Struct, frozen=True):
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

    beside_bytes: int = 0
    """What reading a source takes at a time besides what is read, and"""
    whole_bytes: int = 0
    """what no read of it does without."""

    @property
    def is_outside(self) -> bool:
        """Whether its elements are read as they are used, and take no memory of a worker's."""
        return self.chunks is not None or self.mapped

    @property
    def stored_bytes(self) -> int:
        """Bytes of the form it has."""
        return self.nbytes if self.expected_bytes is None else self.expected_bytes

    @property
    def nonzeros(self) -> int | None:
        """Elements of a sparse array that are stored, as far as is known."""
        if self.expected_bytes is None or self.format != "csr":
            return None
        return csr_nonzeros(self.expected_bytes, self.shape[0], self.dtype.itemsize)

    @property
    def density(self) -> float | None:
        """The part of a sparse array's elements that is stored; None of a dense one."""
        nonzeros = self.nonzeros
        return None if nonzeros is None else min(nonzeros / max(prod(self.shape), 1), 1.0)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense form."""
        n = self.dtype.itemsize
        for s in self.shape:
            n *= s
        return n


class Axis(Struct, frozen=True):
    """How one axis of an array follows the stage's domain.

    Index `start + step * i` of the array belongs to index i of domain dimension `label`; with label
    `WHOLE`, i runs over all of `[0, size)`.
    """

    label: int
    start: int
    step: int
    size: int


class Read(Struct, frozen=True):
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


class Row(Struct, frozen=True):
    """One step of a fused body: a function of earlier registers.

    Registers are numbered: the stage's reads first, then the rows. `labels` gives the domain dimension
    of each axis of the value, or WHOLE.
    """

    kind: str
    """"map", "fold", "contract", "bincount", "along_axis", "matrices", "take", "search", "transpose",
    "broadcast", "reshape", "iota", "random", or (in a `ScanTile`) "scan"; kernels may put a "program" in the
    place of some maps, and "inside" in that of those before it."""
    fn: str | UserFunction | None
    args: tuple[int, ...]
    params: tuple[Any, ...]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    labels: tuple[int, ...]
    format: str = "dense"
    sampled: bool = False
    """Whether the value is needed (and computed) at the non-zeros of the stage's driver alone."""


class Write(Struct, frozen=True):
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

    @property
    def state_bytes(self) -> int:
        """What a block's state takes, about; 0 of a plain result."""
        return 0 if self.reducer is None else prod(self.reducer.shape) * self.reducer.dtype.itemsize
