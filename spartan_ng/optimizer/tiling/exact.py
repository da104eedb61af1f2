"""The default solver: variable elimination over cost tables, in min-fill order.

Eliminating a variable replaces all factors that mention it by one table over its neighbours, the least
cost over its options. A program's graph is narrow, so the tables stay small. Where the cheapest next
table would still pass `CELLS` cells, the variable with the most neighbours is fixed to its greedy option
instead, and the whole choice is improved variable by variable afterwards; the result then says that it
is not known to be exact.

Dechter, "Bucket elimination" (AIJ 1999), for the method; Spartan (ATC '15), section 3.3, for the problem.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np

from spartan_ng.costs import Table
from spartan_ng.optimizer.tiling import greedy
from spartan_ng.optimizer.tiling.improve import improve
from spartan_ng.optimizer.tiling.problem import Problem, Scope, Solution, least

CELLS = 1_000_000
"""Tables do not grow beyond this many cells."""

Step = tuple[int, Scope, Table]
"""An eliminated variable, what its best option depends on, and that option."""
Score = tuple[int, int, int]
"""Pairs of variables that eliminating one connects anew, the cells of its table, and the variable."""


def solve(problem: Problem, cells: int = CELLS) -> Solution:
    """The cheapest choice; the cheapest found where a table would pass `cells`."""
    elimination = _Elimination(problem)
    fixed: dict[int, int] = {}
    wide: Solution | None = None
    while elimination.left:
        v = elimination.cheapest()
        if elimination.cells(v) <= cells:
            elimination.eliminate(v)
            continue
        # Once: what is fixed is part of one choice, so that it fits together.
        wide = wide or greedy.solve(problem)
        v = elimination.widest()
        fixed[v] = wide.choice[v]
        elimination.fix(v, fixed[v])
    choice = elimination.choice(fixed)
    if wide is None:
        return Solution(choice, elimination.constant, "exact", elimination.constant)
    # What was fixed fits the greedy choice: with all of it that may cost less than this mixture.
    if wide.cost < elimination.constant:
        choice = wide.choice
    choice = improve(problem, choice)
    return Solution(choice, problem.cost(choice), "exact (bounded)", least(problem))


class _Elimination:
    """The factors that are left, and the graph of the variables they connect."""

    def __init__(self, problem: Problem) -> None:
        self.sizes = problem.sizes
        self.constant = problem.constant
        self.left = set(range(len(problem.sizes)))
        self._buckets: list[dict[Scope, Table]] = [{} for _ in problem.sizes]
        self._near: list[set[int]] = [set() for _ in problem.sizes]
        self._score: dict[int, Score] = {}
        self._unscored = set(self.left)
        self._queue: list[Score] = []
        """Scores in a heap, those among them that are no longer true, too."""
        self._steps: list[Step] = []
        for scope, table in problem.factors.items():
            self._add(scope, table)
        self._leaves = [v for v in reversed(range(len(self._near))) if len(self._near[v]) < 2]

    def _add(self, scope: Scope, table: Table) -> None:
        if not scope:
            self.constant += int(table)
            return
        known = self._buckets[scope[0]].get(scope)
        if known is not None:
            table = known + table
        pairs: list[tuple[int, int]] = []
        for v in scope:
            self._buckets[v][scope] = table
            near = self._near[v]
            pairs += [(v, u) for u in scope if u > v and u not in near]
            near.update(scope)
            near.discard(v)
        for v, u in pairs:  # connected now, which concerns them and those that are neighbours of both
            self._forget({v, u, *(self._near[v] & self._near[u])})

    def cells(self, v: int) -> int:
        """Cells of the table that eliminating `v` needs."""
        n = self.sizes[v]
        for u in self._near[v]:
            n *= self.sizes[u]
        return n

    def cheapest(self) -> int:
        """The variable whose elimination connects the fewest pairs anew; smaller tables break ties.

        One with a single neighbour connects none, and is taken without looking further.
        """
        while self._leaves:
            v = self._leaves.pop()
            if v in self.left:
                return v
        for v in self._unscored:
            near, fill = self._near[v], 0
            if len(near) > 1:
                for u in near:  # what they share, as the fewer of them: a variable may have thousands
                    fill += len(near) - len(near & self._near[u]) - 1
            self._score[v] = (fill, self.cells(v), v)
            heappush(self._queue, self._score[v])
        self._unscored.clear()
        # A heap cannot change its entries: scores that are no longer true go when they come up.
        while self._score.get(self._queue[0][2]) != self._queue[0]:
            heappop(self._queue)
        return self._queue[0][2]

    def widest(self) -> int:
        """The variable with the most neighbours."""
        return max(self.left, key=lambda v: (len(self._near[v]), -v))

    def eliminate(self, v: int) -> None:
        """Replace the factors of `v` by the least over its options."""
        factors = self._buckets[v]
        rest = tuple(sorted(self._near[v]))
        total = _joined(factors, (*rest, v), self.sizes)
        # Kept for the way back: its neighbours' options, which decide, are not known yet.
        best = total.argmin(-1)
        self._steps.append((v, rest, best))
        self._detach(v, factors)
        self._add(rest, total.min(-1))

    def fix(self, v: int, option: int) -> None:
        """Give `v` one option."""
        factors = self._buckets[v]
        self._detach(v, factors)
        for scope, table in factors.items():
            at = tuple(option if u == v else slice(None) for u in scope)
            self._add(tuple(u for u in scope if u != v), table[at])

    def _detach(self, v: int, factors: Iterable[Scope]) -> None:
        self.left.remove(v)
        for u in self._near[v]:
            near = self._near[u]
            near.discard(v)
            if len(near) < 2:
                self._leaves.append(u)
        self._forget({v, *self._near[v]})
        self._unscored.discard(v)
        for scope in factors:
            for u in scope:
                if u != v:
                    del self._buckets[u][scope]

    def _forget(self, changed: set[int]) -> None:
        """Score some variables again."""
        for v in changed:
            self._score.pop(v, None)
        self._unscored |= changed

    def choice(self, fixed: dict[int, int]) -> tuple[int, ...]:
        """Best options, walking back through the eliminations."""
        choice = [fixed.get(v, 0) for v in range(len(self.sizes))]
        for v, rest, best in reversed(self._steps):
            choice[v] = int(best[tuple(choice[u] for u in rest)])
        return tuple(choice)


def _joined(factors: dict[Scope, Table], scope: Scope, sizes: tuple[int, ...]) -> Table:
    """The sum of factors as one table over `scope`."""
    position = {v: i for i, v in enumerate(scope)}
    last = len(scope) - 1
    total: Table | None = None
    for own, table in factors.items():
        # Scopes are in increasing order, as is `scope` but for its last variable: only that one can be out of
        # place.
        if len(own) > 1 and position[own[-1]] != last:
            order = sorted(range(len(own)), key=lambda a: position[own[a]])
            own, table = tuple(own[a] for a in order), table.transpose(order)
        shape = [1] * len(scope)
        for v in own:
            shape[position[v]] = sizes[v]
        table = table.reshape(shape)
        total = table if total is None else total + table
    full = tuple(sizes[v] for v in scope)
    if total is None:
        return np.zeros(full, np.int64)
    return total if total.shape == full else np.broadcast_to(total, full)
