"""Programs that are one NumPy call: the values of a plan, and only where a plan has nothing to bring."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
import warnings
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.kernels.direct import run_direct, run_stepwise, stepwise_s

_windows: Any = numpy.lib.stride_tricks.sliding_window_view
PROGRAMS = {
    "map": lambda x: x + 1,
    "cast": lambda x: x.astype("f4"),
    "where": lambda x: np.where(x > 3, x, 0.0),
    "fold": lambda x: x.sum(axis=0),
    "mean": lambda x: x.mean(),
    "argmax": lambda x: x.argmax(axis=1),
    "scan": lambda x: np.cumsum(x, axis=1),
    "slice": lambda x: x[::-2, 1:] * 2,
    "turned": lambda x: x.T.copy(),
    "reshape": lambda x: x.T.reshape(-1),
    "roll": lambda x: np.roll(x, 3, 1),
    "assign": lambda x: _assigned(x),
    "product": lambda x: x @ x.T,
    "sort": lambda x: np.sort(x, axis=0),
    "filter": lambda x: x[x > 5],
    "take": lambda x: x[:, [3, 0, 3]],
    "windows": lambda x: np.array(_windows(x, 3, 1)),
    "windows of both": lambda x: _windows(x, (2, 3)).sum(axis=(2, 3)),
    "some windows": lambda x: _windows(x, 2, 0)[1:3].max(axis=-1) + 1,
    "weighted windows": lambda x: (_windows(x, 4, 1) * x[0, :4]).sum(axis=-1),
    "places of windows": lambda x: x[np.arange(3)[:, None] + np.arange(2)],
    "no windows": lambda x: x[np.arange(0)[:, None] + np.arange(2)].sum(axis=1),
    "search": lambda x: np.searchsorted(np.sort(x[0]), x),
    "zeros": lambda x: np.zeros(x.shape),
    "full": lambda x: np.full(x.shape, -0.0),
}


def _assigned(x):
    y = x.copy()
    y[1:, ::2] = 7
    return y


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_a_plans(name, monkeypatch):
    values = numpy.random.default_rng(0).integers(0, 9, (6, 8)) * 1.5
    found = {}
    for direct in (True, False):
        monkeypatch.setattr(
            session.Session, "_direct", _always if direct else lambda self, roots, order: None
        )
        with config.override(small_bytes=0):
            found[direct] = PROGRAMS[name](np.array(values)).compute()
    numpy.testing.assert_array_equal(found[True], found[False])
    assert found[True].dtype == found[False].dtype
    numpy.testing.assert_array_equal(numpy.signbit(found[True]), numpy.signbit(found[False]))


def _always(self, roots, order):
    values = run_direct(roots, 1 << 20, order=order)
    assert values is not None
    return [ArrayRef(v.shape, v.dtype, value=v) for v in values]


def test_a_result_has_memory_of_its_own():
    x = np.zeros(1 << 18)
    y = x[1:].copy().persist()
    z = np.broadcast_to(x, (2, 1 << 18)).copy().persist()
    x[:] = 5
    assert y.max() == 0
    assert z.max() == 0


def test_several_large_operators_have_a_plan():
    x = np.ones(1 << 18)
    assert run_direct([(x * 2)._node()], 1 << 25) is not None
    assert run_direct([(x * 2)._node()], 1 << 20) is None
    assert run_direct([(x * 2 + x)._node()], 1 << 23) is None
    assert run_direct([np.sin(x)._node()], 1 << 25) is None


def test_what_numpy_has_no_function_for_has_a_plan():
    x, rows = np.array(numpy.array([1, 0, 1])), np.array(numpy.ones((3, 2)))
    assert run_direct([build.bincount(x._node(), 2, rows._node())], 1 << 25) is None
    assert run_direct([build.bincount(x._node(), 2)], 1 << 25) is not None
    assert run_direct([build.bincount(x._node(), 2)], 0) is None


def test_distinct_values_are_sorted_whatever_their_number():
    values = numpy.array([30, -1, 7, 30, 10**6, 0] * 9)
    for small_bytes in (0, 1 << 20):
        with config.override(small_bytes=small_bytes):
            found = np.unique_values(np.array(values)).compute()
            numpy.testing.assert_array_equal(found, numpy.unique(values))


def test_lone_folds_and_small_products_may_touch_more():
    """Where threads are few, one thread of NumPy reads memory as fast; a product's BLAS has its own."""
    x = build.data(ArrayRef((3, 50_000), numpy.dtype(float), value=numpy.ones((3, 50_000))))
    total = build.fold("add", x, (0, 1))
    assert run_direct([total], 1 << 10, threads=2) == [150_000]
    assert run_direct([total], 1 << 10, threads=3) is None
    assert run_direct([build.fold("add", x, (0,))], 1 << 10, threads=2) is None
    assert run_direct([build.fold("add", build.map_("negative", x), (0, 1))], 1 << 10, threads=2) is None
    product = build.matmul(x, build.transpose(x, (1, 0)), x.dtype)
    found = run_direct([product], 1 << 10, threads=8)
    assert found is not None
    numpy.testing.assert_array_equal(found[0], numpy.full((3, 3), 50_000.0))


@pytest.mark.parametrize("name", ["sum", "max", "min", "argmax", "argmin", "any", "all"])
@pytest.mark.parametrize("view", ["all of it", "a part", "turned"])
def test_lone_folds_of_files_are_shared_out(name, view, tmp_path):
    """Each thread finds its own pages, of a file that may be larger than the memory."""
    values = numpy.random.default_rng(0).integers(0, 9, (300, 500)) * 1.5
    numpy.save(tmp_path / "x.npy", values)
    shown = {"all of it": lambda a: a, "a part": lambda a: a[1:-1], "turned": lambda a: a.T}[view]
    folded = getattr(shown(np.load(tmp_path / "x.npy")), name)()
    assert run_direct([folded._node()], 1 << 10, threads=2) is None
    numpy.testing.assert_allclose(folded.compute(), getattr(shown(values), name)())


PRODUCTS_ALONG_LINES = {
    "of rows": lambda np, a: np.einsum("ij,ij->i", a, a),
    "of parts": lambda np, a: np.einsum("ij,ij->i", a[1:], a[:-1]),
    "of matrices": lambda np, a: np.einsum("ijk,ijk->i", a.reshape(-1, 50, 60), a.reshape(-1, 50, 60)),
}


@pytest.mark.parametrize("name", PRODUCTS_ALONG_LINES)
def test_products_along_lines_of_files_are_shared_out(name, tmp_path):
    """What is no matrix with a vector was taken for one, which BLAS shares."""
    values = numpy.random.default_rng(0).random((400, 3000))
    values.tofile(tmp_path / "x.bin")
    made = PRODUCTS_ALONG_LINES[name]
    with config.override(small_bytes=1 << 10):
        found = made(np, np.from_raw(tmp_path / "x.bin", values.shape, float))
        assert run_direct([found._node()], 1 << 10, threads=2) is None
        assert run_direct([made(np, np.asarray(values))._node()], 1 << 10, threads=2) is not None
        numpy.testing.assert_allclose(numpy.asarray(found), made(numpy, values))


def test_a_lone_product_of_wide_matrices_is_left_to_blas():
    a, row = np.ones((600, 600)), np.ones((600, 1))
    square, thin = (
        build.matmul(a._node(), a._node(), a.dtype),
        build.matmul(row._node(), row.T._node(), a.dtype),
    )
    (found,) = run_direct([square], 1 << 10, threads=2) or [None]
    numpy.testing.assert_array_equal(found, numpy.full((600, 600), 600.0))
    assert run_direct([build.map_("negative", square)], 1 << 10, threads=2) is None
    assert run_direct([thin], 1 << 10, threads=2) is None


def test_a_product_that_adds_far_more_than_it_makes_is_shared_out():
    """BLAS's threads wait for each other at every panel of it."""
    for rows, is_direct in ((2_000, True), (20_000, False)):
        a = build.data(ArrayRef((rows, 100), numpy.dtype(float), value=numpy.ones((rows, 100))))
        moments = build.matmul(build.transpose(a, (1, 0)), a, a.dtype)
        assert (run_direct([moments], 1 << 10, threads=2) is not None) == is_direct


@pytest.mark.parametrize(("shape", "ndim"), [((300_000,), 1), ((300, 1000), 2), ((3000, 100), 1)])
@pytest.mark.parametrize("small_bytes", [1 << 20, 0])
def test_rows_kept_by_a_mask_are_numpys(shape, ndim, small_bytes):
    theirs = numpy.random.default_rng(0).random(shape)
    mask = theirs > 0.4 if ndim == len(shape) else theirs[:, 0] > 0.4
    with config.override(small_bytes=small_bytes):
        ours = np.array(theirs)
        kept = ours[np.array(mask)]
        numpy.testing.assert_array_equal(kept, theirs[mask])
        assert kept.dtype == theirs.dtype


def test_trues_are_counted():
    flags = numpy.random.default_rng(0).random((700, 500)) > 0.3
    ours = np.array(flags)
    with config.override(small_bytes=0):
        assert int(ours.sum()) == int(np.count_nonzero(ours)) == int(flags.sum())
        numpy.testing.assert_array_equal(ours.sum(axis=0), flags.sum(axis=0))
        assert ours.sum(dtype=numpy.float32).dtype == numpy.float32
        assert np.sum(ours, dtype=int).dtype == int


VECTORS = {
    "mvt": lambda a, b, x, y: [x + a @ y, y + x @ b],
    "gemver": lambda a, b, x, y: [a @ (x * 2 + y), (y @ b) / 3],
    "residual": lambda a, b, x, y: [y - a @ x, b @ y - x],
    "one after the other": lambda a, b, x, y: [b @ (a @ x)],
    "sums of vectors": lambda a, b, x, y: [(a @ x).sum(), (b @ y).max()],
}
PASSES = {
    "a map": lambda a, b, x, y: [(a * 2) @ y, b @ x],
    "a fold": lambda a, b, x, y: [a @ x, a.sum(axis=0)],
    "an outer product": lambda a, b, x, y: [a @ x, b + x[:, None] * y],
}


def _roots(program):
    rng = numpy.random.default_rng(0)
    values = [rng.random(shape) for shape in [(700, 700), (700, 700), (700,), (700,)]]
    with config.override(small_bytes=0):
        asked = program(*(np.array(v) for v in values))
    return [x._node() for x in asked], program(*values)


@pytest.mark.parametrize("name", VECTORS)
def test_products_of_matrices_and_vectors_are_blas_s_together(name):
    roots, wanted = _roots(VECTORS[name])
    found = run_direct(roots, 1 << 20, threads=2)
    assert found is not None
    for value, right in zip(found, wanted, strict=True):
        numpy.testing.assert_allclose(value, right, rtol=1e-12)


@pytest.mark.parametrize("name", PASSES)
def test_what_else_reads_a_matrix_is_a_plan_s(name):
    roots, _ = _roots(PASSES[name])
    assert run_direct(roots, 1 << 20, threads=2) is None


@pytest.mark.parametrize(
    "stretched",
    [lambda x: np.repeat(x, 2), lambda x: np.tile(x, 2), lambda x: x.reshape(2, -1).T.reshape(-1)],
)
def test_a_view_that_numpy_has_to_copy_is_no_view(stretched):
    """A lone fold of it would have all of its elements in memory."""
    x = build.data(ArrayRef((50_000,), numpy.dtype(float), value=numpy.ones(50_000)))
    node = stretched(wrap_node(x))._node()
    total = build.fold("add", node, (0,))
    assert run_direct([total], node.nbytes - 1, threads=2) is None
    assert run_direct([total], node.nbytes, threads=2) == [node.size]


def test_a_first_program_imports_nothing_that_compiles() -> None:
    """Half of what a first product waited for."""
    program = (
        "import sys, spartan_ng.kernels.direct; print('spartan_ng.kernels.compiled.compile' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_products_that_need_all_of_the_last_one_are_blass():
    """One pass for both would read their matrix once, where one needs rows of the other as they come."""
    A = np.asarray(numpy.ones((800, 800)))
    x, y = (np.asarray(numpy.full(800, v)) for v in (1.0, 2.0))
    with config.override(small_bytes=0):
        found = A @ (A @ x), A @ (A @ (A @ x + y) * 2), (x @ A) @ A, A.T @ (A.T @ y)
        alone = [run_direct([a._node()], 1 << 20) is not None for a in found]
        shared = A.T @ (A @ x), (x @ A) @ A.T, A @ x + A @ y, A @ (A @ x) + A @ y, (A @ x) * (x @ A)
        assert alone == [True] * len(alone)
        assert [run_direct([a._node()], 1 << 20) for a in shared] == [None] * len(shared)
        for _ in range(20):
            x = A @ (x / 800) + y - y
        assert run_direct([x._node()], 1 << 20) is not None


def test_windows_are_not_made() -> None:
    """A step for each node makes neither the windows nor their places, which are views."""
    x = np.array(numpy.arange(30_000.0))
    with config.override(small_bytes=0):
        root = _windows(x, 100).max(axis=1)._node()
    order = topological([root])
    tracemalloc.start()
    (found,) = run_stepwise([root], order)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numpy.testing.assert_array_equal(found, numpy.arange(99.0, 30_000))
    assert peak < 10 * x.nbytes
    assert stepwise_s([root], order) < 0.1


@pytest.mark.parametrize("state", ["warn", "ignore", "raise"])
@pytest.mark.parametrize(
    "function",
    [
        lambda xp, a: xp.sqrt(a),
        lambda xp, a: xp.log(a) + xp.log(a),
        lambda xp, a: xp.isnan(a / (a - a)).sum(),
        lambda xp, a: xp.cumsum(a * 1e308),
    ],
    ids=["sqrt", "twice", "two kinds", "scan"],
)
def test_errors_of_numbers_are_told_of_the_users_line(function: Any, state: Any) -> None:
    """Whatever NumPy finds, each once, and not of the line of ours that has called NumPy."""
    a = numpy.arange(-5.0, 5.0)
    with config.override(small_bytes=0):
        root = function(np, np.asarray(a))._node()
    told = []
    for run in (lambda: function(numpy, a), lambda: run_stepwise([root], topological([root]))):
        with warnings.catch_warnings(record=True) as seen, numpy.errstate(all=state, under="ignore"):
            warnings.simplefilter("always")
            try:
                run()
            except FloatingPointError as error:
                told.append({str(error)})
                continue
        told.append({str(w.message) for w in seen})
    assert {w.filename for w in seen} <= {__file__}
    assert told[0] == told[1]
    assert (told[0] == set()) is (state == "ignore")
