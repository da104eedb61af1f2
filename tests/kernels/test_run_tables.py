"""A run's table says of each block what that block alone says, and is made of what few shapes say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from spartan_ng import session
from spartan_ng.arrays import Box, box_shape
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.kernels.blocks import Patch, cut_tile, patches
from spartan_ng.kernels.compiled import prepared as preparing
from spartan_ng.kernels.compiled.prepared import BlockTable, Compiled
from spartan_ng.kernels.compiled.select import FittedKernel, prepare_stage
from spartan_ng.kernels.sequences import Blocks, Steps, cut_at_multiples, edges_of
from spartan_ng.plan.stages import Fused


def _product(x: Node, y: Node) -> Node:
    return build.map_("add", build.map_("multiply", x, y), y)


PROGRAMS: dict[str, Callable[[Node, Node], Node]] = {
    "elementwise": _product,
    "turned": lambda x, y: build.map_("add", x, build.transpose(y, (1, 0))),
    "row": lambda x, y: _product(x, build.slice_(y, (2, 0), (1, 1), (1, y.shape[1]))),
    "column": lambda x, y: _product(x, build.slice_(y, (0, 3), (1, 1), (y.shape[0], 1))),
    "columns": lambda x, y: build.fold("add", _product(x, y), (0,)),
    "lines": lambda x, y: build.fold("maximum", _product(x, y), (1,)),
    "all": lambda x, y: build.fold("add", _product(x, y), (0, 1)),
}
TILES: Sequence[Box] = (
    ((0, 600), (0, 600)),
    ((7, 600), (30, 500)),
    ((100, 101), (0, 600)),
    ((0, 600), (599, 600)),
)


def prepared(name: str, tile: Box) -> tuple[Fused, FittedKernel]:
    """A program's stage, and what is compiled of it for a tile."""
    X = np.ones((600, 600))
    node = PROGRAMS[name](build.constant(X), build.constant(X + 1))
    plan = session.current().plan([node])[0].plan
    (stage,) = (s for s in plan.stages if isinstance(s, Fused))
    operands = tuple(
        (plan.slots[r.slot].dtype, r.shape, tuple(8 * (k + 3) for k in range(len(r.shape))))
        for r in stage.reads
    )
    found = prepare_stage(stage, tile[: len(stage.domain)], operands)
    assert found is not None
    return stage, found


def line(body: Compiled, block: Box) -> list[int]:
    """What the kernel takes for a block, from its definition."""
    out: list[int] = []
    for loop in body.loops.values():
        own = BlockTable(body, loop, block)
        fields = own.table.copy()
        for place, register in zip(own.places, body.arrays(loop.segment), strict=True):
            fields[place] += sum((block[d][0] - lo) * stride for d, lo, stride in body.moves(register))
        out += fields.tolist()
    return out


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_line_is_what_its_block_says(name: str, tile: Box) -> None:
    _, found = prepared(name, tile)
    body = found.body
    for each in found.cut if isinstance(found.cut, list) else [found.cut]:
        for run in each.runs:
            wanted = [line(body, block) for block in run]
            assert body.run_table(run).tolist() == wanted
            told = Blocks([[(lo, hi)] for lo, hi in run[0]], 0, 1)  # of a run too long to be listed
            assert body.run_table(told).tolist() == wanted[:1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_shape_is_worked_out_once(name: str) -> None:
    """A first run made a table of each block of each run: a fifth of what it took beyond the next ones."""
    _, found = prepared(name, TILES[1])
    shapes = set()
    with patch.object(BlockTable, "__init__", autospec=True, side_effect=BlockTable.__init__) as made:
        for each in found.cut if isinstance(found.cut, list) else [found.cut]:
            for run in each.runs:
                found.body.run_table(run)
                shapes |= {box_shape(block) for block in run}
    assert made.call_count <= (len(shapes) + 1) * len(found.body.loops)  # and those that columns are asked of


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_table_is_made_between_runs(name: str) -> None:
    """There a thread's caches hold blocks, and its Python waits for memory: ten times as long."""
    with patch.object(preparing, "build_table", side_effect=preparing.build_table) as built:
        _, found = prepared(name, TILES[1])
        assert built.call_count == found.body.is_whole
        if found.body.is_whole:
            for each in found.cut if isinstance(found.cut, list) else [found.cut]:
                for run in each.runs:
                    found.body.run_table(run)
            assert built.call_count == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40), st.integers(1, 9)), max_size=3), st.data())
def test_edges_are_those_of_each_block(dimensions: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Of those that are told when they are asked for, too."""
    spans = [
        Steps(lo, lo + n, size) if data.draw(st.booleans()) else cut_at_multiples(lo, lo + n, size)
        for lo, n, size in dimensions
    ]
    count = int(np.prod([len(own) for own in spans]))
    start = data.draw(st.integers(0, count))
    told = Blocks(spans, start, data.draw(st.integers(start, count)))
    listed = tuple(told)
    wanted = np.array(listed, np.int64).reshape(len(listed), len(spans), 2)
    for run in (told, listed):
        np.testing.assert_array_equal(edges_of(run, len(spans)), wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_threads_share_is_not_written(name: str) -> None:
    """Who puts addresses into tables has tables of its own: threads wrote over each other's."""
    _, found = prepared(name, TILES[1])
    for one in found.body.block_tables(found.body.sizes):
        with pytest.raises(ValueError, match="read-only"):
            one.table[0] = 0


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("sizes", [(1, 600), (64, 64), (600, 7), (37, 41)])
def test_plain_results_have_the_blocks_of_patches(tile: Box, sizes: tuple[int, int]) -> None:
    stage, _ = prepared("elementwise", TILES[0])
    wanted = [block for each in patches(tile, sizes, []) for run in each.runs for block in run]
    cut = cut_tile(stage, tile, sizes, together=True)
    assert isinstance(cut, list)
    (one,) = cut
    assert isinstance(one, Patch)
    assert one.box == tile
    assert [block for run in one.runs for block in run] == wanted
