"""The array handle's core: a cell and a chain of views, read and written through.

What is small and on the driver is a NumPy value, and NumPy's own view of it is what a handle shows;
everything else is a node. `ndarray` adds NumPy's operators and methods to this class.
"""

from __future__ import annotations

import weakref
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell, Masked, changes, laid_out, leaf_of_shared, order_letter, order_of
from spartan_ng.api.core.chains import (
    Key,
    Views,
    appended,
    before_turns,
    is_stretched,
    kept_short,
    layout_of,
    may_overlap,
    node_through,
    seen_through,
    written,
)
from spartan_ng.api.core.forcing import compute_nodes, on_its_own, value_of
from spartan_ng.api.core.holders import hold_as, step_of
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.lent import lend
from spartan_ng.api.core.quick import HandleFields, settle_pending
from spartan_ng.api.core.views import View, assigned
from spartan_ng.api.core.wrapping import converted_node, make, wrap, wrap_masked, wrap_node
from spartan_ng.arrays import ArrayRef
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process
from spartan_ng.graph.node import Node
from spartan_ng.scratch import copy_fits, own_copy

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_new = object.__new__


class Handle(HandleFields):
    """A lazy array: `_cell` seen through `_views`.

    `_state` is the value of the cell that `_shown` was last derived from, or refers to its node.
    """

    __slots__ = ()

    _cell: Cell
    _views: Views
    _state: Any
    _shown: Any

    # --- reading -----------------------------------------------------------------------------------

    def _peek(self) -> Any:
        """The NumPy value (or NumPy's view of it) if it is on the driver, else None."""
        value = self._cell.value
        if value is None or not self._views:
            return value
        if self._state is not value:
            self._state, self._shown = value, seen_through(value, self._views)
        return self._shown

    def _found(self) -> Any:
        """The same, also where an evaluation has left the elements of the base here and nobody has asked."""
        value, node = self._peek(), self._cell._node
        if value is None and node is not None and node.data is not None and node.data.value is not None:
            self._cell.adopt(node.data, node)
            value = self._peek()
        return value

    def _node(self) -> Node:
        """The node that gives the elements."""
        cell = self._cell
        if cell.shared:
            return leaf_of_shared(self._peek())
        node = cell.node if cell._node is None else cell._node
        if not self._views:
            return node
        known = self._kept(node) if self._state.__class__ is weakref.ref else None
        if isinstance(known, Node):
            return known
        if known is not None:
            return node_through(known._node(), self._views[len(known._views) :])
        shown = node_through(node, self._views)
        if cell.value is None:
            self._state, self._shown = weakref.ref(node), weakref.ref(shown)
        return shown

    def _kept(self, node: Node) -> Node | Handle | None:
        """What is shown of the cell's node, as long as somebody has it: no view keeps what was evaluated.

        Or the array before last views that only turn and stretch, if it was asked for, which does.
        """
        state = self._state
        if state.__class__ is not weakref.ref or state() is not node:
            return None
        shown = self._shown
        return shown() if shown.__class__ is weakref.ref else shown

    def _leaf(self) -> ArrayRef | None:
        """The leaf that graphs have of the elements, if they have one; makes none."""
        node: Any = self._cell._node
        if node is not None and self._views:
            node = self._kept(node)
        return node.data if isinstance(node, Node) else None

    def _masked(self) -> Masked | None:
        """The filtered form, as long as the array has no shape yet."""
        return None if self._views else self._cell.masked

    def _force(self) -> Any:
        """The dense NumPy value, evaluated if need be; memory may be shared, so do not write."""
        value = self._peek() if self._views else self._cell.value
        if value is None and self._views:
            value = self._found()
        if value is not None:
            return value
        base = self._unturned()
        if base is not self:
            return seen_through(base._force(), self._views[len(base._views) :])
        node = self._node()
        ref = node.data
        if ref is None:
            (ref,) = compute_nodes([node])
            self._settle(ref, node)
        elif ref.value is not None and not self._views:
            self._cell.adopt(ref, node)
        value = self._peek()
        if value is not None:  # with the cell's order of axes
            return value
        value = value_of(ref)
        value = value if isinstance(value, np.ndarray) else value.toarray()
        layout = self._layout()
        stretched = 0 in layout.strides  # what reads stretched axes makes no order of them
        return value if value.ndim < 2 or stretched else laid_out(value, order_of(layout))

    def _unturned(self) -> Handle:
        """What is to be computed for these elements: without last views that only turn and stretch."""
        before = before_turns(self._views) if self._views else None
        if before is None:
            return self
        node = self._cell._node
        base = None if node is None else self._kept(node)
        if not isinstance(base, Handle):
            base = make(self._cell, self._views[:before])
            if before and node is not None and self._cell.value is None:
                self._state, self._shown = weakref.ref(node), base
        return base

    def _to_read(self) -> np.ndarray[Any, Any]:
        """The elements' memory on the driver, read-only."""
        shown = np.asarray(self._force()).view()
        shown.flags.writeable = False
        return shown

    # --- shape and kind ----------------------------------------------------------------------------

    def _known(self) -> Any:
        """The value, or else the node: whichever says the shape and the dtype."""
        cell = self._cell
        if not self._views:
            known = cell._node if cell.value is None else cell.value
            return cell.node if known is None else known
        shown = self._peek()
        return self._node() if shown is None else shown

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes; a filtered array counts its elements now."""
        return self._known().shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        masked = None if self._views else self._cell.masked
        return (self._known() if masked is None else masked.a).dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        masked = self._cell.masked
        if masked is not None and not self._views:
            return 1 + masked.a.ndim - masked.mask.ndim
        return len(self._known().shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense elements."""
        return self.size * self.itemsize

    @property
    def format(self) -> str:
        """How the elements are stored: "dense", "csr" or "compressed"."""
        cell = self._cell
        if cell.value is not None or cell.masked is not None:
            return "dense"
        return self._node().format

    # --- writing -----------------------------------------------------------------------------------

    def _see(self, view: View | Key) -> ndarray:
        """A further view of the same cell."""
        if self._cell.frozen:
            return copied(self)._see(view)
        self._own()
        return make(self._cell, appended(kept_short(self._views, self._cell), view))

    def _seen(self, view: View | Key, shown: Any) -> ndarray:
        """A further view whose value is at hand."""
        self._own()
        h = _new(Late.ndarray)
        cell = h._cell = self._cell
        h._views = (*kept_short(self._views, cell), view)
        h._state = cell.value
        h._shown = shown
        return h  # type: ignore[no-any-return]

    def _own(self) -> None:
        """Be what views of the cell name as their base."""
        if not self._views and self._cell.owner is None:
            self._cell.owner = weakref.ref(self)

    def _is_view(self) -> bool:
        """Whether another array owns the memory; one whose shape or dtype was set owns it still."""
        owner = self._cell.owner
        return bool(self._views) and (owner is None or owner() is not self)

    def _write_node(self, node: Node) -> None:
        """Replace all elements by a node's (of the same shape), cast to the dtype."""
        self._check_writable()
        cell = self._cell
        if cell.shared or (self._views and door.works_here()) or is_stretched(self._views):
            self._write(wrap_node(node))
        else:
            self._replace(node)

    def _replace(self, node: Node) -> None:
        """Let the cell have a new node, in which what is shown has the elements of `node`."""
        cell = self._cell
        node = converted_node(node, self.dtype)
        if self._views:
            cell.node  # noqa: B018 - counts what a mask keeps, before others wait
        with changes:
            node = written(cell.node, self._views, node) if self._views else node
            grown = cell.rebind(node)
        if grown:
            cell.catch_up(node)

    def _write(self, value: Handle) -> None:
        """Replace all elements by those of `value`, broadcast to the shape."""
        here = self.shape
        here_first = self._cell.shared or (bool(self._views) and self._have_here(value))
        known = value._force() if here_first else value._peek()
        if known is not None:
            target = self._in_place()
            if target is not None:
                np.copyto(target, known, casting="unsafe")  # assigned, a number would have to fit
                return
        new = assigned(value, here)
        self._check_writable()
        self._replace(new)

    def _have_here(self, *others: Any) -> bool:
        """Evaluate the array, and what a write of a part of it needs, where the part is written in place;
        whether it is."""
        cell, stretched = self._cell, may_overlap(self)
        if cell.frozen or not (stretched or door.works_here()):
            return False
        base = make(cell)
        if cell.value is None and (base.format != "dense" or (not stretched and base._lies_outside())):
            return False  # what lies outside is not read for a part: the write is a step
        settle(base, *others)
        if stretched:
            self._memory()  # from workers, too
        elif cell.value is None:
            base._force()
        return cell.value is not None

    def _lies_outside(self) -> bool:
        """Whether the elements are read as they are worked on, those of a view with all that it is one of."""
        leaf = make(self._cell)._leaf()
        return leaf is not None and leaf.chunks is not None

    def _settle(self, value: ArrayRef, node: Node) -> None:
        """Take the evaluated form of a node, if it is what is shown."""
        if not self._views:
            self._cell.adopt(value, node)
        elif self._kept(self._cell.node) is node:
            self._shown = build.data(value)

    def _in_place(self) -> Any:
        """The NumPy array to write into, or None where a functional update is better."""
        self._check_writable()
        if is_stretched(self._views):  # no update is functional; who waits keeps the elements as they are
            return self._memory()
        base = self._cell.writable()
        if base is None or not self._views:
            return base
        return self._peek()

    def _open(self) -> Any:
        """The NumPy array to write into where nobody else has a claim on its memory, else None."""
        settle_pending()
        cell = self._cell
        base = cell.value
        if base is None or cell._node is not None:
            return None
        if not cell.settled:
            if cell.borrowed or cell.frozen or cell.blank:
                return None
            cell.settled = True
        cell.tests = 0
        if not self._views:
            return base
        return self._shown if self._state is base else None

    def _lent(self) -> Any:
        """The NumPy array for another who reads and writes it where it is, from now on; what lies on workers
        comes home for good."""
        format = make(self._cell).format
        if format != "dense":
            raise TypeError(f"an array in {format} format has no memory that can be lent")
        shown = self._memory()
        self._cell.share_for_good()
        return shown

    def _exported(self, writes: bool | None) -> Any:
        """The NumPy array for another who has it for a time, to read or to write it; to write where it may be
        as it lies here, where that is not said."""
        may_write = writes is not False and self.flags.writeable  # type: ignore[attr-defined]
        if not may_write or (writes is None and not self._is_lendable()):
            if not self._layout().flags.c_contiguous:  # which is refused, or goes by the strides
                make(self._cell)._force()
            return self._to_read()
        return self._on_loan()

    def _on_loan(self) -> Any:
        """The NumPy array for another, until that and all views of it are gone (`lent.py`)."""
        while (shown := lend(self)) is None:
            self._memory()
        return shown

    def _is_lendable(self) -> bool:
        """Whether the elements are in memory of this process, the array's own or so by a copy; evaluates
        them, and for those of a view all that there are, if memory has room."""
        cell = self._cell
        if cell.value is None:
            base = make(cell)
            is_whole = not self._views or (in_process() and copy_fits(base.nbytes))
            if not is_whole or base.format != "dense":
                return False
            settle(base)
            leaf = base._leaf()
            if leaf is not None and leaf.value is not None:  # also of a copy, whose leaf is the other's
                base._force()
        value = cell.value
        if type(value) is not np.ndarray or cell.frozen:
            return False
        return cell.shared or (value.flags.writeable and not (cell.borrowed and cell.source is not None))

    def _memory(self) -> Any:
        """The NumPy array for another who writes it now; elements that lie on workers are gathered for it."""
        cell = self._cell
        value = make(cell)._force()
        is_claimed = cell.value is not value or cell._node is not None or cell.borrowed or cell.blank
        if (is_claimed or not value.flags.writeable) and not (cell.shared or cell.frozen):
            with changes:
                target, _ = cell._target(may_wait=False)  # nobody's function runs for it
            if target is None:
                cell.value, cell._node, cell.borrowed = own_copy(value), None, False
        return self._peek()

    def _check_writable(self) -> None:
        """Refuse to write to a scalar."""
        if self._cell.frozen:
            raise TypeError(f"'{np.dtype(self.dtype).name}' scalar does not support item assignment")

    def _layout(self) -> np.ndarray[Any, Any]:
        """An array with the strides NumPy would have here."""
        shown = self._peek()
        if isinstance(shown, np.ndarray):
            return shown
        cell = self._cell
        return layout_of(cell.shape, cell.dtype, self._views, cell.order)


def copied(a: Any, order: Any = "C") -> ndarray:
    """The same elements in a cell of their own; a number as an array without axes."""
    if not isinstance(a, Handle):
        return wrap(np.array(a))
    order = order_letter(order)
    value = a._peek()
    if value is not None and (door.is_small(value.nbytes) or value.dtype.hasobject):
        return wrap(value.copy(order) if value.__class__ is np.ndarray else np.array(value, order=order))
    reverse = tuple(reversed(range(a.ndim)))
    masked = a._masked()
    if masked is not None:
        kept = wrap_masked(masked)
        is_reversed = order == "F" or (order == "A" and a._cell.order == reverse)
        kept._cell.order = a._cell.order if order == "K" else reverse if is_reversed else None
        return kept
    node = a._node()
    step = step_of(node)
    node = on_its_own(node)
    cell = Cell(node=node)
    hold_as(node, cell, step)  # a copy takes no step of its own
    if a.ndim > 1 and (order == "F" or (order == "A" and a._layout().flags.fnc)):
        cell.order = reverse
    elif order == "K":
        cell.order = order_of(a._layout())
    return make(cell)


def settle(*arrays: Any) -> None:
    """Evaluate several arrays together; their elements stay where they are."""
    waiting = []
    for a in arrays:
        if isinstance(a, Handle) and (a._found() if a._views else a._cell.value) is None:
            asked = a._unturned() if a._views else a
            if (node := asked._node()).data is None:
                waiting.append((asked, node))
    for (asked, node), ref in zip(waiting, compute_nodes([n for _, n in waiting]), strict=True):
        asked._settle(ref, node)
