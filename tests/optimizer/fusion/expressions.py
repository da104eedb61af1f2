"""The fusion paper's expressions as graphs, and random graphs of its operators."""

from __future__ import annotations

import random

import numpy as np

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op

F8 = np.dtype(float)


def leaf(*shape: int) -> Node:
    """A dense array without a value."""
    return build.data(ArrayRef(shape, F8))


def sparse_leaf(*shape: int, density: float) -> Node:
    """A sparse array without a value."""
    nnz = int(density * shape[0] * shape[1])
    return build.data(ArrayRef(shape, F8, format="csr", nnz=nnz))


def scalar(value: float) -> Node:
    return build.constant(value)


def times(a: Node, b: Node) -> Node:
    return build.map_("multiply", a, b)


def plus(a: Node, b: Node) -> Node:
    return build.map_("add", a, b)


def minus(a: Node, b: Node) -> Node:
    return build.map_("subtract", a, b)


def turned(a: Node) -> Node:
    return build.transpose(a, (1, 0))


def matmul(a: Node, b: Node) -> Node:
    return build.matmul(a, b, F8)


def total(a: Node) -> Node:
    return build.fold("add", a, tuple(range(a.ndim)))


def row_sums(a: Node) -> Node:
    """As a column, like the paper's rowSums."""
    return build.reshape(build.fold("add", a, (1,)), (a.shape[0], 1))


def als_update(x: Node, u: Node, v: Node, r: Node) -> dict[str, Node]:
    """Expression (1), ALS-CG: ((X != 0) * (U @ V.T)) @ V + 1e-6 * U * r."""
    product = matmul(u, turned(v))
    nonzero = build.map_("not_equal", x, scalar(0.0))
    masked = times(build.cast(nonzero, F8), product)
    update = matmul(masked, v)
    scaled = times(times(scalar(1e-6), u), r)
    return {"product": product, "masked": masked, "update": update, "out": plus(update, scaled)}


def mlogreg(x: Node, v: Node, p: Node, k: int) -> dict[str, Node]:
    """Expression (2), MLogreg: Q = P[:, :k] * (X @ v); H = X.T @ (Q - P[:, :k] * rowSums(Q))."""
    n = x.shape[0]
    part = build.slice_(p, (0, 0), (1, 1), (n, k))
    product = matmul(x, v)
    q = times(part, product)
    sums = build.fold("add", q, (1,))
    scaled = times(part, build.reshape(sums, (n, 1)))
    difference = minus(q, scaled)
    h = matmul(turned(x), difference)
    return {
        "product": product,
        "q": q,
        "sums": sums,
        "scaled": scaled,
        "difference": difference,
        "h": h,
    }


def random_graph(seed: int, most: int = 12) -> tuple[list[Node], list[Node]]:
    """Maps, aggregates and products of a few large and small arrays: nodes to want, and all of them."""
    rng = random.Random(seed)
    rows, columns = rng.choice([(10_000, 100), (100_000, 20), (2000, 2000)])
    nodes = [leaf(rows, columns) for _ in range(rng.randint(1, 3))] + [leaf(columns), leaf(rows, 1)]
    if rng.random() < 0.5:
        nodes += [
            sparse_leaf(rows, columns, density=rng.choice([0.1, 0.01])),
            leaf(rows, 10),
            leaf(columns, 10),
        ]
    made = []
    for _ in range(rng.randint(3, most)):
        node = _random_node(rng, nodes, rows, columns)
        nodes.append(node)
        made.append(node)
    used = {i for n in made for i in n.inputs}
    wanted = [n for n in made if n not in used or rng.random() < 0.1]
    return wanted, made


def _random_sampled(rng: random.Random, nodes: list[Node], sparse: list[Node]) -> Node:
    """A product of factors, alone or at the non-zeros of a sparse array, or what is made of such."""
    x = rng.choice(sparse)
    u, v = (next(n for n in nodes if n.op is Op.DATA and n.shape == (k, 10)) for k in x.shape)
    products = [n for n in nodes if n.fn == "contract" and n.shape == x.shape]
    kind = rng.random()
    if not products or kind < 0.1:
        return matmul(u, turned(v))
    if kind < 0.2:
        return matmul(x, v)
    product = rng.choice(products)
    return times(x, build.map_("exp", product) if kind < 0.5 else product)


def _random_node(rng: random.Random, nodes: list[Node], rows: int, columns: int) -> Node:
    large = [n for n in nodes if n.shape == (rows, columns)]
    a, kind = rng.choice(large[-4:]), rng.random()
    if kind < 0.25:
        return build.map_(rng.choice(["exp", "negative", "sqrt", "tanh"]), a)
    if kind < 0.55:
        fits = [n for n in nodes if n.shape in ((rows, columns), (rows, 1), (columns,))]
        return build.map_(rng.choice(["add", "multiply", "subtract"]), a, rng.choice(fits[-6:]))
    if kind < 0.65:
        return build.fold(rng.choice(["add", "maximum", "argmin"]), a, rng.choice([(0,), (0, 1)]))
    if kind < 0.72:
        return row_sums(a)
    if kind < 0.75:
        return build.scan("add", a, 0)
    sparse = [n for n in large if n.format == "csr"]
    if sparse and kind < 0.96:
        return _random_sampled(rng, nodes, sparse)
    column = rng.choice([n for n in nodes if n.shape == (rows, 1)])
    return matmul(turned(a), column) if rng.random() < 0.5 else matmul(a, leaf(columns, 1))
