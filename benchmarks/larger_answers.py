"""What the rows of `larger` are to give: NumPy's answers, part by part, and how far others are from them.

All of an answer is compared, and what was written to a file element by element. What is sorted is compared by
what sorting keeps: each element is there as often as before (by sums that no order changes), and none is
smaller than the one before it; a quantile by how many elements lie below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy

COLUMNS = 100
CLUSTERS, STEPS = 8, 5
QUANTILES = (0.1, 0.25, 0.5, 0.9)
PART = 1 << 16
"""Rows of a part."""
WRITTEN, FOUND = "out.npy", "found.npy"
"""The files with what a row has written, and what it has found."""
_LEAST = 1e-12


class Answers:
    """The answers for one file, each made when it is first asked for."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._known: dict[str, Any] = {}

    @property
    def _x(self) -> Any:
        """The array, mapped as long as somebody looks at it: of what is mapped no page is forgotten."""
        return numpy.load(self._file, "r")

    def difference(self, row: str, folder: str) -> float:
        """The largest relative difference of what a row has left in the folder."""
        if row == "nothing":
            return 0.0
        if row.endswith("to a file"):
            return self._of_file(row, _written(f"{folder}/{WRITTEN}"))
        found = numpy.load(f"{folder}/{FOUND}")
        if row == "median and quantiles":
            return max(self._off(q, v) for q, v in zip(QUANTILES, found, strict=True))
        if row not in self._known:
            self._known[row] = self._answer(row)
        return _relative(found, self._known[row])

    def _parts(self) -> Iterator[tuple[int, Any]]:
        for k in range(0, len(self._x), PART):
            yield k, numpy.array(self._x[k : k + PART])

    def _answer(self, row: str) -> Any:
        match row:
            case "mean":
                return self._sums / len(self._x)
            case "var":
                return self._squares / len(self._x)
            case "std":
                return numpy.sqrt(self._squares / len(self._x))
            case "max":
                return numpy.max([part.max(axis=0) for _, part in self._parts()], axis=0)
            case "masked sum":
                return math.fsum(float(part[part > 0.5].sum()) for _, part in self._parts())
            case "x.T @ x":
                return self._moments
            case "components":
                mean = self._sums / len(self._x)
                return numpy.linalg.eigvalsh(self._moments / len(self._x) - numpy.outer(mean, mean))
            case "k-means":
                return self._centers()
            case "logistic regression":
                return self._weights()
        raise AssertionError(f"no answer for the row {row!r}")

    @cached_property
    def _sums(self) -> Any:
        return sum(part.sum(axis=0) for _, part in self._parts())

    @cached_property
    def _squares(self) -> Any:
        mean = self._sums / len(self._x)
        return sum(((part - mean) ** 2).sum(axis=0) for _, part in self._parts())

    @cached_property
    def _moments(self) -> Any:
        return sum(part.T @ part for _, part in self._parts())

    def _centers(self) -> Any:
        centers = numpy.array(self._x[:CLUSTERS])
        for _ in range(STEPS):
            sums, counts = numpy.zeros_like(centers), numpy.zeros(CLUSTERS)
            for _, part in self._parts():
                distances = (centers * centers).sum(axis=1) - 2 * (part @ centers.T)
                marks = distances.argmin(axis=1)[:, None] == numpy.arange(CLUSTERS)
                sums += marks.astype(float).T @ part
                counts += marks.sum(axis=0)
            centers = sums / numpy.maximum(counts, 1)[:, None]
        return centers

    def _weights(self) -> Any:
        w = numpy.zeros(COLUMNS)
        for _ in range(STEPS):
            slope = numpy.zeros(COLUMNS)
            for _, part in self._parts():
                slope += part.T @ (1 / (1 + numpy.exp(-(part @ w))) - (part[:, 0] > 0.5))
            w = w - slope / len(self._x)
        return w

    def _off(self, q: float, value: Any) -> float:
        """By how many places, in relation to all, a quantile is not between the two that it should be."""
        place = q * (self._x.size - 1)
        below = within = 0
        for _, part in self._parts():
            below += int((part < value).sum())
            within += int((part <= value).sum())
        off = max(below - math.ceil(place), math.floor(place) + 1 - within, 0)
        return float(off / self._x.size)

    def _of_file(self, row: str, y: Any) -> float:
        if row.startswith("sort"):
            return self._of_sorted(y)
        worst, before = 0.0, numpy.zeros(COLUMNS)
        for k, part in self._parts():
            at = slice(k, k + len(part))
            if row.startswith("x.T"):
                found, wanted = y[:, at], part.T
            elif row.startswith("cumsum"):
                wanted = numpy.cumsum(numpy.vstack([before, part]), axis=0)[1:]
                found, before = y[at], wanted[-1]
            else:
                found, wanted = y[at], part * 2 + 1
            worst = max(worst, _relative(numpy.asarray(found), wanted))
        return worst

    def _of_sorted(self, y: Any) -> float:
        """0 where the file has the elements in order, else infinity."""
        step, last = PART * COLUMNS, -math.inf
        before, after = [0, 0], [0, 0]
        for _, part in self._parts():
            _count(before, part)
        for k in range(0, len(y), step):
            part = numpy.array(y[k : k + step])
            if part[0] < last or (numpy.diff(part) < 0).any():
                return math.inf
            last = float(part[-1])
            _count(after, part)
        return 0.0 if before == after and y.size == self._x.size else math.inf


def _count(sums: list[int], part: Any) -> None:
    """Add up what no order of the elements changes: their bits, and the squares of these."""
    bits = part.reshape(-1).view(numpy.uint64)
    for i, found in enumerate((bits, bits * bits)):
        sums[i] = (sums[i] + int(found.sum(dtype=numpy.uint64))) % (1 << 64)


def _relative(found: Any, wanted: Any) -> float:
    if numpy.shape(found) != numpy.shape(wanted):
        return math.inf
    return float(numpy.max(numpy.abs(found - wanted) / numpy.maximum(numpy.abs(wanted), _LEAST)))


def _written(out: str) -> Any:
    """What a row has written, unread: cubed writes a zarr store."""
    if Path(out).is_file():
        return numpy.load(out, "r")
    import zarr

    return zarr.open_array(out, mode="r")
