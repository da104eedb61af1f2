"""Who answers at an address: a cluster of ours, or an engine."""

from __future__ import annotations

import os
from typing import Any

from spartan_ng.backends.protocol import Backend


def reach(
    address: Any, keys: str | os.PathLike[str] | None, workers: int = 1, insecure: bool = False
) -> Backend:
    """A connection to it; see `spartan_ng.connect`. What talks to others is imported here."""
    from spartan_ng.backends import engines

    if engines.names_engine(address):
        return engines.connect(address, workers)
    from spartan_ng.backends.cluster import ClusterBackend

    return ClusterBackend.connect(address, keys, workers=workers, insecure=insecure)
