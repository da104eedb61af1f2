"""A problem under construction: variables with their options, and costs over some of them, added up."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.costs import Profile, Table
from spartan_ng.optimizer.tiling.options import (
    Options,
)
from spartan_ng.optimizer.tiling.problem import Scope
from spartan_ng.optimizer.tiling.sketch import ArraySketch
from spartan_ng.optimizer.tiling.variables import PINNED, TilingPlace


class CostFactors:
    """Variables by their numbers, and tables of costs by the variables that they depend on.

    Parameters
    ----------
    rates : what a byte that moves costs
    """

    def __init__(self, rates: Profile) -> None:
        self.rates = rates
        self.sizes: list[int] = []
        self.constant = 0
        self.factors: dict[Scope, Table] = {}
        self.weights: dict[Scope, Table] = {}
        self.widen(0, 60)

    def widen(self, most_ns: int, bits: int) -> None:
        """Count in Python's integers where a cost may need more than so many bits.

        Picoseconds, a thousand times the cost, have to stay within 64 bits, too.
        """
        self.wide = most_ns >= 1 << min(bits, 52)
        self.forbidden = 1 << (200 if self.wide else bits)
        self.kind: type[Any] = object if self.wide else np.int64

    def _variable(self, array: ArraySketch, options: Options) -> TilingPlace:
        v = len(self.sizes)
        self.sizes.append(len(options))
        self._weigh(v, options, array)
        return TilingPlace(v, options)

    def _weigh(self, v: int, options: Options, array: ArraySketch) -> None:
        if any(options.copied):
            weight = np.array([array.nbytes * copied for copied in options.copied], self.kind)
            self.weights[v,] = self.weights.get((v,), 0) + weight

    def _add_wide(self, variables: tuple[int, ...], moved: Table) -> None:
        """A cost over any number of different variables, some of which may be pinned."""
        cost = self.rates.move_ns(moved.astype(object) if self.wide else moved)
        free = [axis for axis, v in enumerate(variables) if v != PINNED]
        cost = cost[tuple(slice(None) if v != PINNED else 0 for v in variables)]
        scope = tuple(variables[axis] for axis in free)
        cost = cost.transpose(sorted(range(len(scope)), key=lambda axis: scope[axis]))
        scope = tuple(sorted(scope))
        known = self.factors.get(scope)
        self.factors[scope] = cost if known is None else known + cost

    def _add(self, row: int, column: int, moved: Table, extra: Table | None) -> None:
        if self.wide:
            moved = moved.astype(object)
        cost = self.rates.move_ns(moved)
        if extra is not None:
            cost = cost + extra
        scope: Scope
        if column == PINNED:
            scope, cost = (row,), cost[:, 0]
        elif row < column:
            scope = (row, column)
        else:
            scope, cost = (column, row), cost.T
        known = self.factors.get(scope)
        self.factors[scope] = cost if known is None else known + cost

    def _add_unary(self, v: int, costs: list[int]) -> None:
        """Costs of a variable's options; what they have in common goes to the constant."""
        least = min(costs)
        self.constant += least
        table = np.array([c - least for c in costs], self.kind)
        known = self.factors.get((v,))
        self.factors[v,] = table if known is None else known + table
