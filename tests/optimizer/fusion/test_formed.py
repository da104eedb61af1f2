"""What the search has chosen is what is formed: on random graphs, random programs, and well-known ones.

Each pass of the plan is one stage, or part of one: it computes what the pass computes, and stores what was to
be stored. Stages may take in more passes, of other partitions, that share a read.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.optimizer.fusion.costs import formed_ps
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.group import Group, Grouping
from spartan_ng.optimizer.fusion.operators import estimates
from spartan_ng.optimizer.fusion.partitions import partitions
from spartan_ng.optimizer.fusion.policies import form_chosen, form_stages
from spartan_ng.optimizer.fusion.select import (
    Choice,
    candidate_plans,
    candidates,
    leaves_choice,
    open_nodes,
    search,
    select,
)
from spartan_ng.plan import lower
from tests import fusion_programs
from tests.optimizer.fusion.expressions import leaf, minus, random_graph, row_sums
from tests.programs import Program, programs
from tests.sampling import Some, examples, part
from tests.test_programs import running_on

Counts = dict[str, int]


def leads_to(stage: Group, other: Group) -> bool:
    """Whether the other stage reads, through whatever stages, what a stage stores."""
    seen: set[Group] = set()
    waiting = [stage]
    while waiting:
        new = waiting.pop().users.keys() - seen
        seen |= new
        waiting.extend(new)
    return other in seen


def check(
    order: list[Node],
    roots: set[Node],
    profile: Profile,
    apart: Collection[Node] = (),
    drawn: random.Random | None = None,
) -> Counts:
    """Compare the stages of a graph with the plan that was chosen, or one that is drawn.

    How many passes there were, and joined.
    """
    memo = candidates(order, roots, profile, apart)
    choice = select(memo, profile) if drawn is None else draw(memo, profile, drawn)
    formed = form_chosen(order, roots, profile, memo, choice)
    found: dict[Node, set[Group]] = {node: set() for node in choice.fusing}
    for stage in formed.groups:
        for node in (*stage.stored, *(member for member, _ in stage.members)):
            if node in found:
                found[node].add(stage)
    for node, ends in choice.fusing.items():
        assert found[node] == {formed.stored[end] for end in ends}, f"{node} in the passes that were chosen"
        assert (node in formed.stored) == (node in ends), f"{node} stored, or not"
    joined = 0
    for host, end, _ in choice.joined:
        one, other = formed.stored[host], formed.stored[end]
        joined += one is other
        # Only what other partitions have joined keeps passes apart that were to be one.
        assert one is other or leads_to(one, other) or leads_to(other, one)
    return {"passes": len(formed.stored), "joined": joined, "apart": len(choice.joined) - joined}


def draw(memo: Memo, profile: Profile, drawn: random.Random) -> Choice:
    """Any assignment: each dependency is stored with the same chance, a different one in each graph."""
    fusing: dict[Node, Collection[Node]] = {o.node: {o.node} for o in memo.operators}
    joined, part = [], drawn.random()
    for costs, _ in candidate_plans(memo, profile, partitions(memo), every=True):
        mask = sum([bit for bit in costs.bits.values() if drawn.random() < part])
        passes, together = costs.chosen(mask)
        fusing.update(passes)
        joined += together
    for node in open_nodes(memo, partitions(memo)):
        del fusing[node]
    return Choice(fusing, tuple(joined), 0)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Every graph that is lowered is checked; how many passes that were, and joined."""
    counts: Counts = {"passes": 0, "joined": 0, "apart": 0}

    def form(
        order: list[Node],
        roots: set[Node],
        policy: str = "cost",
        profile: Profile | None = None,
        apart: Collection[Node] = (),
    ) -> Grouping:
        if leaves_choice(order, profile or Profile()):
            for name, count in check(order, roots, profile or Profile(), apart).items():
                counts[name] += count
        return form_stages(order, roots, policy, profile, apart)

    monkeypatch.setattr(lower, "form_stages", form)
    return counts


@pytest.mark.some(1)
@pytest.mark.parametrize("workers", [1, 4])
def test_random_graphs(workers: int) -> None:
    total = {"passes": 0, "joined": 0, "apart": 0}
    for seed in range(part(400)):
        wanted, _ = random_graph(seed)
        for name, count in check(topological(wanted), set(wanted), Profile(workers=workers)).items():
            total[name] += count
    assert total["joined"] > total["passes"] / 10
    assert total["apart"] < total["passes"] / 50


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("most", [12, 40])
@pytest.mark.parametrize("workers", [1, 4])
def test_any_assignment(workers: int, most: int) -> None:
    """Not the best alone: those that no search would choose are formed, too."""
    for seed in range(part(200)):
        wanted, _ = random_graph(seed, most)
        order, roots = topological(wanted), set(wanted)
        for again in range(3):
            check(order, roots, Profile(workers=workers), drawn=random.Random(3 * seed + again))


def scanned_graph(rng: random.Random) -> list[Node]:
    """Scans, drawn numbers or data below them, and maps and folds of all of these."""
    large = [leaf(2000, 300), build.random("random", (0,), (), (2000, 300), np.dtype(float))]
    folds: list[Node] = []
    for _ in range(rng.randint(3, 10)):
        a = rng.choice(large[-3:])
        kind = rng.choice(["scan", "map", "map", "fold", "fold", "rows"])
        if kind == "scan":
            large.append(build.scan("add", a, 0))
        elif kind == "map":
            large.append(build.map_(rng.choice(["add", "multiply"]), a, rng.choice(large)))
        elif kind == "rows":
            large.append(minus(a, row_sums(a)))
        else:
            folds.append(build.fold(rng.choice(["add", "maximum"]), a, rng.choice([(0,), (1,), (0, 1)])))
    return [*folds, *[n for n in large[2:] if rng.random() < 0.2], large[-1]]


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("workers", [1, 4])
def test_scans_and_random_numbers_are_made_once(workers: int) -> None:
    """By the best plan or any: they are stored, or all passes that ask for them run as one."""
    for seed in range(part(300)):
        rng = random.Random(seed)
        wanted = scanned_graph(rng)
        order, roots = topological(wanted), set(wanted)
        for drawn in (None, rng, rng):
            check(order, roots, Profile(workers=workers), drawn=drawn)
        formed = form_stages(order, roots, "cost", Profile(workers=workers))
        for node in order:
            if node.op is Op.SCAN or node.op is Op.RANDOM:
                assert sum([stage.holds(node) for stage in formed.groups]) == 1, seed


@pytest.mark.some(1)
@pytest.mark.parametrize("workers", [1, 4])
def test_a_pass_costs_the_same_as_it_is_chosen_and_as_it_is_formed(workers: int) -> None:
    """What a choice takes is what its stages take, but for what passes of several partitions share."""
    profile, compared = Profile(workers=workers), 0
    for seed in range(part(200)):
        wanted, _ = random_graph(seed)
        order, roots = topological(wanted), set(wanted)
        known = estimates(order)
        memo = candidates(order, roots, profile, (), known)
        formed = form_chosen(order, roots, profile, memo, select(memo, profile))
        for costs, most in candidate_plans(memo, profile, partitions(memo), every=True):
            for chosen in costs.stages(search(costs, most).mask):
                stage = formed.stored[memo.operators[chosen.roots[0]].node]
                if {*stage.stored} == {memo.operators[n].node for n in chosen.roots}:
                    alone = Grouping([stage], formed.stored, formed.drivers)
                    assert formed_ps(alone, known, profile) == pytest.approx(chosen.cost_ps, rel=0.05), seed
                    compared += 1
    assert compared > part(200)


def test_numbers_that_one_pass_asks_for_several_times_are_not_stored() -> None:
    with running_on(SimulatedBackend(1)), config.override(small_bytes=0):
        x = sp.random.default_rng(0).random((2000, 300))
        y = x * 2
        (stage,) = sp.explain(y.sum(), y.max(), (x + y).sum(0)).to_dict()["stages"]
    assert "random" in stage["operators"]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"kinds": "sparse"}], ids=str)
@pytest.mark.parametrize("workers", [1, 4])
def test_random_programs(workers: int, options: dict[str, Any], checked: Counts, some: Some) -> None:
    """Dense, sparse and compressed, from the lines that fusion is made for."""
    with running_on(SimulatedBackend(workers)), config.override(small_bytes=0), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's and ours, of means of nothing
        for seed in some(range(8000, 8200), 40):
            sp.explain(*fusion_programs.program(seed, **options).run(sp, fusion_programs.ours))
    assert checked["passes"] > 50


@examples(60)
@given(program=programs(), workers=st.sampled_from([1, 4]))
def test_any_programs(program: Program, workers: int) -> None:
    seen: list[int] = []

    def form(order: list[Node], roots: set[Node], policy: str, profile: Profile, apart: Any) -> Grouping:
        seen.append(check(order, roots, profile, apart)["passes"])
        return form_stages(order, roots, policy, profile, apart)

    with running_on(SimulatedBackend(workers)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(lower, "form_stages", form)
        with config.override(small_bytes=0), np.errstate(all="ignore"):
            sp.explain(*program.run(sp, sp.array))


# --- well-known programs -----------------------------------------------------------------------------------

_DRAWN = np.random.default_rng(0)
_ROWS = 20_000


def _members(np: Any, X: Any, C: Any) -> Any:
    """Row33 of SystemML's tests, an update of k-means: the nearest centers, ties shared."""
    scores = -2 * (X @ C.T) + (C**2).sum(1)
    nearest = scores <= scores.min(1, keepdims=True)
    return nearest / nearest.sum(1, keepdims=True)


def _update(np: Any, X: Any, C: Any) -> Any:
    members = _members(np, X, C)
    return (members.T @ X) / members.sum(0)[:, None]


def _softmax(np: Any, X: Any) -> Any:
    e = np.exp(X - X.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _own(z: Any) -> Any:
    return z.T @ z


Given = dict[str, Any]
PROGRAMS: dict[str, tuple[int, Callable[[Any, Given], Any]]] = {
    "row33": (3, lambda np, g: _update(np, g["X"], g["C"])),
    "crow": (2, lambda np, g: g["X"].T @ (g["X"] @ g["v"]) + g["X"].T @ (g["w"] * (g["X"] @ g["v"]))),
    "cell7": (1, lambda np, g: _own(np.exp(g["X"]) * 2)),
    "cov": (3, lambda np, g: np.cov(g["X"], rowvar=False)),
    "corrcoef": (6, lambda np, g: np.corrcoef(g["X"], rowvar=False)),
    "softmax": (1, lambda np, g: _softmax(np, g["X"])),
    "gradient of softmax": (1, lambda np, g: g["X"].T @ (_softmax(np, g["X"] @ g["C"].T) - 1)),
    "log-likelihood": (2, lambda np, g: (((g["X"] - g["v"]) @ g["S"]) * (g["X"] - g["v"])).sum(1)),
    "moments": (3, lambda np, g: [g["X"].mean(0), g["X"].var(0), g["X"].min(1), g["X"] * 2]),
    "two sums": (1, lambda np, g: [(g["X"] * g["Y"]).sum(), (g["X"] * g["X"]).sum()]),
    "ALS": (1, lambda np, g: ((g["R"] != 0) * (g["U"] @ g["V"].T)) @ g["V"] + 1e-6 * g["U"]),
    "loss of factors": (1, lambda np, g: np.sum(g["R"] * np.log(g["U"] @ g["V"].T + 1e-15))),
    "GNMF": (2, lambda np, g: g["U"] * (g["R"] @ g["V"]) / (g["U"] @ (g["V"].T @ g["V"]))),
}
"""Stages that each needs at most on one worker, small ones included, and the program."""


def _given() -> Given:
    random = _DRAWN.random
    return {
        "X": random((_ROWS, 100)),
        "Y": random((_ROWS, 100)),
        "C": random((8, 100)),
        "S": random((100, 100)),
        "v": random(100),
        "w": random(_ROWS),
        "U": random((_ROWS, 10)),
        "V": random((3000, 10)),
        "R": sparse.random_array((_ROWS, 3000), density=0.01, format="csr", rng=_DRAWN),
    }


@pytest.mark.some(12)
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_well_known_programs(name: str, workers: int, checked: Counts) -> None:
    most, program = PROGRAMS[name]
    with running_on(SimulatedBackend(workers)), config.override(small_bytes=0):
        made = program(sp, {k: sp.asarray(v) for k, v in _given().items()})
        plan = sp.explain(*made) if isinstance(made, list) else sp.explain(made)
        assert checked["apart"] == 0
        if workers == 1:
            assert len(plan.stages) <= most, plan


def test_an_update_of_k_means_computes_its_scores_once() -> None:
    """Both the sums and the counts of members are results of the pass over the points."""
    values = {k: v for k, v in _given().items() if k in "XC"}
    with running_on(SimulatedBackend(1)), config.override(small_bytes=0):
        made = _update(sp, *(sp.asarray(v) for v in values.values()))
        operators = [s["operators"] for s in sp.explain(made).to_dict()["stages"]]
        np.testing.assert_allclose(np.asarray(made), _update(np, *values.values()), rtol=1e-9)
    assert sum("less_equal" in names for names in operators) == 1


@examples(150)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_pieces_of_large_partitions(seed: int, most: int) -> None:
    """What is joined to a value that another piece asks for, which may have gone into what reads it."""
    _, roots = random_graph(seed, 16)
    order = topological(roots)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("spartan_ng.optimizer.fusion.select.MOST_OPERATORS", most)
        patched.setattr("spartan_ng.optimizer.fusion.select.partitions", lambda memo: partitions(memo, most))
        memo = candidates(order, set(roots), Profile())
        choice = select(memo, Profile())
        formed = form_chosen(order, set(roots), Profile(), memo, choice)
    computed = {node for stage in formed.groups for node, _ in stage.members} | set(formed.stored)
    assert computed >= choice.fusing.keys() | set(roots)
    for host, end, _ in choice.joined:
        if host in formed.stored and end in formed.stored:
            one, other = formed.stored[host], formed.stored[end]
            assert one is other or leads_to(one, other) or leads_to(other, one)
