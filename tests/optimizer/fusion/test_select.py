"""The cheapest plans: against brute force on random graphs, and the paper's plans of its expressions."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.optimizer.fusion.costs import read_ps
from spartan_ng.optimizer.fusion.cutsets import cut_sets
from spartan_ng.optimizer.fusion.explore import explore
from spartan_ng.optimizer.fusion.operators import estimates, is_view, operators
from spartan_ng.optimizer.fusion.partitions import MOST_OPERATORS, partitions
from spartan_ng.optimizer.fusion.plans import PlanCosts
from spartan_ng.optimizer.fusion.policies import form_stages, weigh_policies
from spartan_ng.optimizer.fusion.search import Costs, Found, descend, skip_enumerate
from spartan_ng.optimizer.fusion.select import (
    PRUNED,
    Selected,
    candidate_plans,
    candidates,
    compare,
    moves,
    no_redundancy,
    search,
)
from spartan_ng.optimizer.fusion.templates import Template
from tests.optimizer.fusion.expressions import (
    als_update,
    leaf,
    matmul,
    minus,
    mlogreg,
    plus,
    random_graph,
    row_sums,
    scalar,
    sparse_leaf,
    times,
    total,
    turned,
)
from tests.sampling import part

ONE, FOUR = Profile(), Profile(workers=4)


def brute_force(costs: Costs, count: int) -> Found:
    """Every assignment."""
    best = min(range(1 << count), key=costs.cost)
    return Found(best, costs.cost(best), 1 << count, True)


def problems(most_points: int = 9, apart: float = 0.0) -> Iterator[PlanCosts]:
    """Partitions of random graphs that leave something to choose, with and without shared passes.

    So large a part of the values, `apart`, is not fused into what reads them.
    """
    seed = 0
    while True:
        wanted, _ = random_graph(seed)
        seed += 1
        profile = FOUR if seed % 3 == 0 else ONE
        order, rng = topological(wanted), random.Random(seed)
        stored = [node for node in order if rng.random() < apart]
        memo = explore(operators(order, set(wanted), profile, stored))
        plans = candidate_plans(memo, profile, partitions(memo))
        for costs, _ in plans:
            if 0 < len(costs.partition.points) <= most_points:
                costs.merge = bool(seed % 2)
                yield costs


@pytest.mark.slow
def test_skipping_finds_the_cost_of_brute_force_on_1000_graphs() -> None:
    costed = plans = parted = 0
    graphs = part(1000)
    for costs in islice(problems(), graphs):
        count = len(costs.partition.points)
        oracle = brute_force(costs, count)
        cuts = cut_sets(costs)
        found = skip_enumerate(costs, count, cuts)
        assert found.exact
        assert found.cost == oracle.cost
        costed, plans, parted = costed + found.costed, plans + oracle.costed, parted + bool(cuts)
    assert costed < 0.6 * plans, "pruning skips plans"
    assert parted > graphs / 100, "some graphs are parted by cut sets"


def test_no_plan_costs_less_than_its_lower_bound() -> None:
    rng = random.Random(0)
    for costs in islice(problems(), part(300)):
        mask = rng.randrange(1 << len(costs.partition.points))
        more = mask | rng.randrange(1 << len(costs.partition.points))
        assert costs.at_least(mask) <= costs.at_least(more) <= costs.cost(more)


def test_a_cut_set_makes_its_sides_independent() -> None:
    """With the cut set materialized, what one side chooses changes the cost by the same on either choice."""
    rng, seen, graphs = random.Random(1), 0, part(800)
    for costs in islice(problems(), graphs):
        costs.merge = False
        for cut in cut_sets(costs):
            above, below = rng.getrandbits(12) & cut.above, rng.getrandbits(12) & cut.below
            neither, both = costs.cost(cut.points), costs.cost(cut.points | above | below)
            one, other = costs.cost(cut.points | above), costs.cost(cut.points | below)
            assert both - one == other - neither
            seen += 1
    assert seen > graphs / 100


def test_what_is_chosen_never_costs_more_than_the_heuristics() -> None:
    for costs in islice(problems(most_points=100), part(200)):
        found = search(costs, 30)
        assert found.cost <= min(costs.cost(0), costs.cost(no_redundancy(costs)))


def test_values_are_read_in_the_bytes_that_are_stored_of_them() -> None:
    """Those that come from elsewhere, and in part where only a sparse operand's non-zeros are visited."""
    sparse = partly = 0
    for costs in islice(problems(most_points=100, apart=0.3), part(400)):
        tables, memo = costs.tables, costs.memo
        known = estimates(topological([o.node for o in memo.operators]))
        for number, source in enumerate(tables.sources[len(tables.places) :], len(tables.places)):
            assert isinstance(source, Node)
            nbytes = 0 if is_view(source) else known[source].nbytes
            reads = [read_ps(nbytes, source, aligned, tables.profile)[0] for aligned in (False, True)]
            assert {tables.targets[number].read, tables.far[number].read} == {*reads}
            sparse += source.format == "csr" and source.op is not Op.DATA
        for place in tables.places:
            node = place.operator.node
            share = min([known[d].density for d in memo.drivers.get(node, ())], default=known[node].share)
            for link in place.links:
                source = tables.sources[link.target]
                if share < 1 and source.format == "dense" and source.shape == node.shape:
                    assert link.share == share
                    partly += 1
                else:
                    assert link.share == (1 if link.target in tables.partly else None)
    assert sparse
    assert partly


def test_where_so_many_plans_may_be_skipped_the_search_is_exact() -> None:
    """With a plan costed for each `PRUNED` that there are, if that is enough."""
    exact = 0
    for costs in islice(problems(), part(800)):
        count = len(costs.partition.points)
        most = max(1, (1 << count) // PRUNED)
        found = skip_enumerate(costs, count, cut_sets(costs), most)
        if found.exact:
            assert search(costs, most) == found
            exact += 1 << count == PRUNED * most
    assert exact


@pytest.mark.whole
def test_the_random_graphs_have_every_template_aggregates_and_sparsity() -> None:
    seen: Counter[object] = Counter()
    for costs in islice(problems(), 1000):
        seen["sampled"] += bool(costs.tables.partly)
        for n in costs.partition.operators:
            seen.update(costs.memo.groups[n].keys())
            node = costs.memo.operators[n].node
            seen.update([node.op, node.fn, node.format])
    assert all(seen[t] >= 50 for t in Template)
    assert seen["csr"] >= 50
    assert seen["sampled"] >= 50, "partitions in which only non-zeros of sparse arrays are visited"
    assert all(seen[fold] >= 20 for fold in ("add", "maximum", "argmin"))
    assert seen[Op.SCAN] >= 20
    assert seen["contract"] >= 20


def test_descent_moves_all_points_of_a_value_at_once() -> None:
    """Fused into one of two readers, a value is stored and computed again: only both together help."""

    class Valley:
        def cost(self, mask: int) -> int:
            return {0b00: 10, 0b11: 5}.get(mask, 12)

        def at_least(self, mask: int) -> int:
            return 0

    assert descend(Valley(), [0b01, 0b10], [0], 100).cost == 10
    assert descend(Valley(), [0b11, 0b01, 0b10], [0], 100).cost == 5


def test_descent_ends_where_no_move_helps() -> None:
    for seed in range(part(400)):
        rng = random.Random(seed)
        count = rng.randint(1, 7)
        table = [rng.randint(0, 30) for _ in range(1 << count)]

        class Costs:
            def cost(self, mask: int, table: list[int] = table) -> int:
                return table[mask]

            def at_least(self, mask: int) -> int:
                return 0

        offered = [rng.randint(1, (1 << count) - 1) for _ in range(rng.randint(1, 6))]
        found = descend(Costs(), offered, [0, rng.randrange(1 << count)], 1 << 20)
        assert found.cost == table[found.mask] <= table[0]
        for move in offered:
            assert found.cost <= min(table[found.mask | move], table[found.mask & ~move])


def test_a_search_starts_from_formed_stages_too() -> None:
    """Unlike both heuristics' assignments, stages store a value in a pass that computes it for another."""
    for count in (2, 9):
        node = shared_values(count)
        order, roots = topological([node]), {node}
        found = {f.policy: f.cost_ps for f in weigh_policies(order, roots, ONE)}
        assert found["cost"] == min(found.values())


def test_descent_stops_at_its_limit() -> None:
    costs = next(c for c in problems(most_points=9) if len(c.partition.points) > 4)
    assert descend(costs, moves(costs), [0, no_redundancy(costs)], 2).costed == 2


# --- the paper's expressions ---------------------------------------------------------------------------


def plan_of(*roots: Node, profile: Profile = ONE) -> list[Selected]:
    return compare(topological(roots), set(roots), profile)


def plans_of(*roots: Node, profile: Profile = ONE) -> list[tuple[PlanCosts, int]]:
    memo = candidates(topological(roots), set(roots), profile)
    return candidate_plans(memo, profile, partitions(memo), every=True)


def templates(selected: list[Selected]) -> list[Template | None]:
    return sorted((s.template for p in selected for s in p.stages), key=str)


def test_mlogreg_is_one_row_operator() -> None:
    steps = mlogreg(leaf(1_000_000, 50), leaf(50, 4), leaf(1_000_000, 5), 4)
    (selected,) = plan_of(steps["h"])
    (stage,) = selected.stages
    assert stage.template is Template.ROW
    assert len(stage.members) == 6


@pytest.mark.parametrize("density", [0.1, 0.001])
def test_als_update_is_an_outer_and_a_cell_operator(density: float) -> None:
    """Fused into the closing sum, the update would have no sparse driver: it is stored between the two."""
    n = 20_000
    x = sparse_leaf(n, n, density=density)
    selected = plan_of(als_update(x, leaf(n, 20), leaf(n, 20), leaf(n, 1))["out"])
    assert templates(selected) == [Template.CELL, Template.OUTER]


def test_a_sum_with_an_outer_product_makes_it_at_the_non_zeros() -> None:
    """Y + X * (U @ V.T): the paper stores X * (U @ V.T), as its Cell operator would make the product dense.

    Passes here make what is needed at non-zeros alone there, wherever they end.
    """
    n = 20_000
    product = matmul(leaf(n, 20), turned(leaf(n, 20)))
    out = plus(leaf(n, n), times(sparse_leaf(n, n, density=0.01), product))
    selected = plan_of(out)
    (choice,) = selected
    (stage,) = choice.stages
    assert len(stage.members) == 3
    dense = 2 * n * n * 20 * ONE.flop_ps
    assert stage.compute_ps < dense / 10
    (costs,) = (c for c, _ in plans_of(out))
    (store,) = costs.bits.values()
    assert {s.template for s in costs.stages(store)} == {Template.CELL, Template.OUTER}, "the paper's plan"
    assert costs.cost(0) < costs.cost(store)


def test_a_factorization_loss_is_one_outer_operator() -> None:
    n = 20_000
    product = matmul(leaf(n, 100), turned(leaf(n, 100)))
    log = build.map_("log", plus(product, scalar(1e-15)))
    selected = plan_of(total(times(sparse_leaf(n, n, density=0.001), log)))
    assert templates(selected) == [Template.OUTER]


def test_a_chain_of_cells_under_an_aggregate_is_one_operator() -> None:
    x, y, z = leaf(50_000_000), leaf(50_000_000), leaf(50_000_000)
    (selected,) = plan_of(total(times(times(x, y), z)))
    assert len(selected.stages) == 1


def test_aggregates_that_share_an_input_share_the_pass() -> None:
    """The paper's multi-aggregate: sum(X * Y) and sum(X * Z)."""
    x, y, z = leaf(5_000_000), leaf(5_000_000), leaf(5_000_000)
    e = build.map_("exp", x)
    (selected,) = plan_of(total(times(e, y)), total(times(e, z)))
    (stage,) = selected.stages
    assert len(stage.roots) == 2


def test_a_dear_value_for_two_passes_is_stored_and_a_cheap_one_computed_again() -> None:
    """x -> f(x); f(x) / sum(f(x)): the sum has to be known before the division."""
    x = leaf(5_000_000)

    def normalized(value: Node) -> list[Selected]:
        return plan_of(build.map_("divide", value, total(value)))

    square = build.map_("square", x)
    power = build.map_("float_power", x, scalar(1.7))
    assert all(s.found.mask == 0 for s in normalized(square))
    assert any(s.found.mask != 0 for s in normalized(power))


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("profile", [ONE, FOUR])
def test_selection_is_linear_enough_for_long_chains(profile: Profile) -> None:
    node = leaf(100_000)
    for _ in range(2000):
        node = build.map_("negative", minus(node, leaf(100_000)))
    selected = plan_of(node, profile=profile)
    assert all(len(s.stages) == 1 and len(s.partition.operators) <= MOST_OPERATORS for s in selected)
    grouping = form_stages(topological([node]), {node}, "cost", profile)
    assert len(grouping.groups) == 1, "where partitions end, nothing that one operator reads is stored"


def training(steps: int) -> Node:
    """Unrolled steps of logistic regression: all read one matrix, each waits for the one before."""
    x, y, w = leaf(100_000, 50), leaf(100_000), leaf(50)
    for _ in range(steps):
        p = build.map_("tanh", matmul(x, w))
        w = minus(w, times(scalar(0.1), matmul(turned(x), minus(p, y))))
    return w


def shared_values(rounds: int) -> Node:
    """Values that several later ones ask for, elementwise and along rows."""
    x = leaf(100_000, 50)
    for _ in range(rounds):
        e = build.map_("exp", x)
        shares = build.map_("divide", e, row_sums(e))
        x = plus(shares, times(build.map_("sqrt", e), minus(e, total(e))))
    return total(x)


CALLS = """
import cProfile
from spartan_ng.graph.node import topological
from spartan_ng.optimizer.fusion.policies import form_stages
from tests.optimizer.fusion.test_select import ONE, {program}

for size in (20, 80):
    root = {program}(size)
    order = topological([root])
    with cProfile.Profile() as profile:
        form_stages(order, {{root}}, "cost", ONE)
    print(sum(entry.callcount for entry in profile.getstats()))
"""
"""Calls of functions, Python's and others, that forming the stages of two programs takes."""


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("program", [training.__name__, shared_values.__name__])
def test_forming_stages_takes_steps_in_proportion_to_the_operators(program: str) -> None:
    """In a process of its own: a profile of one with many threads was seen to stand still."""
    code = [sys.executable, "-c", CALLS.format(program=program)]
    few, many = map(int, subprocess.run(code, capture_output=True, text=True, check=True).stdout.split())
    assert many < 5 * few
