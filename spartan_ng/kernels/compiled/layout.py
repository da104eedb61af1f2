"""How a segment's loop walks memory: the order of its axes, those it joins, and each array's inner step.

Blocks of a stage differ in size only, so the layout is worked out once; a kernel is compiled for the layout,
and the sizes, strides and addresses come with each call.
"""

from __future__ import annotations

from math import prod

from msgspec import Struct

from spartan_ng.costs.choices import ABREAST_LENGTH
from spartan_ng.kernels.compiled.folds import EXTREMES
from spartan_ng.kernels.compiled.segments import Segment

Strides = tuple[int, ...]
"""Bytes from one element to the next along each axis of the loop; 0: the array does not follow it."""


class Layout(Struct, frozen=True):
    """A segment's walk: the axes of each nested loop, outermost first, the joined ones together."""

    loops: tuple[tuple[int, ...], ...]
    inner: tuple[str, ...]
    """One letter an array (operands, stores, endings): "c" contiguous, "z" not at all, "s" by a stride."""
    reduced: tuple[tuple[bool, ...], ...]
    """For each ending and loop, whether the ending folds it."""
    still: tuple[bool, ...]
    """For each array (operands, stores, endings) whether the loop around the innermost one stays at it."""
    short: bool = False
    """Whether the innermost loop is too short, in all blocks, for lines to go side by side."""
    apart: bool = False
    """Whether nothing that is written lies where anything is read."""


def lay_out(
    segment: Segment,
    strides: list[Strides],
    widths: list[int],
    sizes: tuple[int, ...],
    uncut: tuple[bool, ...],
) -> Layout:
    """The layout for arrays (operands, stores, endings) with byte `strides` and item `widths`.

    `sizes` is a block's shape in the loop's axes; `uncut` tells the axes that all blocks see whole.
    """
    axes = [k for k, (_, n) in enumerate(segment.space) if n > 1]
    if axes:
        inner = max(axes, key=lambda k: (_votes(k, strides, widths), k))
        inner = _longer_fold(segment, strides[: len(segment.operands)], sizes, axes, inner)
        if any(e.fold in EXTREMES for e in segment.endings):  # lines are looked through once they are made
            inner = len(segment.space) - 1
        axes = [*(k for k in axes if k != inner), inner]
    loops: list[tuple[int, ...]] = []
    for k in axes:
        if loops and uncut[k] and all(s[loops[-1][-1]] == s[k] * sizes[k] for s in strides):
            loops[-1] = (*loops[-1], k)
        else:
            loops.append((k,))
    if not loops:
        loops = [()]
    last = loops[-1][-1] if loops[-1] else -1
    kinds = []
    for s, width in zip(strides, widths, strict=True):
        step = s[last] if last >= 0 else 0
        kinds.append("z" if step == 0 else "c" if step == width else "s")
    reduced = tuple(tuple(bool(loop) and loop[-1] not in e.kept for loop in loops) for e in segment.endings)
    around = loops[-2][-1] if len(loops) > 1 else -1
    still = tuple(around >= 0 and s[around] == 0 for s in strides)
    short = all(uncut[k] for k in loops[-1]) and prod(sizes[k] for k in loops[-1]) < ABREAST_LENGTH
    return Layout(tuple(loops), tuple(kinds), reduced, still, short)


def _longer_fold(
    segment: Segment, operands: list[Strides], sizes: tuple[int, ...], axes: list[int], inner: int
) -> int:
    """The innermost axis where `inner` would have the loop add one element after the other in memory, for an
    operand that is broadcast: one that is folded and no shorter, where NumPy takes it, too. Sums are then
    made in registers, side by side, and round no more often than NumPy's."""
    if segment.stores or not segment.endings:
        return inner
    folded = [k for k in axes if all(k not in e.kept for e in segment.endings)]
    longer = [k for k in folded if sizes[k] >= sizes[inner] and (k > inner or inner in folded)]
    free = [k for k in longer if not any(s[k] and s[inner] for s in operands)]
    return max(free, key=lambda k: sizes[k], default=inner)


def _votes(axis: int, strides: list[Strides], widths: list[int]) -> int:
    """How well an axis serves as the innermost one: arrays with more axes count more."""
    return sum(sum(1 for x in s if x) ** 2 for s, w in zip(strides, widths, strict=True) if s[axis] == w)
