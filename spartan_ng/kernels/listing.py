"""A stage's body as text for people: one line a register, then what becomes of them."""

from __future__ import annotations

from string import ascii_letters

from spartan_ng.arrays import WHOLE
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import VALUE, Axis, Read, Row, Write
from spartan_ng.plan.stages import Pass, ScanTotals, SortParts
from spartan_ng.units import shape_text

_MOST = 72
"""Characters of a row's parameters; keys of random numbers and the like are longer."""


def body_text(stage: Pass) -> list[str]:
    """The reads, rows and results of a stage, a line each: `r2 = multiply(r0, r1)`."""
    values: list[tuple[str, Read | Row]] = [(read_text(read), read) for read in stage.reads]
    values += [(row_text(row), row) for row in stage.rows]
    width = max((len(text) for text, _ in values), default=0)
    lines = []
    for i, (text, value) in enumerate(values):
        dtype = f"{value.dtype} " if isinstance(value, Row) else ""
        lines.append(f"r{i} = {text:<{width}}  {dtype}{shape_text(value.shape)}")
    if isinstance(stage, ScanTotals):
        return [*lines, f"%{stage.slot} = the state of scan {stage.fn}({_registers(stage.args)})"]
    if isinstance(stage, SortParts):
        written = ", ".join(f"%{slot}" for slot in stage.written_slots())
        return [*lines, f"{written} = r{len(values) - 1}, sorted"]
    return [*lines, *(_write_text(write) for write in stage.results())]


def read_text(read: Read) -> str:
    """A view of a slot in the array's own notation, `%0[::2].T` for instance."""
    text = "the value" if read.slot == VALUE else f"%{read.slot}"
    cuts = [_axis_text(axis) for axis in read.axes]
    if any(cut != ":" for cut in cuts):
        text += f"[{', '.join(cuts)}]"
    if read.order != tuple(range(len(read.axes))):
        text += f".transpose({', '.join('new' if o < 0 else str(o) for o in read.order)})"
    return f"{text}, stretched" if read.expand else text


def row_text(row: Row) -> str:
    """A row as a call, with its parameters behind a semicolon."""
    if row.kind == "program":
        return f'numexpr "{row.fn}" of {_registers(row.args)}'
    if row.kind == "inside":
        return f"part of a numexpr program ({row.fn})"
    if row.kind == "contract":
        return f"matmul({_registers(row.args)}; {_labels(row)})"
    where = f" at {row.fn.origin}" if isinstance(row.fn, UserFunction) else ""
    params = f"; {', '.join(map(str, row.params))}" if row.params else ""
    params = params if len(params) <= _MOST else params[: _MOST - 3] + "..."
    return f"{row_name(row)}({_registers(row.args)}{params}){where}"


def row_name(row: Row) -> str:
    """What a row does, without its operands."""
    if row.kind == "map":
        return str(row.fn)
    return row.kind if row.fn in (None, row.kind) else f"{row.kind} {row.fn}"


def _write_text(write: Write) -> str:
    slots = ", ".join(f"%{slot}" for slot in write.slots)
    if write.reducer is None:
        return f"{slots} = r{write.register}"
    states = ", states for a stage that combines them" if write.partial else ""
    return f"{slots} = {row_text(write.reducer)} over all blocks{states}"


def _registers(numbers: tuple[int, ...]) -> str:
    return ", ".join(f"r{n}" for n in numbers)


def _axis_text(axis: Axis) -> str:
    if (axis.start, axis.step) == (0, 1):
        return ":"
    if axis.label == WHOLE and axis.size == 1:
        return str(axis.start)
    step = "" if axis.step == 1 else f":{axis.step}"
    return f"{axis.start or ''}:{step}"


def _labels(row: Row) -> str:
    """A product's axes as `einsum` has them."""
    a, b, out = ("".join(ascii_letters[d % 52] for d in labels) for labels in row.params)
    return f"{a},{b}->{out}"
