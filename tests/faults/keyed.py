"""A local cluster whose processes talk over TCP and prove who they are by keys."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.backends.nanny import Process
from spartan_ng.system.zygote import Argument
from spartan_ng.wire.keys import Keys, keygen


class KeyedCluster(LocalCluster):
    """A master and `n` workers at loopback's ports, with keys in a folder of their own."""

    def __init__(self, n: int, **options: Any) -> None:
        super().__init__(n, **options)
        self._temporary = tempfile.TemporaryDirectory()
        self.keys = Path(self._temporary.name) / "keys"
        keygen(self.keys)

    def connect(self) -> ClusterBackend:
        """A new client, with the client's key, once all workers are there."""
        return ClusterBackend.connect(self.address, self.keys, self.timeout_s, workers=self.n)

    def ports(self, client: ClusterBackend) -> list[tuple[str, bytes]]:
        """Where the master and each worker serve, with the keys that prove them."""
        server = Keys.load(self.keys, "client").server_public
        members = client.status().members.members
        return [(self.address, server), *((m.address, m.key.encode()) for m in members)]

    def stop(self) -> None:
        """Stop all processes; the keys are of no use any more."""
        super().stop()
        self._temporary.cleanup()

    def _place(self) -> tuple[str, Path | None]:
        return "tcp://127.0.0.1:*", self.keys

    def _spawn(self, role: str, options: Sequence[Argument]) -> Process:
        return super()._spawn(role, [*options, "--keys", str(self.keys)])
