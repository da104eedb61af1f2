"""What NumPy's functions have to do that look at all elements of what they are given, in steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from spartan_ng.api.core.kinds import PLAIN_OR_NUMERIC
from spartan_ng.api.core.quick import are_of


def takes_long(known: Iterable[Any]) -> bool:
    """Whether NumPy may be at some of the values for longer than whoever presses Ctrl-C wants to wait; lists
    have theirs inside. What does not takes no thread of its own, beside which BLAS's threads have no core."""
    return any(
        not are_of(a, PLAIN_OR_NUMERIC, True) and takes_long(a)
        if type(a) in (list, tuple)
        else type(a) is np.ndarray and _steps_on(a) >= _LONG
        for a in known
    )


def _steps_on(a: np.ndarray[Any, Any]) -> int:
    """What it takes to decompose a stack of matrices, or to find places for elements, about."""
    sides = a.shape[-2:]
    return a.size * max(_BISECTED, min(sides) if len(sides) == 2 else 0)


def work_of(known: Iterable[Any]) -> int:
    """What a function takes at most that looks at all elements of some values: as it may meet those of two
    lines in pairs, of lines the shortest counts."""
    arrays = [a for a in known if type(a) is np.ndarray and a.ndim]
    lines = sorted(a.size for a in arrays if a.ndim == 1)
    pairs = lines[-1] * lines[-2] if len(lines) > 1 else 0
    return max(pairs, sum(map(_steps_on, arrays)))


_BISECTED, _LONG = 32, 1 << 26
"""Steps: the eigenvalues of 400 rows and columns take 75 ms, places for 2 million doubles a second."""
