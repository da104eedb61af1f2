"""Places for the boxes of a layered drawing: layers by longest path, order by barycenters, then columns.

Sugiyama, Tagawa and Toda (1981), in its simplest form: layers are known from the dependencies, a few
sweeps order each layer by its neighbours' mean position, and a few more pull boxes towards them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

GAP_X, GAP_Y = 28.0, 34.0
"""Least distances between boxes side by side, and between layers."""
_SWEEPS = 10
_LANE = 2.0


class PlacedBox(Struct):
    """A box: its size, and after layout the coordinates of its center and top."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    layer: int = 0


class Picture(Struct, frozen=True):
    """Where everything is: the size, and for each edge the vertical stretches `(x, top, bottom)` it takes
    through the layers between its ends."""

    width: float
    height: float
    routes: list[list[tuple[float, float, float]]]


def place(boxes: Sequence[PlacedBox], edges: Sequence[tuple[int, int]]) -> Picture:
    """Set `x`, `y` and `layer` of every box, and route the edges around the boxes.

    Edges lead from a lower to a higher number, so that the order of the boxes is topological.
    """
    _assign_layers(boxes, edges)
    everything = list(boxes)
    lanes = [_lanes(everything, a, b) for a, b in edges]
    above: list[list[int]] = [[] for _ in everything]
    below: list[list[int]] = [[] for _ in everything]
    for (a, b), lane in zip(edges, lanes, strict=True):
        for upper, lower in pairwise([a, *lane, b]):
            above[lower].append(upper)
            below[upper].append(lower)
    layers: list[list[int]] = [[] for _ in range(max((b.layer for b in boxes), default=-1) + 1)]
    for i, box in enumerate(everything):
        layers[box.layer].append(i)
    for layer in layers:
        _pack(everything, layer, [everything[i].width / 2 for i in layer])
    for sweep in range(_SWEEPS):
        # Down by what is above, then up by what is below, as one order alone favours one side.
        near, order = (below, layers[::-1]) if sweep % 2 else (above, layers)
        for layer in order:
            wanted = {i: _mean(everything, near[i], everything[i].x) for i in layer}
            layer.sort(key=wanted.__getitem__)
            _pack(everything, layer, [wanted[i] for i in layer])
    width, height, spans = _finish(everything, layers)
    routes = [[(everything[i].x, *spans[everything[i].layer]) for i in lane] for lane in lanes]
    return Picture(width, height, routes)


def _assign_layers(boxes: Sequence[PlacedBox], edges: Sequence[tuple[int, int]]) -> None:
    """Longest path from the top; boxes with nothing above go right over the first that needs them."""
    above: list[list[int]] = [[] for _ in boxes]
    below: list[list[int]] = [[] for _ in boxes]
    for a, b in edges:
        above[b].append(a)
        below[a].append(b)
    for i, box in enumerate(boxes):
        box.layer = max((boxes[a].layer + 1 for a in above[i]), default=0)
    # An input that is read late would else stand in the first layer, with a long edge through all others.
    for i, box in enumerate(boxes):
        if not above[i] and below[i]:
            box.layer = min(boxes[b].layer for b in below[i]) - 1


def _lanes(everything: list[PlacedBox], a: int, b: int) -> list[int]:
    """Invisible boxes that keep a lane free for an edge in every layer it crosses; their numbers."""
    lane = []
    for layer in range(everything[a].layer + 1, everything[b].layer):
        everything.append(PlacedBox(_LANE, 0.0, layer=layer))
        lane.append(len(everything) - 1)
    return lane


def _mean(boxes: Sequence[PlacedBox], near: list[int], default: float) -> float:
    return sum(boxes[i].x for i in near) / len(near) if near else default


def _pack(boxes: Sequence[PlacedBox], layer: list[int], wanted: list[float]) -> None:
    """Boxes of a layer in order, as near to the wanted centers as their widths let them.

    Least squares under a minimum distance is isotonic regression of the shifted wishes: pool neighbours that
    violate it.
    """
    shifts, at = [], 0.0
    for k, i in enumerate(layer):
        if k:
            at += (boxes[layer[k - 1]].width + boxes[i].width) / 2 + GAP_X
        shifts.append(at)
    pools: list[tuple[float, int]] = []
    for wish, shift in zip(wanted, shifts, strict=True):
        mean, count = wish - shift, 1
        while pools and pools[-1][0] > mean:
            other, n = pools.pop()
            mean, count = (mean * count + other * n) / (count + n), count + n
        pools.append((mean, count))
    starts = [mean for mean, count in pools for _ in range(count)]
    for i, start, shift in zip(layer, starts, shifts, strict=True):
        boxes[i].x = start + shift


def _finish(
    boxes: Sequence[PlacedBox], layers: list[list[int]]
) -> tuple[float, float, list[tuple[float, float]]]:
    """Vertical places, and the left edge at zero: width, height, and top and bottom of each layer."""
    y, spans = 0.0, []
    for layer in layers:
        height = max(boxes[i].height for i in layer)
        for i in layer:
            boxes[i].y = y + (height - boxes[i].height) / 2
        spans.append((y, y + height))
        y += height + GAP_Y
    left = min((b.x - b.width / 2 for b in boxes), default=0.0)
    for box in boxes:
        box.x -= left
    right = max((b.x + b.width / 2 for b in boxes), default=0.0)
    return right, max(y - GAP_Y, 0.0), spans
