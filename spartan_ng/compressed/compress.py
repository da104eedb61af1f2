"""Choose groups, layouts and sizes on a sample of rows, then compress.

Distinct tuples are estimated from a sample by how many were seen once (Haas et al.'s Duj1 estimator), runs by
the changes inside contiguous windows. Columns are co-coded greedily: each joins the group with which it takes
the fewest bytes. The data decide in the end: each group gets the layout that is smallest for its exact codes.

Elgohary et al., "Compressed Linear Algebra for Large-Scale Machine Learning" (VLDB 2016), section 5.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays.sparse import INDEX_BYTES
from spartan_ng.compressed.groups import Coding, ColumnGroup
from spartan_ng.compressed.layouts import Array, Codes, Layout, Offsets, Runs
from spartan_ng.compressed.matrix import CompressedMatrix
from spartan_ng.system.machine import cache_bytes

SAMPLE_ROWS = 1 << 14
_WINDOWS = 16
"""Contiguous windows that the sample is made of."""
_CANDIDATES = 12
"""Groups that a column is tried with, the last ones made: columns are sorted by distinct values."""
_MOST_DISTINCT = 1 << 16
_LOOK_UP_NS = 0.6
_MEMORY_BYTES_NS, _CACHE_BYTES_NS = 25.0, 100.0
"""Of a product with a vector on two cores, measured: a row's look-up in a group; bytes that a dense matrix
streams in a nanosecond from memory, and from the last level of the cache."""
_CALL_NS = 200_000.0
"""What a product costs besides."""
_USUAL_CACHE_BYTES = 1 << 25


class GroupEstimate(Struct, frozen=True):
    """What a group of columns would take, in bytes, and its codes on the sample."""

    columns: tuple[int, ...]
    codes: Array
    nbytes: float


class SampledSizes(Struct, frozen=True):
    """What a sample of the rows says: each group's columns, the bytes of the whole matrix then, and how
    many times as long a product with a vector will take as the dense one, which the cache may hold."""

    groups: tuple[tuple[int, ...], ...]
    nbytes: int
    slowdown: float


def sample_columns(values: Array) -> SampledSizes:
    """The groups that a matrix is to be compressed in; columns that gain nothing are in none."""
    rows, width = values.shape
    fits = rows > 0 and values.dtype.kind in "biuf" and values.dtype.itemsize <= 8
    groups = _co_code(values, _sample(rows)) if fits else []
    plain = width - sum(len(g.columns) for g in groups)
    nbytes = sum(g.nbytes for g in groups) + plain * rows * values.dtype.itemsize
    slowdown = _slowdown(values, len(groups), plain)
    return SampledSizes(tuple(g.columns for g in groups), int(nbytes), slowdown)


def _slowdown(values: Array, groups: int, plain: int) -> float:
    nbytes: int = values.nbytes
    held = 2 * nbytes <= _cache_bytes()
    dense_ns = nbytes / (_CACHE_BYTES_NS if held else _MEMORY_BYTES_NS)
    width: int = values.shape[1]
    left_ns = dense_ns * plain / max(width, 1)
    return (_CALL_NS + left_ns + len(values) * groups * _LOOK_UP_NS) / (_CALL_NS + dense_ns)


@cache
def _cache_bytes() -> int:
    """Bytes of the last level of this machine's cache, where it says so."""
    return cache_bytes() or _USUAL_CACHE_BYTES


def compress_columns(values: Array, sampled: SampledSizes | None = None) -> CompressedMatrix:
    """A dense matrix in compressed columns."""
    rows, width = values.shape
    wanted = (sampled or sample_columns(values)).groups
    coded = [found for columns in wanted if (found := _exact(values, columns)) is not None]
    groups = tuple(group for group, _ in coded)
    inside = {c for g in groups for c in g.columns}
    plain = tuple(c for c in range(width) if c not in inside)
    words = np.concatenate([w.reshape(-1) for _, w in coded]) if coded else np.zeros(0, values.dtype)
    return CompressedMatrix(
        Coding(groups, rows), words, plain, np.ascontiguousarray(values[:, list(plain)]), width, 0, rows
    )


def _sample(rows: int) -> Array:
    """Row numbers: windows spread over the matrix."""
    if rows <= SAMPLE_ROWS:
        return np.arange(rows)
    length = SAMPLE_ROWS // _WINDOWS
    starts = np.linspace(0, rows - length, _WINDOWS).astype(np.int64)
    return (starts[:, None] + np.arange(length)).reshape(-1)


def _co_code(values: Array, sample: Array) -> list[GroupEstimate]:
    """The groups; columns that gain nothing are in none."""
    rows, width = values.shape
    picked = values[sample]
    alone = [
        _estimate((c,), np.unique(_bits(picked[:, c]), return_inverse=True)[1], rows, values)
        for c in range(width)
    ]
    plain = rows * values.dtype.itemsize
    groups: list[GroupEstimate] = []
    for e in sorted(alone, key=lambda e: e.codes.max(initial=0)):
        if e.nbytes >= plain:
            continue
        near = range(max(0, len(groups) - _CANDIDATES), len(groups))
        joined = [(k, _joined(groups[k], e, rows, values)) for k in near]
        better = [(groups[k].nbytes + e.nbytes - j.nbytes, k, j) for k, j in joined]
        gain, k, best = max(better, key=lambda b: b[0], default=(0.0, -1, e))
        if gain > 0:
            groups[k] = best
        else:
            groups.append(e)
    return groups


def _bits(column: Array) -> Array:
    """Numbers as they are stored: 0.0 and -0.0 differ, a NaN is itself."""
    return np.ascontiguousarray(column).view(f"u{column.itemsize}")


def _joined(a: GroupEstimate, b: GroupEstimate, rows: int, values: Array) -> GroupEstimate:
    codes = a.codes.astype(np.int64) * (int(b.codes.max(initial=0)) + 1) + b.codes
    return _estimate(a.columns + b.columns, _numbered(codes), rows, values)


def _numbered(codes: Array) -> Array:
    """The codes as numbers from 0 on, in their order."""
    top = int(codes.max(initial=-1)) + 1
    if top > 4 * len(codes) + 1024:
        return np.unique(codes, return_inverse=True)[1]
    seen = np.zeros(top, bool)
    seen[codes] = True
    return (np.cumsum(seen) - 1)[codes]


def _estimate(columns: tuple[int, ...], codes: Array, rows: int, values: Array) -> GroupEstimate:
    """The size of the best layout, from the codes of the sample."""
    n = len(codes)
    counts = np.bincount(codes)
    once = int((counts == 1).sum())
    share = n / rows
    distinct = min(len(counts) / (1 - (1 - share) * once / n), rows)
    changes = 1 + int((codes[1:] != codes[:-1]).sum())
    sizes = _sizes(rows, distinct, changes / share, rows - counts.max() / share)
    return GroupEstimate(columns, codes, min(sizes) + distinct * len(columns) * values.dtype.itemsize)


def _sizes(rows: int, distinct: float, runs: float, listed: float) -> tuple[float, float, float]:
    """Bytes of codes, offsets and runs."""
    width = np.min_scalar_type(max(int(distinct) - 1, 0)).itemsize
    return rows * width, listed * INDEX_BYTES + distinct * 8, runs * (width + INDEX_BYTES)


def _exact(values: Array, columns: tuple[int, ...]) -> tuple[ColumnGroup, Array] | None:
    """The group with the layout that is smallest for the data, and its words, a line for each column; None
    where the columns themselves are smaller."""
    part = [np.ascontiguousarray(values[:, c]) for c in columns]
    codes = np.zeros(len(values), np.int64)
    for column in part:
        distinct, inverse = np.unique(_bits(column), return_inverse=True)
        codes = _numbered(codes * len(distinct) + inverse)
        if codes.max() >= _MOST_DISTINCT:
            return None
    counts = np.bincount(codes)
    by_count = np.argsort(-counts, kind="stable")
    number = np.empty_like(by_count)
    number[by_count] = np.arange(len(counts))
    codes = number[codes]
    first = np.empty(len(counts), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    layout = _layout(codes, counts[by_count])
    words = np.stack([column[first] for column in part])
    smaller = layout.nbytes + words.nbytes < sum(column.nbytes for column in part)
    return (ColumnGroup(columns, len(counts), layout), words) if smaller else None


def _layout(codes: Array, counts: Array) -> Layout:
    """The smallest layout of exact codes; code 0 is the most frequent."""
    rows, distinct = len(codes), len(counts)
    change = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    sizes = _sizes(rows, distinct, len(change) + 1, rows - counts[0])
    kind = np.min_scalar_type(distinct - 1)
    index: Any = np.int32 if rows < 2**31 else np.int64
    if sizes[0] == min(sizes):
        return Codes(codes.astype(kind))
    if sizes[1] == min(sizes):
        order = np.argsort(codes, kind="stable")[counts[0] :]
        starts = np.concatenate([[0], np.cumsum(counts[1:])])
        return Offsets(order.astype(index), starts, rows)
    starts = np.concatenate([[0], change, [rows]])
    return Runs(codes[starts[:-1]].astype(kind), starts.astype(index))
