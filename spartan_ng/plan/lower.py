"""Lower a graph to a plan: group, draft, choose tilings, and cut every draft by its grid."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from spartan_ng.arrays import Tiling
from spartan_ng.config import config
from spartan_ng.garbage import collected_later
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.policies import form_stages
from spartan_ng.optimizer.fusion.sampling import is_sampled_product
from spartan_ng.optimizer.sizes import expected_bytes, expected_nonzeros
from spartan_ng.optimizer.tiling.one_worker import moving_least, on_one_worker
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, Tilings
from spartan_ng.plan.absorb import Together, absorb_sides, is_heavy
from spartan_ng.plan.cut import Cut
from spartan_ng.plan.draft import Draft, Drafting, DraftResult
from spartan_ng.plan.lines import absorb_lines
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Read
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.sketches import sketch_array, sketch_cascade, sketch_stage
from spartan_ng.plan.strategies import constrain
from spartan_ng.plan.views import base_of, view_read

if TYPE_CHECKING:
    from spartan_ng.optimizer.tiling.choose import PossibleGrid

Choice = tuple[list[Draft], tuple[list[StageSketch], list[ArraySketch]], Tilings]
"""Drafts, their sketches, and the tilings chosen for them."""
NOTHING_MEASURED: Mapping[Hashable, int] = MappingProxyType({})


class Lowering:
    """One graph on its way to a plan."""

    def __init__(
        self,
        order: list[Node],
        roots: Sequence[Node],
        settings: Settings,
        measured: Mapping[Hashable, int],
        apart: Collection[Node] = (),
    ) -> None:
        self.settings = settings
        self.order = order
        self.measured = measured
        self.nonzeros = expected_nonzeros(order, measured)
        self.sparse_bytes = expected_bytes(self.nonzeros)
        self.roots = roots
        self.leaves = [n for n in order if n.op is Op.DATA]
        stored = {r for r in roots if r.op is not Op.DATA}
        grouping = form_stages(order, stored, settings.fusion, settings.profile, apart)
        # Fusion goes from users to inputs, stages run the other way.
        self.groups = list(reversed(grouping.groups))
        self.drivers = grouping.drivers
        self.nodes = [*self.leaves, *(n for g in self.groups for n in g.stored)]
        self.number = {node: i for i, node in enumerate(self.nodes)}

    def plan(self, key: str, choice: Choice) -> Plan:
        """Cut the drafts of a choice."""
        drafts, sketched, tilings = choice
        roots = [self.number[r] for r in self.roots]
        cut = Cut(self.settings, self.nodes, len(self.leaves), roots, self.sparse_bytes, sketched)
        return cut.plan(key, drafts, tilings)

    def sampled_products(self) -> list[Node]:
        """Products at a sparse array's non-zeros which, stored, are no larger than the largest leaf."""
        found = (n for g in self.groups if not g.separate for n, _ in g.members if n in self.drivers)
        return [n for n in found if is_sampled_product(n) and n.nbytes <= self._largest_leaf()]

    def _largest_leaf(self) -> int:
        return max((n.nbytes for n in self.leaves), default=0)

    def choose(self) -> Choice:
        """The drafts to cut, with their tilings: work around products is inside them, unless it pays to store
        what is between."""
        ways = [self._tiled(d) for d in self.drafts()]
        return ways[moving_least([tilings for _, _, tilings in ways])]

    def _tiled(self, drafts: list[Draft]) -> Choice:
        sketched = self.sketches(drafts)
        if self.settings.profile.workers == 1:
            return drafts, sketched, on_one_worker(*sketched)
        from spartan_ng.optimizer.tiling.choose import choose

        tilings = choose(
            *sketched,
            self.settings.profile,
            solver=self.settings.solver,
            forced=self.settings.forced_tiling,
            duplicate_budget_bytes=self.settings.duplicate_budget_bytes,
        )
        return drafts, sketched, tilings

    def drafts(self) -> list[list[Draft]]:
        """The stages before they are cut, in order; several ways, where all of them may be worth costing."""
        drafts = [self._draft(g) for g in self.groups]
        if self.settings.fusion == "off":
            return [drafts]
        kept = {self.number[r] for r in self.roots}
        drafts = absorb_lines(drafts, kept, self.nodes, self.settings)
        fused = absorb_sides(drafts, kept, self._are_together)
        stored = {d.slot for d in drafts} - {d.slot for d in fused}
        if not any(is_heavy(d) for d in drafts):
            return [fused]  # what products of vectors leave to store is small either way
        if not stored or sum(self.nodes[s].nbytes for s in stored) > self._largest_leaf():
            return [fused]
        return [fused, drafts] if self.settings.may_store_products else [fused]

    def _are_together(self, a: Node, b: Node) -> bool:
        """Whether the generator puts two nodes into one operator. One worker repeats nothing, so that no
        split pays."""
        return self.settings.profile.workers == 1 or self._generated(a, b)

    @cached_property
    def _generated(self) -> Together:
        from spartan_ng.optimizer.cuboid import exploit

        return exploit.Together(self.order, self.roots, self.settings.profile)

    def sketches(self, drafts: Sequence[Draft]) -> tuple[list[StageSketch], list[ArraySketch]]:
        """Stages and arrays as tiling sees them: the nodes' arrays, then those of scans' aggregates."""
        stored = {*range(len(self.leaves)), *(r.slot for d in drafts for r in d.results)}
        arrays = [
            sketch_array(n, self.sparse_bytes) if i in stored else _absent(n)
            for i, n in enumerate(self.nodes)
        ]
        wanted = {self.number[r] for r in self.roots}
        for i in wanted:
            # The next program may read it: a loop's step begins with what the last one gave.
            arrays[i] = replace(arrays[i], outlives=True)
        stages = []
        for draft in drafts:
            stage = sketch_stage(draft, self.nodes, self.measured, self.nonzeros, self.settings.reproducible)
            stage = constrain(stage, draft, self.nodes, self.settings.products)
            if (cascade := sketch_cascade(draft, len(arrays))) is not None:
                arrays.append(cascade[0])
                stage = replace(stage, writes=(*stage.writes, cascade[1]))
            stages.append(stage)
        return stages, arrays

    def _draft(self, g: Any) -> Draft:
        if not g.separate:
            return Drafting(g, self.number, self.drivers).draft()
        node: Node = g.root
        reads = [self._whole_read(i) for i in node.inputs]
        result = DraftResult(node, self.number[node], tuple(range(node.ndim)))
        return Draft([result], node.shape, reads=reads, separate=True, members=(node,))

    def _whole_read(self, node: Node) -> Read:
        """A read of a view in its own axes."""
        base = base_of(node, self.number)
        return view_read(node, tuple(range(node.ndim)), base, self.number[base])


def lower(
    order: list[Node],
    roots: Sequence[Node],
    settings: Settings,
    key: str,
    measured: Mapping[Hashable, int] = NOTHING_MEASURED,
) -> Plan:
    """The plan that computes `roots` from the graph's leaves.

    `order` is topological; `measured` has bytes that earlier runs made, see `lessons`.
    """
    with collected_later():
        lowering, choice = _chosen(order, roots, settings, measured)
        plan = lowering.plan(key, choice)
    if config.check:
        from spartan_ng.plan.spec import check_plan

        check_plan(plan)
    return plan


class Origins(NamedTuple):
    """Of which nodes a plan was made."""

    stored: list[Node]
    """Those whose values the first slots hold."""
    computed: dict[int, tuple[Node, ...]]
    """By the slot of a result, those that the stages compute which make it."""


def origins(
    plan: Plan,
    order: list[Node],
    roots: Sequence[Node],
    settings: Settings,
    measured: Mapping[Hashable, int] = NOTHING_MEASURED,
) -> Origins:
    """Of which nodes a `plan` was made, if of these arguments; of none where these make another by now."""
    with collected_later():
        lowering, choice = _chosen(order, roots, settings, measured)
        if lowering.plan(plan.key, choice) != plan:
            return Origins([], {})
        computed = {result.slot: draft.members for draft in choice[0] for result in draft.results}
        return Origins(lowering.nodes, computed)


def _chosen(
    order: list[Node], roots: Sequence[Node], settings: Settings, measured: Mapping[Hashable, int]
) -> tuple[Lowering, Choice]:
    """The cheapest way; one that cuts a product along its summed dimension has to store it."""
    lowering = Lowering(order, roots, settings, measured)
    ways = [(lowering, lowering.choose())]
    apart = lowering.sampled_products() if settings.may_store_products else []
    # Where nothing moves there is nothing to save by storing the product.
    if apart and ways[0][1][2].total_bytes:
        other = Lowering(order, roots, settings, measured, apart)
        ways.append((other, other.choose()))
    return ways[moving_least([tilings for _, (_, _, tilings) in ways])]


def weigh_grids(
    order: list[Node],
    roots: Sequence[Node],
    settings: Settings,
    measured: Mapping[Hashable, int] = NOTHING_MEASURED,
) -> dict[int, tuple[PossibleGrid, ...]]:
    """For each stage, by the slot of its result, the grids it could have and what the plan would cost."""
    from spartan_ng.optimizer.tiling.choose import alternatives

    _, (drafts, sketched, _) = _chosen(order, roots, settings, measured)
    tables = alternatives(
        *sketched,
        settings.profile,
        duplicate_budget_bytes=settings.duplicate_budget_bytes,
    )
    drawn = zip(drafts, tables, strict=True)
    return {result.slot: table for draft, table in drawn for result in draft.results}


def _absent(node: Node) -> ArraySketch:
    """An array that is never stored: it is nowhere, and nothing is to be decided about it."""
    return ArraySketch(node.shape, 0, Tiling.single(node.ndim))
