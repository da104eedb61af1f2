"""Stages of several results: what shares a read shares the pass.

A node that has to be stored can be computed in a stage that reads the same large array the same way, as a
further result: `sum(X * Y)` beside `sum(X * Z)`, a minimum beside a mean. The stage's dimensions
that the node does not follow then stay uncut. Nothing may wait for itself: the stage must not read, even
through others, what is stored in it.

Fusion plans (SystemML), section 2.2: the template MAgg, here over any results of one domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.ops.joins import REDUCING
from spartan_ng.optimizer.fusion.labels import WHOLE, Labels, Root, root

if TYPE_CHECKING:
    from spartan_ng.optimizer.fusion.group import Group

LARGEST_BLOCK = 8192
"""The most elements of the domain that one block may be forced to hold by dimensions that stay uncut."""
MOST_RESULTS = 16
"""Results of one stage."""
_MOST_MEMBERS = 100
_MOST_FOLLOWED = 256
"""Stages looked at for a way around; beyond, there may be one."""
_LEAST_TASKS = 64
"""What uncut dimensions must leave of a domain to cut."""


@dataclass(frozen=True, slots=True)
class Result:
    """A further result of a stage: a fused member that is stored, too, or a value reduced over the domain."""

    node: Node
    out: Labels
    inputs: tuple[Labels, ...] | None = None
    """Of a reduced value, the labels of its operands; None: the node is a member."""


def has_room(stage: Group) -> bool:
    """Whether a stage may get a further result."""
    if stage.separate or stage.scan is not None or stage.uncut or stage.root.format != "dense":
        return False
    if len(stage.more) >= MOST_RESULTS - 1 or len(stage.members) >= _MOST_MEMBERS:
        return False
    return not stage.is_product


def largest_inputs(node: Node) -> list[Node]:
    """The inputs whose reading is what the node costs."""
    most = max((i.nbytes for i in node.inputs), default=0)
    return [i for i in dict.fromkeys(node.inputs) if i.nbytes == most > 0]


def may_stand_beside(node: Node) -> bool:
    """Whether a node may be a further result of a stage at all."""
    if node.op is Op.RANDOM or any(i.format != "dense" for i in (node, *node.inputs)):
        return False
    return not is_product(node)


def place_beside(
    shape: Root, own: Labels, stage: Group, seen: Labels, users: Iterable[Group]
) -> Labels | None:
    """The stage's dimension for each of a node's own, if the node may be computed there.

    `own` is how the node, over `shape`, sees one of its largest inputs, `seen` how the stage sees it; `users`
    are the stages that will read the node.
    """
    if not has_room(stage) or len(own) != len(seen):
        return None
    labels = _match(shape.domain, own, seen)
    if labels is None or not _leaves_enough(stage, labels, shape.whole) or follows(stage, users):
        return None
    return labels


def place_stage(stage: Group, seen: Labels, host: Group, theirs: Labels) -> tuple[Group, Labels] | None:
    """The host, and its dimension for each of the stage's, if all of the stage may run there.

    `seen` and `theirs` are how the two see one array that both read.
    """
    if stage is host or not (has_room(stage) and has_room(host)) or stage.root.op is Op.RANDOM:
        return None
    if _is_copy(stage):
        return None
    if len(stage.more) + len(host.more) + 2 > MOST_RESULTS:
        return None
    labels = _match(stage.domain, seen, theirs)
    if labels is None or not _leaves_enough(host, labels, stage.whole):
        return None
    waits = follows(host, stage.users) or follows(stage, host.users)
    return None if waits else (host, labels)


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
    host.users |= stage.users


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
    """Whether enough of the domain can still be cut when the node has joined."""
    uncut = stage.whole | kept_whole(stage, labels, whole)
    if uncut == stage.whole:
        return True
    return leaves_uncut(prod(stage.domain), prod(stage.domain[d] for d in uncut))


def leaves_uncut(size: int, kept: int) -> bool:
    """Whether a domain of that size may keep dimensions of so many elements whole."""
    return size >= kept * min(_LEAST_TASKS, size) and kept <= LARGEST_BLOCK


def kept_whole(stage: Group, labels: Labels, whole: Iterable[int]) -> set[int]:
    """The stage's dimensions that stay uncut for a node with `labels`, whose own `whole` do."""
    return ({labels[d] for d in whole} | unfollowed(stage, labels)) - {WHOLE}


def unfollowed(stage: Group, labels: Labels) -> set[int]:
    """The stage's dimensions that a node with `labels` does not follow."""
    return {d for d, n in enumerate(stage.domain) if d not in labels and n > 1}


def relabelled(own: Labels, labels: Labels) -> Labels:
    """Labels over a node's own domain as labels over the stage's."""
    return tuple(WHOLE if d == WHOLE else labels[d] for d in own)


def is_product(node: Node) -> bool:
    """Whether the node is a product that is better left to BLAS as a whole: its result is its cost."""
    return node.fn == "contract" and prod(node.shape) ** 2 >= prod(root(node).domain)


def follows(stage: Group, others: Iterable[Group]) -> bool:
    """Whether a stage is one of `others` or reads, through whatever stages, what they store."""
    seen: set[Group] = set()
    waiting = list(others)
    while waiting:
        one = waiting.pop()
        if one is stage or len(seen) > _MOST_FOLLOWED:
            return True
        if one not in seen:
            seen.add(one)
            waiting.extend(one.users)
    return False


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
