"""Which passes of a plan run as one: those that read, or compute, the same, and do not wait for each other.

It takes no more time to run them as one, as Eq. 4 has it: what both read is read once, what both compute is
computed once. So every plan is taken with its passes joined, the larger ones first, wherever that is legal.

Fusion plans (SystemML), section 2.2: the template MAgg, here over any results of one domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import chain
from math import prod
from operator import or_
from typing import NamedTuple

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import VIEWS, Op
from spartan_ng.optimizer.fusion.embed import embedding, kept_whole, relabelled
from spartan_ng.optimizer.fusion.labels import Labels
from spartan_ng.optimizer.fusion.legality import MOST_MEMBERS, MOST_RESULTS, may_keep, unfollowed
from spartan_ng.optimizer.fusion.masks import bits
from spartan_ng.optimizer.fusion.reach import Reach, Reaches
from spartan_ng.optimizer.fusion.tables import Tables


class Shared(NamedTuple):
    """Passes that run as one: as a mask of the places where they end, and how each goes over the domain of
    the `host`, the largest."""

    host: int
    ends: int
    labels: dict[int, Labels]
    inside: dict[int, int]
    """Of those that end in what another computes on its way, that one."""


_Kind = tuple[tuple[int, ...], Labels]
"""How a pass sees a value: its domain, and the dimension of it that each axis follows."""


class Sharing:
    """The passes of one partition that may share one, by the places where they end."""

    def __init__(self, tables: Tables, reaches: Reaches) -> None:
        self.tables, self.reaches = tables, reaches
        operators = tables.partition.operators
        self._drawn = [i for i, p in enumerate(tables.places) if p.draws]
        self._known: list[Reach | None] = [None] * len(operators)
        self._behind = _behind(tables)
        self._sources = tables.sources
        self._views = [tables.memo.operators[n].node.op in VIEWS for n in operators]
        self._sizes = [prod(p.operator.domain) for p in tables.places]
        self._kinds: list[dict[_Kind, int]] = [{} for _ in self._sources]
        """For each value and way to see it over a domain the passes that do,"""
        self._known_of = [0] * len(self._sources)
        """and the passes of which that is known, or that they do not see it."""
        self._seen: list[dict[int, tuple[int, _Kind]]] = [{} for _ in operators]
        """For each pass the values that it sees, in which turn that was found, and how."""
        self._turns = 0
        self._pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """For values, and passes that were asked for together, those whose ways to see it go together."""
        self._embedded: dict[tuple[int, int], Labels] = {}
        """How one pass goes over the domain of another, by both."""

    def join(
        self,
        computed: list[int],
        readers: list[int],
        ends: Sequence[int],
        scanning: Sequence[tuple[int, int]] = (),
    ) -> list[Shared]:
        """The passes of a plan that run as one: places to where values are computed and read, as masks.

        `scanning` are scans, and the passes that make each as one, and so with no others. What a pass was to
        compute or read that ends in what another makes on its way, that does in its own way.
        """
        places, every = self.tables.places, ends
        open_, known = 0, self._known
        for i in ends:
            if places[i].mergeable:
                reach = known[i] or self._know(i)
                if not (reach.closing and self._computes(i, reach.closing, computed)):
                    open_ |= 1 << i
        beside = self._beside(computed, readers, open_)
        again = [i for i in ends if computed[i] & open_ & ~(1 << i)]
        scans, taken = [], 0
        for _, makers in scanning:
            scans.append(self._scan(computed, makers))
            taken |= makers
        if taken:
            ends = [i for i in ends if not taken >> i & 1]
        if not any(beside) and not again:
            return [*scans, *[Shared(i, 1 << i, {}, {}) for i in ends]]
        waits = self._waits(readers, every)
        for scan in scans:
            _wait_together(waits, scan.ends)
        drawing = _together(computed[i] for i in self._drawn)
        inside = dict[int, int]()
        if again:
            ends, inside = self._settle(computed, readers, ends, open_, waits)
        groups: list[Shared] = []
        kept_by = dict[int, frozenset[int]]()
        placed, sizes = 0, self._sizes
        for i in sorted(ends, key=sizes.__getitem__, reverse=True):
            if i in inside:
                continue
            near = beside[i] & placed & ~waits[i]
            for k, (host, group, labels, _) in enumerate(groups if near and self._moves(i, computed) else ()):
                if not near & group or waits[i] & group or waits[host] >> i & 1:
                    continue
                if group.bit_count() >= MOST_RESULTS or not self._has_room(computed, group | 1 << i):
                    continue
                place = self._place(i, near & group, labels)
                if place is None:
                    continue
                domain, whole = places[host].operator.domain, self._whole(i, computed)
                before = kept_by.get(k)
                if before is None:
                    before = self._whole(host, computed)
                kept = before | kept_whole(domain, place, whole)
                uncut = (known[host] or self._know(host)).stage.uncut
                if not may_keep(domain, before, kept, whole, uncut):
                    continue
                if kept and drawing & (group | 1 << i):
                    continue
                kept_by[k] = kept
                labels[i] = place
                groups[k] = Shared(host, group | 1 << i, labels, {})
                _wait_together(waits, group | 1 << i)
                break
            else:
                groups.append(Shared(i, 1 << i, {i: tuple(range(len(places[i].operator.domain)))}, {}))
            placed |= 1 << i
        return [*scans, *_with_inner(groups, inside)]

    def _computes(self, end: int, numbers: Iterable[int], computed: Sequence[int]) -> bool:
        """Whether a pass computes one of some operators."""
        number = self.tables.number
        return any(computed[number[n]] >> end & 1 for n in numbers)

    def _whole(self, end: int, computed: Sequence[int]) -> frozenset[int]:
        """The dimensions that stay whole for what a pass computes."""
        reach = self._known[end] or self._know(end)
        whole = reach.whole
        for n, dimensions in reach.kept.items():
            if computed[self.tables.number[n]] >> end & 1:
                whole |= dimensions
        return whole

    def _know(self, end: int) -> Reach:
        """How far a pass reaches."""
        reach = self._known[end] = self.reaches.of(end)
        return reach

    def _scan(self, computed: Sequence[int], makers: int) -> Shared:
        """The pass that makes a scan, where several were to: over its domain, storing what they pass on if
        that is to be stored, and folding it for the others."""
        own = [i for i in bits(makers) if computed[i] & makers == makers]
        folds = [i for i in bits(makers) if i not in own]
        host = folds[0]
        every = tuple(range(len(self.tables.places[host].operator.domain)))
        return Shared(host, makers, dict.fromkeys(folds, every), dict.fromkeys(own, host))

    def _settle(
        self, computed: list[int], readers: list[int], ends: Sequence[int], open_: int, waits: dict[int, int]
    ) -> tuple[list[int], dict[int, int]]:
        """For values that are stored, and made on the way of another pass, the one that stores them, too.

        What was to be done for them alone is left out, and so are passes that nobody asks for then.
        """
        inside, gone, left = dict[int, int](), 0, list[int]()
        for i in sorted(ends, reverse=True):
            if gone and not readers[i] & ~gone and not self.tables.places[i].required:
                gone |= 1 << i
                continue
            left.append(i)
            elsewhere = computed[i] & open_ & ~gone & ~(1 << i)
            if elsewhere and (keeper := self._keeper(i, elsewhere, waits)) is not None:
                inside[i] = keeper
                gone |= 1 << i
                _wait_together(waits, 1 << i | 1 << keeper)
        if gone:
            readers[:] = [mask & ~gone for mask in readers]
            computed[:] = [mask & ~gone for mask in computed]
            for i in inside:
                computed[i] |= 1 << i
        return left, inside

    def _keeper(self, place: int, passes: int, waits: Mapping[int, int]) -> int | None:
        """Of passes that make a value on their way, the one that stores it, too."""
        node = self._sources[place]
        if node.format != "dense" or node.op is Op.SCAN or node.op is Op.RANDOM:
            return None
        operator = self.tables.partition.operators[place]
        for j in bits(passes):
            if not (waits[j] >> place & 1 or waits[place] >> j & 1):
                reach = self._known[j] or self._know(j)
                whole = reach.whole | reach.kept.get(operator, frozenset())
                if unfollowed(reach.stage.domain, reach.members[operator]) <= whole:
                    return j
        return None

    def _moves(self, end: int, computed: Sequence[int]) -> bool:
        """Whether a pass may become part of another: not one that stores a view of what it reads."""
        if not self._views[end]:
            return True
        n = len(self.tables.places)
        return any(x.target < n and computed[x.target] >> end & 1 for x in self.tables.places[end].links)

    def _has_room(self, computed: Sequence[int], ends: int) -> bool:
        """Whether passes compute few enough values for one."""
        return (
            len(computed) <= MOST_MEMBERS
            or sum([m & ends > 0 for m in computed[: len(self._views)]]) <= MOST_MEMBERS
        )

    def _place(self, end: int, near: int, labels: Mapping[int, Labels]) -> Labels | None:
        """How a pass goes over the domain of the host of some that are near."""
        for j in bits(near):
            if j in labels and (own := self._embedding(end, j)) is not None:
                return relabelled(own, labels[j])
        return None

    def _embedding(self, end: int, other: int) -> Labels | None:
        """How a pass goes over the domain of another: by the first value that both were found to see."""
        found = self._embedded.get((end, other))
        if found is None:
            theirs = self._seen[other]
            both = [
                (max(turn, theirs[t][0]), kind, theirs[t][1])
                for t, (turn, kind) in self._seen[end].items()
                if t in theirs
            ]
            for _, (domain, way), (_, seen) in sorted(both):
                found = embedding(domain, way, seen)
                if found is not None:
                    self._embedded[end, other] = found
                    break
        return found

    # --- who is near -------------------------------------------------------------------------------

    def _beside(self, computed: Sequence[int], readers: Sequence[int], open_: int) -> list[int]:
        """For passes those with which they read or compute something, seen in ways that go together."""
        beside = [0] * len(computed)
        seen = [r | c for r, c in zip(readers, computed, strict=False)]
        for t, passes in enumerate(chain(seen, readers[len(computed) :])):
            sharing = passes & open_
            if sharing & (sharing - 1):
                pairs = self._pairs.get((t, sharing))
                if pairs is None:
                    pairs = self._pairs[t, sharing] = self._pair(t, sharing)
                for i, near in pairs:
                    beside[i] |= near
        return beside

    def _pair(self, target: int, sharing: int) -> list[tuple[int, int]]:
        """Of passes that see a value, those whose way goes together with that of others, and these."""
        if missing := sharing & ~self._known_of[target]:
            self._known_of[target] |= missing
            for i in bits(missing):
                self._enter(i, target)
        asked = [(kind, own) for kind, ends in self._kinds[target].items() if (own := ends & sharing)]
        pairs: list[tuple[int, int]] = []
        for kind, ends in asked:
            near = _together(theirs for other, theirs in asked if _go_together(kind, other))
            pairs += [(i, others) for i in bits(ends) if (others := near & ~(1 << i))]
        return pairs

    def _enter(self, end: int, target: int) -> None:
        """Note how a pass sees a value."""
        reach = self._known[end] or self._know(end)
        seen = reach.ways.get(self._sources[target])
        if seen:
            kinds = self._kinds[target]
            kind = reach.stage.domain, seen[0] if len(seen) == 1 else min(seen, key=_count_whole)
            kinds[kind] = kinds.get(kind, 0) | 1 << end
            self._turns += 1
            self._seen[end][target] = self._turns, kind

    # --- who waits for whom ------------------------------------------------------------------------

    def _waits(self, readers: Sequence[int], ends: Sequence[int]) -> dict[int, int]:
        """For each pass those that it waits for, through others, too."""
        waits, entering = dict.fromkeys(ends, 0), dict[int, int]()
        for target, before in self._behind.items():
            for j in bits(readers[target]):
                entering[j] = entering.get(j, 0) | before
        for i in sorted(ends):
            for j in bits(entering.get(i, 0)):
                waits[i] |= 1 << j | waits[j]
            before = 1 << i | waits[i]
            for j in bits(readers[i]):
                waits[j] |= before
        return waits


@lru_cache(maxsize=4096)
def _go_together(one: _Kind, other: _Kind) -> bool:
    """Whether of two passes that see a value one may go over the domain of the other."""
    (domain, way), (theirs, seen) = one, other
    return embedding(domain, way, seen) is not None or embedding(theirs, seen, way) is not None


def _count_whole(labels: Labels) -> int:
    return labels.count(WHOLE)


def _together(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def _with_inner(groups: list[Shared], inside: Mapping[int, int]) -> list[Shared]:
    """Passes with those that end in what another computes on its way."""
    for i, j in inside.items():
        for k, (host, group, labels, within) in enumerate(groups):
            if group >> j & 1:
                within[i] = j
                groups[k] = Shared(host, group | 1 << i, labels, within)
                break
    return groups


def _wait_together(waits: dict[int, int], ends: int) -> None:
    """Let passes that run as one wait for all that one of them waits for, and others for all of them."""
    together = 0
    for i in bits(ends):
        together |= waits[i]
    every = together | ends
    for i, before in waits.items():
        if before & ends:
            waits[i] = before | every
    for i in bits(ends):
        waits[i] = together


def _behind(tables: Tables) -> dict[int, int]:
    """For values that are made outside the partition, the places of those of its operators that they need."""
    number, operators = tables.number, tables.memo.operators
    first, last = min(number), max(number)
    if last - first < len(number):
        return {}
    behind: dict[int, int] = {}
    for n in range(first + 1, last):
        if n not in number:
            mask = 0
            for edge in operators[n].edges:
                if edge.producer in number:
                    mask |= 1 << number[edge.producer]
                elif edge.producer > first:
                    mask |= behind.get(edge.producer, 0)
            if mask:
                behind[n] = mask
    made = {operators[n].node: mask for n, mask in behind.items()}
    count = len(tables.places)
    return {count + k: made[node] for k, node in enumerate(tables.sources[count:]) if node in made}


def may_embed(domain: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a pass over one of two domains could go over the other, whatever both see."""
    one, two = (Counter(n for n in d if n > 1) for d in (domain, other))
    return one <= two or two <= one
