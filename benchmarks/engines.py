"""The same programs on our own cluster, on dask and on Ray, and in `dask.array`: seconds.

    python -m benchmarks.engines            (four worker processes of one thread each)
    python -m benchmarks.engines own dask

Each program runs once before it is timed; then the median of three runs.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy

WORKERS = 4
SIDES = ("own", "dask", "ray", "dask.array")
rng = numpy.random.default_rng(0)
X = rng.random((1_000_000, 20))
Y = (X[:, 0] > 0.5) * 1.0
V, W, H = rng.random((4000, 2000)), rng.random((4000, 20)), rng.random((20, 2000))
A, B = rng.random((3000, 3000)), rng.random((3000, 3000))
LINE = rng.random(10_000_000)
Put = Callable[[Any], Any]


def kmeans(xp: Any, put: Put, keep: Put) -> Any:
    """Ten iterations, one-hot."""
    x, c = put(X), X[:20]
    for _ in range(10):
        labels = xp.argmin((x * x).sum(axis=1)[:, None] - 2 * x @ c.T + (c * c).sum(axis=1), axis=1)
        hot = (labels[:, None] == numpy.arange(20)) * 1.0
        c = numpy.asarray((hot.T @ x) / xp.maximum(hot.sum(axis=0), 1)[:, None])
    return c


def gnmf(xp: Any, put: Put, keep: Put) -> Any:
    """Ten iterations of rank 20."""
    v, w, h = put(V), put(W), put(H)
    for _ in range(10):
        h = keep(h * (w.T @ v) / (w.T @ w @ h))
        w = keep(w * (v @ h.T) / (w @ (h @ h.T)))
    return w


def regression(xp: Any, put: Put, keep: Put) -> Any:
    """Ten steps of a logistic regression."""
    x, y, w = put(X), put(Y), numpy.zeros(20)
    for _ in range(10):
        p = 1 / (1 + xp.exp(-(x @ w)))
        w = w - numpy.asarray(x.T @ (p - y)) / len(Y)
    return w


def product(xp: Any, put: Put, keep: Put) -> Any:
    """3000 x 3000 squared."""
    return keep(put(A) @ put(B) + 1)


def sort(xp: Any, put: Put, keep: Put) -> Any:
    """Ten million doubles."""
    return keep(xp.sort(put(LINE)) + 1)


def cumsum(xp: Any, put: Put, keep: Put) -> Any:
    """Ten million doubles."""
    return keep(xp.cumsum(put(LINE), axis=0) + 1)


PROGRAMS = (kmeans, gnmf, regression, product, sort, cumsum)


@contextmanager
def running(side: str) -> Iterator[tuple[Any, Put, Put]]:
    """The library, and how arrays come to it and are evaluated there."""
    known: dict[int, Any] = {}

    def once(make: Put) -> Put:
        def put(value: Any) -> Any:
            if id(value) not in known:
                known[id(value)] = make(value)
            return known[id(value)]

        return put

    if side == "dask.array":
        import dask.array
        import distributed

        with _dask():

            def persist(value: Any) -> Any:
                made = value.persist()
                distributed.wait(made)
                return made

            chunks = {1: 2_500_000, 2: None}

            def cut(value: Any) -> Any:
                rows = chunks[value.ndim] or max(1, -(-value.shape[0] // WORKERS))
                return persist(dask.array.from_array(value, chunks=(rows, *value.shape[1:])))

            yield dask.array, once(cut), persist
        return
    import spartan_ng as np
    from spartan_ng import session
    from spartan_ng.backends.embedded import EmbeddedBackend

    np.config.small_bytes = 1 << 20
    put, keep = once(lambda value: np.array(value).persist()), lambda value: value.persist()
    if side == "own":
        with np.cluster(WORKERS, threads=1):
            yield np, put, keep
            known.clear()
        return
    if side == "dask":
        with _dask() as client:
            np.connect(client)
            yield np, put, keep
            known.clear()
            session.use(EmbeddedBackend())
        return
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    np.connect("ray")
    yield np, put, keep
    known.clear()
    session.use(EmbeddedBackend())
    ray.shutdown()


@contextmanager
def _dask() -> Iterator[Any]:
    import distributed

    with (
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def main(sides: list[str]) -> None:
    """Print a table of seconds."""
    logging.disable(logging.CRITICAL)
    taken: dict[str, list[float]] = {}
    for side in sides:
        with running(side) as (xp, put, keep):
            for program in PROGRAMS:
                if side == "dask.array" and program is sort:  # it has none for several chunks
                    taken.setdefault(program.__name__, []).append(float("nan"))
                    continue
                program(xp, put, keep)
                runs = []
                for _run in range(3):
                    begun = time.perf_counter()
                    program(xp, put, keep)
                    runs.append(time.perf_counter() - begun)
                taken.setdefault(program.__name__, []).append(statistics.median(runs))
    print("| program | " + " | ".join(sides) + " |")
    print("|---|" + "---|" * len(sides))
    for name, seconds in taken.items():
        print(f"| {name} | " + " | ".join("-" if s != s else f"{s:.2f} s" for s in seconds) + " |")


if __name__ == "__main__":
    main(sys.argv[1:] or list(SIDES))
