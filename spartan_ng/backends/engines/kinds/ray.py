"""Ray as an engine: tiles are objects of its store, tasks its tasks, named after our stages.

Needs the extra `[ray]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from spartan_ng.backends.engines.protocol import REPORT_S, Report, TaskKilled
from spartan_ng.config import MASTER_VARIABLE
from spartan_ng.errors import ConnectionFailed, MasterUnreachable
from spartan_ng.extras import needed

SCHEME = "ray://"
_GONE = (
    'Ray was shut down, and what only it had is gone: np.connect("ray") or np.connect("ray://...") '
    "again, or np.disconnect() to run in this process"
)
_QUIETLY: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}


def connect(address: str, workers: int) -> RayEngine:
    """The cluster at `ray://host:port`; for `ray` what this process or RAY_ADDRESS names, or `ray start` has
    begun on this machine, else a new one.

    Raises MasterUnreachable, MissingLibrary, or ConnectionFailed where it has fewer processors than
    `workers`.
    """
    owned = not ray.is_initialized()
    if owned:
        if address not in ("ray", SCHEME):
            needed("grpc", "ray")
        try:
            ray.init(None if address in ("ray", SCHEME) else address, **_QUIETLY)
        except (OSError, RuntimeError, RayError) as error:
            raise MasterUnreachable(f"no Ray answers at {address}: {error}") from error
    engine = RayEngine(owned)
    if engine.slots() < workers:
        engine.close()
        raise ConnectionFailed(f"Ray has {engine.slots()} processors, {workers} are needed")
    return engine


@contextmanager
def local(workers: int, threads: int) -> Iterator[dict[str, str]]:
    """A new Ray with so many processors on this machine, whatever other one runs here."""
    ray.init("local", num_cpus=workers * threads, **_QUIETLY)
    try:
        yield {MASTER_VARIABLE: "ray", "RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    finally:
        ray.shutdown()


class RayEngine:
    """The Ray of this process; shut down with the backend only if it was started or joined here."""

    name = "ray"
    several = True
    ahead = 1
    """Tasks begin as they are submitted: more jobs gained nothing, and filled the store."""

    def __init__(self, owned: bool = False) -> None:
        self._owned = owned
        self._call = ray.remote(_call)
        self._connection = _connection()

    @property
    def shared(self) -> bool:
        """Whether there is one node: its processes map one store."""
        _check()
        return sum(bool(node["Alive"]) for node in ray.nodes()) == 1

    def is_there(self) -> bool:
        """See `Engine`: a Ray that was begun again, or joined again, knows nothing of this one's objects."""
        return ray.is_initialized() and _connection() == self._connection

    def slots(self) -> int:
        """Processors of all nodes."""
        _check()
        return int(ray.cluster_resources().get("CPU", 1))

    def submit(
        self, name: str, function: Callable[..., Any], *args: Any, rank: int | None = None
    ) -> ray.ObjectRef:
        """A task that Ray runs again where its process ends."""
        with self._checked():
            return self._call.options(name=name).remote(function, *args)

    def submit_several(
        self, name: str, count: int, function: Callable[..., Any], *args: Any
    ) -> Sequence[ray.ObjectRef]:
        """A task that gives several objects; Ray keeps, moves and frees each for itself."""
        with self._checked():
            refs: list[ray.ObjectRef] = self._call.options(name=name, num_returns=count).remote(
                function, *args
            )
            return refs

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """MasterUnreachable where Ray was shut down, or begun again, which finds what it is given odd."""
        _check()
        try:
            yield
        except ValueError as error:
            if not self.is_there():
                raise MasterUnreachable(_GONE) from error
            raise

    def send(self) -> None:
        """Nothing waits."""

    def begin(self) -> None:
        """Nothing waits."""

    def get(self, handles: Sequence[ray.ObjectRef]) -> list[Any]:
        """The objects."""
        try:
            with self._checked():
                return list(ray.get(list(handles)))
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, RayError) or not isinstance(cause, Exception):
                raise TaskKilled(str(error)) from error
            raise cause from error
        except RayError as error:
            raise TaskKilled(str(error)) from error

    def is_known(self, handle: ray.ObjectRef) -> bool:
        """Nobody has Ray forget what somebody holds."""
        return True

    def lost(self, handles: Sequence[ray.ObjectRef]) -> set[ray.ObjectRef]:
        """Those that Ray cannot make again, as it says when somebody asks for them."""
        _check()
        asked = {handle: self.submit("done", _is_there, handle) for handle in handles}
        return {handle for handle, there in asked.items() if not _comes(there)}

    def wait(self, handles: Sequence[ray.ObjectRef]) -> None:
        """Until all are there: asked where they lie, so that they stay there."""
        self.get([self.submit("done", _is_there, handle) for handle in handles])

    def follow(self, handles: Sequence[ray.ObjectRef], report: Report) -> None:
        """Report how many are there: Ray tells of tasks only to who holds what they make."""
        left = every = list(handles)
        while left:
            _, left = ray.wait(every, num_returns=len(every), timeout=REPORT_S, fetch_local=False)
            report(1 - len(left) / len(every))

    def cancel(self, handles: Sequence[ray.ObjectRef]) -> None:
        """End the tasks that make them."""
        for handle in handles:
            ray.cancel(handle, force=True)

    def close(self) -> None:
        """Leave a Ray that was started or joined here."""
        if self._owned:
            ray.shutdown()


def _connection() -> tuple[str, str]:
    """Of which Ray the program is which job."""
    here = ray.get_runtime_context()
    return here.get_node_id(), here.get_job_id()


def _check() -> None:
    """MasterUnreachable where somebody has shut Ray down: it would begin a new one, which knows no object."""
    if not ray.is_initialized():
        raise MasterUnreachable(_GONE)


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def _comes(handle: ray.ObjectRef) -> bool:
    try:
        ray.get(handle)
    except RayError:
        return False
    return True


def _is_there(_: Any) -> bool:
    return True
