"""The few functions that join the array API to the session, which is imported when it is first needed."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng import beginning, recurring
from spartan_ng.api.base.creation import asarray
from spartan_ng.api.core.forcing import is_kept
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.holders import written_at
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.api.ndarray.array import ndarray
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import MASTER_VARIABLE, config
from spartan_ng.errors import ShapeError
from spartan_ng.extras import needed
from spartan_ng.garbage import collected_later
from spartan_ng.graph import build, evaluation
from spartan_ng.graph.evaluation import Evaluator, answer_by
from spartan_ng.graph.node import OPERATORS, Node, topological
from spartan_ng.memory import budget_bytes

if TYPE_CHECKING:
    from spartan_ng.local_clusters import Cluster
    from spartan_ng.pages import Page
    from spartan_ng.plan.explanation import Explanation

_ARRAYS = Handle, np.ndarray
_MOST_HELD = 1000
"""Elements of a list, a dict or an object that are looked at for arrays."""


def _begun() -> Any:
    """The session, which is imported now: half of what there is, and nothing of it is garbage."""
    beginning.wait()
    with collected_later():
        from spartan_ng import session
    return session


def _evaluate(nodes: Sequence[Node], order: Sequence[Node] | None) -> list[ArrayRef]:
    found = beginning.evaluate(nodes, order) if _is_in_process() else None
    return _begun().evaluate(nodes, order) if found is None else found


def _is_in_process() -> bool:
    """Whether the session that has yet to begin will run here, not on a cluster the environment names."""
    return not os.environ.get(MASTER_VARIABLE)


def _work_ahead(seconds: float) -> None:
    if _is_in_process():
        beginning.work_ahead(seconds)


def _is_dear(node: Node, stored: Container[Node]) -> bool:
    found = beginning.is_dear(node, stored) if _is_in_process() else None
    return bool(_begun().is_dear(node, stored)) if found is None else found


def _is_made(node: Node) -> bool:
    return _is_in_process() and beginning.is_made(node)


def _shares_files() -> bool:
    return bool(_begun().shares_files())


def _worker_bytes() -> tuple[int, int, bool]:
    if _is_in_process():
        return budget_bytes(), budget_bytes(), config.memory_bytes is not None
    return _begun().worker_bytes()  # type: ignore[no-any-return]


def _is_sooner_here(steps: int, nbytes: int) -> bool:
    _begun()
    return evaluation.is_sooner_here(steps, nbytes)


def _lead() -> float:
    _begun()
    return evaluation.lead()


recurring.compile_recurring()
answer_by(
    Evaluator(
        *(_evaluate, _is_in_process, _is_dear, _shares_files, _worker_bytes, _is_sooner_here, _lead),
        ahead=_work_ahead,
        is_made=_is_made,
    )
)


def connect(
    address: Any,
    keys: str | os.PathLike[str] | None = None,
    workers: int = 1,
    insecure: bool = False,
) -> None:
    """Run on the cluster whose master serves at `address`, or on the engine that it names, from now on.

    Arrays that exist already move there when they are used. Forks of this process (`os.fork`, Linux's
    `multiprocessing` before Python 3.14) run in their own.

    Parameters
    ----------
    address : the master's, as "tcp://10.0.0.1:7077", or a socket of this user's, "ipc:///folder/name"; a
        `distributed.Client` or cluster, or "dask://host:8786"; "ray://host:10001", or "ray" for the Ray of
        this process (a new one on this machine where there is none); "dask" for a new dask cluster here
    keys : directory made by `spartan-ng keygen`; needed for every "tcp://" address
    workers : wait until this many workers have joined
    insecure : talk over TCP without keys, to whoever answers

    Keys are of our own clusters; dask and Ray have security of their own (`docs/engines.md`).

    Raises
    ------
    MasterUnreachable, AuthenticationFailed, VersionMismatch : all `ConnectionFailed`, within
        `config.timeout_s` seconds
    """
    from spartan_ng import session

    session.connect(address, keys, workers, insecure)


def disconnect() -> None:
    """Leave the cluster, and run in this process again.

    Values that only the workers hold are lost with the connection; `compute` what you still need first.
    """
    from spartan_ng import session

    session.embed()


def cluster(n: int, threads: int | None = None, memory: int | None = None) -> Cluster:
    """Start `n` worker processes on this machine, and run on them from now on.

    Parameters
    ----------
    threads : threads of each worker; by default the cores are shared out
    memory : memory budget of each worker in bytes, None for no limit

    The result has `scale(n)` and `close()`, and is a context manager; it may live across a notebook's cells.
    Once it is closed, programs run in this process again. Arrays live on.
    """
    from spartan_ng.local_clusters import Cluster

    return Cluster(n, threads, memory)


def page() -> Page:
    """Serve a live page of what runs, for a browser: workers, jobs, stages, tasks, arrays, losses, logs.

    It is that of the cluster the program is connected to: a local one opens it when it is asked, a master
    with keys has one if it was started with `--page`. Where nothing is connected, it is this process's.
    The link is printed, and is all that anybody needs to see the page: keep it to yourself.

    Raises
    ------
    ConnectionFailed : the cluster has no page, or it is another engine's, with a page of its own
    MissingLibrary (an ImportError) : the extra `spartan-ng[page]` is not installed
    """
    for library in ("aiohttp", "prometheus_client"):
        needed(library, "page")
    from spartan_ng.pages import page_of_session

    found = page_of_session()
    print(found.url)
    return found


def tile_as(x: Any, tiling: str) -> ndarray:
    """The array `x`, cut over the workers by hand: what reads it finds it so, whatever it costs.

    Nothing needs this: the optimizer tiles every array. It is for experiments, and for those who know better.

    Parameters
    ----------
    tiling : "row" (along the first axis), "column" (along the last), "block" (along the first two), or
        "duplicate" (a full copy on each worker). An axis with fewer elements than workers has a tile for each

    Raises
    ------
    ShapeError (a ValueError) : `x` cannot be cut so over the workers there are
    MemoryBudgetError : the copies of a duplicate exceed `config.duplicate_bytes`; raised when it is evaluated
    """
    from spartan_ng import session
    from spartan_ng.optimizer.tiling.forced import exact_tiling

    x = asarray(x)
    exact_tiling(x.shape, x._node().format, session.current().backend.workers, tiling)
    return wrap_node(build.tile_as(x._node(), tiling))


def from_dask(x: Any) -> ndarray:
    """The `dask.array` `x`, on the dask cluster that the program is connected to.

    dask computes its chunks, cut as our tiles are, where they stay: nothing passes through the program.
    Sparse chunks become dense.

    Raises
    ------
    ConnectionFailed : the program is not connected to a dask cluster
    TypeError : `x` is something else, or its chunks are masked arrays
    MissingLibrary (an ImportError) : dask is not installed
    """
    needed("dask.array", "dask")
    from spartan_ng import session
    from spartan_ng.backends.engines.dask_arrays import taken

    return wrap_node(build.data(taken(session.current().backend, x)))


def to_dask(x: Any) -> Any:
    """The array `x` as a `dask.array` whose chunks are its tiles, where they are; also `x.to_dask()`.

    `x` is evaluated now; what dask makes of it is lazy.

    Raises
    ------
    ConnectionFailed : the program is not connected to a dask cluster
    MissingLibrary (an ImportError) : dask is not installed
    """
    needed("dask.array", "dask")
    from spartan_ng import session
    from spartan_ng.backends.engines.dask_arrays import given

    (ref,) = session.evaluate([asarray(x)._node()])
    return given(session.current().backend, ref)


def from_ray(rows: Any, column: str = "data") -> ndarray:
    """The rows of a column of a Ray data set as an array's, on the Ray that the program is connected to.

    Ray computes its blocks, and its tasks join them to our tiles: nothing passes through the program.

    Parameters
    ----------
    rows : a `ray.data.Dataset`
    column : numbers, or arrays of one shape. The blocks' dtypes are joined as `numpy.result_type` has them

    Raises
    ------
    ConnectionFailed : the program is not connected to a Ray
    TypeError : `rows` is no data set, or the column has other things than numbers, or rows of several shapes
    MissingLibrary (an ImportError) : Ray's data sets are not installed
    """
    needed("ray.data", "ray")
    from spartan_ng import session
    from spartan_ng.backends.engines.ray_arrays import taken

    return wrap_node(build.data(taken(session.current().backend, rows, column)))


def to_ray(x: Any, column: str = "data") -> Any:
    """The rows of the array `x` as a `ray.data.Dataset` of one column; also `x.to_ray()`.

    `x` is evaluated now, cut by rows. A block of the data set is a tile, where it is. Ray's tables have the
    machine's order of bytes, complex numbers as objects of Python's, and no shape of rows that are not there.

    Raises
    ------
    ConnectionFailed : the program is not connected to a Ray
    ShapeError (a ValueError) : `x` has no axes, so no rows
    MissingLibrary (an ImportError) : Ray's data sets are not installed
    """
    needed("ray.data", "ray")
    from spartan_ng import session
    from spartan_ng.backends.engines.ray_arrays import given

    x = asarray(x)
    if not x.ndim:
        raise ShapeError("to_ray: an array without axes has no rows")
    short = len(x) < session.current().backend.workers
    (ref,) = session.evaluate([tile_as(x, "duplicate" if short else "row")._node()])
    return given(session.current().backend, ref, column)


ndarray.to_dask = to_dask  # type: ignore[attr-defined]  # here, since an array knows nothing of sessions
ndarray.to_ray = to_ray  # type: ignore[attr-defined]


def _namespace(version: str | None) -> Any:
    """The array API standard's view of this package, if it has a version of the standard."""
    from spartan_ng.api import standard

    if version is not None and version not in standard.VERSIONS:
        raise ValueError(f"version {version!r} of the array API is none of {standard.VERSIONS}")
    return standard


Late.namespace = _namespace


def explain(*arrays: Any, run: bool = False) -> Explanation:
    """The plan that evaluating `arrays` together would run.

    Prints as text (`.show()`: in colour, with rich) and shows as a picture in a notebook: your variables,
    stages of fused operators and the lines where you wrote them, tilings, predicted bytes and seconds, why
    arrays are stored, and hints; `.to_dict()` gives the same to programs. With `run`, the plan runs, and
    measured bytes and seconds stand beside the predicted ones.

    Raises
    ------
    TypeError : there is nothing to explain, or something that is no array of numbers
    """
    from spartan_ng import session
    from spartan_ng.callers import user_frame
    from spartan_ng.explaining import explain as explained

    if not arrays:
        raise TypeError("explain: which arrays? np.explain(y) is the plan of y")
    for a in arrays:
        if not isinstance(a, Handle | np.ndarray) and np.asarray(a).dtype.kind in "OSU":
            raise TypeError(f"explain: {a!r:.60} is no array")
    ours = list(_arrays_of(user_frame()[1]))
    names = [next((name for name, v in ours if v is a), "") for a in arrays]

    def name_of(ref: ArrayRef) -> str:
        found = next((name for name, v in ours if _is_leaf(v, ref)), "")
        return found or next((name for name, v in ours if _is_copied(v, ref)), "")

    nodes = [_node_of(asarray(a)) for a in arrays]
    lazy = ((name, v) for name, v in ours if isinstance(v, Handle) and v._peek() is None)
    steps = {name: v._node() for name, v in lazy if v._masked() is None}
    places = written_at(topological(nodes))
    theirs = {name: node for name, node in steps.items() if not name.startswith("_")}
    again = _with_same_steps([n for n in nodes if n.data is None], theirs)
    return explained(session.current(), nodes, run, names, name_of, steps, places, again)


def _with_same_steps(nodes: Sequence[Node], others: Mapping[str, Node]) -> dict[str, Node]:
    """Those of the `others`, by their names, that need steps or read files of these nodes', and find none of
    those that an evaluation of `nodes` keeps."""
    order = topological(nodes)
    own = set(order)
    steps = {n for n in order if n.op in OPERATORS or (n.data is not None and n.data.chunks is not None)}
    kept = {n for n in order if is_kept(n, set(nodes))}
    found: dict[str, Node] = {}
    for name, other in others.items():
        below = set(topological([other]))
        if other not in own and not below.isdisjoint(steps) and below.isdisjoint(kept):
            found.setdefault(name, other)
    return found


def _arrays_of(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """A program's arrays by what it calls them: variables, then what is in its lists, dicts and objects.

    Last of all `_`, `__` and `_3`, as IPython calls what it has shown.
    """
    variables = {name: v for name, v in {**frame.f_globals, **frame.f_locals}.items() if name.isidentifier()}
    ordered = sorted(variables.items(), key=lambda item: item[0].startswith("_"))
    yield from ((name, v) for name, v in ordered if isinstance(v, _ARRAYS))
    for name, v in ordered:
        yield from ((called, a) for called, a in islice(_held(name, v), _MOST_HELD) if isinstance(a, _ARRAYS))


def _held(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """What a variable holds, as a program would write it."""
    if isinstance(value, list | tuple):
        return ((f"{name}[{i}]", a) for i, a in enumerate(value))
    if isinstance(value, dict):
        return ((f"{name}[{k!r}]", a) for k, a in value.items() if isinstance(k, str | int))
    if isinstance(value, Handle | np.ndarray | type | ModuleType):
        return ()
    return ((f"{name}.{k}", a) for k, a in getattr(value, "__dict__", {}).items())


def _node_of(a: ndarray) -> Node:
    """What is computed for an array; a leaf where the elements are there, also of a view: nothing is left."""
    value = a._peek() if a._views else None
    if value is None:
        return a._unturned()._node()
    node, whole = build.constant(value), a._cell._node
    if node.data is not None and whole is not None and whole.data is not None:
        node.data.computed = whole.data.computed
    return node


def _is_leaf(array: Any, ref: ArrayRef) -> bool:
    """Whether an array is what a graph's leaf has."""
    if isinstance(array, np.ndarray):
        return ref.value is array or (isinstance(ref.value, np.ndarray) and ref.value.base is array)
    return array._leaf() is ref


def _is_copied(array: Any, ref: ArrayRef) -> bool:
    """Whether a graph's leaf has the elements of a NumPy array, as one that has been copied does."""
    value = ref.value
    if not isinstance(array, np.ndarray) or not isinstance(value, np.ndarray):
        return False
    if array.shape != value.shape or array.dtype != value.dtype or not array.size or value.dtype.hasobject:
        return False
    return array.flat[-1] == value.flat[-1] and np.array_equal(array, value)
