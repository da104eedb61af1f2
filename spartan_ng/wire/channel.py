"""Messages between two peers, each delivered once and in order, however often the connection breaks.

Every message has a number. The receiver says up to which it has them all; the sender keeps what has not been
confirmed, and sends it again once the two have greeted each other anew. No sockets and no clock: what was
heard goes in, what is to be sent comes out.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence
from typing import Literal

from spartan_ng.wire.pieces import Buffer, whole

Frames = Sequence[Buffer]
Heard = Literal["new", "old", "gap"]
"""A message to be worked on; one that was heard before, or none at all; and news that one has been lost."""

_HEADER = struct.Struct("<?QQ")
"""Whether a message follows, the number of the sender's last message, the number up to which it has ours."""

_CONFIRM_BYTES = 1 << 20
"""So much is received before it is confirmed by a message of its own, which answers, and a look each second,
mostly make superfluous."""
_MESSAGE_BYTES = 256
"""What a message counts for, besides its frames."""


class Channel:
    """One end of the messages between two peers."""

    def __init__(self) -> None:
        self.is_open = False
        """Whether what is sent goes out now: the two have greeted each other on the present connection."""
        self.heard = 0
        """The number of the last message that was heard."""
        self._sent = 0
        self._kept: deque[Frames] = deque()
        self._owed_bytes = 0

    @property
    def unconfirmed(self) -> int:
        """Messages that the other end may not have."""
        return len(self._kept)

    @property
    def owes(self) -> bool:
        """Whether the other end keeps messages that we have."""
        return self._owed_bytes > 0

    @property
    def is_due(self) -> bool:
        """Whether it keeps enough for a confirmation of its own."""
        return self._owed_bytes >= _CONFIRM_BYTES

    def send(self, frames: Frames) -> list[Frames]:
        """Take a message; what is to go out now."""
        self._sent += 1
        self._kept.append(frames)
        return [self._headed(self._sent, frames)] if self.is_open else []

    def note(self) -> Frames:
        """A message of its own that says what we have and have sent."""
        self._owed_bytes = 0
        return [_HEADER.pack(False, self._sent, self.heard)]

    def open(self, confirmed: int) -> list[Frames]:
        """The two have greeted each other, and the other end has so many messages; what is to go out now."""
        self.is_open = True
        self._confirm(confirmed)
        first = self._sent - len(self._kept) + 1
        return [self._headed(n, frames) for n, frames in enumerate(self._kept, first)]

    def close(self) -> None:
        """The connection is broken, or of no use."""
        self.is_open = False

    def take(self, frames: Frames) -> Heard:
        """Hear frames with a header; if they are "new", the message is `frames[1:]`."""
        follows, number, confirmed = _HEADER.unpack(whole(frames[0]))
        self._confirm(confirmed)
        if not follows:
            # A note has the number of the last message that was sent: more than were heard means that one is
            # lost.
            return "gap" if number > self.heard else "old"
        if number != self.heard + 1:
            # An old one comes again where the news that we have it was lost with the connection.
            return "gap" if number > self.heard else "old"
        self.heard = number
        self._owed_bytes += _MESSAGE_BYTES + sum([len(f) for f in frames])
        return "new"

    def _headed(self, number: int, frames: Frames) -> Frames:
        # Each message says up to where we have the other's.
        self._owed_bytes = 0
        return [_HEADER.pack(True, number, self.heard), *frames]

    def _confirm(self, number: int) -> None:
        kept = self._kept
        for _ in range(min(len(kept), number - self._sent + len(kept))):
            kept.popleft()


def has_header(frames: Frames) -> bool:
    """Whether frames belong to a channel; greetings do not."""
    return len(frames) > 0 and len(frames[0]) == _HEADER.size and whole(frames[0])[0] in (0, 1)
