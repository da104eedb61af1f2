"""Solvers on random tables, against trying everything with itertools."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks import brute
from spartan_ng.costs import Table
from spartan_ng.optimizer.tiling import budget, exact, greedy
from spartan_ng.optimizer.tiling.improve import improve
from spartan_ng.optimizer.tiling.problem import Problem, Scope

FORBIDDEN = 1 << 50


def random_problem(seed, *, variables=6, weighty=False, kind=np.int64):
    rng = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in rng.integers(1, 5, variables))
    factors: dict[Scope, Table] = {}
    for v in range(variables):
        if rng.random() < 0.6:
            factors[(v,)] = rng.integers(0, 20, sizes[v]).astype(kind)
        for u in range(v):
            if rng.random() < 0.4:
                factors[(u, v)] = rng.integers(0, 20, (sizes[u], sizes[v])).astype(kind)
    weights: dict[Scope, Table] = {}
    limit = None
    if weighty:
        for v in range(variables):
            weights[(v,)] = np.array([0, *rng.integers(0, 9, sizes[v] - 1)])
        for pair in [(0, 3), (1, 5)]:
            table = rng.integers(0, 9, tuple(sizes[v] for v in pair))
            table[0, 0] = 0
            weights[pair] = table
        limit = int(rng.integers(0, 15))
    return Problem(sizes, factors, FORBIDDEN, weights, limit, constant=7)


def best_cost(problem):
    choices = product(*map(range, problem.sizes))
    limit = float("inf") if problem.budget is None else problem.budget
    return min(problem.cost(c) for c in choices if problem.weight(c) <= limit)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("solver", [exact.solve, brute.solve])
@pytest.mark.parametrize("kind", [np.int64, object])
def test_exact_and_brute_find_the_best(solver, kind):
    for seed in range(60):
        problem = random_problem(seed, kind=kind)
        solution = solver(problem)
        assert solution.cost == problem.cost(solution.choice) == best_cost(problem)
        assert solution.exact


@pytest.mark.slow
def test_greedy_finds_a_possible_choice_of_a_tree_if_there_is_one():
    """What a choice makes impossible, near it and further on, is left out before it is chosen."""
    possible = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sizes = tuple(int(n) for n in rng.integers(1, 5, 7))
        factors: dict[Scope, Table] = {}
        for v in range(1, 7):
            u = int(rng.integers(v))
            table = rng.integers(0, 20, (sizes[u], sizes[v]))
            factors[u, v] = np.where(rng.random(table.shape) < 0.5, FORBIDDEN, table)
        problem = Problem(sizes, factors, FORBIDDEN, {})
        is_possible = best_cost(problem) < FORBIDDEN
        possible += is_possible
        assert (greedy.solve(problem).cost < FORBIDDEN) == is_possible
    assert 20 < possible < 180


@pytest.mark.slow
def test_greedy_is_never_below_the_best_and_its_bound_never_above():
    for seed in range(60):
        problem = random_problem(seed)
        solution = greedy.solve(problem)
        best = best_cost(problem)
        assert solution.bound <= best <= solution.cost == problem.cost(solution.choice)


def test_three_variables_in_one_factor():
    rng = np.random.default_rng(3)
    factors = {
        (0, 1, 2): rng.integers(0, 99, (3, 4, 2)),
        (1, 3): rng.integers(0, 99, (4, 3)),
        (0,): rng.integers(0, 99, 3),
    }
    problem = Problem((3, 4, 2, 3), factors, FORBIDDEN, {})
    best = best_cost(problem)
    assert exact.solve(problem).cost == best
    for bounded in (greedy.solve(problem), exact.solve(problem, cells=5)):
        assert bounded.bound <= best <= bounded.cost == problem.cost(bounded.choice)


@pytest.mark.slow
def test_bounded_tables_still_give_a_choice_and_say_so():
    worse = 0
    for seed in range(40):
        problem = random_problem(seed, variables=8)
        solution = exact.solve(problem, cells=20)
        best = best_cost(problem)
        assert solution.bound <= best <= solution.cost == problem.cost(solution.choice)
        assert solution.cost <= greedy.solve(problem).cost
        if solution.cost > best:
            worse += 1
            assert not solution.exact
    assert worse < 20


@pytest.mark.slow
@pytest.mark.parametrize("solver", [exact.solve, brute.solve])
def test_the_budget_is_kept_and_used_best(solver):
    for seed in range(40):
        problem = random_problem(seed, weighty=True)
        solution = budget.solve(problem, solver)
        assert problem.weight(solution.choice) <= problem.budget
        assert solution.cost == problem.cost(solution.choice)
        assert solution.cost == best_cost(problem)
        assert solution.exact


def test_greedy_keeps_to_the_budget():
    for seed in range(40):
        problem = random_problem(seed, weighty=True)
        solution = budget.solve(problem, greedy.solve)
        assert problem.weight(solution.choice) <= problem.budget


def test_of_one_variable_the_cheapest_option_within_the_budget_is_left():
    """Whatever the solver can prove: what is taken away takes too much, and nothing else is."""

    def unsure(problem):
        return replace(exact.solve(problem), bound=0)

    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(1, 6))
        weights = np.array([0, *rng.integers(0, 4, n - 1)])
        costs = rng.integers(0, 20, n)
        problem = Problem((n,), {(0,): costs}, FORBIDDEN, {(0,): weights}, int(rng.integers(0, 4)))
        assert budget.solve(problem, unsure).cost == best_cost(problem)


def test_improving_never_worsens():
    for seed in range(20):
        problem = random_problem(seed)
        start = (0,) * len(problem.sizes)
        assert problem.cost(improve(problem, start)) <= problem.cost(start)


def test_no_variables():
    problem = Problem((), {}, FORBIDDEN, {}, constant=5)
    for solver in (exact.solve, brute.solve, greedy.solve):
        assert solver(problem).cost == 5
