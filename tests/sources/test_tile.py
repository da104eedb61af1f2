"""Regions of sources: what is read for them, and how much of it at a time."""

from __future__ import annotations

from math import prod
from typing import Any
from unittest import mock

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.sources import SourceTile
from tests.sampling import examples
from tests.sources.recorder import Recorder

_BAND = 512
X = numpy.arange(20 * 60 * 9.0).reshape(20, 60, 9)


def regions(n: int) -> Any:
    """Some of an axis, with a step of any size."""
    spans = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(1, n))
    return spans.map(lambda s: (min(s[:2]), max(s[:2]) + 1, s[2]))


@examples(150)
@given(region=st.tuples(*map(regions, X.shape)), chunks=st.tuples(*(st.integers(1, n) for n in X.shape)))
def test_no_box_is_larger_than_a_band_or_what_has_to_be_read_together(region: Any, chunks: Any) -> None:
    source = Recorder(X, chunks)
    tile = SourceTile(source).region(region)
    out = numpy.full(tile.shape, -1.0)
    with mock.patch("spartan_ng.sources.tile.band_bytes", return_value=_BAND):
        tile.into(out)
    numpy.testing.assert_array_equal(out, X[tuple(slice(*r) for r in region)])
    for box in source.asked:
        lengths = [hi - lo for lo, hi in box]
        whole = prod(map(min, lengths, chunks))
        assert prod(lengths) <= max(_BAND // X.itemsize, whole)


def test_elements_far_apart_along_any_axis_are_read_alone() -> None:
    for axis in range(3):
        source = Recorder(X, (1, 1, 1))
        region = tuple((0, n, n - 1) if i == axis else (1, 2, 1) for i, n in enumerate(X.shape))
        out = numpy.empty(tuple(2 if i == axis else 1 for i in range(3)))
        with mock.patch("spartan_ng.sources.tile.band_bytes", return_value=16):
            SourceTile(source).region(region).into(out)
        assert [prod(hi - lo for lo, hi in box) for box in source.asked] == [1, 1]


@pytest.mark.parametrize("chunks", [(20, 1, 9), (20, 60, 1), (1, 60, 9), (20, 1, 1), (7, 60, 2)])
def test_where_bands_have_no_room_chunks_of_any_shape_come_a_few_at_a_time(chunks: tuple[int, ...]) -> None:
    """A row of chunks that are columns is all of the array: it was read as one box."""
    source = Recorder(X, chunks)
    with config.override(memory_bytes=2 * prod(chunks) * X.itemsize, small_bytes=0):
        found = np.from_source(source).sum(axis=(0, 2)).compute()
    numpy.testing.assert_allclose(found, X.sum(axis=(0, 2)))
    assert source.asked
    assert all(prod(hi - lo for lo, hi in box) <= 2 * prod(chunks) for box in source.asked)
