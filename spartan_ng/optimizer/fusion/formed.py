"""What stages cost as they were formed: the judge of several ways to cut one graph.

The search costs plans before stages exist, and has to guess which passes will merge and what will be
refused. Here nothing is guessed: a stage reads what it does not compute, once each, computes its members, and
writes its results. So the plan that was found is compared with both heuristics' own on equal terms.

Fusion plans (SystemML), section 4.3, Eq. 4: write + max(read, compute), summed over the stages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from spartan_ng.costs import Profile
from spartan_ng.costs.operations import of_node, weighed
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.optimizer.fusion.group import Group, Grouping
from spartan_ng.optimizer.fusion.labels import WHOLE, Labels, input_labels, is_transparent, root
from spartan_ng.optimizer.fusion.operators import computed_share, stored_bytes


def formed_ps(grouping: Grouping, density: Mapping[Node, float], profile: Profile) -> int:
    """Picoseconds that stages are predicted to take; `density` is the part that is stored of each node."""
    return sum(_stage_ps(stage, grouping, density, profile) for stage in grouping.groups)


def _stage_ps(stage: Group, grouping: Grouping, density: Mapping[Node, float], profile: Profile) -> int:
    """Write, and the longer of read and compute."""
    computed = _computed(stage)
    reads: dict[Node, tuple[int, bool]] = {}
    compute = 0
    for node, labels in computed.items():
        share = _share(node, grouping, density)
        compute += weighed(node, of_node(node), share) * profile.flop_ps
        for operand, own in zip(node.inputs, labels, strict=True):
            below, nbytes, seen = _base(operand, own, (computed, grouping.stored), density)
            if below in computed or below.op is Op.INDEX:
                continue
            if below.format == "dense" and below.shape == node.shape:
                nbytes = int(nbytes * share)
            before, aligned = reads.get(below, (0, False))
            reads[below] = (max(before, nbytes), aligned or _is_aligned(stage, seen))
    read = 0
    write = profile.launch_ps + profile.step_ps * (len(computed) + len(reads))
    for below, (nbytes, aligned) in reads.items():
        near = aligned or not profile.network_ps or below.size <= 1
        read += nbytes * (profile.memory_ps if near else profile.network_ps)
        write += 0 if near else profile.message_ps
    for node in stage.stored:
        nbytes = stored_bytes(node, density[node])
        partial = profile.network_ps if prod(stage.domain) > node.size else 0
        write += nbytes * (profile.memory_ps + partial)
    return write + max(read, compute)


def _computed(stage: Group) -> dict[Node, tuple[Labels | None, ...]]:
    """What the stage computes, each with how it sees its operands."""
    found: dict[Node, tuple[Labels | None, ...]] = {}
    for node, own in stage.members:
        if not is_transparent(node):
            found[node] = input_labels(node, own)
    for result in stage.more:
        if result.inputs is not None:
            found[result.node] = result.inputs
    node = stage.root
    if stage.separate or node.op is Op.SLICE:
        found[node] = (None,) * len(node.inputs)
    else:
        found[node] = input_labels(node, stage.out) if node.op in VIEWS else root(node).inputs
    return found


def _base(
    source: Node,
    seen: Labels | None,
    values: Sequence[Collection[Node]],
    density: Mapping[Node, float],
) -> tuple[Node, int, Labels | None]:
    """What an operand reads below its views, how many bytes of it, and how its axes are seen.

    `values` are nodes that have a value of their own, views or not.
    """
    nbytes = stored_bytes(source, density[source])
    while source.op in VIEWS and not any(source in v for v in values):
        seen = input_labels(source, seen)[0] if seen is not None and is_transparent(source) else None
        (source,) = source.inputs
        nbytes = min(nbytes, stored_bytes(source, density[source]))
    return source, nbytes, seen


def _share(node: Node, grouping: Grouping, density: Mapping[Node, float]) -> float:
    """The part of a node's operations that is done where a sparse operand may drive it."""
    drivers = grouping.drivers.get(node, ())
    return min((density[d] for d in drivers), default=computed_share(node, density))


def _is_aligned(stage: Group, seen: Labels | None) -> bool:
    """Whether a task that has its part of the longest dimension has its part of the operand."""
    if seen is None:
        return False
    longest = max(stage.domain, default=1)
    return any(label != WHOLE and stage.domain[label] == longest for label in seen)
