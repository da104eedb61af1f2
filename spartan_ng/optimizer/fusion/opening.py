"""The passes that an assignment opens: where they end, what each computes, and what it reads.

From the roots down, an operator that has to be stored opens a fused operator of the best template; its
operands join as far as the template references them, the pass reaches (`reach`) and the assignment allows. An
operator in two of them is computed twice.

A search asks for one assignment after another that differs in a few points. What an operator hands down to
its operands follows from what is asked of it and from its own points alone, so only those are visited again
for which either has changed.

Fusion plans (SystemML), section 4.3.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from msgspec import Struct

from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.legality import MOST_RESULTS, passed_values
from spartan_ng.optimizer.fusion.masks import bits
from spartan_ng.optimizer.fusion.reach import Reaches
from spartan_ng.optimizer.fusion.tables import Tables
from spartan_ng.optimizer.fusion.templates import Template


class Opened(Struct):
    """Fused operators are bits, by the place of their root: where each operator is computed and read."""

    computed: list[int]
    readers: list[int]
    templates: dict[int, Template | None]
    scanning: list[tuple[int, int]]
    """Scans and the passes that make each as one."""
    parts: dict[tuple[int, float, bool], int]
    """For parts of values the passes that read them; whether for what is computed in part itself."""

    def key(self) -> Hashable:
        """Equal where plans are."""
        passes = tuple(self.computed), tuple(self.readers), tuple(self.templates)
        return *passes, tuple(self.scanning), tuple(self.parts.items())


Asked = tuple[int, int, int, int]
"""What an operand is asked for, as masks of passes: those that compute it in a pass of template Row, cell by
cell, and at non-zeros alone, and those that read it."""
_NOTHING: Asked = (0, 0, 0, 0)


class Opening:
    """The passes of one partition under the assignment that was asked for last."""

    def __init__(self, tables: Tables, reaches: Reaches) -> None:
        self.tables, self._reaches = tables, reaches
        places = tables.places
        n = len(places)
        self._followed = [0] * n
        """For each operator the passes that were followed down to it,"""
        self._allowed = [0] * n
        """and those of them that may compute it."""
        self._asking: list[list[tuple[int, int]]] = [[] for _ in tables.targets]
        """Who asks for each value: operators, and by which of their links."""
        for i, place in enumerate(places):
            for k, link in enumerate(place.links):
                self._asking[link.target].append((i, k))
        self._asked = [[_NOTHING] * len(place.links) for place in places]
        self._consumers = [tables.number[point.consumer] for point in tables.bits]
        self._mask = 0
        self._drawn: Collection[int] = ()
        self._merge = True
        self._changed = (1 << n) - 1
        """Operators to visit before the next plan."""
        self._computed, self._readers = [0] * n, [0] * len(tables.targets)
        self._stored = [False] * n
        self._templates: list[Template | None] = [None] * n
        self._scanning: dict[int, int] = {}

    def open(self, mask: int, merge: bool, drawn: Collection[int] = ()) -> Opened:
        """The plan of an assignment; whether passes may run as one, and the places of random numbers that are
        stored."""
        for k in bits(mask ^ self._mask):
            self._changed |= 1 << self._consumers[k]
        for i in {*drawn} ^ {*self._drawn}:
            self._changed |= 1 << i
        self._mask, self._merge, self._drawn = mask, merge, drawn
        self._visit()
        stored = self._stored
        return Opened(
            self._computed.copy(),
            self._readers.copy(),
            {i: self._templates[i] for i in range(len(stored) - 1, -1, -1) if stored[i]},
            sorted(self._scanning.items(), reverse=True),
            self._parts() if self.tables.partly else {},
        )

    def _visit(self) -> None:
        """Visit operators from the roots down until nothing that is asked of any has changed."""
        places, asking, asked, mask = self.tables.places, self._asking, self._asked, self._mask
        n, outside = len(places), 0
        while self._changed:
            i = self._changed.bit_length() - 1
            self._changed ^= 1 << i
            row = cell = outer = read = 0
            for consumer, k in asking[i]:
                one = asked[consumer][k]
                if one is not _NOTHING:
                    r, c, o, others = one
                    row, cell, outer, read = row | r, cell | c, outer | o, read | others
            place = places[i]
            read &= ~(row | cell | outer)  # what a pass makes for one reader is there for all of its others
            if place.scans or i in self._drawn:
                makers = self._shared(i, row | cell | outer, place.required or read > 0)
                read |= (row | cell | outer) & ~makers
                row, cell, outer = row & makers, cell & makers, outer & makers
            self._readers[i] = read
            self._stored[i] = place.required or read > 0
            if self._stored[i]:
                template = next((e.template for e in place.ends if e.always or e.needs & ~mask), None)
                self._templates[i] = template
                if template is Template.ROW:
                    row |= 1 << i
                elif template is Template.OUTER:
                    outer |= 1 << i
                else:
                    cell |= 1 << i
            self._computed[i] = row | cell | outer
            outside |= self._hand_down(i, row, cell, outer)
        for t in bits(outside):
            read = 0
            for consumer, k in asking[n + t]:
                read |= asked[consumer][k][-1]
            self._readers[n + t] = read

    def _shared(self, i: int, users: int, stored: bool) -> int:
        """Of passes that ask for a scan, or for random numbers that are stored, those that make it."""
        self._scanning.pop(i, None)
        if not users or not (stored or users & (users - 1)):
            return users
        makers = self._makers(i, users, stored) if self.tables.places[i].scans else 0
        if makers:
            self._scanning[i] = makers | (stored or makers != users) << i
        return makers

    def _hand_down(self, i: int, row: int, cell: int, outer: int) -> int:
        """Ask an operator's operands for their values, for the passes that compute it, by template.

        Tells of which values from outside the partition are asked for in another way than before.
        """
        places, followed, allowed, asked = self.tables.places, self._followed, self._allowed, self._asked[i]
        n, mask, everyone, outside = len(places), self._mask, row | cell | outer, 0
        for k, (t, bit, by_row, by_cell, by_outer, enters, _) in enumerate(places[i].links):
            joins = to_row = to_cell = to_outer = 0
            if t < n and not bit & mask:
                rows = row if by_row else 0
                cells = cell if by_cell else 0
                samples = everyone if enters else outer if by_outer else 0
                joins = rows | cells | samples
                if joins & ~followed[t]:
                    self._follow(joins & ~followed[t], t)
                joins &= allowed[t]
                if joins:
                    below = places[t]
                    if below.row:
                        to_row = rows & joins
                    else:
                        cells |= rows
                    if below.outer:
                        to_outer = samples & joins
                    else:
                        cells |= samples
                    to_cell = cells & joins
            now = to_row, to_cell, to_outer, everyone & ~joins
            if now != asked[k]:
                asked[k] = now
                if t < n:
                    self._changed |= 1 << t
                else:
                    outside |= 1 << (t - n)
        return outside

    def _parts(self) -> dict[tuple[int, float, bool], int]:
        """The passes that read parts of values."""
        parts: dict[tuple[int, float, bool], int] = {}
        for place, asked in zip(reversed(self.tables.places), reversed(self._asked), strict=True):
            for link, one in zip(place.links, asked, strict=True):
                if one[-1] and link.share is not None:
                    part = link.target, link.share, place.driven
                    parts[part] = parts.get(part, 0) | one[-1]
        return parts

    def _follow(self, ends: int, last: int) -> None:
        """Note who may be computed in some passes, down to one operator."""
        for end in bits(ends):
            before, inside = self._reaches.follow(end, last)
            for i in range(last, before):
                self._followed[i] |= 1 << end
            for number in inside:
                self._allowed[self.tables.number[number]] |= 1 << end

    def _makers(self, place: int, users: int, stored: bool) -> int:
        """Of passes that ask for a scan those that make it, as one: they pass on the same."""
        node = self.tables.sources[place]
        values = {end: passed_values(self._reaches.of(end).stage) for end in bits(users)}
        one: set[Node | None] = {node}
        if not stored and all(passed == values[max(values)] for passed in values.values()):
            one = values[max(values)] - {None}
        found = sum([1 << end for end, passed in values.items() if passed == one])
        return found if self._merge and found.bit_count() < MOST_RESULTS else 0
