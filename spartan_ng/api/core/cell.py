"""A cell: what the arrays of one base share. It holds a NumPy value, a node, or both for one content.

A value whose leaf is in a lazy graph must not change under it: a write first asks whether the leaf is
still alive. What is to be computed from it is computed then, as NumPy would have done long before; where that
does not set it free, or it is small, the value is copied (copy on write).

Threads may write to parts of one array: one at a time changes what a cell stands for. Nothing is evaluated
meanwhile, since what is evaluated may be a user's function that writes; so whoever has evaluated a cell's
node finds out whether the cell still holds it.
"""

from __future__ import annotations

import mmap
import sys
import threading
import weakref
from typing import Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.forcing import compute_nodes, counted_among, release, settled
from spartan_ng.api.core.holders import count_anew, hold, hold_as, holder_of
from spartan_ng.api.core.loans import leaf_on_loan
from spartan_ng.api.core.quick import CellFields, settle_pending
from spartan_ng.api.core.turns import due
from spartan_ng.arrays import ArrayRef
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.costs.choices import LOAN_READS
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.scratch import c_copy, own_copy, to_be_written

changes = threading.RLock()
"""Held while what a cell stands for is changed."""


class Masked:
    """Elements of `a` where `mask`, over its leading axes, is true; never compacted until it must be."""

    __slots__ = ("a", "mask")

    def __init__(self, a: Node, mask: Node) -> None:
        self.a = a
        self.mask = mask

    def count(self) -> int:
        """How many sub-arrays are kept; evaluates the mask when it is asked for the first time."""
        self.a, self.mask, count = counted_among(self.a, self.mask)
        return count

    def compact(self) -> Node:
        """The elements one after the other."""
        self.a, self.mask, count = counted_among(self.a, self.mask, is_next=True)
        return build.compress(self.a, self.mask, count)

    def wide_mask(self) -> Node:
        """The mask with the axes of `a`, ready to be broadcast."""
        return build.reshape(self.mask, self.mask.shape + (1,) * (self.a.ndim - self.mask.ndim))


class Cell(CellFields):
    """The shared, mutable base of one or more arrays.

    Parameters
    ----------
    value : a dense NumPy value on the driver (a NumPy scalar for what NumPy returns as a scalar), or None
    node : the lazy value, or None
    masked : a filtered array whose shape is not known yet, or None
    frozen : whether it stands for a NumPy scalar, which cannot be written to
    borrowed : whether somebody else may see the value's memory; it is copied before the first write, and, if
        the other one may write to it, before it becomes a leaf of a graph

    `shared` says that the value is another's buffer, which is read and written where it is: a graph gets a
    copy of what it holds at the time, a new one for each graph. `lender` is whose buffer that is. `lent` says
    how many have it for a time (`lent.py`); where nobody has, it is shared for good.
    `blank` says that the value has just been made of zeros: a graph takes the constant instead of its memory.
    `settled` says that the value has been found to be nobody else's, neither blank nor frozen: as long as
    there is no node, it may be written to.
    `picks` counts the elements, and lines, that were read one by one since the last evaluation. `tests`
    counts comparisons with a number since a write (`members.py`).
    `rent` is what calls have taken longer that read a borrowed value where it lies (`loans.py`).
    `owner` is the array without views that the first view was made of. `source` is where a value that has
    not been written to is mapped from.

    `order` lists the axes from the largest stride to the least where a value was not in C order: views were
    made for that layout, so the next value gets it, too.
    """

    __slots__ = ()

    masked: Masked | None
    owner: weakref.ref[Any] | None
    _node: Node | None

    def __init__(
        self,
        value: Any = None,
        node: Node | None = None,
        masked: Masked | None = None,
        frozen: bool = False,
        borrowed: bool = False,
    ) -> None:
        self.value = value
        if frozen:
            self.frozen = True
        if borrowed:
            self.borrowed = True
        if masked is not None:
            self.masked = masked
        if node is not None:
            self._node = node
            if hold(node, self):
                self.catch_up(node)

    @property
    def shape(self) -> tuple[int, ...]:
        """The base's shape; counts a mask if it must."""
        if self.value is not None:
            return self.value.shape  # type: ignore[no-any-return]
        return self.node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The base's dtype."""
        if self.value is not None:
            return self.value.dtype  # type: ignore[no-any-return]
        if self.masked is not None:
            return self.masked.a.dtype
        assert self._node is not None, "a cell without anything"
        return self._node.dtype

    @property
    def node(self) -> Node:
        """The base as a node; a value becomes a leaf of the graph."""
        if self.shared:
            return leaf_of_shared(self.value)
        node = self._node
        if node is not None:
            return node
        if self.borrowed and self.is_rented and (leaf := leaf_on_loan(self.value, self)) is not None:
            return leaf
        masked = self.masked
        kept = None if masked is None else masked.compact()
        with changes:
            if self._node is None:
                self._node = self._leaf() if kept is None else kept
                if kept is not None:
                    self.masked = None
                    hold_as(kept, self)
            return self._node

    def _leaf(self) -> Node:
        """The value as a graph takes it."""
        if self.blank:
            return build.broadcast(build.constant(np.zeros((), self.value.dtype)), self.value.shape)
        self._take_possession()
        array = np.asarray(self.value)
        ref = ArrayRef(array.shape, array.dtype, value=array, source=self.source if self.borrowed else None)
        ref.on_disk = array.base is not None and is_mapped(array)
        return build.data(ref)

    @property
    def is_rented(self) -> bool:
        """Whether a call reads the value where it lies in somebody else's memory, which is dear to copy, and
        has been read there for less than that (`loans.py`)."""
        value = self.value
        if not self.borrowed or self._node is not None or self.rent >= LOAN_READS or not _may_change(value):
            return False
        return not (value.flags.owndata and sys.getrefcount(value) == 3)  # as below

    def keep(self, ref: ArrayRef) -> None:
        """Copy what a graph has read on loan, and still does: `ref` is its leaf's, and has the copy."""
        with changes:
            value = ref.value
            if self.value is not value or not self.borrowed or self._node is not None:
                ref.value = own_copy(value)
                return
            self._take_possession()
            ref.value = self.value
            self._node = build.data(ref)

    def _take_possession(self) -> None:
        """Copy a value that somebody else may still write to: what is built on it must not change."""
        value = self.value
        if not self.borrowed or not _may_change(value):
            return
        # This cell, the name above, and the argument: nobody else knows it.
        if not (value.flags.owndata and sys.getrefcount(value) == 3):
            self.value = _on_its_own(value)
        self.borrowed = False

    def holds(self, node: Node) -> bool:
        """Whether `node` still is what the cell stands for."""
        return self.value is None and self._node is node

    def is_part_of_one(self) -> bool:
        """Whether one view is all that is left of the arrays that shared this: nobody can ask for the rest.

        The cell is known to that view, to the caller, to this function and to `getrefcount`.
        """
        return self.owner is not None and self.owner() is None and sys.getrefcount(self) <= 4

    def pick(self) -> None:
        """Note that one element, or line, is asked for; a program that walks over them wants them here.

        Each single write to a lazy value is a step of the graph, each single read a program of its own.
        """
        if self.value is not None or self._node is None or self._node.format != "dense":
            return
        self.picks += 1
        if door.is_walked_over(self.picks, self._node.nbytes):
            self.settle(self._node)

    def settle(self, node: Node) -> None:
        """Evaluate the node that the cell holds."""
        self.adopt(compute_nodes([node])[0], node)

    def catch_up(self, node: Node) -> None:
        """Evaluate what is due now that the cell holds this node."""
        nodes = due(node, self)
        for late, ref in zip(nodes, compute_nodes(nodes), strict=True):
            cell = holder_of(late)
            if cell is not None:
                cell.adopt(ref, late)
        if nodes:
            count_anew(node)

    def rebind(self, node: Node) -> bool:
        """Become another lazy value (of the same shape and dtype); whether something may be due."""
        if self.value is not None:
            self.order = order_of(self.value)
        self.value = None
        self.masked = None
        self.borrowed = self.settled = self.blank = False
        self._node = node
        return hold(node, self)

    def adopt(self, ref: ArrayRef, node: Node) -> None:
        """Become the evaluated form of a node, unless that is what it stands for no more."""
        with changes:
            if self.holds(node):
                self._adopt(ref, node)

    def _adopt(self, ref: ArrayRef, node: Node) -> None:
        self.masked = None
        self.picks = 0
        self._node = settled(node, ref)
        if ref.format == "dense" and ref.value is not None:
            if self.frozen and ref.dtype.kind in "biufcmM":
                self.value = ref.value[()]
                return
            self.value = laid_out(ref.value, self.order)
            own = ref.private or ref.value.flags.owndata
            self.borrowed, self.settled = self.value is ref.value and not own, False
            if self.value is not ref.value:  # one copy is enough: the next graph takes this one
                self._node = None

    def is_alone(self) -> bool:
        """Whether the value is here, and what is written to it is for the array and its views alone: no graph
        that is to be computed reads it, nor does anybody else."""
        settle_pending()
        with changes:
            if self.value is None or self.frozen or self.shared or self.borrowed or self.blank:
                return False
            node = self._node
            if node is not None:
                watch = weakref.ref(node.data)
                self._node = None
                del node
                if (ref := watch()) is not None:
                    self._node = build.data(ref)
            return self._node is None

    def writable(self) -> Any:
        """The value, for a write in place; None where a functional update is better.

        A value that a graph has captured is copied if it is small, or if the graph cannot be evaluated here.
        """
        settle_pending()
        with changes:
            target, ref = self._target()
        if ref is not None:
            release(ref)
            del ref
            with changes:
                target, _ = self._target(may_wait=False)
        return target

    def share_for_good(self) -> None:
        """Let another have the value's memory, who does not say when that ends."""
        settle_pending()
        with changes:
            self.shared, self.lent = True, 0

    def given_away(self) -> Any:
        """The value's memory for somebody who may write to it, and None where others know it.

        What still looks at the cell is shown that memory, and has a copy before it writes or builds on it.
        """
        settle_pending()
        with changes:
            value, node = self.value, self._node
            if type(value) is not np.ndarray or self.frozen or self.shared or self.borrowed:
                return None
            watch = None if node is None or self.blank else weakref.ref(node.data)
            self._node, node, self.borrowed, self.settled, self.blank = None, None, True, False, False
            is_kept = watch is not None and watch() is not None
            # Known to this cell, to the name above, and to the argument.
            return value if not is_kept and sys.getrefcount(value) == 3 and value.flags.writeable else None

    def _target(self, may_wait: bool = True) -> tuple[Any, ArrayRef | None]:
        """The value for a write in place, or the leaf whose readers are to be evaluated before."""
        if self.value is None or self.frozen:
            return None, None
        if self.shared:
            if not self.value.flags.writeable:
                raise ValueError("assignment destination is read-only")
            return self.value, None
        if self.blank:  # what a graph has taken is the constant, not this memory
            self.value = to_be_written(self.value)
            self.blank, self._node = False, None  # from now on C writes to it, and waits for nobody
        node = self._node
        if node is not None:
            watch = weakref.ref(node.data)
            borrowed, self.borrowed, self.settled = self.borrowed, True, False  # nobody takes it for free
            self._node = None
            del node
            ref = watch()
            if ref is not None and may_wait and not door.is_small(self.value.nbytes):
                self._node = build.data(ref)  # stays if a reader raises: it still needs what it would read
                self.borrowed = borrowed
                return None, ref if door.works_here() else None
            del ref
            if watch() is not None:
                self.value = own_copy(self.value)
            self.borrowed = borrowed
        if self.borrowed or not self.value.flags.writeable:
            self.value = own_copy(self.value)
            self.borrowed = False
        return self.value, None


def _may_change(value: Any) -> bool:
    """Whether somebody may write to a value's memory: through it, or through what it is a view of."""
    # A read-only view says nothing: its base's owner may write.
    while isinstance(value, np.ndarray):
        if value.flags.writeable:
            return True
        value = value.base
    return not (value is None or isinstance(value, bytes | mmap.mmap) or getattr(value, "of_file", False))


def _on_its_own(value: Any) -> Any:
    """A copy of a value; of the memory it is a view of, where elements lie over each other there."""
    root = value
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root.nbytes >= value.nbytes or not root.flags.forc:
        return own_copy(value)
    offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    memory = own_copy(root.ravel("K"))
    return np.ndarray(value.shape, value.dtype, memory.data, offset, value.strides)


def leaf_of_shared(value: Any) -> Node:
    """A leaf with the elements as they are now, of memory that others write to: a copy, or for the call that
    is under way the memory itself."""
    leaf = leaf_on_loan(value)
    if leaf is not None:
        return leaf
    kept = _memory_copied(value)
    return build.data(ArrayRef(kept.shape, kept.dtype, value=kept))


def _memory_copied(value: Any) -> Any:
    """A copy of an array; where it shows memory many times over, this is copied once and shown likewise."""
    steps = [s // value.itemsize for s in value.strides] if value.itemsize else []
    aligned = all(s >= 0 and n * value.itemsize == s for s, n in zip(value.strides, steps, strict=False))
    span = 1 + sum(step * (n - 1) for step, n in zip(steps, value.shape, strict=False))
    if not aligned or span >= value.size or type(value) is not np.ndarray:
        return np.array(value)
    line = np.lib.stride_tricks.as_strided(value, (span,), (value.itemsize,)).copy()
    return np.lib.stride_tricks.as_strided(line, value.shape, value.strides)


_ORDERS = frozenset({"C", "F", "A", "K", None})


def order_letter(order: Any) -> Any:
    """An order of elements in memory as its capital letter, or None."""
    if order in _ORDERS:
        return order
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    if order.upper() not in _ORDERS:
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order.upper()


def order_of(value: Any) -> tuple[int, ...] | None:
    """The axes from the largest stride to the least, or None for C order."""
    if value.ndim < 2 or value.flags.c_contiguous:
        return None
    order = tuple(int(a) for a in np.argsort([-abs(s) for s in value.strides], kind="stable"))
    return None if order == tuple(range(value.ndim)) else order


def laid_out(value: Any, order: tuple[int, ...] | None) -> Any:
    """A value in C order, or in the order of axes asked for; copied only if it must be."""
    if order is None:
        return value if value.flags.c_contiguous else c_copy(value)
    turned = value.transpose(order)
    if turned.flags.c_contiguous:
        return value
    return c_copy(turned).transpose(np.argsort(order))
