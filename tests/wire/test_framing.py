"""Frames of any size go through in pieces that no receiver has to refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.wire.framing import ACCEPTED_BYTES, FRAME_BYTES, join, split_frames

sizes = st.integers(0, 40) | st.integers(FRAME_BYTES - 2, FRAME_BYTES + 2) | st.integers(0, 3 * FRAME_BYTES)


def frames_of(lengths):
    return [b"\x91" * 17, *[np.arange(n, dtype=np.uint64).astype(np.uint8).tobytes() for n in lengths]]


@given(st.lists(sizes, max_size=5))
def test_what_was_sent_is_received(lengths):
    frames = frames_of(lengths)
    pieces = split_frames(frames)
    assert max(len(p) for p in pieces) <= FRAME_BYTES < ACCEPTED_BYTES
    assert [bytes(f) for f in join(pieces)] == frames


@given(st.lists(sizes, max_size=5), st.sampled_from([FRAME_BYTES, 2 * FRAME_BYTES, 8 * FRAME_BYTES]))
def test_what_has_come_in_pieces_goes_on_over_sockets_that_take_longer_ones(lengths, step):
    frames = frames_of(lengths)
    sent = split_frames(join(split_frames(frames)), lambda: step)
    assert all(isinstance(f, bytes | memoryview) for f in sent)
    assert max(len(p) for p in sent) <= step
    assert [bytes(f) for f in join(sent)] == frames


def test_short_frames_are_not_touched():
    frames = frames_of([3, 0, FRAME_BYTES])
    assert split_frames(frames) is frames
    assert join(frames) is frames


def mark(*lengths):
    return b"\xc1" + np.array(lengths, "<u8").tobytes()


@pytest.mark.parametrize(
    "pieces",
    [
        [mark(5)],
        [mark(5), b"abc"],
        [mark(2, 2), b"abc", b"d"],
        [mark(1 << 62), b"abc"],
        [mark((1 << 64) - 1, 4), b"abc"],
        [mark(FRAME_BYTES + 1), bytes(FRAME_BYTES), b"", b"x"],
        [mark(), b"x"],
        [b"\xc1abc"],
    ],
)
def test_pieces_that_do_not_fit_are_refused(pieces):
    with pytest.raises((ValueError, StopIteration)):
        join(pieces)
