"""Each rule of plans is broken once: a plan that breaks one names it and its stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

from spartan_ng.arrays import WHOLE, ArrayRef, Tiling
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.graph.spec import BrokenRule
from spartan_ng.plan import lower as lowering
from spartan_ng.plan.lower import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.spec import PLAN_RULES, STAGE_RULES, check_plan
from spartan_ng.plan.stages import Combine, Fused

F8 = np.dtype(np.float64)


def leaf(*shape: int) -> Node:
    return build.data(ArrayRef(shape, F8, value=np.ones(shape)))


def planned(*roots: Node, workers: int = 4) -> Plan:
    return lower(topological(roots), roots, Settings(Profile(workers=workers)), "key")


A = leaf(4000, 50)
SUM = planned(build.fold("add", build.map_("exp", A), [0]), build.map_("exp", A))
SCAN = planned(build.scan("add", build.map_("exp", leaf(100_000)), 0))
B = build.data(ArrayRef((2000, 2000), F8, value=np.broadcast_to(1.0, (2000, 2000))))
FINISHED = planned(build.map_("exp", build.map_("multiply", build.matmul(B, B, F8), leaf(1))), workers=2)
S = sparse.random(4000, 50, 0.01, format="csr")
REF = ArrayRef(S.shape, F8, value=S, format="csr", nnz=S.nnz)
SAMPLED = planned(build.fold("add", build.map_("multiply", build.data(REF), A), [1]))
PLANS = {"sum": SUM, "scan": SCAN, "finish": FINISHED, "sampled": SAMPLED}


def at(plan: Plan, kind: type[Any], has: Callable[[Any], bool] = bool) -> int:
    """The number of the first stage of a kind."""
    return next(i for i, s in enumerate(plan.stages) if isinstance(s, kind) and has(s))


def changed(plan: Plan, i: int, **fields: Any) -> Plan:
    """The plan with another stage i."""
    stages = list(plan.stages)
    stages[i] = replace(stages[i], **fields)
    return replace(plan, stages=tuple(stages))


def with_read(plan: Plan, i: int, **fields: Any) -> Plan:
    """The plan whose stage i has another first read."""
    stage: Any = plan.stages[i]
    first, *rest = stage.reads
    return changed(plan, i, reads=(replace(first, **fields), *rest))


def with_write(plan: Plan, i: int, k: int = 0, **fields: Any) -> Plan:
    """The plan whose stage i has another result k."""
    writes = list(plan.stages[i].results())
    writes[k] = replace(writes[k], **fields)
    return changed(plan, i, writes=tuple(writes))


def broken(name: str) -> Iterator[Plan]:
    """Plans that break a rule, and no rule before it."""
    fused, combined = at(SUM, Fused), at(SUM, Combine)
    stage: Any = SUM.stages[fused]
    reduced = next(k for k, w in enumerate(stage.writes) if w.reducer is not None)
    plain = 1 - reduced
    axes = stage.reads[0].axes
    match name:
        case "slots once":
            yield replace(SUM, stages=(*SUM.stages, SUM.stages[-1]))
            yield replace(SUM, outputs=(len(SUM.slots),))
            yield replace(SUM, stages=SUM.stages[:-1])
        case "slots tiled":
            for tiling in (Tiling.grid(4), Tiling.grid(1, 60)):
                yield replace(SUM, slots=(replace(SUM.slots[0], tiling=tiling), *SUM.slots[1:]))
        case "bytes":
            yield replace(SUM, predicted_bytes=(0,))
            yield replace(SUM, predicted_bytes=(-1,) * len(SUM.stages))
        case "ranks":
            yield replace(SUM, ranks=0)
        case "order":
            yield replace(SUM, stages=SUM.stages[::-1])
            yield replace(SCAN, stages=(*SCAN.stages[1:], SCAN.stages[0]))
        case "grid":
            yield changed(SUM, fused, grid=Tiling.grid(4))
            yield changed(SUM, fused, grid=Tiling.grid(1, 60))
        case "reads":
            yield with_read(SUM, fused, axes=(replace(axes[0], start=1), axes[1]))
            yield with_read(SUM, fused, axes=(replace(axes[0], step=2), axes[1]))
            yield with_read(SUM, fused, axes=axes[:1])
            for axis in (0, 1):  # shorter than what is shown of it, and not stretched
                short = replace(axes[axis], size=axes[axis].size - 1)
                yield with_read(SUM, fused, axes=(*axes[:axis], short, *axes[axis + 1 :]))
            yield with_read(SUM, fused, labels=(1, 0))
            yield with_read(SUM, fused, order=(0, 0))
            yield with_read(SUM, fused, shape=(4000, 51))
        case "registers":
            yield changed(SUM, fused, rows=(replace(stage.rows[0], args=(1,)), *stage.rows[1:]))
            yield with_write(SUM, fused, reduced, reducer=replace(stage.writes[reduced].reducer, args=(9,)))
        case "rows":
            yield changed(SUM, fused, rows=(replace(stage.rows[0], labels=(1, 0)), *stage.rows[1:]))
            yield changed(SUM, fused, rows=(replace(stage.rows[0], shape=(4000, 49)), *stage.rows[1:]))
        case "writes":
            yield with_write(SUM, fused, plain, register=7)
            yield with_write(SUM, fused, plain, labels=(1, 0))
            yield with_write(SUM, fused, plain, partial=(0,))
            yield with_write(SUM, fused, reduced, labels=(WHOLE, 1))
            yield with_write(SUM, fused, reduced, partial=(1,))
            rows = [replace(row, dtype=np.dtype(np.float32)) for row in stage.rows]
            yield changed(SUM, fused, rows=tuple(rows))
        case "combine":
            yield changed(SUM, combined, lead=0)
            yield changed(SUM, combined, states=())
        case "driver":
            i = at(SAMPLED, Fused, lambda s: s.driver >= 0)
            yield changed(SAMPLED, i, driver=1)
        case "value":
            i = next(i for i, s in enumerate(FINISHED.stages) if s.finish is not None)
            last: Any = FINISHED.stages[i]
            reads = last.finish.reads
            yield changed(FINISHED, i, finish=replace(last.finish, reads=(*reads, *reads)))
            other = replace(reads[-1], slot=FINISHED.inputs[0])
            yield changed(FINISHED, i, finish=replace(last.finish, reads=(*reads[:-1], other)))


@pytest.mark.parametrize("name", PLANS)
def test_plans_keep_all_rules(name: str) -> None:
    check_plan(PLANS[name])


@pytest.mark.parametrize("rule", [*PLAN_RULES, *STAGE_RULES], ids=lambda rule: rule.name)
def test_a_broken_rule_is_named(rule: Any) -> None:
    plans = list(broken(rule.name))
    assert plans
    for plan in plans:
        with pytest.raises(BrokenRule, match=f"breaks the rule '{rule.name}'"):
            check_plan(plan)


def test_plans_are_asked_as_they_are_made(monkeypatch) -> None:
    wrong = lowering.Lowering.plan
    monkeypatch.setattr(lowering.Lowering, "plan", lambda *args: replace(wrong(*args), ranks=0))
    with config.override(check=True), pytest.raises(BrokenRule, match="'ranks'"):
        planned(build.map_("exp", A))
    with config.override(check=False):
        assert planned(build.map_("exp", A)).ranks == 0
