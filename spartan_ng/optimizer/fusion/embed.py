"""How one pass goes over the domain of another: dimension by dimension, by an array that both see.

A pass is embedded in another where each of its dimensions is one of the other's; those that are left of the
other's stay whole, so that nothing is computed again for each block.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from spartan_ng.arrays import WHOLE
from spartan_ng.optimizer.fusion.labels import Labels
from spartan_ng.optimizer.fusion.legality import unfollowed


@lru_cache(maxsize=4096)
def embedding(domain: tuple[int, ...], own: Labels, seen: Labels) -> Labels | None:
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


def kept_whole(domain: tuple[int, ...], labels: Labels, whole: Iterable[int]) -> frozenset[int]:
    """The dimensions of a domain that stay uncut for what has these labels, and its own `whole`, there."""
    return (unfollowed(domain, labels) | {labels[d] for d in whole}) - {WHOLE}


def relabelled(own: Labels, labels: Labels) -> Labels:
    """Labels over a node's own domain as labels over the stage's."""
    return tuple(WHOLE if d == WHOLE else labels[d] for d in own)
