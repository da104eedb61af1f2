"""Choose under a budget: which copies are worth the memory they take.

Branch and bound: solve without the budget; where the choice takes too much, solve once with the heaviest
option of a variable taken away, and once with nothing lighter left. The first choice within the budget
that costs no more than every open branch is the best. After `_BRANCHES` branches the cheapest one found
stands, with the least open branch as its stated bound. A solver that is not exact gets no branches.

Spartan (ATC '15), section 3.4, with an exact answer in place of first come, first served.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import count

from spartan_ng.optimizer.tiling.problem import Problem, Solution, Solver

_BRANCHES = 64


def solve(problem: Problem, solver: Solver) -> Solution:
    """The solver's choice that keeps to the budget."""
    first = solver(problem)
    budget = problem.budget
    if budget is None or problem.weight(first.choice) <= budget:
        return first
    best = _dropping(problem, solver, first)
    if not first.exact:
        return replace(best, bound=min(first.bound, best.cost))
    serial = count()
    queue = [(first.bound, next(serial), problem, first)]
    for _ in range(_BRANCHES):
        if not queue or queue[0][0] >= best.cost:
            return replace(best, bound=best.cost)
        _, _, part, relaxed = heapq.heappop(queue)
        for branch in _split(part, relaxed):
            if _lightest(branch) > budget:
                continue
            found = solver(branch)
            if not problem.possible(found.cost):
                continue
            if problem.weight(found.choice) <= budget and found.cost < best.cost:
                best = found
            if found.bound < best.cost:
                heapq.heappush(queue, (found.bound, next(serial), branch, found))
    return replace(best, bound=min([best.cost, *(q[0] for q in queue)]))


def _heaviest(problem: Problem, choice: tuple[int, ...]) -> int:
    return max(problem.weights, key=lambda v: (problem.weights[v][choice[v]], -v))


def _possible(problem: Problem, variable: int) -> set[int]:
    unary = problem.factors.get((variable,))
    size = problem.sizes[variable]
    return {o for o in range(size) if unary is None or unary[o] < problem.forbidden}


def _split(problem: Problem, solution: Solution) -> list[Problem]:
    """Two problems: the heaviest chosen variable that is still open is light, or is heavy."""
    choice = solution.choice
    for v in sorted(problem.weights, key=lambda v: (-problem.weights[v][choice[v]], v)):
        weights, possible = problem.weights[v], _possible(problem, v)
        heavy = {o for o in possible if weights[o] >= weights[choice[v]]}
        light = possible - heavy
        if weights[choice[v]] and light:
            return [problem.allowing(v, light), problem.allowing(v, heavy)]
    return []


def _lightest(problem: Problem) -> int:
    """The least that any choice takes from the budget."""
    return sum(min((w[o] for o in _possible(problem, v)), default=0) for v, w in problem.weights.items())


def _dropping(problem: Problem, solver: Solver, solution: Solution) -> Solution:
    """A choice within the budget: take away the heaviest option until it fits."""
    budget = problem.budget or 0
    while problem.weight(solution.choice) > budget:
        v = _heaviest(problem, solution.choice)
        weights = problem.weights[v]
        light = {o for o in _possible(problem, v) if weights[o] < weights[solution.choice[v]]}
        problem = problem.allowing(v, light)
        solution = solver(problem)
    return solution
