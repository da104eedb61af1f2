"""Bring what makes a line into the stage that sorts it, where memory has no room for the line.

Runs of such a line are sorted one by one. A stage that only makes the line, element by element, runs where a
run is filled, and the line is not stored. Several sorts may each have a part of what a stage makes: the lines
of rows and columns, which are sorted one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from math import prod
from typing import TypeVar

from msgspec.structs import replace

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import Node
from spartan_ng.ops.line_sorts import run_length
from spartan_ng.ops.random import is_walk
from spartan_ng.optimizer.fusion.labels import is_line_sort
from spartan_ng.plan.absorb import is_plain
from spartan_ng.plan.draft import Draft
from spartan_ng.plan.rows import Axis, Read, Row
from spartan_ng.plan.settings import Settings

_One = TypeVar("_One", Read, Row)
_KINDS = frozenset({"map", "iota", "random", "broadcast", "reshape", "transpose"})
"""Rows that make each element by itself."""


def absorb_lines(
    drafts: Sequence[Draft], kept: Collection[int], nodes: Sequence[Node], settings: Settings
) -> list[Draft]:
    """The drafts with what makes lines inside the stages that sort them in runs; the slots `kept` are stored
    in any case."""
    sorts = {id(d) for d in drafts if d.separate and _sorts_runs(d, settings)}
    if not sorts:
        return list(drafts)
    readers: defaultdict[int, list[Draft]] = defaultdict(list)
    for draft in drafts:
        for read in draft.reads:
            readers[read.slot].append(draft)
    gone: set[int] = set()
    inside: dict[int, Draft] = {}
    for maker in drafts:
        users = readers[maker.slot]
        if maker.slot in kept or not all(id(user) in sorts for user in users):
            continue
        # No more is computed than where all of it is stored.
        if sum(user.node.inputs[0].size for user in users) > maker.node.size:
            continue
        if users and all(_is_made_inside(maker, user.reads[0], nodes) for user in users):
            gone.add(maker.slot)
            inside |= {id(user): _with_line(user, maker) for user in users}
    return [inside.get(id(draft), draft) for draft in drafts if draft.slot not in gone]


def sorted_length(node: Node, parts: int, settings: Settings) -> int:
    """Elements in a run of a line that a node sorts, or picks places of, in so many parts; 0 where a part
    fits."""
    line = node.inputs[0]
    of_indices = node.dtype.itemsize if node.params[0] == "argsort" else 0
    each = line.dtype.itemsize + of_indices
    return run_length(-(-line.size // parts), each, settings.profile.memory_bytes)


def _sorts_runs(draft: Draft, settings: Settings) -> bool:
    """Whether a stage sorts a line in runs, however it is cut."""
    if not (is_line_sort(draft.node) or draft.node.fn == "places"):
        return False
    return sorted_length(draft.node, settings.profile.workers, settings) > 0


def _is_made_inside(maker: Draft, read: Read, nodes: Sequence[Node]) -> bool:
    """Whether a stage makes what a sort reads of it element by element, in any order and range."""
    if maker.separate or maker.driver >= 0 or maker.whole or maker.after is not None:
        return False
    if len(maker.results) > 1 or maker.reducers or maker.out != tuple(range(len(maker.domain))):
        return False
    if maker.results[0].register != len(maker.reads) + len(maker.rows) - 1 or not maker.rows:
        return False
    if any(row.kind not in _KINDS or row.format != "dense" or _walks(row) for row in maker.rows):
        return False
    if any(nodes[r.slot].format != "dense" for r in maker.reads):
        return False
    if is_plain(read, maker.node.shape):
        return True
    # Numbers drawn, and indices, know where in their whole they are, and views which shape they have.
    return (
        all(row.kind == "map" for row in maker.rows)
        and [a.label for a in read.axes if a.size > 1] == [0]
        and all(_lies_in_own_chunks(r, read, nodes) for r in maker.reads)
    )


def _walks(row: Row) -> bool:
    return row.kind == "random" and is_walk(row.params[0])


def _lies_in_own_chunks(read: Read, line: Read, nodes: Sequence[Node]) -> bool:
    """Whether chunks of what is read have elements of one line only: else they are unpacked for each."""
    ref = nodes[read.slot].data
    if ref is None or ref.chunks is None:
        return True
    beside = {d for d, a in enumerate(line.axes) if a.label == WHOLE}
    pairs = zip(ref.chunks, read.axes, strict=True)
    return prod(n for n, a in pairs if a.label in beside) == 1


def _with_line(sort: Draft, maker: Draft) -> Draft:
    """The sort with the stage that makes its line inside: what that does along its dimensions it does along
    the line, and at single indices of the others."""
    (line,) = sort.reads

    def label(d: int) -> int:
        return d if d == WHOLE else line.axes[d].label

    def size(d: int, n: int) -> int:
        return n if d == WHOLE else line.axes[d].size

    def axis(a: Axis) -> Axis:
        if a.label == WHOLE:
            return a
        s = line.axes[a.label]
        return Axis(s.label, a.start + a.step * s.start, a.step * s.step, s.size)

    def placed(one: _One) -> _One:
        shape = tuple(size(d, n) for d, n in zip(one.labels, one.shape, strict=True))
        return replace(one, shape=shape, labels=tuple(label(d) for d in one.labels))

    return replace(
        sort,
        reads=[replace(placed(r), axes=tuple(axis(a) for a in r.axes)) for r in maker.reads],
        rows=[placed(row) for row in maker.rows],
        members=(*sort.members, *maker.members),
    )
