"""A box of a result is made of the boxes of its leaves that are said to be enough, element for element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.arrays import box_of, box_size
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import Op, topological
from spartan_ng.optimizer.rewrite.regions import restricted
from tests import reference
from tests.programs import programs
from tests.sampling import examples

X = np.random.default_rng(0).random((12, 6))


def parts_of(roots: Any, boxes: Any) -> tuple[list[Any], list[Any]]:
    """The boxes of the results, made of arrays that have nothing but the boxes of the leaves."""

    def leaf(node: Any, box: Any) -> Any:
        if node.data.format != "dense":
            return node
        return build.constant(node.data.value[tuple(slice(*b) for b in box)], node.dtype)

    made, needed = restricted(roots, boxes, leaf)
    return reference.evaluate(made), needed


@examples(100)
@given(program=programs(), data=st.data())
def test_any_box_of_any_program(program: Any, data: Any) -> None:
    with config.override(small_bytes=0), np.errstate(all="ignore"):
        roots = [wrap(x)._node() for x in program.run(sp, sp.array)]
        boxes = []
        for root in roots:
            ends = [sorted(data.draw(st.tuples(*[st.integers(0, n)] * 2))) for n in root.shape]
            boxes.append(tuple((a, b) for a, b in ends))
        wanted = reference.evaluate(roots)
        found, _ = parts_of(roots, boxes)
    for whole, box, part in zip(wanted, boxes, found, strict=True):
        np.testing.assert_allclose(
            part.value, whole.value[tuple(slice(*b) for b in box)], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda x: sp.exp(x) * 2 + sp.exp(x)[3], 4 * 6),
        (lambda x: sp.exp(x) * 2 + sp.exp(x)[0], 4 * 6),
        (lambda x: x + x[::-1], 6 * 6),
        (lambda x: x[::-1].T.T, 3 * 6),
        (lambda x: sp.sqrt(x).sum(axis=1), 3 * 6),
        (lambda x: x.cumsum(axis=1), 3 * 6),
        (lambda x: sp.sort(x, axis=1), 3 * 6),
        (lambda x: x.reshape(6, 2, 6).reshape(-1, 6), 4 * 6),
        (lambda x: x @ np.ones((6, 2)), 3 * 6),
        (lambda x: sp.pad(x[:-2] + x[2:], 1)[1:-1], 5 * 6),
        (lambda x: sp.concatenate([x[:6], x[6:]]), 3 * 6),
        (lambda x: sp.broadcast_to(x[:, None], (12, 4, 6)), 3 * 6),
    ],
)
def test_what_depends_on_few_rows_needs_few(make: Any, most: int) -> None:
    with config.override(small_bytes=0):
        (root,) = [make(sp.array(X))._node()]
        box = ((4, 7), *box_of(root.shape)[1:])
        (found,), needed = parts_of([root], [box])
        np.testing.assert_allclose(found.value, np.asarray(make(sp.array(X)))[4:7], rtol=1e-12)
    sizes = [box_size(b) for node, b in needed if node.shape == X.shape]
    assert sum(sizes) <= most


def test_what_is_the_same_everywhere_is_made_whole() -> None:
    with config.override(small_bytes=0):
        x = sp.array(X)
        root = (x - x.mean(axis=0))._node()
    (found,), needed = parts_of([root], [((3, 5), (0, 6))])
    np.testing.assert_allclose(found.value, (X - X.mean(axis=0))[3:5], rtol=1e-12)
    assert box_of(X.shape) in [box for _, box in needed]


def test_values_that_nothing_is_needed_of_are_left_out() -> None:
    with config.override(small_bytes=0):
        root = sp.concatenate([sp.exp(sp.array(X)), sp.log(sp.array(X))])._node()
    made, needed = restricted([root], [((0, 5), (0, 6))], lambda node, box: build.constant(X[:5]))
    assert len(needed) == 1
    assert not [n for n in topological(made) if n.fn == "log" or n.op is Op.JOIN_UPDATE]
