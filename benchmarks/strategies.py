"""Bytes that strategies for products move between workers, and the time they take, on arrays cut along rows.

Cuboids (CFO) beside FuseME's broadcast (BFO) and replication (RFO), and CuboidMM, which is cuboids without
fusion; the paper's query X * log(U @ V.T + eps) and the first half of an iteration of GNMF, in the paper's
shapes scaled to one machine. FuseME (SIGMOD '22), sections 6.2 to 6.4. `network` does it between hosts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy
from scipy import sparse

import spartan_ng as np
from spartan_ng import session
from spartan_ng.arrays import Tiling
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import PRODUCTS, config

SHAPES = {
    "tall": (8000, 6400, 32, 0.002),
    "common large": (600, 500, 6000, 0.2),
    "density 0.05": (2000, 1600, 300, 0.05),
    "density 0.5": (2000, 1600, 300, 0.5),
}
"""Rows and columns of X, the common dimension, and X's density."""
STRATEGIES = {"CFO": "cuboid", "BFO": "broadcast", "RFO": "replication", "CuboidMM": "unfused"}
_ROUNDS = 3
_COMPILE_S = 0.3
"""What workers get to compile in the background after the first run."""


def kl_query(x: Any, u: Any, v: Any) -> Any:
    """The paper's query."""
    return x * np.log(u @ v.T + 1e-9)


def gnmf_step(x: Any, u: Any, v: Any) -> Any:
    """The first half of an iteration of GNMF."""
    return v.T * (u.T @ x) / (u.T @ u @ v.T)


QUERIES: dict[str, Callable[[Any, Any, Any], Any]] = {"kl": kl_query, "gnmf": gnmf_step}


def table(cluster: ClusterBackend) -> list[str]:
    """Bytes moved, and seconds, of every strategy; then what holds for all rows."""
    session.use(cluster)
    lines = [f"{'query':<6}{'X, k':<32}" + "".join(f"{s + ', MB':>14}{'s':>8}" for s in STRATEGIES)]
    worst, errors = 0.0, [0.0]
    for title, (n, m, k, density) in SHAPES.items():
        rng = numpy.random.default_rng(0)
        x = sparse.random_array((n, m), density=density, format="csr", rng=rng)
        u, v = rng.random((n, k)), rng.random((m, k))
        for name, query in QUERIES.items():
            found = {s: measured(cluster, STRATEGIES[s], query, (x, u, v)) for s in STRATEGIES}
            cells = "".join(f"{moved / 1e6:>14.2f}{took:>8.3f}" for moved, _, took in found.values())
            lines.append(f"{name:<6}{f'{title} {n} x {m}, {k}':<32}{cells}")
            least = min(moved for moved, _, _ in found.values())
            worst = max(worst, found["CFO"][0] / max(least, 1))
            errors += [abs(p / max(moved, 1) - 1) for moved, p, _ in found.values()]
    lines.append(f"CFO moves at most {worst:.3f} of the least; predictions are within {max(errors):.1%}")
    session.use(EmbeddedBackend())
    return lines


def measured(
    cluster: ClusterBackend, strategy: str, query: Callable[..., Any], values: tuple[Any, ...]
) -> tuple[int, int, float]:
    """Bytes moved, bytes predicted and seconds of a strategy on arrays that lie on the workers; no copies are
    kept for later."""
    arrays = [np.asarray(value) for value in values]
    for value in arrays:
        ref = value._node().data
        assert ref is not None, "an array that was just made has its data"
        cluster.upload(ref, Tiling.grid(min(cluster.workers, value.shape[0]), 1))
    off = frozenset({"fuse"}) if strategy == "unfused" else frozenset[str]()
    products = strategy if strategy in PRODUCTS else "cuboid"
    times = []
    with config.override(small_bytes=0, products=products, disabled_passes=off, duplicate_bytes=0):
        for number in range(_ROUNDS):
            start = time.perf_counter()
            query(*arrays).persist()
            times.append(time.perf_counter() - start)
            if number == 0:
                time.sleep(_COMPILE_S)
    ran = session.current().last_run
    assert ran is not None, "it has just run"
    plan, stats = ran
    return stats.bytes_moved, sum(plan.predicted_bytes), min(times[1:])


def main() -> None:
    """Print a table for each cluster."""
    for workers in (4, 8):
        with LocalCluster(workers, threads=1) as cluster:
            print("\n".join([f"\n{workers} local workers", *table(cluster)]), flush=True)


if __name__ == "__main__":
    main()
