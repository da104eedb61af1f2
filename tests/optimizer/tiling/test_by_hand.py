"""Tilings set by hand, and what cannot be had: the errors say what, why, and the way out."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.arrays import Tiling
from spartan_ng.config import config
from spartan_ng.errors import MemoryBudgetError, OptionError, ShapeError, WorkersChanged
from spartan_ng.optimizer.tiling.forced import BY_HAND, exact_tiling
from tests.test_programs import running_on

EXPECTED = {"row": "4x1", "column": "1x4", "block": "2x2", "duplicate": "duplicate"}


@pytest.mark.parametrize("kind", BY_HAND)
def test_an_array_lies_as_its_user_says(kind):
    a = np.random.default_rng(1).random((40, 30))
    with running_on(SimulatedBackend(4)), config.override(small_bytes=0):
        y = sp.tile_as(sp.array(a), kind)
        z = (y.T @ y + y[:30, :30]).compute()
        np.testing.assert_allclose(np.asarray(z), a.T @ a + a[:30, :30])
        ref = y.persist()._node().data
        assert ref is not None
        assert str(ref.tiling) == EXPECTED[kind]
        np.testing.assert_array_equal(np.asarray(y), a)


@pytest.mark.parametrize("kind", BY_HAND)
@pytest.mark.parametrize(
    "view", [np.transpose, lambda a: a[::-2, 1::3], lambda a: np.broadcast_to(a[0], (9, 7))]
)
def test_views_and_writes(kind, view):
    a = np.random.default_rng(2).random((10, 7))
    with running_on(SimulatedBackend(5)), config.override(small_bytes=0):
        x = sp.array(a)
        y = sp.tile_as(view(x), kind)
        y[0] = 3
        expected = view(a).copy()
        expected[0] = 3
        np.testing.assert_array_equal(np.asarray(y), expected)
        np.testing.assert_array_equal(np.asarray(x), a)


def test_sparse_arrays_by_row():
    a = sparse.random(30, 20, 0.2, format="csr", random_state=3)
    with running_on(SimulatedBackend(4)), config.override(small_bytes=0):
        y = sp.tile_as(sp.asarray(a), "row")
        np.testing.assert_allclose(np.asarray((y @ np.ones(20)).compute()), a @ np.ones(20))
        with pytest.raises(ShapeError, match="cut by row only"):
            sp.tile_as(sp.asarray(a), "column")


def test_the_way_out_is_what_works():
    """Whatever cannot be cut as asked: what the error names instead can be, and nothing else."""
    for shape in (s for ndim in range(4) for s in product((1, 2, 5), repeat=ndim)):
        said = []
        works = {"duplicate"}
        for kind in BY_HAND:
            try:
                exact_tiling(shape, "dense", 2, kind)
            except ShapeError as error:
                said.append(set(re.findall("'([a-z]+)'", str(error).rpartition("use ")[2])))
            else:
                works.add(kind)
        assert all(names == works - {"block"} for names in said), (shape, said, works)


def test_alone_every_tiling_is_the_whole():
    a = np.arange(6.0).reshape(2, 3)
    for kind in BY_HAND:
        np.testing.assert_array_equal(np.asarray(sp.tile_as(sp.array(a), kind)), a)


@pytest.mark.parametrize(
    ("shape", "kind", "workers", "why"),
    [
        ((), "row", 4, r"shape \(\) .* over 4 workers: it has 0 axes; use 'duplicate'"),
        ((9,), "column", 4, r"shape \(9,\) .* it has 1 axes; use 'row' or 'duplicate'"),
        ((1, 9), "row", 4, r"its axis 0 has length 1; use 'column' or 'duplicate'"),
        ((9, 1), "block", 4, r"its axis 1 has length 1; use 'row' or 'duplicate'"),
        ((9, 9), "block", 3, r"over 3 workers: a block needs at least 2 parts along each axis; use 'row'"),
    ],
)
def test_what_cannot_be_honoured_says_why(shape, kind, workers, why):
    with running_on(SimulatedBackend(workers)), pytest.raises(ShapeError, match=why) as caught:
        sp.tile_as(np.ones(shape), kind)
    assert isinstance(caught.value, ValueError)


def test_unknown_tilings():
    with pytest.raises(OptionError, match="'diagonal' is not one of row, column, block, duplicate"):
        sp.tile_as(np.ones(3), "diagonal")


def test_a_duplicate_above_the_budget_names_array_bytes_and_budget():
    with running_on(SimulatedBackend(4)), config.override(small_bytes=0, duplicate_bytes=1000):
        y = sp.tile_as(np.ones((40, 30)), "duplicate")
        with pytest.raises(MemoryBudgetError, match=r"\(40, 30\) takes 9,600 bytes .* 1,000 bytes a worker"):
            y.compute()
        with config.override(duplicate_bytes=9600):
            assert float(y.sum()) == 1200


@pytest.mark.parametrize("by", range(4))
def test_a_tiling_for_more_workers_than_there_are_is_no_tiling(by):
    asked = Tiling.grid(2, 1).shifted(by, 4)
    for workers in range(1, 5):
        if workers > asked.highest:
            assert exact_tiling((6, 5), "dense", workers, asked).ntiles == 2
        else:
            with pytest.raises(WorkersChanged, match=f"{asked.highest + 1} workers, but {workers} are left"):
                exact_tiling((6, 5), "dense", workers, asked)
