"""Long frames in pieces: no peer, proved or not, can have a frame of more than `FRAME_BYTES` received.

ZeroMQ takes memory for a frame as it arrives, before it knows who sends it; its limit on their size is what
bounds a stranger's memory. A message with longer frames travels as its frames' sizes and then their bytes.
Pieces cost time, so that they are shorter only where many strangers may come: at servers' ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np

from spartan_ng.wire.pieces import Buffer, Pieces, Whole, whole

FRAME_BYTES = 256 * 1024
"""The longest frame that is sent to a port."""
LONG_FRAME_BYTES = 896 * 1024
"""The longest that a server sends, or that is sent to a socket in a folder of the user's own: still less than
a megabyte is taken for whoever is there."""
OWN_FRAME_BYTES = 32 << 20
"""The longest that a server sends over a socket in a folder of the user's own: who connects there knows that
nobody else serves. Longer ones are memory fresh from the system each time."""
_ENCRYPTED_BYTES = 1024
"""Encryption adds less."""
ACCEPTED_BYTES, LONG_ACCEPTED_BYTES = FRAME_BYTES + _ENCRYPTED_BYTES, LONG_FRAME_BYTES + _ENCRYPTED_BYTES
"""The longest that are received."""

_MARK = 0xC1
"""The first byte of the frame of sizes; no msgpack text, no greeting and no header begins with it."""


def split_frames(frames: Sequence[Buffer], most: Callable[[], int] = lambda: FRAME_BYTES) -> Sequence[Whole]:
    """Frames that may be sent; where some are longer than may be sent anywhere, `most` says what may be."""
    longest = max([len(f) for f in frames])
    if longest <= FRAME_BYTES or longest <= (step := most()):
        if Pieces not in set(map(type, frames)):
            return cast("Sequence[Whole]", frames)
        return [whole(f) for f in frames]  # which came in shorter pieces than this socket takes
    sizes = np.array([len(f) for f in frames], "<u8")
    # All frames are cut, once one is: then the sizes alone say where each begins.
    pieces: list[Whole] = [bytes([_MARK]) + sizes.tobytes()]
    for frame in frames:
        view = memoryview(whole(frame))
        pieces += [view[at : at + step] for at in range(0, len(view), step)]
    return pieces


def join(frames: Sequence[Whole]) -> Sequence[Buffer]:
    """What `split_frames` was given, long frames still in pieces; ValueError where it cannot have been."""
    if not len(frames[0]) or frames[0][0] != _MARK:
        return frames
    sizes = np.frombuffer(frames[0][1:], "<u8")
    # Python's integers: a stranger may say sizes whose sum overflows 64 bits.
    if sum(int(s) for s in sizes) != sum([len(f) for f in frames[1:]]):
        raise ValueError("pieces of frames do not add up")
    rest = iter(frames[1:])
    return [_gathered(rest, int(size)) for size in sizes]


def _gathered(pieces: Iterator[Whole], size: int) -> Buffer:
    parts: list[Whole] = []
    while size > 0:
        piece = next(pieces, b"")
        # A piece lies in one frame; with an empty one this would go on for ever.
        if not len(piece) or len(piece) > size:
            raise ValueError("pieces of frames are not where they belong")
        parts.append(piece)
        size -= len(piece)
    if len(parts) <= 1:
        return parts[0] if parts else b""
    return Pieces(parts)
