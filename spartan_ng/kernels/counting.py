"""Counts and sums by places in one array for all blocks, where memory has no room for a state of each.

A block of a file may have far fewer elements than a result has places: its state would be mostly zeros, as
large as the result. So blocks are added one after the other, in their order, to the place where the result is
to be stored, which may be in a file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.compressed import is_compressed
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.ops.by_ufunc import State

_EXACT = (np.dtype(np.float64), np.dtype(np.int64))
"""Sums of a block have as many digits on the way; narrower ones are only then added to what there is."""


class Counting(Reducer):
    """The reduced result of a stage whose states all lie in `out`; one thread works on its blocks."""

    def __init__(self, reducer: Reducer, out: np.ndarray[Any, Any]) -> None:
        super().__init__(reducer.row, reducer.labels)
        self.combines_in_place = False  # the state is the tile
        self.out = out
        out[...] = 0

    def combine(self, a: State, b: State) -> State:
        """What was added is there."""
        return a

    def _bincount(self, args: list[Any], box: Box) -> State:
        x, weights = args[0], args[1] if len(args) > 1 else None
        weights = dense(weights) if is_compressed(weights) else weights
        if weights is None:
            np.add.at(self.out, x, 1)
        elif weights.ndim == 1 and weights.dtype == self.out.dtype and weights.dtype in _EXACT:
            np.add.at(self.out, x, weights)
        else:
            places, where = np.unique(x, return_inverse=True)
            (found,) = self._sums(where, weights, len(places))
            self.out[places] += found
        return (self.out,)


class CountGiven(Reducer):
    """In the place of a count in a proof: what is counted, which loops have made."""

    def __init__(self, reducer: Reducer) -> None:
        super().__init__(reducer.row, reducer.labels)

    def _bincount(self, args: list[Any], box: Box) -> State:
        return tuple(np.array(dense(a)) for a in args)
