"""Compiled extremes of prefix sums: one line of a block in one pass, four elements to a step.

The state of `ops.folds.PrefixFold`. A NaN among the prefixes is left to the sum, which keeps it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.compile import at_hand

LEAST = 1 << 15
"""Elements from which a compiled line is worth having."""

_TYPES = {"f4": "np.float32", "f8": "np.float64"}
_TEXT = """\
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, choose, compiled


@compiled
def kernel(t):
    n = t[0, 1]
    x = array_at(t[0, 0], (n,), {type})
    y = array_at(t[0, 2], (2,), {type})
    c = x[0]
    m = c
    i = 1
    while i + 4 <= n:
        p = x[i]
        q = p + x[i + 1]
        s = q + x[i + 2]
        u = s + x[i + 3]
        a = choose(p {less} q, p, q)
        b = choose(s {less} u, s, u)
        e = c + choose(a {less} b, a, b)
        m = choose(e {less} m, e, m)
        c = c + u
        i += 4
    while i < n:
        c = c + x[i]
        m = choose(c {less} m, c, m)
        i += 1
    y[0] = c
    y[1] = m
"""


def prefix_state(name: str, x: Any, out: np.dtype[Any]) -> tuple[Any, Any] | None:
    """Sum and extreme prefix of a contiguous line, or None: NumPy has to do it (for now)."""
    code = out.str[1:]
    if x.ndim != 1 or x.size < LEAST or x.dtype != out or code not in _TYPES or not x.flags.c_contiguous:
        return None
    kernel = at_hand(_TEXT.format(type=_TYPES[code], less="<" if name.startswith("least") else ">"))
    if kernel is None:
        return None
    state = np.empty(2, out)
    addresses = [int(a.__array_interface__["data"][0]) for a in (x, state)]
    kernel(np.array([[addresses[0], x.size, addresses[1]]], np.int64))
    return state[0], state[1]
