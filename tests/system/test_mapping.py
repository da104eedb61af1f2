"""Addresses that take memory: a page is given back when all of it is, and nothing beside it."""

from __future__ import annotations

from mmap import PAGESIZE

from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.system.mapping import Reservation
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
