"""Several views of one folded value, stored together, and beside what is folded of it again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

VIEWS = {
    "itself": lambda xp, m: m,
    "turned": lambda xp, m: m.T,
    "new axis": lambda xp, m: m[..., None],
    "first axis": lambda xp, m: m[None],
    "without ones": lambda xp, m: xp.squeeze(m),
    "stretched": lambda xp, m: xp.broadcast_to(m[..., None], (*m.shape, 2)),
    "part": lambda xp, m: m[::-1],
    "largest": lambda xp, m: m.argmax(),
    "a map": lambda xp, m: m * 2,
}
FOLDS = {
    "axis 1": ((1700, 2, 2), lambda xp, y: y.sum(axis=1, keepdims=True)),
    "axis 0": ((30, 70), lambda xp, y: y.max(axis=0, keepdims=True)),
    "everything": ((70, 30), lambda xp, y: y.sum(keepdims=True)),
    "a mean": ((40, 3, 20), lambda xp, y: y.mean(axis=(0, 2), keepdims=True)),
    "none": ((40, 1, 20), lambda xp, y: y + 1),
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("fold", FOLDS)
def test_as_numpy(fold, workers, some):
    shape, folded = FOLDS[fold]
    y = np.random.default_rng(0).integers(0, 100, shape).astype("f8")
    with running_on(SimulatedBackend(workers)), config.override(small_bytes=0):
        for names in some(itertools.combinations(VIEWS, 3), 12):
            m, expected = folded(sp, sp.asarray(y)), folded(np, y)
            found = sp.compute(*(VIEWS[n](sp, m) for n in names))
            for name, a in zip(names, found, strict=True):
                np.testing.assert_allclose(a, VIEWS[name](np, expected), rtol=1e-14, err_msg=f"{names}")
