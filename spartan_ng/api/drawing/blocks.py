"""Keys for arrays drawn in parallel, in no stream: one entropy a generator, one number an array."""

from __future__ import annotations

import secrets


class BlockKeys:
    """The keys of one generator; see `ops.random`."""

    def __init__(self) -> None:
        self.entropy = secrets.randbits(128)
        self.drawn = 0

    def key(self) -> tuple[str, int]:
        """A key that no other array has."""
        self.drawn += 1
        return ("blocks", (self.drawn << 128) + self.entropy)
