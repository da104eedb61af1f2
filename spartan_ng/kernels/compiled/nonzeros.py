"""The source of a sampled body's kernel: a loop over the non-zeros of a run of stored rows.

They are taken in strips, however long the rows are: first the row of each non-zero, where one is needed,
and the dot products, one after the other, into buffers; then the body as a loop over the strip, which the
compiler vectorizes; then what the result needs. Lines of a dense array lie anywhere: those of non-zeros to
come are asked for ahead, as waiting for them would take longer than working on them.
A table has one line for each run of rows, with the numbers that `fields` names. Threads call the kernel with
the same table, and take its lines by a counter that they share, without Python in between; the call that
is done last adds the states of the lines, in their order.

"On Optimizing Operator Fusion Plans", section 2.2: the Outer template's skeleton over non-zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.kernels.compiled.cache import titled
from spartan_ng.kernels.compiled.emit import HEAD
from spartan_ng.kernels.compiled.formulas import expression
from spartan_ng.plan.rows import Row

STRIP = 64
"""Non-zeros that go through the body together."""
AHEAD = 8
"""How many non-zeros ahead a line of a dense array is asked for: a few hundred nanoseconds' work."""
CACHE_LINE = 64
"""Bytes that come from memory at once."""


class Side(Struct, frozen=True):
    """A dense operand, looked up at each non-zero, and the axes that it follows."""

    register: int
    code: str
    major: bool
    minor: bool


class Dot(Struct, frozen=True):
    """A matrix product, computed as dot products of two arrays' lines."""

    register: int
    code: str


class NonzeroEnding(Struct, frozen=True):
    """What becomes of the value of `register`, in the dtype `code`.

    `how` is "store", "sum" or "product" (with the lines of a dense array); the latter two keep the axis
    `kept`: "major" is that of the stored rows, "minor" the other, "" none.
    """

    how: str
    register: int
    code: str
    kept: str = ""


class SampledLoop(Struct, frozen=True):
    """A sampled body as a kernel sees it."""

    driver: int
    driver_code: str
    index_code: str
    sides: tuple[Side, ...]
    dots: tuple[Dot, ...]
    rows: tuple[tuple[int, Row], ...]
    ending: NonzeroEnding
    dtypes: tuple[np.dtype[Any], ...]
    """Of all registers."""

    @property
    def needs_rows(self) -> bool:
        """Whether anything depends on the stored row of a non-zero."""
        by_row = bool(self.dots) or any(s.major for s in self.sides)
        return by_row or self.ending.how == "product" or self.ending.kept == "major"

    @property
    def has_states(self) -> bool:
        """Whether the result is the sum of states, one for each run of rows."""
        return self.ending.how != "store" and self.ending.kept != "major"

    @property
    def fields(self) -> list[str]:
        """Names of the numbers of a table's line: all addresses, what lines differ in, and `numbers`.

        The first line says for all where the numbers of lines taken and done are counted (`counters_p`), how
        many lines a call takes at most, how often it looks whether other calls are done once no line is left
        (`patience`), and, of lines with states, where the call that is done last adds them, and how many
        elements it adds (`total_n`). `out_n` elements are the run's state, or its part of the result's lines.
        """
        return [*self.addresses, "most", "patience", "total_n", "lo", "hi", "out_n", *self.numbers]

    @property
    def addresses(self) -> list[str]:
        """Of the counters, the results, the driver's arrays, and the operands."""
        out = ["counters_p", "out_p", *(["total_p"] if self.has_states else [])]
        out += ["indptr_p", "indices_p", "data_p", *(f"g{k}_p" for k in range(len(self.sides)))]
        for k in range(len(self.dots)):
            out += [f"u{k}_p", f"v{k}_p"]
        return [*out, "w_p"] if self.ending.how == "product" else out

    @property
    def numbers(self) -> list[str]:
        """How operands lie in memory: byte strides, lengths, bytes of a line to ask for ahead."""
        out = [f"g{k}_{axis}" for k in range(len(self.sides)) for axis in ("major", "minor")]
        for k in range(len(self.dots)):
            out += [f"u{k}_s", f"v{k}_s", f"v{k}_ahead", f"n{k}"]
        return [*out, "w_s", "w_ahead", "wn"] if self.ending.how == "product" else out

    @property
    def lengths(self) -> list[str]:
        """The fields that are numbers of multiplications at a non-zero."""
        return [*(f"n{k}" for k in range(len(self.dots))), *(["wn"] if self.ending.how == "product" else [])]

    @property
    def looks_up(self) -> bool:
        """Whether the lines of a product at the end are those of the non-zeros' other axis."""
        return self.ending.how == "product" and self.ending.kept == "major"


def emit_sampled(loop: SampledLoop) -> str:
    """The source of the module whose `kernel(table)` runs the body on each line's rows."""
    body = [*_unpack(loop), *_strips(loop)]
    text = "\n".join("    " + line for line in body)
    at = {name: k for k, name in enumerate(loop.fields)}
    add = _ADD.format(code=loop.ending.code, **at) if loop.has_states else ""
    kernel = _KERNEL.format(add=_CALL if loop.has_states else "", **at)
    dots, maps = ["matmul"] * len(loop.dots), [str(row.fn) for _, row in loop.rows]
    title = " > ".join([*dots, *maps, loop.ending.how])
    return titled(f"{title}, at non-zeros", f"{HEAD}{_VISIT}{text}\n\n\n{add}{kernel}")


_VISIT = "@compiled\ndef visit(t):\n"
_ADD = """\
@compiled
def add(table):
    n = table[0, {total_n}]
    total = array_at(table[0, {total_p}], (n,), {code})
    total[:] = 0
    for b in range(table.shape[0]):
        state = array_at(table[b, {out_p}], (n,), {code})
        for k in range(n):
            total[k] += state[k]


"""
_CALL = "            add(table)\n"
_KERNEL = """\
@compiled
def kernel(table):
    count, taken, done = table.shape[0], table[0, {counters_p}], table[0, {counters_p}] + 8
    looks = 0
    for _ in range(table[0, {most}]):
        b = count_up(taken, 1)
        if b >= count:
            looks = table[0, {patience}]
            break
        visit(table[b])
        if count_up(done, 1) == count - 1:
{add}            count_up(done, 1)
    for _ in range(looks):
        if count_up(done, 0) > count:
            break
"""


def _unpack(loop: SampledLoop) -> list[str]:
    """Names for the fields of the table, arrays for the addresses, buffers."""
    out = [f"{name} = t[{k}]" for k, name in enumerate(loop.fields)]
    out += [
        f"indptr = array_at(indptr_p, (hi + 1,), {loop.index_code})",
        "r, s, end = lo, i8(indptr[lo]), i8(indptr[hi])",
        f"indices = array_at(indices_p, (end,), {loop.index_code})",
    ]
    out += [_buffer(f"d{k}", dot.code) for k, dot in enumerate(loop.dots)]
    out += [
        f"g{k} = load(g{k}_p, {side.code})"
        for k, side in enumerate(loop.sides)
        if not (side.major or side.minor)
    ]
    if loop.needs_rows:
        out.append(_buffer("rows", "i8"))
    ending = loop.ending
    if ending.how == "store":
        return out
    if _is_scattered(ending):
        out.append(_buffer("e", ending.code))
    return [*out, f"out = array_at(out_p, (out_n,), {ending.code})", "out[:] = 0"]


def _buffer(name: str, code: str) -> str:
    """A strip's values, in memory of the call's own."""
    return f"{name} = array_at(local({STRIP * np.dtype(code).itemsize}), ({STRIP},), {code})"


def _is_scattered(ending: NonzeroEnding) -> bool:
    """Whether values go to different places, one after the other."""
    return ending.how == "product" or (ending.how == "sum" and ending.kept != "")


def _strips(loop: SampledLoop) -> list[str]:
    """The loop over strips.

    A strip's arrays begin at the strip: of an index that is counted from 0 the compiler knows that it is not
    negative, which would be counted from the end, and reads neighbours together.
    """
    inside = [
        f"m = min(end - s, {STRIP})",
        *_strip("data", loop.driver_code, "values"),
        *_strip("indices", loop.index_code, "columns"),
    ]
    if loop.ending.how == "store":
        inside += _strip("out", loop.ending.code, "results")
    if loop.needs_rows:
        inside += [
            "i = 0",
            "while i < m:",
            "    stop = min(i8(indptr[r + 1]) - s, m)",
            "    while i < stop:",
            "        rows[i] = r",
            "        i += 1",
            "    if i < m:",
            "        r += 1",
        ]
    for k, dot in enumerate(loop.dots):
        inside += [
            "for i in range(m):",
            *_ask_ahead(f"v{k}"),
            f"    u = array_at(u{k}_p + rows[i] * u{k}_s, (n{k},), {dot.code})",
            f"    v = array_at(v{k}_p + i8(columns[i]) * v{k}_s, (n{k},), {dot.code})",
            f"    c{k} = {dot.code}(0)",
            f"    for k in range(n{k}):",
            f"        c{k} = multiply_add(c{k}, u[k], v[k])",
            f"    d{k}[i] = c{k}",
        ]
    if not _is_scattered(loop.ending):
        inside.append(f"part = {loop.ending.code}(0)")
    inside += [
        "for i in range(m):",
        *("    " + line for line in _element(loop)),
        *_finish(loop),
        "s += m",
    ]
    return ["while s < end:", *("    " + line for line in inside)]


def _strip(array: str, code: str, name: str) -> list[str]:
    """An array of a strip's elements."""
    return [f"{name} = array_at({array}_p + s * {code[1:]}, (m,), {code})"]


def _ask_ahead(name: str) -> list[str]:
    """Ask for the line of a non-zero to come; no bytes of it where the array is in the cache anyway."""
    return [
        f"    far = {name}_p + i8(indices[min(s + i + {AHEAD}, end - 1)]) * {name}_s",
        f"    for k in range(0, {name}_ahead, {CACHE_LINE}):",
        "        prefetch(far + k)",
    ]


def _finish(loop: SampledLoop) -> list[str]:
    """What becomes of a strip's values."""
    ending = loop.ending
    place = "rows[i]" if ending.kept == "major" else "i8(columns[i])"
    if ending.kept == "major":
        place += " - lo"
    if ending.how == "product":
        line = "i8(columns[i])" if loop.looks_up else "rows[i]"
        return [
            "for i in range(m):",
            *(_ask_ahead("w") if loop.looks_up else []),
            f"    w = array_at(w_p + {line} * w_s, (wn,), {ending.code})",
            f"    y = array_at(out_p + ({place}) * wn * {ending.code[1:]}, (wn,), {ending.code})",
            "    for k in range(wn):",
            "        y[k] = multiply_add(y[k], e[i], w[k])",
        ]
    if _is_scattered(ending):
        return [
            "for i in range(m):",
            f"    here = array_at(out_p + ({place}) * {ending.code[1:]}, (1,), {ending.code})",
            "    here[0] += e[i]",
        ]
    return ["out[0] += part"] if ending.how == "sum" else []


def _element(loop: SampledLoop) -> list[str]:
    """One non-zero."""
    value = {loop.driver: "x"}
    out = ["x = values[i]"]
    for k, dot in enumerate(loop.dots):
        value[dot.register] = f"d{k}[i]"
    for k, side in enumerate(loop.sides):
        value[side.register] = f"g{k}"
        along = [f"rows[i] * g{k}_major"] * side.major + [f"i8(columns[i]) * g{k}_minor"] * side.minor
        if along:
            out.append(f"g{k} = load({' + '.join([f'g{k}_p', *along])}, {side.code})")
    for k, (register, row) in enumerate(loop.rows):
        names, dtypes = [value[a] for a in row.args], [loop.dtypes[a] for a in row.args]
        out.append(f"r{k} = {expression(row, names, dtypes)}")
        value[register] = f"r{k}"
    ending = loop.ending
    result = f"{ending.code}({value[ending.register]})" if ending.code != "b1" else value[ending.register]
    if ending.how == "store":
        out.append(f"results[i] = {result}")
    elif _is_scattered(ending):
        out.append(f"e[i] = {result}")
    else:
        total = "accumulate_add(part, {})" if ending.code[0] == "f" else "part + {}"
        out.append(f"part = {total.format(result)}")
    return out
