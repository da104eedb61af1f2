"""Whole programs of many tiny operations against NumPy: what small work costs where nothing is worth a plan.

`python -m benchmarks.small_programs newton life` measures a part. Each program is one function of the
namespace; a ratio is the median over rounds of our time over NumPy's in the same round.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

import numpy

import spartan_ng

OF_OPERATIONS, OF_ITEMS = 5.0, 10.0
"""What is promised for our time over NumPy's: for programs of operations on small arrays, and for loops with
item reads and writes."""
SAMPLE_S = 0.05


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the table.

    Parameters
    ----------
    name : as it is printed
    run : with the namespace; gives what is compared
    limit : the ratio that is promised
    """

    name: str
    run: Callable[[Any], Any]
    limit: float = OF_OPERATIONS


def power_iteration(np: Any) -> Any:
    """The greatest eigenvalue of a 10 x 10 matrix."""
    a = np.array(numpy.random.default_rng(0).random((10, 10)))
    v = np.ones(10)
    for _ in range(100):
        w = a @ v
        v = w / np.sqrt((w * w).sum())
    return v @ (a @ v)


def newton(np: Any) -> Any:
    """Where a circle meets a hyperbola: Newton's method in two dimensions from 20 starts."""
    found = []
    for start in range(20):
        x = np.array([2.0 + start / 10, 0.3])
        for _ in range(8):
            f = np.array([x[0] ** 2 + x[1] ** 2 - 4, x[0] * x[1] - 1])
            jacobian = np.array([[2 * x[0], 2 * x[1]], [x[1], x[0]]])
            x = x - np.linalg.solve(jacobian, f)
        found.append(x)
    return np.stack(found)


def n_body(np: Any) -> Any:
    """Five bodies for 50 steps of the leapfrog method."""
    random = numpy.random.default_rng(0)
    x, v = np.array(random.random((5, 3))), np.array(random.random((5, 3)))
    mass = np.array(random.random(5))
    for _ in range(50):
        apart = x[None, :, :] - x[:, None, :]
        near = (apart**2).sum(axis=-1) + 0.01
        v += 0.001 * (apart * (mass[None, :] / near**1.5)[:, :, None]).sum(axis=1)
        x += 0.001 * v
    return x


def life(np: Any) -> Any:
    """40 generations of the game of life on a 64 x 64 board."""
    board = np.array(numpy.random.default_rng(0).integers(0, 2, (64, 64)))
    for _ in range(40):
        near = np.zeros((64, 64), int)
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                if i or j:
                    near += np.roll(board, (i, j), axis=(0, 1))
        board = ((near == 3) | ((board == 1) & (near == 2))).astype(int)
    return board


def heat(np: Any) -> Any:
    """100 steps of heat on a 20 x 20 plate, by slices, until little changes."""
    u = np.zeros((20, 20))
    u[0] = 1.0
    for _ in range(100):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        if np.abs(new - u).max() < 1e-9:
            break
        u = new
    return u


def runge_kutta(np: Any) -> Any:
    """100 steps of the Lorenz system, written with three variables in an array."""

    def slope(y: Any) -> Any:
        return np.array([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    y, h = np.array([1.0, 1.0, 1.0]), 0.01
    for _ in range(100):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def gauss(np: Any) -> Any:
    """A system of 20 equations by elimination of rows, with pivots."""
    random = numpy.random.default_rng(0)
    a, b = np.array(random.random((20, 20))), np.array(random.random(20))
    n = len(b)
    for k in range(n):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        a[[k, p]] = a[[p, k]]
        b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for k in range(n - 1, -1, -1):
        x[k] = (b[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
    return x


def descent(np: Any) -> Any:
    """Logistic regression of 40 rows and 5 columns by 100 steps of gradient descent."""
    random = numpy.random.default_rng(0)
    x, y = np.array(random.random((40, 5))), np.array(random.integers(0, 2, 40))
    w = np.zeros(5)
    for _ in range(100):
        p = 1 / (1 + np.exp(-(x @ w)))
        w = w - 0.1 * (x.T @ (p - y)) / len(y)
    return w


def clusters(np: Any) -> Any:
    """Ten rounds of k-means of 60 points into 4 clusters, by masks."""
    points = np.array(numpy.random.default_rng(0).random((60, 2)))
    centers = points[:4].copy()
    for _ in range(10):
        nearest = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        for k in range(4):
            mine = points[nearest == k]
            if len(mine):
                centers[k] = mine.mean(axis=0)
    return centers


def words(np: Any) -> Any:
    """How often each word of short texts occurs."""
    texts = ["the cat sat on the mat", "a dog and the cat", "on and on went the dog"] * 5
    total = 0
    for text in texts:
        found, counts = np.unique(np.array(text.split()), return_counts=True)
        total = total + counts[found == "the"].sum()
    return total


def mandelbrot(np: Any) -> Any:
    """The Mandelbrot set on a grid of 50 x 50 points."""
    c = np.linspace(-2, 1, 50)[None, :] + 1j * np.linspace(-1.5, 1.5, 50)[:, None]
    z = np.zeros_like(c)
    steps = np.zeros(c.shape, int)
    for _ in range(30):
        inside = np.abs(z) <= 2
        z = np.where(inside, z * z + c, z)
        steps += inside
    return steps


def floyd_warshall(np: Any) -> Any:
    """The shortest paths between 12 places, item by item."""
    d = np.array(numpy.random.default_rng(0).random((12, 12)))
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def matrix_chain(np: Any) -> Any:
    """The cheapest order of a product of 16 matrices, by a table of items."""
    sizes = np.array(numpy.random.default_rng(0).integers(5, 50, 17))
    n = len(sizes) - 1
    cost = np.zeros((n, n))
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j] = np.inf
            for k in range(i, j):
                c = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if c < cost[i, j]:
                    cost[i, j] = c
    return cost[0, n - 1]


def edit_distance(np: Any) -> Any:
    """The distance of two words, by a table written as nested lists are: `d[i][j]`."""
    one, two = "intention of many", "execution of few"
    d = np.zeros((len(one) + 1, len(two) + 1), int)
    for i in range(len(one) + 1):
        d[i][0] = i
    for j in range(len(two) + 1):
        d[0][j] = j
    for i, a in enumerate(one, 1):
        for j, b in enumerate(two, 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a != b))
    return d[len(one)][len(two)]


def sieve(np: Any) -> Any:
    """The primes below 2,000, by slices of flags."""
    prime = np.ones(2000, bool)
    prime[:2] = False
    for i in range(2, 45):
        if prime[i]:
            prime[i * i :: i] = False
    return np.nonzero(prime)[0]


PROGRAMS = (
    Program("power iteration", power_iteration),
    Program("newton", newton),
    Program("n-body", n_body),
    Program("life", life),
    Program("heat", heat),
    Program("runge-kutta", runge_kutta),
    Program("gauss", gauss),
    Program("descent", descent),
    Program("clusters", clusters),
    Program("words", words),
    Program("mandelbrot", mandelbrot),
    Program("sieve", sieve),
    Program("floyd-warshall", floyd_warshall, OF_ITEMS),
    Program("matrix chain", matrix_chain, OF_ITEMS),
    Program("edit distance", edit_distance, OF_ITEMS),
)
"""The table: programs of operations, then loops over items."""


def measure(program: Program, rounds: int = 7) -> tuple[float, float]:
    """NumPy's seconds and our time over them; AssertionError where the results differ."""
    numpy.testing.assert_allclose(
        numpy.asarray(program.run(spartan_ng)), program.run(numpy), rtol=1e-9, err_msg=program.name
    )
    repeats = max(1, int(SAMPLE_S / _sample(program, numpy, 1)))
    base, ratios = [], []
    for _ in range(rounds):
        base.append(_sample(program, numpy, repeats))
        ratios.append(_sample(program, spartan_ng, max(1, repeats // 3)) / base[-1])
    return median(base), median(ratios)


def _sample(program: Program, np: Any, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        numpy.asarray(program.run(np))
    return (time.perf_counter() - start) / repeats


def main(chosen: Sequence[str] = ()) -> None:
    """Measure and print the table, or the named programs of it."""
    lines = ["### small programs", "", "| program | NumPy | ours over it | goal |", "|---|---|---|---|"]
    found = []
    for program in [p for p in PROGRAMS if p.name in chosen] or PROGRAMS:
        seconds, ratio = measure(program)
        found.append(ratio)
        shown = f"{ratio:.2f}" if ratio <= program.limit else f"**{ratio:.2f}**"
        lines.append(f"| {program.name} | {seconds * 1e3:.2f} ms | × {shown} | at most {program.limit:g} |")
    lines += [f"| geometric mean | | × {geometric_mean(found):.2f} | |", ""]
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
