"""The workers of a dask cluster that a program has made itself: dask gives up those that are lost often.

A cluster object (`LocalCluster`, those of dask-jobqueue) closes for ever what has no worker 15 s after it
lost one (`distributed.deploy.lost-worker-timeout`), also where that one was lost anew and is just being
started. Workers that are killed every few seconds go so one by one; tasks wait for others, who never come.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from typing import Any

import distributed
from distributed.core import Status
from distributed.deploy.spec import SpecCluster

LOST_WORKER_TIMEOUT = "distributed.deploy.lost-worker-timeout"
NEVER = "1000 weeks"
PRELOADS = "distributed.worker.preload"

_log = logging.getLogger(__name__)


class Workers:
    """Sees that a client's cluster has the workers that its user wants of it, where that is for us to see."""

    def __init__(self, client: distributed.Client) -> None:
        self._client = client
        self._known: dict[Any, Any] = {}
        """By name, the workers that there were: one that was given up ends some time after."""

    def most(self) -> int:
        """How many workers the cluster may adapt to, 0 where nobody says."""
        adaptive = getattr(self._client.cluster, "_adaptive", None)
        if adaptive is None or adaptive.state not in ("starting", "running") or math.isinf(adaptive.maximum):
            return 0
        return int(adaptive.maximum)

    def renew(self) -> None:
        """Have workers started that the cluster has given up.

        Those on this machine. Jobs of a queue end by its rules, and cost something: as many as are wanted
        only where none is left.
        """
        cluster = self._client.cluster
        if not isinstance(cluster, SpecCluster) or cluster.status != Status.running:
            return
        wanted, there = {*cluster.worker_spec}, dict(cluster.workers)
        self._known = {name: w for name, w in self._known.items() if name in wanted} | there
        missing = wanted - there.keys()
        if not missing or (there and not isinstance(cluster, distributed.LocalCluster)):
            return
        if all(self._has_ended(name) for name in missing):  # else there are two of one name
            cluster.scale(len(wanted))

    def _has_ended(self, name: Any) -> bool:
        return name not in self._known or self._known[name].status in (Status.closed, Status.failed)

    def warn(self) -> bool:
        """Say to the program's log that there are none, if so."""
        if self._client.status != "running":
            return False
        with suppress(OSError):
            if not self._client.nthreads():
                _log.warning("dask has no workers: what was sent to it waits for one to join")
                return True
        return False
