"""What every kind of stage says of itself, and who has to know it."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import fields

from spartan_ng.arrays import Tiling
from spartan_ng.plan import rows, stages
from spartan_ng.plan.rows import Axis, Read, Row, Slot, Write
from spartan_ng.plan.stages import Combine, Fused, Pass, ScanTotals, SortParts, Stage
from spartan_ng.wire import plans, values
from spartan_ng.worker.scheduling.shares import _SHARES
from spartan_ng.worker.stages.stages import handler

KINDS = [kind for name in stages.__all__ if (kind := getattr(stages, name)) not in (Stage, Pass)]
F8 = np.dtype(float)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_names_its_fields_that_are_read_and_written(kind):
    types = {f.name: str(f.type) for f in fields(kind)}
    assert {*kind.READS, *kind.WRITES} <= {*types}
    assert not {*kind.READS} & {*kind.WRITES}
    for name, said in types.items():
        if "Read" in said:
            assert name in kind.READS
        if "Write" in said:
            assert name in kind.WRITES


@pytest.mark.parametrize("kind", KINDS)
def test_workers_and_messages_know_every_kind(kind):
    assert kind in _SHARES
    assert callable(handler(kind))
    assert plans.__name__ == "spartan_ng.wire.plans"  # which registers them
    assert values._registered[kind.__name__] is kind


def plain(slot: int, *shape: int) -> Read:
    axes = tuple(Axis(d, 0, 1, n) for d, n in enumerate(shape))
    order = tuple(range(len(shape)))
    return Read(slot, axes, order, shape, order)


def test_a_finish_writes_in_place_of_its_stage_and_reads_after_it():
    add = Row("map", "add", (0, 1), (), F8, (4,), (0,))
    fold = Row("fold", "add", (0,), ((1,),), F8, (4,), (0,))
    grid = Tiling.single(2)
    finish = Fused(
        "f", (4,), Tiling.single(1), (plain(3, 4), plain(rows.VALUE, 4)), (add,), (Write((7,), 2, (0,)),)
    )
    fused = Fused("a", (4, 5), grid, (plain(0, 4, 5),), (), (Write((9,), 0, (0,), fold),), finish=finish)
    assert (fused.read_slots(), fused.written_slots()) == ((0, 3), (7,))
    assert fused.operators() == ("fold add", "add")
    combine = Combine("c", fold, (5, 6, 5), 1, 7, finish)
    assert (combine.read_slots(), combine.written_slots()) == ((5, 6, 3), (7,))
    assert fused.views() == (plain(0, 4, 5),)
    assert not combine.views()


@pytest.mark.parametrize("indices", [None, 2])
def test_slots_that_are_not_asked_for_are_none(indices):
    stage = SortParts("s", (9,), Tiling.single(1), (plain(0, 9),), (), 1, indices)
    assert stage.read_slots() == (0,)
    assert stage.written_slots() == ((1,) if indices is None else (1, 2))


def test_the_states_of_a_scan_s_parts_cost_what_goes_over_them():
    """The pass for totals does all that the scan's own does before it stores."""
    n = 1000
    row = Row("map", "exp", (0,), (), F8, (n,), (0,))
    slots = (Slot((n,), F8, Tiling.grid(4)), Slot((1, 4), F8, Tiling.grid(1, 4)))
    without = ScanTotals("t", (n,), Tiling.grid(4), (plain(0, n),), (), "add", 0, (0,), 1, False)
    with_map = ScanTotals("t", (n,), Tiling.grid(4), (plain(0, n),), (row,), "add", 0, (1,), 1, False)
    mapped = Fused("m", (n,), Tiling.grid(4), (plain(0, n),), (row,), (Write((1,), 1, (0,)),))
    assert without.operations(slots) >= n
    assert with_map.operations(slots) == without.operations(slots) + mapped.operations(slots)
