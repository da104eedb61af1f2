"""How a segment's loop walks memory: the order of its axes, those it joins, and each array's inner step.

Blocks of a stage differ in size only, so the layout is worked out once; a kernel is compiled for the layout,
and the sizes, strides and addresses come with each call.
"""

from __future__ import annotations

from dataclasses import dataclass

from spartan_ng.kernels.compiled.segments import Ending, Segment

Strides = tuple[int, ...]
"""Bytes from one element to the next along each axis of the loop; 0: the array does not follow it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A segment's walk: the axes of each nested loop, outermost first, the joined ones together."""

    loops: tuple[tuple[int, ...], ...]
    inner: tuple[str, ...]
    """One letter an array (operands, stores, endings): "c" contiguous, "z" not at all, "s" by a stride."""
    reduced: tuple[tuple[bool, ...], ...]
    """For each ending and loop, whether the ending folds it."""
    lines: tuple[int, ...]
    """For each ending the loop with which its lines begin; -1 where it has none."""


def lay_out(
    segment: Segment,
    strides: list[Strides],
    widths: list[int],
    sizes: tuple[int, ...],
    uncut: tuple[bool, ...],
) -> Layout:
    """The layout for arrays (operands, stores, endings) with byte `strides` and item `widths`.

    `sizes` is a block's shape in the loop's axes; `uncut` tells the axes that all blocks see whole. Where
    the order of a fold along several axes shows, the loops keep the order of the axes.
    """
    axes = [k for k, (_, n) in enumerate(segment.space) if n > 1]
    starts = {e.line[0] for e in segment.endings if e.line}
    if axes and not starts and not any(e.ordered and _folds(e, axes) > 1 for e in segment.endings):
        inner = max(axes, key=lambda k: (_votes(k, strides, widths), k))
        axes = [*(k for k in axes if k != inner), inner]
    loops: list[tuple[int, ...]] = []
    for k in axes:
        if (
            loops
            and uncut[k]
            and k not in starts
            and all(s[loops[-1][-1]] == s[k] * sizes[k] for s in strides)
        ):
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
    lines = tuple(
        next(i for i, loop in enumerate(loops) if e.line[0] in loop) if e.line else -1
        for e in segment.endings
    )
    return Layout(tuple(loops), tuple(kinds), reduced, lines)


def _folds(ending: Ending, axes: list[int]) -> int:
    """How many of the axes an ending folds."""
    return sum(k not in ending.kept for k in axes)


def _votes(axis: int, strides: list[Strides], widths: list[int]) -> int:
    """How well an axis serves as the innermost one: arrays with more axes count more."""
    return sum(sum(1 for x in s if x) ** 2 for s, w in zip(strides, widths, strict=True) if s[axis] == w)
