"""Blocks cover a tile exactly once, in order, within the cache, and do not depend on the tile's place."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence
from math import prod
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from spartan_ng.arrays import WHOLE, ArrayRef, Tiling, box_shape
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import ABREAST
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.kernels import blocks as cutting
from spartan_ng.kernels import sequences
from spartan_ng.kernels.blocks import CACHE_BYTES, TASKS, block_sizes, patches
from spartan_ng.kernels.sequences import blocks, cut_at_multiples
from spartan_ng.memory import BLOCK_BYTES
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.joins import REDUCING
from spartan_ng.plan.lower import lower
from spartan_ng.plan.rows import Axis, Read, Row, Write
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import Fused
from tests.sampling import examples


@examples(300)
@given(lo=st.integers(0, 50), length=st.integers(0, 50), size=st.integers(1, 60))
def test_a_tile_of_one_block_is_known_without_its_cuts(lo: int, length: int, size: int) -> None:
    expected = len(cut_at_multiples(lo, lo + length, size)) <= 1
    with patch.object(cutting, "cut_at_multiples", side_effect=AssertionError("there may be many")):
        assert cutting.is_one_block((lo, lo + length), size) is expected


@st.composite
def tiles(draw: st.DrawFn) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...], list[int]]:
    ndim = draw(st.integers(0, 3))
    tile, sizes = [], []
    for _ in range(ndim):
        lo = draw(st.integers(0, 20))
        tile.append((lo, lo + draw(st.integers(1, 12))))
        sizes.append(draw(st.integers(1, 13)))
    reduced = [d for d in range(ndim) if draw(st.booleans())]
    return tuple(tile), tuple(sizes), reduced


@examples(300)
@given(tiles())
def test_every_element_is_in_one_block(
    case: tuple[tuple[tuple[int, int], ...], tuple[int, ...], list[int]],
) -> None:
    tile, sizes, reduced = case
    seen = np.zeros([hi for _, hi in tile], int)
    for own in patches(tile, sizes, reduced):
        for run in own.runs:
            for block in run:
                seen[tuple(slice(lo, hi) for lo, hi in block)] += 1
                assert all(hi - lo <= b for (lo, hi), b in zip(block, sizes, strict=True))
                assert all(block[d] == own.box[d] for d in range(len(tile)) if d not in reduced)
    inside = seen[tuple(slice(lo, hi) for lo, hi in tile)]
    assert (inside == 1).all()
    assert seen.sum() == prod(box_shape(tile))


@examples(100)
@given(tiles())
def test_blocks_that_are_told_are_those_that_are_listed(
    case: tuple[tuple[tuple[int, int], ...], tuple[int, ...], list[int]],
) -> None:
    tile, sizes, _ = case
    listed = blocks([cut_at_multiples(lo, hi, b) for (lo, hi), b in zip(tile, sizes, strict=True)])
    assert isinstance(listed, tuple)
    with patch.object(sequences, "MANY", 0):
        told = blocks([cut_at_multiples(lo, hi, b) for (lo, hi), b in zip(tile, sizes, strict=True)])
    assert isinstance(told, sequences.Blocks) or not listed
    assert tuple(told) == listed
    assert len(told) == len(listed)
    middle = len(listed) // 2
    assert tuple(told[1:middle][1:]) == listed[1:middle][1:]
    assert told[-1] == listed[-1]


@examples(200)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 9), st.data())
def test_steps_that_are_told_are_those_that_are_listed(
    lo: int, length: int, size: int, data: st.DataObject
) -> None:
    """And so are some of them that follow each other, and some of those, wherever they begin and end."""
    listed = cut_at_multiples(lo, lo + length, size)
    assert isinstance(listed, list)
    told: Sequence[tuple[int, int]] = sequences.Steps(lo, lo + length, size)
    for _ in range(3):
        assert list(told) == listed
        assert len(told) == len(listed)
        bounds = st.none() | st.integers(-len(listed) - 1, len(listed) + 1)
        key = slice(data.draw(bounds), data.draw(bounds))
        told, listed = told[key], listed[key]


def test_a_long_pass_is_cut_in_little_memory() -> None:
    shape = (10**6, 10**6)
    tracemalloc.start()
    try:
        (own,) = patches(tuple((0, n) for n in shape), (1, 1 << 16), [0, 1])
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert TASKS < len(own.runs) < 10_000
    assert sum(map(len, own.runs)) == 10**6 * -(-(10**6) // (1 << 16))
    assert own.runs[-1][-1] == ((999_999, 10**6), (15 << 16, 10**6))


def _stage(shape: tuple[int, ...], whole: tuple[int, ...] = ()) -> Fused:
    labels = tuple(range(len(shape)))
    read = Read(0, tuple(Axis(d, 0, 1, n) for d, n in enumerate(shape)), labels, shape, labels)
    row = Row("map", "exp", (0,), (), np.dtype(float), shape, labels)
    return Fused("exp", shape, Tiling.single(len(shape)), (read,), (row,), (Write((1,), 1, labels),), whole)


def test_blocks_of_loops_fit_the_cache_and_keep_rows_together() -> None:
    shape = (100_000, 50)
    sizes = block_sizes(_stage(shape), tuple((0, n) for n in shape), held=frozenset({1}))
    assert sizes[1] == 50
    assert prod(sizes) * 8 <= CACHE_BYTES
    assert prod(sizes) * 8 >= CACHE_BYTES // 4


@examples(200)
@given(st.lists(st.sampled_from([1, 2, 50, 3000, 100_000]), min_size=1, max_size=3), st.data())
def test_blocks_cut_what_all_operands_have_contiguous_last_of_all(
    shape: list[int], data: st.DataObject
) -> None:
    """Axes of one element lie anyhow, and those that each block needs whole say nothing."""
    dims = range(len(shape))
    orders = data.draw(st.lists(st.permutations(dims), min_size=1, max_size=2))
    wholes = data.draw(st.lists(st.booleans(), min_size=len(orders), max_size=len(orders)))
    reads = []
    for slot, (order, whole) in enumerate(zip(orders, wholes, strict=True)):
        axes = [Axis(d, 0, 1, shape[d]) for d in order] + [Axis(WHOLE, 0, 1, 5)] * whole
        labels = tuple(a.label for a in axes)
        reads.append(Read(slot, tuple(axes), tuple(range(len(axes))), tuple(a.size for a in axes), labels))
    stage = replace(_stage(tuple(shape)), reads=tuple(reads))
    sizes = block_sizes(stage, tuple((0, n) for n in shape), held=frozenset())
    long = [[d for d in order if shape[d] > 1] for order in orders]
    last = {order[-1] for order, whole in zip(long, wholes, strict=True) if order and not whole}
    if len(last) == 1:
        (d,) = last
        assert sizes[d] == shape[d] or all(sizes[i] == 1 for i in dims if i != d)
    else:
        cut = [i for i in dims if sizes[i] < shape[i]]
        assert all(sizes[i] >= max(sizes) // 2 for i in cut), "the longest is cut first"


def test_vectors_across_a_matrix_do_not_cut_its_lines() -> None:
    """As of `A @ x` beside `r @ A`: a block of short pieces of many lines is no reading in one go."""
    n = 5000
    across, along = Axis(0, 0, 1, n), Axis(1, 0, 1, n)
    vectors = [Read(1, (along,), (0,), (n,), (1,)), Read(2, (across,), (0,), (n,), (0,))]
    stage = _stage((n, n))
    stage = replace(stage, reads=(*stage.reads, *vectors))
    assert block_sizes(stage, ((0, n), (0, n)), frozenset({3}))[1] == n


@pytest.mark.parametrize("held", [None, frozenset[int](), frozenset({2})])
def test_what_is_stored_keeps_its_lines_where_operands_have_fewer_axes(held: frozenset[int] | None) -> None:
    """As of an outer product: NumPy copies short pieces of lines to and fro."""
    n = 3000
    vectors = [Read(d, (Axis(d, 0, 1, n),), (0,), (n,), (d,)) for d in range(2)]
    row = Row("map", "multiply", (0, 1), (), np.dtype(float), (n, n), (0, 1))
    stage = replace(_stage((n, n)), reads=tuple(vectors), rows=(row,), writes=(Write((2,), 2, (0, 1)),))
    assert block_sizes(stage, ((0, n), (0, n)), held)[1] == n
    turned = replace(stage, writes=(Write((2,), 2, (1, 0)),))
    assert block_sizes(turned, ((0, n), (0, n)), held)[0] == n


@pytest.mark.parametrize("columns", [100, 1_000, 4_000])
def test_a_vector_that_is_made_on_the_way_does_not_cut_lines(columns: int) -> None:
    """As of what a mean is made of, in `x - x.mean(axis=0)`: it was made once for blocks of some columns."""
    x, sums = build.data(ArrayRef((5_000, columns), np.dtype(float))), build.constant(np.ones(columns))
    mean = build.map_("divide", sums, build.constant(5_000.0))
    root = build.map_("subtract", x, mean)
    plan = lower(topological([root]), [root], Settings(Profile()), "a plan")
    (stage,) = plan.stages
    assert isinstance(stage, Fused)
    assert not stage.whole
    assert block_sizes(stage, ((0, 5_000), (0, columns)))[1] == columns


@pytest.mark.parametrize("columns", [1_000, 6_500, 10_000, 20_000, 50_000, 300_000])
def test_lines_that_compiled_folds_take_side_by_side_are_not_parted(columns: int) -> None:
    """As of `A @ x` beside `r @ A`: a line on its own reads and writes all sums of the columns for itself."""
    shape = (4_000, columns)
    read = Read(0, (Axis(0, 0, 1, shape[0]), Axis(1, 0, 1, columns)), (0, 1), shape, (0, 1))
    writes = [
        Write((d + 1,), -1 - d, (d,), Row("fold", "add", (0,), ((1 - d,),), np.dtype(float), (n,), (d,)))
        for d, n in enumerate(shape)
    ]
    stage = Fused("folds", shape, Tiling.single(2), (read,), (), tuple(writes))
    sizes = block_sizes(stage, ((0, shape[0]), (0, columns)), frozenset({0, -1, -2}))
    assert sizes[0] % ABREAST == 0
    assert sizes[1] >= min(columns, 5_000)


@pytest.mark.parametrize(
    ("rows", "pieces"),
    [(1_000, 1), (100_000, 8), (10_000_000, 1024)],
)
def test_blocks_of_calls_are_long_and_still_shared_between_threads(rows: int, pieces: int) -> None:
    """One block of what the cache holds, eight of a medium tile; those of a large one stop growing."""
    shape = (rows, 50)
    sizes = block_sizes(_stage(shape), tuple((0, n) for n in shape))
    assert sizes == (-(-rows // pieces), 50)


@examples(100)
@given(
    st.lists(st.sampled_from([1, 3, 50, 3000, 400_000]), min_size=1, max_size=3),
    st.sampled_from([1 << 12, 1 << 20, 3 << 20, BLOCK_BYTES]),
    st.booleans(),
)
def test_blocks_of_calls_take_what_the_stage_lets_them(shape: list[int], nbytes: int, of_user: bool) -> None:
    """What is held, a number an element, and a quarter of what streams past; no less than the cache holds."""
    stage = replace(_stage(tuple(shape)), block_bytes=nbytes)
    if of_user:
        stage = replace(stage, rows=(replace(stage.rows[0], fn=UserFunction(np.exp)),))
    tile = tuple((0, n) for n in shape)
    sizes = block_sizes(stage, tile)
    assert prod(sizes) * (8 + 2) <= max(CACHE_BYTES, nbytes)
    assert sizes == block_sizes(replace(stage, block_bytes=1), tile) or nbytes > CACHE_BYTES


def test_whole_dimensions_are_not_cut() -> None:
    shape = (1000, 5000)
    sizes = block_sizes(_stage(shape, whole=(1,)), tuple((0, n) for n in shape))
    assert sizes[1] == 5000


def test_a_fold_that_walks_in_pieces_has_a_block_for_each_task() -> None:
    shape, labels = (2_000_000, 50), (0, 1)
    read = Read(0, (Axis(0, 0, 1, shape[0]), Axis(1, 0, 1, shape[1])), labels, shape, labels)
    row = Row("fold", "squared deviations", (0,), ((0,),), np.dtype(float), (50,), (1,))
    stage = Fused("var", shape, Tiling.single(2), (read,), (), (Write((1,), -1, (1,), row),), ())
    tile = tuple((0, n) for n in shape)
    sizes = block_sizes(stage, tile)
    assert sizes[1] == 50
    (own,) = patches(tile, sizes, [0])
    assert len(own.runs) == TASKS
    assert all(len(run) == 1 for run in own.runs)


@pytest.mark.parametrize("fold", ["add", "maximum", "argmax", "squared deviations", "logical_or"])
@pytest.mark.parametrize("held", [None, frozenset[int]()])
@pytest.mark.parametrize("rows", [2, 5, 16, 17, 300])
def test_states_of_folds_are_smaller_than_what_they_are_of(fold: str, held: Any, rows: int) -> None:
    """Of a few long lines blocks of one had states as large as they were, or four times as large."""
    shape = (rows, 3_000_000)
    read = Read(0, (Axis(0, 0, 1, rows), Axis(1, 0, 1, shape[1])), (0, 1), shape, (0, 1))
    reducer = Row("fold", fold, (0,), ((0,),), np.dtype(float), (shape[1],), (1,))
    grid = Tiling.single(2)
    stage = Fused("fold", shape, grid, (read,), (), (Write((1,), -1, (1,), reducer),), block_bytes=1 << 20)
    sizes = block_sizes(stage, tuple((0, n) for n in shape), held)
    assert sizes[0] > 1
    assert sizes[0] >= min(rows, 9)
    assert sizes[1] * 8 <= 1 << 20


def test_a_table_of_rows_to_look_up_cuts_no_blocks() -> None:
    table, wanted = (1_000_000, 5), (512,)
    read = Read(0, (Axis(-1, 0, 1, table[0]), Axis(1, 0, 1, 5)), (-1, 1), table, (0, 1))
    indices = Read(1, (Axis(0, 0, 1, 512),), (0,), wanted, (0,))
    row = Row("take", None, (0, 1), (0,), np.dtype(float), (512, 5), (0, 1))
    stage = Fused("take", (512, 5), Tiling.single(2), (read, indices), (row,), (Write((2,), 2, (0, 1)),), ())
    assert block_sizes(stage, ((0, 512), (0, 5))) == (512, 5)


@pytest.mark.parametrize(
    ("lines", "columns", "whole", "sizes"),
    [
        (8, 10_000, (), (8, 1250)),
        (1, 3000, (), (1, 375)),
        (8, 10_000_000, (), (8, 8192)),
        (5, 10_000, (1,), (1, 10_000)),
        (2, 900, (), (2, 300)),
        (40, 10_000, (), (40, 79)),
    ],
)
def test_a_matrix_that_few_lines_are_multiplied_with_is_read_in_long_lines(
    lines: int, columns: int, whole: tuple[int, ...], sizes: tuple[int, int]
) -> None:
    shape, inner = (lines, columns), 30_000
    left = Read(0, (Axis(0, 0, 1, lines), Axis(WHOLE, 0, 1, inner)), (0, 1), (lines, inner), (0, WHOLE))
    right = Read(1, (Axis(WHOLE, 0, 1, inner), Axis(1, 0, 1, columns)), (0, 1), (inner, columns), (WHOLE, 1))
    product = Row("contract", "contract", (0, 1), ((0, 2), (2, 1), (0, 1)), np.dtype(float), shape, (0, 1))
    stage = replace(_stage(shape, whole), reads=(left, right), rows=(product,))
    assert block_sizes(stage, tuple((0, n) for n in shape)) == sizes


def test_what_is_read_twice_takes_its_place_once() -> None:
    """Rows as a whole for distances, and their elements for sums by label: the same memory. Halves are
    not."""
    rows, columns = 10_000_000, 50
    labels, shape = (0, 1), (rows, columns)
    line = Read(0, (Axis(0, 0, 1, rows), Axis(WHOLE, 0, 1, columns)), labels, shape, (0, WHOLE))
    elements = Read(0, (Axis(0, 0, 1, rows), Axis(1, 0, 1, columns)), labels, shape, labels)
    behind = replace(elements, axes=(Axis(0, rows, 1, rows), elements.axes[1]))
    row = Row("map", "exp", (1,), (), np.dtype(float), shape, labels)
    base, tile = _stage(shape), tuple((0, n) for n in shape)

    def length(*reads: Read) -> int:
        last = replace(row, args=(len(reads) - 1,))
        return block_sizes(replace(base, reads=reads, rows=(last,)), tile)[0]

    twice = length(line, elements)
    assert twice == length(elements, line) == length(elements, elements)
    assert 2 * twice * columns * 8 * 2 > BLOCK_BYTES, "operand and result fill more than half of a block"
    assert length(elements, behind) < twice


def test_a_row_of_an_array_does_not_stand_for_all_of_it() -> None:
    """Distances from one row: blocks are as short as for two arrays, and not all of them one block."""
    rows, columns = 10_000_000, 50
    labels, shape = (0, 1), (rows, columns)
    every = Read(0, (Axis(0, 0, 1, rows), Axis(1, 0, 1, columns)), labels, shape, labels)
    row = Read(0, (Axis(WHOLE, 7, 1, 1), Axis(1, 0, 1, columns)), (1,), (columns,), (1,))
    made = Row("map", "subtract", (0, 1), (), np.dtype(float), shape, labels)
    stage = replace(_stage(shape), reads=(every, row), rows=(made,))
    sizes = block_sizes(stage, ((0, rows), (0, columns)), held=frozenset())
    assert 8 * sizes[0] * columns <= CACHE_BYTES


@pytest.mark.parametrize("kind", sorted(REDUCING))
def test_what_numpy_copies_to_count_and_sort_it_fits_a_block(kind: str) -> None:
    n = 100_000_000
    line = Read(0, (Axis(0, 0, 1, n),), (0,), (n,), (0,))
    reducer = Row(kind, None, (0,), (10,), np.dtype(np.int64), (10,), (WHOLE,))
    stage = replace(_stage((n,)), reads=(line,), rows=(), writes=(Write((1,), 0, (WHOLE,), reducer),))
    (size,) = block_sizes(stage, ((0, n),))
    assert 8 * size <= BLOCK_BYTES


def test_a_matrix_that_is_made_on_the_way_fits_the_cache() -> None:
    lines, columns, inner = 8, 10_000, 30_000
    shape, whole = (lines, columns), (inner, columns)
    left = Read(0, (Axis(0, 0, 1, lines), Axis(WHOLE, 0, 1, inner)), (0, 1), (lines, inner), (0, WHOLE))
    right = Read(1, (Axis(WHOLE, 0, 1, inner), Axis(1, 0, 1, columns)), (0, 1), whole, (WHOLE, 1))
    twice = Row("map", "negative", (1,), (), np.dtype(float), whole, (WHOLE, 1))
    product = Row("contract", "contract", (0, 2), ((0, 2), (2, 1), (0, 1)), np.dtype(float), shape, (0, 1))
    stage = replace(_stage(shape), reads=(left, right), rows=(twice, product))
    assert block_sizes(stage, tuple((0, n) for n in shape))[1] * inner * 8 <= 16 * CACHE_BYTES


def test_blocks_for_users_functions_are_shared_finely() -> None:
    shape = (100_000, 50)
    stage = _stage(shape)
    user = replace(stage.rows[0], fn=UserFunction(np.exp))
    sizes = block_sizes(replace(stage, rows=(user,)), tuple((0, n) for n in shape))
    assert sizes == (-(-shape[0] // TASKS), 50)


def test_tasks_of_a_box_do_not_depend_on_where_it_lies(monkeypatch) -> None:
    """A rank's box begins anywhere in the domain."""
    monkeypatch.setattr(cutting, "_MOST_ELEMENTS", 1000)
    for seed in range(300):
        rng = random.Random(seed)
        lengths = [rng.choice([1, 7, 40, 300]) for _ in range(rng.randint(1, 3))]
        lows = [rng.choice([0, 5, 1000]) for _ in lengths]
        box = [(lo, lo + n) for lo, n in zip(lows, lengths, strict=True)]
        tasks = cutting._steps_of(box)
        assert tasks == cutting._steps_of([(0, n) for n in lengths])
        assert tasks <= prod(lengths) / 1000
        assert tasks == cutting._MOST_STEPS or (tasks + 1) * 1000 > prod(lengths)
