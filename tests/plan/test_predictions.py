"""What moves where it depends on the data: elements at random places, as predicted and as measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.plan.stages import Fused
from tests.moved_bytes import NEAR
from tests.moved_bytes import moved as moved_by_programs
from tests.sampling import examples
from tests.test_programs import running_on

WORKERS = 4


def moved(make):
    """Bytes predicted and measured of the last run."""
    with running_on(SimulatedBackend(WORKERS)), config.override(small_bytes=0, tiling="row"):
        make().persist()
        ran = session.current().last_run
    assert ran is not None
    plan, stats = ran
    return sum(plan.predicted_bytes), stats.bytes_moved


@pytest.mark.parametrize("n", [5_000, 30_000, 200_000])
@pytest.mark.parametrize("sort", [sp.sort, sp.argsort])
def test_a_sort_reads_samples_brackets_and_its_elements(n, sort):
    x = np.random.default_rng(n).random(n)
    predicted, measured = moved(lambda: sort(sp.asarray(x)))
    assert measured > 0
    assert predicted == pytest.approx(measured, rel=0.05)


VIEWS = {
    "all": lambda x: x,
    "from a row on": lambda x: x[7:],
    "backwards": lambda x: x[::-1],
    "every other row": lambda x: x[1::2],
    "columns": lambda x: x[:, 2:5],
    "columns backwards": lambda x: x[:, ::-3],
    "turned": lambda x: x.T,
    "turned part": lambda x: x.T[1:, ::2],
    "one row": lambda x: x[11],
    "a row again and again": lambda x: np.broadcast_to(x[3], (6, x.shape[1])),
    "few long rows": lambda x: x.reshape(2, -1)[:, 5:],
}


@examples(80)
@given(
    rows=st.integers(12, 60),
    columns=st.integers(4, 20),
    view=st.sampled_from(sorted(VIEWS)),
    held=st.sampled_from(["row", "column", "block", None]),
    result=st.sampled_from([None, "row", "duplicate"]),
    workers=st.integers(2, 5),
    first=st.sampled_from([1, 2, None]),
)
def test_reshapes_of_views_move_what_is_predicted(rows, columns, view, held, result, workers, first):
    """To the byte, wherever the view begins, and whatever lies where."""
    rows += rows % 2
    a = np.arange(rows * columns, dtype=float).reshape(rows, columns)
    with running_on(SimulatedBackend(workers)), config.override(small_bytes=0):
        x = sp.asarray(a)
        if held and not (held == "block" and workers != 4):  # others have no blocks
            x = sp.tile_as(x, held).persist()
        with config.override(tiling=result):
            expected = VIEWS[view](a)
            shape = (-1,) if first is None or expected.size % first else (first, -1)
            found = VIEWS[view](x).reshape(shape)
            before = session.current().last_run
            np.testing.assert_array_equal(np.asarray(found.persist()), expected.reshape(shape))
            ran = session.current().last_run
    if ran is not None and ran is not before:
        plan, stats = ran
        for stage, predicted, measured in zip(plan.stages, plan.predicted_bytes, stats.stages, strict=True):
            assert predicted == measured.bytes_moved, stage


@pytest.mark.parametrize("picks", [40, 400])
@pytest.mark.parametrize("tiling", ["row", "column"])
def test_a_take_moves_the_rows_that_lie_elsewhere(picks, tiling):
    rng = np.random.default_rng(picks)
    x, at = rng.random((4_000, 16)), rng.permutation(4_000)[:picks]

    def taken():
        source = sp.tile_as(sp.asarray(x), tiling).persist()
        return source[sp.asarray(at)]

    predicted, measured = moved(taken)
    assert measured > 0
    assert predicted == pytest.approx(measured, rel=0.1)


MASKED = {
    "part": lambda x, m: x[0:1][m[:1]],
    "rows": lambda x, m: x[20:60][m[20:60]],
    "backwards": lambda x, m: x[::-1][m[::-1]],
    "every other": lambda x, m: x[1::2][m[1::2]],
    "of a part": lambda x, m: x[:40][m[40:]],
    "of a column": lambda x, m: sp.nonzero(m[30:50])[0],
}


@pytest.mark.parametrize("held", ["row", "block", None])
@pytest.mark.parametrize("name", MASKED)
def test_a_mask_behind_a_view_moves_no_more_than_the_view(name, held):
    """Which rows a mask keeps, nobody knows before: here it keeps all."""
    x, m = np.arange(80.0), np.ones(80, bool)
    with running_on(SimulatedBackend(WORKERS)), config.override(small_bytes=0, tiling=held):
        a, kept = (sp.asarray(x) * 1.0).persist(), sp.asarray(m).persist()
        before = session.current().last_run
        MASKED[name](a, kept).persist()
        ran = session.current().last_run
    assert ran is not None
    assert ran is not before
    plan, stats = ran
    assert list(plan.predicted_bytes) == [s.bytes_moved for s in stats.stages]


@pytest.mark.parametrize("held", ["row", "column", "block"])
@pytest.mark.parametrize("tiling", ["row", "column", "block"])
def test_what_is_read_as_it_lies_and_turned_moves_once(tiling, held):
    x, v, c = (np.random.default_rng(0).random(s) for s in ((3, 70), 70, (70, 3)))
    with running_on(SimulatedBackend(WORKERS)), config.override(small_bytes=0):
        a = sp.tile_as(sp.asarray(x), held).persist().T
        with config.override(tiling=tiling):
            found = sp.compute(a * np.exp(-sp.asarray(c)), a.T @ sp.asarray(v))
        ran = session.current().last_run
    np.testing.assert_allclose(found[0], x.T * np.exp(-c))
    np.testing.assert_allclose(found[1], x @ v)
    assert ran is not None
    plan, stats = ran
    fused = [[(r.slot, r.axes) for r in s.reads] for s in plan.stages if isinstance(s, Fused)]
    assert any(len(set(axes)) < len(axes) for axes in fused)
    assert list(plan.predicted_bytes) == [s.bytes_moved for s in stats.stages]


def test_a_scan_along_the_columns_of_a_sparse_array_brings_what_is_stored():
    s = sparse.random_array((4_000, 300), density=0.01, rng=np.random.default_rng(0), format="csr")
    predicted, measured = moved(lambda: np.cumsum((sp.asarray(s).T * 1.5) * sp.asarray(s)[:, 3], 0))
    assert measured > 0
    assert predicted == pytest.approx(measured, rel=0.1)


SPARSE_PARTS = {
    "a column": lambda s: s[:, 36],
    "columns": lambda s: s[:, 3:9],
    "rows": lambda s: s[500:1_700],
    "a turned row": lambda s: s.T[3] * 2,
    "all": lambda s: s.sum(0),
    "two columns": lambda s: s[:, 36] * s[:, 3],
    "a product": lambda s: s.T @ s[:, 36],
}


@pytest.mark.parametrize("tiling", ["row", "duplicate", None])
@pytest.mark.parametrize("name", SPARSE_PARTS)
def test_parts_of_sparse_arrays_bring_the_ends_of_their_rows(name, tiling):
    s = sparse.random_array((4_000, 300), density=0.01, rng=np.random.default_rng(0), format="csr")
    with running_on(SimulatedBackend(WORKERS)), config.override(small_bytes=0):
        held = sp.tile_as(sp.asarray(s), "row").persist()
        with config.override(tiling=tiling):
            SPARSE_PARTS[name](held).persist()
        ran = session.current().last_run
    assert ran is not None
    plan, stats = ran
    assert sum(plan.predicted_bytes) == pytest.approx(stats.bytes_moved, rel=0.05)


@pytest.mark.slow
def test_random_programs_move_what_is_predicted():
    """`python -m tests.moved_bytes` lists those that do not."""
    found = list(moved_by_programs(range(60)))
    predicted, measured = sum(m.predicted for m in found), sum(m.measured for m in found)
    assert measured > 10_000
    assert predicted == pytest.approx(measured, rel=NEAR)
    assert sum(m.is_near for m in found) >= 0.95 * len(found)


def _assigned(x):
    made = sp.zeros((7, 5)) + x[0, 0]
    made[2] = x[1]
    made[:, 3] = x[:, 2]
    made[1:6:2, 1] = x[0, 4]
    return made


PIECES = {
    "stacked rows": lambda x: sp.stack([x[0] + 1, x[1] + 2, x[2] + 3]),
    "stacked columns": lambda x: sp.stack([x[:, 0] + 1, x[:, 1] + 2], axis=1),
    "rows and arrays": lambda x: sp.vstack([x, x.sum(0), x * 2, x.max(0)]),
    "assigned": _assigned,
}


@pytest.mark.parametrize("tiling", ["row", "column", "block"])
@pytest.mark.parametrize("name", PIECES)
def test_pieces_move_to_those_who_have_their_place(name, tiling):
    """A row that is stacked has no axis for the rows: who has other rows does not ask for it."""
    x = np.arange(35.0).reshape(7, 5)
    with running_on(SimulatedBackend(WORKERS)), config.override(small_bytes=0, tiling=tiling):
        given = sp.asarray(x) * 1.0
        given.persist()
        made = PIECES[name](given)
        made.persist()
        ran = session.current().last_run
    assert ran is not None
    plan, stats = ran
    assert list(plan.predicted_bytes) == [s.bytes_moved for s in stats.stages]
