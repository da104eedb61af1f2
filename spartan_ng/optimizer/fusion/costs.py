"""What a pass takes: the only place that says so.

A pass writes its results while nothing else runs; reading and computing overlap. So it takes write +
max(read, compute), and a little for every pass, operand and operator. The search adds up the same prices for
passes that do not exist yet (`tables`, `plans`). `formed_ps` does it for stages as they were formed, and so
judges whoever proposed them: a stage reads what it does not compute, once each, computes its members, and
writes its results.

Fusion plans (SystemML), section 4.3, Eq. 4: write + max(read, compute), summed over the stages.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from math import prod

from spartan_ng.costs import Profile
from spartan_ng.costs.operations import work_of_node
from spartan_ng.costs.traffic import written_bytes
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.optimizer.fusion.group import Group, Grouping
from spartan_ng.optimizer.fusion.labels import Labels, input_labels, is_read, is_transparent, root
from spartan_ng.optimizer.fusion.operators import Estimate, is_aligned, stored_parts
from spartan_ng.optimizer.fusion.sampling import Drivers


def read_ps(nbytes: int, node: Node, aligned: bool, profile: Profile) -> tuple[int, int]:
    """What reading so many bytes of a value takes, and waiting for them.

    What tasks do not have of their own, as it is not `aligned` with them, is sent to all of them; or
    read by all of them, where it lies outside.
    """
    if is_read(node):
        return nbytes * profile.outside_ps * (1 if aligned else profile.workers), profile.step_ps
    near = aligned or not profile.network_ps or node.size <= 1
    rate = profile.memory_ps if near else profile.network_ps
    return nbytes * rate, profile.step_ps + (0 if near else profile.message_ps)


def write_ps(nbytes: int, node: Node, domain: tuple[int, ...], profile: Profile) -> int:
    """What writing so many bytes of a value takes; states of what a domain is reduced to are sent, too."""
    partial = profile.network_ps if prod(domain) > node.size else 0
    return written_bytes(nbytes) * profile.memory_ps + nbytes * partial


def pass_ps(read: int, compute: int, write: int) -> int:
    """What a pass takes whose parts take so long."""
    return write + max(read, compute)


def formed_ps(grouping: Grouping, known: Mapping[Node, Estimate], profile: Profile) -> int:
    """Picoseconds that stages are predicted to take; `known` is what has been estimated of each node."""
    return sum([_stage_ps(stage, grouping, known, profile) for stage in grouping.groups])


def _stage_ps(stage: Group, grouping: Grouping, known: Mapping[Node, Estimate], profile: Profile) -> int:
    """Write, and the longer of read and compute."""
    computed = _computed(stage)
    reads: dict[Node, tuple[int, bool]] = {}
    work = 0
    # Where one of them is stored, all of it is made, and all that it is made of.
    few = not any(n.format == "dense" and n in grouping.drivers for n in stage.stored)
    for node, labels in computed.items():
        share, operations = _done(node, grouping.drivers if few else {}, known)
        work += operations
        for operand, own in zip(node.inputs, labels, strict=True):
            if operand in computed:
                continue
            below, nbytes, seen = _base(operand, own, computed, grouping.stored, known)
            if below in computed or below.op is Op.INDEX:
                continue
            if below.format == "dense" and below.shape == node.shape:
                nbytes = int(nbytes * share)
            before, aligned = reads.get(below, (0, False))
            reads[below] = (max(before, nbytes), aligned or is_aligned(stage, seen))
    read, write = 0, profile.launch_ps + profile.step_ps * len(computed)
    for below, (nbytes, aligned) in reads.items():
        moved, wait = read_ps(nbytes, below, aligned, profile)
        read, write = read + moved, write + wait
    write += sum([write_ps(known[node].nbytes, node, _domain(node, stage), profile) for node in stage.stored])
    return pass_ps(read, work * profile.flop_ps, write)


def _domain(node: Node, stage: Group) -> tuple[int, ...]:
    """What a stored value is reduced from; one that is made on the way is not."""
    if any(r.node is node and r.inputs is None for r in stage.more):
        return node.shape
    if node.op is Op.FOLD or node.op is Op.JOIN_UPDATE:
        return stage.domain if stage.separate or node.op in VIEWS else root(node).domain
    return node.shape


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
    computed: Container[Node],
    stored: Container[Node],
    known: Mapping[Node, Estimate],
) -> tuple[Node, int, Labels | None]:
    """What an operand reads below its views, how many bytes of it, and how its axes are seen.

    `computed` and `stored` nodes have a value of their own, views or not.
    """
    nbytes = known[source].nbytes
    while source.op in VIEWS and source not in computed and source not in stored:
        seen = input_labels(source, seen)[0] if seen is not None and is_transparent(source) else None
        view, (source,) = source, source.inputs
        if view.op is Op.TRANSPOSE and nbytes == known[view].nbytes:
            nbytes = known[source].nbytes  # all of it: of a CSR array also where each row begins
        nbytes = min(nbytes, known[source].nbytes)
    return source, nbytes, seen


def _done(node: Node, all_drivers: Drivers, known: Mapping[Node, Estimate]) -> tuple[float, int]:
    """The part of a node's operations that is done where a sparse operand may drive it, and that part."""
    drivers = all_drivers.get(node)
    return driven(node, drivers, known) if drivers else (known[node].share, known[node].work)


def driven(node: Node, drivers: Iterable[Node], known: Mapping[Node, Estimate]) -> tuple[float, int]:
    """The same of a node that is needed at the non-zeros of some sparse nodes alone."""
    share = min([known[d].density for d in drivers])
    return share, work_of_node(node, stored_parts(node, known), share)
