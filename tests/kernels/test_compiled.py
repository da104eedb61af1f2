"""Compiled loops against NumPy: every formula and fold, dtypes, layouts, and bodies with calls in between."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import spartan_ng as snp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.kernels.compiled.compile import compiler
from spartan_ng.kernels.compiled.emit import emit
from spartan_ng.kernels.compiled.folds import FOLD_TEXTS, PRODUCT
from spartan_ng.kernels.compiled.formulas import FORMULAS, obstacle
from spartan_ng.kernels.compiled.layout import lay_out
from spartan_ng.kernels.compiled.segments import Ending, NumpyStep, Operand, Segment
from spartan_ng.kernels.compiled.select import explain_tiers, prepare_stage
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.plan.rows import Row
from spartan_ng.plan.stages import Fused
from tests.kernels.samples import sample

N = 3001
"""Elements: some strips and a rest."""
FLOAT = np.dtype(np.float64)
VECTOR_MATH = ("exp", "log", "expit", "erf")


def evaluate(node, kernels):
    with config.override(kernels=kernels), np.errstate(all="ignore"):
        return session.evaluate([node])[0].value


def fused_stages(node):
    plan = session.current().plan([node])[0].plan
    return plan, [s for s in plan.stages if isinstance(s, Fused)]


def compiled(node, whole=True):
    """The value by compiled loops, after a check that there are such loops (and nothing else, if `whole`)."""
    plan, stages = fused_stages(node)
    value = evaluate(node, "compile")
    assert not [k.failure for k in compiler._kernels.values() if k.failure]
    found = []
    for stage in stages:
        operands = [(plan.slots[r.slot].dtype, r.shape, (0,) * len(r.shape)) for r in stage.reads]
        choice = prepare_stage(stage, tuple((0, n) for n in stage.domain), tuple(operands))
        if choice is not None:
            found.append(choice.body)
    assert found, [explain_tiers(s, [plan.slots[r.slot].dtype for r in s.reads]) for s in stages]
    if whole:
        assert all(b.is_whole for b in found)
    return value


def run_segment(rows, endings, inputs):
    """All `rows` (and folds of the first input) in one kernel; the values of rows and endings, in order."""
    shape = inputs[0].shape
    space = tuple(enumerate(shape))
    axes = tuple(range(len(shape)))
    operands = tuple(Operand(i, i, axes, x.dtype) for i, x in enumerate(inputs))
    numbered = tuple(enumerate(rows, len(inputs)))
    segment = Segment(space, operands, numbered, tuple(i for i, _ in numbered), tuple(endings))
    outs = [np.empty(shape, r.dtype) for r in rows]
    outs += [np.empty(tuple(shape[k] for k in e.kept), e.dtype) for e in endings]
    arrays = [*inputs, *outs]
    strides = [x.strides for x in arrays[: len(arrays) - len(endings)]]
    for e, out in zip(endings, outs[len(rows) :], strict=True):
        strides.append(tuple(out.strides[e.kept.index(k)] if k in e.kept else 0 for k in axes))
    widths = [x.itemsize for x in arrays]
    layout = lay_out(segment, strides, widths, shape, (True,) * len(shape))
    fields = [math.prod(shape[k] for k in loop) for loop in layout.loops]
    for x, along in zip(arrays, strides, strict=True):
        fields += [x.ctypes.data, *(along[loop[-1]] for loop in layout.loops)]
    kernel = compiler.kernel(emit([(segment, layout)]))
    compiler.request(kernel)
    assert compiler.wait()
    assert kernel.function is not None, kernel.failure
    kernel.function(np.array([fields], np.int64))
    return outs


def plain_row(kind, fn, args, dtype, shape):
    return Row(kind, fn, args, (), np.dtype(dtype), shape, tuple(range(len(shape))))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_formulas_mean_what_numpy_means(dtype):
    dtype = np.dtype(dtype)
    inputs = [sample(dtype, 0), sample(dtype, 1), sample("?", 2)]
    rows, wanted = [], []
    for name in FORMULAS:
        args = (2, 0, 1) if name == "where" else tuple(range(ELEMENTWISE[name].nin))
        operands = [inputs[a] for a in args]
        try:
            with np.errstate(all="ignore"):
                value = ELEMENTWISE[name].function(*operands)
        except TypeError:  # NumPy has no such loop
            continue
        row = plain_row("map", name, args, value.dtype, (N,))
        if not obstacle(row, [o.dtype for o in operands]):
            rows.append(row)
            wanted.append(value)
    assert {r.fn for r in rows} >= {"where", "equal", "logical_and"}
    for row, got, value in zip(rows, run_segment(rows, [], inputs), wanted, strict=True):
        rtol = 2e-15 if row.fn in VECTOR_MATH else 0
        np.testing.assert_allclose(got, value, rtol=rtol, err_msg=f"{row.fn} {dtype}")


def test_every_formula_is_tried():
    tried = {n for n, f in FORMULAS.items() if set(f.kinds) <= set("fdiub")}
    assert tried == set(FORMULAS)
    assert set(VECTOR_MATH) == {n for n, f in FORMULAS.items() if f.kinds == "d"}


def probe(node):
    """An elementwise node behind a second row, so that the stage is worth compiling."""
    return build.map_("positive", node)


@pytest.mark.parametrize(("name", "low", "high"), [("exp", -746, 710), ("log", -745, 709), ("erf", -7, 7)])
def test_vector_math_over_the_whole_range(name, low, high):
    x = np.concatenate([np.linspace(low, high, 100_000), np.linspace(-1, 1, 1001) * 1e-8])
    if name == "log":
        x = np.concatenate([np.exp(x), [5e-324, 1e-310, 2.2250738585072014e-308, 1.7e308, 0.0, -1.0]])
    with np.errstate(all="ignore"):
        wanted = ELEMENTWISE[name].function(x)
    got = compiled(probe(build.map_(name, build.constant(x))))
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    with np.errstate(all="ignore"):
        assert np.where(same, 0, np.abs(got - wanted) / np.spacing(np.abs(wanted))).max() <= 4


@pytest.mark.parametrize("source", ["f4", "f8", "i1", "i8", "u4", "?"])
def test_casts(source):
    x = sample(source, 0)
    targets = [
        t for t in ("f4", "f8", "i2", "i8", "u1", "?") if x.dtype.kind != "f" or np.dtype(t).kind in "fb"
    ]
    rows = [plain_row("map", "cast", (0,), t, (N,)) for t in targets if np.dtype(t) != x.dtype]
    for row, got in zip(rows, run_segment(rows, [], [x]), strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, x.astype(row.dtype), err_msg=f"{source} to {row.dtype}")


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8", "?"])
def test_folds_over_every_axis(dtype):
    x = sample(dtype, 3, 60 * 70).reshape(60, 70)
    tame = np.random.default_rng(0).uniform(0.9, 1.1, x.shape).astype(dtype)
    for values, names in (
        (x, [n for n in FOLD_TEXTS if n not in ("add", "multiply", PRODUCT)]),
        (tame, ["add", "multiply"]),
    ):
        folds = [n for n in names if values.dtype.kind in FOLD_TEXTS[n].kinds]
        cases = [(n, kept) for n in folds for kept in ((1,), (0,), ())]
        endings = [
            Ending(i + 9, n, (0,), kept, values.dtype, tuple((k, values.shape[k]) for k in kept))
            for i, (n, kept) in enumerate(cases)
        ]
        for (name, kept), got in zip(cases, run_segment([], endings, [values]), strict=True):
            axes = tuple(k for k in (0, 1) if k not in kept)
            with np.errstate(all="ignore"):
                wanted = getattr(np, name).reduce(values, axis=axes, dtype=values.dtype)
            rtol = {"f4": 1e-3, "f8": 1e-12}.get(dtype, 0)
            np.testing.assert_allclose(got, wanted, rtol=rtol, err_msg=f"{name} {axes}")


@pytest.mark.parametrize("name", ["add", "maximum", "fmin", "fmax"])
def test_masked_folds_skip_what_the_mask_leaves_out(name):
    x = np.random.default_rng(1).standard_normal(N)
    x[::7] = np.nan
    mask = ~np.isnan(x) & (x > -1)
    node = build.fold(name, build.constant(x), (0,), where=build.constant(mask))
    np.testing.assert_allclose(compiled(node), getattr(np, name).reduce(x[mask]), rtol=1e-13)


def test_extremes_of_nothing_but_nan():
    x = np.full(N, np.nan)
    for name in ("maximum", "minimum", "fmax", "fmin"):
        assert np.isnan(compiled(build.fold(name, build.constant(x), (0,))))


def test_a_sum_is_as_precise_as_numpys():
    x = np.random.default_rng(2).random(2_000_000) * np.logspace(-8, 8, 2_000_000)
    exact = math.fsum(x)
    got = compiled(build.fold("add", build.constant(x), (0,)))
    assert abs(got - exact) <= 2 * abs(x.sum() - exact) + 4 * np.spacing(exact)


def test_only_sums_are_reordered():
    """(1 + tiny) - 1 and x * x - x * x keep NumPy's value: no algebra, no fused multiply-add."""
    x = np.random.default_rng(3).random(N)
    a, one = build.constant(x), build.constant(1.0)
    lost = build.map_(
        "subtract", build.map_("add", build.map_("multiply", a, build.constant(1e-17)), one), one
    )
    np.testing.assert_array_equal(compiled(lost), (x * 1e-17 + 1.0) - 1.0)
    square = build.map_("multiply", a, a)
    twice = build.map_("subtract", build.map_("multiply", square, a), build.map_("multiply", a, square))
    np.testing.assert_array_equal(compiled(twice), x * x * x - x * (x * x))


def matrices():
    random = np.random.default_rng(4)
    return random.standard_normal((1999, 23)), random.standard_normal(23), random.random(1999)


def logistic_gradient(X, w, y):
    z = build.matmul(X, w, FLOAT)
    one = build.constant(1.0)
    p = build.map_("divide", one, build.map_("add", one, build.map_("exp", build.map_("negative", z))))
    return build.matmul(build.transpose(X, (1, 0)), build.map_("subtract", p, y), FLOAT)


@pytest.mark.parametrize("order", ["C", "F"])
def test_row_template_gradient(order):
    X, w, y = matrices()
    node = logistic_gradient(*map(build.constant, (np.asarray(X, order=order), w, y)))
    np.testing.assert_allclose(compiled(node), X.T @ (1 / (1 + np.exp(-(X @ w))) - y), rtol=1e-11)


def softmax(X):
    n = X.shape[0]
    e = build.map_("exp", build.map_("subtract", X, build.reshape(build.fold("maximum", X, (1,)), (n, 1))))
    return build.map_("divide", e, build.reshape(build.fold("add", e, (1,)), (n, 1)))


def test_row_template_softmax():
    X = matrices()[0]
    e = np.exp(X - X.max(1, keepdims=True))
    np.testing.assert_allclose(compiled(softmax(build.constant(X))), e / e.sum(1, keepdims=True), rtol=1e-13)


def test_broadcasting_along_either_axis():
    X, w, y = matrices()
    node = build.map_(
        "add",
        build.map_("multiply", build.constant(X), build.constant(w)),
        build.reshape(build.constant(y), (len(y), 1)),
    )
    np.testing.assert_array_equal(compiled(node), X * w + y[:, None])


VIEWS = {
    "every second": lambda x: x[::2, ::3],
    "reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "one column broadcast": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


@pytest.mark.parametrize(("first", "second"), [(a, b) for a, b in pairwise([*VIEWS, *VIEWS]) if a != b][:4])
def test_operands_of_any_strides(first, second):
    square = np.random.default_rng(5).standard_normal((151, 151))
    a, b = VIEWS[first](square), VIEWS[second](square * 2)
    rows, columns = min(a.shape[0], b.shape[0]), min(a.shape[1], b.shape[1])
    a, b = a[:rows, :columns], b[:rows, :columns]
    x, y = build.constant(a), build.constant(b)
    values = build.map_("add", build.map_("multiply", x, y), x)
    np.testing.assert_array_equal(evaluate(values, "compile"), a * b + a)
    for axes in ((0,), (1,), (0, 1)):
        got = evaluate(build.fold("add", values, axes), "compile")
        np.testing.assert_allclose(got, (a * b + a).sum(axes), rtol=1e-11)


def test_calls_between_loops():
    """arctan2 and sin have no formula: they stay NumPy calls on the loops' buffers."""
    random = np.random.default_rng(6)
    a, b = random.standard_normal((2, 300, 411))
    x, y = build.constant(a), build.constant(b)
    angle = build.map_("arctan2", build.map_("add", build.map_("multiply", x, y), y), x)
    node = build.map_("subtract", build.map_("multiply", build.map_("sin", angle), x), y)
    wanted = np.sin(np.arctan2(a * b + b, a)) * a - b
    np.testing.assert_allclose(compiled(node, whole=False), wanted, rtol=1e-14)
    total = compiled(build.fold("add", node, (0,)), whole=False)
    np.testing.assert_allclose(total, wanted.sum(0), rtol=1e-11, atol=1e-12)


def test_explanation_says_what_stays_interpreted():
    x = build.constant(np.ones(N))
    node = build.map_("add", build.map_("multiply", build.map_("sin", x), x), x)
    _, (stage,) = fused_stages(node)
    lines = explain_tiers(stage, [FLOAT] * len(stage.reads))
    assert lines == ["sin: interpreted (NumPy's own loop)", "multiply > add: compiled once hot"]


def test_foreign_dtypes_stay_interpreted():
    for dtype in ("c16", "f2", ">f8"):
        x = build.constant(np.ones(N, dtype))
        node = build.map_("add", build.map_("multiply", x, x, dtype=x.dtype), x, dtype=x.dtype)
        plan, (stage,) = fused_stages(node)
        operands = tuple((plan.slots[r.slot].dtype, r.shape, (16,)) for r in stage.reads)
        assert prepare_stage(stage, ((0, N),), operands) is None
        np.testing.assert_array_equal(evaluate(node, "compile"), np.full(N, 2, dtype))


def test_integer_division_keeps_numpys_rules_in_a_mixed_stage():
    a = np.array([7, -7, 5, np.iinfo(np.int64).min, 0] * 400)
    b = np.array([2, 2, 0, -1, 0] * 400)
    x, y = build.constant(a), build.constant(b)
    node = build.map_("add", build.map_("multiply", build.map_("floor_divide", x, y), y), x)
    with np.errstate(all="ignore"):
        wanted = (a // b) * b + a
    got = compiled(node, whole=False)
    np.testing.assert_array_equal(got, wanted)


def test_runs_of_one_plan_give_the_same_bits():
    X = np.random.default_rng(7).standard_normal((40_000, 11))
    node = build.fold(
        "add", build.map_("exp", build.map_("sqrt", build.map_("absolute", build.constant(X)))), (0,)
    )
    first = compiled(node)
    for _ in range(3):
        np.testing.assert_array_equal(evaluate(node, "compile"), first)


def test_steps_name_their_reason():
    x = build.constant(np.ones((N, 3)))
    product_ = build.matmul(build.map_("exp", x), build.constant(np.ones((3, 4))), FLOAT)
    plan, stages = fused_stages(build.map_("add", build.map_("square", product_), product_))
    steps = [
        step
        for s in stages
        if (c := prepare_stage(s, tuple((0, n) for n in s.domain), _packed(plan, s))) is not None
        for step in c.body.steps
    ]
    assert "a matrix product" in [s.reason for s in steps if isinstance(s, NumpyStep)]


def _packed(plan, stage):
    return tuple((plan.slots[r.slot].dtype, r.shape, (8,) * len(r.shape)) for r in stage.reads)


@pytest.mark.parametrize("columns", [20, 7])
def test_tiles_no_larger_than_a_block_that_lie_in_two(columns):
    random = np.random.default_rng(0)
    a, x = random.random((100, 2)), random.random((100, columns))
    backend = SimulatedBackend(3)
    session.use(backend)
    try:
        with config.override(small_bytes=0, kernels="compile"):
            with config.override(tiling="column"):
                left, right = snp.persist(snp.asarray(a) * 1.0, snp.asarray(x) * 1.0)
            got = (left.T @ (right * (1 - right * right))).compute()
    finally:
        backend.close()
        session.use(EmbeddedBackend())
    np.testing.assert_allclose(got, a.T @ (x * (1 - x * x)), rtol=1e-12)
