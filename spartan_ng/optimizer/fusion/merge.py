"""Stages of several results: what shares a read shares the pass.

A node that has to be stored can be computed in a stage that reads the same large array the same way, as a
further result: `sum(X * Y)` beside `sum(X * Z)`, a minimum beside a mean. The stage's dimensions
that the node does not follow then stay uncut. Nothing may wait for itself: the stage must not read, even
through others, what is stored in it.

Fusion plans (SystemML), section 2.2: the template MAgg, here over any results of one domain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import prod

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.ops.joins import REDUCING
from spartan_ng.optimizer.fusion.group import Demand, Group, Grouping, Result
from spartan_ng.optimizer.fusion.labels import Labels, Root, root
from spartan_ng.optimizer.fusion.legality import (
    LARGEST_BLOCK,
    MOST_RESULTS,
    has_room,
    leaves_enough,
    unfollowed,
)

MOST_HOSTS = 16
"""Stages that are tried as the pass of what reads an array that they read, too."""


def merge(result: Grouping, order: list[Node], demands: dict[Node, dict[Demand, None]]) -> None:
    """Put stages that share their largest read into one, the largest reads first."""
    largest: dict[Group, int] = {}
    for node, wanted in demands.items():
        if node.op is Op.DATA or node in result.stored:
            for stage, _ in wanted:
                if not stage.holds(node):
                    largest[stage] = max(largest.get(stage, 0), node.nbytes)
    shared = [n for n in order if len(demands[n]) > 1 and (n.op is Op.DATA or n in result.stored)]
    position = {node: i for i, node in enumerate(order)} if shared else {}
    gone: dict[Group, tuple[Group, Labels]] = {}
    readers: dict[Group, Readers] = {}

    def apart(host: Group, stage: Group) -> bool:
        first, then = (host, stage) if host.rank > stage.rank else (stage, host)
        if first not in readers:
            readers[first] = Readers(first.users)
        return then not in readers[first]

    for node in sorted(shared, key=lambda n: -n.nbytes):
        hosts: deque[tuple[Group, Labels]] = deque(maxlen=MOST_HOSTS)
        wanted = dict.fromkeys(_moved(demand, gone) for demand in demands[node])
        for stage, seen in sorted(wanted, key=lambda d: -prod(d[0].domain)):
            if stage in gone or seen is None or largest.get(stage, 0) > node.nbytes:
                continue
            # A stage that sees the node in two ways may be a host by one of them, and be gone by the other.
            tried = [h for h in hosts if h[0] not in gone and has_room(h[0])] if _may_move(stage) else []
            places = (place_stage(stage, seen, *h) for h in tried if h[0] is not stage and apart(h[0], stage))
            place = next((p for p in places if p is not None), None)
            if place is None:
                hosts.append((stage, seen))
                continue
            host, labels = place
            absorb(host, stage, labels, position)
            result.put(host, stage)
            readers.clear()
            gone[stage] = place
            largest[host] = max(largest.get(host, 0), largest.get(stage, 0))
    result.groups = [g for g in result.groups if g not in gone]
    for node, stage in result.stored.items():
        while stage in gone:
            stage, _ = gone[stage]
        result.stored[node] = stage


def _moved(demand: Demand, gone: Mapping[Group, tuple[Group, Labels]]) -> Demand:
    """A demand as the stage has it that its own has become part of."""
    stage, seen = demand
    while stage in gone:
        stage, labels = gone[stage]
        seen = None if seen is None else relabelled(seen, labels)
    return stage, seen


def largest_inputs(node: Node) -> list[Node]:
    """The inputs whose reading is what the node costs."""
    most = max((i.nbytes for i in node.inputs), default=0)
    return [i for i in dict.fromkeys(node.inputs) if i.nbytes == most > 0]


def place_beside(
    shape: Root, own: Labels, stage: Group, seen: Labels, readers: Container[Group]
) -> Labels | None:
    """The stage's dimension for each of a node's own, if the node may be computed there.

    `own` is how the node, over `shape`, sees one of its largest inputs, `seen` how the stage sees it;
    `readers` are the stages that will read the node, through others or not.
    """
    if not has_room(stage) or len(own) != len(seen) or stage in readers:
        return None
    labels = _match(shape.domain, own, seen)
    return labels if labels is not None and _leaves_enough(stage, labels, shape.whole) else None


def place_stage(stage: Group, seen: Labels, host: Group, theirs: Labels) -> tuple[Group, Labels] | None:
    """The host, and its dimension for each of the stage's, if all of the stage may run there.

    `seen` and `theirs` are how the two see one array that both read. Neither may wait for the other.
    """
    if len(stage.more) + len(host.more) + 2 > MOST_RESULTS:
        return None
    labels = _match(stage.domain, seen, theirs)
    if labels is None or not _leaves_enough(host, labels, stage.whole):
        return None
    return host, labels


def _may_move(stage: Group) -> bool:
    """Whether a stage may become part of another at all."""
    return has_room(stage) and stage.root.op is not Op.RANDOM and not _is_copy(stage)


def _is_copy(stage: Group) -> bool:
    """Whether a stage stores a view of what it does not compute: it is a read alone."""
    node = stage.root
    while node.op in VIEWS:
        (node,) = node.inputs
        if not stage.holds(node):
            return True
    return False


def absorb(host: Group, stage: Group, labels: Labels, position: Mapping[Node, int]) -> None:
    """Move all of a stage into its host."""
    host.whole |= kept_whole(host, labels, stage.whole)
    moved = [(node, relabelled(own, labels)) for node, own in stage.members]
    host.members = list(dict.fromkeys([*host.members, *moved]))
    add_result(host, stage.root, labels)
    for r in stage.more:
        inputs = None if r.inputs is None else tuple(relabelled(i, labels) for i in r.inputs)
        host.more.append(Result(r.node, relabelled(r.out, labels), inputs))
    host.members.sort(key=lambda m: -position[m[0]])
    host.recount()


def add_result(stage: Group, node: Node, labels: Labels) -> None:
    """Store a node's value in a stage, which computes it over the dimensions `labels` of its domain."""
    shape = root(node)
    out = relabelled(shape.out, labels)
    if node.op is Op.FOLD or len(shape.out) < len(shape.domain) or node.fn in REDUCING:
        stage.more.append(Result(node, out, tuple(relabelled(i, labels) for i in shape.inputs)))
    else:
        stage.members.append((node, out))
        stage.more.append(Result(node, out))


@lru_cache(maxsize=4096)
def _match(domain: tuple[int, ...], own: Labels, seen: Labels) -> Labels | None:
    """The stage's dimension for each dimension of a node's domain, from how both see one array.

    Where the node sees whole lines, the stage may go along them: it does not follow that dimension for the
    node, and so keeps it whole. A dimension of one element that the array does not have is nowhere.
    """
    found: dict[int, int] = {}
    whole = set[int]()
    for mine, theirs in zip(own, seen, strict=True):
        if mine == WHOLE:
            whole.add(theirs)
        elif theirs == WHOLE or found.setdefault(mine, theirs) != theirs:
            return None
    places = set(found.values())
    if len(places) < len(found) or not whole.isdisjoint(places):
        return None
    if any(n > 1 and d not in found for d, n in enumerate(domain)):
        return None
    return tuple(found.get(d, WHOLE) for d in range(len(domain)))


def _leaves_enough(stage: Group, labels: Labels, whole: Iterable[int]) -> bool:
    """Whether enough of the domain can still be cut when the node has joined; lines that no cache holds are
    worked on by one function at a time, as memory may have no room for what two make of them."""
    uncut = stage.whole | kept_whole(stage, labels, whole)
    if uncut == stage.whole:
        return not frozenset(whole) or prod(stage.domain[d] for d in uncut) <= LARGEST_BLOCK
    return leaves_enough(stage.domain, uncut)


def kept_whole(stage: Group, labels: Labels, whole: Iterable[int]) -> set[int]:
    """The stage's dimensions that stay uncut for a node with `labels`, whose own `whole` do."""
    return ({labels[d] for d in whole} | unfollowed(stage, labels)) - {WHOLE}


def relabelled(own: Labels, labels: Labels) -> Labels:
    """Labels over a node's own domain as labels over the stage's."""
    return tuple(WHOLE if d == WHOLE else labels[d] for d in own)


class Readers(Container[Group]):
    """Some stages, and those that read, through whatever stages, what they store.

    They are followed as far as is asked, by falling rank, so that each is met once.
    """

    def __init__(self, stages: Iterable[Group]) -> None:
        self._found = set(stages)
        self._waiting = [(-stage.rank, id(stage), stage) for stage in self._found]
        heapify(self._waiting)

    def __contains__(self, stage: object) -> bool:
        assert isinstance(stage, Group)
        while stage not in self._found and self._waiting and -self._waiting[0][0] > stage.rank:
            _, _, maker = heappop(self._waiting)
            for user in maker.users:
                if user not in self._found:
                    self._found.add(user)
                    heappush(self._waiting, (-user.rank, id(user), user))
        return stage in self._found


def users_first(groups: list[Group]) -> list[Group]:
    """The stages in an order in which each comes after all that read its results."""
    placed: dict[Group, None] = {}
    for group in groups:
        waiting = [group]
        while waiting:
            missing = [u for u in waiting[-1].users if u not in placed]
            if missing:
                waiting.extend(missing)
            else:
                placed.setdefault(waiting.pop())
    return list(placed)
