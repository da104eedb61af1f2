"""A plan as a picture: stages as boxes with their operators, arrays as pills with their tilings.

Scalars that a program brings are left out. Plain SVG with its own style, so that it looks the same in a
notebook, a browser and a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from spartan_ng.plan.layout import Picture, PlacedBox, place
from spartan_ng.units import shape_text, size_text, time_text

if TYPE_CHECKING:  # `explanation` draws with this module
    from spartan_ng.plan.explanation import ExplainedSlot, ExplainedStage, Explanation

MARGIN = 18.0
LETTER = 6.7
"""Width of a letter of the picture's 11 px monospaced type, in pixels."""
MOST_STAGES = 150
"""Larger plans are drawn up to here; the text has them whole."""

_COLOURS = {
    "fused": ("#eef4ff", "#3b6fd4"),
    "product": ("#f3eefe", "#7a4fd0"),
    "combine": ("#fff4e5", "#d98a1f"),
    "accumulate": ("#fff4e5", "#d98a1f"),
    "scantotals": ("#eafaf1", "#2b9a66"),
    "scanoffsets": ("#eafaf1", "#2b9a66"),
    "scantile": ("#eafaf1", "#2b9a66"),
    "assemble": ("#f4f5f7", "#7b8794"),
    "join": ("#fdeef4", "#c2417c"),
    "sortparts": ("#fdeef4", "#c2417c"),
    "mergeparts": ("#fdeef4", "#c2417c"),
}
_ARRAY_COLOURS = {
    "input": ("#ffffff", "#374151"),
    "both": ("#ffffff", "#374151"),
    "output": ("#374151", "#374151"),
    "between": ("#f4f5f7", "#c3cad4"),
    "copy": ("#f4f5f7", "#c3cad4"),
}
KINDS, ROLES = frozenset(_COLOURS), frozenset(_ARRAY_COLOURS)
"""The stages and arrays that can be drawn."""
_CHIP_HEIGHT, _LINE, _PAD = 18.0, 15.0, 10.0
_CHIPS_WIDTH = 300.0


def draw_plan(explanation: Explanation, title: str) -> str:
    """The SVG picture of an explained plan, under a title."""
    stages = explanation.stages[:MOST_STAGES]
    scalars = {s.number for s in explanation.slots if s.is_scalar}
    shown = sorted({n for s in stages for n in (*s.reads, *s.writes)} - scalars)
    order = _topological(stages, shown)
    boxes = [_array_box(explanation.slots[n]) if is_array else _stage_box(stages[n]) for is_array, n in order]
    at = {key: i for i, key in enumerate(order)}
    edges = [(at[True, r], at[False, s.number]) for s in stages for r in s.reads if r not in scalars]
    edges += [(at[False, s.number], at[True, w]) for s in stages for w in s.writes]
    drawing = place(boxes, edges)
    parts = [_curve(boxes[a], boxes[b], route) for (a, b), route in zip(edges, drawing.routes, strict=True)]
    for (is_array, n), box in zip(order, boxes, strict=True):
        if is_array:
            parts.extend(_array(explanation.slots[n], box))
        else:
            parts.append(f'<g data-stage="{n}">{"".join(_stage(stages[n], box))}</g>')
    return _frame(title, len(explanation.stages) - MOST_STAGES, "".join(parts), drawing)


def _topological(stages: tuple[ExplainedStage, ...], shown: list[int]) -> list[tuple[bool, int]]:
    """(is array, number): an array before the stages that read it, after the one that writes it."""
    written = {w for s in stages for w in s.writes}
    order = [(True, n) for n in shown if n not in written]
    for stage in stages:
        order.append((False, stage.number))
        order.extend((True, w) for w in stage.writes)
    return order


def _frame(title: str, hidden: int, content: str, drawing: Picture) -> str:
    title = escape(title.replace("; ", "  ·  "))
    note = f"  ·  {hidden} more stages are not drawn" if hidden > 0 else ""
    full_width = max(drawing.width, len(title) * LETTER * 1.1) + 2 * MARGIN
    full_height = drawing.height + 2 * MARGIN + 26
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{full_width:.0f}" height="{full_height:.0f}" '
        f'viewBox="0 0 {full_width:.0f} {full_height:.0f}" role="img" aria-label="{title}" '
        'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="11">'
        '<defs><marker id="spartan-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0.8 L8,4 L0,7.2 z" fill="#9aa5b1"/></marker></defs>'
        f'<rect width="100%" height="100%" rx="8" fill="#ffffff"/>'
        f'<text x="{MARGIN}" y="{MARGIN + 6}" font-size="12" font-weight="600" fill="#1f2933">'
        f"{title}{note}</text>"
        f'<g transform="translate({MARGIN},{MARGIN + 26})">{content}</g></svg>'
    )


# --- arrays ----------------------------------------------------------------------------------------


def _array_text(slot: ExplainedSlot) -> tuple[str, str]:
    kind = slot.dtype if slot.format == "dense" else f"{slot.dtype} {slot.format}"
    name = slot.name or f"%{slot.number}"
    return f"{name}  {kind} {shape_text(slot.shape)}", slot.tiling


def _array_box(slot: ExplainedSlot) -> PlacedBox:
    text, tiling = _array_text(slot)
    return PlacedBox((len(text) + len(tiling) + 3) * LETTER + 22, 22)


def _array(slot: ExplainedSlot, box: PlacedBox) -> Iterator[str]:
    text, tiling = _array_text(slot)
    fill, line = _ARRAY_COLOURS[slot.role]
    ink = "#ffffff" if slot.role == "output" else "#1f2933"
    left = box.x - box.width / 2
    yield _rect(left, box.y, box.width, box.height, 11, fill, line)
    yield _text(left + 12, box.y + 15, text, ink)
    shade = "#cbd5e1" if slot.role == "output" else "#b45309"
    yield _text(left + box.width - 12, box.y + 15, tiling, shade, anchor="end", weight="600")


# --- stages ----------------------------------------------------------------------------------------


def _chips(stage: ExplainedStage) -> list[list[str]]:
    """The operators in rows that are at most `_CHIPS_WIDTH` wide."""
    rows: list[list[str]] = [[]]
    used = 0.0
    for name in _shortened(stage.operators):
        width = _chip_width(name)
        if rows[-1] and used + width > _CHIPS_WIDTH:
            rows.append([])
            used = 0.0
        rows[-1].append(name)
        used += width + 5
    return rows


def _shortened(names: tuple[str, ...]) -> list[str]:
    """Operators in order, the middle of very long runs left out, long names cut."""
    names = tuple(map(_short, names))
    return list(names) if len(names) <= 24 else [*names[:12], f"… {len(names) - 20} more …", *names[-8:]]


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _chip_width(name: str) -> float:
    return len(name) * LETTER + 12


def _lines(stage: ExplainedStage) -> list[tuple[str, str, str]]:
    """(text, colour, weight) of each line under the operators."""
    lines = [
        (f"over {shape_text(stage.domain)}  cut {stage.grid}", "#52606d", "400"),
        (
            f"predicted {size_text(stage.predicted_bytes)}, {time_text(stage.predicted_seconds)}",
            "#52606d",
            "400",
        ),
    ]
    if stage.written:
        lines.insert(0, (_short(stage.written), "#1d4ed8", "400"))
    if stage.measured_seconds is not None:
        text = f"measured  {size_text(stage.measured_bytes or 0)}, {time_text(stage.measured_seconds)}"
        lines.append((text, "#1f2933", "600"))
    return lines


def _stage_box(stage: ExplainedStage) -> PlacedBox:
    rows = _chips(stage)
    chips = max(sum(_chip_width(n) + 5 for n in row) - 5 for row in rows)
    lines = _lines(stage)
    width = max(chips, max(len(text) for text, _, _ in lines) * LETTER, len(stage.kind) * LETTER + 40)
    height = 2 * _PAD + len(rows) * (_CHIP_HEIGHT + 4) + len(lines) * _LINE + 2
    return PlacedBox(width + 2 * _PAD, height)


def _stage(stage: ExplainedStage, box: PlacedBox) -> Iterator[str]:
    kind = "product" if stage.kind == "fused" and "matmul" in stage.operators else stage.kind
    fill, line = _COLOURS[kind]
    left = box.x - box.width / 2
    yield _rect(left, box.y, box.width, box.height, 7, fill, line, stroke=1.4)
    y = box.y + _PAD
    for row in _chips(stage):
        x = left + _PAD
        for name in row:
            width = _chip_width(name)
            yield _rect(x, y, width, _CHIP_HEIGHT, 4, "#ffffff", line, stroke=0.8)
            yield _text(x + 6, y + 13, name, "#1f2933", weight="600")
            x += width + 5
        y += _CHIP_HEIGHT + 4
    y += 2
    for text, colour, weight in _lines(stage):
        yield _text(left + _PAD, y + 11, text, colour, weight=weight)
        y += _LINE


# --- primitives ------------------------------------------------------------------------------------


def _rect(
    x: float, y: float, width: float, height: float, radius: float, fill: str, line: str, stroke: float = 1.0
) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" '
        f'fill="{fill}" stroke="{line}" stroke-width="{stroke}"/>'
    )


def _text(x: float, y: float, text: str, colour: str, *, anchor: str = "start", weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}" '
        f'xml:space="preserve">{escape(text)}</text>'
    )


def _curve(a: PlacedBox, b: PlacedBox, route: list[tuple[float, float, float]]) -> str:
    """From the bottom of `a`, down the lanes of the layers between, to the top of `b`."""
    path = [f"M{a.x:.1f},{a.y + a.height:.1f}"]
    x, y = a.x, a.y + a.height
    for to_x, top, bottom in [*route, (b.x, b.y - 1, b.y - 1)]:
        middle = (y + top) / 2
        path.append(f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{top:.1f}")
        if bottom > top:
            path.append(f"V{bottom:.1f}")
        x, y = to_x, bottom
    return (
        f'<path d="{" ".join(path)}" fill="none" stroke="#9aa5b1" stroke-width="1.2" '
        'marker-end="url(#spartan-tip)"/>'
    )
