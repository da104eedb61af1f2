"""The oracle: try every choice and keep the first of the cheapest.

Partial choices are extended variable by variable, many at once. One is dropped only when its cost so far,
with every open factor at its least entry, is not below the cost of a choice already known (at first the
greedy solver's, improved). Where this module is imported, `choose` knows it by its name.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from spartan_ng.costs import Table
from spartan_ng.optimizer.tiling import greedy
from spartan_ng.optimizer.tiling.choose import SOLVERS
from spartan_ng.optimizer.tiling.improve import improve
from spartan_ng.optimizer.tiling.problem import Problem, Scope, Solution

BRUTE = "brute"
"""The solver's name."""
_CHUNK = 1 << 14
"""Partial choices extended at once."""

Partial = tuple[NDArray[np.int8], Table]
"""Options chosen so far, one row a partial choice, and the costs so far."""


def solve(problem: Problem) -> Solution:
    """Enumerate all choices, of each connected part of the problem by itself."""
    known = improve(problem, greedy.solve(problem).choice)
    choice = list(known)
    for order in _parts(problem):
        factors = {s: t for s, t in problem.factors.items() if s[0] in order}
        part = replace(problem, factors=factors, constant=0)
        for v, option in zip(order, _search(part, order, known), strict=True):
            choice[v] = option
    cost = problem.cost(tuple(choice))
    return Solution(tuple(choice), cost, BRUTE, cost)


def _search(problem: Problem, order: list[int], known: tuple[int, ...]) -> tuple[int, ...]:
    """The best options of the variables in `order`, the only ones that the factors mention."""
    closing, rest = _closing(problem, order)
    best, best_cost = tuple(known[v] for v in order), problem.cost(known)
    kind = np.result_type(np.int64, *(table.dtype for table in problem.factors.values()))
    stack: list[Partial] = [(np.zeros((1, 0), np.int8), np.zeros(1, kind))]
    while stack:
        chosen, costs = stack.pop()
        depth = chosen.shape[1]
        if depth == len(order):
            at = int(costs.argmin())
            if costs[at] < best_cost:
                best, best_cost = tuple(int(o) for o in chosen[at]), int(costs[at])
            continue
        chosen, costs = _extend(chosen, costs, problem.sizes[order[depth]], closing[depth])
        kept = costs + rest[depth + 1] < best_cost
        chosen, costs = chosen[kept], costs[kept]
        chunks = [slice(i, i + _CHUNK) for i in range(0, len(costs), _CHUNK)]
        stack.extend((chosen[c], costs[c]) for c in reversed(chunks))
    return best


def _parts(problem: Problem) -> list[list[int]]:
    """The connected parts; in each, every variable has as many factors with earlier ones as possible."""
    left = set(range(len(problem.sizes)))
    parts: list[list[int]] = []
    while left:
        score = dict.fromkeys(left, (0, 0))
        for scope in problem.factors:
            new = [v for v in scope if v in left]
            for v in new:
                closed, touched = score[v]
                score[v] = (closed + (len(new) < len(scope)), touched + 1)
        v = max(left, key=lambda v: (score[v], -v))
        if score[v][0] == 0:
            parts.append([])
        parts[-1].append(v)
        left.remove(v)
    return parts


def _closing(problem: Problem, order: list[int]) -> tuple[list[list[tuple[Scope, Table]]], list[int]]:
    """For each depth the factors whose last variable it is (scopes as depths), and the least cost of
    all factors that close there or later.

    Costs are first moved to where they are known earliest, which changes no sum: from the last variable
    to the first, what an option costs by itself goes into its factor with the latest earlier variable,
    and what a factor costs at least for an option of the earlier one goes to that option.
    """
    depth = {v: d for d, v in enumerate(order)}
    alone = [np.zeros(problem.sizes[v], np.int64) for v in order]
    pairs: list[dict[int, Table]] = [{} for _ in order]
    for scope, table in problem.factors.items():
        if len(scope) == 1:
            alone[depth[scope[0]]] = table
        else:
            a, b = depth[scope[0]], depth[scope[1]]
            pairs[max(a, b)][min(a, b)] = table if a < b else table.T
    for last in reversed(range(len(order))):
        if pairs[last]:
            latest = max(pairs[last])
            pairs[last][latest] = pairs[last][latest] + alone[last]
            alone[last] = alone[last] * 0
        for first, table in pairs[last].items():
            least = table.min(1)
            alone[first] = alone[first] + least
            pairs[last][first] = table - least[:, None]
    closing: list[list[tuple[Scope, Table]]] = [
        [((d,), alone[d]), *(((first, d), table) for first, table in pairs[d].items())]
        for d in range(len(order))
    ]
    rest = [sum(int(table.min()) for _, table in factors) for factors in closing] + [0]
    for d in reversed(range(len(order))):
        rest[d] += rest[d + 1]
    return closing, rest


def _extend(
    chosen: NDArray[np.int8], costs: Table, options: int, factors: list[tuple[Scope, Table]]
) -> Partial:
    """Every partial choice with every option of the next variable."""
    depth = chosen.shape[1]
    new = np.tile(np.arange(options, dtype=np.int8), len(chosen))
    chosen = np.column_stack([np.repeat(chosen, options, axis=0), new])
    costs = np.repeat(costs, options)
    for scope, table in factors:
        assert max(scope) == depth, "a factor closes with its last variable"
        costs = costs + table[tuple(chosen[:, d] for d in scope)]
    return chosen, costs


SOLVERS[BRUTE] = solve
