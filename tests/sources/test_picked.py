"""Some indices of a source as a source."""

from __future__ import annotations

import numpy
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.sources.picked import Picked
from tests.sampling import examples
from tests.sources.recorder import Recorder

X = numpy.arange(40 * 6 * 3.0).reshape(40, 6, 3)


@examples(80)
@given(st.data())
def test_boxes_of_it_are_what_numpy_picks(data):
    axis = data.draw(st.integers(0, 2))
    n = X.shape[axis]
    chunk = data.draw(st.integers(1, n))
    places = numpy.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    source = Recorder(X, tuple(chunk if a == axis else 2 for a in range(3)))
    picked = Picked(source, axis, places)
    wanted = X.take(places, axis)
    box = tuple(
        (lo, data.draw(st.integers(lo + 1, m)))
        for m in wanted.shape
        for lo in [data.draw(st.integers(0, m - 1))]
    )
    assert (picked.shape, picked.dtype, picked.chunks) == (wanted.shape, X.dtype, source.chunks)
    found = picked.read(box)
    numpy.testing.assert_array_equal(found, wanted[tuple(slice(*span) for span in box)])
    asked = [span for b in source.asked for span in [b[axis]]]
    read = sorted(i for lo, hi in asked for i in range(lo, hi))
    assert len(set(read)) == len(read), "each once"
    chunks = {i // chunk for i in places[slice(*box[axis])]}
    assert {i // chunk for i in read} <= set(range(min(chunks), max(chunks) + 1))
    assert all(lo // chunk in chunks and (hi - 1) // chunk in chunks for lo, hi in asked)
