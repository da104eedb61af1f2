"""The policies as stages: what is stored, what is computed twice, and what planning refuses."""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.arrays import WHOLE, ArrayRef, Tiling
from spartan_ng.config import FUSIONS, config
from spartan_ng.costs import Profile
from spartan_ng.errors import OptionError
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.optimizer.fusion import reach
from spartan_ng.optimizer.fusion.costs import formed_ps
from spartan_ng.optimizer.fusion.form import group
from spartan_ng.optimizer.fusion.group import Group, Grouping
from spartan_ng.optimizer.fusion.labels import Labels
from spartan_ng.optimizer.fusion.legality import whole_if_joined
from spartan_ng.optimizer.fusion.merge import Readers
from spartan_ng.optimizer.fusion.operators import Fit, estimates, operators
from spartan_ng.optimizer.fusion.policies import form_stages
from spartan_ng.optimizer.fusion.select import compare
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

F8 = np.dtype(float)
ONE = Profile()


def formed(*roots: Node, policy: str = "cost", profile: Profile = ONE) -> Grouping:
    return form_stages(topological(roots), set(roots), policy, profile)


def members(grouping: Grouping, node: Node) -> int:
    """In how many stages the node is computed."""
    return sum(g.holds(node) for g in grouping.groups)


def normalized(x: Node, fn: str, *operands: Node) -> tuple[Node, Node]:
    """f(x) / sum(f(x)), and f(x)."""
    value = build.map_(fn, x, *operands)
    return build.map_("divide", value, total(value)), value


@pytest.mark.parametrize(
    ("policy", "square", "power"),
    [("cost", 2, 1), ("all", 2, 2), ("no_redundancy", 1, 1), ("off", 1, 1)],
)
def test_what_two_passes_need_is_stored_where_that_is_cheaper(policy: str, square: int, power: int) -> None:
    x = leaf(5_000_000)
    out, value = normalized(x, "square")
    assert members(formed(out, policy=policy), value) == square
    out, value = normalized(x, "float_power", scalar(1.7))
    assert members(formed(out, policy=policy), value) == power


def test_mlogreg_is_one_stage() -> None:
    steps = mlogreg(leaf(1_000_000, 50), leaf(50, 4), leaf(1_000_000, 5), 4)
    (stage,) = formed(steps["h"]).groups
    assert stage.root is steps["h"]


def test_als_update_is_two_stages_and_its_product_never_dense() -> None:
    n = 20_000
    x = sparse_leaf(n, n, density=0.01)
    steps = als_update(x, leaf(n, 20), leaf(n, 20), leaf(n, 1))
    grouping = formed(steps["out"])
    assert set(grouping.stored) == {steps["update"], steps["out"]}
    assert steps["product"] in grouping.drivers


def test_a_sum_with_an_outer_product_is_one_pass_with_the_product_at_non_zeros() -> None:
    """Not stored, the masked product is made in half the time: 55 ms against 97 ms at n = 6000."""
    n = 20_000
    product = matmul(leaf(n, 20), turned(leaf(n, 20)))
    masked = times(sparse_leaf(n, n, density=0.01), product)
    out = plus(leaf(n, n), masked)
    grouping = formed(out)
    assert set(grouping.stored) == {out}
    assert product in grouping.drivers


def test_what_stages_refuse_is_stored_for_all() -> None:
    """Summed along other axes in one stage than in another, the value fits only one of them."""
    x = leaf(20_000, 300)
    e = build.map_("exp", x)
    out = matmul(turned(e), plus(e, build.fold("add", e, (0,))))
    for policy in ("cost", "all"):
        grouping = formed(out, policy=policy)
        assert out in grouping.stored


def test_rows_of_an_array_that_lies_cut_along_columns_are_no_candidates() -> None:
    """A Row operator would have to move the array."""
    four = Profile(workers=4)
    for tiling, fit in ((Tiling((1, 4), (0, 1)), Fit.NONE), (Tiling((4, 1), (1, 0)), Fit.ROW)):
        x = build.data(ArrayRef((20_000, 400), F8, tiling=tiling))
        out = matmul(turned(x), build.map_("exp", matmul(x, leaf(400))))
        exp = operators(topological([out]), {out}, four)[1]
        assert exp.edges[0].fit in (fit, Fit.CELL if fit is Fit.ROW else fit)


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("profile", [ONE, Profile(workers=4)])
def test_heuristics_form_no_cheaper_stages_than_are_chosen(profile: Profile) -> None:
    """By the cost of stages as they are formed, on random graphs; a few store in a pass, on its way, what the
    search has stored alone."""
    improved = worse = chosen = heuristics = 0
    for seed in range(120):
        wanted, _ = random_graph(seed)
        order, roots = topological(wanted), set(wanted)
        known = estimates(order)
        ps = {
            policy: formed_ps(form_stages(order, roots, policy, profile), known, profile)
            for policy in ("cost", "all", "no_redundancy")
        }
        least = min(ps["all"], ps["no_redundancy"])
        chosen, heuristics = chosen + ps["cost"], heuristics + least
        assert ps["cost"] <= 1.02 * least, seed
        improved += ps["cost"] < 0.99 * least
        worse += ps["cost"] > 1.01 * least
    assert improved >= 9, "the search finds plans that neither heuristic has"
    assert worse <= 1
    assert chosen < heuristics


@pytest.mark.parametrize("axis", [1, 2])
def test_what_a_pass_folds_on_its_way_is_none_of_its_dimensions(
    axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quantiles count what is not NaN in sorted lines, and go on with the counts along the other axes."""
    asked: list[tuple[tuple[int, ...], Op, tuple[int, ...], Labels]] = []

    def seen(node: Node, stage: Group, labels: Labels, driven: bool) -> frozenset[int] | None:
        asked.append((stage.domain, node.op, node.shape, labels))
        return whole_if_joined(node, stage, labels, driven)

    monkeypatch.setattr(reach, "whole_if_joined", seen)
    x = np.random.default_rng(0).random((400, 5, 30))
    x[3, 2, 1] = np.nan
    with config.override(small_bytes=0):
        found = sp.nanpercentile(sp.asarray(x) * 1, [25, 50], axis=axis)
        np.testing.assert_allclose(found.compute(), np.nanpercentile(x, [25, 50], axis=axis), rtol=1e-12)
    assert any(op is Op.FOLD for _, op, _, _ in asked)
    for domain, _, shape, labels in asked:
        sizes = [1 if label == WHOLE else domain[label] for label in labels]
        assert all(n in (1, m) for n, m in zip(sizes, shape, strict=True)), (domain, shape, labels)


def test_what_stages_cost_is_what_selection_predicts_where_nothing_is_refused() -> None:
    """The search's model and the formed stages agree on a Newton step of MLogreg: one pass over X."""
    x, v, member = leaf(500_000, 50), leaf(50, 4), leaf(500_000, 4)
    z = matmul(x, v)
    e = build.map_("exp", minus(z, build.reshape(build.fold("maximum", z, (1,)), (500_000, 1))))
    p = build.map_("divide", e, row_sums(e))
    loss, slopes = total(build.fold("add", times(member, z), (1,))), matmul(turned(x), minus(p, member))
    order, roots = topological([loss, slopes, p]), {loss, slopes, p}
    (selected,) = compare(order, roots, ONE)
    grouping = form_stages(order, roots, "cost", ONE)
    assert len(grouping.groups) == len(selected.stages) == 1
    assert formed_ps(grouping, estimates(order), ONE) == pytest.approx(selected.found.cost, rel=0.02)


def test_a_stage_that_stores_what_it_computes_still_shares_its_largest_read() -> None:
    """Its own larger results are not reads: the sum joins the pass over x that makes them."""
    x, w = leaf(5000, 50), leaf(50, 500)
    hidden = build.map_("tanh", matmul(x, w))
    back = minus(matmul(hidden, leaf(500, 50)), x)
    wanted = [hidden, build.fold("add", back, (0,)), total(times(back, back))]
    grouping = form_stages(topological(wanted), set(wanted), "all", ONE)
    assert len(grouping.groups) == 1


def test_the_option_names_its_choices() -> None:
    with pytest.raises(OptionError, match="no_redundancy"):
        config.fusion = "some"
    for name in FUSIONS:
        with config.override(fusion=name):
            assert config.fusion == name


@pytest.mark.parametrize("seed", range(40))
def test_readers_are_all_that_stages_lead_to(seed: int) -> None:
    """Followed by rank, whoever is asked for first, they are those found by following all users."""
    wanted, made = random_graph(seed, most=30)
    order = topological(wanted)
    drawn = random.Random(seed)
    fusing = {n: drawn.sample(made, 3) for n in made if len(made) >= 3 and drawn.random() < 0.3}
    stages = group(order, set(wanted), fusing=fusing).groups
    for stage in stages:
        assert all(user.rank < stage.rank for user in stage.users)
        reached, waiting = set(stage.users), list(stage.users)
        while waiting:
            new = waiting.pop().users.keys() - reached
            reached |= new
            waiting.extend(new)
        readers = Readers(stage.users)
        asked = drawn.sample(stages, len(stages))
        assert [other in readers for other in asked] == [other in reached for other in asked]


def test_stages_that_are_dropped_let_go_of_their_arrays_at_once() -> None:
    x = leaf(5000, 50)
    out, value = normalized(x, "square")
    seen = weakref.ref(value)
    gc.disable()
    try:
        form_stages(topological([out]), {out})
        del out, value
        assert seen() is None
    finally:
        gc.enable()
