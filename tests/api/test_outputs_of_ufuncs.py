"""`out=` with all that NumPy takes beside it: what is small is written where the elements lie, at once.

One that went through the optimizer left its output behind as a graph, and all that came after it followed.
"""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np

FUNCTIONS = ("add", "divide", "hypot", "maximum", "power", "sqrt", "exp", "absolute", "greater", "copysign")
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "alike": [(40, 300), (40, 300)],
    "a column": [(700, 300), (700, 1)],
    "a row": [(300,), (700, 300)],
    "outer": [(400, 1), (1, 300)],
    "stacked": [(200, 200, 2), (200, 200, 1)],
    "a number": [(500, 300), ()],
}
BESIDE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "where": {"where": ...},
    "casting": {"casting": "unsafe"},
    "dtype": {"dtype": "f8", "casting": "same_kind"},
    "where and dtype": {"where": ..., "dtype": "f4", "casting": "same_kind"},
    "order": {"order": "F"},
}


@pytest.mark.some(40)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("into", ["an operand", "an array", "a view"])
def test_an_output_is_written_where_it_lies(name: str, shapes: str, beside: str, into: str) -> None:
    rng = numpy.random.default_rng(0)
    nin = getattr(numpy, name).nin
    operands = [rng.random(shape) + 0.5 for shape in SHAPES[shapes]][:nin]
    shape = numpy.broadcast_shapes(*(o.shape for o in operands))
    mask = rng.random((*shape[:-1], 1)) > 0.5

    def run(xp: Any) -> tuple[Any, Any]:
        given: list[Any] = [xp.asarray(o.copy()) if o.ndim else o[()] for o in operands]
        whole = xp.zeros((2, *shape), "?" if name == "greater" else "f8")
        out: Any = {"an array": whole[0].copy(), "a view": whole[1]}.get(into)
        if out is None:
            out = next((g for g in given if g.shape == shape and g.dtype == whole.dtype), whole[0].copy())
        keywords = dict(BESIDE[beside])
        if name == "greater":
            keywords.pop("dtype", None)
        if "where" in keywords:
            keywords["where"] = xp.asarray(mask)
        before = None if xp is numpy else whole._cell.value, out if xp is numpy else out._cell.value
        assert getattr(xp, name)(*given, out=out, **keywords) is out
        if xp is np:
            assert out._cell._node is None, "nothing is left to be done"
            assert whole._cell.value is before[0]
            assert out._cell.value is before[1] or into == "an operand", "NumPy's own array is not written to"
        return out, whole

    with np.config.override(small_bytes=1 << 25):
        wanted, found = run(numpy), run(np)
    for ours, theirs in zip(found, wanted, strict=True):
        numpy.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
