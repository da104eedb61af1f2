"""Compiled scans against NumPy: every step, dtype and shape, whole lines and chunks, maps around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spartan_ng.arrays import WHOLE
from spartan_ng.config import config
from spartan_ng.costs.choices import PREFIX_ELEMENTS
from spartan_ng.kernels import scans as interpreted
from spartan_ng.kernels.compiled import prefixes, scans
from spartan_ng.kernels.compiled.scans import CompiledScan, compiled_scan
from spartan_ng.kernels.ordered import _BLOCK, Ordered
from spartan_ng.kernels.scans import cut_lines
from spartan_ng.ops.folds import FOLDS, PREFIX_FOLDS
from spartan_ng.plan.rows import Axis, Read, Row

SHAPES = [((4099,), 0), ((37, 64), 0), ((37, 64), 1), ((3, 41, 5), 1), ((5, 7, 3), 0), ((1, 9), 0)]
STEPS = [
    ("add", "f4 f8 i4 i8"),
    ("multiply", "f4 f8 i4 i8"),
    ("minimum", "f4 f8 i4 i8"),
    ("maximum", "f4 f8 i4 i8"),
    ("fmin", "f8"),
    ("fmax", "f4"),
    ("bitwise_and", "i8"),
    ("bitwise_or", "u4"),
    ("bitwise_xor", "i4"),
    ("logical_and", "b1"),
    ("logical_or", "b1"),
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "SCAN_ELEMENTS", 1)
    monkeypatch.setattr(scans, "_STRIP", 8)


def read(x: np.ndarray, shape: tuple[int, ...], slot: int = 0) -> Read:
    """An operand that broadcasts to `shape` along its axes of length 1."""
    labels = tuple(d if n == shape[d] else WHOLE for d, n in enumerate(x.shape))
    axes = tuple(Axis(label, 0, 1, n) for label, n in zip(labels, x.shape, strict=True))
    return Read(slot, axes, tuple(range(x.ndim)), shape, tuple(range(x.ndim)), x.shape != shape)


def scanned(name: str, n: int, axis: int, out: np.ndarray) -> Row:
    labels = tuple(range(out.ndim))
    return Row("scan", name, tuple(range(n)), (axis,), out.dtype, out.shape, labels)


def compiled(rows: tuple[Row, ...], xs: list[np.ndarray], out: np.ndarray, axis: int) -> Any:
    box = tuple((0, n) for n in out.shape)
    reads = tuple(read(x, out.shape, i) for i, x in enumerate(xs))
    with config.override(kernels="compile"):
        found = compiled_scan(reads, rows, xs, out, cut_lines(box, axis), {})
        return found if found is not None and found.is_ready(values=True, totals=True) else None


def halves(n: int, shape: tuple[int, ...], axis: int) -> list[Any]:
    """The boxes of the two halves of an axis."""
    whole = [(0, m) for m in shape]
    parts = [(0, n // 2), (n // 2, n)] if n > 1 else [(0, n)]
    return [tuple(p if d == axis else w for d, w in enumerate(whole)) for p in parts]


def run_halves(scan: CompiledScan, shape: tuple[int, ...], axis: int) -> None:
    """The first half, then the second behind the first's total."""
    carry = None
    for box in halves(shape[axis], shape, axis):
        scan.run(box, carry)
        carry = scan.total(box)


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, every in STEPS for d in every.split()])
def test_values(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for shape, axis in SHAPES:
        x = (rng.standard_normal(shape) * 3 + 1).astype(dtype)
        if dtype[0] == "f" and name not in ("add", "multiply"):
            x[rng.random(shape) < 0.01] = np.nan
        out = np.empty_like(x)
        with np.errstate(all="ignore"):
            scan = compiled((scanned(name, 1, axis, out),), [x], out, axis)
            assert scan is not None
            function = getattr(np, name)
            run_halves(scan, shape, axis)
            expected = function.accumulate(x, axis, dtype=dtype)
            rtol = 1e-4 if dtype == "f4" else 1e-10
            np.testing.assert_allclose(out, expected, rtol=rtol, atol=1e-4 if dtype == "f4" else 1e-10)


CUBES = [(700, 90), (40, 70, 3), (2, 300, 64), (3, 5, 130, 4), (65, 2, 2, 130)]


@pytest.mark.parametrize("shape", CUBES)
@pytest.mark.parametrize("large", [64, 1000, 1 << 20])
def test_pieces_along_any_dimensions(shape: tuple[int, ...], large: int, monkeypatch) -> None:
    """However a tile is cut, compiled and interpreted: chunk after chunk of each piece, and nothing else."""
    monkeypatch.setattr(interpreted, "SCAN_PIECE", large)
    x = np.random.default_rng(5).integers(-9, 9, shape)
    box = tuple((0, n) for n in shape)
    for axis in range(len(shape)):
        cut = cut_lines(box, axis)
        assert {d for d in range(len(shape)) if any(p[d] != box[d] for p in cut.pieces)} == cut.dimensions
        out = np.full_like(x, 99)
        rows = (scanned("add", 1, axis, out),)
        one, other = compiled(rows, [x], out, axis), Ordered((read(x, shape),), rows, shape, box)
        assert one is not None
        assert not one.joined & cut.dimensions, "pieces have it whole"
        for piece in cut.pieces:
            carry = None
            for chunk in cut.chunks:
                part = (*piece[:axis], chunk, *piece[axis + 1 :])
                sizes = other._sizes(part)
                blocks = list(other._blocks(part))
                across = int(np.prod(sizes[:axis] + sizes[axis + 1 :], dtype=int))
                length = part[axis][1] - part[axis][0]
                assert sizes[axis] == 1 or sizes[axis] * across <= _BLOCK
                assert sizes[axis] == length or (sizes[axis] + 1) * across > _BLOCK
                assert [b[axis][0] for b in blocks[1:]] == [b[axis][1] for b in blocks[:-1]]
                lengths = [b[axis][1] - b[axis][0] for b in blocks]
                assert len(blocks) == -(-length // sizes[axis])
                assert max(lengths) <= min(sizes[axis], min(lengths) + 1)
                one.run(part, carry)
                now = one.total(part)
                np.testing.assert_array_equal(now[0], other.total([x], part)[0])
                carry = now if carry is None else (carry[0] + now[0],)
        np.testing.assert_array_equal(out, np.cumsum(x, axis))


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_maps_on_both_sides(shape: tuple[int, ...], axis: int) -> None:
    """cumsum(x * y) / arange - x, with a broadcast y and an integer index, in one kernel."""
    rng = np.random.default_rng(4)
    x, out = rng.standard_normal(shape), np.empty(shape)
    y = rng.standard_normal(tuple(n if d == axis else 1 for d, n in enumerate(shape)))
    labels = tuple(range(len(shape)))
    f8, n = np.dtype("f8"), shape[axis]

    def row(kind: str, fn: str | None, args: tuple[int, ...], dtype: Any = f8) -> Row:
        return Row(kind, fn, args, (), np.dtype(dtype), shape, labels)

    along = tuple(n if d == axis else 1 for d in labels)
    seen = tuple(d if d == axis else WHOLE for d in labels)
    rows = (
        row("map", "multiply", (0, 1)),  # register 2
        Row("iota", None, (), (), np.dtype(np.int64), (n,), (axis,)),
        Row("reshape", None, (3,), (), np.dtype(np.int64), along, seen),
        Row("scan", "add", (2,), (axis,), f8, shape, labels),
        row("map", "add", (5, 4)),
        row("map", "subtract", (6, 0)),
    )
    expected = np.cumsum(x * y, axis) + np.arange(n).reshape(along) - x
    scan = compiled(rows, [x, y], out, axis)
    assert scan is not None
    run_halves(scan, shape, axis)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    reads = (read(x, shape), read(y, shape, 1))
    box = tuple((0, m) for m in shape)
    ordered = Ordered(reads, rows, shape, box)
    out[...] = 0
    carry = None
    for part in halves(n, shape, axis):
        place = out[tuple(slice(lo, hi) for lo, hi in part)]
        assert ordered.run([x, y], part, place, carry) is not None
        carry = ordered.total([x, y], part)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("shape", "axis"), [((500, 20), 0), ((500,), 0), ((20, 500), 1)])
def test_recurrence_with_frames(shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(3)
    y, w = rng.standard_normal((2, *shape))
    w[rng.random(w.shape) < 0.2] = 0
    y[rng.random(y.shape) < 0.01] = np.inf
    out = np.empty_like(y)
    scan = compiled((scanned("cumsumprod", 2, axis, out),), [y, w], out, axis)
    assert scan is not None
    run_halves(scan, shape, axis)
    lines = [np.moveaxis(a, axis, 0) for a in (y, w, out)]
    before = lines[0][0]
    for i, (yi, wi, zi) in enumerate(zip(*lines, strict=True)):
        if i:
            with np.errstate(invalid="ignore"):
                before = yi + np.where(wi == 0, 0, wi * before)
        np.testing.assert_allclose(zi, before, rtol=1e-12)


@pytest.mark.parametrize(("shape", "axis"), [((500, 20), 0), ((500,), 0), ((20, 500), 1)])
def test_segments(shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(3)
    x, begins = rng.standard_normal(shape), (rng.random(shape) < 0.1) * 1.0
    out = np.empty_like(x)
    scan = compiled((scanned("segmented_add", 2, axis, out),), [x, begins], out, axis)
    assert scan is not None
    run_halves(scan, shape, axis)
    before: Any = 0.0
    for xi, begin, zi in zip(*(np.moveaxis(a, axis, 0) for a in (x, begins, out)), strict=True):
        before = np.where(begin != 0, xi, before + xi)
        np.testing.assert_allclose(zi, before, rtol=1e-12)


@pytest.mark.parametrize("shape", [(400,), (400, 3)])
def test_compensation(shape: tuple[int, ...]) -> None:
    x = np.tile([1e16, 1.0, -1e16, 1.0], 100)
    x = np.repeat(x, 3).reshape(shape) if len(shape) > 1 else x
    out = np.empty_like(x)
    scan = compiled((scanned("compensated_add", 1, 0, out),), [x], out, 0)
    assert scan is not None
    run_halves(scan, shape, 0)
    np.testing.assert_array_equal(out, np.cumsum(x.astype(np.longdouble), 0).astype(float))


def test_left_to_numpy() -> None:
    x = np.ones((1 << 9, 1 << 9))
    out = np.empty_like(x)
    rows = (scanned("add", 1, 0, out),)
    reads = (read(x, x.shape),)
    cut = cut_lines(((0, 1 << 9),) * 2, 0)
    with config.override(kernels="compile"):
        assert compiled_scan(reads, rows, [x], out, cut, {}) is not None
        assert compiled_scan(reads, rows, [x], out, cut, {"over": "raise"}) is None
        assert compiled_scan(reads, (scanned("logaddexp", 1, 0, out),), [x], out, cut, {}) is None
        assert compiled_scan(reads, rows, [x.astype("f2")], out, cut, {}) is None
    with config.override(kernels="interpret"):
        assert compiled_scan(reads, rows, [x], out, cut, {}) is None


@pytest.mark.parametrize(
    "shape", [(1 << 18,), (1 << 12, 64), (64, 1 << 12), (2, 1 << 17), (300, 5, 300), (7,)]
)
def test_cuts_cover_the_tile_once(shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):
        box = tuple((10, 10 + n) for n in shape)
        cut = cut_lines(box, axis)
        seen = np.zeros(shape, int)
        for piece in cut.pieces:
            assert piece[axis] == box[axis]
            seen[tuple(slice(a - 10, b - 10) for a, b in piece)] += 1
        assert (seen == 1).all()
        assert cut.chunks[0][0] == 10
        assert cut.chunks[-1][1] == 10 + shape[axis]
        assert all(a[1] == b[0] for a, b in zip(cut.chunks, cut.chunks[1:], strict=False))


def test_lines_are_cut_into_as_many_pieces_as_they_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any axis but the last, whose elements are neighbours, may be cut into its single indices."""
    monkeypatch.setattr(interpreted, "SCAN_PIECE", 1)
    for n in range(1, 100):
        wanted = min(n, interpreted._PIECES)
        assert len(cut_lines(((0, n), (0, 50)), 1).pieces) == wanted
        assert len(cut_lines(((0, n), (5, 7), (0, 3)), 1).pieces) == wanted
        neighbours = n * interpreted._NEIGHBOURS
        assert len(cut_lines(((0, 3), (0, neighbours + 5)), 0).pieces) == wanted


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_extremes_of_prefix_sums(name: str) -> None:
    x = np.random.default_rng(2).standard_normal(PREFIX_ELEMENTS + 3)
    fold = FOLDS[PREFIX_FOLDS[name]]
    special = x.copy()
    special[[100, 5000]] = np.inf, -np.inf
    with config.override(kernels="compile"), np.errstate(invalid="ignore"):
        for y in (x, special):
            state = prefixes.prefix_state(fold.name, y, y.dtype)
            assert state is not None
            expected = fold.finalize(fold.block(y, (0,), y.dtype, None, 0))
            np.testing.assert_allclose(fold.finalize(state), expected, rtol=1e-10)
        assert prefixes.prefix_state(fold.name, x[::2], x.dtype) is None
        with np.errstate(invalid="raise"):
            assert prefixes.prefix_state(fold.name, x, x.dtype) is None
