"""Views as lenses: each can be read from its base, and written back into it.

`apply` reads on nodes, `apply_value` reads on NumPy values (sharing memory), and `put` gives the base with
the view's elements replaced. A chain of views writes through by putting back from the last to the first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from spartan_ng.api.core.forcing import compute_nodes, value_of
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


class Slice(Struct, frozen=True):
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


class Transpose(Struct, frozen=True):
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


class Reshape(Struct, frozen=True):
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


class Broadcast(Struct, frozen=True):
    """NumPy's broadcast to a shape; read-only where it is NumPy's `broadcast_to`; writes to what its
    `broadcast_arrays` gives warn until somebody has allowed them."""

    shape: tuple[int, ...]
    writeable: bool = False
    warns: bool = False

    def apply(self, base: Node) -> Node:
        """The broadcast node."""
        return build.broadcast(base, self.shape)

    def apply_value(self, base: Any) -> Any:
        """The broadcast array."""
        if self.warns:
            return np.broadcast_arrays(base, np.broadcast_to(np.False_, self.shape))[0]
        shown = np.broadcast_to(base, self.shape)
        if self.writeable and base.flags.writeable:
            shown.flags.writeable = True
        return shown

    def put(self, base: Node, value: Node) -> Node:
        """Several elements are one, and which of them was written to is known only where it was in memory."""
        raise ValueError("assignment destination is read-only")


class ComplexPart(Struct, frozen=True):
    """The real or the imaginary part of complex elements."""

    name: str

    def apply(self, base: Node) -> Node:
        """The part of a node, in its order of bytes."""
        part = build.map_(self.name, base)
        return build.cast(part, part.dtype.newbyteorder(base.dtype.byteorder))

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


class Field(Struct, frozen=True):
    """A field of structured elements, or several; one whose elements have axes stays on the driver."""

    names: str | list[str]
    dtype: np.dtype[Any]
    has_axes: bool = False

    def apply(self, base: Node) -> Node:
        """The field of a node."""
        if self.has_axes:
            return _known(self.apply_value(value_of(*compute_nodes([base]))))
        return build.map_(UserFunction(self.apply_value, origin="a field"), base, dtype=self.dtype)

    def apply_value(self, base: Any) -> Any:
        """The field of an array; an array that only stands for a layout has none."""
        return base[self.names] if base.dtype.names else base

    def put(self, base: Node, value: Node) -> Node:
        """Elements with a new field."""
        if self.has_axes:
            old, new = (value_of(ref) for ref in compute_nodes([base, value]))
            return _known(self._put(old, new))
        value = build.broadcast(build.cast(value, self.dtype), base.shape)
        return build.map_(UserFunction(self._put, origin="a field"), base, value, dtype=base.dtype)

    def _put(self, base: Any, value: Any) -> Any:
        shape = base.shape if self.has_axes else np.broadcast_shapes(base.shape, value.shape)
        out = np.empty(shape, base.dtype)
        out[...] = base
        out[self.names] = value
        return out


@lru_cache(maxsize=1024)
def field(dtype: np.dtype[Any], name: str) -> Field | None:
    """A field of an array that is here, by its name; None where there is none, or nothing in it."""
    found = None if dtype.fields is None else dtype.fields.get(name)
    if found is None or not found[0].itemsize:
        return None
    return Field(name, found[0].base, bool(found[0].shape))


def _known(value: Any) -> Node:
    """A leaf with a copy of a value."""
    return build.data(ArrayRef(value.shape, value.dtype, value=value.copy()))


class Diagonal(Struct, frozen=True):
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


class Windows(Struct, frozen=True):
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


def assigned(value: Any, shape: tuple[int, ...]) -> Node:
    """The elements of an array of `shape` to which a value is assigned: leading axes of one element go."""
    there = value.shape
    extra = max(len(there) - len(shape), 0)
    kept = there[extra:]
    if there[:extra] != (1,) * extra or build.broadcast_shapes("assign", shape, kept) != shape:
        raise ShapeError(f"could not broadcast input array from shape {there} into shape {shape}")
    return build.broadcast(value._see(Reshape(kept))._node() if kept != there else value._node(), shape)
