"""Chains of a few steps, drawn by a number: what the tables ask of one function, of several together."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy

Step = Callable[[Any, Any], Any]
"""Of NumPy's names and a matrix."""

_STEPS: dict[str, Step] = {
    "times": lambda m, x: x * 2 + 1,
    "root": lambda m, x: m.sqrt(m.abs(x)),
    "where": lambda m, x: m.where(x > 0.5, x, -x),
    "float32": lambda m, x: x.astype(m.float32),
    "centred": lambda m, x: x - x.mean(axis=0),
    "scaled": lambda m, x: x / (m.abs(x).max(axis=0) + 1),
    "backwards": lambda m, x: x[::-1],
    "every other": lambda m, x: x[::2],
    "columns": lambda m, x: x[:, ::2] if x.shape[1] > 4 else x,
    "beside itself": lambda m, x: m.concatenate([x, x * 2]),
    "sums": lambda m, x: m.cumsum(x, axis=0) / len(x),
    "sums of rows": lambda m, x: m.cumsum(x, axis=1),
    "sorted": lambda m, x: m.sort(x, axis=0),
    "rows sorted": lambda m, x: m.sort(x, axis=1),
    "turned": lambda m, x: (x.T + 0).T,
    "wider": lambda m, x: x.reshape(len(x) // 2, -1) if len(x) % 2 == 0 and x.shape[1] < 300 else x,
    "rows picked": lambda m, x: x[numpy.random.default_rng(1).permutation(len(x)), :],
    "rows by mask": lambda m, x: x[x[:, 0] > m.mean(x[:, 0])],
    "differences": lambda m, x: m.diff(x, axis=0),
    "rolled": lambda m, x: m.roll(x, 100, axis=0),
    "multiplied": lambda m, x: x @ numpy.eye(x.shape[1])[:, ::-1],
    "repeated": lambda m, x: m.repeat(x, 2, axis=0),
    "clipped": lambda m, x: m.clip(x, 0.1, 0.9),
}
_ENDS: dict[str, Step] = {
    "stored": lambda m, x: x,
    "mean": lambda m, x: x.mean(axis=0),
    "sum of rows": lambda m, x: x.sum(axis=1),
    "std": lambda m, x: x.std(axis=0),
    "place of the largest": lambda m, x: x.argmax(axis=1),
    "median": lambda m, x: m.median(x),
    "squares": lambda m, x: x.T @ x,
    "histogram": lambda m, x: m.histogram(x, bins=20, range=(-2.0, 2.0))[0],
    "line sorted": lambda m, x: m.sort(x.reshape(-1)),
}


def chain(number: int) -> tuple[str, Callable[[Any, Any, Any], Any]]:
    """The chain of a number, in words and as the tables have theirs."""
    draw = random.Random(number)
    names = draw.choices([*_STEPS], k=draw.randint(1, 3))
    end = draw.choice([*_ENDS])

    def work(m: Any, x: Any, line: Any) -> Any:
        for name in names:
            x = _STEPS[name](m, x)
        return _ENDS[end](m, x)

    return " > ".join([*names, end]), work
