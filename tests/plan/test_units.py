"""What is handed over of folds that are combined in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.ops.units import Folded, leading
from spartan_ng.optimizer.tiling.options import between_units, candidates
from tests.sampling import examples


@examples(200)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(1, 6), st.data())
def test_axes_are_handed_over_up_to_the_last_that_is_cut(domain: list[int], workers: int, data) -> None:
    """But for those of a single unit, and none where none is cut."""
    shape = tuple(domain)
    axes = tuple(Folded(d, d, n, data.draw(st.integers(1, 4))) for d, n in enumerate(shape))
    every = candidates(shape, tuple(range(len(shape))), workers)
    for grid in between_units(every, shape, {f.dim: f.length for f in axes}).tilings:
        cut = [f.dim for f in axes if grid.parts[f.dim] > 1]
        several = [f.dim for f in axes if grid.parts[f.dim] > 1 or -(-f.size // f.length) > 1]
        handed = [d for d, _ in leading(axes, grid, shape)]
        assert handed == [d for d in several if d <= max(cut, default=-1)]
