"""What a notebook shows of an array that is not here: what it is and how it is cut. Nothing is computed.

Values on the driver, and whatever is small, show as NumPy's do.
"""

from __future__ import annotations

import numpy as np

from spartan_ng.api.core import printing
from spartan_ng.api.core.handle import Handle
from spartan_ng.arrays import ArrayRef
from spartan_ng.arrays.tiling import Tiling
from spartan_ng.units import shape_text, size_text

_SIDE, _LEAST = 120.0, 12.0
"""Of the picture: its longer side, and the shorter one's least, in pixels."""
_LINES = 32
"""An axis with more parts is drawn with so many."""
_FILL, _LINE = "#8fb8de55", "#5b87b5"


def mime_bundle(a: Handle, *, elements: bool = True) -> dict[str, str]:
    """Text and HTML by their MIME types; nothing where NumPy's text serves. Some elements of what has been
    computed, or lies in a file, are in it unless it is to do without `elements`."""
    if a._masked() is not None or a._peek() is not None or a.size <= np.get_printoptions()["threshold"]:
        return {}
    from html import escape  # for notebooks alone

    ref = a._node().data
    state = "not computed" if ref is None else _place(ref)
    kind = str(a.dtype) if a.format == "dense" else f"{a.dtype} {a.format}"
    size = size_text(a.nbytes) if a.format == "dense" else f"{size_text(a.nbytes)} if it were dense"
    said = f"{shape_text(a.shape)} {kind}, {size}, {state}"
    some = printing.array_repr(a) if ref is not None and elements else ""
    tiling = None if ref is None else ref.tiling
    html = (
        '<div style="display:flex;gap:1.5em;align-items:center">'
        f"{_picture(a.shape, tiling)}<div><div>{escape(said)}</div>"
        f'<pre style="margin:0.5em 0 0">{escape(some)}</pre></div></div>'
    )
    return {"text/plain": f"<array {said}>\n{some}".rstrip(), "text/html": html}


def _place(ref: ArrayRef) -> str:
    if ref.tiling is None:
        return "outside" if ref.source is not None else "here"
    if ref.tiling.duplicate:
        return "a copy on each worker"
    return f"on workers: {shape_text(ref.tiling.parts)} tiles"


def _picture(shape: tuple[int, ...], tiling: Tiling | None) -> str:
    """The last two axes to scale, as far as can be seen, with the cuts between tiles."""
    rows, columns = (1, *shape)[-2:]
    longest = max(rows, columns)
    height, width = (max(_SIDE * n / longest, _LEAST) for n in (rows, columns))
    parts = [f'<rect width="{width:g}" height="{height:g}" fill="{_FILL}" stroke="{_LINE}"/>']
    if tiling is not None:
        down, across = ((), *(_cuts(tiling, axis, n) for axis, n in enumerate(shape)))[-2:]
        parts += [_line(0, height * y, width, height * y) for y in down]
        parts += [_line(width * x, 0, width * x, height) for x in across]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2:g}" height="{height + 2:g}" '
        f'viewBox="-1 -1 {width + 2:g} {height + 2:g}" role="img" style="flex:none" '
        f'aria-label="{shape_text(shape)}">{"".join(parts)}</svg>'
    )


def _cuts(tiling: Tiling, axis: int, n: int) -> list[float]:
    """Where an axis is cut, as shares of its length."""
    parts = tiling.parts[axis]
    shown = range(1, parts) if parts <= _LINES else range(parts // _LINES, parts, -(-parts // _LINES))
    return [tiling.cut(axis, n, p)[0] / n for p in shown]


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{_LINE}"/>'
