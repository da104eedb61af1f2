"""One run of a plan, and its blocks on threads: until one fails, or all is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from spartan_ng.arrays import Key
from spartan_ng.arrays.copying import watch_of
from spartan_ng.error_state import Heard, entered
from spartan_ng.errors import JobCancelled
from spartan_ng.events import now_ns, record
from spartan_ng.kernels.user import Acting, interrupt
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stats import StageStats
from spartan_ng.worker.network.protocol import Transfer
from spartan_ng.worker.scheduling.backups import Backup, Until
from spartan_ng.worker.scheduling.blas import single_blas
from spartan_ng.worker.scheduling.lending import Lending
from spartan_ng.worker.scheduling.program import Program
from spartan_ng.worker.scheduling.stealing import Offer
from spartan_ng.worker.scheduling.threads import Threads
from spartan_ng.worker.stages.windows import Bands

_MOST_SHARES = 1024
"""One for each job that runs, and for each that was overtaken and has not come back."""


class Run(Struct):
    """One run of a plan, as a program: the keys of its slots, and what it has measured so far."""

    job: str
    plan: Plan
    program: Program
    keys: list[Key]
    cancelled: threading.Event
    stats: StageStats = field(default_factory=StageStats)
    index: int = 0
    """The stage that runs."""
    report: Callable[[float], None] | None = None
    """Told how many stages are done, and which part of the next."""
    chunks: dict[int, Any] = field(default_factory=dict)
    """By the slot of a scan's totals: the states of this part's chunks, for its scan."""
    took: list[StageStats] = field(default_factory=list)
    """What the stages took that are done."""
    backup: Backup | None = None
    """Of a stage that another worker may run, too."""
    files: list[Any] = field(default_factory=list)
    """What is mapped of files that others may write to (`Mapping.watch`)."""
    looked: dict[Any, Any] = field(default_factory=dict)
    """At which sparse matrices it has looked (`kernels.compiled.strips`)."""
    at: dict[int, int] = field(default_factory=dict)
    """Which stage another rank was at, when it was last asked."""

    def usual(self, rank: int) -> tuple[int, float]:
        """The stage that a rank is at, and for how long this one worked on its own share; -1 where that is
        not known."""
        stage = self.at.get(rank, -1)
        busy_s = self.took[stage].busy_s if 0 <= stage < len(self.took) else 0.0
        return (stage, busy_s) if busy_s > 0 else (-1, 0.0)


class BlockThreads:
    """The threads of an executor.

    Parameters
    ----------
    transfer : where what other workers may do is offered
    threads : how many there are, the calling one among them
    """

    def __init__(self, transfer: Transfer, threads: int) -> None:
        self.transfer = transfer
        self.threads = threads
        self.errstate: dict[str, Any] = {"all": "ignore"}
        """NumPy's error state inside kernels (the user's, when embedded)."""
        self.heard: Heard | None = None
        """Who hears of warnings there, if they are not NumPy's to give."""
        self._begin()
        self._shares = ThreadPoolExecutor(_MOST_SHARES, "share")
        """For shares of stages that others may be faster with."""

    def _begin(self) -> None:
        self._helpers = Threads(self.threads - 1)
        self._apart = Threads(self.threads, waits=True)
        """For what others may be faster with: who waits for it can go on without."""

    def close(self) -> None:
        """Let the threads go."""
        self._helpers.close()
        self._apart.close()
        self._shares.shutdown(wait=False)

    def _entered(self) -> AbstractContextManager[object]:
        """The error state inside kernels, on any of the threads."""
        return entered(self.errstate, self.heard)

    def check(self, run: Run) -> None:
        """Stop here if the job has been cancelled; SourceError where a file that it reads has changed."""
        if run.cancelled.is_set():
            raise JobCancelled(f"job {run.job} was cancelled")
        if run.files:
            self.look(run)

    def look(self, run: Run, at_once: bool = False) -> None:
        """SourceError where a file that a job reads has changed; behind a stage it is asked `at_once`."""
        for file in run.files:
            file.look(at_once)

    def looked(self, run: Run, blocks: Iterable[Any]) -> Iterator[Any]:
        """The blocks of a run, with a look before each at the files that they are mapped from."""
        for block in blocks:
            self.check(run)
            yield block

    def watch(self, run: Run, tile: Any) -> None:
        """Have the file looked at that a tile may be mapped from."""
        file = watch_of(tile)
        if file is not None and file not in run.files:
            run.files.append(file)

    def parallel(
        self,
        run: Run,
        items: Sequence[Any],
        make: Callable[[], Callable[[Any], Any]],
        small: bool,
        blas: bool = False,
        lending: Lending | None = None,
        is_done: Callable[[], bool] | None = None,
        bands: Bands | None = None,
        most: int | None = None,
    ) -> list[Any]:
        """`make()(item)` for every item, results in order; `make` is called once for each thread, of which
        there are `most` at most.

        `small` work stays on this thread; items of `blas` call BLAS, on one thread for each of ours. With
        `lending`, other workers may do some of the items. Where `is_done` says that nothing is left, threads
        that have yet to find out are not waited for. With `bands`, items go in the order of what they read.
        """
        results: list[Any] = [None] * len(items)
        numbers = iter(range(len(items)) if bands is None else bands.begin(items))
        ended, done = False, count(1)
        small = small or most == 1
        helpers = 0 if small else min(len(items), most or len(items)) - 1
        lending = None if small else lending
        offer = None if lending is None else lending.offer(run.index, results)
        apart = None if lending is None else lending.apart
        keep: Callable[[int, Any], None] = results.__setitem__
        if offer is not None and apart is not None:
            make, keep = apart, offer.keep

        def stopped() -> bool:
            return ended or run.cancelled.is_set()

        def work() -> None:
            """Take items until there are none; when one thread fails (or is interrupted), all stop."""
            nonlocal ended
            begin_ns = now_ns() if record.wants("blocks") else 0
            try:
                one = make()
                for i in numbers if offer is None else offer.mine(stopped):
                    if ended:
                        return
                    self.check(run)
                    if bands is None:
                        keep(i, one(items[i]))
                    else:
                        with bands.reading(i):
                            keep(i, one(items[i]))
                    if run.report is not None:
                        run.report(run.index + next(done) / len(items))
                if offer is not None:
                    self.check(run)  # it ends the tasks of a job that has been cancelled
            except BaseException:
                ended = True
                raise
            finally:
                if begin_ns:
                    record.note("blocks", "", begin_ns, now_ns(), run.job)

        if offer is None or lending is None:
            self._on_threads(run, work, helpers, blas, is_done)
            return results
        with self._offered(run, offer, lending):
            if apart is None:
                self._on_threads(run, work, helpers, blas)
            else:
                self._on_threads_apart(run, work, offer, stopped)
        return results

    @contextmanager
    def _offered(self, run: Run, offer: Offer, lending: Lending) -> Iterator[None]:
        """Have other workers take items; what they took is counted."""
        self.transfer.offers.publish(run.job, offer)
        try:
            yield
        finally:
            self.transfer.offers.publish(run.job, None)
        run.stats.stolen += offer.ledger.stolen
        run.stats.bytes_moved += offer.ledger.stolen * lending.nbytes

    def _on_threads(
        self,
        run: Run,
        work: Callable[[], None],
        most: int,
        blas: bool,
        is_done: Callable[[], bool] | None = None,
    ) -> None:
        """Work here, and on up to `most` more threads."""
        helpers = min(self.threads - 1, most)
        if helpers <= 0:
            if blas and most > 0:
                with single_blas():
                    work()
            else:
                work()
            return

        def there() -> None:
            """A helper works as this thread does since its run began."""
            with self._entered(), Acting(run.job):
                work()

        with self.single_blas() if blas else nullcontext():
            self._helpers.run(work, helpers, is_done, there)

    def _on_threads_apart(
        self, run: Run, work: Callable[[], None], offer: Offer, stopped: Callable[[], bool]
    ) -> None:
        """Work on threads of its own, until everything is done, here or elsewhere; what still runs of it
        then is interrupted, and not waited for."""
        at_work: set[int] = set()

        def there() -> None:
            thread = threading.get_ident()
            at_work.add(thread)
            try:
                with self._entered(), Acting(run.job):
                    work()
            finally:
                at_work.discard(thread)

        self._apart.run(lambda: offer.wait(stopped), self.threads, lambda: offer.ledger.done, there)
        interrupt(run.job, frozenset(at_work))

    def overtakable(self, run: Run, backup: Backup, work: Callable[[Run], None]) -> None:
        """Work on a thread of its own until that has ended, or another worker was faster; what still runs of
        it then is interrupted, and not waited for."""
        over = Until(run.cancelled.is_set, lambda: backup.is_overtaken)
        own = replace(run, stats=StageStats(), cancelled=over, backup=backup)
        future = self.apart(run.job, lambda: work(own))
        future.add_done_callback(lambda _: backup.end())
        backup.wait()
        if backup.is_overtaken:
            run.stats.stolen += 1
            interrupt(run.job)
            helpers, apart = self._helpers, self._apart
            self._begin()  # the others may be held up for long
            helpers.close()
            apart.close()
        else:
            future.result()
            run.stats = own.stats
        run.stats.busy_s = backup.busy_s

    def apart(self, job: str, work: Callable[[], Any]) -> Future[Any]:
        """Work for a job on a thread that need not be waited for."""

        def there() -> Any:
            with self._entered(), Acting(job):
                return work()

        return self._shares.submit(there)

    def single_blas(self) -> AbstractContextManager[object]:
        """BLAS on one thread for each of ours."""
        return nullcontext() if self.threads == 1 else single_blas()
