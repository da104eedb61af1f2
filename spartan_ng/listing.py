"""The listing of a plan: for each stage what the first worker runs, as it would be run.

The tasks are those of the worker, and so are the kernels; in the place of tiles stand arrays of their shapes
and strides without elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from spartan_ng.arrays import box_shape
from spartan_ng.arrays.sparse import csr_array
from spartan_ng.costs.choices import HOT_S
from spartan_ng.kernels.compiled.cache import kernel_name
from spartan_ng.kernels.compiled.compile import Kernel
from spartan_ng.kernels.compiled.scans import prepare_scan
from spartan_ng.kernels.compiled.select import explain_plan_tiers
from spartan_ng.kernels.listing import body_text
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stages import Combine, Fused, Pass, ScanTotals, Stage
from spartan_ng.units import shape_text, time_text
from spartan_ng.worker.memory.regions import PiecedOperand
from spartan_ng.worker.scheduling.program import Program
from spartan_ng.worker.scheduling.shares import Task

_RANK = 0


def list_stages(plan: Plan) -> list[str]:
    """What runs each stage, in the plan's order."""
    program, tiers = Program(plan, _RANK), explain_plan_tiers(plan)
    return [
        "\n".join(_listed(plan, i, stage, task, tiers.get(i, ())))
        for i, (stage, task) in enumerate(zip(plan.stages, program.tasks, strict=True))
    ]


def _listed(plan: Plan, number: int, stage: Stage, task: Task, tiers: tuple[str, ...]) -> Iterator[str]:
    yield f"# stage {number}: {' > '.join(stage.operators())}"
    if not isinstance(stage, Pass):
        reads = ", ".join(f"%{slot}" for slot in stage.read_slots()) or "nothing"
        writes = ", ".join(f"%{slot}" for slot in stage.written_slots())
        yield f"{writes} = {type(stage).__name__} of {reads}"
    elif task.box is None:
        yield from body_text(stage)
        yield "# the first worker has no part of it"
    else:
        task = task.parts[0] if task.parts else task
        yield from _pass(stage, task, [_stand_in(plan, o) for o in task.operands], tiers)
    finish = stage.finish
    if finish is not None and task.finish is not None and task.finish.box is not None:
        yield "# and on the value, before it is stored"
        operands = [_stand_in(plan, o) for o in task.finish.operands]
        value = _unfilled(box_shape(task.finish.box), _value_dtype(stage))
        yield from _pass(finish, task.finish, [*operands, value], ())


def _pass(stage: Pass, task: Task, operands: list[Any], tiers: tuple[str, ...]) -> Iterator[str]:
    """The steps of a pass over blocks, and the kernels that take their place."""
    shown: Any = stage
    if task.tier is not None and task.body is not None and _are_known(operands):
        shown = task.tier.interpreted(task.body, operands, {}).stage
    yield from body_text(shown)
    if task.sizes:
        yield f"# in blocks of {shape_text(task.sizes)} of {shape_text(box_shape(task.box or ()))}"
    yield from (f"# {tier}" for tier in tiers)
    for kernel in kernels_of(stage, task, operands):
        yield f"# {kernel_name(kernel.source)}, {_state(kernel)}:"
        title, _, functions = kernel.source.partition("\n@compiled\n")  # between them are imports
        yield f"{title.partition(chr(10))[0]}\n\n@compiled\n{functions.rstrip()}"


def _state(kernel: Kernel) -> str:
    if kernel.function is not None:
        return "compiled"
    if kernel.failure:
        return f"which does not compile: {kernel.reason}"
    return f"compiled once the stage has been interpreted for {time_text(HOT_S)}"


def kernels_of(stage: Pass, task: Task, operands: list[Any]) -> list[Kernel]:
    """The kernels made for a task over these operands, in the order in which they run."""
    if task.ordered is not None:
        ordered, is_total = task.ordered, isinstance(stage, ScanTotals)
        if ordered.exact or any(type(o) is not np.ndarray for o in operands):
            return []
        out = None if is_total else _unfilled(box_shape(ordered.box), ordered.rows[-1].dtype)
        scan = prepare_scan(ordered.reads, ordered.rows, operands, out, ordered.cut)
        if scan is None:
            return []
        return scan.wanted(values=not is_total, totals=is_total or ordered.cut.in_chunks)
    if task.tier is None or not _are_known(operands):
        return []
    choice = task.tier.prepared(operands)
    return [] if choice is None else choice.kernels


def _stand_in(plan: Plan, operand: PiecedOperand) -> Any:
    """An array laid out as the operand will be, in memory that nobody reads; None for a compressed one."""
    slot, shape = plan.slots[operand.slot], operand.shape
    if slot.format == "compressed":
        return None
    if slot.format == "csr":
        return operand.present(csr_array(shape, dtype=slot.dtype))
    pieces = operand.pieces
    if len(pieces) == 1 and pieces[0].rank == _RANK and slot.chunks is None:
        tile = slot.tiling.box_on(slot.shape, _RANK)
        assert tile is not None, "a rank reads of tiles that there are"
        return operand.present(_unfilled(box_shape(tile), slot.dtype)[pieces[0].index])
    return operand.present(_unfilled(shape, slot.dtype))


def _are_known(operands: list[Any]) -> bool:
    """Whether none of them is compressed: what runs over those depends on how they turn out to be packed."""
    return all(o is not None for o in operands)


def _unfilled(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of this shape in C order over a single element."""
    sizes = [max(n, 1) for n in shape]
    strides = [*accumulate(reversed(sizes[1:]), mul, initial=dtype.itemsize)][::-1][: len(shape)]
    return as_strided(np.empty(1, dtype), shape, strides)


def _value_dtype(stage: Stage) -> np.dtype[Any]:
    """The dtype of the value that a finish reads."""
    if isinstance(stage, Combine):
        return stage.row.dtype
    assert isinstance(stage, Fused), "other stages have no finish"
    (write,) = stage.writes
    assert write.reducer is not None, "a finish follows a reduced value"
    return write.reducer.dtype
