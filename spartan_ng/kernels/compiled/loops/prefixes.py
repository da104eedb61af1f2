"""The sum of a line and the extreme of its prefix sums, four elements to a step; see `compiled.prefixes`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, choose, compiled

NUMBER = np.float64
IS_LEAST = True


@compiled
def better(a: Any, b: Any) -> Any:
    """Whether the first is the extreme of the two."""
    return a < b if IS_LEAST else a > b


@compiled
def kernel(t: Any) -> None:
    """The line's sum and its extreme prefix."""
    n = t[0, 1]
    x = array_at(t[0, 0], (n,), NUMBER)
    y = array_at(t[0, 2], (2,), NUMBER)
    c = x[0]
    m = c
    i = 1
    while i + 4 <= n:
        p = x[i]
        q = p + x[i + 1]
        s = q + x[i + 2]
        u = s + x[i + 3]
        a = choose(better(p, q), p, q)
        b = choose(better(s, u), s, u)
        e = c + choose(better(a, b), a, b)
        m = choose(better(e, m), e, m)
        c = c + u
        i += 4
    while i < n:
        c = c + x[i]
        m = choose(better(c, m), c, m)
        i += 1
    y[0] = c
    y[1] = m
