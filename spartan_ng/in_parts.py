"""Functions of NumPy's arrays over arrays of ours, in parts: where these lie, when they are asked for.

A generalized ufunc (`(i,j),(j)->(i)`) is a function of lines, blocks of its core dimensions; what comes
before these are loop dimensions, along which the arrays are cut. Such functions are called on a few ones
before, to see of what type their results are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.api.core.conversion import values
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBER_KINDS
from spartan_ng.api.core.operands import small_values
from spartan_ng.api.elementwise import operators

Names = tuple[str, ...]


class LineFunction(Struct, frozen=True):
    """A function of lines: the names of its operands' and its results' core dimensions, and the lengths of
    those that only results have."""

    function: Callable[..., Any]
    inputs: tuple[Names, ...]
    outputs: tuple[Names, ...]
    sizes: dict[str, int]

    def results(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """What the function gives, always as a tuple."""
        found = self.function(*arrays)
        return tuple(map(np.asarray, (found,) if len(self.outputs) == 1 else found))

    def loops(self, arrays: Sequence[Any]) -> list[tuple[int, ...]]:
        """The lengths of each operand's loop dimensions."""
        return [a.shape[: a.ndim - len(core)] for a, core in zip(arrays, self.inputs, strict=True)]

    def lengths(self, arrays: Sequence[Any]) -> dict[str, int]:
        """The lengths of all core dimensions."""
        found = dict(self.sizes)
        for a, core in zip(arrays, self.inputs, strict=True):
            found.update(zip(core, a.shape[a.ndim - len(core) :], strict=True))
        return {**found, **self.sizes}


def lines_of(
    function: Callable[..., Any], signature: str, sizes: dict[str, int] | None, vectorize: bool, dtypes: Any
) -> LineFunction:
    """The function that a signature describes; with `vectorize`, of one line at a time."""
    inputs, outputs = (_names(side) for side in signature.split("->"))
    if vectorize:
        core = signature if any(inputs) or any(outputs) else None
        function = np.vectorize(function, otypes=dtypes, signature=core)
    return LineFunction(function, inputs, outputs, dict(sizes or {}))


def _names(side: str) -> tuple[Names, ...]:
    return tuple(tuple(re.findall(r"\w+", group)) for group in re.findall(r"\(([^)]*)\)", side))


def apply(lines: LineFunction, arrays: Sequence[Any], dtypes: Any = None) -> tuple[Any, ...]:
    """The results for arrays of ours, of NumPy's and numbers, lazily where it is known of what type they are.

    A function with several results runs once for each.
    """
    arrays = [a if isinstance(a, Handle) else np.asarray(a) for a in arrays]
    small = small_values(tuple(arrays))
    if small is not None:
        return lines.results([np.asarray(a) for a in small])
    loop = np.broadcast_shapes(*lines.loops(arrays))
    kinds = None if 0 in loop or not loop else _kinds(lines, arrays, dtypes)
    if kinds is None or not all(d.kind in NUMBER_KINDS for d in (*kinds, *(a.dtype for a in arrays))):
        return lines.results([np.asarray(a) for a in values(*arrays)])
    return tuple(_one(lines, arrays, loop, i, kind) for i, kind in enumerate(kinds))


def _kinds(lines: LineFunction, arrays: Sequence[Any], dtypes: Any) -> list[np.dtype[Any]] | None:
    """The types of the results for ones, or else as they were said; None if nothing says them."""
    ones = []
    for a, loop in zip(arrays, lines.loops(arrays), strict=True):
        known = a._peek() if isinstance(a, Handle) else a
        first = (slice(1),) * len(loop)
        core = a.shape[len(loop) :]
        one = np.ones((1,) * len(loop) + core, a.dtype) if known is None else np.array(known[first])
        ones.append(one)
    try:
        with np.errstate(all="ignore"):
            return [found.dtype for found in lines.results(ones)]
    except Exception:  # noqa: BLE001 - whatever a function says of ones that it may never meet
        return None if dtypes is None else [*map(np.dtype, dtypes)]


def _one(
    lines: LineFunction, arrays: Sequence[Any], loop: tuple[int, ...], which: int, kind: np.dtype[Any]
) -> Any:
    """One of the results, of some lines at a time along the longest loop dimension."""
    if not any(lines.inputs) and not any(lines.outputs):
        return operators.map(lambda *parts: lines.results(parts)[which], *arrays, dtype=kind)
    lengths = lines.lengths(arrays)
    core = tuple(lengths[name] for name in lines.outputs[which])
    along = max(range(len(loop)), key=lambda axis: loop[axis])
    axes = [_axis_of(shape, loop, along) for shape in lines.loops(arrays)]
    cut = next(i for i, axis in enumerate(axes) if axis != -1)

    def part(boxes: Any, tiles: Any) -> Any:
        lo, hi = boxes[cut][axes[cut]]
        shape = (*loop[:along], hi - lo, *loop[along + 1 :], *core)
        data = np.broadcast_to(lines.results(tiles)[which], shape)
        corner = tuple(lo if axis == along else 0 for axis in range(len(shape)))
        return corner, data

    return operators.join_update(part, np.add, arrays, axes, (*loop, *core), kind)


def _axis_of(shape: tuple[int, ...], loop: tuple[int, ...], along: int) -> int:
    """Where an operand has a loop dimension; -1 if it is stretched along it."""
    axis = along - len(loop) + len(shape)
    return axis if axis >= 0 and shape[axis] == loop[along] else -1


def elementwise(function: Callable[..., Any], arguments: Sequence[Any], dtype: Any) -> Any:
    """A function of arrays, and of what else it is told, that works on their elements: lazily where the type
    of its result is told, and tasks have such elements."""
    arrays = [a for a in arguments if isinstance(a, Handle | np.ndarray)]
    places = [i for i, a in enumerate(arguments) if isinstance(a, Handle | np.ndarray)]

    def call(*parts: Any) -> Any:
        told = list(arguments)
        for i, part in zip(places, parts, strict=True):
            told[i] = part
        return np.asarray(function(*told))

    kinds = [a.dtype.kind for a in arrays]
    if dtype is None or small_values(tuple(arrays)) is not None:
        return call(*values(*arrays))
    if any(kind not in NUMBER_KINDS for kind in (*kinds, np.dtype(dtype).kind)):
        return call(*values(*arrays))
    return operators.map(call, *arrays, dtype=dtype)
