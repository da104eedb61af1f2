"""Whole algorithms under each policy for fusion: plans chosen by cost against the two heuristics.

`python -m benchmarks.algorithms [NAME...]` runs some, `python -m benchmarks algorithms` all. Policies take
turns in every order; kernels are compiled before anything is timed, and all policies must reach the same
objective. A ratio is the median of the rounds' own.

"On Optimizing Operator Fusion Plans", section 5.4 (end-to-end performance; Table 2's algorithms).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice, permutations
from statistics import median

import numpy
from scipy import sparse

import spartan_ng as sp
from spartan_ng.apps.als_cg import als_cg
from spartan_ng.apps.autoencoder import autoencoder
from spartan_ng.apps.glm import glm
from spartan_ng.apps.kmeans import kmeans
from spartan_ng.apps.l2svm import l2svm
from spartan_ng.apps.mlogreg import mlogreg
from spartan_ng.config import config
from spartan_ng.kernels.compiled.compile import wait_for_compiles

POLICIES: tuple[str, ...] = ("cost", "all", "no_redundancy")
ROUNDS, WARM_UPS = 24, 2
TIE = 1.05
"""Policies that often choose the same plan: what is closer than this is noise."""
ROWS, COLUMNS, CLASSES, CLUSTERS = 500_000, 50, 5, 32
SIDE, DENSITY, RANK = 10_000, 1e-2, 20
PATTERNS = 20_000

Objective = Callable[[], float]


def points(rows: int = ROWS) -> tuple[sp.ndarray, sp.ndarray]:
    """Points and the classes that a noisy linear rule gives them."""
    random = numpy.random.default_rng(0)
    X = random.standard_normal((rows, COLUMNS))
    scores = X @ random.standard_normal((COLUMNS, CLASSES)) + random.standard_normal((rows, CLASSES))
    return sp.array(X).persist(), sp.array(scores.argmax(axis=1)).persist()


def two_classes(fit: Callable[..., float]) -> Objective:
    """A fit of points to whether they are of the first class."""
    X, labels = points()
    return partial(fit, X, sp.asarray((labels == 0) * 1.0).persist())


def run_mlogreg() -> Objective:
    """Five classes, two Newton steps of five products."""
    X, labels = points()
    return lambda: float(mlogreg(X, labels, max_iter=2, max_inner=5, tol=0.0).objective)


def run_kmeans() -> Objective:
    """Lloyd's algorithm, three iterations."""
    X, _ = points()
    return lambda: float(kmeans(X, CLUSTERS, init=X[:CLUSTERS], max_iter=3, tol=0.0).inertia)


def run_als_cg() -> Objective:
    """Sparse ratings, two iterations of three conjugate gradients."""
    random = numpy.random.default_rng(0)
    ratings = sp.asarray(sparse.random_array((SIDE, SIDE), density=DENSITY, rng=random, format="csr"))
    return lambda: float(als_cg(ratings, RANK, max_iter=2, max_inner=3, tol=0.0, seed=0).objective)


def run_autoencoder() -> Objective:
    """One epoch in batches of 512, 500 and 2 neurons."""
    X, _ = points(PATTERNS)
    return lambda: float(autoencoder(X, epochs=1, tol=0.0, seed=0).history[-1])


ALGORITHMS: dict[str, Callable[[], Objective]] = {
    "L2SVM": lambda: two_classes(lambda X, y: float(l2svm(X, y, max_iter=5, tol=0.0).objective)),
    "MLogreg": run_mlogreg,
    "GLM-probit": lambda: two_classes(
        lambda X, y: float(glm(X, y, max_iter=3, max_inner=5, tol=0.0).objective)
    ),
    "k-means": run_kmeans,
    "ALS-CG": run_als_cg,
    "autoEncoder": run_autoencoder,
}
"""Each makes its data, and gives a run that returns the objective it reached."""


def timed(run: Objective, fusion: str) -> tuple[float, float]:
    """Seconds of a run under a policy, and its objective."""
    with config.override(fusion=fusion):
        start = time.perf_counter()
        objective = run()
        return time.perf_counter() - start, objective


def measure(name: str) -> dict[str, list[float]]:
    """Seconds of an algorithm in each round, by policy."""
    run = ALGORITHMS[name]()
    reached = {}
    for fusion in POLICIES:
        for _ in range(WARM_UPS):
            reached[fusion] = timed(run, fusion)[1]
            wait_for_compiles()
    numpy.testing.assert_allclose(list(reached.values()), reached["cost"], rtol=1e-6, err_msg=name)
    times: dict[str, list[float]] = {fusion: [] for fusion in POLICIES}
    for order in islice(cycle(permutations(POLICIES)), ROUNDS):
        for fusion in order:
            times[fusion].append(timed(run, fusion)[0])
    return times


def line(name: str) -> str:
    """One algorithm, measured, as a row of the table."""
    taken = measure(name)
    cells = [f"{median(taken[fusion]) * 1e3:.0f} ms" for fusion in POLICIES]
    ratios = [
        median(ours / theirs for ours, theirs in zip(taken["cost"], taken[heuristic], strict=True))
        for heuristic in POLICIES[1:]
    ]
    worst = max(ratios)
    verdict = "ahead" if worst < 1 / TIE else "tie" if worst <= TIE else "BEHIND"
    return f"| {name} | {' | '.join([*cells, *(f'{r:.2f}' for r in ratios)])} | {verdict} |"


def main(names: tuple[str, ...] = ()) -> None:
    """Print the table."""
    unknown = set(names) - ALGORITHMS.keys()
    if unknown:
        raise SystemExit(
            f"no algorithm named {', '.join(sorted(unknown))}; there are {', '.join(ALGORITHMS)}"
        )
    print(f"| algorithm | {' | '.join(POLICIES)} | {' | '.join(f'cost / {h}' for h in POLICIES[1:])} | |")
    print("|---|" + "---|" * 2 * len(POLICIES))
    for name in names or tuple(ALGORITHMS):
        print(line(name), flush=True)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
