"""The array handle's core: a cell and a chain of views, read and written through.

What is small and on the driver is a NumPy value, and NumPy's own view of it is what a handle shows;
everything else is a node. `ndarray` adds NumPy's operators and methods to this class.
"""

from __future__ import annotations

import operator
import sys
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from spartan_ng.api.core.cell import Cell, Masked, order_of
from spartan_ng.api.core.errstate import is_strict, note
from spartan_ng.api.core.forcing import run, value_of
from spartan_ng.api.core.views import Reshape, View, appended, is_stretched, layout_of, shortened, written
from spartan_ng.api.core.warn import warn_user
from spartan_ng.arrays import ArrayRef
from spartan_ng.arrays.copying import private_copy
from spartan_ng.arrays.sparse import csr_array, is_sparse
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import writes_in_place
from spartan_ng.graph.node import Node

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

Shape: TypeAlias = tuple[int, ...]
PYTHON_SCALARS = (int, float, complex)
_PLAIN = frozenset({int, float, bool, complex, str})
NUMERIC = frozenset(t for t in np.sctypeDict.values() if issubclass(t, np.number | np.bool_)) - {
    np.timedelta64
}
"""The types of NumPy's scalars that are numbers."""
_PLAIN_OR_NUMERIC = _PLAIN | NUMERIC
_ORDERS = frozenset({"C", "F", "A", "K", None})
MOST_AXES = 64
CHAIN = 16
"""Views of views are joined where so many follow each other: loops cut an array shorter by the thousand."""
_new = object.__new__


def is_array_like(a: Any) -> bool:
    """Whether an object that is no array says how it becomes one; what it gives may be an array of ours."""
    return not isinstance(a, Handle | np.ndarray | np.generic | type) and hasattr(a, "__array__")


def is_override(a: Any) -> bool:
    """Whether an operand of another library says what universal functions mean, or refuses them (NEP 13)."""
    if a is None or isinstance(a, Handle | np.ndarray | np.generic):
        return False
    return hasattr(type(a), "__array_ufunc__")


def wraps(a: Any) -> bool:
    """Whether an array-like's class makes what universal functions give its own, by `__array_wrap__`."""
    return not isinstance(a, Handle | np.ndarray | np.generic) and hasattr(type(a), "__array_wrap__")


def check_wraps(a: Any) -> None:
    """SubclassError for an operand that makes results its own, or says what universal functions mean."""
    if is_override(a):
        raise SubclassError(f"universal functions of {type(a).__name__} are its __array_ufunc__'s")
    if wraps(a):
        raise SubclassError(f"results of {type(a).__name__} are made by its __array_wrap__")


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A `dtype=` argument; a class of dtypes stands for the one that NumPy would make."""
    if isinstance(dtype, type) and issubclass(dtype, np.dtype):
        return np.zeros(0, dtype).dtype
    return np.dtype(float if dtype is None else dtype)


def same_bytes(a: np.dtype[Any], b: np.dtype[Any]) -> bool:
    """Whether elements of one dtype are another's; texts of any length lie in their dtype's own memory."""
    return a is b or (a == b and a.kind != "T")


class SubclassError(TypeError):
    """An operand is of a subclass of NumPy's array class, as masked arrays and matrices are.

    Its class says what functions of it mean, so the function that meets it is left to NumPy.
    """


def is_subclass(a: Any) -> bool:
    """Whether a NumPy array's class has rules of its own; mapped files have none."""
    return a.__class__ is not np.ndarray and isinstance(a, np.ndarray) and not isinstance(a, np.memmap)


class Handle:
    """A lazy array: `_cell` seen through `_views`.

    `_state` is the value or node of the cell that `_shown` was last derived from.
    """

    __slots__ = ("__weakref__", "_cell", "_shown", "_state", "_views")

    _cell: Cell
    _views: tuple[View, ...]
    _state: Any
    _shown: Any

    # --- reading -----------------------------------------------------------------------------------

    def _peek(self) -> Any:
        """The NumPy value (or NumPy's view of it) if it is on the driver, else None."""
        value = self._cell.value
        if value is None or not self._views:
            return value
        if self._state is not value:
            shown = value
            for view in self._views:
                shown = view.apply_value(shown)
            self._state, self._shown = value, shown
        return self._shown

    def _node(self) -> Node:
        """The node that gives the elements."""
        cell = self._cell
        node = cell.node
        if not self._views:
            return node
        if self._state is node:
            return self._shown  # type: ignore[no-any-return]
        shown = node
        for view in self._views:
            shown = view.apply(shown)
        if cell.value is None:
            self._state, self._shown = node, shown
        return shown

    def _leaf(self) -> ArrayRef | None:
        """The leaf that graphs have of the elements, if they have one; makes none."""
        node = self._cell._node
        if node is not None and self._views:
            node = self._shown if self._state is node else None
        return None if node is None else node.data

    def _masked(self) -> Masked | None:
        """The filtered form, as long as the array has no shape yet."""
        return None if self._views else self._cell.masked

    def _force(self) -> Any:
        """The dense NumPy value, evaluated if need be; memory may be shared, so do not write."""
        value = self._peek()
        if value is not None:
            return value
        ref = self._node().data
        if ref is None:
            (ref,) = run([self._node()])
            self._settle(ref)
        elif ref.value is not None and not self._views:
            self._cell.adopt(ref)
        value = self._peek()
        if value is not None:  # with the cell's order of axes
            return value
        value = value_of(ref)
        return value if isinstance(value, np.ndarray) else value.toarray()

    def _to_read(self) -> np.ndarray[Any, Any]:
        """The elements' memory on the driver, read-only."""
        shown = np.asarray(self._force()).view()
        shown.flags.writeable = False
        return shown

    # --- shape and kind ----------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Lengths of the axes; a filtered array counts its elements now."""
        shown = self._peek()
        return self._node().shape if shown is None else shown.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        cell = self._cell
        if not self._views:
            return cell.dtype
        shown = self._peek()
        return shown.dtype if shown is not None else self._node().dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        if not self._views and self._cell.masked is not None:
            masked = self._cell.masked
            return 1 + masked.a.ndim - masked.mask.ndim
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for s in self.shape:
            n *= s
        return n

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

    def _see(self, view: View) -> ndarray:
        """A further view of the same cell."""
        if self._cell.frozen:
            return copied(self)._see(view)
        self._own()
        return make(self._cell, appended(self._views, view))

    def _seen(self, view: View, shown: Any) -> ndarray:
        """A further view whose value is at hand."""
        self._own()
        h = _new(Late.ndarray)
        cell = h._cell = self._cell
        views = self._views
        if len(views) >= CHAIN:
            views = shortened(views, cell.value)
        h._views = (*views, view)
        h._state = cell.value
        h._shown = shown
        return h  # type: ignore[no-any-return]

    def _own(self) -> None:
        """Be what views of the cell name as their base."""
        if not self._views and self._cell.owner is None:
            self._cell.owner = weakref.ref(self)

    def _write_node(self, node: Node) -> None:
        """Replace all elements by a node's (of the same shape), cast to the dtype."""
        self._check_writable()
        cell = self._cell
        if cell.shared or (self._views and writes_in_place()):
            self._write(wrap_node(node))
        else:
            self._replace(node)

    def _replace(self, node: Node) -> None:
        """Let the cell have a new node, in which what is shown has the elements of `node`."""
        cell = self._cell
        if not self._views:
            cell.rebind(converted_node(node, cell.dtype))
        else:
            node = converted_node(node, self.dtype)
            cell.rebind(written(cell.node, self._views, node))

    def _write(self, value: Handle) -> None:
        """Replace all elements by those of `value`, broadcast to the shape."""
        here = self.shape
        here_first = self._cell.shared or (bool(self._views) and self._have_here(value))
        known = value._force() if here_first else value._peek()
        if known is not None:
            target = self._in_place()
            if target is not None:
                target[...] = known
                return
        new = assigned(value, here)
        self._check_writable()
        self._replace(new)

    def _have_here(self, *others: Any) -> bool:
        """Evaluate the array, and what a write of a part of it needs, where the part is written in place;
        whether it is."""
        cell = self._cell
        in_place = writes_in_place() or is_stretched(self._views)
        if not in_place or cell.frozen or make(cell).format != "dense":
            return False
        base = make(cell)
        settle(base, *others)
        base._force()
        return cell.value is not None

    def _settle(self, ref: ArrayRef) -> None:
        """Take the evaluated form of what is shown."""
        if not self._views:
            self._cell.adopt(ref)
        elif self._state is self._cell.node:
            self._shown = build.data(ref)

    def _in_place(self) -> Any:
        """The NumPy array to write into, or None where a functional update is better."""
        self._check_writable()
        base = self._cell.writable()
        if base is None or not self._views:
            return base
        return self._peek()

    def _open(self) -> Any:
        """The NumPy array to write into where nobody else has a claim on its memory, else None."""
        cell = self._cell
        base = cell.value
        if base is None or cell._node is not None or cell.borrowed or cell.frozen or cell.blank:
            return None
        if not self._views:
            return base
        return self._shown if self._state is base else None

    def _lent(self) -> Any:
        """The NumPy array for another who reads and writes it where it is, from now on."""
        base = make(self._cell)
        base._force()
        if self._cell.value is None:
            raise TypeError("only elements in this process have memory that can be lent")
        shown = self._memory()
        self._cell.shared = True
        return shown

    def _memory(self) -> Any:
        """The NumPy array for another who writes it now; elements that lie on workers are gathered for it."""
        cell = self._cell
        value = make(cell)._force()
        if cell._node is not None or cell.borrowed:
            cell.value, cell._node, cell.borrowed = private_copy(value), None, False
        cell.blank = False
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


class _Late:
    """What is defined after this module, because it is made of it."""

    __slots__ = ("ndarray", "number", "record", "scalar", "stack")

    def __init__(self) -> None:
        self.ndarray: Any = Handle
        self.scalar: Any = Handle
        self.record: Any = Handle
        self.number: Any = Handle
        self.stack: Any = None


Late = _Late()
"""An object, because every array that is made asks it: Python finds a slot faster than what a class has."""


def register(cls: type[Handle], stack: Any) -> None:
    """Say which class arrays have, and how a list of arrays becomes one."""
    Late.ndarray = cls
    Late.stack = stack


def register_scalar(cls: type[Handle], record: type[Handle], number: type[Handle]) -> None:
    """Say which classes numbers on the driver, records, and numbers that have yet to be computed have."""
    Late.scalar, Late.record, Late.number = cls, record, number


def over_buffer(value: Any, lender: Any = None) -> ndarray:
    """An array that reads and writes another's buffer, which a NumPy array shows, where it is."""
    cell = Cell(value)
    cell.shared = True
    cell.lender = value.base if lender is None else lender
    return make(cell)


def make(cell: Cell, views: tuple[View, ...] = ()) -> ndarray:
    """An array over a cell."""
    h = object.__new__(Late.ndarray)
    h._cell = cell
    h._views = views
    h._state = None
    return h  # type: ignore[no-any-return]


def wrap(value: Any) -> ndarray:
    """An array for a NumPy value that nobody else will write to.

    A NumPy scalar stays one, and so does an array of a subclass.
    """
    if type(value) is not np.ndarray:
        if not isinstance(value, np.ndarray):
            return scalar(value)
        if is_subclass(value):
            return value  # type: ignore[return-value]
    cell = _new(Cell)
    cell.value = value
    h = _new(Late.ndarray)
    h._cell = cell
    h._views = ()
    h._state = None
    return h  # type: ignore[no-any-return]


def numbers_here(a: Any) -> Any:
    """The value of a small array of numbers that is on the driver, which NumPy works on at once; or None."""
    value = a._peek() if isinstance(a, Handle) else None
    if type(value) is not np.ndarray or not value.nbytes <= config.small_bytes > 0:
        return None
    return value if value.dtype.kind in "biufc" else None


def scalar(value: Any) -> ndarray:
    """What stands for a NumPy scalar: numbers and records are ours; texts, times and objects stay."""
    if value.__class__ in NUMERIC:
        h = _new(Late.scalar)
        h._number = value
        return h  # type: ignore[no-any-return]
    return _record(value) if isinstance(value, np.void) else value


def _record(value: Any) -> ndarray:
    """What stands for a NumPy record."""
    h = _new(Late.record)
    h._cell, h._views, h._state = Cell(value, frozen=True), (), None
    return h  # type: ignore[no-any-return]


def converted_node(node: Node, dtype: np.dtype[Any]) -> Node:
    """A program's own conversion of elements, which it is told of where imaginary parts are lost."""
    if node.dtype.kind == "c" and dtype.kind in "iuf":
        warn_user("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)
        node = build.map_("real", node)
    if (is_strict() and not np.can_cast(node.dtype, dtype)) or (node.dtype.hasobject and not dtype.hasobject):
        return make(Cell(wrap_node(node)._force().astype(dtype)))._node()
    return build.cast(node, dtype)


def wrap_node(node: Node) -> ndarray:
    """An array for a node; one without axes is what NumPy would return as a scalar."""
    note(node)
    if node.shape:
        return make(Cell(node=node))
    h = _new(Late.number)
    h._cell, h._views, h._state = Cell(node=node, frozen=True), (), None
    return h  # type: ignore[no-any-return]


def wrap_masked(masked: Masked) -> ndarray:
    """An array whose shape is not known yet."""
    note(masked.a)
    return make(Cell(masked=masked))


def order_letter(order: Any) -> Any:
    """An order of elements in memory as its capital letter, or None."""
    if order in _ORDERS:
        return order
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    if order.upper() not in _ORDERS:
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order.upper()


def copied(a: Handle, order: Any = "C") -> ndarray:
    """The same elements in a cell of their own."""
    order = order_letter(order)
    value = a._peek()
    if value is not None and value.nbytes <= config.small_bytes:
        return wrap(value.copy(order) if value.__class__ is np.ndarray else np.array(value, order=order))
    masked = a._masked()
    if masked is not None:
        return wrap_masked(masked)
    cell = Cell(node=a._node())
    if order == "F" and a.ndim > 1:
        cell.order = tuple(reversed(range(a.ndim)))
    elif order in ("K", "A"):
        cell.order = order_of(a._layout())
    return make(cell)


def in_order(a: ndarray, order: Any) -> ndarray:
    """An array, copied unless it has the memory layout that is asked for: "C", "F", or None for any."""
    order = order_letter(order)
    if order not in ("C", "F") or a.ndim == 0:
        return a
    flags = a._layout().flags
    return a if (flags.f_contiguous if order == "F" else flags.c_contiguous) else a.copy(order)


def sparse_handle(matrix: Any, dtype: Any = None) -> ndarray:
    """A scipy.sparse matrix as an array of format "csr"."""
    value = csr_array(matrix, dtype=dtype)
    if not value.has_canonical_format:  # elementwise functions look at each element once
        value = value.copy()
        value.sum_duplicates()
    ref = ArrayRef(value.shape, value.dtype, value=value, format="csr", nnz=int(value.nnz))
    return make(Cell(node=build.data(ref)))


def as_handle(a: Any, dtype: Any = None) -> ndarray:
    """Anything array-like as an array; a NumPy array is not copied before that is needed.

    Raises
    ------
    SubclassError : a masked array, a matrix, or an array of another subclass of NumPy's
    """
    if isinstance(a, Handle):
        if dtype is not None and not same_bytes(a.dtype, as_dtype(dtype)):
            return a.astype(dtype)  # type: ignore[attr-defined, no-any-return]
        return a  # type: ignore[return-value]
    if is_sparse(a):
        return sparse_handle(a, dtype)
    if isinstance(a, np.generic):
        if dtype is not None and np.dtype(dtype).hasobject:
            return make(Cell(np.asarray(a, dtype)))
        if dtype is not None:
            a = np.asarray(a, dtype)[()] if np.dtype(dtype).kind in "SU" else a.astype(dtype)
        if a.__class__ in NUMERIC or isinstance(a, np.void):
            return scalar(a)
        return make(Cell(a, frozen=True))
    if isinstance(a, list | tuple):
        if dtype is not None and Late.number in map(type, a):
            a = _held(a, np.dtype(dtype))
        left: list[Handle] | None = [] if dtype is None or not np.dtype(dtype).hasobject else None
        a = _nested(a, left)
        if isinstance(a, Handle):
            return as_handle(a, dtype)
        if left:
            settle(*left)
            a = _with_values(a)
    elif isinstance(a, np.ndarray):
        if is_subclass(a):
            raise SubclassError(
                f"{type(a).__name__} is a subclass of NumPy's array class, and works with NumPy's functions "
                "only; np.asarray gives its elements"
            )
    elif is_array_like(a):
        a = a.__array__()
        if isinstance(a, Handle):
            return as_handle(a, dtype)
        if not isinstance(a, np.ndarray | np.generic):
            raise ValueError("object __array__ method not producing an array")
    value = np.asarray(a, dtype)
    return make(Cell(value, borrowed=isinstance(a, np.ndarray)))


def _held(items: Any, dtype: np.dtype[Any]) -> Any:
    """A sequence whose numbers are computed where integers may not hold one of them, for NumPy's error."""
    numbers = [i for i in items if type(i) is Late.number]
    if dtype.kind not in "iu" or all(np.can_cast(i.dtype, dtype) for i in numbers):
        return items
    settle(*numbers)
    return [i._force()[()] if type(i) is Late.number else i for i in items]


def _nested(items: Any, left: list[Handle] | None, depth: int = 1) -> Any:
    """A sequence with arrays in it: stacked if all are and may be; others as they are.

    Arrays that are not stacked stay in their lists, and are appended to `left`. Where they may become
    elements (`left` is None) all stay: NumPy finds out if they do. A list in itself ends at the most axes
    that there are.
    """
    if depth > MOST_AXES or _PLAIN.issuperset(map(type, items)):
        return items
    numbers = [i._number if type(i) is Late.scalar else i for i in items]
    if _PLAIN_OR_NUMERIC.issuperset(map(type, numbers)):
        return tuple(numbers) if isinstance(items, tuple) else numbers
    parts = [
        _nested(i, left, depth + 1)
        if isinstance(i, list | tuple)
        else as_handle(i)
        if left is not None and is_array_like(i)
        else i
        for i in numbers
    ]
    if left is not None:
        arrays = [i for i in parts if isinstance(i, Handle)]
        if parts and len(arrays) == len(parts) and all(i.ndim < MOST_AXES for i in arrays):
            return Late.stack(parts)
        left += arrays
    if all(i is j for i, j in zip(parts, items, strict=True)):
        return items
    return tuple(parts) if isinstance(items, tuple) else parts


def _with_values(items: Any, depth: int = 1) -> Any:
    """A nested sequence with the values of its arrays, which are computed."""
    if depth > MOST_AXES or _PLAIN.issuperset(map(type, items)):
        return items
    parts = [_with_values(i, depth + 1) if isinstance(i, list | tuple) else forced(i) for i in items]
    return tuple(parts) if isinstance(items, tuple) else parts


def shape_tuple(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple of ints."""
    if isinstance(shape, Handle):
        shape = shape._force().tolist()
    lengths: tuple[int, ...]
    if shape.__class__ is tuple and all(n.__class__ is int and n >= 0 for n in shape):
        return shape
    if isinstance(shape, bool):
        raise TypeError(f"expected a sequence of integers or a single integer, got {shape}")
    try:
        lengths = (operator.index(shape),)
    except TypeError:
        lengths = tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in lengths):
        raise ShapeError(f"negative dimensions are not allowed: {lengths}")
    if any(n > sys.maxsize for n in lengths):
        raise ValueError(f"Maximum allowed dimension exceeded: {lengths}")
    return lengths


def settle(*arrays: Any) -> None:
    """Evaluate several arrays together; their elements stay where they are."""
    waiting = [a for a in arrays if isinstance(a, Handle) and a._peek() is None]
    waiting = [h for h in waiting if h._node().data is None]
    for h, ref in zip(waiting, run([h._node() for h in waiting]), strict=True):
        h._settle(ref)


def assigned(value: Handle, shape: tuple[int, ...]) -> Node:
    """The elements of an array of `shape` to which a value is assigned: leading axes of one element go."""
    there = value.shape
    extra = max(len(there) - len(shape), 0)
    kept = there[extra:]
    if there[:extra] != (1,) * extra or build.broadcast_shapes("assign", shape, kept) != shape:
        raise ShapeError(f"could not broadcast input array from shape {there} into shape {shape}")
    return build.broadcast(value._see(Reshape(kept))._node() if kept != there else value._node(), shape)


def forced(a: Any) -> Any:
    """The NumPy value of an array, computed now; another thing as it is."""
    return a._force() if isinstance(a, Handle) else a


def numpys(a: Any) -> Any:
    """What NumPy has in an array's place, computed now: a number for a number; another thing as it is."""
    return a._force()[()] if isinstance(a, Handle) and a._cell.frozen else forced(a)


def values(*arrays: Any) -> tuple[Any, ...]:
    """NumPy values of several arrays, all computed together; other things pass through."""
    settle(*arrays)
    return tuple(forced(a) for a in arrays)
