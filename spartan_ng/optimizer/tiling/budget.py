"""Choose under a budget: which copies are worth the memory they take.

Branch and bound: solve without the budget; where the choice takes too much, solve once with the heaviest
options taken away, and once with nothing lighter left. The first choice within the budget that costs
no more than every open branch is the best. After `_BRANCHES` branches the cheapest one found stands, with
the least open branch as its stated bound. A solver that is not exact gets no branches.

Spartan (ATC '15), section 3.4, with an exact answer in place of first come, first served.
"""

from __future__ import annotations

import heapq
from itertools import count

from msgspec.structs import replace

from spartan_ng.optimizer.tiling.problem import Problem, Scope, Solution, Solver

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
    # Of equal bounds the older goes first: problems have no order.
    queue = [(first.bound, next(serial), problem, first)]
    for _ in range(_BRANCHES):
        if not queue or queue[0][0] >= best.cost:
            return replace(best, bound=best.cost)
        _, _, part, relaxed = heapq.heappop(queue)
        for branch in _split(part, relaxed):
            # Not one choice of it can fit.
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


def _heaviest(problem: Problem, choice: tuple[int, ...]) -> list[tuple[int, Scope]]:
    """What the choice takes from the budget, by scope, the most first."""
    taken = [(int(w[tuple(choice[v] for v in s)]), s) for s, w in problem.weights.items()]
    return sorted(taken, key=lambda t: (-t[0], t[1]))


def _split(problem: Problem, solution: Solution) -> list[Problem]:
    """Two problems: the heaviest chosen options that are still open are light, or are heavy."""
    for weight, scope in _heaviest(problem, solution.choice):
        allowed, heavy = problem.allowed(scope), problem.weights[scope] >= weight
        if weight and (allowed & ~heavy).any():
            return [problem.allowing(scope, allowed & ~heavy), problem.allowing(scope, allowed & heavy)]
    return []


def _lightest(problem: Problem) -> int:
    """No choice takes less from the budget."""
    return sum(int(w[problem.allowed(s)].min(initial=w.max())) for s, w in problem.weights.items())


def _dropping(problem: Problem, solver: Solver, solution: Solution) -> Solution:
    """A choice within the budget: take away the heaviest options until it fits.

    Where a solver that is not exact runs into a dead end, everything that weighs is taken away.
    """
    budget = problem.budget or 0
    while problem.weight(solution.choice) > budget:
        if not problem.possible(solution.cost):
            for scope, weights in problem.weights.items():
                problem = problem.allowing(scope, problem.allowed(scope) & (weights == 0))
            return solver(problem)
        # As light as it has to be, and no lighter: each round takes away what weighs as much or more.
        weight, scope = _heaviest(problem, solution.choice)[0]
        problem = problem.allowing(scope, problem.allowed(scope) & (problem.weights[scope] < weight))
        solution = solver(problem)
    return solution
