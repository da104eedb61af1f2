"""The tiling problem in its pure form: variables with numbered options, and tables of costs.

A factor is a table over one, two or three variables; the cost of a choice is the sum of its entries. An
option may also use up a budget (copies need memory on every worker). Solvers know nothing of tilings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from spartan_ng.optimizer.tiling.profile import Table

Scope = tuple[int, ...]
"""The variables of a factor, in increasing order."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Minimize the sum of the factors and a constant.

    Parameters
    ----------
    sizes : number of options of each variable
    factors : cost tables by their scope
    forbidden : costs from here on mean "impossible"; above every possible sum of real costs
    weights : for a variable, what each of its options takes from the budget
    budget : what all options chosen may take together; None where there is no limit
    constant : a cost that every choice has
    """

    sizes: tuple[int, ...]
    factors: Mapping[Scope, Table]
    forbidden: int
    weights: Mapping[int, tuple[int, ...]]
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
        return sum(w[choice[v]] for v, w in self.weights.items())

    def allowing(self, variable: int, options: set[int]) -> Problem:
        """The same problem with only `options` possible for `variable`."""
        unary = self.factors.get((variable,))
        size = self.sizes[variable]
        table = np.zeros(size, object if unary is not None and unary.dtype == object else np.int64)
        if unary is not None:
            table += unary
        table[[o for o in range(size) if o not in options]] = self.forbidden
        return replace(self, factors={**self.factors, (variable,): table})


@dataclass(frozen=True, slots=True)
class Solution:
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
