"""Smart tiling: the grid of every stage and the tiling of every array, for the least predicted time.

Spartan (ATC '15), section 3.3; solved exactly in place of greedily.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import Tiling
from spartan_ng.config import TILINGS
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import CHEAPER_ARITHMETIC
from spartan_ng.errors import MemoryBudgetError, OptionError
from spartan_ng.optimizer.tiling import budget, exact, greedy
from spartan_ng.optimizer.tiling.model import build_model
from spartan_ng.optimizer.tiling.one_worker import moving_least, on_one_worker
from spartan_ng.optimizer.tiling.problem import Solution, Solver
from spartan_ng.optimizer.tiling.sketch import ArraySketch, Copy, StageSketch, Tilings
from spartan_ng.optimizer.tiling.variables import Model, Rules, TilingPlace

_FEW_STAGES = 40
"""Programs of more stages are solved once: each candidate takes as long as the first solution."""

SOLVERS: dict[str, Solver] = {"exact": exact.solve, "greedy": greedy.solve}
"""Every solver by its name; tests and benchmarks add the oracle."""


class PossibleGrid(Struct, frozen=True):
    """A grid that a stage could have: what the plan moves and costs if everything else fits it."""

    grid: Tiling
    moved_bytes: int
    cost_ns: int


def choose(
    stages: Sequence[StageSketch],
    arrays: Sequence[ArraySketch],
    profile: Profile,
    *,
    solver: str = "exact",
    forced: str | None = None,
    duplicate_budget_bytes: int | None = None,
) -> Tilings:
    """Choose all grids and tilings of a program.

    Parameters
    ----------
    stages, arrays : the program; stages in their order
    profile : the cluster
    solver : "exact" or "greedy" (the paper's)
    forced : a tiling to use everywhere instead: "row", "column", "block", "duplicate" or "single"; where
        it is not possible, the nearest that is; the budget does not bind it
    duplicate_budget_bytes : memory of each worker that copies may take; a quarter of it if None

    Raises
    ------
    OptionError : an unknown solver or tiling, or a negative budget
    ShapeError : a stage's grid was set by hand, and is not possible
    MemoryBudgetError : no choice keeps to a budget; names the array, its bytes and the budget
    """
    rules = _rules(profile, solver, forced, duplicate_budget_bytes)
    stages, arrays = tuple(stages), tuple(arrays)
    if profile.workers == 1:
        return on_one_worker(stages, arrays)
    model = build_model(stages, arrays, rules)
    # A forced tiling is for measurements, and takes what it takes.
    if rules.forced is None:
        _check_duplicates(stages, arrays, rules.budget)
    fastest = budget.solve(model.problem, SOLVERS[solver])
    found = _read_off(model, arrays, fastest, rules)
    if solver != "exact" or forced is not None or not _moves_products(stages, found):
        return found
    return _moving_less(stages, arrays, rules, model, fastest, found)


def _moves_products(stages: tuple[StageSketch, ...], found: Tilings) -> bool:
    """Whether there are large products in a program of few stages, and something moves."""
    products = any(s.product for s in stages)
    return products and len(stages) <= _FEW_STAGES and found.total_bytes > 0 == found.upload_bytes


def _moving_less(
    stages: tuple[StageSketch, ...],
    arrays: tuple[ArraySketch, ...],
    rules: Rules,
    model: Model,
    fastest: Solution,
    found: Tilings,
) -> Tilings:
    """Of plans that the model cannot tell from the fastest one, that which moves the fewest bytes.

    Candidates are best where messages cost nothing, and arithmetic less and less beside bytes.
    """
    best = [found]
    for share in CHEAPER_ARITHMETIC:
        profile = rules.profile
        rates = replace(profile.faster(share), message_ns=0, task_ns=profile.task_ns // share)
        other = build_model(stages, arrays, replace(rules, rates=rates))
        choice = budget.solve(other.problem, exact.solve).choice
        # By the true rates: whether it is as fast, the other ones do not tell.
        cost = model.problem.cost(choice)
        if model.problem.possible(cost):
            best.append(_read_off(model, arrays, replace(fastest, choice=choice, cost=cost), rules))
    return best[moving_least(best)]


def alternatives(
    stages: Sequence[StageSketch],
    arrays: Sequence[ArraySketch],
    profile: Profile,
    *,
    duplicate_budget_bytes: int | None = None,
) -> tuple[tuple[PossibleGrid, ...], ...]:
    """For each stage, every grid it could have, and the best plan that has it; cheapest first."""
    rules = _rules(profile, "exact", None, duplicate_budget_bytes)
    stages, arrays = tuple(stages), tuple(arrays)
    if profile.workers == 1:
        return tuple((PossibleGrid(Tiling.single(len(s.domain)), 0, 0),) for s in stages)
    model = build_model(stages, arrays, rules)
    found = []
    for s, options in enumerate(model.grids):
        rows = []
        for o, grid in enumerate(options.tilings):
            only = np.arange(len(options)) == o
            problem = model.problem.allowing((s,), only)
            solution = budget.solve(problem, exact.solve)
            if problem.possible(solution.cost):
                moved = _read_off(model, arrays, solution, rules).total_bytes
                rows.append(PossibleGrid(grid, moved, solution.cost))
        found.append(tuple(sorted(rows, key=lambda a: a.cost_ns)))
    return tuple(found)


def _rules(profile: Profile, solver: str, forced: str | None, duplicate_budget_bytes: int | None) -> Rules:
    if solver not in SOLVERS:
        raise OptionError(f"tiling solver {solver!r} is not one of {', '.join(SOLVERS)}")
    if forced is not None and forced not in TILINGS:
        raise OptionError(f"tiling {forced!r} is not one of {', '.join(TILINGS)}")
    if duplicate_budget_bytes is None:
        duplicate_budget_bytes = profile.memory_bytes // 4
    if duplicate_budget_bytes < 0:
        raise OptionError(f"duplicate budget {duplicate_budget_bytes} bytes is negative")
    return Rules(profile, duplicate_budget_bytes, forced)


def _read_off(model: Model, arrays: tuple[ArraySketch, ...], solution: Solution, rules: Rules) -> Tilings:
    """What the solution's options mean."""
    choice = solution.choice

    def at(place: TilingPlace) -> Tiling:
        return place.options.tilings[choice[place.variable] if place.variable >= 0 else 0]

    tilings = tuple(at(p) for p in model.places)
    copies = [
        Copy(c.array, at(c.place), c.move.at(choice))
        for c in model.copies
        if at(c.place) not in (tilings[c.array], *arrays[c.array].kept)
    ]
    upload = sum(
        a.nbytes * (rules.profile.workers if t.duplicate else 1)
        for a, t in zip(arrays, tilings, strict=True)
        if a.driver and a.pinned is None
    )
    return Tilings(
        grids=tuple(g.tilings[choice[s]] for s, g in enumerate(model.grids)),
        arrays=tilings,
        read_bytes=tuple(sum(m.at(choice) for m in moves) for moves in model.reads),
        combine_bytes=tuple(
            tuple(0 if m is None else m.at(choice) for m in moves) for moves in model.combines
        ),
        sources=tuple(tuple(at(p) for p in places) for places in model.sources),
        copies=tuple(dict.fromkeys(copies)),
        upload_bytes=upload,
        outside_bytes=sum(read[choice[s]] for s, read in enumerate(model.outside)),
        cost_ns=solution.cost,
        solver="forced" if rules.forced else solution.solver,
        exact=solution.exact,
        bound_ns=solution.bound,
    )


def _check_duplicates(stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], budget: int) -> None:
    """What users have duplicated by hand must fit into the budget for copies, else MemoryBudgetError; no
    choice of tilings can help."""
    wanted = [arrays[w.array] for s in stages if s.by_hand == "duplicate" for w in s.writes]
    taken = sum(array.nbytes for array in wanted)
    if taken > budget:
        largest = max(wanted, key=lambda array: array.nbytes)
        raise MemoryBudgetError(
            f"tile_as: a duplicate of an array of shape {largest.shape} takes {largest.nbytes:,} bytes on "
            f"each worker, all duplicates {taken:,}, but the budget for copies is {budget:,} bytes a worker; "
            f"raise config.duplicate_bytes, or use another tiling"
        )
