"""Cut the graph into stages: fuse each node into its consumers' pass, or store its value.

One pass over the nodes, users before inputs. A node is fused when all that read it are in one stage and
see it under the same labels, and when computing it block by block repeats no work: the domain
dimensions that the node does not follow must then stay whole, so they must be small. Everything
else is stored and becomes the root of a stage. Sources that cost nothing (`iota`) and views are repeated
in every stage that reads them.

This is the fuse-no-redundancy heuristic over the templates Cell, Row and (small-sided) Outer of
"On Optimizing Operator Fusion Plans", section 4.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import prod

from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.ops.joins import REDUCING
from spartan_ng.optimizer.fusion.labels import (
    WHOLE,
    Labels,
    input_labels,
    is_fusible,
    is_transparent,
    root,
    sums_sparse_rows,
    whole_dimensions,
)
from spartan_ng.optimizer.fusion.merge import (
    LARGEST_BLOCK,
    Result,
    absorb,
    add_result,
    follows,
    has_room,
    is_product,
    kept_whole,
    largest_inputs,
    may_stand_beside,
    place_beside,
    place_stage,
    relabelled,
    unfollowed,
    users_first,
)
from spartan_ng.optimizer.fusion.sampling import Drivers, find_drivers, is_sampled_product, is_union

LINE_BYTES = 1 << 18
"""The longest whole line that a fused row may need for each of its elements: a share of a core's cache."""
SIDE_BYTES = 1 << 20
"""The largest operand that a fused product or lookup may read whole for every block."""
SMALL_DOMAIN = 64
"""Uncut dimensions must leave at least this many tasks' worth of the domain to cut."""
MOST_HOSTS = 16
"""Stages that are tried as the pass of what reads an array that they read, too."""
SMALL_REPEAT = 64
"""Elements that may be computed again for every block."""


@dataclass(eq=False, slots=True)
class Group:
    """One stage to be: its root (a node whose value is stored), domain and fused members."""

    root: Node
    domain: tuple[int, ...]
    out: Labels
    whole: set[int]
    uncut: set[int] = field(default_factory=set)
    """Dimensions that tiles must not cut (their blocks may be): axes of sparse operands."""
    members: list[tuple[Node, Labels]] = field(default_factory=list)
    """Fused nodes and views with their labels, users before inputs."""
    separate: bool = False
    """A stage of its own kind: nothing is fused into it."""
    scan: Node | None = None
    """The cumulative aggregate in the stage: only maps stand around it, and no dimension stays whole."""
    more: list[Result] = field(default_factory=list)
    """Further results of the same pass."""
    users: dict[Group, None] = field(default_factory=dict)
    """Stages that read a result of this one."""
    _held: set[Node] = field(default_factory=set)
    _counted: int = 0
    """So many of the members are in `_held`."""
    _product: bool | None = None

    @property
    def stored(self) -> list[Node]:
        """The nodes whose values the stage stores."""
        return [self.root, *(r.node for r in self.more)]

    @property
    def is_product(self) -> bool:
        """Whether the stage ends in a product that is better left alone."""
        if self._product is None:
            self._product = is_product(self.root)
        return self._product

    def holds(self, node: Node) -> bool:
        """Whether the stage computes the node."""
        if self._counted < len(self.members):
            self._held.update(m for m, _ in self.members[self._counted :])
            self._counted = len(self.members)
        return node in self._held or node is self.root or any(r.node is node for r in self.more)

    def recount(self) -> None:
        """Take notice of members that have come anywhere but at the end."""
        self._held, self._counted = set(), 0

    def canonical(self, labels: Labels) -> Labels:
        """Labels with WHOLE for dimensions that are never cut: the same elements under one name."""
        return tuple(WHOLE if d in self.whole else d for d in labels) if self.whole else labels


@dataclass(slots=True)
class Grouping:
    """All stages, users before inputs, and the stored nodes."""

    groups: list[Group]
    stored: dict[Node, Group]
    drivers: Drivers = field(default_factory=dict)
    fusing: Fusing = field(default_factory=dict)
    refused: set[Node] = field(default_factory=set)
    """Nodes that were to be fused into a stage where they do not fit; they are stored."""


Demand = tuple[Group, Labels | None]
Fusing = Mapping[Node, Collection[Node]]
"""For a node, the operators that compute it in their own pass, each for itself; all others read it."""


def group(
    order: list[Node],
    roots: set[Node],
    fuse: bool = True,
    cut_lines: bool = False,
    fusing: Fusing | None = None,
) -> Grouping:
    """Cut the topologically ordered nodes into stages; `roots` are stored in any case.

    `cut_lines` says that there are workers to sort a single line together, `fusing` what selection has
    chosen; a node that it does not mention is fused if all that read it are in one stage.
    """
    demands: dict[Node, dict[Demand, None]] = {node: {} for node in order}
    result = Grouping([], {}, find_drivers(order, roots), fusing or {})
    for node in reversed(order):
        if node.op is Op.DATA:
            continue
        wanted = demands[node]
        if node not in roots and (is_transparent(node) or node.op is Op.SLICE):
            _pass_through(node, wanted, demands)
        elif (
            node not in roots
            and is_fusible(node, cut_lines)
            and not (cut_lines and sums_sparse_rows(node))
            and (target := _fusible_into(node, wanted, fuse, result)) is not None
        ):
            for stage, labels in target:
                if node.op is Op.SCAN:
                    stage.scan = node
                _join(node, stage, labels, demands)
        else:
            _store(node, result, demands, cut_lines, fuse)
    if fuse:
        _merge(result, order, demands)
    result.groups = users_first(result.groups)
    return result


def _merge(result: Grouping, order: list[Node], demands: dict[Node, dict[Demand, None]]) -> None:
    """Put stages that share their largest read into one, the largest reads first."""
    largest: dict[Group, int] = {}
    for node, wanted in demands.items():
        if node.op is Op.DATA or node in result.stored:
            for stage, _ in wanted:
                if not stage.holds(node):
                    largest[stage] = max(largest.get(stage, 0), node.nbytes)
    shared = [n for n in order if len(demands[n]) > 1 and (n.op is Op.DATA or n in result.stored)]
    position = {node: i for i, node in enumerate(order)} if shared else {}
    before: dict[Group, list[Group]] = {}
    for stage in result.groups:
        for user in stage.users:
            before.setdefault(user, []).append(stage)
    gone: dict[Group, tuple[Group, Labels]] = {}
    for node in sorted(shared, key=lambda n: -n.nbytes):
        hosts: deque[tuple[Group, Labels]] = deque(maxlen=MOST_HOSTS)
        wanted = dict.fromkeys(_moved(demand, gone) for demand in demands[node])
        for stage, seen in sorted(wanted, key=lambda d: -prod(d[0].domain)):
            if stage in gone or seen is None or largest.get(stage, 0) > node.nbytes:
                continue
            place = next((p for h in hosts if (p := place_stage(stage, seen, *h)) is not None), None)
            if place is None:
                hosts.append((stage, seen))
                continue
            host, labels = place
            absorb(host, stage, labels, position)
            gone[stage] = place
            largest[host] = max(largest.get(host, 0), largest.get(stage, 0))
            for one in before.pop(stage, ()):
                while one in gone:
                    one, _ = gone[one]
                if stage in one.users:
                    del one.users[stage]
                    one.users[host] = None
                before.setdefault(host, []).append(one)
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


def _store(
    node: Node, result: Grouping, demands: dict[Node, dict[Demand, None]], cut_lines: bool, fuse: bool
) -> None:
    """Store `node` as a further result of a stage that there is, or open one that ends in it."""
    if node.op in VIEWS:
        for reader, labels in demands[node]:
            _keep_rows(node, reader, labels)
    users = list(dict.fromkeys(stage for stage, _ in demands[node]))
    joins = fuse and is_fusible(node, cut_lines) and node.op is not Op.SCAN
    joins = joins and not (cut_lines and sums_sparse_rows(node))
    if fuse and node.op is Op.SCAN:
        folds = [u for u in users if _values(u) == {node}]
        stage = _as_member(node, folds, users, demands, result)
        if stage is not None:
            stage.scan = node
            stage.users |= {u: None for u in users if u is not stage}
            result.stored[node] = stage
            return
    inside = _inside(node, users, demands, result) if joins else {}
    readers = [u for u in users if u not in inside]
    if joins:
        hosts = inside if node in result.fusing and node not in result.refused else users
        stage = _as_member(node, hosts, readers, demands, result)
        stage = stage or _beside(node, readers, inside, demands)
        if stage is not None:
            inside.pop(stage, None)
            stage.users |= {u: None for u in readers if u is not stage}
            result.stored[node] = stage
            for other, labels in inside.items():
                _join(node, other, labels, demands)
            return
    if is_fusible(node, cut_lines):
        shape = root(node)
        stage = Group(node, shape.domain, shape.out, set(shape.whole))
        stage.scan = node if node.op is Op.SCAN else None
        _demand(node, stage, shape.inputs, demands)
    elif is_transparent(node) or node.op is Op.SLICE:
        labels = tuple(range(node.ndim))
        stage = Group(node, node.shape, labels, set())
        passed = input_labels(node, labels) if is_transparent(node) else (None,)
        _demand(node, stage, passed, demands)
    else:
        stage = Group(node, node.shape, tuple(range(node.ndim)), set(), separate=True)
        _demand(node, stage, (None,) * len(node.inputs), demands)
    stage.users = dict.fromkeys(readers)
    result.groups.append(stage)
    result.stored[node] = stage
    for other, labels in inside.items():
        _join(node, other, labels, demands)


def _inside(
    node: Node, users: list[Group], demands: dict[Node, dict[Demand, None]], result: Grouping
) -> dict[Group, Labels]:
    """The stages that compute the node for themselves, although it is stored for others."""
    places: dict[Group, Labels] = {}
    for stage in users:
        if not _computes(stage, node, result.fusing):
            continue
        target = _fusible_into(node, [d for d in demands[node] if d[0] is stage], True, result)
        if target is None:
            result.refused.add(node)
        else:
            ((_, places[stage]),) = target
    return places


def _computes(stage: Group, node: Node, fusing: Fusing) -> bool:
    """Whether selection has an operator of the stage compute the node in its own pass."""
    return any(stage.holds(n) for n in fusing.get(node, ()))


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
        if target is not None and not follows(stage, [u for u in users if u is not stage]):
            ((_, labels),) = target
            if not unfollowed(stage, labels) <= stage.whole | _missing(node, stage, labels):
                continue  # cheap to compute again for each block, but then nobody's to store
            _join(node, stage, labels, demands)
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
    shape, largest = root(node), largest_inputs(node)
    inputs = zip(node.inputs, shape.inputs, strict=True)
    for own, stage, seen in ((own, *d) for i, own in inputs if i in largest for d in _latest(demands[i])):
        if seen is not None and stage not in inside:
            labels = place_beside(shape, own, stage, seen, users)
            if labels is not None:
                break
    else:
        return None
    stage.whole |= kept_whole(stage, labels, shape.whole)
    add_result(stage, node, labels)
    _demand(node, stage, tuple(relabelled(i, labels) for i in shape.inputs), demands)
    return stage


def _latest(wanted: dict[Demand, None]) -> list[Demand]:
    """The demands of the last stages that were opened: in a long program, those nearest to what is above."""
    return list(islice(reversed(wanted), MOST_HOSTS))[::-1]


def _join(node: Node, stage: Group, labels: Labels, demands: dict[Node, dict[Demand, None]]) -> None:
    """Make the node a member of a stage."""
    stage.whole |= whole_dimensions(node, labels)
    stage.whole |= _missing(node, stage, labels)
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
            _keep_rows(source, stage, seen)  # a view that is not stored passes on what its array asks for


def _keep_rows(source: Node, stage: Group, labels: Labels | None) -> None:
    """Tiles of the stage must not cut the columns of a sparse or compressed array."""
    if source.format != "dense" and labels is not None and labels[1] != WHOLE:
        stage.uncut.add(labels[1])


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
) -> list[tuple[Group, Labels]] | None:
    """The stages (with labels) to compute the node in, or None where its value is to be stored.

    `weighed` says that the node has to be among those that selection fuses, if selection knows it.
    """
    if node.fn in REDUCING or node.fn == "matrices" or is_union(node):
        return None
    found: dict[Group, Labels] = {}
    for stage, labels in wanted:
        if labels is None or stage.separate:
            return None
        if node.op is not Op.INDEX:
            own = stage.canonical(labels)
            if found.setdefault(stage, own) != own:
                return None
    if node.op is Op.INDEX:
        return [(stage, labels) for stage, labels in wanted if labels is not None]
    if not fuse:
        return None
    places = list(found.items())
    if weighed and node in result.fusing:
        chosen = all(_computes(stage, node, result.fusing) for stage in found)
    else:
        chosen = len(places) == 1
    if not chosen:
        return None
    if node.op is Op.SCAN:
        return places if len(places) == 1 and _takes_scan(node, *places[0]) else None
    if node.op is Op.RANDOM:
        return places if len(places) == 1 and _draws_once(node, *places[0]) else None
    sampled = node in result.drivers and is_sampled_product(node)  # visited at single elements: no lines
    if not sampled and any(_hampers_product(node, *p, result) for p in places):
        return None
    return places if all(_fits(node, *place, sampled) for place in places) else None


def _hampers_product(node: Node, stage: Group, labels: Labels, result: Grouping) -> bool:
    """Whether the node would keep a dimension of a large product whole, which workers and blocks want to cut.

    What is made beside non-zeros may: the product's operand is never stored. Other operands are brought into
    the product's stage where it is cut.
    """
    if stage.root.fn != "contract" or node.format != "dense" or node in result.drivers:
        return False
    large = prod(stage.root.shape) ** 2 >= prod(stage.domain)
    return large and bool(_missing(node, stage, labels))


def _fits(node: Node, stage: Group, labels: Labels, sampled: bool) -> bool:
    """Whether the node repeats no work in the stage, and its whole lines fit the cache."""
    if stage.scan is not None and not _stands_around_scan(node, stage, labels):
        return False
    return _repeats_nothing(node, stage, labels) and (sampled or lines_fit(node, labels))


def _takes_scan(node: Node, stage: Group, labels: Labels) -> bool:
    """Whether a stage becomes one pass with the scan: only maps follow it, element by element, to a single
    value, which is stored, or folded, or both."""
    values = _values(stage)
    return (
        stage.scan is None
        and stage.domain == node.shape
        and labels == tuple(range(node.ndim))
        and not stage.whole
        and len(values) == 1
        and None not in values
        and all(_is_elementwise(m) for m, _ in stage.members if m is not node)
    )


def _draws_once(node: Node, stage: Group, labels: Labels) -> bool:
    """Whether a stage goes over random numbers as they lie: its blocks are those that are drawn well."""
    plain = labels == tuple(range(node.ndim)) and stage.domain == node.shape
    return plain and stage.scan is None and not stage.whole and stage.root.fn != "contract"


def _values(stage: Group) -> set[Node | None]:
    """What a stage stores or folds, all over its domain; None stands for anything else."""
    every = tuple(range(len(stage.domain)))
    inputs = root(stage.root).inputs if stage.root.op is Op.FOLD else None
    results = [Result(stage.root, stage.out, inputs), *stage.more]
    values: set[Node | None] = set()
    for r in results:
        folded = r.node.op is Op.FOLD and len(r.node.inputs) == 1
        stored = r.out == every and (_is_elementwise(r.node) or r.node.op is Op.SCAN)
        if folded and r.inputs == (every,) and r.node.inputs[0].format == "dense":
            values.add(r.node.inputs[0])
        else:
            values.add(r.node if stored else None)
    return values


def _stands_around_scan(node: Node, stage: Group, labels: Labels) -> bool:
    """Whether a node is a map over the scan's domain (or so small that it is computed with every block)."""
    return _is_elementwise(node) and not _missing(node, stage, labels)


def _is_elementwise(node: Node) -> bool:
    """Whether a block of the value needs the same block of dense operands, and no more."""
    dense = all(n.format == "dense" for n in (node, *node.inputs))
    return dense and (node.op in (Op.MAP, Op.INDEX) or is_transparent(node))


def _missing(node: Node, stage: Group, labels: Labels) -> set[int]:
    """Domain dimensions that the node does not follow and must not be computed again for."""
    missing = {d for d, n in enumerate(stage.domain) if n > 1 and d not in labels}
    return set() if missing and repeats_cheaply(node) else missing


def repeats_cheaply(node: Node) -> bool:
    """Whether the node may be computed again for every block."""
    return node.op is Op.INDEX or (node.op is Op.MAP and node.size <= SMALL_REPEAT)


def _repeats_nothing(node: Node, stage: Group, labels: Labels) -> bool:
    """Whether keeping the missing dimensions whole leaves enough of the domain to cut."""
    whole = _missing(node, stage, labels) | whole_dimensions(node, labels)
    return whole <= stage.whole or leaves_enough(stage.domain, stage.whole | whole, stage.uncut)


def leaves_enough(domain: tuple[int, ...], whole: Collection[int], uncut: Collection[int] = ()) -> bool:
    """Whether a block may hold the whole dimensions, and what is left is enough to cut."""
    kept = prod(domain[d] for d in whole)
    left = prod(n for d, n in enumerate(domain) if d not in whole and d not in uncut)
    return left >= min(SMALL_DOMAIN, prod(domain)) and kept <= LARGEST_BLOCK


def lines_fit(node: Node, labels: Labels) -> bool:
    """Whether the whole axes that the node needs fit the cache for each element of the block."""
    if node.op is Op.MAP:
        return True
    if _reduced_length(node) > node.size:
        return False  # the reduction is the larger dimension: better to cut it
    if node.op is Op.FOLD:
        (axes,) = node.params
        trailing = tuple(range(node.inputs[0].ndim - len(axes), node.inputs[0].ndim))
        return axes == trailing and _line_bytes(node.inputs[0], input_labels(node, labels)[0]) <= LINE_BYTES
    if node.fn == "along_axis":
        a = node.inputs[0]
        axis = node.params[1]
        return bool(axis == a.ndim - 1 and a.shape[axis] * a.dtype.itemsize <= LINE_BYTES)
    seen = input_labels(node, labels)
    if node.fn == "take":
        return node.inputs[0].nbytes <= SIDE_BYTES
    lines = all(_line_bytes(i, s) <= LINE_BYTES for i, s in zip(node.inputs, seen, strict=True))
    return lines and min(i.nbytes for i in node.inputs) <= SIDE_BYTES


def _reduced_length(node: Node) -> int:
    """How many elements make one element of the value."""
    if node.op is Op.FOLD:
        return node.inputs[0].size // max(node.size, 1)
    if node.fn == "contract":
        la, _, lo = node.params
        return prod(n for x, n in zip(la, node.inputs[0].shape, strict=True) if x not in lo)
    return 1


def _line_bytes(node: Node, labels: Labels) -> int:
    n = node.dtype.itemsize
    for size, label in zip(node.shape, labels, strict=True):
        if label == WHOLE:
            n *= size
    return n
