"""Places of a sorted line without sorting all of it.

Where a sort or argsort of one line is read at some places only (`sort(x)[:10]`, `argsort(x)[-10:]`), or a
partition at its short end (`partition(x, -10)[-10:]`), which is sorted (`ops.joins`), those places are
selected: few at the ends by states of parts (`ops.line_states`), in the pass that makes what is sorted;
others of a sort, as medians and quantiles ask for, out of sorted parts, which stay where they are.
The answers are the same, ties included.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.trail import tell
from spartan_ng.ops.joins import MOST_ENDS, SHARE, short_end
from spartan_ng.optimizer.fusion.labels import is_line_sort

_SPANS = 64
"""Places, or runs of them, that are searched for one by one."""


def select_places(roots: Sequence[Node]) -> list[Node]:
    """Replace sorts of single lines of which only some places are read."""
    found = selected_sorts(roots)
    return put_in(roots, found) if found else list(roots)


def selected_sorts(roots: Sequence[Node]) -> dict[Node, EndPlaces | Places]:
    """Sorts of single lines of which only some places are read, and these places."""
    order = topological(roots)
    # Numbers alone: of others (dates, texts, complex ones) states of parts are not known.
    sorts = [n for n in order if _orders_line(n) and n.inputs[0].dtype.kind in "biuf"]
    if not sorts:
        return {}
    readers: defaultdict[Node, set[Node]] = defaultdict(set)
    for node in order:
        for i in node.inputs:
            readers[i].add(node)
    found: dict[Node, EndPlaces | Places] = {}
    selection: EndPlaces | Places | None
    for node in dict.fromkeys(sorts):
        if node not in roots and all(r.op is Op.SLICE for r in readers[node]):
            if node.params[0] in _PARTITIONS:
                selection = _short_end(node, readers[node])
            else:
                selection = _ends(node, readers[node]) or _places(node, readers[node])
            if selection is not None:
                found[node] = selection
    return found


_PARTITIONS = {"partition": "sort", "argpartition": "argsort"}
"""What gives the short end of a partition."""


def _orders_line(node: Node) -> bool:
    """Whether the node sorts, or partitions, a 1-d array."""
    return is_line_sort(node) or (
        node.fn == "along_axis" and node.ndim == 1 and node.params[0] in _PARTITIONS
    )


def put_in(roots: Sequence[Node], found: Mapping[Node, EndPlaces | Places]) -> list[Node]:
    """`roots` with selected places instead of sorts."""
    new: dict[Node, Node] = {}
    for node in topological(roots):
        inputs = tuple(new[i] for i in node.inputs)
        if node.inputs and node.inputs[0] in found:
            new[node] = found[node.inputs[0]].part(node, new[node.inputs[0].inputs[0]])
        else:
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            new[node] = node if same else replace(node, inputs=inputs)
    tell(new)
    return [new[r] for r in roots]


class EndPlaces:
    """The places at both ends of a sort that are asked for."""

    def __init__(self, node: Node, first: int, last: int) -> None:
        self.node, self.first, self.last = node, first, last
        self._made: dict[bool, Node] = {}

    def part(self, view: Node, x: Node) -> Node:
        """A slice of the sort, from the sorted end that has it."""
        ((start, step),) = view.params
        is_last = _span(view)[1] > self.first
        if is_last not in self._made:
            count = self.last if is_last else self.first
            function = _PARTITIONS.get(str(self.node.params[0]), str(self.node.params[0]))
            self._made[is_last] = build.ends(function, x, count, is_last, self.node.dtype)
        before = self.node.size - self.last if is_last else 0
        return build.slice_(self._made[is_last], (start - before,), (step,), view.shape)


def _ends(node: Node, readers: set[Node]) -> EndPlaces | None:
    """The ends that all readers of a sort need; None where one needs more."""
    spans = [_span(r) for r in readers]
    most = min(MOST_ENDS, node.size // SHARE)
    # What does not end within the first places has to begin within the last.
    first = max((high for _, high in spans if high <= most), default=0)
    last = max((node.size - low for low, high in spans if high > most), default=0)
    return EndPlaces(node, first, last) if last <= most else None


def _short_end(node: Node, readers: set[Node]) -> EndPlaces | None:
    """The short end of a partition, if readers need nothing else of it."""
    end = short_end(node.size, dict(node.params[2])["kth"])
    if end is None:
        return None
    count, last = end
    low, high = (node.size - count, node.size) if last else (0, count)
    if not all(low <= lo and hi <= high for lo, hi in map(_span, readers)):
        return None
    return EndPlaces(node, 0, count) if last else EndPlaces(node, count, 0)


class Places:
    """Spans of places of a sort, none of which meet."""

    def __init__(self, spans: tuple[tuple[int, int], ...], made: Node | None = None) -> None:
        self.spans = spans
        self._made = made

    def part(self, view: Node, x: Node) -> Node:
        """A slice of the sort, from the places that are selected."""
        low, _ = _span(view)
        if self._made is None:
            self._made = build.places(x, self.spans)
        # How many selected places lie before it.
        before = sum(min(hi, low) - lo for lo, hi in self.spans if lo <= low)
        ((start, step),) = view.params
        return build.slice_(self._made, (before + start - low,), (step,), view.shape)


def _places(node: Node, readers: set[Node]) -> Places | None:
    """The few places of a sort that all readers need."""
    if node.params[0] != "sort":
        return None
    spans: list[tuple[int, int]] = []
    for lo, hi in sorted(_span(r) for r in readers):
        # Spans that meet become one: each costs a search of its own.
        if spans and lo <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(hi, spans[-1][1]))
        else:
            spans.append((lo, hi))
    few = len(spans) <= _SPANS and sum(hi - lo for lo, hi in spans) * SHARE <= node.size
    return Places(tuple(spans)) if few else None


def _span(view: Node) -> tuple[int, int]:
    """The lowest place that a slice of a line reads, and the one behind the highest."""
    ((start, step),), (n,) = view.params, view.shape
    ends = (start, start + step * (n - 1))
    return min(ends), max(ends) + 1
