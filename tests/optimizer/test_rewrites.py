"""Rewrites keep values and do what their names say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spartan_ng import session
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.spec import check_pass
from spartan_ng.optimizer.rewrite.constants import fold_constants, resolve_empty
from spartan_ng.optimizer.rewrite.duplicates import merge_duplicates
from spartan_ng.optimizer.rewrite.scans import fold_scans, simplify_scans
from spartan_ng.optimizer.rewrite.slices import push_slices
from tests import reference

X = np.random.default_rng(0).random((20, 6))


def value(node: Node) -> Any:
    (ref,) = session.evaluate([node])
    return ref.value


def test_equal_steps_merge_and_distinct_draws_do_not() -> None:
    x = build.constant(X)
    twice = build.map_("add", build.map_("exp", x), build.map_("exp", x))
    (merged,) = merge_duplicates([twice])
    assert sum(n.fn == "exp" for n in topological([merged])) == 1
    np.testing.assert_array_equal(value(twice), np.exp(X) + np.exp(X))
    draws = [build.random("random", ("blocks", (s,)), (), (5,), np.dtype(float)) for s in (1, 2)]
    assert len(set(merge_duplicates(draws))) == 2


def test_slices_move_below_maps_that_nobody_else_reads() -> None:
    x, row = build.constant(X), build.constant(X[0])
    chain = build.map_("add", build.map_("exp", x), row)
    part = build.slice_(chain, (18, 5), (-2, -1), (3, 4))
    (pushed,) = push_slices([part])
    assert pushed.op is Op.MAP
    assert all(n.inputs[0].op is Op.DATA for n in topological([pushed]) if n.op is Op.SLICE)
    np.testing.assert_array_equal(value(part), (np.exp(X) + X[0])[18::-2, 5:1:-1][:3])
    both = push_slices([part, chain])
    assert both[0].op is Op.SLICE, "the whole map is needed anyway"
    few = [build.slice_(chain, (k, 0), (1, 1), (2, 6)) for k in (0, 1, 7)]
    parts = push_slices(few)
    assert all(n.inputs[0].op is Op.DATA for n in topological(parts) if n.op is Op.SLICE)
    for k, part in zip((0, 1, 7), parts, strict=True):
        np.testing.assert_array_equal(value(part), (np.exp(X) + X[0])[k : k + 2])
    halves = [build.slice_(chain, (k, 0), (1, 1), (len(X) - 1, 6)) for k in (0, 1)]
    assert all(p.op is Op.SLICE for p in push_slices(halves)), "together they are more than the map"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (5,), (4, 3)])
def test_slices_move_below_lookups(shape: tuple[int, ...], axis: int, turned: bool) -> None:
    values = np.arange(4 * 5 * 6.0).reshape(4, 5, 6)
    places = np.random.default_rng(0).integers(0, 4, shape)
    x = build.map_("exp", build.constant(values))
    found = build.take(x, build.map_("negative", build.constant(-places)), axis)
    wanted = np.take(np.exp(values), places, axis)
    if turned:
        order = tuple(np.random.default_rng(axis).permutation(found.ndim))
        found, wanted = build.transpose(found, order), wanted.transpose(order)
    parts = [build.slice_(found, (1,) * found.ndim, (1,) * found.ndim, tuple(n - 1 for n in found.shape))]
    parts.append(build.slice_(found, (2,) * found.ndim, (-1,) * found.ndim, (2,) * found.ndim))
    for part, key in zip(parts, (slice(1, None), slice(2, 0, -1)), strict=True):
        (pushed,) = push_slices([part])
        assert all(n.inputs[0].op is Op.DATA for n in topological([pushed]) if n.op is Op.SLICE)
        np.testing.assert_array_equal(value(part), wanted[(key,) * wanted.ndim])
        np.testing.assert_array_equal(value(pushed), wanted[(key,) * wanted.ndim])


def test_scalars_fold_and_empty_arrays_vanish() -> None:
    scalar = build.map_("multiply", build.constant(2.0), build.map_("exp", build.constant(1.0)))
    (folded,) = fold_constants([scalar])
    assert folded.op is Op.DATA
    assert value(scalar) == 2.0 * np.exp(1.0)
    empty = build.slice_(build.constant(X), (0, 0), (1, 1), (0, 6))
    total = build.fold("add", build.map_("exp", empty), (0,))
    (folded,) = resolve_empty([total])
    assert folded.op is Op.DATA
    np.testing.assert_array_equal(value(total), np.zeros(6))


def scans_left(root: Node) -> int:
    """Scans after the rewrites, which break no rule and keep the value."""
    found = fold_scans(simplify_scans([root]))
    check_pass([root], found, "scans")
    (wanted,), (made,) = reference.evaluate([root]), reference.evaluate(found)
    np.testing.assert_allclose(made.value, wanted.value, rtol=1e-12)
    return sum(n.op is Op.SCAN for n in topological(found))


def flipped(x: Node, axis: int) -> Node:
    starts = [n - 1 if i == axis else 0 for i, n in enumerate(x.shape)]
    return build.slice_(x, starts, [-1 if i == axis else 1 for i in range(x.ndim)], x.shape)


def test_extremes_and_sums_of_scans_have_no_scan() -> None:
    signed = X - 0.5
    for name in ("minimum", "maximum", "add"):
        for axis in (0, 1):
            for axes in ((axis,), (0, 1)):
                root = build.fold(name, build.scan("add", build.constant(signed), axis), axes)
                assert scans_left(root) == 0
                expected = getattr(np, name).reduce(np.cumsum(signed, axis), axis=axes)
                np.testing.assert_allclose(value(root), expected, rtol=1e-12)
    other = build.fold("minimum", build.scan("add", build.constant(signed), 0), (1,))
    assert scans_left(other) == 1, "a fold across the scanned axis needs the scan"
    scan = build.scan("add", build.constant(signed), 0)
    both = fold_scans([scan, build.fold("minimum", scan, (0,))])
    assert sum(n.op is Op.SCAN for n in topological(both)) == 1, "the scan is there for another reader"
    integers = build.scan("add", build.constant(np.array([2**62, 2**62, 5])), 0)
    assert scans_left(build.fold("minimum", integers, (0,))) == 1, "sums that wrap around have no order"


def test_extremes_of_scans_see_what_is_not_finite() -> None:
    for special in ([np.inf, 1, -np.inf, 2], [1, np.nan, -5], [-np.inf, 3], [1, np.inf, -7]):
        x = np.array([0.5, *special])
        for name in ("minimum", "maximum"):
            root = build.fold(name, build.scan("add", build.constant(x), 0), (0,))
            with np.errstate(invalid="ignore"):
                expected = getattr(np, name).reduce(np.cumsum(x))
                np.testing.assert_array_equal(value(root), expected)


def test_single_rows_suffix_sums_and_triangles() -> None:
    row = build.constant(X[:1])
    doubled = build.map_("add", row, row)
    assert simplify_scans([build.scan("add", doubled, 0)]) == [doubled]
    np.testing.assert_array_equal(value(build.scan("add", row, 0)), X[:1])
    whole = np.arange(20).reshape(4, 5)
    for axis in (0, 1):
        x = build.constant(whole)
        root = flipped(build.scan("add", flipped(x, axis), axis), axis)
        (found,) = simplify_scans([root])
        assert found.op is Op.MAP
        np.testing.assert_array_equal(value(root), np.flip(np.cumsum(np.flip(whole, axis), axis), axis))
    floats = flipped(build.scan("add", flipped(build.constant(X), 0), 0), 0)
    assert simplify_scans([floats]) == [floats], "floats may be infinite"
    for k in (-2, 0, 3):
        for axis in (0, 1):
            i = build.map_("add", build.reshape(build.iota(6), (6, 1)), build.constant(np.int64(k)))
            eye = build.cast(build.map_("equal", i, build.iota(8)), np.dtype(float))
            root = build.scan("add", eye, axis)
            assert scans_left(root) == 0
            np.testing.assert_array_equal(value(root), np.cumsum(np.eye(6, 8, k), axis))


def test_only_comparisons_of_indices_are_triangles() -> None:
    """A cumulative sum of any comparison of two values that broadcast against each other."""
    x, n = build.constant(np.arange(30.0).reshape(5, 6) % 4), 5
    row = build.reshape(build.iota(n), (n, 1))
    moved = [build.map_("add", row, build.constant(k)) for k in (0, 2, -3)]
    sides = [
        *moved,
        build.map_("subtract", build.constant(4), row),
        build.reshape(build.fold("add", x, (1,)), (n, 1)),
        build.reshape(build.fold("add", x, (1,), where=build.constant(np.array(True))), (n, 1)),
        build.reshape(build.scan("add", build.iota(n), 0), (n, 1)),
    ]
    others = [x, build.iota(6), build.fold("add", x, (0,)), build.scan("add", x, 0)]
    for first in sides:
        for second in others:
            for axis in (0, 1):
                for a, b in ((first, second), (second, first)):
                    node = build.scan("add", build.cast(build.map_("equal", a, b), np.dtype("i8")), axis)
                    (expected,) = reference.evaluate([node])
                    np.testing.assert_array_equal(value(node), expected.value)
