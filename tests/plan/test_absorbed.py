"""What is made of a product's value alone ends in its stage, whichever operand is sparse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

from spartan_ng.arrays import ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.plan.lower import lower
from spartan_ng.plan.settings import Settings

F8 = np.dtype(float)
N, K = 20_000, 100


def dense(*shape: int) -> Node:
    return build.data(ArrayRef(shape, F8, value=np.broadcast_to(1.0, shape)))


def compressed() -> Node:
    return build.data(ArrayRef((N, N), F8, value=sparse.eye(N, format="csr"), format="csr", nnz=N))


def turned(node: Node) -> Node:
    return build.transpose(node, (1, 0))


def small_product(like: Node) -> Node:
    """Of a small matrix and another of a shape; of a vector another one."""
    if len(like.shape) == 1:
        return dense(*like.shape)
    rows, columns = like.shape
    if columns == K:
        return build.matmul(dense(rows, K), dense(K, K), F8)
    return build.matmul(dense(rows, K), dense(K, columns), F8)


PRODUCTS: dict[str, Callable[[], Node]] = {
    "S @ B": lambda: build.matmul(compressed(), dense(N, K), F8),
    "S @ B.T": lambda: build.matmul(compressed(), turned(dense(K, N)), F8),
    "S.T @ B": lambda: build.matmul(turned(compressed()), dense(N, K), F8),
    "A @ S": lambda: build.matmul(dense(K, N), compressed(), F8),
    "A @ S.T": lambda: build.matmul(dense(K, N), turned(compressed()), F8),
    "S @ v": lambda: build.matmul(compressed(), dense(N), F8),
}
AFTER: dict[str, Callable[[Node], Node]] = {
    "a map": lambda p: build.map_("exp", p),
    "a factor and a quotient": lambda p: build.map_(
        "divide", build.map_("multiply", dense(*p.shape), p), dense(*p.shape)
    ),
    "a product with a small matrix": lambda p: build.map_("divide", p, small_product(p)),
}


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("product", PRODUCTS)
def test_what_follows_a_product_ends_in_its_stage(product: str, after: str) -> None:
    root = AFTER[after](PRODUCTS[product]())
    plan = lower(topological([root]), [root], Settings(Profile()), "key")
    assert len(plan.stages) == 1, [stage.operators() for stage in plan.stages]
