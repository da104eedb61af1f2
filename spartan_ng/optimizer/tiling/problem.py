"""The tiling problem in its pure form: variables with numbered options, and tables of costs.

A factor is a table over one, two or three variables; the cost of a choice is the sum of its entries.
Options, and pairs of them, may also use up a budget (copies need memory). Solvers know nothing of tilings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from spartan_ng.costs import Table

Scope = tuple[int, ...]
"""The variables of a factor, in increasing order."""


class Problem(Struct, frozen=True):
    """Minimize the sum of the factors and a constant.

    Parameters
    ----------
    sizes : number of options of each variable
    factors : cost tables by their scope
    forbidden : costs from here on mean "impossible"; above every possible sum of real costs
    weights : tables by their scope, one or two variables: what options take from the budget
    budget : what all options chosen may take together; None where there is no limit
    constant : a cost that every choice has
    """

    sizes: tuple[int, ...]
    factors: Mapping[Scope, Table]
    forbidden: int
    weights: Mapping[Scope, Table]
    budget: int | None = None
    constant: int = 0

    def cost(self, choice: tuple[int, ...]) -> int:
        """The cost of one option for each variable."""
        entries = (int(table[tuple(choice[v] for v in s)]) for s, table in self.factors.items())
        return self.constant + sum(entries)

    def possible(self, cost: int) -> bool:
        """Whether a choice of this cost takes no forbidden option."""
        return cost - self.constant < self.forbidden

    def weight(self, choice: tuple[int, ...]) -> int:
        """What a choice takes from the budget."""
        return sum(int(w[tuple(choice[v] for v in s)]) for s, w in self.weights.items())

    def allowed(self, scope: Scope) -> NDArray[np.bool_]:
        """Which options of `scope` no factor over it, or over one of its variables, forbids."""
        out = np.ones(tuple(self.sizes[v] for v in scope), np.bool_)
        whole = self.factors.get(scope)
        if whole is not None:
            out &= (whole < self.forbidden).astype(np.bool_)
        for axis, v in enumerate(scope):
            unary = self.factors.get((v,))
            if unary is not None:
                shape = [1] * len(scope)
                shape[axis] = -1
                out &= (unary < self.forbidden).astype(np.bool_).reshape(shape)
        return out

    def allowing(self, scope: Scope, options: NDArray[np.bool_]) -> Problem:
        """The same problem with only `options`, a mask over `scope`, possible."""
        known = self.factors.get(scope)
        kind = object if self.forbidden >= 1 << 62 else np.int64
        table = np.zeros(tuple(self.sizes[v] for v in scope), kind)
        if known is not None:
            table += known
        table[~options] = self.forbidden
        return replace(self, factors={**self.factors, scope: table})


class Solution(Struct, frozen=True):
    """One option for each variable, the cost, and how good it is known to be."""

    choice: tuple[int, ...]
    cost: int
    solver: str
    bound: int
    """No choice costs less than this."""

    @property
    def exact(self) -> bool:
        """Whether no choice costs less than this one."""
        return self.bound >= self.cost


Solver = Callable[[Problem], Solution]
"""Finds a choice of least (or low) cost; does not look at the budget, see `budget.solve`."""


def least(problem: Problem) -> int:
    """A lower bound: every factor at its least entry."""
    return problem.constant + sum(int(table.min()) for table in problem.factors.values())
