"""Regions that are too long for one message: cut into parts, and put together from them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.arrays import box_shape, box_slices
from spartan_ng.worker.memory.store import read_region, selected_places
from spartan_ng.worker.network.long_reads import is_read_in_parts, part_of_region, parts_of


@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple),
    most=st.integers(1, 400),
)
def test_parts_fill_an_array_in_order_each_in_one_piece(shape: tuple[int, ...], most: int) -> None:
    times = numpy.zeros(shape, int)
    last = -1
    for box in parts_of(shape, times.itemsize, most):
        part = times[box_slices(box)]
        part += 1
        assert part.flags.c_contiguous
        assert part.nbytes <= max(most, times.itemsize)
        first = int(numpy.ravel_multi_index([lo for lo, _ in box], shape))
        assert first > last
        last = first
    assert (times == 1).all()


def _ranges(draw: Any, size: int) -> Any:
    if draw(st.booleans()):
        lo = draw(st.integers(0, size - 1))
        return (lo, draw(st.integers(lo + 1, size)), draw(st.integers(1, 3)))
    return numpy.array(sorted(draw(st.sets(st.integers(0, size - 1), min_size=1))))


@given(st.data())
def test_parts_of_regions_are_regions(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=2)))
    tile = numpy.arange(prod(shape)).reshape(shape)
    region: Any = tuple(_ranges(data.draw, n) for n in shape)
    if len(shape) == 2 and isinstance(region[1], numpy.ndarray):
        region = (region[0] if isinstance(region[0], tuple) else (0, shape[0], 1), region[1])
    if len(shape) == 1 and data.draw(st.booleans()):
        begins = data.draw(st.lists(st.integers(0, shape[0] - 1), min_size=1, max_size=4))
        rows = [(b, data.draw(st.integers(b, shape[0])), data.draw(st.integers(1, 2))) for b in begins]
        region = (numpy.array(rows),)
        if not selected_places(region[0]):
            return
    whole = read_region(tile, region)
    assert whole.shape == tuple(map(selected_places, region))
    for box in parts_of(whole.shape, whole.dtype.itemsize, data.draw(st.integers(8, 100))):
        part = read_region(tile, part_of_region(region, box))
        assert part.shape == box_shape(box)
        numpy.testing.assert_array_equal(part, whole[box_slices(box)])


def test_what_is_long() -> None:
    tile = numpy.empty((1 << 10, 1 << 10))
    assert is_read_in_parts(tile, ((0, 1 << 10, 1), (0, 1 << 10, 1)))
    assert not is_read_in_parts(tile, ((0, 1 << 10, 2), (0, 1 << 10, 1)))
    assert not is_read_in_parts([((0, 1), tile)], ((0, 1 << 10, 1),))
    assert not is_read_in_parts(tile.astype(object), ((0, 1 << 10, 1), (0, 1 << 10, 1)))
