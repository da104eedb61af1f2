"""Random scans against NumPy or a row-by-row reference: operations, axes, tilings, levels, blocks and maps.

`SPARTAN_NG_SCAN_CASES=2000 pytest --whole tests/worker/test_random_scans.py` runs that many cases.
"""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks.simulated import SimulatedBackend
from spartan_ng.arrays import ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.kernels import ordered, scans
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.scans import Recurrence
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from spartan_ng.optimizer.rewrite.constants import VALUE_PASSES
from spartan_ng.plan.lower import lower
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import ScanTotals
from spartan_ng.worker.stages import scans as worker_scans
from tests.sampling import Some

CASES = int(os.environ.get("SPARTAN_NG_SCAN_CASES", "200"))
SHARDS = 20
NAMES = ["add", "multiply", "minimum", "maximum", "fmin", "fmax", "logaddexp", "compensated_add"]
NAMES += ["cumsumprod", "user", "pair", "integers", "segmented_add", "segmented_maximum"]
LEVELS = [0, 1, 1, 1, 2, 2, 2, 3, 3, 4]


@dataclass(frozen=True)
class Case:
    """One random scan."""

    name: str
    shape: tuple[int, ...]
    axis: int
    tiling: str | None
    workers: int
    fan: int
    maps: tuple[bool, bool]
    stored: bool = True
    folds: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """What is asked for beside the values (or, where they are not stored, alone)."""


def drawn(rng: np.random.Generator, number: int) -> Case:
    """A case; each hundred has deep cascades, empty arrays and arrays of one row among them."""
    shape = [int(n) for n in rng.integers(1, 14, rng.integers(1, 4))]
    axis = int(rng.integers(len(shape)))
    levels = {0: 5, 1: 6, 2: 7}.get(number % 100, LEVELS[rng.integers(len(LEVELS))])
    fan = 2 if levels > 3 else int(rng.integers(2, 5))
    workers = 1 if levels == 0 else int(rng.integers(fan ** (levels - 1) + 1, fan**levels + 1))
    tiling = ["row", "column", "block", "duplicate", None][rng.integers(5)]
    if levels > 3:
        shape, axis, tiling = [workers + int(rng.integers(9)), *shape[1:2]], 0, "row"
    elif rng.random() < 0.5:
        shape[axis] = max(shape[axis], workers)
        tiling = "row" if axis == 0 else "column" if axis == 1 else tiling
    if number % 10 == 7:
        shape[axis] = 1
    if number % 20 == 9:
        shape[int(rng.integers(len(shape)))] = 0
    name = NAMES[rng.integers(len(NAMES))]
    maps = bool(rng.random() < 0.4), bool(rng.random() < 0.4)
    folds = []
    for _ in range(0 if 0 in shape else rng.choice([0, 1, 2], p=[0.6, 0.2, 0.2])):
        axes = tuple(d for d in range(len(shape)) if rng.random() < 0.6) or (axis,)
        folds.append((str(rng.choice(["minimum", "maximum"])), axes))
    stored = not folds or bool(rng.random() < 0.5)
    return Case(name, tuple(shape), axis, tiling, workers, fan, maps, stored, tuple(dict.fromkeys(folds)))


def leaf(x: np.ndarray) -> Node:
    return build.data(ArrayRef(x.shape, x.dtype, value=x))


def by_rows(step, *lines: np.ndarray) -> np.ndarray:
    """z_i = step(line_i..., z_(i-1)) along axis 0."""
    out = np.array(lines[0])
    for i in range(1, len(out)):
        with np.errstate(all="ignore"):
            out[i] = step(*(line[i] for line in lines), out[i - 1])
    return out


def scan_of(case: Case, x: Node, w: Node) -> Node:
    if case.name == "cumsumprod" or case.name.startswith("segmented"):
        return build.recurrence(case.name, x, w, case.axis)
    if case.name == "pair":
        return build.recurrence(UserFunction(Recurrence(np.maximum, np.add)), x, w, case.axis)
    if case.name == "user":
        return build.scan(UserFunction(operator.add), x, case.axis)
    return build.scan("add" if case.name == "integers" else case.name, x, case.axis)


def expected_of(case: Case, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x, w = np.moveaxis(x, case.axis, 0), np.moveaxis(w, case.axis, 0)
    if case.name == "cumsumprod":
        found = by_rows(lambda y, w, z: y + np.where(w == 0, 0.0, w * z), x, w)
    elif case.name == "pair":
        found = by_rows(lambda y, w, z: np.maximum(y, w + z), x, w)
    elif case.name.startswith("segmented"):
        function = getattr(np, case.name.removeprefix("segmented_"))
        found = by_rows(lambda y, w, z: np.where(w != 0, y, function(z, y)), x, w)
    else:
        name = {"user": "add", "integers": "add", "compensated_add": "add"}.get(case.name, case.name)
        with np.errstate(all="ignore"):
            found = getattr(np, name).accumulate(x, 0)
    return np.moveaxis(found, 0, case.axis)


def operands(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """What is scanned, and weights."""
    if case.name == "integers":
        x = rng.integers(-(2**62), 2**62, case.shape)
        return x, x
    x, w = rng.standard_normal((2, *case.shape))
    if case.name == "cumsumprod":
        if rng.random() < 0.5:  # small whole numbers, so that sums are exactly 0
            x, w = np.rint(x), np.rint(w)
        odd = [np.inf, -np.inf, np.nan]
        for a, often in ((x, 0.05), (w, 0.1)):
            a[...] = np.where(
                rng.random(case.shape) < often, rng.choice(odd, case.shape, p=[0.5, 0.4, 0.1]), a
            )
        w[rng.random(case.shape) < rng.choice([0.02, 0.3])] = 0
    elif case.name.startswith("segmented"):
        w = (w > 0.8).astype(float)
        x[rng.random(case.shape) < 0.05] = np.inf
        x[rng.random(case.shape) < 0.03] = np.nan
    elif case.name in ("fmin", "fmax", "minimum", "maximum", "add"):
        x[rng.random(case.shape) < 0.03] = np.nan
    return x, w


def check(case: Case, rng: np.random.Generator) -> int:
    """Run the case; the number of its levels."""
    x, w = operands(case, rng)
    before, behind = case.maps
    a, b = leaf(x), leaf(w)
    scanned, seen = a, x
    if before:
        scanned, seen = build.map_("absolute", a), abs(x)
    root, expected = scan_of(case, scanned, b), expected_of(case, seen, w)
    if behind:
        with np.errstate(invalid="ignore"):
            root, expected = build.map_("subtract", root, b), expected - w
    asked = [(root, expected)] if case.stored else []
    asked += [(build.fold(f, root, a), getattr(np, f).reduce(expected, a)) for f, a in case.folds]
    roots = run_passes(PASSES, run_passes(VALUE_PASSES, [r for r, _ in asked], ()), ())
    if any(r.op is Op.DATA for r in roots):
        assert [r.shape for r in roots] == [e.shape for _, e in asked]
        return 0
    settings = Settings(Profile(workers=case.workers), case.tiling, scan_fan=case.fan)
    plan = lower(topological(roots), roots, settings, str(case))
    backend = SimulatedBackend(case.workers)
    try:
        refs = [n.data for n in topological(roots) if n.data is not None]
        for ref, slot in zip(refs, plan.inputs, strict=True):
            backend.upload(ref, plan.slots[slot].tiling)
        found, stats = backend.run(plan, refs)
        values = [backend.value(ref) for ref in found]
    finally:
        backend.close()
    for value, (_, wanted) in zip(values, asked, strict=True):
        assert value.dtype == wanted.dtype, case
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9, err_msg=f"{case}")
    assert [s.bytes_moved for s in stats.stages] == list(plan.predicted_bytes), case
    return sum(isinstance(s, ScanTotals) for s in plan.stages)


@pytest.mark.some(8)
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.timeout(3600)
def test_random_cases(shard: int, some: Some, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in some(range(shard, CASES, SHARDS), 1):
        rng = np.random.default_rng(number)
        case = drawn(rng, number)
        monkeypatch.setattr(ordered, "_BLOCK", int(rng.choice([1, 5, 40, 1 << 15])))
        monkeypatch.setattr(worker_scans, "_FOLDED", int(rng.choice([1, 7, 1 << 17])))
        monkeypatch.setattr(scans, "SCAN_PIECE", int(rng.choice([1, 1 << 17])))
        monkeypatch.setattr(scans, "_NEIGHBOURS", int(rng.choice([1, 64])))
        levels = check(case, rng)
        if case.tiling == "row" and case.axis == 0 and number % 100 in (0, 1, 2) and case.shape[0] > 1:
            assert levels == {0: 5, 1: 6, 2: 7}[number % 100], case


def test_two_elements_a_stride_apart() -> None:
    """NumPy's negative is wrong on them with a strided `out`; 9 x 3 workers have such blocks of 10 x 8."""
    case = Case("user", (10, 1, 8), 1, "block", 27, 3, (True, False))
    check(case, np.random.default_rng(0))
