"""From programs to plans: what a program is found by, the plan it had before, or a new one.

A plan is kept under the program's structure and the settings it was made for, and made anew where sizes that
depend on data have been measured since. In this process's own memory first; then among those that earlier
processes have left (`kept_plans`). What makes plans is imported for the first that nobody has made.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend, RunStats, bring
from spartan_ng.callers import UserLine
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.garbage import collected_later
from spartan_ng.graph.axes import as_they_lie
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.rows import flatten
from spartan_ng.graph.trail import Trail, passed_down
from spartan_ng.kept_plans import Found, kept_plans
from spartan_ng.memory import available_bytes, free_disk_bytes, threads
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import Fused
from spartan_ng.sources.reading import read_whole
from spartan_ng.worker.scheduling.blas import find_libraries
from spartan_ng.worker.stages.stages import handler

if TYPE_CHECKING:
    from spartan_ng.lineage import Recipe
    from spartan_ng.optimizer.tiling.choose import PossibleGrid
    from spartan_ng.plan.advice import Facts
    from spartan_ng.plan.explain import Words
    from spartan_ng.plan.explanation import Explanation
    from spartan_ng.plan.fusion import ExplainedFusion
    from spartan_ng.plan.lower import Origins

_WEIGHED_STAGES = 40
"""`explain` weighs the alternatives of plans with up to so many stages."""
_STORED = 2
"""Random numbers stay in memory where they take no more than one part in so many of it."""
_PLANS = 512
"""Plans kept for programs that come again."""


class Planned(Struct, frozen=True):
    """A plan, for each of its inputs the number of the program's leaf, and for each of the program's
    roots the number of the plan's output (equal roots share one)."""

    plan: Plan
    leaves: tuple[int, ...]
    outputs: tuple[int, ...]
    measured: tuple[tuple[Hashable, int | None], ...]
    """What was known of sizes when it was made, and what it would be made anew for."""
    recipe: Recipe | None
    """The program, where what workers lose may have to be computed again."""


class Planner:
    """The plans made for a backend; with `recipes` each has its program with it."""

    def __init__(self, backend: Backend, recipes: bool) -> None:
        self._backend = backend
        self._recipes = recipes
        self._plans: OrderedDict[Hashable, Planned] = OrderedDict()
        self._ahead: dict[Path, Planned] = {}
        """Plans of earlier processes that are there before anybody has asked for them."""
        self._copies: weakref.WeakSet[ArrayRef] = weakref.WeakSet()
        """Second copies of arrays that the workers keep."""
        self._measured: dict[Hashable, int] = {}
        """Bytes that depend on data, as runs have measured them; see `plan.lessons`."""
        self._settled: tuple[tuple[Any, ...], Settings, int] | None = None
        """What the last plan's settings were made of, they themselves, and their number."""
        self._numbered: dict[Settings, int] = {}
        """The numbers of settings: a number is hashed faster."""
        self._lock = threading.Lock()
        self._name = uuid4().hex
        self._numbers = count(1)

    def plan(
        self, roots: Sequence[Node], order: Sequence[Node] | None, workers: int
    ) -> tuple[Planned, list[ArrayRef]]:
        """The plan for `roots` on so many workers (from the cache, if the program came before) and the
        program's leaves."""
        settings, number = self._settle(workers)
        order = topological(roots) if order is None else order
        structure, leaves = flatten(order, roots)
        if _adopt(self._backend, leaves):
            # Where leaves lie is a part of what a plan is found by, and they have just moved.
            structure, leaves = flatten(order, roots)
        key = (structure, number, config.disabled_passes)
        with self._lock:
            found = self._plans.get(key)
            if found is not None and (not found.measured or self._is_current(found)):
                self._plans.move_to_end(key)
                return found, leaves
        with collected_later():
            planned = self._kept_or_made(structure, roots, settings, leaves)
        with self._lock:
            self._plans[key] = planned
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        return planned, leaves

    def laid_out(self, roots: Sequence[Node], order: Sequence[Node]) -> list[Node] | None:
        """What is planned in the place of `roots`, whose graph is `order`: their steps as arrays lie, where
        these are here; None where they are planned themselves."""
        return as_they_lie(roots, order) if isinstance(self._backend, EmbeddedBackend) else None

    def over_sources(self, roots: Sequence[Node]) -> list[Node]:
        """`roots` over sources in place of random numbers that would be drawn to lie on disk, and of sources
        that would be put into another shape there."""
        settings, _ = self._settle(self._backend.workers)
        room = settings.profile.memory_bytes * settings.profile.workers // _STORED
        large = {n.op for n in topological(roots) if n.nbytes > room}
        if Op.RANDOM in large:
            from spartan_ng.optimizer.draws import read_as_drawn

            roots = read_as_drawn(roots, _rewritten, room, settings.fusion, settings.profile)
        if Op.RESHAPE in large:
            from spartan_ng.optimizer.in_order import read_in_order

            roots = read_in_order(roots, room)
        return list(roots)

    def _kept_or_made(
        self, structure: Hashable, roots: Sequence[Node], settings: Settings, leaves: list[ArrayRef]
    ) -> Planned:
        """The plan that an earlier process has left, or one that is left for later ones, where it may be."""
        is_for_others = isinstance(self._backend, EmbeddedBackend) and not (self._recipes or config.check)
        place = (
            kept_plans.place_of(structure, leaves, settings, config.disabled_passes)
            if is_for_others
            else None
        )
        if place is not None and (known := self._ahead.pop(place, None)) is not None:
            kept_plans.meet(place)
            return known
        found = None if place is None else kept_plans.find(place)
        if found is not None:
            return self._as_planned(found)
        planned = self._make(roots, settings, leaves)
        if place is not None and not planned.measured and not self._backend.profile.limited:
            kept_plans.meet(place, (planned.plan, planned.leaves, planned.outputs))
        return planned

    def _as_planned(self, found: Found) -> Planned:
        plan, leaves, outputs = found
        return Planned(replace(plan, key=self._new_key()), leaves, outputs, (), None)

    def load_ahead(self) -> None:
        """Have ready what the program will need: what runs most stages; and the plans that it came to when it
        started last, or what makes plans."""
        handler(Fused)
        ready: list[Plan] = []
        if isinstance(self._backend, EmbeddedBackend) and not config.check:
            for place, found in kept_plans.earlier():
                planned = self._as_planned(found)
                self._backend.prepare(planned.plan)
                self._ahead[place] = planned
                ready.append(planned.plan)
            for plan in ready[:1]:
                self._backend.expect(plan)
        if not ready:
            import spartan_ng.optimizer.pipeline
            import spartan_ng.plan.lessons
            import spartan_ng.plan.lower
            import spartan_ng.plan.peak
            import spartan_ng.wire.values  # noqa: F401

            if threads() > 1:
                find_libraries()  # most programs multiply somewhere

    def _new_key(self) -> str:
        return f"{self._name}/{next(self._numbers)}"

    def _is_current(self, planned: Planned) -> bool:
        """Whether no size has been measured since that the plan depends on."""
        return all(self._measured.get(k) == v for k, v in planned.measured)

    def learn(self, plan: Plan, stats: RunStats) -> None:
        """Remember the sizes that a run has measured."""
        from spartan_ng.plan.lessons import learn_bytes

        learn_bytes(plan, stats.stages, self._measured)

    def keep(self, copy: ArrayRef) -> None:
        """Count a second copy that the workers keep, as long as anybody needs it."""
        self._copies.add(copy)

    def explain(
        self,
        roots: Sequence[Node],
        plan: Plan,
        stats: RunStats | None,
        words: Words | None = None,
        facts: Facts | None = None,
    ) -> Explanation:
        """The plan made for `roots`, beside what else it could have been, and what a run of it took; for the
        words and the facts, see `plan.explain`."""
        from spartan_ng.kernels.compiled.select import explain_plan_tiers
        from spartan_ng.listing import list_stages
        from spartan_ng.plan.advice import NO_FACTS
        from spartan_ng.plan.explain import NO_WORDS
        from spartan_ng.plan.explain import explain as explain_plan

        settings, _ = self._settle(plan.workers)
        small = len(plan.stages) <= _WEIGHED_STAGES
        return explain_plan(
            plan,
            stats,
            profile=settings.profile,
            alternatives=self._weigh(roots, settings) if small and plan.workers > 1 else {},
            tiers=explain_plan_tiers(plan),
            fusion=_compare(roots, settings) if small else None,
            sources=partial(list_stages, plan),
            words=NO_WORDS if words is None else words,
            facts=NO_FACTS if facts is None else facts,
        )

    def _make(self, roots: Sequence[Node], settings: Settings, leaves: list[ArrayRef]) -> Planned:
        from spartan_ng.plan.lessons import subjects
        from spartan_ng.plan.lower import lower
        from spartan_ng.plan.peak import check, projected_peak

        rewritten = _rewritten(roots)
        order = topological(rewritten)
        distinct = list(dict.fromkeys(rewritten))
        plan = lower(order, distinct, settings, self._new_key(), self._measured)
        profile = settings.profile
        backend = self._backend
        if (
            isinstance(backend, EmbeddedBackend)
            and not profile.limited
            and projected_peak(plan, profile).memory_bytes > profile.memory_bytes
        ):
            backend.keep_to_memory()
            return self._make(roots, self._settle(plan.workers)[0], leaves)
        if (profile.limited and has_local_workers(self._backend)) or self._backend.workers == 1:
            within = profile.memory_bytes if profile.limited else available_bytes()
            check(plan, replace(profile, memory_bytes=within, limited=True), free_disk_bytes)
        number = {ref: i for i, ref in enumerate(leaves)}
        used = [n.data for n in order if n.op is Op.DATA]
        return Planned(
            plan,
            tuple(number[ref] for ref in used if ref is not None),
            tuple(distinct.index(r) for r in rewritten),
            tuple((key, self._measured.get(key)) for key in subjects(plan)),
            self._recipe(roots, leaves) if self._recipes else None,
        )

    @staticmethod
    def _recipe(roots: Sequence[Node], leaves: list[ArrayRef]) -> Recipe:
        from spartan_ng.lineage import Recipe

        return Recipe.of(roots, leaves)

    def predicted_s(self, plan: Plan) -> float:
        """What its stages are expected to take."""
        profile = self._settle(plan.workers)[0].profile
        moved = plan.predicted_bytes or (0,) * len(plan.stages)
        stages = zip(plan.stages, moved, strict=True)
        return sum(stage.seconds(plan.slots, nbytes, profile) for stage, nbytes in stages)

    def words(
        self,
        roots: Sequence[Node],
        plan: Plan,
        trail: Trail,
        variables: Mapping[str, Node],
        places: Mapping[Node, UserLine],
    ) -> Words:
        """What the user calls the arrays that a `plan` made of `roots` stores, and where its steps were
        written; the `trail` leads from the user's graph to these roots."""
        from spartan_ng.plan.explain import Words

        with trail.followed():
            rewritten, made = self._origins(roots, plan)
        slots = {node: slot for slot, node in enumerate(made.stored) if node.op is not Op.DATA}
        now = trail.now()
        called: dict[int, str] = {}
        for name, node in variables.items():  # the first name is the best
            if (slot := slots.get(now.get(node, node))) is not None:
                called.setdefault(slot, name)
        marks = passed_down(topological(rewritten), trail.marks(places))
        written = {
            slot: tuple(place for node in computed for place in marks.get(node, ()))
            for slot, computed in made.computed.items()
        }
        return Words(called, written=written)

    def what_is_left(self, roots: Sequence[Node], plan: Plan, left: Mapping[int, ArrayRef]) -> list[Node]:
        """`roots` over the arrays that are `left` of a run of their `plan`, by their slots."""
        from spartan_ng.salvage import over_what_is_left

        rewritten, (nodes, _) = self._origins(roots, plan)
        return over_what_is_left(rewritten, {nodes[n]: ref for n, ref in left.items() if n < len(nodes)})

    def _origins(self, roots: Sequence[Node], plan: Plan) -> tuple[list[Node], Origins]:
        """The roots as they were rewritten for a plan, and of which nodes it was made."""
        from spartan_ng.plan.lower import origins

        settings, _ = self._settle(plan.workers)
        rewritten = _rewritten(roots)
        distinct = list(dict.fromkeys(rewritten))
        return rewritten, origins(plan, topological(rewritten), distinct, settings, self._measured)

    def _weigh(self, roots: Sequence[Node], settings: Settings) -> dict[int, tuple[PossibleGrid, ...]]:
        """What other grids of the plan's stages would cost."""
        from spartan_ng.plan.lower import weigh_grids

        rewritten = _rewritten(roots)
        distinct = list(dict.fromkeys(rewritten))
        return weigh_grids(topological(rewritten), distinct, settings, self._measured)

    def _settle(self, workers: int) -> tuple[Settings, int]:
        """What a plan for so many workers depends on, as `config` has it now, and its number."""
        disabled = config.disabled_passes
        tiling = "single" if "tile" in disabled else config.tiling
        copies = list(self._copies) if len(self._copies) else []
        taken = sum([copy.nbytes // copy.tiling.ntiles for copy in copies if copy.tiling]) if copies else 0
        fusion = "off" if "fuse" in disabled else config.fusion
        asked = (
            self._backend.profile,
            workers,
            config.duplicate_bytes,
            taken,
            tiling,
            fusion,
            config.products,
            config.reproducible,
        )
        settled = self._settled
        if settled is None or settled[0] != asked:
            settings = _settings(*asked)
            with self._lock:
                if len(self._numbered) > _PLANS:
                    self._numbered.clear()
                number = self._numbered.setdefault(settings, next(self._numbers))
            settled = self._settled = (asked, settings, number)
        return settled[1:]


def _compare(roots: Sequence[Node], settings: Settings) -> ExplainedFusion | None:
    """What the policies for fusion are predicted to cost."""
    from spartan_ng.plan.fusion import explain_fusion

    rewritten = _rewritten(roots)
    stored = {r for r in rewritten if r.op is not Op.DATA}
    return explain_fusion(topological(rewritten), stored, settings.fusion, settings.profile)


def _adopt(backend: Backend, leaves: list[ArrayRef]) -> bool:
    """Have the values of arrays that another backend cut for its own workers, and let this one's read
    what lies outside; whether there are any."""
    elsewhere = [
        r for r in leaves if r.backend is not backend and (r.tiling is not None or r.source is not None)
    ]
    if not elsewhere:
        return False
    foreign = [r for r in elsewhere if r.tiling is not None]
    read = [r for r in elsewhere if r.source is not None]
    kept = []
    if read:
        kept = [r for r in read if r.value is None and not backend.reads(r)]
        for ref in kept:
            ref.value = read_whole(ref.source)
        read = [r for r in read if backend.reads(r)]
        foreign = [r for r in foreign if r not in read]
        for ref in read:
            ref.tiling, ref.also = Tiling.copies(len(ref.shape)), ()
    for ref in foreign:
        if ref.value is None:
            bring(ref)
        ref.tiling, ref.also = None, ()
    return bool(foreign or read or kept)


def has_local_workers(backend: Backend) -> bool:
    """Whether a backend's workers are on this machine."""
    return isinstance(backend, EmbeddedBackend) or getattr(backend, "is_local", False)


def _rewritten(roots: Sequence[Node]) -> list[Node]:
    """The roots after the passes that are to run."""
    from spartan_ng.optimizer.passes import run_passes
    from spartan_ng.optimizer.pipeline import PASSES, ROUNDING

    left_out = config.disabled_passes | ROUNDING if config.reproducible else config.disabled_passes
    found = run_passes(PASSES, roots, left_out)
    if config.check:
        from spartan_ng.graph.spec import check_leaves

        check_leaves(roots, found)
    return found


def _settings(
    profile: Profile,
    workers: int,
    duplicate_bytes: int | None,
    taken_bytes: int,
    tiling: str | None,
    fusion: str,
    products: str,
    reproducible: bool,
) -> Settings:
    """The settings; second copies may take a quarter of a worker's memory where nothing else is said."""
    budget = profile.memory_bytes // 4 if duplicate_bytes is None else duplicate_bytes
    return Settings(
        replace(profile, workers=workers),
        tiling,
        fusion,
        duplicate_budget_bytes=max(0, budget - taken_bytes),
        products=products,
        reproducible=reproducible,
    )
