"""What a cluster can do, and the one cost function: bytes and operations to time.

Costs are integers, so that sums are exact and ties are real ties. Rates enter as whole picoseconds for
each byte or operation.
"""

from __future__ import annotations

from functools import cached_property
from math import isqrt
from typing import Any, overload

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from spartan_ng.costs.tuned import (
    LAUNCH_NS,
    MESSAGE_NS,
    NETWORK_BYTES_S,
    OUTSIDE,
    STEP_NS,
    TASK_NS,
    THREAD_BYTES_S,
    THREAD_FLOPS_S,
)

PS = 1_000_000_000_000
"""Picoseconds in a second."""
Table = NDArray[Any]
"""Costs of options; integers of 64 bits, or Python ints (dtype object) where those could overflow."""


# A dict of its own: planning asks hundreds of times for prices, which are worked out once.
class Profile(Struct, frozen=True, dict=True):
    """Rates of one worker that works alone on its host, and of all together, measured or assumed.

    Parameters
    ----------
    memory_bytes_s : bytes a worker streams through its memory in a second
    network_bytes_s : bytes it receives from other workers in a second
    flops_s : floating-point operations it does in a second
    workers : number of workers
    memory_bytes : memory of one worker
    task_ns : nanoseconds of the master's and a worker's time that one more worker in a stage costs
    weights : how much of the work each worker can take, in relation; empty where all are equal
    limited : whether a worker refuses more than that; else it is only an assumption
    message_ns : nanoseconds until the first byte of a remote read arrives
    all_bytes_s, all_flops_s : what all workers do together at most, where they share the memory and the
        processors of their hosts; 0 where each has its own
    part_ns : nanoseconds of a processor that a worker's part of a job takes besides its work; 0 where no
        worker is apart from the program, or nothing is known of them
    """

    memory_bytes_s: int = 8_000_000_000
    network_bytes_s: int = NETWORK_BYTES_S
    flops_s: int = 8_000_000_000
    workers: int = 1
    memory_bytes: int = 8 << 30
    message_ns: int = MESSAGE_NS
    limited: bool = False
    task_ns: int = TASK_NS
    weights: tuple[int, ...] = ()
    all_bytes_s: int = 0
    all_flops_s: int = 0
    part_ns: int = 0

    def together(self, ranks: int) -> tuple[int, int]:
        """Bytes that so many workers stream in a second, and operations that they do, at one time."""
        bytes_s, flops_s = ranks * self.memory_bytes_s, ranks * self.flops_s
        return min(bytes_s, self.all_bytes_s or bytes_s), min(flops_s, self.all_flops_s or flops_s)

    @property
    def lead(self) -> float:
        """How many times as many operations as one worker alone all do together in a time."""
        return self.together(self.workers)[1] / self.flops_s

    def faster(self, times: int) -> Profile:
        """The same of workers that compute so many times as fast, but receive no faster."""
        return replace(
            self,
            memory_bytes_s=self.memory_bytes_s * times,
            flops_s=self.flops_s * times,
            all_bytes_s=self.all_bytes_s * times,
            all_flops_s=self.all_flops_s * times,
        )

    @overload
    def move_ns(self, nbytes: int) -> int: ...

    @overload
    def move_ns(self, nbytes: Table) -> Table: ...

    def move_ns(self, nbytes: int | Table) -> int | Table:
        """Cost of moving `nbytes` between workers; nothing moved costs nothing.

        Works on tables, too; those of 64-bit integers must have room for picoseconds.
        """
        ps_per_byte = -(-PS // int(self.network_bytes_s))
        if isinstance(nbytes, np.ndarray):
            table: Table = nbytes * ps_per_byte // 1000
            table += (nbytes > 0) * int(self.message_ns)
            return table
        return nbytes * ps_per_byte // 1000 + (int(self.message_ns) if nbytes else 0)

    def outside_ns(self, nbytes: int) -> int:
        """Cost of `nbytes` that one worker reads of what lies outside."""
        return OUTSIDE * nbytes * PS // (1000 * int(self.memory_bytes_s))

    def compute_ns(self, flops: int, touched_bytes: int, ranks: int) -> int:
        """Cost of `flops` operations on `touched_bytes` of memory by `ranks` workers, and of their tasks."""
        bytes_s, flops_s = self.together(ranks)
        arithmetic, streaming = flops * PS // flops_s, touched_bytes * PS // bytes_s
        return max(arithmetic, streaming) // 1000 + ranks * self.task_ns

    def part_s(self) -> float:
        """Seconds that a job takes besides the work of its stages: the parts of workers that share a
        processor take it one after the other."""
        return self.part_ns / 1e9 * self.workers * self.flops_s / self.together(self.workers)[1]

    def worth(self, flops: int, touched_bytes: int) -> int:
        """How many workers a stage is worth: with more, tasks cost more than they save."""
        if not self.task_ns:
            return self.workers
        alone = self.compute_ns(flops, touched_bytes, 1) - self.task_ns
        return max(1, isqrt(alone // self.task_ns))

    # --- all workers together, in picoseconds ---------------------------------------------------------

    @cached_property
    def memory_ps(self) -> int:
        """A byte that the workers stream through their memories."""
        return -(-PS // self.together(self.workers)[0])

    @cached_property
    def outside_ps(self) -> int:
        """A byte that they read of what lies outside."""
        return OUTSIDE * self.memory_ps

    @cached_property
    def flop_ps(self) -> int:
        """One operation."""
        return -(-PS // self.together(self.workers)[1])

    @cached_property
    def network_ps(self) -> int:
        """A byte of an array that every worker needs; on one worker nothing moves."""
        return 0 if self.workers == 1 else PS * (self.workers - 1) // self.network_bytes_s

    @cached_property
    def message_ps(self) -> int:
        """The wait for the first byte from another worker."""
        return 1000 * self.message_ns if self.workers > 1 else 0

    @cached_property
    def launch_ps(self) -> int:
        """A stage, besides its work."""
        return LAUNCH_NS * 1000 + self.message_ps

    @cached_property
    def step_ps(self) -> int:
        """An operator of a stage, or an operand, besides its work."""
        return STEP_NS * 1000


ONE_THREAD = Profile(memory_bytes_s=THREAD_BYTES_S, flops_s=THREAD_FLOPS_S, task_ns=0)
"""One thread of this machine, as it is taken to be until it is measured."""
