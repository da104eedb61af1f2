"""Functions of long lines, drawn by a number: results and work that are wider than what is read.

`… lines NUMBER WORKERS FOLDER` runs one, alone in a process, as `drawn` does.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

import spartan_ng as np
from tests.budgets.drawn import run_watched
from tests.budgets.run import KEPT

Along = Callable[[Any, Any, int], Any]
"""Of NumPy's names, an array and the axis of its lines."""
ALONG: dict[str, Along] = {
    "sort": lambda m, x, axis: m.sort(x, axis=axis),
    "argsort": lambda m, x, axis: m.argsort(x, axis=axis, kind="stable"),
    "partition": lambda m, x, axis: m.sort(m.partition(x, 3, axis=axis), axis=axis),
    "argpartition": lambda m, x, axis: m.take_along_axis(
        x, m.argpartition(x, (7, 50), axis=axis), axis=axis
    ).take(50, axis=axis),
    "lexsort": lambda m, x, axis: m.lexsort((x, x > 3), axis=axis),
    "cumsum": lambda m, x, axis: m.cumsum(x, axis=axis),
    "cumprod": lambda m, x, axis: m.cumprod(x == x, axis=axis, dtype=float),
    "taken": lambda m, x, axis: m.take_along_axis(x, m.argsort(x, axis=axis, kind="stable"), axis=axis),
    "median": lambda m, x, axis: m.median(x, axis=axis),
    "nanmedian": lambda m, x, axis: m.nanmedian(x.astype("f4"), axis=axis),
    "quantiles": lambda m, x, axis: m.quantile(x.astype("f8"), [0.1, 0.5], axis=axis),
    "rfft": lambda m, x, axis: m.fft.rfft(x, axis=axis),
    "fft": lambda m, x, axis: m.fft.fft(x, axis=axis),
    "there and back": lambda m, x, axis: m.fft.irfft(m.fft.rfft(x, axis=axis), axis=axis),
    "unwrap": lambda m, x, axis: m.unwrap(x.astype("f8"), axis=axis),
    "diff": lambda m, x, axis: m.diff(x, axis=axis),
    "roll": lambda m, x, axis: m.roll(x, 3, axis=axis),
    "repeat": lambda m, x, axis: m.repeat(x, 2, axis=axis),
    "gradient": lambda m, x, axis: m.gradient(x.astype(float), axis=axis),
    "argmax": lambda m, x, axis: m.argmax(x, axis=axis),
    "centred": lambda m, x, axis: x - m.mean(x, axis=axis, keepdims=True, dtype="f8"),
    "searched": lambda m, x, axis: m.searchsorted(m.arange(50), x),
    "counts": lambda m, x, axis: m.unique(x, return_counts=True)[1],
    "inverse": lambda m, x, axis: m.unique(x, return_inverse=True)[1],
}
KINDS = ("u1", "?", "i2", "f4", "f8")
_BUDGETS = (16_000_000, 32_000_000)
_WIDEST = 8
_ROWS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Lines:
    """A call as it was drawn."""

    number: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    axis: int
    budget: int
    """Bytes that arrays may take, all workers together."""

    @property
    def said(self) -> str:
        """In words."""
        return f"{self.name} of {self.dtype} {self.shape} along {self.axis}, {self.budget / 1e6:.0f} MB"


def lines(number: int, name: str = "") -> Lines:
    """The call of a number; with `name` of this function."""
    draw = random.Random(number)
    name, dtype = name or draw.choice([*ALONG]), draw.choice(KINDS)
    budget, count, axis = draw.choice(_BUDGETS), draw.choice([1, 3, 7]), draw.choice([0, 1])
    # What is as wide as indices takes once to four times what there is.
    length = int(budget * draw.choice([1, 2, 4])) // (_WIDEST * count) // 100 * 100
    return Lines(number, name, dtype, (count, length) if axis else (length, count), axis, budget)


def make(drawn: Lines, folder: str) -> None:
    """The array in a file: small whole numbers."""
    x = numpy.lib.format.open_memmap(f"{folder}/x.npy", "w+", drawn.dtype, drawn.shape)
    values, flat = numpy.random.default_rng(drawn.number), x.reshape(-1)
    for i in range(0, flat.size, _ROWS_AT_A_TIME):
        flat[i : i + _ROWS_AT_A_TIME] = values.integers(0, 50, min(_ROWS_AT_A_TIME, flat.size - i))
    x.flush()


def _part(x: Any, drawn: Lines, share: int) -> Any:
    length = drawn.shape[drawn.axis] // share
    return x[:, :length] if drawn.axis else x[:length]


def main(number: str, workers: str, folder: str, name: str = "") -> None:
    drawn = lines(int(number), name)

    def work(share: int) -> None:
        found = ALONG[drawn.name](np, _part(np.load(f"{folder}/x.npy"), drawn, share), drawn.axis)
        if found.nbytes > KEPT:
            np.save(f"{folder}/answer.npy", found)
        else:
            numpy.save(f"{folder}/answer.npy", numpy.asarray(found))

    run_watched(work, int(workers), drawn.budget, folder)


def difference(drawn: Lines, folder: str) -> str:
    """What is wrong with the answer that a run has left in the folder, "" where nothing is."""
    x, ours = (numpy.load(f"{folder}/{name}.npy", "r") for name in ("x", "answer"))
    wanted = ALONG[drawn.name](numpy, x, drawn.axis)
    if ours.dtype != wanted.dtype or ours.shape != wanted.shape:
        return f"{ours.dtype} {ours.shape}, NumPy's {wanted.dtype} {wanted.shape}"
    close = 1e-3 if wanted.dtype.char in "fFe" else 1e-7
    return "" if numpy.allclose(ours, wanted, rtol=close, atol=close, equal_nan=True) else "another answer"


if __name__ == "__main__":
    main(*sys.argv[1:])
