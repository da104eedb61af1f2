"""The rules of algebra: each keeps every answer, fires where it should, and nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from spartan_ng.graph.node import Node, topological
from spartan_ng.optimizer.rewrite.algebra.table import RULES
from spartan_ng.optimizer.rewrite.duplicates import merge_duplicates
from spartan_ng.optimizer.rewrite.rule import ReaderCounts, rewritten
from tests import reference
from tests.optimizer.algebra.expressions import SPECIALS, Expression, expressions, same
from tests.sampling import examples
from tests.test_programs import running_on

Program = Callable[..., Any]
random = np.random.default_rng(0)
A, B, C, V = random.random((40, 30)), random.random((30, 50)), random.random((50, 40)), random.random(50)
LABELS = np.array([0, 3, 1])


def applied(*roots: Node) -> tuple[list[Node], Counter[str]]:
    """The roots after the rules, and how often each rule fired."""
    fired: Counter[str] = Counter()

    def noted(name: str, rule: Any) -> Any:
        def rewrite(node: Node, readers: ReaderCounts) -> Node | None:
            found = rule.rewrite(node, readers)
            fired[name] += found is not None
            return found

        return replace(rule, rewrite=rewrite)

    found = rewritten([noted(rule.name, rule) for rule in RULES], merge_duplicates(roots))
    return found, fired


@contextmanager
def lazy() -> Iterator[None]:
    """Nothing is computed at once, and nothing warns of infinities."""
    with config.override(small_bytes=0), np.errstate(all="ignore"):
        yield


def nodes(run: Program, *arrays: Any) -> list[Node]:
    """The graph of a program."""
    found = run(sp, *map(sp.asarray, arrays))
    return [a._node() for a in (found if isinstance(found, tuple) else (found,))]


S, T = (sparse.csr_array(x * (x > 0.9)) for x in (A, B))
FIRES: dict[str, tuple[Program, tuple[Any, ...]]] = {
    "order of sparse products": (lambda xp, s, t, v: s @ t @ v, (S, T, V)),
    "slice of a map": (lambda xp, a, b: xp.sqrt(a @ b)[3:5], (A, B)),
    "slice of a product": (lambda xp, a, b: (a @ b)[10:20, 7], (A, B)),
    "diagonal of a product": (lambda xp, a, b, c: xp.diagonal(a @ (b @ c)), (A, B, C)),
    "transpose of a product": (lambda xp, a, b: (a.T @ b.T).T, (B, A)),
    "lookup in a product": (lambda xp, a, b, i: (a @ b)[:, i], (A, B, LABELS)),
    "mask of a product": (lambda xp, a, b, m: (a @ b)[m], (A, B, np.arange(40) % 3 == 0)),
    "sum of a product": (lambda xp, a, b: (a @ b).sum(), (A, B)),
    "product without a matrix": (lambda xp, a, b: xp.trace(a @ b), (A, random.random((30, 40)))),
    "product with an indicator": (
        lambda xp, i, x: (i[:, None] == xp.arange(5)).T @ x,
        (random.integers(-1, 7, 40), A),
    ),
    "sum of an indicator": (
        lambda xp, i, x: (m := (i[:, None] == xp.arange(5)).astype(float)).T @ x + m.sum(axis=0)[:, None],
        (random.integers(-1, 7, 40), A),
    ),
    "product with looked up rows": (
        lambda xp, e, i, x: e[i].T @ x,
        (B[:5, :7], random.integers(0, 5, 40), A),
    ),
    "product of what is scaled": (lambda xp, a, b: 0.5 * a @ (b * 0.25), (A, B[:, :20])),
    "order of products": (lambda xp, a, b, v: a @ b @ v, (A, B, V)),
}
"""For each rule a program that it changes."""

KEEPS: dict[str, tuple[Program, tuple[Any, ...], str]] = {
    "read by others": (lambda xp, a, b: ((p := a @ b)[3], p * 2), (A, B), "slice of a product"),
    "sum beside it": (
        lambda xp, a, b: ((p := a @ b).sum(0), xp.sqrt(p)),
        (A, B),
        "sum of a product",
    ),
    "wanted itself": (lambda xp, a, b, v: ((p := a @ b), p @ v), (A, B, V), "order of products"),
    "scaled for others, too": (
        lambda xp, a, b: ((s := 2 * a) @ b, xp.sqrt(s)),
        (A, B),
        "product of what is scaled",
    ),
    "scaled by many": (lambda xp, a, b: (a * a[:, :1]) @ b, (A, B), "product of what is scaled"),
    "scaled and few": (
        lambda xp, a, b: (2 * a) @ b,
        (A[:, :2], random.random((2, 50))),
        "product of what is scaled",
    ),
    "scaled in single precision": (  # what overflows if it is scaled later
        lambda xp, a, b: (xp.float32(1e-30) * a) @ b,
        (A.astype("f4") * np.float32(1e30), B.astype("f4") * np.float32(1e20)),
        "product of what is scaled",
    ),
    "scaled to another dtype": (
        lambda xp, a, b: (2.5 * a) @ b,
        (A.astype("i8"), B),
        "product of what is scaled",
    ),
    "all of it": (lambda xp, a, b: (a @ b)[::-1], (A, B), "slice of a product"),
    "small in between": (lambda xp, u, v, w: u @ (v @ w), (A, B, C[:, :2]), "order of products"),
    "already in order": (lambda xp, a, b, v: a @ (b @ v), (A, B, V), "order of products"),
    "as many as there are": (
        lambda xp, a, b, i: (a @ b)[i],
        (A, B, np.zeros(60, int)),
        "lookup in a product",
    ),
    "wider sums": (lambda xp, a, b: (a @ b).sum(0), (A.astype("i4"), B.astype("i4")), "sum of a product"),
    "halves": (lambda xp, a, b: (a @ b).sum(0), (A.astype("f2"), B.astype("f2")), "sum of a product"),
    "chain of halves": (
        lambda xp, a, b, v: a @ b @ v,
        tuple(x.astype("f2") for x in (A, B, V)),
        "order of products",
    ),
    "logic": (lambda xp, a, b, v: a @ b @ v, tuple(x > 0.5 for x in (A, B, V)), "order of products"),
    "cast between": (
        lambda xp, a, b, v: a @ b @ v,
        (A.astype("i4"), B.astype("i4"), V.astype("i8")),
        "order of products",
    ),
    "sparse": (
        lambda xp, a, b, v: a @ b @ v,
        (sparse.csr_array(A * (A > 0.9)), B, V),
        "order of products",
    ),
    "sparse and wanted itself": (
        lambda xp, s, t, v: ((p := s @ t), p @ v),
        (S, T, V),
        "order of sparse products",
    ),
    "sparse and small in between": (
        lambda xp, s, t, x: s @ t @ x,
        (sparse.csr_array(S[:1]), sparse.csr_array(T[:, :1]), random.random((1, 900))),
        "order of sparse products",
    ),
    "a fold that is no sum": (lambda xp, a, b: (a @ b).max(0), (A, B), "sum of a product"),
    "a masked sum": (
        lambda xp, a, b: (a @ b).sum(0, where=xp.asarray(np.ones((40, 50), bool))),
        (A, B),
        "sum of a product",
    ),
    "a product read from memory once": (lambda xp, x, w: (x @ w).sum(), (A, B[:, 0]), "sum of a product"),
}
"""Programs that a rule leaves alone."""


def test_every_rule_has_a_program() -> None:
    assert {rule.name for rule in RULES} == {*FIRES}
    assert {name for *_, name in KEEPS.values()} <= {*FIRES}


@pytest.mark.parametrize("name", FIRES)
def test_a_rule_fires_and_keeps_the_answer(name: str) -> None:
    run, arrays = FIRES[name]
    with lazy():
        (root,) = nodes(run, *arrays)
        found, fired = applied(root)
        assert fired[name], fired
        _, again = applied(*found)
        assert not again.total(), f"{again} still fit what the rules have made"
        for node in (root, *found):
            (ref,) = reference.evaluate([node])
            np.testing.assert_allclose(ref.value, run(np, *arrays), rtol=1e-12)
        np.testing.assert_allclose(run(sp, *map(sp.asarray, arrays)).compute(), run(np, *arrays), rtol=1e-12)


@pytest.mark.parametrize("name", KEEPS)
def test_a_rule_does_not_fire(name: str) -> None:
    run, arrays, rule = KEEPS[name]
    with lazy():
        _, fired = applied(*nodes(run, *arrays))
    assert not fired[rule]


def test_no_product_is_larger_than_what_is_asked_for() -> None:
    with lazy():
        for run, arrays in FIRES.values():
            (root,), _ = applied(*nodes(run, *arrays))
            made = [n.size for n in topological([root]) if n.fn == "contract" and n is not root]
            assert max(made, default=0) < A.shape[0] * B.shape[1]


@examples(300)
@given(expression=expressions())
def test_rules_keep_every_answer(expression: Expression) -> None:
    """The graph before and after, by NumPy's own functions."""
    with lazy():
        expected = expression.run(np, expression.leaves)
        whole = sp.asarray(expression.run(sp, [sp.asarray(a) for a in expression.leaves]))  # or a number
        (found,), _ = applied(whole._node())
        same(reference.evaluate([found])[0].value, expected)


@examples(60)
@given(expression=expressions())
def test_answers_are_numpys_wherever_they_are_computed(expression: Expression) -> None:
    with lazy():
        expected = expression.run(np, expression.leaves)
        for disabled in (frozenset[str](), frozenset({"algebra"})):
            for workers in (0, 3):
                with config.override(disabled_passes=disabled), _backend(workers):
                    found = expression.run(sp, [sp.asarray(a) for a in expression.leaves])
                    same(found, expected)


@contextmanager
def _backend(workers: int) -> Iterator[None]:
    if not workers:
        yield
        return
    with running_on(SimulatedBackend(workers)):
        yield


@pytest.mark.parametrize("end", ["row", "column", "element", "diagonal", "picked", "masked"])
def test_parts_of_products_keep_the_kind_of_what_is_not_finite(end: str) -> None:
    """Nothing is added in another order, so that an infinity stays one."""
    a, b = A.round(1)[:, :4], B.round(1)[:4]
    a[3, 1], a[5, 2], b[2, 0], b[1, -1] = np.inf, -np.inf, np.nan, -np.inf
    ask: dict[str, Program] = {
        "row": lambda xp, p: p[3],
        "column": lambda xp, p: p[:, 0],
        "element": lambda xp, p: p[5, -1],
        "diagonal": lambda xp, p: xp.diagonal(p),
        "picked": lambda xp, p: p[xp.asarray([3, 5])],
        "masked": lambda xp, p: p[xp.asarray(np.arange(40) < 6)],
    }
    with lazy():
        found = ask[end](sp, sp.asarray(a) @ sp.asarray(b))
        expected = np.asarray(ask[end](np, a @ b))
        for value in (np.asarray(found), np.asarray(reference.evaluate(applied(found._node())[0])[0].value)):
            for test in (np.isnan, np.isposinf, np.isneginf):
                np.testing.assert_array_equal(test(value), test(expected))


@examples(200)
@given(data=st.data(), rows=st.integers(1, 5), columns=st.integers(1, 5))
def test_a_slice_of_a_flat_product_is_summed_alone_where_it_is_a_diagonal(
    data: st.DataObject, rows: int, columns: int
) -> None:
    start = data.draw(st.integers(0, rows * columns - 1))
    step = data.draw(st.sampled_from([columns + 1, columns + 1, columns, columns + 2, 1]))
    n = data.draw(st.integers(1, len(range(start, rows * columns, step))))
    places = [divmod(start + k * step, columns) for k in range(n)]
    i, j = places[0]
    key = slice(start, start + (n - 1) * step + 1, step)

    def run(xp: Any, a: Any, b: Any) -> Any:
        return (a @ b).reshape(-1)[key]

    a, b = A[:rows, :3], B[:3, :columns]
    with lazy():
        (found,), fired = applied(*nodes(run, a, b))
    if min(rows, columns) > 1:  # a vector is no matrix that is flat
        assert bool(fired["diagonal of a product"]) == (places == [(i + k, j + k) for k in range(n)])
    np.testing.assert_allclose(reference.evaluate([found])[0].value, run(np, a, b), rtol=1e-12)


@examples(200)
@given(data=st.data(), n=st.integers(1, 4), k=st.integers(1, 4))
def test_comparisons_of_every_shape_are_what_they_are_in_products(
    data: st.DataObject, n: int, k: int
) -> None:
    """What looks like a matrix of zeros and ones by label may lie along any axis, or be something else."""
    shapes = [(n,), (n, 1), (1, n), (n, k), (k, n), (1,), (1, 1)]
    labels = random.integers(-1, k + 1, data.draw(st.sampled_from(shapes)))
    turned, swapped = data.draw(st.booleans()), data.draw(st.booleans())
    placed = data.draw(st.sampled_from([(k,), (k, 1), (1, k)]))

    def run(xp: Any, labels: Any) -> Any:
        numbers = xp.arange(k).reshape(placed)
        matrix = numbers == labels if swapped else labels == numbers
        matrix = (matrix.T if turned else matrix).astype(float)
        return matrix @ xp.asarray(A[: matrix.shape[-1], :2])

    try:
        expected = run(np, labels)
    except ValueError:
        hypothesis.reject()
    with lazy():
        (found,), _ = applied(*nodes(run, labels))
        np.testing.assert_array_equal(reference.evaluate([found])[0].value, expected)


def test_a_loop_of_products_is_ordered_piece_by_piece() -> None:
    """A chain of any length, of one matrix that is read again and again."""
    m = np.eye(3, k=1) + np.eye(3) * 0.5
    with lazy():
        a = sp.asarray(m)
        x = a
        for _ in range(150):
            x = a @ x
        found = (x @ sp.asarray(np.ones(3)))._node()
        (root,), fired = applied(found)
        assert fired["order of products"]
        np.testing.assert_allclose(
            reference.evaluate([root])[0].value, np.linalg.matrix_power(m, 151) @ np.ones(3), rtol=1e-12
        )


@pytest.mark.parametrize("power", [64, 2**40 + 2**9 + 1])
def test_squares_are_no_chain(power: int) -> None:
    """Both factors of a square are one value: written out, 2 ** 40 would have as many factors."""
    a = np.array([[0.5, 0.5], [0.25, 0.75]])
    with lazy():
        (found,) = nodes(lambda xp, x: xp.linalg.matrix_power(x, power), a)
    (best,), _ = applied(found)
    count = sum(n.fn == "contract" for n in topological([best]))
    assert count == power.bit_length() - 1 + power.bit_count() - 1
    np.testing.assert_allclose(reference.evaluate([best])[0].value, np.linalg.matrix_power(a, power))


def test_a_value_that_is_sliced_in_two_ways_is_not_made_twice() -> None:
    """A map that a product reads on both sides is one value, whole."""
    with lazy():
        x = sp.sqrt(sp.asarray(A))
        (root,), _ = applied((x @ x.T)[3:5]._node())
        assert sum(n.fn == "sqrt" for n in topological([root])) == 1


def test_the_page_of_the_optimizer_has_every_rule() -> None:
    page = (Path(__file__).parents[3] / "docs" / "optimizer.md").read_text()
    for rule in RULES:
        assert f"| {rule.name} | `{rule.pattern}` | `{rule.replacement}` | {rule.condition} |" in page


TABLE = np.arange(18).reshape(9, 2)
GROUPED: dict[str, Program] = {
    "turned": lambda xp, i, x: (i[:, None] == xp.arange(4)).T @ x,
    "other way round": lambda xp, i, x: (xp.arange(4)[:, None] == i).astype(x.dtype) @ x,
    "last": lambda xp, i, x: x.T @ (xp.arange(4) == i[:, None]),
    "cast": lambda xp, i, x: (i[:, None] == xp.arange(4)).astype(x.dtype).T @ x,
    "a vector": lambda xp, i, x: (i[:, None] == xp.arange(4)).T @ x[:, 0],
    "with their counts": lambda xp, i, x: (
        (marks := (i[:, None] == xp.arange(4)).astype(x.dtype)).T @ xp.minimum(x, 4)
        + marks.sum(axis=0)[:, None]
        - (xp.arange(4)[:, None] == i).sum(axis=1, keepdims=True)
    ).astype(x.dtype),
    "one-hot rows": lambda xp, i, x: xp.asarray(np.eye(9, dtype=x.dtype))[abs(i) % 9].T @ x,
    "any rows, last": lambda xp, i, x: x.T @ xp.asarray(TABLE.astype(x.dtype))[abs(i) % 9],
    "not finite rows": lambda xp, i, x: (
        xp.asarray(np.array([[1, np.inf], [0, 2], [np.nan, 1], [3, 0]], x.dtype))[abs(i) % 3].T @ x
    ),
}


@examples(100)
@given(
    name=st.sampled_from(sorted(GROUPED)),
    n=st.integers(1, 60),
    columns=st.integers(1, 3),
    dtype=st.sampled_from(["f8", "f4"]),
    labels=st.sampled_from(["i8", "i4", "u1"]),
    specials=st.lists(st.sampled_from(SPECIALS), max_size=2),
    seed=st.integers(0, 2**32),
)
def test_sums_by_group_are_what_products_are(
    name: str, n: int, columns: int, dtype: str, labels: str, specials: list[float], seed: int
) -> None:
    """Labels of no group, groups of no row, and rows that are not finite in one group or several."""
    rng = np.random.default_rng(seed)
    i = rng.integers(0 if labels == "u1" else -2, 6, n).astype(labels)
    x = rng.integers(-4, 5, (n, columns)).astype(dtype)
    for special in specials:
        x[rng.integers(n), rng.integers(columns)] = special
    with lazy():
        run = GROUPED[name]
        expected = run(np, i, x)
        root = run(sp, sp.asarray(i), sp.asarray(x))._node()
        (found,), fired = applied(root)
        same(reference.evaluate([found])[0].value, expected)
        assert n < 36 or fired["product with an indicator"] + fired["product with looked up rows"]
        for workers in (0, 3):
            with _backend(workers):
                same(run(sp, sp.asarray(i), sp.asarray(x)), expected)


def test_numbers_that_are_here_already_are_known_as_indices() -> None:
    """NumPy makes a short `arange` at once; what it holds decides, and nothing else that it might hold."""
    i, x = random.integers(0, 4, 500), random.random((500, 3))
    for numbers, is_range in ((np.arange(4), True), (np.arange(4)[::-1], False), (np.arange(1, 5), False)):
        with config.override(small_bytes=1 << 10), running_on(SimulatedBackend(2)):
            labels, rows, few = sp.asarray(i), sp.asarray(x), sp.array(numbers)
            found = (labels[:, None] == few).T @ rows
            stages = sp.explain(found).to_dict()["stages"]
            assert any("bincount" in s["operators"] for s in stages) == is_range
            np.testing.assert_allclose(np.asarray(found), (i[:, None] == numbers).T @ x, rtol=1e-12)
