"""Chains of views: writing through them, what NumPy's own views say of them, and keys that stand for one.

A chain of views writes through by putting back from the last to the first. A basic index in it is the key
as it was written, which is worked out only when a node asks for it: loops make them by the million.
"""

from __future__ import annotations

import operator
from math import prod
from types import EllipsisType, NoneType
from typing import Any, TypeAlias

import numpy as np

from spartan_ng.api.core.recast import PLAIN, Recast
from spartan_ng.api.core.views import Broadcast, Diagonal, Reshape, Slice, Transpose, View, Windows
from spartan_ng.errors import ShapeError
from spartan_ng.graph.node import Node

Key: TypeAlias = int | slice | tuple[Any, ...] | EllipsisType | None
"""A basic index: integers, slices, None and an ellipsis."""
Views: TypeAlias = tuple[View | Key, ...]
CHAIN = 16
"""Views of views are joined where so many follow each other: loops make them by the thousand."""
_KEYS = frozenset({int, slice, tuple, EllipsisType, NoneType})


def view_steps(view: View | Key, shape: tuple[int, ...]) -> tuple[View, ...]:
    """A view of a base of this shape, or what its key means."""
    return basic_steps(view, shape) if view.__class__ in _KEYS else (view,)  # type: ignore[return-value]


def is_read_only(views: Views) -> bool:
    """Whether NumPy lets nobody write through one of the views."""
    return any(
        isinstance(v, Windows) or (isinstance(v, Broadcast | Diagonal) and not v.writeable) for v in views
    )


def is_stretched(views: Views) -> bool:
    """Whether several elements of what is seen may be one, which is written to where it lies in memory."""
    return bool(views) and True in [v.__class__ is Broadcast and v.writeable for v in views]


def may_overlap(a: Any) -> bool:
    """Whether elements of an array may be one: of a stretched one, or of memory by anybody's strides."""
    if is_stretched(a._views):
        return True
    shown = a._peek() if a._cell.shared else None
    if shown is None or not shown.size:
        return False
    reached = shown.itemsize
    for step, n in sorted((abs(s), n) for n, s in zip(shown.shape, shown.strides, strict=True) if n > 1):
        if step < reached:
            return True
        reached += step * (n - 1)
    return False


def written(base: Node, views: Views, value: Node) -> Node:
    """`base` after `value` is written through a chain of views."""
    plain: tuple[View, ...] = ()
    shown = base
    for n, view in enumerate(views, 1):
        steps = view_steps(view, shown.shape)
        for step in steps:
            plain = appended(plain, step)  # type: ignore[assignment]
        # What the last view shows is what is written: nobody looks at what is there.
        for step in steps if n < len(views) else ():
            shown = step.apply(shown)
    # Views that undo each other, as `a.T.T`, show all of it.
    if not plain:
        return value
    seen = [base]
    for view in plain[:-1]:
        seen.append(view.apply(seen[-1]))
    for view, node in zip(reversed(plain), reversed(seen), strict=True):
        value = view.put(node, value)
    return value


def appended(views: Views, view: View | Key) -> Views:
    """The chain with one more view; neighbours of one kind become one."""
    last = views[-1] if views else None
    if isinstance(view, Slice) and isinstance(last, Slice):
        return (*views[:-1], last.then(view))
    if isinstance(view, Transpose) and isinstance(last, Transpose):
        axes = tuple(last.axes[a] for a in view.axes)
        return views[:-1] if axes == tuple(range(len(axes))) else (*views[:-1], Transpose(axes))
    return (*views, view)


def kept_short(views: Views, cell: Any) -> Views:
    """A chain over a cell as it is, or as short as it can be where it has grown long."""
    if len(views) < CHAIN:
        return views
    value = cell.value
    base = without_memory(cell.shape, cell.order, cell.dtype) if value is None else value
    return short_chain(views, base)


def short_chain(views: Views, base: Any) -> Views:
    """The same chain over a NumPy array, as short as it can be: a loop carries views of views for ever.

    Indices are worked out, neighbours of one kind are one, and what shows all of it goes. So that more are
    neighbours, slices come before what turns axes, and both before what only adds or drops axes of length 1.
    """
    found: list[tuple[View, Any]] = []
    for view in views:
        for step in view_steps(view, base.shape):
            shown = step.apply_value(base)
            _add(found, step, base, shown)
            base = shown
    return tuple([step for step, _ in found])


def _add(chain: list[tuple[View, Any]], view: View, base: Any, shown: Any) -> None:
    """Put a view of `base` behind a chain, in which each one is beside the array that it is a view of."""
    if _shows_all(view, base):
        return
    if chain:
        last, first = chain[-1]
        if (joined := _as_one(last, view)) is not None:
            chain.pop()
            _add(chain, joined, first, shown)
            return
        if (swapped := _the_other_way(last, view, first, base)) is not None:
            chain.pop()
            inner, outer = swapped
            between = inner.apply_value(first)
            _add(chain, inner, first, between)
            _add(chain, outer, between, shown)
            return
    chain.append((view, base))


def _shows_all(view: View, base: Any) -> bool:
    """Whether a view is its base, whatever this holds."""
    if isinstance(view, Slice):
        return view.shape == base.shape and not any(view.starts) and set(view.steps) <= {1}
    if isinstance(view, Transpose):
        return view.axes == tuple(range(base.ndim))
    if isinstance(view, Reshape):
        return view.shape == base.shape  # type: ignore[no-any-return]
    return isinstance(view, Recast) and view.dtype == base.dtype and view.dtype.kind in PLAIN


def _as_one(last: View, view: View) -> View | None:
    """Two views as one, if there is such a view."""
    if isinstance(view, Slice) and isinstance(last, Slice):
        return last.then(view)
    if isinstance(view, Transpose) and isinstance(last, Transpose):
        return Transpose(tuple([last.axes[a] for a in view.axes]))
    if isinstance(view, Reshape) and isinstance(last, Reshape):
        return view
    if isinstance(view, Recast) and isinstance(last, Recast):
        alike = view.dtype.itemsize == last.dtype.itemsize and last.dtype.kind in PLAIN
        return view if alike and view.dtype.kind in PLAIN else None
    return view if isinstance(view, Broadcast) and view == last else None


def _the_other_way(last: View, view: View, first: Any, between: Any) -> tuple[View, View] | None:
    """Two views in the other order: a slice goes before a turn, and both before what adds or drops axes."""
    if isinstance(last, Transpose) and isinstance(view, Slice):
        back = sorted(range(len(last.axes)), key=last.axes.__getitem__)
        return Slice(*(tuple([x[i] for i in back]) for x in (view.starts, view.steps, view.shape))), last
    if not isinstance(last, Reshape) or not isinstance(view, Slice | Transpose):
        return None
    old, new = ([i for i, n in enumerate(x.shape) if n != 1] for x in (first, between))
    if [first.shape[i] for i in old] != [between.shape[i] for i in new] or not between.size:
        return None  # elements of several axes are in one, or there are none
    if isinstance(view, Slice):
        starts, steps, shape = [0] * first.ndim, [1] * first.ndim, list(first.shape)
        for i, j in zip(old, new, strict=True):
            starts[i], steps[i], shape[i] = view.starts[j], view.steps[j], view.shape[j]
        if 0 in view.shape:
            return None
        return Slice(tuple(starts), tuple(steps), tuple(shape)), Reshape(view.shape)
    order = iter([old[new.index(j)] for j in view.axes if j in new])
    axes = tuple([next(order) if i in old else i for i in range(first.ndim)])
    return Transpose(axes), Reshape(tuple([between.shape[j] for j in view.axes]))


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
    views: Views,
    order: tuple[int, ...] | None = None,
) -> np.ndarray[Any, Any]:
    """An array without memory that has the strides a chain of views has over a base in C (or given) order."""
    return seen_through(without_memory(shape, order, dtype), views)  # type: ignore[no-any-return]


def without_memory(
    shape: tuple[int, ...], order: tuple[int, ...] | None, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """An array with the strides of C (or given) order, over one element that nobody may look at."""
    strides, step = [0] * len(shape), dtype.itemsize
    if 0 not in shape:  # of nothing, NumPy's own strides are 0
        for axis in reversed(order or range(len(shape))):
            strides[axis] = step
            step *= shape[axis]
    plain = dtype.isbuiltin == 1 or dtype.kind in "SUmM" or dtype.hasobject
    one = np.empty(1, dtype if plain else f"V{dtype.itemsize}")
    shown = np.lib.stride_tricks.as_strided(one, shape, strides, writeable=False)
    return shown if plain or not dtype.itemsize else shown.view(dtype)


def seen_through(base: Any, views: Views) -> Any:
    """What a chain of views shows of a NumPy array."""
    for view in views:
        base = base[view] if view.__class__ in _KEYS else view.apply_value(base)  # type: ignore[union-attr]
    return base


def node_through(base: Node, views: Views) -> Node:
    """What a chain of views shows of a node."""
    for view in views:
        if view.__class__ not in _KEYS:
            base = view.apply(base)  # type: ignore[union-attr]
        else:
            for step in basic_steps(view, base.shape):
                base = step.apply(base)
    return base


def before_turns(views: Views) -> int | None:
    """Where the last views begin that only turn and stretch, if what is before them is to be computed alone.

    Their results lie as NumPy's then, and what is stretched is stored and moved once.
    """
    n = len(views)
    while n and views[n - 1].__class__ in (Transpose, Broadcast):
        n -= 1
    stretched = any(v.__class__ is Broadcast for v in views[n:])
    return n if stretched or not n else None


def full_shape(shape: Any, size: int, old: tuple[int, ...]) -> tuple[int, ...]:
    """A shape argument as a tuple, its one -1 worked out; raises NumPy's error with both shapes."""
    # An array of one number has both, and is a sequence here.
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


def expanded(key: Any, ndim: int, consumed: Any = None) -> list[Any]:
    """A key as a list with its ellipsis spelled out, and full slices for the axes it leaves out.

    `consumed(item)` says how many axes an item takes (1 for integers and slices if it is left out).
    """
    items = list(key) if isinstance(key, tuple) else [key]
    used, dots, at = 0, 0, len(items)
    for n, item in enumerate(items):
        if item is Ellipsis:
            dots, at = dots + 1, n
        elif consumed is not None:
            used += consumed(item)
        elif item is not None:
            used += 1
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    return items[:at] + [slice(None)] * (ndim - used) + items[at + dots :]


def basic_steps(key: Any, shape: tuple[int, ...]) -> tuple[View, ...]:
    """A basic index as a slice of every axis, and a reshape where axes come or go."""
    starts, steps, lengths, final = [], [], [], []
    axis = 0
    is_whole = key.__class__ is tuple and len(key) == len(shape) and None not in key and ... not in key
    for item in key if is_whole else expanded(key, len(shape)):
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
    # A whole slice of every axis shows the array itself.
    if tuple(lengths) != shape or min(steps, default=1) < 0:
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
