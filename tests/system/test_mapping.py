"""Addresses that take memory: a page is given back when all of it is, and nothing beside it; large pages are
asked for where whole ones have no memory yet."""

from __future__ import annotations

import os
from mmap import PAGESIZE
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.system import mapping
from spartan_ng.system.mapping import LARGE_PAGE, Mapping, Reservation
from spartan_ng.system.segments import create
from tests.sampling import examples

NEAR = st.sampled_from([0, 1, PAGESIZE - 1, PAGESIZE, PAGESIZE + 1, 2 * PAGESIZE, 3 * PAGESIZE - 1])


@examples(100)
@given(size=NEAR.filter(bool), ends=st.tuples(NEAR, NEAR))
def test_whole_pages_read_as_zeros_and_all_else_stays(size: int, ends: tuple[int, int]) -> None:
    """The last page may be shorter than the others: what the array has of it is all of it."""
    start, stop = (min(end, size) for end in sorted(ends))
    reservation = Reservation(size, large_pages=False)
    array = reservation.array()
    array[:] = 1
    reservation.let_go(start, stop)
    for first in range(0, size, PAGESIZE):
        page = array[first : first + PAGESIZE]
        gone = start <= first and first + len(page) <= stop
        assert (page == (0 if gone else 1)).all()


@pytest.mark.slow
@examples(100)
@given(pages=st.integers(1, 5), beyond=NEAR, filled=st.integers(0, 2), more=NEAR, answers=st.booleans())
def test_large_pages_are_asked_for_and_elements_stay(pages, beyond, filled, more, answers):
    """Of all whole ones that have no memory yet, in some calls, until one is refused."""
    size = pages * LARGE_PAGE + beyond
    filled = min(filled * LARGE_PAGE + more, size)
    asked: list[tuple[int, int]] = []

    def madvise(address: int, nbytes: int, advice: int) -> int:
        asked.append((address, nbytes))
        return 0 if answers and advice == mapping._COLLAPSE else -1

    descriptor = create(size)
    try:
        whole = Mapping(descriptor, size)
        array = whole.array(size)
        assert array.ctypes.data % LARGE_PAGE == 0
        array[:filled] = random = np.random.default_rng(0).integers(1, 255, filled, np.uint8)
        with patch.multiple(mapping, _madvise=madvise, _WORTH_LARGE=LARGE_PAGE, _AT_ONCE=2 * LARGE_PAGE):
            whole.in_large_pages(filled, size)
        other = Mapping(descriptor, size, writable=False).array(size)
    finally:
        os.close(descriptor)
    first, last = -(-filled // LARGE_PAGE), pages
    starts = range(first, last, 2) if answers else range(first, last, 2)[:1]
    assert asked == [(array.ctypes.data + at * LARGE_PAGE, min(2, last - at) * LARGE_PAGE) for at in starts]
    assert (other[:filled] == random).all()
    assert not other[filled:].any()


@pytest.mark.slow
def test_a_system_with_large_pages_gives_them():
    """Where it has some left and is new enough; what is written is what is read, here and by others."""
    size = 4 * mapping._WORTH_LARGE + 3 * PAGESIZE
    descriptor = create(size)
    try:
        ours, others = Mapping(descriptor, size), Mapping(descriptor, size, writable=False).array(size)
    finally:
        os.close(descriptor)
    ours.in_large_pages(0, size)
    array = ours.array(size)
    array[:] = np.arange(size) % 251
    np.testing.assert_array_equal(others, np.arange(size) % 251)
