"""Compiled extremes of prefix sums: one line of a block in one pass, four elements to a step.

The state of `ops.folds.PrefixFold`. A NaN among the prefixes is left to the sum, which keeps it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.costs.choices import PREFIX_ELEMENTS
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import real, source_of
from spartan_ng.kernels.compiled.trial import end_of, first_flaw, largest
from spartan_ng.kernels.compiled.trust import at_hand
from spartan_ng.ops.folds import FOLDS, PrefixFold


def prefix_state(name: str, x: Any, out: np.dtype[Any]) -> tuple[Any, Any] | None:
    """Sum and extreme prefix of a contiguous line, or None: NumPy has to do it (for now)."""
    number = real(out)
    plain = x.ndim == 1 and x.dtype == out and x.flags.c_contiguous
    if number is None or not plain or x.size < PREFIX_ELEMENTS:
        return None
    is_least = str(name.startswith("least"))
    source = source_of("prefixes", NUMBER=number, IS_LEAST=is_least)
    kernel = at_hand(source, None, lambda f: _flaw(f, name, x), name)
    return None if kernel is None else _state(kernel, x)


def _flaw(kernel: Function, name: str, x: Any) -> str:
    """What the kernel makes otherwise than NumPy of the end of a line."""
    part, fold = end_of(x), FOLDS[name]
    assert isinstance(fold, PrefixFold), "the row says how NumPy does it"
    found, wanted = _state(kernel, part), fold.block(part, (0,), part.dtype, None, 0)
    pairs = [(found[0], wanted[0]), (fold.finalize(found), fold.finalize(wanted))]
    return first_flaw(pairs, largest([np.add.accumulate(part)]))


def _state(kernel: Function, x: Any) -> tuple[Any, Any]:
    state = np.empty(2, x.dtype)
    addresses = [address(a) for a in (x, state)]
    kernel(np.array([[addresses[0], x.size, addresses[1]]], np.int64))
    return state[0], state[1]
