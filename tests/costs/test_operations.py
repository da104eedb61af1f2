"""One count of operations: a step counts the same as a node of a graph and as a row of a stage."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.arrays import ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import of_node, volume, work_of_node
from spartan_ng.costs.tuned import (
    BLAS_SPEEDUP,
    LINE_FLOPS,
    LOOKUP_FLOPS,
    NEAR_BYTES,
    NEAR_LOOKUP_FLOPS,
    PANEL_FLOPS,
    RESULT_FLOPS,
    TURNED,
    USER_FLOPS,
)
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.joins import AXIS_FUNCTIONS
from spartan_ng.ops.scans import SCANS
from spartan_ng.plan.lower import lower
from spartan_ng.plan.settings import Settings

F8 = np.dtype(float)


def leaf(*shape: int) -> Node:
    return build.data(ArrayRef(shape, F8))


def planned(node: Node) -> int:
    plan = lower(topological([node]), [node], Settings(Profile()), "key")
    return sum(stage.operations(plan.slots) for stage in plan.stages)


UNARY = sorted(
    name
    for name, row in ELEMENTWISE.items()
    if (row.nin, row.nout) == (1, 1) and "d->d" in getattr(row.function, "types", ())
)


@pytest.mark.parametrize("name", UNARY)
def test_a_row_of_the_table_counts_what_it_says(name: str) -> None:
    node = build.map_(name, leaf(30, 40))
    assert of_node(node) == planned(node) == 1200 * ELEMENTWISE[name].flops


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "hypot"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_a_fold_goes_over_its_operand(name: str, axes: tuple[int, ...]) -> None:
    node = build.fold(name, leaf(30, 40), axes)
    assert of_node(node) == planned(node) == 1200 * FOLDS[name].flops


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_are_found_line_by_line(name: str, axis: int) -> None:
    node = build.fold(name, leaf(30, 40), (axis,))
    each = FOLDS[name].flops * (1 if axis == 1 else TURNED)
    assert of_node(node) == planned(node) == 1200 * each + LINE_FLOPS * (1200 // (30, 40)[axis])


def test_a_fold_of_an_operand_counts_its_elements_and_not_those_of_the_pass() -> None:
    """As the squares of rows in the distances of few centers, whose pass goes over rows and centers."""
    x, c = leaf(500, 100), leaf(500, 16)
    squares = build.fold("add", build.map_("square", x), (1,))
    wide = build.broadcast(build.reshape(squares, (500, 1)), (500, 16))
    node = build.map_("add", wide, c)
    plan = lower(topological([node]), [node], Settings(Profile()), "key")
    assert len(plan.stages) == 1
    assert plan.stages[0].operations(plan.slots) == 2 * 50_000 + 8_000


@pytest.mark.parametrize("name", ["add", "multiply", "maximum"])
def test_a_scan_makes_as_many_as_it_takes(name: str) -> None:
    node = build.scan(name, leaf(30, 40), 1)
    assert of_node(node) == 1200 * SCANS[name].flops
    assert planned(node) >= of_node(node)


@pytest.mark.parametrize(("m", "k", "n"), [(30, 40, 20), (500, 3, 500), (1, 9, 1), (90, 50, 16), (70, 9, 1)])
def test_a_product_costs_its_volume_or_its_result_and_copies_its_matrices(m: int, k: int, n: int) -> None:
    node = build.matmul(leaf(m, k), leaf(k, n), F8)
    assert volume(node) == m * k * n
    assert of_node(node) == 2 * m * k * n
    assert work_of_node(node) == planned(node)
    panels = PANEL_FLOPS * (m * k + k * n) if min(m, n) > 1 else 0
    assert planned(node) == max(2 * m * k * n // BLAS_SPEEDUP, RESULT_FLOPS * m * n) + panels
    assert work_of_node(node, part=0.5) == m * k * n, "what is sampled is no work for BLAS"


def test_a_users_function_counts_the_same_wherever_it_is_asked() -> None:
    node = build.map_(UserFunction(np.tanh), leaf(30, 40), dtype=F8)
    assert of_node(node) == planned(node) == 1200 * USER_FLOPS


@pytest.mark.parametrize("dtype", ["f8", "i4", "u2", "c16", "M8[s]", "S9", "?", "i1"])
@pytest.mark.parametrize("keywords", [(), (("kind", "stable"),)])
@pytest.mark.parametrize("shape", [(1200,), (30, 40)])
def test_a_sort_counts_what_its_elements_are_sorted_by(dtype: str, keywords: tuple, shape: tuple) -> None:
    """NumPy sorts numbers in vector registers where neither ties nor bytes keep it from that."""
    kind = np.dtype(dtype)
    x = build.data(ArrayRef(shape, kind))
    node = build.along_axis("sort", [x], len(shape) - 1, dtype=kind, keywords=keywords)
    row, line = AXIS_FUNCTIONS["sort"], shape[-1]
    quick = dtype in ("f8", "i4", "u2") and not keywords
    each = row.vectorized if quick else row.flops
    assert 0 < row.vectorized < row.flops
    assert of_node(node) == planned(node) == 1200 * each * line.bit_length()


@pytest.mark.parametrize("workers", [1, 3])
def test_indices_of_lines_are_sorted_behind_digits_of_values(workers: int) -> None:
    row, index = AXIS_FUNCTIONS["argsort"], np.dtype(np.intp)
    line = build.along_axis("argsort", [leaf(120_000)], 0, dtype=index)
    rows = build.along_axis("argsort", [leaf(30, 40)], 1, dtype=index)
    plan = lower([*line.inputs, line], [line], Settings(Profile(workers=workers)), "key")
    assert of_node(line) == plan.stages[0].operations(plan.slots) == row.flops * 120_000 * 17
    assert of_node(rows) == planned(rows) == row.flops * 1200 * 6
    assert 0 < row.flops < AXIS_FUNCTIONS["sort"].flops


@pytest.mark.parametrize("columns", [1000, NEAR_BYTES // 8, NEAR_BYTES // 8 + 1])
def test_looking_up_costs_more_in_what_no_cache_keeps(columns: int) -> None:
    matrix = ArrayRef((500, columns), F8, format="csr", nnz=3000)
    node = build.matmul(build.data(matrix), leaf(columns), F8)
    each = NEAR_LOOKUP_FLOPS if columns * 8 <= NEAR_BYTES else LOOKUP_FLOPS
    plan = lower(topological([node]), [node], Settings(Profile()), "key")
    (nonzeros,) = (slot.nonzeros for slot in plan.slots if slot.nonzeros is not None)
    assert nonzeros >= 3000
    assert planned(node) == (2 + each) * nonzeros


def test_views_compute_nothing() -> None:
    x = leaf(30, 40)
    for view in (build.transpose(x, (1, 0)), build.reshape(x, (40, 30)), build.broadcast(leaf(40), (30, 40))):
        assert of_node(view) == 0


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_profile_of_more_workers_is_faster_and_only_several_move_anything(workers: int) -> None:
    one, several = Profile(), Profile(workers=workers)
    assert several.memory_ps <= one.memory_ps
    assert several.flop_ps <= one.flop_ps
    assert (several.network_ps > 0) == (several.message_ps > 0) == (workers > 1)
    assert several.launch_ps - several.message_ps == one.launch_ps


KIN = [
    *(("gcd", "lcm"), ("logaddexp", "logaddexp2"), ("sin", "cos"), ("sinh", "cosh"), ("arcsin", "arccos")),
    *(("degrees", "rad2deg"), ("radians", "deg2rad"), ("exp", "exp2"), ("log", "log2"), ("log", "log10")),
    *(("floor_divide", "divmod"), ("floor_divide", "remainder"), ("fmod", "remainder"), ("less", "greater")),
]
"""Functions whose loops do the same work."""


@pytest.mark.parametrize(("one", "other"), KIN)
def test_kin_count_about_alike(one: str, other: str) -> None:
    counts = ELEMENTWISE[one].flops, ELEMENTWISE[other].flops
    assert max(counts) <= 2 * min(counts)


def test_functions_of_two_operands_count_no_less_than_what_they_are_made_of() -> None:
    """`logaddexp` an exponential and a logarithm, `hypot` a root, `divmod` both of its results."""
    for name, parts in {
        "logaddexp": ("exp", "log1p"),
        "logaddexp2": ("exp2", "log1p"),
        "hypot": ("sqrt", "square", "square"),
        "divmod": ("floor_divide",),
        "floor_divide": ("divide", "floor"),
        "float_power": ("power",),
        "power": ("exp",),
        "lcm": ("gcd",),
        "log_ndtr": ("ndtr", "log"),
        "xlogy": ("log", "multiply"),
    }.items():
        assert ELEMENTWISE[name].flops >= sum(ELEMENTWISE[part].flops for part in parts), name


@pytest.mark.parametrize("name", sorted(name for name in {*FOLDS, *SCANS} & {*ELEMENTWISE}))
def test_a_line_counts_about_what_its_steps_do(name: str) -> None:
    """Folds of `gcd` are soon at 1; each step of a scan waits for the one before."""
    step = ELEMENTWISE[name].flops
    if name in FOLDS and name != "gcd":
        assert step / 2 <= FOLDS[name].flops <= max(8, 2 * step)
    if name in SCANS and name != "gcd":
        assert step <= SCANS[name].flops <= max(10, 2 * step)
