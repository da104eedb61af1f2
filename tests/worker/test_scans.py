"""Distributed scans: NumPy's values on any tiling and with any number of levels, and the bytes predicted."""

from __future__ import annotations

import operator
from unittest.mock import Mock

import numpy as np
import pytest

from benchmarks import cascades
from benchmarks.simulated import SimulatedBackend
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.kernels import ordered, scans
from spartan_ng.kernels.compiled import scans as compiled_scans
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.scans import Recurrence
from spartan_ng.plan.lower import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import ScanOffsets, ScanTile, ScanTotals
from spartan_ng.worker.scheduling.program import Program
from spartan_ng.worker.stages import scans as worker_scans

TILINGS = ["row", "column", "block", "duplicate", None]


def leaf(x: np.ndarray) -> Node:
    return build.data(ArrayRef(x.shape, x.dtype, value=x))


def planned(root: Node, workers: int, tiling: str | None = None, fan: int = 32) -> Plan:
    settings = Settings(Profile(workers=workers), tiling, scan_fan=fan)
    return lower(topological([root]), [root], settings, f"{workers} {tiling} {fan}")


def run(root: Node, workers: int, tiling: str | None, fan: int = 32) -> tuple[np.ndarray, list[int], Plan]:
    """The value, the bytes that each stage has moved, and the plan."""
    plan = planned(root, workers, tiling, fan)
    return *_run(plan, root), plan


def _run(plan: Plan, root: Node) -> tuple[np.ndarray, list[int]]:
    backend = SimulatedBackend(plan.workers)
    try:
        refs = [n.data for n in topological([root]) if n.data is not None]
        for ref, slot in zip(refs, plan.inputs, strict=True):
            backend.upload(ref, plan.slots[slot].tiling)
        (ref,), stats = backend.run(plan, refs)
        return backend.value(ref), [s.bytes_moved for s in stats.stages]
    finally:
        backend.close()


def recurrence_rows(y: np.ndarray, w: np.ndarray, axis: int) -> np.ndarray:
    """Row by row; a weight of 0 lets nothing pass."""
    y, w = np.moveaxis(y, axis, 0), np.moveaxis(w, axis, 0)
    out = np.array(y)
    for i in range(1, len(y)):
        with np.errstate(all="ignore"):
            out[i] = y[i] + np.where(w[i] == 0, 0.0, w[i] * out[i - 1])
    return np.moveaxis(out, 0, axis)


@pytest.mark.some(10)
@pytest.mark.parametrize("seed", range(40))
def test_random_scans(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        shape = tuple(rng.integers(1, 12, rng.integers(1, 4)))
        axis = int(rng.integers(len(shape)))
        tiling = TILINGS[rng.integers(len(TILINGS))]
        workers, fan = int(rng.integers(1, 10)), int(rng.integers(2, 5))
        x, w = rng.standard_normal((2, *shape))
        w[rng.random(shape) < 0.2] = 0
        name = rng.choice(["add", "multiply", "minimum", "fmax", "logaddexp", "cumsumprod", "user", "pair"])
        if name == "cumsumprod":
            x[rng.random(shape) < 0.1] = np.inf
            node, expected = build.recurrence(name, leaf(x), leaf(w), axis), recurrence_rows(x, w, axis)
        elif name == "pair":
            pair = UserFunction(Recurrence(np.maximum, np.add))
            node = build.recurrence(pair, leaf(x), leaf(w), axis)
            pairs = zip(np.moveaxis(x, axis, 0), np.moveaxis(w, axis, 0), strict=True)
            lines: list[np.ndarray] = []
            for a, b in pairs:
                lines.append(a if not lines else np.maximum(a, b + lines[-1]))
            expected = np.stack(lines, axis)
        elif name == "user":
            node, expected = build.scan(UserFunction(operator.add), leaf(x), axis), np.cumsum(x, axis)
        else:
            node, expected = build.scan(name, leaf(x), axis), getattr(np, name).accumulate(x, axis)
        value, moved, plan = run(node, workers, tiling, fan)
        assert value.dtype == expected.dtype
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9, err_msg=f"{name} {shape} {axis}")
        assert moved == list(plan.predicted_bytes), f"{name} {shape} {axis} {tiling} {workers} {fan}"


@pytest.mark.parametrize(("levels", "fan"), [(1, 32), (2, 8), (3, 4), (5, 2)])
def test_levels_of_many_parts(levels: int, fan: int) -> None:
    x = np.random.default_rng(0).standard_normal((100, 3))
    value, moved, plan = run(build.scan("add", leaf(x), 0), 32, "row", fan)
    np.testing.assert_allclose(value, np.cumsum(x, 0), rtol=1e-12, atol=1e-12)
    assert moved == list(plan.predicted_bytes)
    assert sum(isinstance(s, ScanTotals) for s in plan.stages) == levels
    assert sum(isinstance(s, ScanOffsets) for s in plan.stages) == levels


@pytest.mark.parametrize("tiling", ["row", "column"])
def test_one_row_a_part_moves_each_way(tiling: str) -> None:
    x = np.ones((40, 24))
    axis = 0 if tiling == "row" else 1
    row_bytes = x[0].nbytes if axis == 0 else x[:, 0].nbytes
    _, moved, plan = run(build.scan("add", leaf(x), axis), 4, tiling)
    assert sum(moved) == sum(plan.predicted_bytes) == 2 * 3 * row_bytes
    _, moved, _ = run(build.scan("add", leaf(x), 1 - axis), 4, tiling)
    assert sum(moved) == 0


@pytest.mark.parametrize(("workers", "levels"), [(64, 2), (1024, 2)])
def test_planned_bytes_and_places_of_large_clusters(workers: int, levels: int) -> None:
    """Nobody collects more than `fan` rows, and bytes grow with the parts, not with their square."""
    node = build.scan("add", leaf(np.broadcast_to(1.0, (1 << 16, 64))), 0)
    plan = planned(node, workers, "row")
    row = 64 * 8
    collected = [plan.slots[s.states] for s in plan.stages if isinstance(s, ScanOffsets)]
    assert len(collected) == levels
    assert all(slot.shape[1] / slot.tiling.parts[1] <= 32 for slot in collected)
    places = -(-workers // 32)
    assert sum(plan.predicted_bytes) <= 2 * row * (workers + places)


def test_an_operand_that_lies_elsewhere_moves_once() -> None:
    x = np.random.default_rng(1).standard_normal((64, 8))
    node = build.scan("add", build.slice_(leaf(x), (63, 0), (-1, 1), (64, 8)), 0)
    value, moved, plan = run(node, 4, "row")
    np.testing.assert_allclose(value, np.cumsum(x[::-1], 0), rtol=1e-12, atol=1e-12)
    assert moved == list(plan.predicted_bytes)


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize(("shape", "axis"), [((300,), 0), ((300, 3), 0), ((3, 300), 1), ((300, 40), 0)])
@pytest.mark.parametrize("often", [0.002, 0.05])
def test_infinite_weights_do_what_they_do_row_by_row(
    shape: tuple[int, ...], axis: int, often: float, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros, infinities and NaN anywhere, in chunks and blocks, on several workers and levels."""
    monkeypatch.setattr(compiled_scans, "SCAN_ELEMENTS", 1)
    monkeypatch.setattr(scans, "SCAN_PIECE", 1)
    monkeypatch.setattr(ordered, "_BLOCK", 16)
    rng = np.random.default_rng(5)
    y, w = np.rint(rng.standard_normal((2, *shape)) * 2)
    for a in (y, w):
        for odd in (np.inf, -np.inf, np.nan):
            a[rng.random(shape) < often] = odd
    w[w == 0] = 0.5
    w[rng.random(shape) < often] = 0
    with config.override(kernels=kernels):
        for dtype in ("f8", "f4"):
            u, v = y.astype(dtype), w.astype(dtype)
            for workers in (1, 7):
                node = build.recurrence("cumsumprod", leaf(u), leaf(v), axis)
                value, _, _ = run(node, workers, "row" if axis == 0 else "column", 2)
                rtol = 1e-9 if dtype == "f8" else 1e-4
                np.testing.assert_allclose(value, recurrence_rows(u, v, axis), rtol=rtol)


def test_the_states_of_chunks_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the forward cascade has found of a part's chunks, the part's own scan uses again."""
    monkeypatch.setattr(scans, "SCAN_PIECE", 16)
    found = []
    total = ordered.Ordered.total

    def counted(self: ordered.Ordered, operands: list, piece: tuple) -> tuple:
        found.append(piece)
        return total(self, operands, piece)

    monkeypatch.setattr(ordered.Ordered, "total", counted)
    x = np.random.default_rng(0).standard_normal((96, 4))
    value, _, _ = run(build.scan("add", leaf(x), 0), 3, "row")
    np.testing.assert_allclose(value, np.cumsum(x, 0), rtol=1e-12)
    assert len(found) == 3 * len(scans.cut_lines(((0, 32), (0, 4)), 0).chunks) == 24


def test_compensated_sums_are_exact_where_plain_ones_are_not() -> None:
    x = np.tile([1e16, 1.0, -1e16, 1.0], 50)
    value, _, _ = run(build.scan("compensated_add", leaf(x), 0), 3, "row", 2)
    exact = np.cumsum(x.astype(np.longdouble)).astype(float)
    np.testing.assert_array_equal(value, exact)
    assert not np.array_equal(np.cumsum(x), exact)
    x[20] = np.inf
    value, _, _ = run(build.scan("compensated_add", leaf(x), 0), 3, "row", 2)
    assert np.isinf(value[20:]).all()


@pytest.mark.some(4)
@pytest.mark.parametrize("tiling", ["row", "block", "single"])
@pytest.mark.parametrize("shape", [(400_000,), (3000, 100), (100, 3000), (60_000, 5)])
def test_large_tiles_are_compiled_behind_their_offsets(shape: tuple[int, ...], tiling: str) -> None:
    y, w = np.random.default_rng(9).random((2, *shape))
    w[np.random.default_rng(8).random(shape) < 0.1] = 0
    with config.override(kernels="compile"):
        for axis in range(len(shape)):
            value, _, _ = run(build.scan("add", leaf(y), axis), 3, tiling)
            np.testing.assert_allclose(value, np.cumsum(y, axis), rtol=1e-10)
            value, _, _ = run(build.recurrence("cumsumprod", leaf(y), leaf(w), axis), 3, tiling)
            if shape[axis] <= 3000:
                np.testing.assert_allclose(value, recurrence_rows(y, w, axis), rtol=1e-10)


@pytest.mark.some(3)
@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("shape", [(400_000,), (3000, 100), (100, 3000), (40, 50, 60)])
def test_large_scans_are_folded_block_by_block(
    shape: tuple[int, ...], kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_scans, "_FOLDED", 5000)
    x = np.random.default_rng(9).standard_normal(shape)
    with config.override(kernels=kernels):
        for axis in range(len(shape)):
            value = build.map_("multiply", build.scan("add", leaf(x), axis), leaf(x))
            for axes in (tuple(range(len(shape))), (axis,)):
                for workers in (1, 3):
                    root = build.fold("maximum", value, axes)
                    found, _, plan = run(root, workers, "row")
                    wanted = (np.cumsum(x, axis) * x).max(axes)
                    np.testing.assert_allclose(found, wanted, rtol=1e-10)
                    (tile,) = [s for s in plan.stages if isinstance(s, ScanTile)]
                    assert [w.reducer is None for w in tile.writes] == [False]


@pytest.mark.parametrize("dtype", ["i8", "f8"])
@pytest.mark.parametrize("shape", [(6, 5, 40), (96, 4), (500,)])
def test_scans_are_folded_in_units_whatever_pieces_their_totals_had(
    shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold that keeps last bits takes a tile as one piece, behind totals of many."""
    monkeypatch.setattr(scans, "SCAN_PIECE", 16)
    monkeypatch.setattr(scans, "_NEIGHBOURS", 1)
    x = np.random.default_rng(9).integers(0, 3, shape).astype(dtype)
    for axis in range(len(shape)):
        for tiling in ("row", "column", "block"):
            value = build.cast(build.scan("add", leaf(x), axis), np.dtype("f8"))
            settings = Settings(Profile(workers=3), tiling, reproducible=True)
            for fold in ("add", "logaddexp"):
                root = build.fold(fold, value, (len(shape) - 1,))
                found, _ = _run(lower(topological([root]), [root], settings, repr(settings)), root)
                wanted = getattr(np, fold).reduce(np.cumsum(x, axis).astype("f8"), len(shape) - 1)
                np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [4, 64])
def test_counted_bytes_and_levels_are_the_papers(workers: int) -> None:
    """Section 3.1: one row a part and level each way; counted from ranks' tasks, and moved when it runs."""
    found = cascades.counted(workers, columns=4)
    assert found.levels == found.formula_levels
    assert found.path_rows == found.formula_path_rows
    assert found.moved_bytes == found.formula_bytes
    _, moved, plan = run(build.scan("add", leaf(np.ones((workers * 64, 4))), 0), workers, "row")
    assert sum(moved) == sum(plan.predicted_bytes) == found.formula_bytes


def test_tiling_charges_the_cascades_rows() -> None:
    """An intermediate array that may lie anywhere is cut across the axis, which costs nothing."""
    x = build.map_("add", leaf(np.ones((4096, 1))), leaf(np.ones((1, 256))))
    for axis in (0, 1):
        plan = planned(build.fold("maximum", build.scan("add", x, axis), (0, 1)), 4)
        (tile,) = [s for s in plan.stages if isinstance(s, ScanTile)]
        assert tile.grid.parts[axis] == 1
        assert not any(isinstance(s, ScanTotals) for s in plan.stages)


def test_maps_around_a_cut_scan_move_no_more() -> None:
    """cumsum(x * y) / w with both arrays cut along the axis: the cascade's rows are all that moves."""
    x, y = np.random.default_rng(3).random((2, 64, 8))
    product = build.map_("multiply", leaf(x), leaf(y))
    root = build.map_("divide", build.scan("add", product, 0), leaf(y))
    value, moved, plan = run(root, 4, "row")
    np.testing.assert_allclose(value, np.cumsum(x * y, 0) / y, rtol=1e-12)
    assert moved == list(plan.predicted_bytes)
    assert sum(moved) == 2 * 3 * 8 * 8


def test_a_dying_input_is_scanned_in_place() -> None:
    """The second scan of two takes over the first one's tile; an input or a result stays what it is."""
    x = np.random.default_rng(3).random((60, 8))
    first = build.scan("add", leaf(x), 0)
    plan = planned(build.scan("multiply", first, 0), 1)
    inner, outer = (Program(plan, 0).tasks[i].dying for i in range(2))
    assert inner is None
    assert outer == 0
    value, _, _ = run(build.scan("multiply", first, 0), 3, "row")
    np.testing.assert_allclose(value, np.cumprod(np.cumsum(x, 0), 0), rtol=1e-9)


def test_a_tile_that_is_overwritten_is_nobodys_meanwhile(monkeypatch) -> None:
    """A job that stops then keeps no tile that is half another array's."""
    held = []

    class Looked(worker_scans._Scanning):
        def __init__(self, ex, run, *rest, **named):
            stage = run.plan.stages[run.index]
            held.append(ex.store.holds(run.keys[stage.reads[0].slot]))
            super().__init__(ex, run, *rest, **named)

    monkeypatch.setattr(worker_scans, "_Scanning", Looked)
    first = build.scan("add", leaf(np.random.default_rng(3).random((60, 8))), 1)
    run(build.scan("multiply", first, 1), 1, "row")
    assert held == [True, False]


def test_a_product_of_a_scan_is_a_stage_of_its_own() -> None:
    """A scan's pass stores or folds its value; what multiplies it with another array reads it."""
    x, y = np.random.default_rng(4).random((2, 30))
    value, _, _ = run(
        build.contract(build.scan("add", leaf(x), 0), leaf(y), (0,), (0,), (), x.dtype), 3, "row"
    )
    np.testing.assert_allclose(value, np.cumsum(x) @ y, rtol=1e-12)


@pytest.mark.parametrize("fold", ["maximum", "add", None])
@pytest.mark.parametrize("reproducible", [False, True])
def test_what_is_folded_is_scanned_in_blocks_that_stay_in_the_cache(monkeypatch, fold, reproducible) -> None:
    """But where last bits are kept: there a part is scanned as NumPy scans it."""
    x, blocks = np.random.default_rng(0).random((60, 7)), Mock(side_effect=scans.blocks_along)
    monkeypatch.setattr(worker_scans, "_FOLDED", 70)
    monkeypatch.setattr(worker_scans, "blocks_along", blocks)
    root = build.scan("add", leaf(x), 0)
    root = root if fold is None else build.fold(fold, root, (0,))
    settings = Settings(Profile(workers=2), "row", reproducible=reproducible)
    value, _ = _run(lower(topological([root]), [root], settings, "folded"), root)
    expected = np.cumsum(x, 0) if fold is None else getattr(np, fold).reduce(np.cumsum(x, 0))
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    steps = {call.args[2] for call in blocks.call_args_list}
    assert steps == ({0} if reproducible or fold is None else {10})
