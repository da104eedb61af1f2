"""What a plan says of its stages, to who runs or explains them: parts, templates, touched bytes, tiers."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from spartan_ng.arrays import WHOLE, ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.costs.tuned import TURNED, WRITTEN
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.kernels.compiled.formulas import OF_OUR_OWN
from spartan_ng.kernels.compiled.select import exact_obstacle
from spartan_ng.plan.cascade import is_full
from spartan_ng.plan.fusion import template
from spartan_ng.plan.lower import Lowering, lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Axis, Read
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import Fused
from tests.optimizer.fusion.expressions import leaf, matmul, sparse_leaf, turned

F8 = np.dtype(float)


def planned(*roots: Node, **settings) -> Plan:
    profile = settings.pop("profile", Profile(workers=1))
    return lower(topological(roots), roots, Settings(profile, **settings), "key")


def only(plan: Plan) -> Fused:
    """The plan's one stage."""
    (stage,) = plan.stages
    assert isinstance(stage, Fused)
    return stage


@pytest.mark.parametrize("n", [256, 512])
def test_products_run_in_as_many_parts_as_memory_asks_for(n):
    node = matmul(leaf(n, n), leaf(n, n))
    (plenty,) = (s for s in planned(node, profile=Profile(workers=2)).stages if isinstance(s, Fused))
    assert plenty.parts == 1
    parts = []
    for share in (5, 4, 3):
        profile = Profile(workers=2, memory_bytes=share * n * n * 8)
        (stage,) = (s for s in planned(node, profile=profile).stages if isinstance(s, Fused))
        parts.append(stage.parts)
    assert 1 < parts[-1] <= 256
    assert parts == sorted(parts)


TEMPLATES = {
    "basic": build.map_("exp", leaf(300, 40)),
    "Cell": build.map_("exp", build.map_("negative", leaf(300, 40))),
    "Cell over a fold": build.fold("add", build.map_("exp", leaf(300, 40)), (0, 1)),
    "Row, a fold of rows": build.map_(
        "subtract", a := leaf(300, 40), build.reshape(build.fold("maximum", a, (1,)), (300, 1))
    ),
    "Row, sorted": build.map_("exp", build.along_axis("sort", [leaf(300, 40)], 1, dtype=F8)),
    "Row, looked up": build.map_("exp", build.take(leaf(500, 40), build.iota(300), 0)),
    "Row, a product": build.map_("exp", matmul(leaf(30_000, 40), leaf(40, 3))),
    "Outer": build.fold(
        "add",
        build.map_("multiply", sparse_leaf(900, 800, density=0.01), matmul(leaf(900, 4), leaf(4, 800))),
        (0, 1),
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_stages_are_instances_of_templates(name):
    assert template(only(planned(TEMPLATES[name]))) == name.partition(" ")[0].rstrip(",")


def test_what_is_read_against_its_order_counts_more():
    x, y = leaf(400, 400), leaf(400, 400)
    plans = [planned(build.map_("add", x, other)) for other in (y, turned(y))]
    straight, across = (only(plan).touched_bytes(plan.slots) for plan in plans)
    assert straight == (2 + WRITTEN) * x.nbytes
    assert across == (1 + TURNED + WRITTEN) * x.nbytes


def test_products_read_either_way_and_single_columns_lie_in_any_order():
    x, column = leaf(400, 300), leaf(1, 400)
    product = only(planned(matmul(turned(x), leaf(400, 20))))
    assert [is_turned for _, _, is_turned in product.seen(())] == [False, False]
    both = planned(build.map_("add", turned(column), leaf(400, 300)))
    assert not any(is_turned for _, _, is_turned in only(both).seen(both.slots))


@pytest.mark.parametrize("lookups", [3, 399, 5_000])
def test_of_an_array_that_is_looked_up_no_more_counts_than_is_found(lookups):
    places = build.data(ArrayRef((lookups,), np.dtype(np.int64)))
    taken = build.take(leaf(400, 50), places, 0)
    for node, workers in product((taken, build.map_("negative", taken)), (1, 2)):
        plan = planned(node, profile=Profile(workers=workers))
        found = (min(lookups, 400) + WRITTEN * lookups) * 50 * 8
        touched = [stage.touched_bytes(plan.slots) for stage in plan.stages]
        assert touched[0] == found + lookups * 8


@pytest.mark.parametrize("rows", [0, 1, 7, 399, 400])
@pytest.mark.parametrize("workers", [1, 2])
def test_of_a_slice_that_is_read_only_its_part_counts(rows, workers):
    x = leaf(400, 400)
    part = build.slice_(x, (0, 0), (1, 1), (rows, 400))
    plan = planned(build.map_("negative", part), profile=Profile(workers=workers))
    assert sum(stage.touched_bytes(plan.slots) for stage in plan.stages) == (1 + WRITTEN) * rows * 400 * 8


@pytest.mark.parametrize("rows", [10, 200, 399])
def test_parts_that_lie_over_each_other_count_no_more_than_the_whole(rows):
    x = leaf(400, 400)
    parts = [build.slice_(x, (start, 0), (1, 1), (rows, 400)) for start in (0, 400 - rows)]
    plan = planned(build.map_("add", *parts))
    read = min(2 * rows, 400) + WRITTEN * rows
    assert only(plan).touched_bytes(plan.slots) == read * 400 * 8


PLAIN = ["add", "multiply", "subtract", "maximum"]


@pytest.mark.parametrize("fn", [*PLAIN, *sorted(OF_OUR_OWN)])
def test_what_keeps_its_last_bits_is_compiled_where_loops_have_them(fn):
    args = [leaf(100, 80) for _ in range(2 if fn in PLAIN else 1)]
    node = build.map_("negative", build.map_(fn, *args))
    assert not exact_obstacle(only(planned(node)))
    why = exact_obstacle(only(planned(node, reproducible=True)))
    assert (fn in why) == bool(why) == (fn in OF_OUR_OWN)


def test_folds_and_loops_over_non_zeros_are_interpreted_for_their_last_bits():
    rows = build.map_("exp", build.fold("add", build.map_("negative", leaf(900, 40)), (1,)))
    whole = build.fold("add", build.map_("negative", leaf(900, 40)), (0, 1))
    for node in (rows, whole):
        assert "folds" in exact_obstacle(only(planned(node, reproducible=True)))
        assert not exact_obstacle(only(planned(node)))


@pytest.mark.parametrize("dense", ["before", "between", "behind"])
@pytest.mark.parametrize("shares", [(0.02, 0.3), (0.3, 0.02), (0.1, 0.1)])
def test_of_sparse_operands_the_one_with_the_fewest_elements_drives(shares, dense):
    product = matmul(leaf(900, 4), leaf(4, 800))
    operands = [sparse_leaf(900, 800, density=share) for share in shares]
    operands.insert({"before": 0, "between": 1, "behind": 2}[dense], product)
    first, second, third = operands
    plan = planned(build.map_("multiply", build.map_("multiply", first, second), third))
    stage = only(plan)
    sparse = {
        i: plan.slots[r.slot].stored_bytes
        for i, r in enumerate(stage.reads)
        if plan.slots[r.slot].format == "csr"
    }
    assert len(sparse) == 2
    assert sparse[stage.driver] == min(sparse.values())
    assert all(row.sampled for row in stage.rows)


def test_products_at_non_zeros_may_be_stored_that_are_no_larger_than_what_is_there():
    sparse = sparse_leaf(30, 20, density=0.1)
    product = matmul(leaf(30, 4), leaf(4, 20))
    for size in (1, 599, 600, 601, 6000):
        root = build.map_("add", build.map_("multiply", sparse, product), leaf(1, 1))
        beside = build.map_("exp", leaf(size))
        lowering = Lowering(topological([root, beside]), [root, beside], Settings(Profile(workers=2)), {})
        assert lowering.sampled_products() == ([product] if size >= 600 else [])


def test_an_operand_is_full_that_has_the_axes_of_the_domain():
    domain = (3, 4)
    for shape, labels in product(product((1, 3, 4), repeat=2), permutations((0, 1, WHOLE), 2)):
        axes = tuple(Axis(d, 0, 1, n) for d, n in zip(labels, shape, strict=True))
        read = Read(0, axes, (0, 1), shape, labels)
        assert is_full(read, domain) == (shape == domain and labels == (0, 1))
