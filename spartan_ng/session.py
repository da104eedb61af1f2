"""The session: where programs run, and the way from nodes to values.

Evaluate: fold what is constant, look the graph's plan up or make it, put the driver's leaves where the
plan wants them, run. One session a process; it starts embedded and moves to a cluster by `connect`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from uuid import uuid4

from spartan_ng.api.core.watch import Watch
from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend, Losing, RunStats
from spartan_ng.callers import user_place
from spartan_ng.config import KEYS_VARIABLE, MASTER_VARIABLE, config
from spartan_ng.costs import Profile
from spartan_ng.costs.measured import measure_later
from spartan_ng.errors import UserFunctionError, WorkerDied, WorkerLost, WorkersChanged, WorkerUnreachable
from spartan_ng.events import record as happened
from spartan_ng.graph.evaluation import Door, open_door
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.rows import flatten
from spartan_ng.kernels.compiled.select import explain_plan_tiers
from spartan_ng.kernels.direct import run_direct
from spartan_ng.lineage import Recipe, computed_again, record
from spartan_ng.memory import available_bytes, free_disk_bytes
from spartan_ng.ops.functions import named, users_of
from spartan_ng.optimizer.fusion.keeping import is_dearer_than_writing
from spartan_ng.optimizer.pipeline import PASSES, ROUNDING, VALUE_PASSES, run_passes
from spartan_ng.optimizer.rewrite.constants import has_constants
from spartan_ng.optimizer.tiling.choose import Alternative
from spartan_ng.plan.explain import Explanation
from spartan_ng.plan.explain import explain as explain_plan
from spartan_ng.plan.fusion import ExplainedFusion, explain_fusion
from spartan_ng.plan.lessons import learn, subjects
from spartan_ng.plan.lower import Settings, lower, weigh
from spartan_ng.plan.peak import check
from spartan_ng.plan.plan import Plan
from spartan_ng.progress import progress

_log = logging.getLogger(__name__)
_WEIGHED_STAGES = 40
"""`explain` weighs the alternatives of plans with up to so many stages."""
_PLANS = 512
"""Plans kept for programs that come again."""
_PLANNED = 8
"""Plans made for one evaluation, while workers come and go faster than it begins."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, for each of its inputs the number of the program's leaf, and for each of the program's
    roots the number of the plan's output (equal roots share one)."""

    plan: Plan
    leaves: tuple[int, ...]
    outputs: tuple[int, ...]
    measured: tuple[tuple[Hashable, int | None], ...]
    """What was known of sizes when it was made, and what it would be made anew for."""
    recipe: Recipe | None
    """The program, where what workers lose may have to be computed again."""


class Session:
    """A backend and the plans made for it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._losing = backend if isinstance(backend, Losing) else None
        if self._losing is not None:
            self._losing.recover = self._recover
        self.last_run: tuple[Plan, RunStats] | None = None
        """The last plan that ran, and what it took."""
        self.moved_bytes = 0
        """Bytes that workers have received from each other in all runs."""
        self.worked_s = 0.0
        """Seconds that stages have taken, each on its slowest worker."""
        self._watch = Watch()
        self._plans: OrderedDict[Hashable, Planned] = OrderedDict()
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

    def evaluate(self, nodes: Sequence[Node], order: Sequence[Node] | None = None) -> list[ArrayRef]:
        """The values of `nodes`, computed together; `order` as from `topological`, if it is known."""
        begun, before = time.perf_counter(), self.worked_s
        if happened.is_on:
            with happened.span("evaluate", user_place()):
                values = self._evaluate(nodes, order)
        else:
            values = self._evaluate(nodes, order)
        self._watch.note(time.perf_counter() - begun, self.worked_s - before)
        return values

    def _evaluate(self, nodes: Sequence[Node], order: Sequence[Node] | None) -> list[ArrayRef]:
        roots: Sequence[Node] = nodes
        order = topological(nodes) if order is None else order
        if has_constants(order):
            roots = run_passes(VALUE_PASSES, nodes, config.disabled_passes)
        wanted = list(dict.fromkeys(r for r in roots if r.op is not Op.DATA))
        values: dict[Node, ArrayRef] = {r: r.data for r in roots if r.data is not None}
        same = wanted == nodes
        begun = time.perf_counter()
        found = self._direct(wanted, order if same else topological(wanted))
        if found is not None:
            values.update(zip(wanted, found, strict=True))
            self.worked_s += time.perf_counter() - begun
        elif wanted:
            planned, refs = self._plan_and_run(wanted, order if same else None)
            values.update(zip(wanted, (refs[i] for i in planned.outputs), strict=True))
        return [values[r] for r in roots]

    def _plan_and_run(
        self, wanted: list[Node], order: Sequence[Node] | None
    ) -> tuple[Planned, list[ArrayRef]]:
        """A plan and its results; another plan where workers came or went before it ran.

        Where workers are lost, arrays that went with them are computed again, and the program is planned for
        who is left. Users' functions under which two workers died are not called a third time.
        """
        died: list[WorkerDied] = []
        changed = lost = 0
        while True:
            planned = None
            try:
                with happened.span("plan"):
                    planned, leaves = self.plan(wanted, order)
                begin = time.perf_counter()
                with happened.span("run"):
                    refs = self._run(planned.plan, [leaves[i] for i in planned.leaves])
            except WorkersChanged:
                changed += 1
                if changed == _PLANNED:
                    raise
            except WorkerLost as error:
                lost += 1
                if planned is None:  # there are no workers
                    raise (died[-1] if died else error) from error
                if isinstance(error, WorkerUnreachable):  # it lives, and nobody else has its tiles
                    raise
                if isinstance(error, WorkerDied):
                    self.worked_s += time.perf_counter() - begin  # in vain, but no cost of planning
                    died.append(error)
                    if len(died) > 1 and users_of(planned.plan.stages):
                        raise _blamed(planned.plan, *died[-2:]) from error
                if lost > config.retries or self._losing is None:
                    raise
                happened.mark("lost", str(error))
                _log.warning("%s; computing again what it took (%d of %d)", error, lost, config.retries)
                if not self._recover([n.data for n in topological(wanted) if n.data is not None]):
                    raise
            else:
                if planned.recipe is not None:
                    record(planned.recipe, leaves, [refs[n] for n in planned.outputs])
                return planned, refs

    def _recover(self, refs: Sequence[ArrayRef]) -> bool:
        """Have those of `refs` computed again that lost workers took with them; whether that was possible."""
        losing = self._losing
        assert losing is not None, "only lost arrays are recovered"
        losing.take_notice()
        lost = [ref for ref in dict.fromkeys(refs) if ref.backend is losing and losing.is_lost(ref)]
        if lost:
            with happened.span("recover"):
                found = computed_again(
                    lost, lambda ref: ref.backend is losing and losing.is_lost(ref), self._evaluate_plain
                )
            if found is None:
                return False
            for ref, by in zip(lost, found, strict=True):
                losing.restore(ref, by)
        return True

    def _evaluate_plain(self, nodes: list[Node]) -> list[ArrayRef]:
        return self._evaluate(nodes, None)

    def _direct(self, roots: Sequence[Node], order: Sequence[Node]) -> list[ArrayRef] | None:
        """The values of a program that is one NumPy call, where it runs in this process."""
        if not isinstance(self.backend, EmbeddedBackend) or config.kernels != "auto":
            return None
        found = run_direct(roots, config.small_bytes, self.backend.threads, order)
        if found is None:
            return None
        return [ArrayRef(v.shape, v.dtype, value=v) for v in found]

    def plan(
        self, roots: Sequence[Node], order: Sequence[Node] | None = None
    ) -> tuple[Planned, list[ArrayRef]]:
        """The plan for `roots` (from the cache, if the program came before) and the program's leaves.

        `order` is the roots' graph, where the caller has walked it.
        """
        begin = time.perf_counter()
        workers = self.backend.workers  # first: who came and went may change the leaves' tilings
        self.worked_s += time.perf_counter() - begin  # waiting for workers is no cost of planning
        settings, number = self._settle(workers)
        order = topological(roots) if order is None else order
        structure, leaves = flatten(order, roots)
        if self._adopt(leaves):
            structure, leaves = flatten(order, roots)
        key = (structure, number, config.disabled_passes)
        with self._lock:
            found = self._plans.get(key)
            if found is not None and all(self._measured.get(k) == v for k, v in found.measured):
                self._plans.move_to_end(key)
                return found, leaves
        planned = self._make(roots, settings, leaves)
        with self._lock:
            self._plans[key] = planned
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        return planned, leaves

    def _make(self, roots: Sequence[Node], settings: Settings, leaves: list[ArrayRef]) -> Planned:
        rewritten = run_passes(PASSES, roots, _left_out())
        order = topological(rewritten)
        distinct = list(dict.fromkeys(rewritten))
        plan = lower(order, distinct, settings, f"{self._name}/{next(self._numbers)}", self._measured)
        profile = settings.profile
        if (profile.limited and _is_local(self.backend)) or self.backend.workers == 1:
            within = profile.memory_bytes if profile.limited else available_bytes()
            check(plan, replace(profile, memory_bytes=within, limited=True), free_disk_bytes())
        number = {ref: i for i, ref in enumerate(leaves)}
        used = [n.data for n in order if n.op is Op.DATA]
        return Planned(
            plan,
            tuple(number[ref] for ref in used if ref is not None),
            tuple(distinct.index(r) for r in rewritten),
            tuple((key, self._measured.get(key)) for key in subjects(plan)),
            Recipe.of(roots, leaves) if self._losing is not None else None,
        )

    def _run(self, plan: Plan, inputs: list[ArrayRef]) -> list[ArrayRef]:
        inputs = [*inputs, *(inputs[n].also[k] for n, k in plan.also)]
        for ref, slot in zip(inputs, plan.inputs, strict=True):
            if ref.backend is not self.backend:
                if ref.value is None and ref.source is None:
                    self._bring(ref)
                self.backend.upload(ref, plan.slots[slot].tiling)
        with progress() as report:
            refs, stats = self.backend.run(plan, inputs, report)
        self.last_run = (plan, stats)
        self.moved_bytes += stats.bytes_moved
        self.worked_s += sum(s.seconds for s in stats.stages)
        learn(plan, [(s.bytes_moved, s.bytes_made) for s in stats.stages], self._measured)
        wanted = len(refs) - len(plan.keeps)
        for n, copy in zip(plan.keeps, refs[wanted:], strict=True):
            inputs[n].also = (*inputs[n].also, copy)
            self._copies.add(copy)
        return refs[:wanted]

    def _adopt(self, leaves: list[ArrayRef]) -> bool:
        """Have the values of arrays that another backend cut for its own workers, and let this one's read
        what lies outside; whether there are any."""
        foreign = [r for r in leaves if r.tiling is not None and r.backend is not self.backend]
        read = [r for r in leaves if r.source is not None and r.backend is not self.backend]
        if read:
            read = [r for r in read if self.backend.reads(r)]
            foreign = [r for r in foreign if r not in read]
            for ref in read:
                ref.tiling, ref.also = Tiling.copies(len(ref.shape)), ()
        for ref in foreign:
            if ref.value is None:
                self._bring(ref)
            ref.tiling, ref.also = None, ()
        return bool(foreign or read)

    @staticmethod
    def _bring(ref: ArrayRef) -> None:
        """Have the value of an array on the driver that another backend holds."""
        holder: Backend = ref.backend  # type: ignore[assignment]
        ref.value = holder.gather(ref, box_of(ref.shape))

    def explain(self, nodes: Sequence[Node], run: bool = False) -> Explanation:
        """The plan that evaluating `nodes` would run; with `run`, run it and show what it took, too."""
        roots = run_passes(VALUE_PASSES, nodes, config.disabled_passes)
        wanted = list(dict.fromkeys(r for r in roots if r.op is not Op.DATA))
        planned, leaves = self.plan(wanted)
        plan = planned.plan
        small = len(plan.stages) <= _WEIGHED_STAGES
        weighed = self._weigh(wanted, plan, self._settings(plan.workers)) if small else {}
        stats = None
        if run:
            self._run(plan, [leaves[i] for i in planned.leaves])
            assert self.last_run is not None, "it has just run"
            stats = self.last_run[1]
        fusion = self._compare(wanted) if len(plan.stages) <= _WEIGHED_STAGES else None
        profile = self._settings(plan.workers).profile
        tiers = explain_plan_tiers(plan)
        return explain_plan(plan, stats, peak=profile, alternatives=weighed, tiers=tiers, fusion=fusion)

    def _compare(self, roots: Sequence[Node]) -> ExplainedFusion | None:
        """What the policies for fusion are predicted to cost."""
        rewritten = run_passes(PASSES, roots, _left_out())
        settings = self._settings(self.backend.workers)
        stored = {r for r in rewritten if r.op is not Op.DATA}
        return explain_fusion(topological(rewritten), stored, settings.fusion, settings.profile)

    def _weigh(
        self, roots: Sequence[Node], plan: Plan, settings: Settings
    ) -> dict[int, tuple[Alternative, ...]]:
        """What other grids of the plan's stages would cost."""
        if plan.workers == 1:
            return {}
        rewritten = run_passes(PASSES, roots, _left_out())
        distinct = list(dict.fromkeys(rewritten))
        return weigh(topological(rewritten), distinct, settings, self._measured)

    def _settings(self, workers: int) -> Settings:
        """What a plan for so many workers depends on, as `config` has it now."""
        return self._settle(workers)[0]

    def _settle(self, workers: int) -> tuple[Settings, int]:
        """The settings, and their number."""
        disabled = config.disabled_passes
        tiling = "single" if "tile" in disabled else config.tiling
        copies = list(self._copies) if len(self._copies) else []
        taken = sum(copy.nbytes // copy.tiling.ntiles for copy in copies if copy.tiling)
        fusion = "off" if "fuse" in disabled else config.fusion
        asked = (
            self.backend.profile,
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


def _blamed(plan: Plan, first: WorkerDied, second: WorkerDied) -> Exception:
    """Who is to blame where two workers have ended under a job that calls users' functions."""
    users = named(users_of(plan.stages))
    return UserFunctionError(
        f"{users}: the processes of two workers ended while they ran this\n{first}\n{second}"
    )


def _left_out() -> frozenset[str]:
    """The passes that are not to run."""
    return config.disabled_passes | ROUNDING if config.reproducible else config.disabled_passes


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


_session: Session | None = None
_session_lock = threading.Lock()


def current() -> Session:
    """The process's session; embedded until `connect`."""
    global _session
    with _session_lock:
        if _session is None:
            address = os.environ.get(MASTER_VARIABLE)
            if address:
                backend: Backend = _connect(address, os.environ.get(KEYS_VARIABLE))
            else:
                backend = EmbeddedBackend(config.threads, config.memory_bytes)
                measure_later(backend.threads)
            _session = Session(backend)
        return _session


def use(backend: Backend) -> Session:
    """Run programs on `backend` from now on."""
    global _session
    with _session_lock:
        _session = Session(backend)
        return _session


def embed() -> Session:
    """Run programs in this process from now on."""
    before = current()
    session = use(EmbeddedBackend(config.threads, config.memory_bytes))
    before.backend.retire()
    return session


def connect(
    address: Any,
    keys: str | os.PathLike[str] | None = None,
    workers: int = 1,
    insecure: bool = False,
) -> Session:
    """Run programs on the cluster or engine at `address` from now on; see `spartan_ng.connect`."""
    return move_to(_connect(address, keys, workers, insecure))


def move_to(backend: Backend) -> Session:
    """Run programs on `backend` from now on; what ran them before is closed as soon as no array needs it."""
    before = _session
    session = use(backend)
    if before is not None:
        before.backend.retire()
    return session


def _connect(
    address: Any, keys: str | os.PathLike[str] | None, workers: int = 1, insecure: bool = False
) -> Backend:
    from spartan_ng.backends import engines

    if engines.names_engine(address):
        return engines.connect(address, workers)
    from spartan_ng.backends.cluster import ClusterBackend

    return ClusterBackend.connect(address, keys, config.timeout_s, workers, insecure)


def evaluate(nodes: Sequence[Node], order: Sequence[Node] | None = None) -> list[ArrayRef]:
    """The values of `nodes` in the process's session; `order` as in `Session.evaluate`."""
    return current().evaluate(nodes, order)


def in_process() -> bool:
    """Whether programs run in this process."""
    return isinstance(current().backend, EmbeddedBackend)


def is_dear(node: Node, stored: Container[Node]) -> bool:
    """Whether computing `node` again from data and `stored` nodes takes longer than keeping its value."""
    return is_dearer_than_writing(node, stored, current().backend.profile)


def shares_files() -> bool:
    """Whether workers are on this machine."""
    return _is_local(current().backend)


def _is_local(backend: Backend) -> bool:
    return isinstance(backend, EmbeddedBackend) or getattr(backend, "is_local", False)


open_door(Door(evaluate, in_process, is_dear, shares_files))
