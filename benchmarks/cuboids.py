"""Cuboids: the paper's cuts of X * log(U @ V.T + eps), and how long the search for them takes.

FuseME (SIGMOD '22), Table 3 and Fig. 13. One coordinator, eight workers of eight cores, 1 Gb/s, 12 tasks and
120 GB for tasks on each, blocks of 1000 x 1000.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

from benchmarks.brute_cuboids import exhaustive
from spartan_ng.optimizer.cuboid.search import optimize
from spartan_ng.optimizer.cuboid.space import BodyOperator, Cut, Matrix, Resources, Space

PAPER = Resources(
    workers=8,
    tasks_per_worker=12,
    task_bytes=10_000_000_000,
    network_bytes_s=125_000_000,
    flops_s=546_000_000_000,
)
"""The cluster of the paper's section 6.1."""
_BLOCK = 1000
_K = 1000

CUTS: tuple[tuple[int, int, Fraction, Cut], ...] = (
    (100 * _K, 2 * _K, Fraction(1, 1000), (8, 6, 2)),
    (250 * _K, 2 * _K, Fraction(1, 1000), (8, 6, 2)),
    (500 * _K, 2 * _K, Fraction(1, 1000), (8, 6, 2)),
    (750 * _K, 2 * _K, Fraction(1, 1000), (8, 6, 2)),
    (100 * _K, 2 * _K, Fraction(1, 5), (12, 8, 1)),
    (100 * _K, 5 * _K, Fraction(1, 5), (8, 6, 2)),
    (100 * _K, 10 * _K, Fraction(1, 5), (6, 4, 4)),
    (100 * _K, 50 * _K, Fraction(1, 5), (4, 3, 8)),
    (100 * _K, 2 * _K, Fraction(1, 20), (8, 6, 2)),
    (100 * _K, 2 * _K, Fraction(1, 10), (8, 6, 2)),
    (100 * _K, 2 * _K, Fraction(1, 2), (12, 8, 1)),
    (100 * _K, 2 * _K, Fraction(1), (12, 8, 1)),
    (1000 * _K, 5 * _K, Fraction(1, 1000), (5, 4, 5)),
)
"""Table 3 and Fig. 13(a): X is n x n of a density, U and V are n x k; the optimal (P, Q, R)."""


def paper_space(n: int, k: int, density: Fraction) -> Space:
    """The query's model space: doubles, X at 8 bytes a non-zero, only non-zeros computed."""
    cells = int(n * n * density)
    left, right, out = frozenset({0, 2}), frozenset({1, 2}), frozenset({0, 1})
    return Space(
        "X * log(U @ V.T + eps)",
        (-(-n // _BLOCK), -(-n // _BLOCK), -(-k // _BLOCK)),
        (
            Matrix("X", out, 8 * cells),
            Matrix("U", left, 8 * n * k),
            Matrix("V", right, 8 * n * k),
            Matrix("result", out, 8 * cells, output=True),
        ),
        (
            BodyOperator("matmul", left | right, 2 * k * cells),
            BodyOperator("add", out, cells),
            BodyOperator("log", out, cells),
            BodyOperator("multiply", out, cells),
        ),
    )


def seconds(run: Callable[[], object], rounds: int) -> float:
    """The best of several runs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def search_table() -> list[str]:
    """Each of the paper's cuts, ours, and the time that finding it took."""
    lines = [f"{'n':>9}{'k':>7}{'density':>9}{'voxels':>10}{'paper':>12}{'found':>12}{'ms':>8}"]
    for n, k, density, expected in CUTS:
        space = paper_space(n, k, density)
        found = optimize(space, PAPER).cut
        ms = 1e3 * seconds(partial(optimize, space, PAPER), 20)
        lines.append(
            f"{n:>9}{k:>7}{float(density):>9}{space.voxels:>10}{expected!s:>12}{found!s:>12}{ms:>8.3f}"
        )
    return lines


def growth_table() -> list[str]:
    """Fig. 13(d): the search's time over the size of the space, pruned and exhaustive."""
    lines = [f"{'voxels':>10}{'pruned ms':>11}{'exhaustive ms':>15}"]
    for n, k in ((20, 10), (50, 20), (100, 20), (100, 50), (200, 50)):
        space = paper_space(n * _BLOCK, k * _BLOCK, Fraction(1, 5))
        pruned_ms = 1e3 * seconds(partial(optimize, space, PAPER), 20)
        slow_ms = 1e3 * seconds(partial(exhaustive, space, PAPER), 1)
        lines.append(f"{space.voxels:>10}{pruned_ms:>11.3f}{slow_ms:>15.0f}")
    return lines


def main() -> None:
    """Print the tables."""
    print("\n".join([*search_table(), "", *growth_table()]))


if __name__ == "__main__":
    main()
