"""dask.distributed as an engine: tiles are its futures, tasks its tasks, named after our stages on its page.

Who may connect, and what is encrypted, is the client's: with TLS, give `np.connect` a client that has it.
Needs the extra `[dask]`.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import dask
import distributed
from distributed.client import _set_global_client

from spartan_ng.backends.engines import dask_undisturbed as undisturbed
from spartan_ng.backends.engines.dask_clusters import LOST_WORKER_TIMEOUT, NEVER, PRELOADS, Workers
from spartan_ng.backends.engines.dask_retries import mend, try_again
from spartan_ng.backends.engines.dask_tasks import HOLE, Call, TaskResult, key_of, nothing
from spartan_ng.backends.engines.protocol import REPORT_S, Forgotten, Report, TaskKilled
from spartan_ng.config import MASTER_VARIABLE, config
from spartan_ng.errors import ConnectionFailed, MasterUnreachable

SCHEME = "dask://"
_T = TypeVar("_T")
_TO_DO = frozenset({"waiting", "no-worker", "queued", "processing"})
"""What dask calls tasks that have not been done; it forgets those of which nobody wants anything more."""

_ANSWER_S = 0.5
"""For which the scheduler is waited for where its last answer serves as well."""
_LOOK_S = 2.0
"""Between two looks at whether those are there who are waited for."""
_PATIENCE = 5
"""Looks until it is said that nobody is there: a worker that is started anew takes some seconds."""
_HARMLESS = ("plan", "upload")
"""Tasks that give what they hold."""
_TRIES = 8
"""Of what was given up though it ends no worker, while one job waits."""
_NEVER = ("cancelled", "error")
"""What dask calls futures whose tasks it does not do any more."""
_GONE = (None, "erred", "forgotten")
"""What its scheduler calls them."""


def connect(address: str, workers: int) -> DaskEngine:
    """The scheduler at `dask://host:port`, once so many workers have joined; for `dask` a new one here.

    Raises MasterUnreachable or ConnectionFailed within `config.timeout_s` seconds.
    """
    timeout_s = config.timeout_s
    try:
        if address in ("dask", SCHEME):
            client = _client()
        else:
            tcp = "tcp://" + address.removeprefix(SCHEME)
            client = _client(tcp, timeout=timeout_s)
    except (OSError, TimeoutError) as error:
        raise MasterUnreachable(f"no dask scheduler answers at {address}: {error}") from error
    try:
        client.wait_for_workers(workers, timeout=timeout_s)
    except TimeoutError as error:
        client.close()
        raise ConnectionFailed(f"the dask cluster at {address}: {error}") from error
    return DaskEngine(client, owned=True)


def over(given: Any) -> DaskEngine:
    """What a client is connected to, or a cluster object such as `LocalCluster`, which gets a client of ours.

    Raises TypeError for others.
    """
    if isinstance(given, distributed.Client):
        return DaskEngine(given)
    if not isinstance(given, distributed.deploy.cluster.Cluster):
        raise TypeError(
            f"connect() takes a distributed.Client or a cluster of dask's, not {type(given).__name__}"
        )
    return DaskEngine(_client(given), owned=True)


_ours: weakref.WeakSet[distributed.Client] = weakref.WeakSet()
"""The clients that were made here."""


def _client(*to: Any, **options: Any) -> distributed.Client:
    """A client of ours, which dask uses where nobody names one, unless the program has one for that.

    What `to_dask` gives lies on its cluster, and no other scheduler can compute it. dask's own setting stays
    as it is (`set_as_default` would leave it behind where one client comes before another one goes).
    """
    client = distributed.Client(*to, set_as_default=False, **options)
    try:
        is_free = distributed.default_client() in _ours
    except ValueError:
        is_free = True
    if is_free:
        _set_global_client(client)
    _ours.add(client)
    return client


@contextmanager
def local(workers: int, threads: int) -> Iterator[dict[str, str]]:
    """A scheduler and workers on this machine; those that end are started anew, however often."""
    preloads = [*dask.config.get(PRELOADS), undisturbed.__name__]
    with (
        dask.config.set({LOST_WORKER_TIMEOUT: NEVER, PRELOADS: preloads}),
        distributed.LocalCluster(n_workers=workers, threads_per_worker=threads) as cluster,
    ):
        yield {MASTER_VARIABLE: SCHEME + cluster.scheduler_address.partition("://")[2]}


async def _ended(client: distributed.Client, futures: Sequence[distributed.Future]) -> None:
    """When all have ended; what has failed says so when it is asked for."""
    async for _ in distributed.as_completed(futures, loop=client.loop):
        pass


async def _there(client: distributed.Client, futures: Sequence[distributed.Future]) -> None:
    """When all are there; raises what the first that has failed does."""
    async for future in distributed.as_completed(futures, loop=client.loop):
        if future.status != "finished":
            await future


class DaskEngine:
    """A client of dask's; closed with the backend only if it was made here.

    Tasks go to the scheduler together, as one graph, when somebody waits for one of them. Those whose handles
    are gone by then are only steps on the way to others.
    """

    name = "dask"
    several = False
    ahead = 8
    """From the scheduler's word that a job has ended to the next one's first task some milliseconds go by."""
    shared = False
    """Each worker has a memory of its own."""

    def __init__(self, client: distributed.Client, owned: bool = False) -> None:
        self._client = client
        self._owned = owned
        self._workers = Workers(client)
        self._waiting: dict[Any, tuple[weakref.ref[TaskResult], tuple[Any, ...]]] = {}
        self._sent: list[Any] = []
        """The tasks of the last graph."""
        self._threads: dict[str, int] = {}
        """Of the workers that there were."""
        self._places: list[TaskResult] = []
        """Next to nothing for each rank, wherever dask makes it. What ranks begin with reads it, and so goes
        there: the tiles that a rank has of all arrays lie together, else a task may run where its smaller one
        is."""
        self._harmless: weakref.WeakSet[TaskResult] = weakref.WeakSet()
        """Those whose tasks end no worker: they do nothing but be there."""
        self._lock = threading.RLock()

    def slots(self) -> int:
        """Threads of all workers; of an adaptive cluster with a bound those that it may come to have.

        Such a cluster grows only where more tasks are ready than it has workers.
        """
        self._check()
        if not self._client.asynchronous and not self._is_in_call():
            # the first answer is waited for as long as it takes
            timeout_s = _ANSWER_S if self._threads else None
            with suppress(OSError, TimeoutError):
                threads = self._client.sync(self._client.scheduler.ncores, callback_timeout=timeout_s)
                if threads != self._threads:
                    self._threads, self._places = threads, []
        return max(sum(self._threads.values()), self._workers.most() * max(self._threads.values(), default=1))

    def _is_in_call(self) -> bool:
        """Whether this is inside a call of the client's that takes a task from the program: its loop waits
        for that to end."""
        return bool(self._client._refcount_lock._is_owned())

    def is_there(self) -> bool:
        """See `Engine`."""
        return self._client.status not in ("closing", "closed")

    def _check(self) -> None:
        """MasterUnreachable where somebody has closed the client."""
        if not self.is_there():
            raise MasterUnreachable(
                "the dask client was closed, or has lost its scheduler, and what only dask had is gone: "
                "np.connect(...) to another one, or np.disconnect() to run in this process"
            )

    def submit(
        self, name: str, function: Callable[..., Any], *args: Any, rank: int | None = None
    ) -> TaskResult:
        """A task; what it is given is in it, so that dask can run it again."""
        self._check()
        if self._is_in_call():  # where the arguments of the program's own task are pickled
            raise RuntimeError(
                "an array is to be computed before it goes into a task of dask's: persist() it"
            )
        handle = TaskResult(key_of(name))
        call = Call(handle.key, function, tuple(HOLE if isinstance(a, TaskResult) else a for a in args))
        needed = [a for a in args if isinstance(a, TaskResult)]
        with self._lock:
            if rank is not None:
                needed.append(self._place(rank))
            task = (call, *(h.key if h.future is None else h.future for h in needed))
            self._waiting[handle.key] = (weakref.ref(handle), task)
            if name in _HARMLESS:
                self._harmless.add(handle)
        return handle

    def _place(self, rank: int) -> TaskResult:
        """Where the tiles of a rank had best lie: one place for each thread, spread over the workers."""
        if not all(map(self.is_known, self._places)):
            self._places = []
        if not self._places:
            self._places = [TaskResult(key_of("place")) for _ in range(max(1, sum(self._threads.values())))]
            self._harmless.update(self._places)
            graph = {place.key: (nothing,) for place in self._places}
            for place, future in zip(
                self._places, self._client.get(graph, [*graph], sync=False), strict=True
            ):
                place.future = future
        return self._places[rank % len(self._places)]

    def submit_several(
        self, name: str, count: int, function: Callable[..., Any], *args: Any
    ) -> Sequence[TaskResult]:
        """A task of dask's gives one object."""
        raise AssertionError(f"{name}: {count} objects of one task of dask's")

    def send(self) -> None:
        """Send what waits."""
        self._flush()

    def begin(self) -> None:
        """Send what waits as a graph of its own: dask orders a graph by what reads its tasks.

        Idle workers steal from who has more than one task, and would then have several tiles.
        """
        futures = self._flush()
        self._until(_ended(self._client, futures), futures)

    def _flush(self) -> list[distributed.Future]:
        """Send what waits, and ask for what somebody holds."""
        self._check()
        self._workers.renew()
        self._try_again()
        with self._lock:
            graph = {key: task for key, (_, task) in self._waiting.items()}
            held = [h for h in (ref() for ref, _ in self._waiting.values()) if h is not None]
            self._waiting = {}
            self._sent = [*graph] or self._sent
            if not held:
                return []
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")
                futures = self._client.get(graph, [h.key for h in held], sync=False)
            for handle, future in zip(held, futures, strict=True):
                handle.future = future
            return list(futures)

    def adopted(self, delayed: Sequence[Any]) -> list[TaskResult]:
        """What dask's own lazy objects give, begun now."""
        self._check()
        handles = []
        for future in self._client.compute(list(delayed)):
            handles.append(TaskResult(future.key))
            handles[-1].future = future
        return handles

    def future(self, handle: TaskResult) -> distributed.Future:
        """The future of a task, which is sent now."""
        self._flush()
        return handle.future

    def get(self, handles: Sequence[TaskResult]) -> list[Any]:
        """The objects."""
        self._flush()
        futures = [h.future for h in handles]
        return list(self._made(futures, lambda: self._client.gather(futures, asynchronous=True)))

    def _made(
        self, futures: Sequence[distributed.Future], coming: Callable[[], Coroutine[Any, Any, _T]]
    ) -> _T:
        """What `coming` gives, which waits for the futures.

        What was given up is no fault of a job's, where it is what ends no worker: it is tried again.
        """
        try:
            for _ in range(_TRIES):
                try:
                    return self._until(coming(), futures)
                except distributed.KilledWorker as error:
                    if not self._is_harmless(error.task):
                        raise TaskKilled(str(error)) from error
                    try_again(self._client, futures)
            return self._until(coming(), futures)
        except distributed.KilledWorker as error:
            raise TaskKilled(str(error)) from error
        except CancelledError as error:
            raise Forgotten(str(error)) from error

    def _is_harmless(self, key: Any) -> bool:
        with self._lock:
            return any(handle.key == key for handle in self._harmless)

    def _try_again(self) -> None:
        """Have what ends no worker made again where dask has given it up.

        For as long as there is a key it counts how many workers were lost while they made it. What was made
        of that, and is there, it would take for failed, too, when a graph comes that reads it.
        """
        with self._lock:
            futures = [handle.future for handle in self._harmless if handle.future is not None]
        if given_up := [future for future in futures if future.status == "error"]:
            try_again(self._client, given_up)

    def _look(self, futures: Sequence[distributed.Future]) -> None:
        """See that there are workers, and that these do what somebody waits for."""
        self._workers.renew()
        self._try_again()  # it may have been given up as the graph was sent
        mend(self._client, futures)

    def _until(self, coming: Coroutine[Any, Any, _T], futures: Sequence[distributed.Future]) -> _T:
        """What it gives, which waits for the futures."""
        if self._client.asynchronous:
            coming.close()
            raise RuntimeError(
                "an array is to be computed before dask's event loop has it: give it compute()"
            )
        asked = asyncio.run_coroutine_threadsafe(coming, self._client.loop.asyncio_loop)
        looks = 0
        try:
            while not wait_for([asked], timeout=_LOOK_S).done:
                self._look(futures)
                looks += 1
                if looks == _PATIENCE:
                    self._workers.warn()
        finally:
            asked.cancel()
        return asked.result()

    def is_known(self, handle: TaskResult) -> bool:
        """Whether it was not cancelled, as all are when the client, or another, has restarted the cluster."""
        return handle.future is None or handle.future.status != "cancelled"

    def lost(self, handles: Sequence[TaskResult]) -> set[TaskResult]:
        """Those that were cancelled or have failed, and those that the scheduler does not know any more: what
        its workers have lost, it has made again."""
        self._check()
        sent = {h: h.future.status for h in handles if h.future is not None}
        lost = {h for h, status in sent.items() if status in _NEVER}
        done = [h for h, status in sent.items() if status not in (*_NEVER, "pending")]
        if done:
            keys = [h.future.key for h in done]
            states = self._client.sync(self._client.scheduler.get_task_status, keys=keys)
            lost |= {h for h in done if states.get(h.future.key) in _GONE}
        return lost

    def wait(self, handles: Sequence[TaskResult]) -> None:
        """Until all are there, or one has failed."""
        self._flush()
        left = [h.future for h in handles if h.future.status != "finished"]
        self._made(left, lambda: _there(self._client, left))

    def follow(self, handles: Sequence[TaskResult], report: Report) -> None:
        """Ask the scheduler what is left of the last graph."""
        self._flush()
        futures = [handle.future for handle in handles]
        while pending := [future for future in futures if future.status == "pending"]:
            if any(future.status not in ("pending", "finished") for future in futures):
                return
            with suppress(TimeoutError), self._client.as_current():
                distributed.wait(pending, timeout=REPORT_S)
            self._look(pending)
            with suppress(OSError):
                states = self._client.sync(self._client.scheduler.get_task_status, keys=self._sent)
                report(1 - sum(state in _TO_DO for state in states.values()) / max(len(states), 1))

    def cancel(self, handles: Sequence[TaskResult]) -> None:
        """Forget them; tasks that nobody else wants are not begun."""
        with self._lock:
            for handle in handles:
                self._waiting.pop(handle.key, None)
        self._client.cancel([h.future for h in handles if h.future is not None], force=True)

    def close(self) -> None:
        """Close a client that was made here."""
        if self._owned:
            self._client.close()
