"""Programs as people write them, which nobody tuned for, against NumPy, from 100 kB to 100 MB.

`python -m benchmarks.programs jacobi masks --megabytes 1 10` measures a part. A program's first run in a new
process is the cold one (what is imported for it counts). Later ones, the warm ones, take turns with NumPy's
in one process. A ratio is our time over NumPy's; medians are printed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from statistics import geometric_mean, median
from typing import Any

import click
import numpy

from benchmarks.fresh import run_fresh

SIZES_MB = (0.1, 1.0, 1.1, 10.0, 100.0)
WARM, COLD = 1.2, 1.5
"""What is promised for our time over NumPy's."""
LEAST_PAIRS, PAIRS, ENOUGH_S = 3, 50, 2.0

Random = numpy.random.Generator
PROGRAMS: dict[str, Callable[[Any, Random, int], Any]] = {}
"""Each is called with the namespace, a generator, and the number of doubles in its largest array."""


def program(run: Callable[[Any, Random, int], Any]) -> Callable[[Any, Random, int], Any]:
    """Enter a program under its function's name."""
    PROGRAMS[run.__name__] = run
    return run


def _square(np: Any, rng: Random, n: int) -> Any:
    side = math.isqrt(n)
    return np.array(rng.random((side, side)))


@program
def columns(np: Any, rng: Random, n: int) -> Any:
    """A recurrence from each column to the next."""
    a = _square(np, rng, n)
    y = np.zeros(a.shape)
    y[:, 0] = a[:, 0]
    for j in range(1, min(len(a), 400)):
        y[:, j] = 0.5 * a[:, j] + 0.25 * y[:, j - 1]
    return y


@program
def covariances(np: Any, rng: Random, n: int) -> Any:
    """A covariance matrix row by row, both triangles at once."""
    d = _square(np, rng, n)
    d -= np.mean(d, axis=0)
    c = np.zeros(d.shape)
    for i in range(min(len(d), 50)):
        c[i:, i] = c[i, i:] = d[:, i] @ d[:, i:] / (len(d) - 1)
    return c


@program
def heat(np: Any, rng: Random, n: int) -> Any:
    """Diffusion by rolled copies, with values held at the edges."""
    f = _square(np, rng, n)
    for _ in range(10):
        f = 0.25 * (np.roll(f, 1, 0) + np.roll(f, -1, 0) + np.roll(f, 1, 1) + np.roll(f, -1, 1))
        f[0] = 0
        f[-1] = 0
        f[:, 0] = 1
        f[:, -1] = 1
    return f


@program
def jacobi(np: Any, rng: Random, n: int) -> Any:
    """Jacobi's iteration by slices, from one array to the other and back."""
    a = _square(np, rng, n)
    b = a.copy()
    for _ in range(5):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return a


@program
def waves(np: Any, rng: Random, n: int) -> Any:
    """Electric and magnetic fields on a staggered grid (finite differences in time)."""
    ex = _square(np, rng, n)
    ey, hz = ex.copy(), ex.copy()
    for t in range(8):
        ey[0, :] = t
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return hz


@program
def carried(np: Any, rng: Random, n: int) -> Any:
    """A moving mean carried through a loop over a part of what has just been computed."""
    y = (np.array(rng.random(n)) * 2)[: n // 4]
    mean = y[0]
    out = np.zeros(200)
    for i in range(200):
        mean += 0.1 * (y[i] - mean)
        out[i] = mean
    return out


@program
def masks(np: Any, rng: Random, n: int) -> Any:
    """Elements chosen by a mask change, again and again."""
    a = _square(np, rng, n)
    for _ in range(8):
        large = a > 0.9
        a[large] = 0.5 * a[large]
        a += 0.01
    return a


@program
def swaps(np: Any, rng: Random, n: int) -> Any:
    """Rows change places."""
    a = np.array(rng.random((n // 100, 100)))
    for i in range(400):
        j = (i * 7) % len(a)
        k = i % len(a)
        a[[k, j]] = a[[j, k]]
    return a


@program
def escapes(np: Any, rng: Random, n: int) -> Any:
    """Mandelbrot's set: complex numbers that stay small are squared on."""
    side = math.isqrt(n // 2)
    c = np.linspace(-2, 0.5, side) + np.linspace(-1.2, 1.2, side)[:, None] * 1j
    steps = np.zeros(c.shape, int)
    z = np.zeros(c.shape, complex)
    for k in range(10):
        inside = abs(z) < 2
        steps[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    return steps


@program
def shortest_paths(np: Any, rng: Random, n: int) -> Any:
    """All shortest paths in a graph, over some of its vertices (Floyd and Warshall)."""
    p = _square(np, rng, n)
    for k in range(0, len(p), max(1, len(p) // 8)):
        p[:] = np.minimum(p, p[:, k, None] + p[k])
    return p


@program
def softmax(np: Any, rng: Random, n: int) -> Any:
    """Shares of exponentials along the last axis."""
    x = np.array(rng.random((n // 128, 128)))
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@program
def standardized(np: Any, rng: Random, n: int) -> Any:
    """Columns with mean 0 and deviation 1, clipped, and their correlations."""
    x = np.array(rng.random((n // 20, 20)))
    z = np.clip((x - x.mean(axis=0)) / x.std(axis=0), -2, 2)
    return z.T @ z / len(x)


@program
def layers(np: Any, rng: Random, n: int) -> Any:
    """Two layers of a network on a batch."""
    side = math.isqrt(n)
    x = np.array(rng.random((64, side)))
    first, second = np.array(rng.random((side, side))), np.array(rng.random((side, 100)))
    return np.maximum(np.maximum(x @ first, 0) @ second, 0)


@program
def options(np: Any, rng: Random, n: int) -> Any:
    """Prices of options by a Monte Carlo walk."""
    price = np.full(n, 100.0)
    for _ in range(4):
        price *= np.exp(0.0002 + 0.01 * np.array(rng.standard_normal(n)))
    return np.maximum(price - 100, 0).mean()


@program
def histogram(np: Any, rng: Random, n: int) -> Any:
    """Grey values spread evenly over their range."""
    image = (_square(np, rng, n) * 255).astype(np.uint8)
    counts = np.bincount(image.ravel(), minlength=256)
    rising = np.cumsum(counts) / image.size
    return (rising[image] * 255).astype(np.uint8)


@program
def blurred(np: Any, rng: Random, n: int) -> Any:
    """An image smoothed along both axes, and its edges."""
    a = _square(np, rng, n)
    p = np.pad(a, 2, mode="edge")
    rows = sum(w * p[:, i : i + a.shape[1]] for i, w in enumerate((1, 4, 6, 4, 1))) / 16
    both = sum(w * rows[i : i + a.shape[0]] for i, w in enumerate((1, 4, 6, 4, 1))) / 16
    dy, dx = np.gradient(both)
    return np.hypot(dx, dy)


@program
def spectrum(np: Any, rng: Random, n: int) -> Any:
    """The power spectrum of windows of a signal."""
    x = np.array(rng.random(n))[: n // 512 * 512].reshape(-1, 512)
    return (np.abs(np.fft.rfft(x * np.hanning(512), axis=1)) ** 2).mean(axis=0)


@program
def ranks(np: Any, rng: Random, n: int) -> Any:
    """Ranks, quantiles and the values that occur."""
    x = np.array(rng.integers(0, 1000, n))
    order = np.argsort(x, kind="stable")
    values, counts = np.unique(x, return_counts=True)
    return np.concatenate([order[:10], values[:10], counts[:10], np.quantile(x, [0.1, 0.5])])


@program
def nearest(np: Any, rng: Random, n: int) -> Any:
    """The nearest of a few centers to each point, and the centers' means."""
    x = np.array(rng.random((n // 8, 8)))
    centers = x[:4].copy()
    for _ in range(3):
        distances = ((x[:, None, :] - centers) ** 2).sum(axis=2) if len(x) < 20_000 else None
        if distances is None:
            distances = (x**2).sum(axis=1)[:, None] - 2 * x @ centers.T + (centers**2).sum(axis=1)
        near = np.argmin(distances, axis=1)
        centers = np.array([x[near == k].mean(axis=0) for k in range(4)])
    return centers


@program
def regression(np: Any, rng: Random, n: int) -> Any:
    """Logistic regression by gradients."""
    x, y = np.array(rng.random((n // 20, 20))), np.array(rng.random(n // 20) > 0.5)
    w = np.zeros(20)
    for _ in range(5):
        p = 1 / (1 + np.exp(-(x @ w)))
        w -= 0.1 * (x.T @ (p - y)) / len(y)
    return w


@program
def groups(np: Any, rng: Random, n: int) -> Any:
    """The means of the rows of each of many groups, by masks."""
    x = np.array(rng.random((n // 20, 20)))
    group = np.array(rng.integers(0, 32, len(x)))
    return np.stack([x[group == k].mean(axis=0) for k in range(32)])


@program
def spread(np: Any, rng: Random, n: int) -> Any:
    """Labels of the parts of a picture: the greatest among neighbours, again and again."""
    side = math.isqrt(n)
    mask = np.array(rng.random((side, side)) > 0.3)
    labels = np.arange(1, side * side + 1).reshape(side, side) * mask
    for _ in range(6):
        p = np.pad(labels, 1)
        near = [p[1:-1, 1:-1], p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]]
        grown = np.maximum.reduce(near) * mask
        if (grown == labels).all():
            break
        labels = grown
    return labels


@program
def rolled(np: Any, rng: Random, n: int) -> Any:
    """A sum of rolled copies, looked through row by row."""
    a = _square(np, rng, n)
    smooth = sum(np.roll(a, k, axis=0) for k in range(-3, 4)) / 7
    return np.array([row.max() - row.min() for row in a - smooth])


@program
def windows(np: Any, rng: Random, n: int) -> Any:
    """A signal's correlation with a pattern, and its mean over long windows."""
    x = np.array(rng.random(n))
    shown = np.lib.stride_tricks.sliding_window_view(x, 24)
    return shown @ np.linspace(-1, 1, 24) + shown.mean(axis=1)


def run(name: str, np: Any, nbytes: int) -> tuple[float, Any]:
    """Seconds of a program, and its result, computed."""
    begun = time.perf_counter()
    result = PROGRAMS[name](np, numpy.random.default_rng(0), nbytes // 8)
    if np is not numpy:
        np.persist(result)
    return time.perf_counter() - begun, result


def times(name: str, namespace: str, nbytes: int, workers: int) -> tuple[float, float]:
    """Seconds of the first run in this process; of our side the median of ratios of later ones, too."""
    if namespace == "numpy":
        return run(name, numpy, nbytes)[0], 1.0
    if not workers:
        return _ours(name, nbytes)
    from spartan_ng import session
    from spartan_ng.backends.local import LocalCluster

    with LocalCluster(workers) as backend:
        session.use(backend)
        return _ours(name, nbytes)


def _ours(name: str, nbytes: int) -> tuple[float, float]:
    """The same of our side, wherever programs run."""
    import spartan_ng
    from spartan_ng.kernels.compiled.compile import wait_for_compiles

    cold, found = run(name, spartan_ng, nbytes)
    numpy.testing.assert_allclose(found, run(name, numpy, nbytes)[1], rtol=1e-6, err_msg=name)
    del found
    ratios: list[float] = []
    begun = time.perf_counter()
    while len(ratios) < LEAST_PAIRS or (len(ratios) < PAIRS and time.perf_counter() - begun < ENOUGH_S):
        wait_for_compiles()
        ratios.append(run(name, spartan_ng, nbytes)[0] / run(name, numpy, nbytes)[0])
    return cold, median(ratios)


def _in_a_process(name: str, namespace: str, nbytes: int, workers: int) -> tuple[float, float]:
    command = ["-m", __spec__.name, name, "--inside", namespace, "--bytes", str(nbytes)]
    told = run_fresh([*command, "--workers", str(workers)])
    cold, warm = json.loads(told.splitlines()[-1])
    return cold, warm


@click.command(help=__doc__)
@click.argument("names", nargs=-1, type=click.Choice(sorted(PROGRAMS)))
@click.option("--megabytes", multiple=True, type=float, help=f"Sizes [default: {SIZES_MB}].")
@click.option("--rounds", default=1, show_default=True, help="Processes of each.")
@click.option("--workers", default=0, help="Workers of a cluster on this machine [default: none].")
@click.option("--inside", hidden=True)
@click.option("--bytes", "nbytes", type=int, hidden=True)
def main(
    *,
    names: tuple[str, ...],
    megabytes: tuple[float, ...],
    rounds: int,
    workers: int,
    inside: str,
    nbytes: int,
) -> None:
    """Print the table, or what one process measured."""
    if inside:
        print(json.dumps(times(names[0], inside, nbytes, workers)))
        return
    sizes = megabytes or SIZES_MB
    print(f"ours / NumPy: warm (cold); promised {WARM} ({COLD})")
    print(f"{'':16}" + "".join(f"{size:>10g} MB   " for size in sizes))
    ratios: dict[float, list[tuple[float, float]]] = {size: [] for size in sizes}
    for name in names or PROGRAMS:
        line = f"{name:16}"
        for size in sizes:
            rows = []
            for _ in range(rounds):
                theirs, ours = (
                    _in_a_process(name, space, int(size * 1e6), workers) for space in ("numpy", "ours")
                )
                rows.append((ours[1], ours[0] / theirs[0]))
            warm, cold = (median(column) for column in zip(*rows, strict=True))
            ratios[size].append((warm, cold))
            line += f"{warm:7.2f} ({cold:.2f}) "
        print(line, flush=True)
    means = [tuple(geometric_mean(c) for c in zip(*ratios[size], strict=True)) for size in sizes]
    print(f"{'geometric mean':16}" + "".join(f"{warm:7.2f} ({cold:.2f}) " for warm, cold in means))


if __name__ == "__main__":
    main()
