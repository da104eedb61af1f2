"""Cuts of the paper's Table 3 and Figure 13, and the pruned search against the exhaustive one."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchmarks.brute_cuboids import exhaustive
from benchmarks.cuboids import CUTS, PAPER, paper_space
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.optimizer.cuboid import search
from spartan_ng.optimizer.cuboid.search import optimize, pruned
from spartan_ng.optimizer.cuboid.space import BodyOperator, Matrix, Resources, Space
from tests.sampling import examples

DIMS = st.sets(st.integers(0, 2)).map(frozenset)


@pytest.mark.parametrize(("n", "k", "density", "cut"), CUTS)
def test_the_papers_cuts(n: int, k: int, density: Fraction, cut: tuple[int, int, int]) -> None:
    assert optimize(paper_space(n, k, density), PAPER).cut == cut


@st.composite
def cases(draw: st.DrawFn) -> tuple[Space, Resources]:
    """A space and a cluster whose memory is about what tasks need."""
    large = draw(st.booleans())
    amount = st.integers(0, 10**15 if large else 60)
    blocks = draw(st.tuples(*[st.integers(1, 9)] * 3))
    matrices = draw(st.lists(st.builds(Matrix, st.just("m"), DIMS, amount, st.booleans()), max_size=6))
    operators = draw(st.lists(st.builds(BodyOperator, st.just("o"), DIMS, amount), max_size=5))
    space = Space("case", blocks, tuple(matrices), tuple(operators))
    least, most = space.memory_bytes(blocks), space.memory_bytes((1, 1, 1))
    share = Fraction(draw(st.integers(-1, 20)), 20)
    budget = int(least + (most - least) * share)
    rate = st.integers(1, 7)
    return space, Resources(draw(st.integers(1, 6)), draw(st.integers(1, 5)), budget, draw(rate), draw(rate))


@pytest.mark.slow
@examples(500)
@given(case=cases())
def test_pruned_is_exhaustive_with_tight_memory(case: tuple[Space, Resources]) -> None:
    space, cluster = case
    assert pruned(space, cluster) == exhaustive(space, cluster)


def test_two_million_voxels_are_one_table_of_two_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the search short: cuts are compared in a table, and only the best are costed one by one."""
    space = paper_space(200_000, 50_000, Fraction(1, 5))
    assert space.voxels == 2_000_000
    best = Mock(side_effect=search._best)
    cost_s = Mock(side_effect=Space.cost_s)
    monkeypatch.setattr(search, "_best", best)
    monkeypatch.setattr(Space, "cost_s", lambda *args: cost_s(*args))
    optimize(space, PAPER)
    ((_, _, parts, _),) = [call.args for call in best.call_args_list]
    assert len(parts[0]) <= space.voxels // max(space.blocks)
    assert cost_s.call_count <= 10


def test_a_space_smaller_than_the_cluster_is_cut_as_far_as_it_goes() -> None:
    assert optimize(paper_space(3000, 2000, Fraction(1)), PAPER).cut == (3, 3, 2)


def test_the_error_names_operator_least_memory_and_budget() -> None:
    space = paper_space(100_000, 2000, Fraction(1))
    told = rf"No cuboid fits: X \* log.* at least {least_budget(space):,} bytes .* 1,000 bytes"
    with pytest.raises(MemoryBudgetError, match=told):
        optimize(space, Resources(8, 12, 1000, 1, 1))


@examples(100)
@given(case=cases())
def test_the_memory_that_the_error_names_is_enough_to_the_byte(case: tuple[Space, Resources]) -> None:
    space, cluster = case
    least = least_budget(space)
    optimize(space, replace(cluster, task_bytes=least))
    with pytest.raises(MemoryBudgetError, match=f"at least {least:,} bytes"):
        optimize(space, replace(cluster, task_bytes=least - 1))


def least_budget(space: Space) -> int:
    """The least number of whole bytes that holds what a task of the finest cut takes."""
    least = space.memory_bytes(space.blocks)
    return next(n for n in (int(least), int(least) + 1) if n >= least)


def test_numbers_beyond_64_bits_stay_exact() -> None:
    matrices = (Matrix("a", frozenset({0, 2}), 10**30 + 1), Matrix("b", frozenset({1, 2}), 10**30))
    space = Space("huge", (6, 6, 6), matrices, (BodyOperator("o", frozenset({0, 1}), 10**31),))
    cluster = Resources(3, 4, 10**29, 7, 3)
    assert pruned(space, cluster) == exhaustive(space, cluster)
