"""Lines that a mask keeps are copied at once where they are few; else a pass reads all of them."""

from __future__ import annotations

import random

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from tests.sampling import Some


def _drawn(seed: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Lines of many lengths, and a mask that keeps none to all of them."""
    rng, numbers = random.Random(seed), numpy.random.default_rng(seed)
    shape = (rng.choice([1, 500, 3000]), *rng.choice([(1,), (8,), (40,), (5, 6)]))
    a = numbers.integers(0, 9, shape).astype(rng.choice(["f8", "i4", "?", "c16"]))
    kept = rng.choice([0.0, 0.01, 0.1, 0.5, 1.0])
    return a, numbers.random(shape[0]) < kept


@pytest.mark.slow
def test_what_is_kept_is_numpys(some: Some) -> None:
    for seed in some(range(400), 60):
        theirs, kept = _drawn(seed)
        with config.override(small_bytes=random.Random(seed).choice([0, 3000, 20_000, 1 << 20])):
            a, mask = np.array(theirs), np.array(kept)
            for found, wanted in (
                (a[mask], theirs[kept]),
                (a[mask, ..., 0], theirs[kept, ..., 0]),
                (a[mask].sum(axis=0), theirs[kept].sum(axis=0)),
                (a.T[..., mask], theirs.T[..., kept]),
                (a[::-1][mask] + 1, theirs[::-1][kept] + 1),
            ):
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), seed
                numpy.testing.assert_array_equal(numpy.asarray(found), wanted, err_msg=str(seed))


@pytest.mark.parametrize(
    ("columns", "every", "at_once"),
    [
        (40, 100, True),
        (40, 8, True),
        (40, 7, False),  # a pass is as soon done
        (7, 100, False),  # the mask is much beside such lines
    ],
)
def test_few_are_copied_at_once(columns: int, every: int, at_once: bool) -> None:
    a = np.array(numpy.ones((4000, columns)))
    mask = np.array(numpy.arange(4000) % every == 0)
    with config.override(small_bytes=200_000):
        found = a[mask]
        assert (found._cell.value is not None) == at_once
        total = found.sum(axis=0)
    assert (total == -(-4000 // every)).all()
