"""An explained plan says what the plan has: in text, in a dict, and in a picture without overlaps."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from xml.etree import ElementTree

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace
from scipy import sparse

import spartan_ng as sp
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.kernels.compiled.select import explain_plan_tiers
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan import picture
from spartan_ng.plan.explain import explain
from spartan_ng.plan.layout import GAP_X, PlacedBox, place
from spartan_ng.plan.lower import lower, weigh_grids
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import Accumulate, Assemble, Join, MergeParts, ScanTile, SortParts
from spartan_ng.units import shape_text, size_text, time_text

F8 = np.dtype(np.float64)


@dataclass
class Stage:
    seconds: float
    bytes_moved: int


@dataclass
class Stats:
    seconds: float
    stages: list[Stage] = field(default_factory=list)


def leaf(*shape: int):
    return build.data(ArrayRef(shape, F8, value=np.broadcast_to(1.0, shape)))


def regression(iterations: int = 1, workers: int = 4) -> Plan:
    X, y, w = leaf(40_000, 50), leaf(40_000), leaf(50)
    roots = []
    for _ in range(iterations):
        p = build.map_("exp", build.matmul(X, w, F8))
        g = build.matmul(build.transpose(X, (1, 0)), build.map_("subtract", p, y), F8)
        w = build.map_("subtract", w, g)
    roots = [w, build.scan("add", w, 0)]
    return lower(topological(roots), roots, Settings(Profile(workers=workers)), "key")


def test_text_names_operators_tilings_and_bytes() -> None:
    plan = regression()
    text = str(explain(plan))
    assert "4 workers" in text
    assert "matmul > exp > subtract > matmul" in text
    assert "combine" in text
    assert "scan add" in text
    assert "40000×50 4x1" in text
    assert f"predicted {size_text(sum(plan.predicted_bytes))} moved" in text
    assert "measured" not in text


def test_measured_figures_stand_beside_the_predicted() -> None:
    plan = regression()
    stats = Stats(0.5, [Stage(0.001 * i, 1000 * i) for i in range(len(plan.stages))])
    explained = explain(plan, stats)
    assert explained.measured_bytes == sum(s.bytes_moved for s in stats.stages)
    assert "measured 1 kB, 1 ms" in str(explained)
    assert "measured  1 kB, 1 ms" in explained._repr_svg_()


def test_dict_is_plain_and_complete() -> None:
    plan = regression()
    told = json.loads(json.dumps(explain(plan).to_dict()))
    assert [s["predicted_bytes"] for s in told["stages"]] == list(plan.predicted_bytes)
    assert len(told["arrays"]) == len(plan.slots)
    assert told["measured_bytes"] is None
    assert told["workers"] == 4
    assert {a["role"] for a in told["arrays"]} == {"input", "output", "between"}


def test_predicted_seconds_grow_with_the_work() -> None:
    plan = regression()
    slow = explain(plan, profile=Profile(workers=4, flops_s=10**6, memory_bytes_s=10**6))
    assert slow.predicted_seconds > 100 * explain(plan).predicted_seconds


def test_scans_say_what_runs_them() -> None:
    total = build.scan("add", build.map_("multiply", leaf(400, 3), leaf(400, 3)), 0)
    odd = build.scan("logaddexp", leaf(400), 0)
    plan = lower(topological([total, odd]), [total, odd], Settings(Profile(workers=4), "row"), "key")
    told = explain(plan, tiers=explain_plan_tiers(plan)).stages
    tiers = {s.kind: [t.tiers for t in told if t.kind == s.kind] for s in told}
    wanted = [
        ("logaddexp: interpreted (logaddexp: no step of its own)",),
        ("multiply > add: compiled once hot",),
    ]
    assert sorted(tiers["scantile"]) == sorted(tiers["scantotals"]) == wanted
    assert tiers["scanoffsets"] == [(), ()]


def test_every_kind_of_stage_is_told_and_drawn() -> None:
    x, i = leaf(400), build.constant(np.arange(40))
    one = build.along_axis("sort", [x], 0, dtype=F8)
    taken = build.scatter(one, i, leaf(40))
    joined = build.join_update(UserFunction(lambda *a: a), [taken], [0], (9,), F8)
    root = build.concatenate([build.scan("add", joined, 0), leaf(9)], 0)
    plan = lower(topological([root]), [root], Settings(Profile(workers=4)), "key")
    kinds = {type(s) for s in plan.stages}
    assert {SortParts, MergeParts, Join, Accumulate, Assemble, ScanTile} <= kinds
    explained = explain(plan)
    svg = explained._repr_svg_()
    for stage in explained.stages:
        assert stage.kind in str(explained)
        assert stage.writes
    assert svg.count(">over ") == len(plan.stages)


def test_alternatives_stand_with_their_stages_and_the_chosen_one_is_cheapest() -> None:
    X, w = leaf(40_000, 50), leaf(50)
    root = build.fold("add", build.map_("exp", build.matmul(X, w, F8)), (0,))
    order, settings = topological([root]), Settings(Profile(workers=4))
    plan = lower(order, [root], settings, "key")
    explained = explain(plan, alternatives=weigh_grids(order, [root], settings))
    first = explained.stages[0]
    assert first.alternatives[0][0] == first.grid
    costs = [seconds for _, _, seconds in first.alternatives]
    assert costs == sorted(costs)
    assert len(costs) > 1
    assert explained.stages[1].alternatives == ()
    assert "the plan with this stage cut otherwise: " in str(explained)
    assert json.loads(json.dumps(explained.to_dict()))["stages"][0]["alternatives"][0][0] == first.grid


@pytest.mark.parametrize("part_ns", [0, 700_000])
def test_plans_cut_otherwise_take_what_a_job_takes_besides_its_stages(part_ns: int) -> None:
    """As the chosen plan's own seconds do, which stand above them."""
    profile = Profile(workers=4, part_ns=part_ns)
    root = build.map_("exp", leaf(40_000, 50))
    order, settings = topological([root]), Settings(profile)
    plan = lower(order, [root], settings, "key")
    explained = explain(plan, profile=profile, alternatives=weigh_grids(order, [root], settings))
    without = weigh_grids(order, [root], settings)[explained.stages[0].writes[0]]
    found = [seconds for _, _, seconds in explained.stages[0].alternatives]
    assert found == pytest.approx([a.cost_ns / 1e9 + profile.part_s() for a in without])
    assert found[0] >= explained.stages[0].predicted_seconds * 0.999


def test_a_users_function_stands_under_its_own_name() -> None:
    def my_step(x):
        return x

    root = build.map_(UserFunction(my_step), leaf(10), dtype=F8)
    plan = lower(topological([root]), [root], Settings(Profile()), "key")
    assert "my_step" in str(explain(plan))


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("iterations", [1, 3, 200])
def test_picture_is_well_formed_and_has_every_stage(iterations) -> None:
    plan = regression(iterations)
    explained = explain(plan)
    svg = explained._repr_svg_()
    ElementTree.fromstring(svg)
    drawn = min(len(plan.stages), 150)
    assert svg.count(">over ") == drawn
    hidden = len(plan.stages) - drawn
    assert (f"{hidden} more stages are not drawn" in svg) == (hidden > 0)
    assert svg in explained._repr_html_()


def test_texts_fit_into_their_boxes() -> None:
    for stage in explain(regression(3)).stages:
        widest = max(len(text) for text, _, _ in picture._lines(stage))
        assert picture._stage_box(stage).width >= widest * picture.LETTER


@pytest.mark.slow
@given(st.lists(st.text("abcdefgh_", min_size=1, max_size=60), min_size=1, max_size=40))
def test_operators_lie_beside_each_other_inside_their_box(operators: list[str]) -> None:
    stage = replace(explain(regression(1)).stages[0], operators=tuple(operators), domain=(), grid="")
    drawn = "".join(picture._stage(stage, replace(picture._stage_box(stage), x=500.0, y=40.0)))
    rectangles = [
        tuple(float(rect.get(k, "")) for k in ("x", "y", "width", "height"))
        for rect in ElementTree.fromstring(f"<g>{drawn}</g>").iter("rect")
    ]
    (left, top, width, height), *chips = rectangles
    assert len(chips) == len(picture._shortened(stage.operators))
    for x, y, w, h in chips:
        assert left <= x
        assert x + w <= left + width
        assert top <= y
        assert y + h <= top + height
    for (x, y, w, h), (u, v, wide, _) in pairwise(chips):
        assert (y == v and x + w <= u) or y + h <= v
        if y != v:
            assert x + w + 5 + wide - chips[0][0] > picture._CHIPS_WIDTH, "a row is filled before the next"


@pytest.mark.parametrize("count", range(5))
def test_scalars_are_counted(count: int) -> None:
    node = leaf(10)
    for k in range(count):
        node = build.map_("add", node, build.data(ArrayRef((), F8, value=np.float64(k) + 0.5)))
    node = build.map_("sqrt", node)
    text = str(explain(lower(topological([node]), [node], Settings(Profile()), "key")))
    (line,) = (line for line in text.splitlines() if line.startswith("inputs: "))
    assert re.findall(r"[0-9]+ scalars?", line) == [f"{count} scalar{'s' * (count > 1)}"] * (count > 0)


@pytest.mark.parametrize("count", range(1, 14))
def test_the_name_of_a_stage_counts_what_it_leaves_out(count: int) -> None:
    node = leaf(10)
    for _ in range(count):
        node = build.map_("sqrt", node)
    (stage,) = lower(topological([node]), [node], Settings(Profile()), "key").stages
    names = stage.name.split(" > ")
    left_out = [int(n.split()[1]) for n in names if n.endswith("more")]
    assert names.count("sqrt") + sum(left_out) == count
    assert bool(left_out) == (count > 8)


def test_names_are_escaped_in_the_picture() -> None:
    def smaller(x):
        return x

    smaller.__name__ = "<a & b>"
    root = build.map_(UserFunction(smaller), leaf(10), dtype=F8)
    plan = lower(topological([root]), [root], Settings(Profile()), "key")
    svg = explain(plan)._repr_svg_()
    ElementTree.fromstring(svg)
    assert "&lt;a &amp; b&gt;" in svg


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 14))
    pairs = list(combinations(range(n), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    return [PlacedBox(draw(st.integers(20, 300)), draw(st.integers(10, 90))) for _ in range(n)], edges


@given(graphs())
def test_boxes_do_not_overlap_and_edges_lead_down(graph) -> None:
    boxes, edges = graph
    drawing = place(boxes, edges)
    for a, b in combinations(boxes, 2):
        apart_x = abs(a.x - b.x) >= (a.width + b.width) / 2 + GAP_X - 1e-6
        apart_y = a.y + a.height < b.y or b.y + b.height < a.y
        assert apart_x or apart_y
    for (a, b), route in zip(edges, drawing.routes, strict=True):
        assert boxes[a].y + boxes[a].height < boxes[b].y
        assert len(route) == boxes[b].layer - boxes[a].layer - 1
        for x, top, bottom in route:
            crossed = [p for p in boxes if p.y < bottom and top < p.y + p.height]
            assert all(abs(p.x - x) > p.width / 2 for p in crossed)
    for box in boxes:
        assert box.x - box.width / 2 >= -1e-6
        assert box.x + box.width / 2 <= drawing.width + 1e-6


def test_units() -> None:
    assert shape_text(()) == "scalar"
    assert shape_text((2, 3)) == "2×3"
    assert [size_text(n) for n in (0, 999, 1500, 2_000_000, 3 * 10**15)] == [
        "0 B", "999 B", "1.5 kB", "2 MB", "3 PB",
    ]  # fmt: skip
    assert [time_text(s) for s in (2.5e-6, 0.0015, 1.25)] == ["2.5 µs", "1.5 ms", "1.25 s"]
    assert not re.search("[A-Z]", time_text(1e-9))


def test_what_has_a_value_needs_no_stage() -> None:
    import spartan_ng as sp

    assert sp.explain(sp.ones(3) + 1).to_dict()["stages"] == []


def test_the_text_names_templates_tiers_and_the_policies_costs() -> None:
    x = sp.asarray(np.ones((50_000, 20)))
    with config.override(small_bytes=0):
        e = sp.exp(x)
        shares = e / e.sum()
        ordered = sp.sort(x, axis=1).sum()
        explanation = sp.explain(shares, ordered)
    text = str(explanation)
    assert "fused (Row)" in text
    assert "interpreted (along_axis)" in text, "what cannot be compiled says so"
    fusion = explanation.to_dict()["fusion"]
    (partition,) = fusion["partitions"]
    assert 0 < partition["chosen_s"] <= partition["fuse_all_s"]
    assert set(fusion["formed_s"]) == {"cost", "all", "no_redundancy"}
    assert "no redundancy" in text


def test_an_outer_operator_says_that_it_runs_at_non_zeros_alone() -> None:
    rng = np.random.default_rng(0)
    x = sp.asarray(sparse.random_array((2000, 2000), density=0.01, format="csr", rng=rng))
    u, v = sp.asarray(rng.random((2000, 10))), sp.asarray(rng.random((2000, 10)))
    with config.override(small_bytes=0):
        explanation = sp.explain((x * sp.log(u @ v.T + 1e-15)).sum())
    (stage,) = explanation.stages
    assert stage.template == "Outer"
    assert stage.tiers[0].endswith("at non-zeros alone")
