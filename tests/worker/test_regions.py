"""Reads resolve to pieces that hold exactly the elements NumPy's view shows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.arrays import ArrayRef, Tiling, cover
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.views import view_read
from spartan_ng.worker.memory.regions import gathered_pieces, resolve
from spartan_ng.worker.memory.store import read_region
from tests.sampling import examples


@st.composite
def views(draw: st.DrawFn) -> tuple[Node, Node, Any, Any]:
    """A leaf, a chain of views over it, and both in NumPy."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    value = np.arange(np.prod(shape)).reshape(shape)
    leaf = node = build.data(ArrayRef(shape, value.dtype, value=value))
    shown = value
    for kind in draw(st.lists(st.sampled_from(["slice", "transpose", "broadcast", "unit"]), max_size=4)):
        if kind == "slice":
            starts, steps, lengths, keys = [], [], [], []
            for n in node.shape:
                start, step = draw(st.integers(0, n - 1)), draw(st.sampled_from([1, 2, -1, -2, 3]))
                key = slice(start, None, step)
                length = len(range(n)[key])
                starts.append(start)
                steps.append(step)
                lengths.append(length)
                keys.append(key)
            node, shown = build.slice_(node, starts, steps, tuple(lengths)), shown[tuple(keys)]
        elif kind == "transpose":
            axes = tuple(draw(st.permutations(range(node.ndim))))
            node, shown = build.transpose(node, axes), shown.transpose(axes)
        elif kind == "broadcast" and node.ndim < 4:
            target = (3, *(4 if n == 1 else n for n in node.shape))
            node, shown = build.broadcast(node, target), np.broadcast_to(shown, target)
        elif kind == "unit" and node.ndim < 4:
            axis = draw(st.integers(0, node.ndim))
            target = (*node.shape[:axis], 1, *node.shape[axis:])
            node, shown = build.reshape(node, target), shown.reshape(target)
    return leaf, node, value, shown


@examples(400)
@given(views(), st.data())
def test_reads_show_what_numpy_shows(case: tuple[Node, Node, Any, Any], data: st.DataObject) -> None:
    leaf, node, value, shown = case
    parts = tuple(data.draw(st.integers(1, min(3, n))) for n in leaf.shape)
    tiling = Tiling.grid(*parts)
    if data.draw(st.booleans()):
        tiling = tiling.transpose(tuple(range(leaf.ndim)))
    slot = Slot(leaf.shape, leaf.dtype, tiling)
    read = view_read(node, tuple(range(node.ndim)), leaf, 0)
    box = tuple(
        (lo, data.draw(st.integers(lo + 1, n)))
        for n in node.shape
        for lo in [data.draw(st.integers(0, n - 1))]
    )
    operand = resolve(read, box, slot, 0)
    tiles = {
        tiling.rank(i): value[tuple(slice(*b) for b in tiling.box(leaf.shape, i))]
        for i in product(*map(range, parts))
    }
    found = operand.present(
        gathered_pieces(
            [(p, read_region(tiles[p.rank], p.region)) for p in operand.pieces], operand.shape, value.dtype
        )
    )
    expected = shown[tuple(slice(lo, hi) for lo, hi in box)]
    np.testing.assert_array_equal(np.broadcast_to(found, expected.shape), expected)


@examples(300)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_cover_holds_every_flat_index(shape: list[int], data: st.DataObject) -> None:
    n = int(np.prod(shape))
    first = data.draw(st.integers(0, n - 1))
    last = data.draw(st.integers(first, n - 1))
    flat = np.arange(n).reshape(shape)
    inside = flat[tuple(slice(lo, hi) for lo, hi in cover(tuple(shape), first, last))].ravel()
    start = int(inside[0])
    assert start <= first
    np.testing.assert_array_equal(inside[first - start : last - start + 1], np.arange(first, last + 1))
