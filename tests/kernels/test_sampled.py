"""Bodies over a sparse main operand: NumPy's answers, at non-zeros alone, in every layout and tier."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import TILINGS, config
from spartan_ng.kernels.blocks import block_sizes
from spartan_ng.kernels.compiled import bound, select
from spartan_ng.kernels.compiled.compile import compiler
from spartan_ng.kernels.compiled.select import explain_tiers
from spartan_ng.kernels.predicting import interpreted_and_saved_s
from spartan_ng.kernels.widths import stored_widths
from spartan_ng.plan.stages import Fused
from spartan_ng.worker.stages import fused
from tests.sampling import examples
from tests.test_programs import running_on

ROWS, COLUMNS, RANK = 150, 90, 7

EXPRESSIONS = {
    "log likelihood": lambda np, X, U, V: np.sum(X * np.log(U @ V.T + 1e-15)),
    "sampled product": lambda np, X, U, V: X * (U @ V.T),
    "product of the other order": lambda np, X, U, V: (U @ V.T) * X,
    "mask times product": lambda np, X, U, V: (X != 0) * (U @ V.T),
    "masked squares": lambda np, X, U, V: np.sum((X - U @ V.T) ** 2 * (X != 0)),
    "update of U": lambda np, X, U, V: (X * np.exp(U @ V.T)) @ V,
    "update of V": lambda np, X, U, V: (X * np.exp(U @ V.T)).T @ U,
    "vector of one": lambda np, X, U, V: (X * (U @ V.T)) @ V[:, 0],
    "from the left": lambda np, X, U, V: U.T @ (X * (U @ V.T)),
    "sums of columns": lambda np, X, U, V: (X * np.exp(U @ V.T)).sum(axis=0),
    "sums of rows": lambda np, X, U, V: (X * np.exp(U @ V.T)).sum(axis=1),
    "sums in a longer expression": lambda np, X, U, V: np.sqrt((X * (U @ V.T)).sum(axis=1) + 1) * U[:, 1],
    "largest": lambda np, X, U, V: (X * (U @ V.T)).max(),
    "transposed": lambda np, X, U, V: np.sum(X.T * np.exp(V @ U.T)),
    "transposed, stored": lambda np, X, U, V: X.T * np.exp(V @ U.T),
    "outer product of vectors": lambda np, X, U, V: X * np.outer(U[:, 0], V[:, 0]),
    "a product beside": lambda np, X, U, V: X * (U @ V.T) + U @ V.T,
    "a sparse view": lambda np, X, U, V: X[10:140] * (U[10:140] @ V.T),
    "two products": lambda np, X, U, V: np.sum(X * (U @ V.T) * ((U + 1) @ V.T)),
    "squares": lambda np, X, U, V: np.sum(X**2),
    "count": lambda np, X, U, V: (X > 0.5).sum(),
    "cubes of a ratio": lambda np, X, U, V: (X / 3) ** 3,
    "not sparse": lambda np, X, U, V: (X + 1).sum(axis=0) + (X < 0.5).sum(),
    "sides": lambda np, X, U, V: (X * V[:, 0] * U[:, :1] / 2).sum(axis=1),
    "clipped": lambda np, X, U, V: np.clip(X, 0, 0.5) @ V,
    "ratio": lambda np, X, U, V: (X / (U @ V.T + 1)) @ V,
    "choice": lambda np, X, U, V: np.where(X != 0, np.log(U @ V.T + 1e-15), 0),
    "choice between": lambda np, X, U, V: np.where(X > 0.5, U @ V.T, X).sum(axis=0),
    "masked sum": lambda np, X, U, V: np.log(U @ V.T + 1e-15)[X != 0].sum(),
    "sum where": lambda np, X, U, V: np.sum(U @ V.T, axis=1, where=X > 0.5),
    "mean where": lambda np, X, U, V: np.mean(U @ V.T + 1, where=X != 0) if X.any() else np.sum(X),
    "extremes": lambda np, X, U, V: X.max(axis=0) - X.min(axis=1).sum() + (X > 0.9).any() - X.min(),
    "stretched rows": lambda np, X, U, V: X * (np.broadcast_to(U[:1], U.shape) @ V.T),
    "stretched columns": lambda np, X, U, V: np.sum(X * (U @ np.broadcast_to(V[:1], V.shape).T)),
    "stretched ranks": lambda np, X, U, V: X * (U @ np.broadcast_to(V[:, :1], V.shape).T),
    "stretched before": lambda np, X, U, V: (X * (np.sqrt(np.broadcast_to(U[:1], U.shape)) @ V.T)).sum(
        axis=1
    ),
    "times a stretched one": lambda np, X, U, V: (X * (U @ V.T)) @ np.broadcast_to(V[:1], V.shape),
    "times a stack": lambda np, X, U, V: np.einsum(
        "ij,jkl->ikl", X * (U @ V.T), np.stack([V, V + 1], axis=2)
    ),
    "union": lambda np, X, U, V: np.sum((X + X[::-1]) * np.exp(U @ V.T)),
}


def data(density=0.07, dtype="f8"):
    random = np.random.default_rng(0)
    X = sparse.random_array((ROWS, COLUMNS), density=density, rng=random, format="csr", dtype="f8")
    return (
        X.astype(dtype),
        random.random((ROWS, RANK)).astype(dtype),
        random.random((COLUMNS, RANK)).astype(dtype),
    )


def plain(value):
    return value.toarray() if sparse.issparse(value) else value


def check(text, arrays, rtol=1e-10):
    X, U, V = arrays
    expected = text(np, X.toarray(), U, V)
    with config.override(small_bytes=0):
        found = text(sp, *map(sp.asarray, (X, U, V)))
        assert found.dtype == expected.dtype
        (value,) = sp.compute(found, found)[:1]
    np.testing.assert_allclose(plain(value), expected, rtol=rtol, atol=1e-12)


def sampled_stages(*arrays):
    plan = session.current().plan([a._node() for a in arrays])[0].plan
    return plan, [s for s in plan.stages if isinstance(s, Fused) and s.driver >= 0]


@pytest.mark.some(30)
@pytest.mark.parametrize("density", [0.0, 0.004, 0.07, 0.6])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_numpys_answers(name, density):
    with running_on(EmbeddedBackend(2)):
        check(EXPRESSIONS[name], data(density))


@pytest.mark.some(40)
@pytest.mark.parametrize("tiling", [None, *TILINGS])
@pytest.mark.parametrize("workers", [3])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_layout_changes_nothing(name, workers, tiling):
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling):
        check(EXPRESSIONS[name], data())


COMPILED = [
    "log likelihood",
    "sampled product",
    "mask times product",
    "masked squares",
    "update of U",
    "update of V",
    "vector of one",
    "from the left",
    "sums of columns",
    "sums of rows",
    "transposed",
    "outer product of vectors",
    "ratio",
    "choice",
    "masked sum",
    "two products",
    "squares",
    "count",
    "sides",
    "stretched rows",
    "stretched columns",
    "stretched ranks",
    "stretched before",
    "times a stretched one",
]


@pytest.mark.slow
@pytest.mark.some(5)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_loops(name, dtype):
    arrays = data(0.2, dtype)
    with running_on(EmbeddedBackend(2)), config.override(kernels="compile", small_bytes=0):
        check(EXPRESSIONS[name], arrays, rtol=1e-10 if dtype == "f8" else 1e-4)
        plan, stages = sampled_stages(EXPRESSIONS[name](sp, *map(sp.asarray, arrays)))
    for stage in stages:
        said = explain_tiers(stage, [plan.slots[r.slot].dtype for r in stage.reads])
        log = dtype == "f4" and any(r.fn in ("log", "exp") for r in stage.rows)
        assert all(("interpreted" if log else "compiled") in text for text in said)
    assert not [k.failure for k in compiler._kernels.values() if k.failure]


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("name", COMPILED)
def test_the_first_run_of_a_plan_uses_kernels_that_are_there(name, monkeypatch):
    """As the next start of a program does: what a pass at non-zeros takes is predicted."""
    chosen = []
    choose = select.Tier.choose

    def noted(*args):
        found = choose(*args)
        chosen.append(found is not None)
        return found

    monkeypatch.setattr(select.Tier, "choose", noted)
    monkeypatch.setattr(select, "SOON_S", 1e-12)
    for kernels in ("compile", "auto"):
        with running_on(EmbeddedBackend(2)), config.override(kernels=kernels):
            check(EXPRESSIONS[name], data(0.2))
    assert chosen
    assert all(chosen)


@pytest.mark.some(20)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_pass_is_predicted_to_take_as_long_as_its_nonzeros(name):
    """What is done at non-zeros alone takes in proportion to them, and never longer than at all elements."""

    def predicted_s(density):
        with config.override(small_bytes=0):
            plan, stages = sampled_stages(EXPRESSIONS[name](sp, *map(sp.asarray, data(density))))
        return [interpreted_and_saved_s(s, plan.slots)[0] for s in stages if s.is_sampled]

    few, some, all_ = map(predicted_s, (0.005, 0.01, 1.0))
    assert all(0 < a <= b for a, b in zip(few, some, strict=True))
    if len(all_) == len(some):
        assert all(a <= b for a, b in zip(some, all_, strict=True))


@pytest.mark.some(20)
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("name", [*COMPILED, "times a stack"])
def test_compiled_on_workers(name, tiling):
    with running_on(SimulatedBackend(3)), config.override(kernels="compile", tiling=tiling):
        check(EXPRESSIONS[name], data(0.2))


@pytest.mark.parametrize(
    "name",
    [
        "log likelihood",
        "update of U",
        "update of V",
        "masked squares",
        "transposed",
        "ratio",
        "choice",
        "masked sum",
        "sum where",
    ],
)
def test_the_dense_product_never_exists(name):
    with config.override(small_bytes=0):
        plan, stages = sampled_stages(EXPRESSIONS[name](sp, *map(sp.asarray, data())))
    assert len(plan.stages) == len(stages) == 1
    assert any(r.kind == "contract" and r.sampled for r in stages[0].rows)


def test_a_product_that_is_needed_everywhere_is_not_sampled():
    with config.override(small_bytes=0):
        X, U, V = map(sp.asarray, data())
        product = U @ V.T
        _, stages = sampled_stages(X * product, product)
    assert not any(r.kind == "contract" and r.sampled for s in stages for r in s.rows)


def test_the_sparser_operand_drives():
    random = np.random.default_rng(1)
    wide, thin = (sparse.random_array((80, 80), density=d, rng=random, format="csr") for d in (0.5, 0.01))
    with config.override(small_bytes=0):
        for a, b in ((wide, thin), (thin, wide)):
            product = sp.asarray(a) * sp.asarray(b)
            plan, (stage,) = sampled_stages(product)
            leaf = next(n for n in _leaves(product) if n.data.nnz == thin.nnz)
            assert plan.inputs.index(stage.reads[stage.driver].slot) == _leaves(product).index(leaf)
            np.testing.assert_allclose(plain(product.compute()), wide.toarray() * thin.toarray())


def _leaves(a):
    return list(a._node().inputs)


def test_zeros_that_are_stored_and_entries_that_are_stored_twice():
    X = sparse.csr_array(
        (np.array([1.0, 2.0, 0.0, 4.0]), np.array([3, 3, 1, 0]), np.array([0, 2, 3, 4])), (3, 5)
    )
    with config.override(small_bytes=0):
        np.testing.assert_array_equal(plain((sp.asarray(X) ** 2).compute()), X.toarray() ** 2)
        assert (sp.asarray(X) ** 2).sum() == 25


@pytest.mark.parametrize("name", ["sampled product", "log likelihood", "update of V"])
def test_single_precision(name):
    with running_on(EmbeddedBackend(2)):
        check(EXPRESSIONS[name], data(0.1, "f4"), rtol=1e-5)


SHAPES = {
    "empty rows": sparse.csr_array(
        (np.arange(1.0, 6.0), np.array([0, 3, 1, 2, 6]), np.array([0, 0, 0, 2, 2, 5, 5])), (6, 7)
    ),
    "no rows": sparse.csr_array((0, 7)),
    "no columns": sparse.csr_array((6, 0)),
    "nothing stored": sparse.csr_array((6, 7)),
    "one row": sparse.csr_array(np.array([[0.0, 2.0, 0.0, 3.0]])),
    "one column": sparse.csr_array(np.array([[0.0], [2.0], [0.0], [3.0]])),
    "one element": sparse.csr_array(np.array([[2.5]])),
    "one full row": sparse.csr_array(np.vstack([np.ones((1, 400)), np.zeros((300, 400))])),
}
"""Drivers at the edges."""


@pytest.mark.some(20)
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "name",
    ["log likelihood", "sampled product", "update of U", "update of V", "sums of columns", "transposed"],
)
def test_compiled_edges(name, shape, rank):
    random, X = np.random.default_rng(4), SHAPES[shape]
    U, V = random.random((X.shape[0], rank)), random.random((X.shape[1], rank))
    with running_on(EmbeddedBackend(2)), config.override(kernels="compile"):
        check(EXPRESSIONS[name], (X, U, V))


@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("name", ["log likelihood", "sampled product", "update of U", "update of V"])
def test_both_widths_of_indices(name, index):
    X, U, V = data(0.2)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    leaf = sp.asarray(X)._node().data
    assert leaf is not None
    assert leaf.value.indices.dtype == index
    with running_on(EmbeddedBackend(2)), config.override(kernels="compile"):
        check(EXPRESSIONS[name], (X, U, V))


@pytest.mark.parametrize("kernels", ["compile", "interpret"])
@pytest.mark.parametrize("name", ["log likelihood", "sampled product", "update of U", "sums of columns"])
def test_rows_in_any_order_and_strided_parts(name, kernels):
    X, U, V = data(0.2)
    turned = np.concatenate([np.arange(b, a, -1) - 1 for a, b in zip(X.indptr, X.indptr[1:], strict=False)])
    parts = (X.data[turned].repeat(2)[::2], X.indices[turned].repeat(3)[::3], X.indptr.repeat(2)[::2])
    strided = sparse.csr_array(parts, X.shape, copy=False)
    assert not strided.has_sorted_indices
    assert not strided.data.flags.contiguous
    with running_on(EmbeddedBackend(2)), config.override(kernels=kernels):
        check(EXPRESSIONS[name], (strided, U, V))


@pytest.mark.parametrize("name", ["log likelihood", "sums of rows", "sums of columns", "update of V"])
@pytest.mark.parametrize("density", [0.002, 0.05])
def test_threads_and_skew_change_no_bit(name, density, monkeypatch):
    monkeypatch.setattr(bound, "RUN_FLOPS", 1)
    monkeypatch.setattr(bound, "SMALL_FLOPS", 0)
    random = np.random.default_rng(5)
    X = sparse.random_array((600, 80), density=density, rng=random, format="csr")
    X = sparse.csr_array(sparse.vstack([np.ones((2, 80)), X, np.ones((1, 80))]))
    U, V = random.random((603, 4)), random.random((80, 4))
    found = []
    for threads in (1, 2, 5):
        with running_on(EmbeddedBackend(threads)), config.override(kernels="compile", small_bytes=0):
            found.append(plain(EXPRESSIONS[name](sp, *map(sp.asarray, (X, U, V))).compute()))
    np.testing.assert_allclose(found[0], EXPRESSIONS[name](np, X.toarray(), U, V), rtol=1e-10)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_runs_share_the_non_zeros():
    counts = np.sort(np.random.default_rng(6).zipf(1.5, 5000).clip(0, 900))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    bounds = bound.runs(indptr, 8)
    assert (bounds[0], bounds[-1]) == (0, 5000)
    shares = np.diff(indptr[bounds])
    assert shares.max() <= indptr[-1] / 8 + 900


@pytest.mark.parametrize("name", ["log likelihood", "update of U", "update of V", "sums of rows", "sides"])
def test_tables_are_made_anew_for_other_layouts(name):
    """One plan for the same arrays again, others of their layout, of another one, and other non-zeros."""
    X, U, V = data(0.2)
    wide = np.random.default_rng(8).random((2 * ROWS, RANK))
    programs = [(X, U, V), (X, U, V), (X, U + 1, V), (X, wide[::2], V), (X, np.asfortranarray(U), V)]
    programs += [(sparse.csr_array(X > 0.5, dtype="f8"), U, V), (X[::-1], U, V), (X * 2, U, V)]
    with running_on(EmbeddedBackend(2)), config.override(kernels="compile", small_bytes=0):
        for arrays in programs:
            check(EXPRESSIONS[name], arrays)


@pytest.mark.parametrize("name", ["sums of columns", "update of V", "from the left", "log likelihood"])
def test_long_states_are_added_in_parts(name, monkeypatch):
    monkeypatch.setattr(bound, "_SPAN", 8)
    monkeypatch.setattr(bound, "RUN_FLOPS", 1)
    monkeypatch.setattr(bound, "SMALL_FLOPS", 0)
    with running_on(EmbeddedBackend(2)), config.override(kernels="compile"):
        check(EXPRESSIONS[name], data(0.6))


def test_long_work_is_done_in_many_calls(monkeypatch):
    calls = []

    class Spy(bound.Bound):
        def run(self, turn):
            calls.append(turn)
            super().run(turn)

    monkeypatch.setattr(bound, "RUN_FLOPS", 1)
    monkeypatch.setattr(bound, "_TURN_FLOPS", 1)
    monkeypatch.setattr(bound, "SMALL_FLOPS", 0)
    monkeypatch.setattr(fused, "Bound", Spy)
    for threads in (1, 2, 40):
        calls.clear()
        for name in ("log likelihood", "update of V", "sums of rows"):
            with running_on(EmbeddedBackend(threads)), config.override(kernels="compile"):
                check(EXPRESSIONS[name], data(0.6))
        assert len(calls) > 60
        assert 0 in calls


def test_lines_far_apart_are_asked_for_ahead():
    """Large enough that lines do not stay in the cache, in both endings that look lines up."""
    random = np.random.default_rng(7)
    X = sparse.random_array((900, 800), density=0.01, rng=random, format="csr")
    U, V = random.random((900, 90)), random.random((800, 90))
    with running_on(EmbeddedBackend(2)), config.override(kernels="compile"):
        for name in ("log likelihood", "update of U", "mask times V"):
            text = {**EXPRESSIONS, "mask times V": lambda np, X, U, V: (X > 0.5) @ V}[name]
            check(text, (X, U, V))


def test_results_share_no_memory_with_their_operands():
    X, U, V = data(0.2)
    kept = X.copy()
    with running_on(EmbeddedBackend(2)):
        for kernels in ("compile", "interpret"):
            with config.override(kernels=kernels, small_bytes=0):
                ours = sp.asarray(X)
                for text in ("sampled product", "squares", "mask times product"):
                    out = EXPRESSIONS[text](sp, ours, *map(sp.asarray, (U, V))).compute()
                    if sparse.issparse(out):
                        out.data[:], out.indices[:], out.indptr[:] = 7, 0, 0
                np.testing.assert_array_equal(plain(ours.compute()), kept.toarray())


# --- random bodies -----------------------------------------------------------------------------------------


@st.composite
def bodies(draw):
    """An expression over a sparse X and Y, products of U and V, and dense sides, as text."""

    def term(depth):
        if depth == 0:
            return draw(st.sampled_from(["X", "Y", "(U @ V.T)", "D", "U[:, :1]", "V[:, 0]", "2.0", "0.5"]))
        kind = draw(
            st.sampled_from(["{} * {}", "{} * {}", "{} + {}", "{} - {}", "np.maximum({}, {})", "np.tanh({})"])
        )
        return "(" + kind.format(term(depth - 1), term(draw(st.integers(0, depth - 1)))) + ")"

    ending = draw(
        st.sampled_from(["{}", "{}.sum()", "{}.sum(axis=0)", "{}.sum(axis=1)", "({}) @ V", "({}).T @ U"])
    )
    return ending.format(f"(X * {term(draw(st.integers(1, 4)))})")


@examples(60)
@given(text=bodies(), workers=st.sampled_from([1, 2, 3]), tiling=st.sampled_from([None, *TILINGS]))
def test_random_bodies(text, workers, tiling):
    random = np.random.default_rng(3)
    X, Y = (sparse.random_array((30, 20), density=d, rng=random, format="csr") for d in (0.2, 0.1))
    names = {"U": random.random((30, 3)), "V": random.random((20, 3)), "D": random.random((30, 20))}
    expected = eval(text, {"np": np, "X": X.toarray(), "Y": Y.toarray(), **names})
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling, small_bytes=0):
        ours = {k: sp.asarray(v) for k, v in {**names, "X": X, "Y": Y}.items()}
        value = eval(text, {"np": sp, **ours}).compute()
    np.testing.assert_allclose(plain(value), expected, rtol=1e-10, atol=1e-10)


def test_sums_of_sparse_arrays_are_cut_by_what_they_store():
    """Each block costs SciPy's slices; a block of 20,000² / 128 elements holds few non-zeros."""
    X = sparse.random_array((20_000, 20_000), density=1e-5, format="csr", rng=np.random.default_rng(0))
    with config.override(small_bytes=0):
        x = sp.asarray(X)
        plan = session.current().plan([(x + x.T)._node()])[0].plan
    (stage,) = plan.stages
    assert isinstance(stage, Fused)
    tile = tuple((0, n) for n in stage.domain)
    sizes = block_sizes(stage, tile, sparse=stored_widths(stage, plan.slots))
    assert prod(-(-n // size) for n, size in zip(stage.domain, sizes, strict=True)) <= 128
