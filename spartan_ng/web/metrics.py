"""A board's numbers for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from spartan_ng.web.board import Board, Totals

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_S = 1e9
COUNTERS: dict[str, tuple[str, Callable[[Totals], float]]] = {
    "jobs_submitted": ("Jobs that clients have sent", lambda t: t.submitted),
    "jobs_done": ("Jobs that ended well", lambda t: t.done),
    "jobs_failed": ("Jobs that failed, or were stopped", lambda t: t.failed),
    "jobs_interrupted": ("Jobs that lost a worker; their programs went on", lambda t: t.interrupted),
    "plans_reused": ("Jobs whose plan the workers had already", lambda t: t.plans_known),
    "stages": ("Stages that all their workers have done", lambda t: t.stages),
    "tasks": ("Workers' shares of stages that are done", lambda t: t.tasks),
    "task_seconds": ("What tasks have taken, waits included", lambda t: t.task_ns / _S),
    "wait_seconds": ("What tasks have waited for other workers", lambda t: t.waited_ns / _S),
    "moved_bytes": ("What tasks have received from other workers", lambda t: t.moved_bytes),
    "kernels_compiled": ("Kernels compiled, or found on disk", lambda t: t.compiled),
    "compile_seconds": ("What compiling them has taken", lambda t: t.compiled_ns / _S),
    "workers_lost": ("Workers that went", lambda t: t.losses),
}
"""What only grows: its meaning, and where it stands."""
OF_WORKERS = {
    "used": ("worker_memory_used_bytes", "Memory of tiles and buffers in use"),
    "free": ("worker_memory_kept_bytes", "Memory that is kept for the next tiles"),
    "memory": ("worker_memory_budget_bytes", "The budget for tiles; 0: none"),
    "threads": ("worker_threads", "Threads for blocks"),
}
GROWING_OF_WORKERS = {
    "spilled": ("worker_spilled_bytes", "Tiles that were written to disk"),
    "received": ("worker_received_bytes", "What came from other processes"),
    "sent": ("worker_sent_bytes", "What went to other processes"),
}


class _Collector:
    """Reads the board when it is asked."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[Any]:
        """All families."""
        for name, (text, value) in COUNTERS.items():
            yield CounterMetricFamily(f"spartan_ng_{name}", text, value=value(self._board.totals))
        jobs = self._board.section("jobs")
        running = sum(job["end"] is None for job in jobs)
        yield GaugeMetricFamily("spartan_ng_jobs_running", "Jobs that have not ended", value=running)
        workers = sorted(self._board.section("workers"), key=lambda row: row["rank"])
        yield GaugeMetricFamily("spartan_ng_workers", "Workers that are there", value=len(workers))
        arrays = self._board.section("arrays")
        yield GaugeMetricFamily("spartan_ng_arrays", "Arrays that lie on workers", value=len(arrays))
        for make, table in ((GaugeMetricFamily, OF_WORKERS), (CounterMetricFamily, GROWING_OF_WORKERS)):
            for field, (name, text) in table.items():
                family = make(f"spartan_ng_{name}", text, labels=["worker"])
                for row in workers:
                    family.add_metric([row["label"]], row[field])  # ranks move when a worker goes
                yield family


def metrics(board: Board) -> bytes:
    """The numbers as text, as `/metrics` gives them."""
    registry = CollectorRegistry()
    registry.register(_Collector(board))
    return bytes(generate_latest(registry))
