"""How large sparse results are expected to be: what counting finds, where the data or a run can say it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.optimizer.sizes import expected_bytes, expected_nonzeros, sparse_key
from tests import reference
from tests.sampling import examples

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40))


def striped(shape: tuple[int, int], every: int, offset: int = 0) -> Node:
    """A matrix with a non-zero in each so many elements of each row: any rows say how many there are."""
    columns = np.arange(shape[1])
    value = np.broadcast_to((columns + offset) % every == 0, shape) * 2.0
    csr = sparse.csr_array(value)
    return build.data(ArrayRef(shape, csr.dtype, value=csr, format="csr", nnz=csr.nnz))


def expected(node: Node) -> float:
    return expected_nonzeros(topological([node]), {})[node]


def counted(node: Node) -> int:
    (found,) = reference.evaluate([node])
    return int(
        np.count_nonzero(np.asarray(found.value.todense() if sparse.issparse(found.value) else found.value))
    )


@examples(300)
@given(
    SHAPES,
    st.integers(1, 4),
    st.lists(st.sampled_from(["turned", "rows", "cast", "map", "scaled"]), max_size=4),
    st.data(),
)
def test_what_keeps_the_non_zeros_is_known(
    shape: tuple[int, int], every: int, steps: list[str], data: st.DataObject
) -> None:
    """Views, and functions that keep zeros: the share of non-zeros stays."""
    leaf = node = striped(shape, every)
    share = counted(leaf) / leaf.size
    for step in steps:
        if step == "turned":
            node = build.transpose(node, (1, 0))
        elif step == "rows":
            start = data.draw(st.integers(0, node.shape[0] - 1))
            rows = data.draw(st.integers(1, node.shape[0] - start))
            node = build.slice_(node, (start, 0), (1, 1), (rows, node.shape[1]))
        elif step == "cast":
            node = build.cast(node, np.dtype("f4"))
        elif step == "map":
            node = build.map_("sqrt", node)
        else:
            factor = build.data(ArrayRef((), node.dtype, value=np.asarray(3, node.dtype)))
            node = build.map_("multiply", node, factor)
    assert node.format == "csr"
    assert expected(node) == pytest.approx(share * node.size)
    if "rows" not in steps:
        assert expected(node) == pytest.approx(counted(node))
    each, starts = node.dtype.itemsize + 4, 8 * (node.shape[0] + 1)
    if node is not leaf:
        found = expected_nonzeros(topological([node]), {})
        assert expected_bytes(found)[node] == int(expected(node)) * each + starts


@examples(200)
@given(
    SHAPES,
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from(["multiply", "add", "subtract"]),
)
def test_of_two_matrices_that_are_here_rows_are_counted(
    shape: tuple[int, int], every: int, other: int, offset: int, is_hidden: bool, name: str
) -> None:
    """Where both are data; of what is computed first, no more than chance, or no overlap, would leave."""
    a, b = striped(shape, every), striped(shape, other, offset)
    shares = [counted(x) / x.size for x in (a, b)]
    left = build.map_("negative", a) if is_hidden else a
    node = build.map_(name, left, b)
    if not is_hidden:
        pattern = build.map_("add" if name == "subtract" else name, a, b)  # what cancels is stored
        assert expected(node) == pytest.approx(counted(pattern))
    elif name == "multiply":
        assert expected(node) == pytest.approx(shares[0] * shares[1] * node.size)
    else:
        assert expected(node) == pytest.approx(min(sum(shares), 1.0) * node.size)


@examples(100)
@given(SHAPES, st.integers(1, 4), st.integers(0, 2000))
def test_what_a_run_has_measured_is_believed(shape: tuple[int, int], every: int, nonzeros: int) -> None:
    leaf = striped(shape, every)
    node = build.map_("add", leaf, striped(shape, every + 1))
    after = build.map_("negative", node)
    each, starts = node.dtype.itemsize + 4, 8 * (shape[0] + 1)
    measured = {sparse_key(node.fn, shape, node.dtype): nonzeros * each + starts}
    order = topological([after])
    assert expected_nonzeros(order, measured)[node] == nonzeros
    assert expected_nonzeros(order, measured)[after] == min(nonzeros, node.size)
    assert expected_bytes(expected_nonzeros(order, measured))[node] == nonzeros * each + starts
    measured = {sparse_key(node.fn, shape, node.dtype): starts - 8}
    assert expected_nonzeros(order, measured)[node] == 0
