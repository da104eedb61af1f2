"""The memory that work has which cannot be cut: a line, a matrix."""

from __future__ import annotations

from collections.abc import Iterable

from spartan_ng.api.core.handle import Handle
from spartan_ng.graph.evaluation import in_process, worker_bytes
from spartan_ng.memory import budget_bytes
from spartan_ng.scratch import is_programs


def budget() -> int:
    """What arrays may take where work is done: in this process, or on a worker."""
    return budget_bytes() if in_process() else worker_bytes()


def is_here(a: Handle) -> bool:
    """Whether the program has an array in memory, or has had it there until it was copied to disk."""
    ref = a._node().data
    return ref is not None and ref.value is not None and (not ref.is_mapped or is_programs(ref.value))


def work_fits(arrays: Iterable[Handle], nbytes: int) -> bool:
    """Whether there is room for work on arrays that takes so many bytes; what the program has in its own
    memory is worked on there as it is, whatever that takes."""
    return nbytes <= budget() or (in_process() and all(map(is_here, arrays)))
