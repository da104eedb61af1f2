"""The paper's solver: decide the group with the most neighbours first, at its least possible cost.

Spartan (ATC '15), Fig. 8. Views are contracted before, so FindCost needs no recursion. "Remove all edges
to the other options" also removes options of neighbours that have become impossible, and so on from
neighbour to neighbour; impossible pairs form stars around stages, so a choice always remains.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np

from spartan_ng.costs import Table
from spartan_ng.optimizer.tiling.problem import Problem, Solution, least

Neighbours = dict[int, dict[int, Table]]
"""For each variable, its neighbours and the cost table (own option, neighbour's option)."""


def solve(problem: Problem) -> Solution:
    """Choose greedily, the variable of maximum connectivity first.

    A problem without any possible choice gets one of a forbidden cost.
    """
    unary, near = _split(problem)
    alive = [np.ones(n, bool) for n in problem.sizes]
    for v, table in unary.items():
        alive[v] &= table < problem.forbidden
    for v in range(len(alive)):
        _propagate(v, alive, near, problem.forbidden)
    order = sorted(range(len(alive)), key=lambda v: (-len(near[v]), v))
    # No choice is possible: any of forbidden cost says so.
    if not all(a.any() for a in alive):
        order = []
    for v in order:
        cost = unary[v] if v in unary else np.zeros(problem.sizes[v], np.int64)
        for u, table in near[v].items():
            cost = cost + table[:, alive[u]].min(1)
        options = np.flatnonzero(alive[v])
        # The first of equal ones, so that plans do not depend on chance.
        best = int(options[int(np.argmin(cost[options]))])
        alive[v][:] = False
        alive[v][best] = True
        _propagate(v, alive, near, problem.forbidden)
    choice = tuple(int(np.argmax(a)) for a in alive)
    return Solution(choice, problem.cost(choice), "greedy", least(problem))


def _split(problem: Problem) -> tuple[dict[int, Table], Neighbours]:
    """Costs of single options and of pairs; a factor over more variables counts for each of its pairs, with
    the least over the others."""
    unary: dict[int, Table] = {}
    near: Neighbours = defaultdict(dict)
    for scope, table in problem.factors.items():
        if len(scope) == 1:
            unary[scope[0]] = table
        for i, j in combinations(range(len(scope)), 2):
            a, b = scope[i], scope[j]
            pair = table.min(tuple(d for d in range(len(scope)) if d not in (i, j)))
            known = near[a].get(b)
            near[a][b] = pair if known is None else known + pair
            near[b][a] = near[a][b].T
    return unary, near


def _propagate(start: int, alive: list[Table], near: Neighbours, forbidden: int) -> None:
    """Remove options that have no possible partner left, beginning with the neighbours of `start`."""
    queue = [start]
    while queue:
        v = queue.pop()
        # A dead end: there is nothing to keep consistent.
        if not alive[v].any():
            return
        for u, table in near[v].items():
            kept = alive[u] & (table[alive[v]].min(0) < forbidden)
            if kept.sum() < alive[u].sum():
                alive[u][:] = kept
                queue.append(u)
