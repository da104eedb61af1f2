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
from heapq import heapify, heappop, heappush
from math import prod

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.ops.joins import REDUCING
from spartan_ng.optimizer.fusion.embed import embedding, kept_whole, relabelled
from spartan_ng.optimizer.fusion.group import Demand, Group, Grouping, JoinedPasses, Result
from spartan_ng.optimizer.fusion.labels import Labels, Root, root
from spartan_ng.optimizer.fusion.legality import (
    MOST_RESULTS,
    has_room,
    may_keep,
)

MOST_HOSTS = 16
"""Stages that are tried as the pass of what reads an array that they read, too."""


def merge(
    result: Grouping,
    order: list[Node],
    demands: dict[Node, dict[Demand, None]],
    joined: Iterable[JoinedPasses] = (),
) -> None:
    """Put the chosen stages into others, then such as share their largest read, the largest reads first."""
    gone: dict[Group, tuple[Group, Labels]] = {}
    position = {node: i for i, node in enumerate(order)}
    readers: dict[Group, Readers] = {}

    def apart(host: Group, stage: Group) -> bool:
        first, then = (host, stage) if host.rank > stage.rank else (stage, host)
        if first not in readers:
            readers[first] = Readers(first.users)
        return then not in readers[first]

    for one, end, labels in joined:
        if labels is None:
            continue
        host, stage = result.stored[one], result.stored[end]
        if not apart(host, stage):
            continue  # what other partitions have joined lies between them
        absorb(host, stage, labels, position)
        result.put(host, stage)
        readers.clear()
        gone[stage] = host, labels
    again = _computed_again(g for g in result.groups if g not in gone)
    shared = [
        n for n in order if n in again or (len(demands[n]) > 1 and (n.op is Op.DATA or n in result.stored))
    ]
    for node in sorted(shared, key=lambda n: -n.nbytes):
        hosts: deque[tuple[Group, Labels]] = deque(maxlen=MOST_HOSTS)
        wanted = dict.fromkeys(_moved(demand, gone) for demand in again.get(node) or demands[node])
        for stage, seen in sorted(wanted, key=lambda d: -prod(d[0].domain)):
            if stage in gone or seen is None:
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
    result.groups = [g for g in result.groups if g not in gone]
    for node, stage in result.stored.items():
        while stage in gone:
            stage, _ = gone[stage]
        result.stored[node] = stage


def _computed_again(groups: Iterable[Group]) -> dict[Node, dict[Demand, None]]:
    """What several stages compute, each for itself, and how each sees it."""
    found: dict[Node, dict[Demand, None]] = {}
    for stage in groups:
        for node, labels in stage.members:
            if node.op not in VIEWS:
                found.setdefault(node, {})[(stage, labels)] = None
    return {node: seen for node, seen in found.items() if len(seen) > 1}


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
    labels = embedding(shape.domain, own, seen)
    return labels if labels is not None and _leaves_enough(stage, labels, shape.whole) else None


def place_stage(stage: Group, seen: Labels, host: Group, theirs: Labels) -> tuple[Group, Labels] | None:
    """The host, and its dimension for each of the stage's, if all of the stage may run there.

    `seen` and `theirs` are how the two see one array that both read. Neither may wait for the other.
    """
    if len(stage.more) + len(host.more) + 2 > MOST_RESULTS:
        return None
    labels = embedding(stage.domain, seen, theirs)
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
    host.uncut |= {labels[d] for d in stage.uncut} - {WHOLE}
    host.closed |= stage.closed
    host.whole |= kept_whole(host.domain, labels, stage.whole)
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


def _leaves_enough(stage: Group, labels: Labels, whole: Iterable[int]) -> bool:
    """Whether enough of the domain can still be cut when the node has joined."""
    kept = stage.whole | kept_whole(stage.domain, labels, whole)
    return may_keep(stage.domain, stage.whole, kept, whole, stage.uncut)


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
