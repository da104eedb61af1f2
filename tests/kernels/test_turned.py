"""Operands that lie turned to each other in memory: one compiled loop in blocks of the cache."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.kernels.compiled.segments import Segment, split
from spartan_ng.plan.stages import Fused


@pytest.mark.parametrize("fn", ["add", "multiply", "maximum"])
def test_a_lone_function_of_an_array_and_its_transpose_is_compiled(fn):
    value = np.random.default_rng(0).standard_normal((301, 301))
    a = build.constant(value)
    node = build.map_(fn, a, build.transpose(a, (1, 0)))
    (stage,) = [s for s in session.current().plan([node])[0].plan.stages if isinstance(s, Fused)]
    assert any(isinstance(s, Segment) for s in split(stage, [value.dtype] * len(stage.reads)))
    with config.override(kernels="compile"):
        found = session.evaluate([node])[0].value
    np.testing.assert_array_equal(found, getattr(np, fn)(value, value.T))


def test_a_lone_function_of_arrays_of_one_order_stays_numpys():
    a, b = (build.constant(np.ones((300, 300))) for _ in range(2))
    plan = session.current().plan([build.map_("add", a, b)])[0].plan
    (stage,) = [s for s in plan.stages if isinstance(s, Fused)]
    assert not any(isinstance(s, Segment) for s in split(stage, [np.dtype(float)] * 2))
