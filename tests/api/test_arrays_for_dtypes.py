"""An array where a dtype belongs, as in `np.array(a, b)`, is the mistake that it is with NumPy."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np

CALLS = """
np.dtype(a) | np.asarray(a, a) | np.asarray([1, 2], a) | np.array(a, a) | np.zeros(3, a)
np.ones(2, a) | np.full(2, 1, a) | np.zeros_like(a, a) | np.empty_like(a, a) | np.full_like(a, 1, a)
np.identity(2, a) | np.tri(2, dtype=a) | np.eye(2, dtype=a) | a.astype(a) | a.view(a) | a.sum(0, a)
np.sum(a, 0, a) | np.mean(a, dtype=a) | np.cumsum(a, dtype=a) | np.trace(a[None], dtype=a)
np.add(a, a, dtype=a) | np.einsum("i->i", a, dtype=a) | np.concatenate([a, a], dtype=a)
np.stack([a, a], dtype=a) | np.arange(3, dtype=a) | np.linspace(0, 1, 3, dtype=a)
np.fromiter([1], a) | np.frombuffer(b"12345678", a) | np.fromstring("1 2", a, sep=" ")
np.can_cast(a, a) | np.can_cast("f4", a) | np.finfo(a) | np.iinfo(a.astype(int))
np.promote_types(a, float) | np.issubdtype(a, float) | np.isdtype(a, "integral") | a.dtype == a
np.dtype([("x", a)]) | np.zeros(2, a[0]) | np.zeros(2, a.sum()) | np.finfo(a[0]) | np.dtype(a[1])
np.result_type(a, a) | np.min_scalar_type(a) | np.common_type(a, a)
np.random.default_rng(1).random(2, a)
"""


def _found(xp, call):
    try:
        found = eval(call, {"np": xp, "a": xp.array([1.0, 2.0]) * 1})
    except (TypeError, ValueError) as error:
        return next(kind for kind in (TypeError, ValueError) if isinstance(error, kind))
    return str(getattr(found, "dtype", found))


@pytest.mark.parametrize("call", [c.strip() for line in CALLS.strip().splitlines() for c in line.split("|")])
def test_it_is_no_dtype(mode, call):
    assert _found(np, call) == _found(numpy, call)
