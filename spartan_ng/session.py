"""The session: where programs run, and the way from nodes to values.

Evaluate: fold what is constant, look the graph's plan up or make it (`planner`), put the driver's leaves
where the plan wants them, run. One session a process; it starts embedded and moves to a cluster by `connect`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Container, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from spartan_ng import telemetry
from spartan_ng.api.core.watch import Watch
from spartan_ng.arrays import ArrayRef
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend, Losing, RunStats, bring
from spartan_ng.backends.reaching import reach
from spartan_ng.callers import user_place, user_step
from spartan_ng.config import KEYS_VARIABLE, MASTER_VARIABLE, config
from spartan_ng.costs.choices import SAVED_S
from spartan_ng.costs.measured import measure_later
from spartan_ng.debugging import tell_direct, tell_run, tell_stay
from spartan_ng.errors import (
    GivenUp,
    JobSetAside,
    OptionError,
    WorkerDied,
    WorkerLost,
    WorkersChanged,
    WorkerUnreachable,
)
from spartan_ng.events import record as happened
from spartan_ng.graph.evaluation import Evaluator, answer_by, looked_over
from spartan_ng.graph.node import Node, topological
from spartan_ng.home import Home, is_sooner_at, keep_to_worker, objects_apart
from spartan_ng.joining import pays
from spartan_ng.kernels.direct import as_array_ref, run_direct
from spartan_ng.lineage import record
from spartan_ng.optimizer.fusion.keeping import is_dearer_than_writing
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.rewrite.constants import VALUE_PASSES, has_constants
from spartan_ng.plan.plan import Plan
from spartan_ng.planner import Planned, Planner, has_local_workers
from spartan_ng.progress import progress
from spartan_ng.recovery import Amount, blamed, computed_again, noted, one_at_a_time
from spartan_ng.replicas import Replicas
from spartan_ng.system.processes import after_fork

_log = logging.getLogger(__name__)
_PLANNED = 8
"""Plans made for one evaluation, while workers come and go faster than it begins."""


class Session:
    """A backend and the plans made for it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._losing = backend if isinstance(backend, Losing) else None
        if self._losing is not None:
            self._losing.recover = self._recover
            self._losing.is_better_anew = lambda plan, way, workers: pays(plan, way, workers, backend.profile)
        self._replicas = None if self._losing is None else Replicas(self._losing)
        self.last_run: tuple[Plan, RunStats] | None = None
        """The last plan that ran, and what it took."""
        self.moved_bytes = 0
        """Bytes that workers have received from each other in all runs."""
        self.worked_s = 0.0
        """Seconds that stages have taken, each on its slowest worker."""
        self.recovered = Amount()
        """What lost workers took with them, and what was computed again for that."""
        self._watch = Watch()
        self.planner = Planner(backend, recipes=self._losing is not None)
        self._home: Home[Session] | None = None
        if not isinstance(backend, EmbeddedBackend):
            self._home = Home(backend, self.planner, Session)

    def evaluate(self, nodes: Sequence[Node], order: Sequence[Node] | None = None) -> list[ArrayRef]:
        """The values of `nodes`, computed together; `order` as from `topological`, if it is known."""
        begun, before = time.perf_counter(), self.worked_s
        if happened.is_full or telemetry.API in sys.modules:
            with telemetry.evaluating(user_place), happened.span("evaluate", user_place()):
                values = self._evaluate(nodes, order)
        else:
            values = self._evaluate(nodes, order)
        self._watch.note(time.perf_counter() - begun, self.worked_s - before)
        return values

    def _evaluate(
        self, nodes: Sequence[Node], order: Sequence[Node] | None, died: list[WorkerDied] | None = None
    ) -> list[ArrayRef]:
        """See `evaluate`; with `died` (see `_plan_and_run`) on workers, whoever has the arrays."""
        order = topological(nodes) if order is None else order
        has_lines, has_objects, has_turned, is_given = looked_over(order)
        if has_objects and self._home is not None:
            return objects_apart(nodes, self._evaluate_plain, self._on_driver()._evaluate_plain)
        roots: Sequence[Node] = self.planner.over_sources(nodes) if is_given else nodes
        if has_constants(order):
            roots = run_passes(VALUE_PASSES, roots, config.disabled_passes)
        if has_lines:
            from spartan_ng.selecting import selected

            roots = selected(roots, self.backend, self._evaluate_plain)
        values: dict[Node, ArrayRef] = {}
        wanted: list[Node] = []
        for root in dict.fromkeys(roots):
            if root.data is None:
                wanted.append(root)
            else:
                values[root] = root.data
        known = order if wanted == nodes else topological(wanted)
        begun = time.perf_counter()
        found = self._direct(wanted, known)
        if found is not None:
            values.update(zip(wanted, found, strict=True))
            self.worked_s += time.perf_counter() - begun
            if config.debug:
                tell_direct(wanted, time.perf_counter() - begun)
        elif wanted:
            refs = self._stay(wanted, known, self._home) if self._home and died is None else None
            if refs is None:
                laid = self.planner.laid_out(wanted, known) if has_turned else None
                todo, walked = (wanted, known) if laid is None else (laid, None)
                refs = self._plan_and_run(todo, walked, [] if died is None else died)
            values.update(zip(wanted, refs, strict=True))
        return [values[r] for r in roots]

    def place(self, nodes: Sequence[Node]) -> Session:
        """Where `nodes` would be computed now: by this session, or by its one on the driver."""
        home = self._home if nodes else None
        struck = None if home is None else home.bargain(nodes, topological(nodes), self._plans_of_driver)
        return self if struck is None else self._on_driver()

    def _stay(
        self, wanted: Sequence[Node], order: Sequence[Node], home: Home[Session]
    ) -> list[ArrayRef] | None:
        """The values of a program that stays on the driver; None where it does not."""
        struck = home.bargain(wanted, order, self._plans_of_driver)
        if struck is None:
            return None
        here = self._on_driver()
        before = here.worked_s
        refs = here._evaluate(wanted, order)
        self.worked_s += here.worked_s - before
        home.bill(struck)
        if config.debug >= 3:
            tell_stay(struck.here_s, struck.there_s, struck.sending_s)
        return refs

    def _on_driver(self) -> Session:
        """The session of what stays on the driver."""
        assert self._home is not None, "whose programs run elsewhere"
        return self._home.here()

    def _plans_of_driver(self) -> Planner:
        return self._on_driver().planner

    def retire(self) -> None:
        """Let go of what runs programs, as soon as no array needs it."""
        self.backend.retire()
        if self._home is not None:
            self._home.retire()

    def _plan_and_run(
        self, wanted: list[Node], order: Sequence[Node] | None, died: list[WorkerDied]
    ) -> list[ArrayRef]:
        """The values of `wanted` by a plan; by another one where workers came or went before it ran.

        Where workers are lost, arrays that went with them are computed again, and what was not done yet is
        planned for who is left. Users' functions under which two workers died are not called a third time;
        `died` tells of workers that did before, and takes more.
        """
        if self._replicas is not None:  # of what is still needed: the last step has let go of the one before
            self._replicas.make_in_time(self.worked_s, lambda: self.backend.profile, self._evaluate_plain)
        changed = lost = 0
        while todo := [node for node in dict.fromkeys(wanted) if node.data is None]:
            planned = None
            left: Mapping[int, ArrayRef] = {}
            try:
                begun = time.perf_counter()
                with happened.span("plan"):
                    planned, leaves = self.plan(todo, order)
                begin = time.perf_counter()
                with happened.span("run"):
                    refs = self.run(planned, list(map(leaves.__getitem__, planned.leaves)))
            except JobSetAside as error:
                self.worked_s += time.perf_counter() - begin
                whole = {n: ref for n, ref in error.left.items() if not self._is_lost(ref)}
                error.left = {}
                _log.info("%s", error)
                assert planned is not None, "it ran"
                wanted, order = self._rest(wanted, todo, planned.plan, whole), None
            except WorkersChanged:
                changed += 1
                if planned is None or changed == _PLANNED:  # it asks itself for workers that are gone
                    raise
                losing, leaves = self._losing, [n.data for n in topological(todo) if n.data is not None]
                if losing is not None:  # what is lost counts as a loss, and is found to be when it is read
                    self._recover([ref for ref in leaves if losing.is_moved(ref)], died)
            except WorkerLost as error:
                lost += 1
                if planned is None:  # there are no workers
                    raise (died[-1] if died else error) from error
                if isinstance(error, WorkerUnreachable | GivenUp):  # it lives with its tiles, or none is lost
                    raise
                if isinstance(error, WorkerDied):
                    ran_s = time.perf_counter() - begin
                    self.worked_s += ran_s
                    died.append(noted(error))
                    left, error.left = error.left, {}
                    if len(died) > 1 and (users := planned.plan.suspects):
                        raise blamed(users, *died[-2:]) from error
                if lost > config.retries or self._losing is None:
                    raise
                happened.mark("lost", str(error))
                _log.warning("%s; computing again what it took (%d of %d)", error, lost, config.retries)
                if left and ran_s >= SAVED_S:
                    wanted, order = self._rest(wanted, todo, planned.plan, left), None
                if not self._recover([n.data for n in topological(wanted) if n.data is not None], died):
                    raise
            else:
                if config.debug:
                    self._tell(todo, begin - begun)
                results = list(map(refs.__getitem__, planned.outputs))
                if planned.recipe is not None:
                    record(planned.recipe, leaves, results)
                assert self.last_run is not None, "it has just run"
                computed = (*user_step(), self.last_run[1].seconds)
                for ref in results:
                    ref.computed = computed
                values = dict(zip(todo, results, strict=True))
                return [values[node] if node.data is None else node.data for node in wanted]
        return [node.data for node in wanted if node.data is not None]

    def _rest(
        self, wanted: list[Node], todo: list[Node], plan: Plan, left: Mapping[int, ArrayRef]
    ) -> list[Node]:
        """`wanted` as what is still to do of it, where a job has left something of its plan for `todo`."""
        rest = dict(zip(todo, self.planner.what_is_left(todo, plan, left), strict=True))
        return [rest.get(node, node) for node in wanted]

    def replicate(self, refs: Sequence[ArrayRef]) -> None:
        """Have arrays on workers kept by other workers, too; OptionError where there have never been any."""
        copied = None if self._replicas is None else self._replicas.make(refs, self._evaluate_plain)
        if self._replicas is None or not self._replicas.had_others:
            raise OptionError("no other worker can keep copies: name a folder")
        if not copied and self.backend.workers < 2:
            _log.warning("one worker is left, and nobody who could keep copies of its arrays")

    def _tell(self, wanted: list[Node], planning_s: float) -> None:
        """Log the run that has just ended."""
        assert self.last_run is not None, "it has just run"
        plan, stats = self.last_run
        explain = partial(self.planner.explain, wanted, plan, stats)
        tell_run(config.debug, plan, stats, planning_s, user_place(), explain)

    def _recover(self, refs: Sequence[ArrayRef], died: list[WorkerDied] | None = None) -> bool:
        """Have those of `refs` that are lost computed again; whether that was possible. `died` as above."""
        losing = self._losing
        assert losing is not None, "only lost arrays are recovered"
        with one_at_a_time(losing):
            return self._recover_now(losing, refs, died)

    def _recover_now(self, losing: Losing, refs: Sequence[ArrayRef], died: list[WorkerDied] | None) -> bool:
        assert self._replicas is not None, "there are some where arrays may be lost"
        for left in reversed(range(config.retries + 1)):
            losing.take_notice()
            lost = [ref for ref in dict.fromkeys(refs) if ref.backend is losing and losing.is_lost(ref)]
            if not lost:
                return True
            is_gone = not all(map(losing.is_moved, lost))
            try:
                with happened.span("recover"):
                    home, more = current() if losing.is_gone() else self, [] if died is None else died
                    evaluate = partial(home._evaluate, order=None, died=more)
                    found = computed_again(lost, losing, evaluate, self._replicas.copies)
            except WorkerUnreachable:
                raise
            except WorkerLost:  # tiles that were left have gone meanwhile
                if not left:
                    raise
                continue
            if found is None:
                return False
            arrays, amount = found
            self.recovered += amount
            if amount.lost:
                what = f"{amount.computed:,} elements, for {amount.lost:,} that were lost"
                losing.tell_recovered(f"{user_place()}: {what}, are computed again")
            elif is_gone:
                losing.tell_recovered(f"{user_place()}: what was lost is there again, by second copies")
            for ref, by in zip(lost, arrays, strict=True):
                self._replicas.use(ref, by)
                losing.restore(ref, by)
            return True
        raise AssertionError("the last attempt returns or raises")

    def _is_lost(self, ref: ArrayRef) -> bool:
        return self._losing is not None and self._losing.is_lost(ref)

    def _evaluate_plain(self, nodes: list[Node]) -> list[ArrayRef]:
        return self._evaluate(nodes, None)

    def _direct(self, roots: Sequence[Node], order: Sequence[Node]) -> list[ArrayRef] | None:
        """The values of a program that is one NumPy call, where it runs in this process."""
        if not isinstance(self.backend, EmbeddedBackend) or config.kernels != "auto":
            return None
        found = run_direct(roots, config.small_bytes, self.backend.threads, order)
        return None if found is None else list(map(as_array_ref, roots, found))

    def plan(
        self, roots: Sequence[Node], order: Sequence[Node] | None = None
    ) -> tuple[Planned, list[ArrayRef]]:
        """The plan for `roots` and the program's leaves; `order` is the roots' graph, where the caller has
        walked it."""
        begin = time.perf_counter()  # of what comes first: who came and went may change the leaves' tilings
        workers = self.backend.workers
        self.worked_s += time.perf_counter() - begin  # waiting for workers is no cost of planning
        return self.planner.plan(roots, order, workers)

    def run(self, planned: Planned, inputs: list[ArrayRef]) -> list[ArrayRef]:
        """Run a plan over its inputs, in the plan's order, and learn from what it took."""
        plan = planned.plan
        if plan.also:
            copies = [inputs[n].also[k : k + 1] for n, k in plan.also]
            if not all(copies):
                raise WorkersChanged("copies of an array in another tiling went after the plan was made")
            inputs = [*inputs, *chain.from_iterable(copies)]
        for ref, slot in zip(inputs, plan.inputs, strict=True):
            if ref.backend is not self.backend:
                if ref.value is None and ref.source is None:
                    bring(ref)
                self.backend.upload(ref, plan.slots[slot].tiling)
        with progress() as report:
            refs, stats = self.backend.run(plan, inputs, report)
        telemetry.ran(stats.job)
        self.last_run = (plan, stats)
        for stage in stats.stages:
            self.moved_bytes += stage.bytes_moved
            self.worked_s += stage.seconds
        if planned.measured:
            self.planner.learn(plan, stats)
        wanted = len(refs) - len(plan.keeps)
        for n, copy in zip(plan.keeps, refs[wanted:], strict=True):
            inputs[n].also = (*inputs[n].also, copy)
            self.planner.keep(copy)
        return refs[:wanted]


_session: Session | None = None
_session_lock = threading.Lock()


def current() -> Session:
    """The process's session; embedded until `connect`."""
    global _session
    with _session_lock:
        if _session is None:
            address, keys = map(os.environ.get, (MASTER_VARIABLE, KEYS_VARIABLE))
            own: Backend = reach(address, keys) if address else EmbeddedBackend()
            if isinstance(own, EmbeddedBackend):
                measure_later(own.threads, own.profile.memory_bytes)
            keep_to_worker(own)
            _session = Session(own)
        elif isinstance(own := _session.backend, EmbeddedBackend) and own.follows_options:
            own.follow_options()
        return _session


def use(backend: Backend) -> Session:
    """Run programs on `backend` from now on."""
    global _session
    with _session_lock:
        keep_to_worker(backend)
        _session = Session(backend)
        return _session


def embed() -> Session:
    """Run programs in this process from now on."""
    return move_to(EmbeddedBackend())


def connect(
    address: Any,
    keys: str | os.PathLike[str] | None = None,
    workers: int = 1,
    insecure: bool = False,
) -> Session:
    """Run programs on the cluster or engine at `address` from now on; see `spartan_ng.connect`."""
    return move_to(reach(address, keys, workers, insecure))


def move_to(backend: Backend) -> Session:
    """Run programs on `backend` from now on; what ran them before is closed as soon as no array needs it."""
    before = _session
    session = use(backend)
    if before is not None:
        before.retire()
    return session


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
    return has_local_workers(current().backend)


def worker_bytes() -> tuple[int, int, bool]:
    """What arrays may take on a worker, and on all of them, and whether that was set as a limit."""
    profile = current().backend.profile
    return profile.memory_bytes, profile.workers * profile.memory_bytes, profile.limited


def _go_on_alone() -> None:  # see `backends.forked`
    global _session, _session_lock
    _session_lock = threading.Lock()
    if _session is not None and not isinstance(_session.backend, EmbeddedBackend):
        _session = Session(EmbeddedBackend())


after_fork(_go_on_alone)
answer_by(
    Evaluator(
        *(evaluate, in_process, is_dear, shares_files, worker_bytes),
        is_sooner_here=lambda steps, nbytes: is_sooner_at(current()._home, steps, nbytes),
        lead=lambda: current().backend.profile.lead,
    )
)
