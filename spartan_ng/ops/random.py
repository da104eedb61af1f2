"""Random numbers as functions of the global index, so that no layout changes them.

Kinds of keys. `("stream", state)` gives NumPy's own stream: element i of the array is draw i of the
bit generator, reached by jumping; only draws that take exactly one step of the generator can do it.
`("walk", key)` gives the others of NumPy's, for which a generator has to walk (`ops.walks`).
`("blocks", seed)` cuts the array's index space into fixed logical blocks and draws each from a
generator of its own, seeded by the block's position; any distribution, drawn in parallel.
`("part", key, shape, view)` is a part of the array of `shape` that another key names: a first place and a
step along each axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import Box, box_shape
from spartan_ng.ops.walks import Passage, walk_of

_BLOCK_ELEMENTS = 1 << 16
RUN_DRAWS = 1 << 16
"""Numbers of a stream that are drawn at a time: as many of the last axes as go into one."""
_JUMP_DRAWS = 1024
"""So many numbers are drawn in the time that a jump takes."""


def _by_name(name: str) -> Callable[..., Any]:
    """The draws of NumPy's generator of the same name."""

    def draw(generator: Any, shape: Any, dtype: Any, *parameters: Any) -> Any:
        return getattr(generator, name)(*parameters, shape)

    return draw


_DOUBLE, _INTEGER = np.dtype(np.float64), np.dtype(np.int64)


class Distribution(Struct, frozen=True):
    """A distribution: `draw(generator, shape, dtype, *parameters)` gives the numbers."""

    name: str
    draw: Callable[..., Any]
    flops: int
    """Ten to the nanosecond that NumPy takes for one, as measured with parameters that are usual."""
    dtype: np.dtype[Any] = _DOUBLE
    """Of its numbers, where nobody asks for another."""


_ROWS = [
    Distribution("random", lambda g, shape, dtype: g.random(shape, dtype=dtype), 30),
    Distribution("uniform", lambda g, shape, dtype, low, high: low + (high - low) * g.random(shape), 30),
    Distribution("standard_normal", lambda g, shape, dtype: g.standard_normal(shape, dtype=dtype), 120),
    Distribution(
        "integers",
        lambda g, shape, dtype, low, high: g.integers(low, high, shape, dtype=dtype),
        30,
        _INTEGER,
    ),
    Distribution(
        "standard_exponential", lambda g, shape, dtype: g.standard_exponential(shape, dtype=dtype), 50
    ),
    *(
        Distribution(name, _by_name(name), flops)
        for name, flops in (
            ("beta", 440),
            ("chisquare", 220),
            ("exponential", 60),
            ("f", 470),
            ("gamma", 230),
            ("gumbel", 190),
            ("laplace", 200),
            ("logistic", 100),
            ("lognormal", 190),
            ("noncentral_chisquare", 220),
            ("noncentral_f", 470),
            ("normal", 140),
            ("pareto", 190),
            ("power", 410),
            ("rayleigh", 60),
            ("standard_cauchy", 250),
            ("standard_gamma", 210),
            ("standard_t", 360),
            ("triangular", 130),
            ("vonmises", 810),
            ("wald", 400),
            ("weibull", 280),
        )
    ),
    *(
        Distribution(name, _by_name(name), flops, _INTEGER)
        for name, flops in (
            ("binomial", 910),
            ("geometric", 140),
            ("hypergeometric", 380),
            ("logseries", 360),
            ("negative_binomial", 700),
            ("poisson", 360),
            ("zipf", 1140),
        )
    ),
]

DISTRIBUTIONS: dict[str, Distribution] = {row.name: row for row in _ROWS}
"""Every distribution by its name."""


def logical_block(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the logical blocks that an array of `shape` is drawn in.

    Axes are cut to near-equal powers of two, so that row-wise and column-wise tiles both draw
    few blocks in vain.
    """
    block = [1] * len(shape)
    size = 1
    while size < _BLOCK_ELEMENTS:
        growing = [a for a, n in enumerate(shape) if block[a] < n]
        if not growing:
            break
        axis = min(growing, key=lambda a: (block[a], -a))
        block[axis] *= 2
        size *= 2
    return tuple(block)


def draw(
    distribution: str,
    key: tuple[Any, ...],
    parameters: tuple[Any, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    box: Box,
) -> np.ndarray[Any, Any]:
    """The numbers inside `box` of the random array of `shape` that `key` names."""
    row = DISTRIBUTIONS[distribution]
    if 0 in box_shape(box):
        return np.empty(box_shape(box), dtype)
    if key[0] == "part":
        _, whole, around, view = key
        asked = [(a + step * lo, step, hi - lo) for (a, step), (lo, hi) in zip(view, box, strict=True)]
        return _part(partial(draw, distribution, whole, parameters, around, dtype), whole, around, asked)
    kind, seed = key
    if kind == "walk":
        return _in_runs(shape, dtype, box, walk_of(seed).numbers)
    if kind == "stream":
        return _stream(row, seed, parameters, shape, dtype, box)
    block = logical_block(shape)
    out = np.empty(box_shape(box), dtype)
    spans = [range(lo // b, -(-hi // b)) for (lo, hi), b in zip(box, block, strict=True)]
    for index in product(*spans):
        lo = [i * b for i, b in zip(index, block, strict=True)]
        size = tuple(min(b, n - s) for b, n, s in zip(block, shape, lo, strict=True))
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=index)))
        numbers = row.draw(generator, size, dtype, *parameters)
        source = tuple(slice(max(b0 - s, 0), b1 - s) for (b0, b1), s in zip(box, lo, strict=True))
        target = tuple(
            slice(max(s - b0, 0), max(s - b0, 0) + len(range(n)[sl]))
            for (b0, _), s, n, sl in zip(box, lo, size, source, strict=True)
        )
        out[target] = numbers[source]
    return out


def part_key(
    key: tuple[Any, ...], shape: tuple[int, ...], view: Sequence[tuple[int, int]]
) -> tuple[Any, ...]:
    """The key of a part of the array of `shape` that `key` names, with a first place and a step along each
    axis."""
    if key[0] == "part":
        _, key, shape, outer = key
        view = [(o + s * start, s * step) for (o, s), (start, step) in zip(outer, view, strict=True)]
    return ("part", key, shape, tuple(view))


def is_stream(key: tuple[Any, ...]) -> bool:
    """Whether numbers are those of a stream, all of them or a part."""
    return key[0] in ("stream", "walk") or (key[0] == "part" and is_stream(key[1]))


def is_walk(key: tuple[Any, ...]) -> bool:
    """Whether they are those of a stream that a generator has to walk through, all of them or a part."""
    return key[0] == "walk" or (key[0] == "part" and is_walk(key[1]))


def walked(key: tuple[Any, ...], shape: tuple[int, ...]) -> int:
    """How many numbers of a walk, whose array or part has that shape, are drawn up to the last one of it."""
    if 0 in shape:
        return 0
    box: Box = tuple((0, n) for n in shape)
    if key[0] == "part":
        _, _, shape, view = key
        box = _covered(view, box)
    return 1 + sum((hi - 1) * prod(shape[d + 1 :]) for d, (_, hi) in enumerate(box))


def _covered(view: Sequence[tuple[int, int]], box: Box) -> Box:
    """The box of an array from the first to the last that a box of a part of it has."""
    ends = [(a + step * lo, a + step * (hi - 1)) for (a, step), (lo, hi) in zip(view, box, strict=True)]
    return tuple((min(e), max(e) + 1) for e in ends)


def is_near(key: tuple[Any, ...], shape: tuple[int, ...], box: Box) -> bool:
    """Whether this process has been through a walk up to the end of a box of the array of `shape`."""
    if 0 in box_shape(box):
        return True
    walk, _, last = _way(key, shape, box)
    return walk.knows(last)


def in_turn(key: tuple[Any, ...], shape: tuple[int, ...], box: Box) -> AbstractContextManager[None]:
    """Around the drawing of a box by one of several threads that draw one box after the other: numbers that a
    generator has to walk to are drawn by one at a time, and those that come first, first."""
    if not is_walk(key):
        return nullcontext()
    walk, first, _ = _way(key, shape, box)
    return walk.turn(first)


def _way(key: tuple[Any, ...], shape: tuple[int, ...], box: Box) -> tuple[Passage, int, int]:
    """The walk that numbers are of, and the places there of the first and the last of a box."""
    if key[0] == "part":
        _, key, shape, view = key
        box = _covered(view, box)
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    first, last = (sum(i * s for i, s in zip(at, strides, strict=True)) for at in zip(*box, strict=True))
    return walk_of(key[1]), first, last - sum(strides)


def drawn_blocks(key: tuple[Any, ...], shape: tuple[int, ...], run: int = RUN_DRAWS) -> tuple[int, ...]:
    """The shape of what is drawn well of an array that a key names: whole logical blocks, so that none is
    drawn twice; a stream has no such blocks, but runs: as many of the last axes as go into one, and even
    parts of the one that does not."""
    if key[0] == "blocks":
        return logical_block(shape)
    if not is_stream(key):
        _, _, around, view = key
        return tuple(-(-b // abs(step)) for b, (_, step) in zip(logical_block(around), view, strict=True))
    sizes, left = [], run
    for n in reversed(shape):
        parts = -(-n // run) if left == run else 1
        sizes.append(max(1, min(-(-n // parts), left)) if n else 1)
        left //= max(n, 1)
    return tuple(reversed(sizes))


def _part(
    draw_box: Callable[[Box], np.ndarray[Any, Any]],
    key: tuple[Any, ...],
    shape: tuple[int, ...],
    view: list[tuple[int, int, int]],
) -> np.ndarray[Any, Any]:
    """The numbers at a first place, in steps, as many as are asked for along each axis. What lies between
    them is drawn, too, where that takes no longer than to go to each."""
    axis = next((a for a, (_, step, n) in enumerate(view) if step != 1 and n > 1), None)
    if axis is None:
        return draw_box(tuple((start, start + n) for start, _, n in view))
    start, step, n = view[axis]
    if step < 0:
        view = [*view[:axis], (start + step * (n - 1), -step, n), *view[axis + 1 :]]
        return np.flip(_part(draw_box, key, shape, view), axis)
    together = 1
    if not is_stream(key):
        together = logical_block(shape)[axis] // step
    elif step * prod(shape[axis + 1 :]) <= _JUMP_DRAWS:
        together = _BLOCK_ELEMENTS // (step * prod(shape[axis + 1 :]))
    found = []
    for k in range(0, n, max(together, 1)):
        last = min(k + max(together, 1), n) - 1
        line = start + step * k, 1, step * (last - k) + 1
        part = _part(draw_box, key, shape, [*view[:axis], line, *view[axis + 1 :]])
        found.append(part[(*(slice(None),) * axis, slice(None, None, step))])
    return np.concatenate(found, axis)


def _stream(
    row: Distribution,
    state: tuple[int, int, int],
    parameters: tuple[Any, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    box: Box,
) -> np.ndarray[Any, Any]:
    """Numbers of one PCG64 stream: jump to the first index of each contiguous run, draw the run."""
    generator, move = _at(state)

    def numbers(first: int, count: int) -> np.ndarray[Any, Any]:
        move(first)
        return row.draw(generator, (count,), dtype, *parameters)  # type: ignore[no-any-return]

    return _in_runs(shape, dtype, box, numbers)


def _in_runs(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    box: Box,
    numbers: Callable[[int, int], np.ndarray[Any, Any]],
) -> np.ndarray[Any, Any]:
    """The numbers inside a box, of which `numbers(first, count)` gives those of each contiguous run.

    Where to go to a run takes longer than drawing what lies between two of them, that is drawn, and dropped.
    """
    out = np.empty(box_shape(box), dtype)
    if out.size == 0:
        return out
    if not shape:
        out[()] = numbers(0, 1)[0]
        return out
    cut = max([d for d in range(len(shape)) if box[d] != (0, shape[d])], default=0)
    step = prod(shape[cut:])
    """From one run to the next."""
    if cut > 0 and step <= _JUMP_DRAWS:
        cut, inner = cut - 1, (slice(None), *(slice(lo, hi) for lo, hi in box[cut:]))
    else:
        step, inner = prod(shape[cut + 1 :]), (slice(None),)
    lo, hi = box[cut]
    rows = max(1, _BLOCK_ELEMENTS // step) if len(inner) > 1 else hi - lo
    strides = [prod(shape[d + 1 :]) for d in range(cut)]
    for index in np.ndindex(*box_shape(box[:cut])):
        start = sum((i + b0) * s for i, (b0, _), s in zip(index, box, strides, strict=False))
        for at in range(lo, hi, rows):
            count = min(rows, hi - at)
            found = numbers(start + at * step, count * step)
            out[index][at - lo : at - lo + count] = found.reshape(count, *shape[cut + 1 :])[inner]
    return out


def _at(state: tuple[int, int, int]) -> tuple[np.random.Generator, Callable[[int], None]]:
    """The generator of a stream, and what moves it to a draw, which may be called with ascending ones."""
    value, increment, offset = state
    bits = np.random.PCG64(0)
    beginning: Any = {
        "bit_generator": "PCG64",
        "state": {"state": value, "inc": increment},
        "has_uint32": 0,
        "uinteger": 0,
    }

    def move(position: int) -> None:
        bits.state = beginning
        bits.advance(offset + position)

    return np.random.Generator(bits), move
