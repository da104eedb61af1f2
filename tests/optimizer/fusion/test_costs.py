"""What values take: bytes as they are stored, time in proportion to them."""

from __future__ import annotations

import random
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from spartan_ng.arrays import ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.costs.tuned import WRITTEN
from spartan_ng.graph import build
from spartan_ng.optimizer.fusion.costs import write_ps
from spartan_ng.optimizer.fusion.cutsets import CutSet
from spartan_ng.optimizer.fusion.labels import is_sparse_take
from spartan_ng.optimizer.fusion.operators import stored_bytes
from spartan_ng.optimizer.fusion.search import skip_enumerate
from tests.optimizer.fusion.expressions import leaf
from tests.optimizer.fusion.test_select import brute_force
from tests.sampling import part

SIDES = st.integers(1, 30)


@given(SIDES, SIDES, st.integers(1, 5), st.sampled_from(["f4", "f8", "c16"]))
def test_a_sparse_value_has_the_bytes_of_its_three_arrays(
    rows: int, columns: int, every: int, dtype: str
) -> None:
    value = sparse.csr_array((np.arange(rows * columns).reshape(rows, columns) % every == 0).astype(dtype))
    value.indices, value.indptr = value.indices.astype(np.int32), value.indptr.astype(np.int64)
    data = build.data(ArrayRef(value.shape, value.dtype, value=value, format="csr", nnz=value.nnz))
    node = build.map_("sqrt", data)
    nbytes = value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
    found = stored_bytes(node, value.nnz / node.size)
    assert abs(found - nbytes) <= 1, "but for rounding"
    assert stored_bytes(build.map_("sqrt", leaf(rows, columns)), 1.0) == 8 * rows * columns


@given(SIDES, st.integers(1, 9), st.integers(1, 4))
def test_writing_takes_time_in_proportion_and_states_are_sent(n: int, times: int, workers: int) -> None:
    profile = Profile(workers=workers)
    small, large = (build.map_("sqrt", leaf(k)) for k in (n, n * times))
    took = write_ps(small.nbytes, small, small.shape, profile)
    assert took == WRITTEN * small.nbytes * profile.memory_ps
    assert write_ps(large.nbytes, large, large.shape, profile) == times * took
    state = write_ps(small.nbytes, small, (*small.shape, 2), profile)
    assert state == small.nbytes * (WRITTEN * profile.memory_ps + profile.network_ps)


@given(st.lists(SIDES, min_size=1, max_size=3), st.lists(st.integers(0, 6), max_size=2), st.data())
def test_a_sparse_take_looks_up_fewer_lines_than_there_are(
    shape: list[int], wanted: list[int], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    indices = build.data(ArrayRef(tuple(wanted), np.dtype(int), value=np.zeros(wanted, int)))
    node = build.take(leaf(*shape), indices, axis)
    assert is_sparse_take(node) == (prod(wanted) in range(1, shape[axis]))
    assert not is_sparse_take(build.map_("sqrt", node))


def test_what_a_cut_set_does_not_part_is_searched_as_a_whole() -> None:
    """Points that are on neither side of a cut are not independent of anything."""
    for seed in range(part(400)):
        rng = random.Random(seed)
        count = rng.randint(2, 6)
        points = 1 << rng.randrange(count)
        others = [1 << i for i in range(count) if not points >> i & 1]
        kept = rng.sample(others, rng.randint(0, len(others) - 1))
        above = sum(kept[: len(kept) // 2])
        cut = CutSet(points, above, sum(kept) - above)
        sides = [[rng.randint(0, 99) for _ in range(1 << count)] for _ in range(2)]
        table = [rng.randint(0, 198) for _ in range(1 << count)]
        for mask in range(1 << count):
            if mask & points:  # the sides are independent, for whatever stands on neither
                table[mask] = sides[0][mask & ~cut.below] + sides[1][mask & ~cut.above]

        class Costs:
            def cost(self, mask: int, table: list[int] = table) -> int:
                return table[mask]

            def at_least(self, mask: int, table: list[int] = table) -> int:
                return min(c for m, c in enumerate(table) if m & mask == mask)

        found = skip_enumerate(Costs(), count, [cut])
        assert found.cost == brute_force(Costs(), count).cost
        assert found.exact
