"""What `explain` tells: the plan that an evaluation would run, in the user's words, and what it took.

The session makes the plan, and runs it if that is asked for; the planner puts it into words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef
from spartan_ng.backends.protocol import Backend, measured
from spartan_ng.callers import UserLine, place_of
from spartan_ng.config import config
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.trail import Trail
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.rewrite.constants import VALUE_PASSES
from spartan_ng.plan.advice import Facts, narrowed
from spartan_ng.plan.explanation import Earlier
from spartan_ng.plan.plan import Plan
from spartan_ng.session import Session

if TYPE_CHECKING:
    from spartan_ng.plan.explanation import Explanation

_TOGETHER = 3
"""Other arrays that `explain` plans together with those that it is asked for."""


def explain(
    session: Session,
    nodes: Sequence[Node],
    run: bool = False,
    names: Sequence[str] = (),
    name_of: Callable[[ArrayRef], str] = lambda ref: "",
    variables: Mapping[str, Node] = MappingProxyType({}),
    places: Mapping[Node, UserLine] = MappingProxyType({}),
    again: Mapping[str, Node] = MappingProxyType({}),
) -> Explanation:
    """The plan that evaluating `nodes` would run; with `run`, run it and show what it took, too.

    `names` is what the user calls the nodes, and `name_of` says it of arrays that are there; `variables`
    are others of the user's, some of which may be steps on the way. `places` says where steps stand.
    Those that take steps of theirs `again`, computed later, are planned with them for comparison.
    """
    trail = Trail(nodes)
    with trail.followed():
        roots = session.planner.over_sources(run_passes(VALUE_PASSES, nodes, config.disabled_passes))
    wanted = list(dict.fromkeys(r for r in roots if r.op is not Op.DATA))
    session = session.place(wanted)
    with trail.followed():
        laid = session.planner.laid_out(wanted, topological(wanted)) or wanted
    made_of, wanted = dict(zip(wanted, laid, strict=True)), list(dict.fromkeys(laid))
    planned, leaves = session.plan(wanted)
    plan, inputs = planned.plan, [leaves[i] for i in planned.leaves]
    there, called = [], {}
    asked = tuple(plan.outputs[planned.outputs[i]] for i in range(len(wanted)))
    for n, (root, name) in enumerate(zip(roots, names, strict=False), 1):
        if root.data is not None:
            nameless = "the array" if len(roots) == 1 else f"array {n}"
            there.append(_earlier(name or nameless, root.data))
        elif name:
            called[asked[wanted.index(made_of[root])]] = name
    words = session.planner.words(wanted, plan, trail, variables, places)
    called = {**words.called, **called}
    bound = list(zip(plan.inputs, inputs, strict=False))  # behind them are copies of theirs
    called |= {slot: name for slot, ref in bound if (name := name_of(ref))}
    sent = [slot for slot, ref in bound if plan.workers > 1 and _is_sent(session.backend, ref)]
    narrow = narrowed(nodes)
    facts = Facts(
        sent={slot: narrow.get(ref) for slot, ref in bound if slot in sent},
        apart_s=_apart_s(session, wanted, plan, list(again.values())),
        apart=tuple(again)[:_TOGETHER],
    )
    stats = None
    if run:
        token = measured.set(True)
        try:
            session.run(planned, inputs)
        finally:
            measured.reset(token)
        assert session.last_run is not None, "it has just run"
        stats = session.last_run[1]
    read = [_earlier(called.get(slot, f"%{slot}"), ref) for slot, ref in bound if ref.computed]
    words = replace(words, called=called, there=tuple(there), read=tuple(read), asked=asked)
    return session.planner.explain(wanted, plan, stats, words, facts)


def _apart_s(session: Session, wanted: list[Node], plan: Plan, others: list[Node]) -> float:
    """How much longer plans of these nodes take one by one than a plan of them all."""
    others = others[:_TOGETHER]
    if not (wanted and others):
        return 0.0
    try:
        each = [plan, *(session.plan([other])[0].plan for other in others)]
        alone = sum(map(session.planner.predicted_s, each))
        return alone - session.planner.predicted_s(session.plan([*wanted, *others])[0].plan)
    except MemoryBudgetError:  # it has no room for them all
        return 0.0


def _is_sent(backend: Backend, ref: ArrayRef) -> bool:
    """Whether an array's elements go from here to the workers when a plan reads it."""
    is_here = ref.backend is not backend and ref.value is not None
    return is_here and (ref.source is None or not backend.reads(ref))


def _earlier(name: str, ref: ArrayRef) -> Earlier:
    """What is told of an array that has its elements."""
    if ref.computed is None:
        small = 0 if ref.value is None or ref.nbytes > config.small_bytes else config.small_bytes
        return Earlier(name, at_once_bytes=small)
    code, instruction, seconds = ref.computed
    return Earlier(name, str(place_of(code, instruction)), seconds)
