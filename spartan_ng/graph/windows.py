"""Which nodes are the places of sliding windows, as `Windows` of the API builds them."""

from __future__ import annotations

from spartan_ng.graph.node import Node, Op


def is_every_start(places: Node) -> bool:
    """Whether it is `arange(k)[:, None] + arange(n)`."""
    if places.op is not Op.MAP or places.fn != "add" or places.ndim != 2:
        return False
    first, inside = places.inputs
    starts = first.inputs[0] if first.op is Op.RESHAPE else first
    return (
        starts.op is inside.op is Op.INDEX
        and (first.shape, inside.shape) == ((places.shape[0], 1), (places.shape[1],))
        and starts.shape == (places.shape[0],)
    )


def are_windows(node: Node) -> bool:
    """Whether a node has all elements of windows along an axis, whose places follow it: a view shows them."""
    if node.op is not Op.JOIN_UPDATE or node.fn != "take" or not node.size:
        return False
    base, places = node.inputs
    return is_every_start(places) and sum(places.shape) - 1 <= base.shape[node.params[0]]
