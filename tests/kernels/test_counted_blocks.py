"""What is counted by places has few states, where each is large: it has an element for each place."""

from __future__ import annotations

from math import prod

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng import memory
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.costs.tuned import COUNTED
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.kernels.blocks import block_sizes, cut_tile
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.memory import BLOCK_BYTES, block_bytes
from spartan_ng.plan.lower import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import Fused
from spartan_ng.plan.working import working_bytes
from tests.optimizer.fusion.expressions import leaf
from tests.sampling import examples

GB = 1 << 30


def _counting(n: int, places: int, weighted: bool, profile: Profile) -> tuple[Plan, Fused]:
    labels: Node = build.cast(leaf(n), numpy.dtype(numpy.int64))
    root = build.bincount(labels, places, leaf(n) if weighted else None)
    plan = lower(topological([root]), [root], Settings(profile), "key")
    (stage,) = (s for s in plan.stages if isinstance(s, Fused) and s.writes[0].reducer is not None)
    return plan, stage


@examples(60)
@given(
    st.integers(1, 30_000_000),
    st.integers(1, 5_000_000),
    st.booleans(),
    st.sampled_from([64 * GB, GB, GB // 16]),
)
def test_states_are_no_more_than_what_is_counted(
    n: int, places: int, weighted: bool, memory_bytes: int
) -> None:
    plan, stage = _counting(n, places, weighted, Profile(memory_bytes=memory_bytes))
    tile = ((0, n),)
    patches = cut_tile(stage, tile, block_sizes(stage, tile), together=False)
    assert isinstance(patches, list)
    states = sum(len(run) for patch in patches for run in patch.runs)
    assert stage.block_bytes <= max(BLOCK_BYTES, COUNTED * 8 * places)
    assert stage.block_bytes * memory.threads() <= memory_bytes // 8
    assert working_bytes(plan, stage, memory_bytes) <= memory.threads() * max(
        stage.block_bytes, block_bytes(memory_bytes)
    )
    if memory_bytes == 64 * GB and 8 * places > BLOCK_BYTES:
        assert (states - 1) * places <= n, "all states have fewer elements than what they are of"


@pytest.mark.parametrize("weighted", [False, True])
def test_many_places_are_counted_at_once(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 32 blocks of edges made a state of all nodes."""
    rng = numpy.random.default_rng(0)
    n, places = 3_000_000, 1_200_000
    labels, weights = rng.integers(0, places, n), rng.integers(0, 9, n).astype(float)
    made: list[int] = []
    sums = Reducer._sums

    def counted(self: Reducer, x: numpy.ndarray, w: numpy.ndarray | None, length: int) -> object:
        made.append(length)
        return sums(self, x, w, length)

    monkeypatch.setattr(Reducer, "_sums", counted)
    with config.override(small_bytes=0):
        w = np.array(weights) * 2 if weighted else None
        found = numpy.asarray(np.bincount(np.array(labels), w, places))
    expected = numpy.bincount(labels, weights * 2 if weighted else None, places)
    assert numpy.array_equal(found, expected)
    assert found.dtype == expected.dtype
    assert prod(found.shape) == places
    assert sum(made) <= n
