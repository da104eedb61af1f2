"""Views as lenses: each can be read from its base, and written back into it.

`apply` reads on nodes, `apply_value` reads on NumPy values (sharing memory), and `put` gives the base with
the view's elements replaced. A chain of views writes through by putting back from the last to the first.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from spartan_ng.api.core.forcing import run, value_of
from spartan_ng.arrays import ArrayRef
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.ops.functions import UserFunction


class View(Protocol):
    """One step from a base to a part of it."""

    def apply(self, base: Node) -> Node:
        """What is seen of `base`."""
        ...

    def apply_value(self, base: Any) -> Any:
        """What is seen of a NumPy array, as NumPy's own view."""
        ...

    def put(self, base: Node, value: Node) -> Node:
        """`base` with what is seen replaced by `value`."""
        ...


@dataclass(frozen=True, slots=True)
class Slice:
    """`base[starts[i] + steps[i] * j]` for j below shape[i], on every axis."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    shape: tuple[int, ...]

    def apply(self, base: Node) -> Node:
        """The slice of a node."""
        return build.slice_(base, self.starts, self.steps, self.shape)

    def apply_value(self, base: Any) -> Any:
        """The slice of an array."""
        return base[
            tuple(
                slice(s, None if s + t * n < 0 else s + t * n, t)
                for s, t, n in zip(self.starts, self.steps, self.shape, strict=True)
            )
        ]

    def put(self, base: Node, value: Node) -> Node:
        """Assign the region; a region that runs backwards is turned around first."""
        if 0 in self.shape:
            return base
        back = [t < 0 for t in self.steps]
        if any(back):
            starts = [n - 1 if b else 0 for b, n in zip(back, self.shape, strict=True)]
            value = build.slice_(value, starts, [-1 if b else 1 for b in back], self.shape)
        region = tuple(
            (s + t * (n - 1), -t) if t < 0 else (s, t if n > 1 else 1)
            for s, t, n in zip(self.starts, self.steps, self.shape, strict=True)
        )
        if self.shape == base.shape:
            return value
        return build.assign(base, value, region)

    def then(self, inner: Slice) -> Slice:
        """`inner` after this slice, as one slice."""
        starts = tuple(s + t * i for s, t, i in zip(self.starts, self.steps, inner.starts, strict=True))
        steps = tuple(t * i for t, i in zip(self.steps, inner.steps, strict=True))
        return Slice(starts, steps, inner.shape)


@dataclass(frozen=True, slots=True)
class Transpose:
    """The axes in another order."""

    axes: tuple[int, ...]

    def apply(self, base: Node) -> Node:
        """The transposed node."""
        return build.transpose(base, self.axes)

    def apply_value(self, base: Any) -> Any:
        """The transposed array."""
        return base.transpose(self.axes)

    def put(self, base: Node, value: Node) -> Node:
        """Transpose back."""
        return build.transpose(value, tuple(int(a) for a in np.argsort(self.axes)))


REVERSED = tuple(Transpose(tuple(range(ndim))[::-1]) for ndim in range(65))
"""All axes reversed, for each number of axes that NumPy has."""


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in C order under another shape."""

    shape: tuple[int, ...]

    def apply(self, base: Node) -> Node:
        """The reshaped node."""
        return build.reshape(base, self.shape)

    def apply_value(self, base: Any) -> Any:
        """The reshaped array; raises ValueError where NumPy would have to copy."""
        return base.reshape(self.shape, copy=False)

    def put(self, base: Node, value: Node) -> Node:
        """Reshape back."""
        return build.reshape(value, base.shape)


@dataclass(frozen=True, slots=True)
class Broadcast:
    """NumPy's broadcast to a shape; read-only where it is NumPy's `broadcast_to`."""

    shape: tuple[int, ...]
    writeable: bool = False

    def apply(self, base: Node) -> Node:
        """The broadcast node."""
        return build.broadcast(base, self.shape)

    def apply_value(self, base: Any) -> Any:
        """The broadcast array; NumPy warns of writes to one that can be written to."""
        if self.writeable:
            return np.broadcast_arrays(base, np.broadcast_to(np.False_, self.shape))[0]
        return np.broadcast_to(base, self.shape)

    def put(self, base: Node, value: Node) -> Node:
        """Several elements are one, and which of them was written to is known only where it was in memory."""
        raise ValueError("assignment destination is read-only")


@dataclass(frozen=True, slots=True)
class Part:
    """The real or the imaginary part of complex elements."""

    name: str

    def apply(self, base: Node) -> Node:
        """The part of a node."""
        return build.map_(self.name, base)

    def apply_value(self, base: Any) -> Any:
        """The part of an array."""
        return getattr(base, self.name)

    def put(self, base: Node, value: Node) -> Node:
        """Complex numbers from the new part and the old other one.

        A product with the imaginary unit turns infinities into NaN in the real part, so that the parts
        are joined as two planes of floats and not as a sum.
        """
        value = build.cast(value, self.apply(base).dtype)
        other = build.map_("imag" if self.name == "real" else "real", base)
        planes = (value, other) if self.name == "real" else (other, value)
        return build.map_(COMPLEX, *planes, dtype=base.dtype)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of structured elements, or several; one whose elements have axes stays on the driver."""

    names: str | list[str]
    dtype: np.dtype[Any]
    has_axes: bool = False

    def apply(self, base: Node) -> Node:
        """The field of a node."""
        if self.has_axes:
            return _known(self.apply_value(value_of(*run([base]))))
        return build.map_(UserFunction(self.apply_value, origin="a field"), base, dtype=self.dtype)

    def apply_value(self, base: Any) -> Any:
        """The field of an array; an array that only stands for a layout has none."""
        return base[self.names] if base.dtype.names else base

    def put(self, base: Node, value: Node) -> Node:
        """Elements with a new field."""
        if self.has_axes:
            old, new = (value_of(ref) for ref in run([base, value]))
            return _known(self._put(old, new))
        value = build.broadcast(build.cast(value, self.dtype), base.shape)
        return build.map_(UserFunction(self._put, origin="a field"), base, value, dtype=base.dtype)

    def _put(self, base: Any, value: Any) -> Any:
        shape = base.shape if self.has_axes else np.broadcast_shapes(base.shape, value.shape)
        out = np.empty(shape, base.dtype)
        out[...] = base
        out[self.names] = value
        return out


def _known(value: Any) -> Node:
    """A leaf with a copy of a value."""
    return build.data(ArrayRef(value.shape, value.dtype, value=value.copy()))


@dataclass(frozen=True, slots=True)
class Diagonal:
    """The diagonal of the planes of two axes, last; read-only where it is NumPy's `diagonal`."""

    offset: int
    axes: tuple[int, int]
    shape: tuple[int, ...]
    writeable: bool = False

    def apply(self, base: Node) -> Node:
        """The diagonal of a node: every so many elements of the flat planes."""
        return self._line(base).apply(self._planes(base))

    def _order(self, ndim: int) -> tuple[int, ...]:
        """The axes, those of the planes last."""
        return (*(k for k in range(ndim) if k not in self.axes), *self.axes)

    def _planes(self, base: Node) -> Node:
        """The planes, each flat."""
        size = base.shape[self.axes[0]] * base.shape[self.axes[1]]
        return build.reshape(build.transpose(base, self._order(base.ndim)), (*self.shape[:-1], size))

    def _line(self, base: Node) -> Slice:
        """Where the diagonal is in flat planes."""
        columns, lead = base.shape[self.axes[1]], len(self.shape) - 1
        start = max(-self.offset, 0) * columns + max(self.offset, 0) if self.shape[-1] else 0
        return Slice((0,) * lead + (start,), (1,) * lead + (columns + 1,), self.shape)

    def apply_value(self, base: Any) -> Any:
        """The diagonal of an array."""
        shown = np.diagonal(base, self.offset, *self.axes)
        if self.writeable and base.flags.writeable:
            shown.flags.writeable = True
        return shown

    def put(self, base: Node, value: Node) -> Node:
        """Write into the flat planes; NumPy refuses to write to its `diagonal`."""
        if not self.writeable:
            raise ValueError("assignment destination is read-only")
        order = self._order(base.ndim)
        flat = self._line(base).put(self._planes(base), value)
        turned = build.reshape(flat, tuple(base.shape[k] for k in order))
        return Transpose(order).put(base, turned)


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows of given lengths along given axes, inside the window last; read-only, as NumPy's.

    An axis that is named twice has windows of its windows' starts.
    """

    lengths: tuple[int, ...]
    axes: tuple[int, ...]

    def apply(self, base: Node) -> Node:
        """The windows of a node: a take of every start and every place behind it."""
        ndim = base.ndim
        for length, axis in zip(self.lengths, self.axes, strict=True):
            starts = base.shape[axis] - length + 1
            first = build.reshape(build.iota(starts), (starts, 1))
            places = build.map_("add", first, build.iota(length), dtype=build.INTP)
            base = build.take(base, places, axis)
            order = [i for i in range(base.ndim) if i != axis + 1]
            base = build.transpose(base, (*order, axis + 1))
        assert base.ndim == ndim + len(self.axes), "one axis more a window"
        return base

    def apply_value(self, base: Any) -> Any:
        """The windows of an array."""
        return np.lib.stride_tricks.sliding_window_view(base, self.lengths, self.axes)

    def put(self, base: Node, value: Node) -> Node:
        """NumPy refuses to write to them."""
        raise ValueError("assignment destination is read-only")


def joined(real: Any, imag: Any) -> Any:
    """Complex numbers from two blocks of floats."""
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imag
    return out


COMPLEX = UserFunction(joined, origin="real and imag")


def is_read_only(views: tuple[View, ...]) -> bool:
    """Whether NumPy lets nobody write through one of the views."""
    return any(
        isinstance(v, Windows) or (isinstance(v, Broadcast | Diagonal) and not v.writeable) for v in views
    )


def is_stretched(views: tuple[View, ...]) -> bool:
    """Whether several elements of what is seen may be one, which is written to where it lies in memory."""
    return any(isinstance(v, Broadcast) and v.writeable for v in views)


def written(base: Node, views: tuple[View, ...], value: Node) -> Node:
    """`base` after `value` is written through a chain of views."""
    plain: tuple[View, ...] = ()
    shown = base
    for n, view in enumerate(views, 1):
        for step in basic_steps(view.key, shown.shape) if isinstance(view, Basic) else (view,):
            plain = appended(plain, step)
        if n < len(views):
            shown = view.apply(shown)
    if not plain:
        return value
    seen = [base]
    for view in plain[:-1]:
        seen.append(view.apply(seen[-1]))
    for view, node in zip(reversed(plain), reversed(seen), strict=True):
        value = view.put(node, value)
    return value


def appended(views: tuple[View, ...], view: View) -> tuple[View, ...]:
    """The chain with one more view; neighbours of one kind become one."""
    last = views[-1] if views else None
    if isinstance(view, Slice) and isinstance(last, Slice):
        return (*views[:-1], last.then(view))
    if isinstance(view, Transpose) and isinstance(last, Transpose):
        axes = tuple(last.axes[a] for a in view.axes)
        return views[:-1] if axes == tuple(range(len(axes))) else (*views[:-1], Transpose(axes))
    return (*views, view)


def shortened(views: tuple[View, ...], base: Any) -> tuple[View, ...]:
    """The same chain over a NumPy array, with its indices worked out and neighbours joined."""
    found: tuple[View, ...] = ()
    for view in views:
        for step in basic_steps(view.key, base.shape) if isinstance(view, Basic) else (view,):
            found = appended(found, step)
        base = view.apply_value(base)
    return found


def without_copy(layout: np.ndarray[Any, Any], shape: tuple[int, ...]) -> bool:
    """Whether NumPy gives a view when an array of this layout is reshaped."""
    try:
        np.reshape(layout, shape, copy=False)
    except ValueError:
        return False
    return True


def layout_of(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    views: tuple[View, ...],
    order: tuple[int, ...] | None = None,
) -> np.ndarray[Any, Any]:
    """An array without memory that has the strides a chain of views has over a base in C (or given) order."""
    return seen_through(without_memory(shape, order, dtype), views)  # type: ignore[no-any-return]


def without_memory(
    shape: tuple[int, ...], order: tuple[int, ...] | None, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """An array with the strides of C (or given) order, over one element that nobody may look at."""
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in reversed(order or range(len(shape))):
        strides[axis] = step
        step *= max(shape[axis], 1)
    plain = dtype.isbuiltin == 1 or dtype.kind in "SUmM" or dtype.hasobject
    one = np.empty(1, dtype if plain else f"V{dtype.itemsize}")
    shown = np.lib.stride_tricks.as_strided(one, shape, strides, writeable=False)
    return shown if plain or not dtype.itemsize else shown.view(dtype)


def seen_through(base: Any, views: tuple[View, ...]) -> Any:
    """What a chain of views shows of a NumPy array."""
    for view in views:
        base = view.apply_value(base)
    return base


def full_shape(shape: Any, size: int, old: tuple[int, ...]) -> tuple[int, ...]:
    """A shape argument as a tuple, its one -1 worked out; raises NumPy's error with both shapes."""
    single = hasattr(shape, "__index__") and not hasattr(shape, "__len__")
    lengths = (shape,) if single else tuple(shape)
    if any(n is True or n is False for n in lengths):
        raise TypeError(f"an integer is required: shape {shape!r} has a bool in it")
    wanted = tuple(operator.index(n) for n in lengths)
    if wanted.count(-1) == 1:
        rest = prod(n for n in wanted if n != -1)
        if rest > 0 and size % rest == 0:
            wanted = tuple(size // rest if n == -1 else n for n in wanted)
    if any(n < 0 for n in wanted) or prod(wanted) != size:
        raise ShapeError(f"reshape: cannot reshape array of size {size} (shape {old}) into shape {wanted}")
    return wanted


class Basic:
    """An index of integers, slices, None and an ellipsis, worked out only when a node asks for it.

    Loops make these by the million, so it is the key alone, as it was written: NumPy's to apply to a value.
    """

    __slots__ = ("key",)

    key: Any

    def apply(self, base: Node) -> Node:
        """The indexed node."""
        for step in basic_steps(self.key, base.shape):
            base = step.apply(base)
        return base

    def apply_value(self, base: Any) -> Any:
        """The indexed array."""
        return base[self.key]

    def put(self, base: Node, value: Node) -> Node:
        """Write through both steps."""
        return written(base, basic_steps(self.key, base.shape), value)


def expanded(key: Any, ndim: int, consumed: Any = None) -> list[Any]:
    """A key as a list with its ellipsis spelled out, and full slices for the axes it leaves out.

    `consumed(item)` says how many axes an item takes (1 for integers and slices if it is left out).
    """
    items = list(key) if isinstance(key, tuple) else [key]
    takes = consumed or (lambda item: 0 if item is None else 1)
    used = sum(takes(i) for i in items if i is not Ellipsis)
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    dots = [n for n, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(items)
    return items[:at] + [slice(None)] * (ndim - used) + items[at + len(dots) :]


def basic_steps(key: Any, shape: tuple[int, ...]) -> tuple[View, ...]:
    """A basic index as a slice of every axis, and a reshape where axes come or go."""
    starts, steps, lengths, final = [], [], [], []
    axis = 0
    for item in expanded(key, len(shape)):
        if item is None:
            final.append(1)
            continue
        n = shape[axis]
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            length = len(range(start, stop, step))
            final.append(length)
        else:
            start, step, length = bounded(item, n, axis), 1, 1
        starts.append(start if length else 0)
        steps.append(step)
        lengths.append(length)
        axis += 1
    found: list[View] = []
    if tuple(lengths) != shape or any(t < 0 for t in steps):
        found.append(Slice(tuple(starts), tuple(steps), tuple(lengths)))
    if final != lengths:
        found.append(Reshape(tuple(final)))
    return tuple(found)


def bounded(index: Any, n: int, axis: int) -> int:
    """An integer index as a non-negative one; raises NumPy's IndexError."""
    i = index.__index__()
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return int(i) + n if i < 0 else int(i)
