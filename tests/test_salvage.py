"""What is left of a job gives, with what is missing of it computed again, what the job would have given."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph.node import Op, topological
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from spartan_ng.plan.lower import lower, origins
from spartan_ng.plan.settings import Settings
from spartan_ng.recovery import computed_again
from spartan_ng.salvage import over_what_is_left
from tests import reference
from tests.programs import programs
from tests.sampling import examples
from tests.test_lineage import Reference

SETTINGS = Settings(Profile(workers=3))


def rewritten(program):
    """A program as it is lowered."""
    roots = [sp.asarray(a)._node() for a in program.run(sp, sp.array)]
    return list(dict.fromkeys(run_passes(PASSES, roots, ())))


def with_value(node):
    (ref,) = reference.evaluate([node])
    return ArrayRef(node.shape, node.dtype, value=ref.value)


@examples(40)
@given(program=programs(), data=st.data())
def test_any_tiles_of_any_stored_arrays_and_the_rest_computed_again_are_the_whole(program, data):
    m = Reference(parts=3)
    with config.override(small_bytes=0), np.errstate(all="ignore"):
        roots = rewritten(program)
        order = topological(roots)
        plan = lower(order, roots, SETTINGS, "a plan")
        stored = [n for n in origins(plan, order, roots, SETTINGS).stored if n.op is not Op.DATA]
        wanted = [ref.value for ref in reference.evaluate(roots)]
        left = {n: with_value(n) for n in stored if data.draw(st.booleans()) and n.format == "dense"}
        rest = over_what_is_left(roots, left)
        for ref in left.values():
            if data.draw(st.booleans()):
                m.lose(data.draw(st.integers(0, 2)), ref)
        needed = [n.data for n in topological(rest) if n.data is not None and m.is_lost(n.data)]
        found = computed_again(needed, m, m.evaluate)
        assert found is not None, "all is known of what a job had made"
        for ref, again in zip(needed, found[0], strict=True):
            ref.value = again.value
        values = [ref.value for ref in reference.evaluate(rest)]
    for part, whole in zip(values, wanted, strict=True):
        np.testing.assert_allclose(part, whole, rtol=1e-9, atol=1e-9)


def test_a_plan_that_would_be_another_by_now_says_nothing_of_its_slots():
    a = sp.asarray(sp.array(np.arange(24.0).reshape(8, 3)) + 1.0).sum(axis=0)._node()
    order = topological([a])
    plan = lower(order, [a], SETTINGS, "a plan")
    assert origins(plan, order, [a], SETTINGS).stored[-1] is a
    assert origins(plan, order, [a], Settings(Profile(workers=5))).stored == []
