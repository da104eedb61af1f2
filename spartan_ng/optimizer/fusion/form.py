"""Form the stages that were chosen: fuse each node into its consumers' pass, or store its value.

One walk over the nodes, users before inputs. A node is fused where the choice says so and `legality` has
nothing against it; one that the choice leaves open, where all that read it are in one stage. Everything else
is stored: in a stage that computes it or reads the same (`merge`), or in one of its own. Sources that cost
nothing (`iota`) and views are repeated in every stage that reads them.

Without a choice this is the fuse-no-redundancy heuristic of "On Optimizing Operator Fusion Plans",
section 4.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from spartan_ng.costs import Profile
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.optimizer.fusion.crossing import crossing_products, goes_alone
from spartan_ng.optimizer.fusion.embed import kept_whole, relabelled
from spartan_ng.optimizer.fusion.group import (
    Demand,
    Fusing,
    Group,
    Grouping,
    JoinedPasses,
    Result,
    keep_rows,
    open_stage,
)
from spartan_ng.optimizer.fusion.labels import (
    Labels,
    input_labels,
    is_fusible,
    is_transparent,
    root,
)
from spartan_ng.optimizer.fusion.legality import (
    has_room,
    joins_others,
    may_stand_beside,
    never_joins,
    one_name,
    passed_values,
    stands_alone,
    unfollowed,
    whole_if_joined,
)
from spartan_ng.optimizer.fusion.merge import (
    MOST_HOSTS,
    Readers,
    add_result,
    largest_inputs,
    merge,
    place_beside,
    users_first,
)
from spartan_ng.optimizer.fusion.sampling import Drivers, find_drivers

Seat = tuple[Group, Labels, frozenset[int]]
"""Where a node may be computed: the stage, the node's labels, and the dimensions that stay whole for it."""


def group(
    order: list[Node],
    roots: set[Node],
    fuse: bool = True,
    profile: Profile | None = None,
    fusing: Fusing | None = None,
    drivers: Drivers | None = None,
    joined: Sequence[JoinedPasses] = (),
    crossing: frozenset[Node] | None = None,
) -> Grouping:
    """Cut the topologically ordered nodes into stages; `roots` are stored in any case.

    `profile` is the cluster's, of one worker if there is none, `fusing` what selection has chosen; a node
    that it does not mention is fused if all that read it are in one stage. `drivers` and `crossing` products
    are the graph's, if they have been found.
    """
    demands: dict[Node, dict[Demand, None]] = {node: {} for node in order}
    profile = profile or Profile()
    drivers = find_drivers(order, roots) if drivers is None else drivers
    if crossing is None:
        crossing = crossing_products(order, profile) if fuse else frozenset()
    result = Grouping([], {}, drivers, fusing or {}, crossing)
    kept = {end: host for host, end, labels in joined if labels is None}
    for node in reversed(order):
        if node.op is Op.DATA:
            continue
        wanted = demands[node]
        if node not in roots and (is_transparent(node) or node.op is Op.SLICE):
            _pass_through(node, wanted, demands)
        elif (
            node not in roots
            and joins_others(node, profile)
            and (target := _fusible_into(node, wanted, fuse, result)) is not None
        ):
            for seat in target:
                seat[0].ends.add(node)
                _join(node, *seat, demands)
        else:
            _store(node, result, demands, profile, fuse, kept.get(node))
    if fuse:
        merge(result, order, demands, joined)
    result.groups = users_first(result.groups)
    return result


def _store(
    node: Node,
    result: Grouping,
    demands: dict[Node, dict[Demand, None]],
    profile: Profile,
    fuse: bool,
    keeper: Node | None,
) -> None:
    """Store `node` as a further result of a stage that there is, or open one that ends in it."""
    if node.op in VIEWS:
        for reader, labels in demands[node]:
            keep_rows(node, reader, labels, node)
    users = list(dict.fromkeys(stage for stage, _ in demands[node]))
    chosen = node in result.fusing
    joins = fuse and joins_others(node, profile) and (chosen or node.op is not Op.SCAN)
    if fuse and node.op is Op.SCAN and not chosen:
        folds = [u for u in users if passed_values(u) == {node}]
        stage = _as_member(node, folds, users, demands, result)
        if stage is not None:
            stage.ends.add(node)
            result.serve(stage, (u for u in users if u is not stage))
            result.stored[node] = stage
            return
    inside = _inside(node, users, demands, result) if joins else {}
    readers = [u for u in users if u not in inside]
    if joins and not chosen:
        stage = _as_member(node, users, readers, demands, result)
        stage = stage or _beside(node, readers, inside, demands)
        if stage is not None:
            inside.pop(stage, None)
            result.serve(stage, (u for u in readers if u is not stage))
            result.stored[node] = stage
            for seat in inside.values():
                _join(node, *seat, demands)
            return
    for stage, seat in inside.items():
        if keeper is not None and stage is result.stored[keeper]:
            for other in inside.values():
                _join(node, *other, demands)
            stage.more.append(Result(node, seat[1]))
            result.serve(stage, (u for u in readers if u is not stage))
            result.stored[node] = stage
            return
    stage, seen = open_stage(node, is_fusible(node, profile), profile.limited and stands_alone(node, profile))
    _demand(node, stage, seen, demands)
    result.serve(stage, readers)
    result.groups.append(stage)
    result.stored[node] = stage
    for seat in inside.values():
        _join(node, *seat, demands)


def _inside(
    node: Node, users: list[Group], demands: dict[Node, dict[Demand, None]], result: Grouping
) -> dict[Group, Seat]:
    """The stages that were chosen to compute the node for themselves, although it is stored for others."""
    places: dict[Group, Seat] = {}
    for stage in users:
        if _computes(stage, node, result.fusing):
            target = _fusible_into(node, [d for d in demands[node] if d[0] is stage], True, result)
            if target is not None:
                (places[stage],) = target
    return places


def _computes(stage: Group, node: Node, fusing: Fusing) -> bool:
    """Whether the node was chosen to be computed in the pass that the stage is."""
    return not stage.ends.isdisjoint(fusing.get(node, ()))


def _as_member(
    node: Node,
    hosts: Iterable[Group],
    users: list[Group],
    demands: dict[Node, dict[Demand, None]],
    result: Grouping,
) -> Group | None:
    """Compute the node in one of the stages that ask for it, which then stores it for the others, too."""
    if node.format != "dense" or node.op is Op.INDEX:
        return None
    for stage in hosts:
        if not has_room(stage):
            continue
        wanted = [d for d in demands[node] if d[0] is stage]
        target = _fusible_into(node, wanted, True, result, weighed=False)
        if target is not None and stage not in Readers(u for u in users if u is not stage):
            ((_, labels, whole),) = target
            if not unfollowed(stage.domain, labels) <= stage.whole | whole:
                continue  # cheap to compute again for each block, but then nobody's to store
            _join(node, stage, labels, whole, demands)
            stage.more.append(Result(node, labels))
            return stage
    return None


def _beside(
    node: Node, users: list[Group], inside: Collection[Group], demands: dict[Node, dict[Demand, None]]
) -> Group | None:
    """Compute the node in a stage that reads the largest of its inputs the same way.

    Not in one of those that compute it for themselves: they need it in another way, block by block.
    """
    if not may_stand_beside(node):
        return None
    shape, largest, readers = root(node), largest_inputs(node), Readers(users)
    inputs = zip(node.inputs, shape.inputs, strict=True)
    for own, stage, seen in ((own, *d) for i, own in inputs if i in largest for d in _latest(demands[i])):
        if seen is not None and stage not in inside:
            labels = place_beside(shape, own, stage, seen, readers)
            if labels is not None:
                break
    else:
        return None
    stage.whole |= kept_whole(stage.domain, labels, shape.whole)
    add_result(stage, node, labels)
    _demand(node, stage, tuple(relabelled(i, labels) for i in shape.inputs), demands)
    return stage


def _latest(wanted: dict[Demand, None]) -> list[Demand]:
    """The demands of the last stages that were opened: in a long program, those nearest to what is above."""
    return list(islice(reversed(wanted), MOST_HOSTS))[::-1]


def _join(
    node: Node,
    stage: Group,
    labels: Labels,
    whole: frozenset[int],
    demands: dict[Node, dict[Demand, None]],
) -> None:
    """Make the node a member of a stage, for which dimensions stay whole."""
    if node.op is Op.SCAN:
        stage.scan = node
    stage.whole |= whole
    stage.members.append((node, labels))
    _demand(node, stage, input_labels(node, labels), demands)


def _demand(
    node: Node,
    stage: Group,
    labels: tuple[Labels | None, ...],
    demands: dict[Node, dict[Demand, None]],
) -> None:
    for source, seen in zip(node.inputs, labels, strict=True):
        demands[source][(stage, seen)] = None
        if source.format != "dense" and source.op not in VIEWS:
            # A view that is not stored passes on what its array asks for.
            keep_rows(source, stage, seen, node)


def _pass_through(node: Node, wanted: dict[Demand, None], demands: dict[Node, dict[Demand, None]]) -> None:
    """Ask the view's input in the view's stead; a slice asks for the stored array."""
    for stage, labels in wanted:
        if labels is None or not is_transparent(node):
            _demand(node, stage, (None,), demands)
        else:
            stage.members.append((node, labels))
            _demand(node, stage, input_labels(node, labels), demands)


def _fusible_into(
    node: Node, wanted: Collection[Demand], fuse: bool, result: Grouping, weighed: bool = True
) -> list[Seat] | None:
    """Where to compute the node, or None where its value is to be stored.

    `weighed` says that the node has to be among those that selection fuses, if selection knows it.
    """
    if never_joins(node):
        return None
    seen: dict[Group, list[Labels]] = {}
    for stage, labels in wanted:
        if labels is None or stage.separate:
            return None
        if node in result.crossing and goes_alone(node, stage):
            return None
        seen.setdefault(stage, []).append(labels)
    if node.op is Op.INDEX:
        return [(stage, labels, frozenset()) for stage, labels in wanted if labels is not None]
    if not fuse:
        return None
    if weighed and node in result.fusing:
        chosen = all(_computes(stage, node, result.fusing) for stage in seen)
    else:
        chosen = len(seen) == 1
    if not chosen:
        return None
    driven, seats = node in result.drivers, list[Seat]()
    for stage, ways in seen.items():
        labels = one_name(node, stage, ways)
        whole = None if labels is None else whole_if_joined(node, stage, labels, driven)
        if labels is None or whole is None:
            return None
        seats.append((stage, labels, whole))
    return seats
