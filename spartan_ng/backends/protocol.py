"""What the session asks of a backend, embedded or cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from spartan_ng.arrays import ArrayRef, Box, Tiling, box_of
from spartan_ng.costs import Profile
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stats import StageStats

INLINE_BYTES = 64 * 1024
"""Results of up to this size come to the driver with the news that the job is done."""


class RunStats(Struct):
    """What one run of a plan took, stage by stage."""

    seconds: float = 0.0
    stages: list[StageStats] = field(default_factory=list)
    job: str = ""
    """Which run it was, as the events of its stages name it."""

    @property
    def bytes_moved(self) -> int:
        """Bytes that workers received from other workers."""
        return sum([s.bytes_moved for s in self.stages])


measured = ContextVar("measured", default=False)
"""Whether somebody is to be told what a run takes: it is not left to end by itself then."""

Progress = Callable[[float, int], None]
"""Called with (stages done, stages in all) while a plan runs; what is done may be part of a stage."""


class Audience(Protocol):
    """Who looks at what a backend in this process runs."""

    def begins(self, job: str, plan: Plan) -> None:
        """A job begins, on the thread of the program's that waits for it."""
        ...

    def ended(self, job: str, error: BaseException | None) -> None:
        """It has ended."""
        ...


class Backend(Protocol):
    """Runs plans on workers and keeps arrays there."""

    @property
    def workers(self) -> int:
        """Number of workers that plans are made for."""
        ...

    @property
    def profile(self) -> Profile:
        """What the workers can do, for the cost of plans; equal from one plan to the next."""
        ...

    def reads(self, ref: ArrayRef) -> bool:
        """Whether the workers read an array that has a source themselves; else they are sent its value."""
        ...

    def upload(self, ref: ArrayRef, tiling: Tiling) -> None:
        """Put a driver array's tiles on the workers as `tiling` says; records it in `ref`."""
        ...

    def run(
        self, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None = None
    ) -> tuple[list[ArrayRef], RunStats]:
        """Run `plan`; the inputs are those of `plan.inputs`, the results those of `plan.outputs`.

        Small results come back with their `value` set. Raises `EvaluationError` and its kin;
        KeyboardInterrupt stops the job on all workers before it is raised on.
        """
        ...

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """The elements inside `box` as a NumPy (or CSR) array on the driver."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...

    def retire(self) -> None:
        """Close as soon as no array needs this backend."""
        ...


class Way(Struct, frozen=True):
    """How far a job has come."""

    done: int = 0
    """Stages that all workers have finished,"""
    done_s: float = 0.0
    """so many seconds after it began."""
    now_s: float = 0.0
    """Since it began."""


class Losses(Protocol):
    """Who knows which tiles are gone."""

    def is_lost(self, ref: ArrayRef) -> bool:
        """Whether a worker that is gone took tiles of the array with it, or they are on other ranks."""
        ...

    def sparse_left(self, refs: Sequence[ArrayRef]) -> ArrayRef | None:
        """A CSR array on the driver, of the tiles that are left of equal ones; None where some are gone."""
        ...

    def tiles_of(self, ref: ArrayRef) -> Mapping[Box, ArrayRef | None]:
        """The tiles of an array that is lost, each as an array of its own, None for one that is gone; none at
        all where that is not known."""
        ...


@runtime_checkable
class Losing(Losses, Protocol):
    """A backend that may lose tiles: with its workers, or as engines give them up, or forget them."""

    recover: Callable[[Sequence[ArrayRef]], bool] | None
    """Has lost arrays computed again; whether it could."""
    is_better_anew: Callable[[Plan, Way, int], bool] | None
    """Whether a plan that is under way should be stopped, to be planned anew for so many workers; `run`
    raises `JobSetAside` then."""

    def is_gone(self) -> bool:
        """Whether nothing can be run there any more: who runs programs now computes again what it had."""
        ...

    def is_moved(self, ref: ArrayRef) -> bool:
        """Whether all tiles of an array are there, but on other ranks than they were."""
        ...

    def take_notice(self) -> None:
        """Take notice of who came and went."""
        ...

    def spare(self, ref: ArrayRef) -> None:
        """Note that an array is a copy of another, which nobody has to bring home."""
        ...

    def living(self) -> list[ArrayRef]:
        """The arrays that the workers have."""
        ...

    def partner(self) -> tuple[int, int]:
        """How many ranks on from each worker the one is that keeps copies of its tiles, 0 where there is
        none, and how many ranks there are."""
        ...

    def restore(self, ref: ArrayRef, by: ArrayRef) -> None:
        """Let an array that was lost have the tiles of an equal one."""
        ...

    def tell_recovered(self, text: str) -> None:
        """Let those who look know what has been computed again."""
        ...


def bring(ref: ArrayRef) -> None:
    """Have the value of an array on the driver that another backend holds."""
    holder: Backend = ref.backend  # type: ignore[assignment]
    ref.value = holder.gather(ref, box_of(ref.shape))
