"""Where NumPy's layout decides between a view and a copy: results lie as NumPy's do, computed or not."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy
import pytest

import spartan_ng as np

X = numpy.arange(24.0).reshape(2, 3, 4) % 7
TURNED = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "two axes": lambda x: x.transpose(0, 2, 1),
    "part": lambda x: x.T[1:, ::2],
    "backwards": lambda x: x.T[:, ::-1],
    "stretched": lambda x: x.T + x.T[:1],
    "part of a result": lambda x: (x + 1).T[1:, ::2],
    "result backwards": lambda x: (x + 1)[::-1, ..., None].transpose(3, 2, 0, 1)[0],
    "sum": lambda x: x.T.sum(0),
    "sum of all but one": lambda x: x.T.sum((0, 1)),
    "kept sum": lambda x: x.transpose(2, 0, 1).sum(1, keepdims=True),
}
MADE = {
    "plus one": lambda np, x: x + 1,
    "negative": lambda np, x: -x,
    "compared": lambda np, x: x > 2,
    "with another": lambda np, x: x * (x + 1),
    "with C": lambda np, x: x + np.zeros(x.shape),
    "cumsum": lambda np, x: np.cumsum(x, axis=0),
    "cumsum, turned": lambda np, x: np.cumsum(x, axis=-1).T,
    "segments": lambda np, x: np.minimum.reduceat(x, [0, 1, 1], axis=x.ndim - 1),
    "many segments": lambda np, x: np.add.reduceat(x, [0] * 20, axis=0),
    "sorted": lambda np, x: np.sort(x, axis=0),
    "twice": lambda np, x: (x + 1).T * 2,
}


NAMES = [lambda a: a.ravel(), lambda a: a.reshape(-1), lambda a: a.T.reshape(-1), lambda a: a.ravel("F")]


def facts(np, x, made):
    """What a program can tell of a result's layout: flags, orders, and which names share its elements."""
    yield (x.flags.c_contiguous, x.flags.f_contiguous)
    yield numpy.asarray(x.ravel("K")).tolist()
    for name in (
        lambda a: a.ravel(),
        lambda a: a.reshape(-1),
        lambda a: a.T.reshape(-1),
        lambda a: a.ravel("F"),
    ):
        a = made()
        seen = name(a)
        a[...] = 0
        before = numpy.asarray(seen).tolist()
        seen[...] = 1
        yield before, numpy.asarray(a).tolist()


@pytest.mark.some(100)
@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(("turned", "how"), list(itertools.product(TURNED, MADE)))
def test_results_lie_as_numpys(mode, turned, how, computed):
    def all_of(np):
        def made():
            x = MADE[how](np, TURNED[turned](np.array(X)))
            if computed and hasattr(x, "persist"):
                x.persist()
            return x

        return list(facts(np, made(), made))

    assert all_of(np) == all_of(numpy)


PARTS = [slice(None), slice(-2, None), 0, None, True, ..., [0, -1], numpy.array([1, 0])]


@pytest.mark.some(30)
@pytest.mark.parametrize("key", [k for n in (1, 2, 3) for k in itertools.product(PARTS, repeat=n)], ids=str)
def test_strides_of_what_is_indexed(key):
    """Here on the driver strides are NumPy's own, whatever the key; computed on workers they need not be."""
    for turned in (X, X.T):
        try:
            wanted = turned[key]
        except IndexError:
            continue
        assert np.asarray(turned)[key].strides == wanted.strides


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1,), (2, 1), ()])
def test_strides_of_raveled_axes(shape):
    orders: list[Any] = [*"CFAK"]
    for order in orders:
        assert np.zeros(shape).ravel(order).strides == numpy.zeros(shape).ravel(order).strides
        assert np.ravel(np.zeros(shape).T).strides == numpy.ravel(numpy.zeros(shape).T).strides


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "turn", [lambda x: x.T, lambda x: x.swapaxes(0, 1), lambda x: x.transpose(1, 2, 0).T]
)
def test_what_is_turned_lies_as_numpys(mode, order, turn):
    def lying(np):
        x = turn(np.ones((2, 3, 4), order=order) * 2)
        x[0, 1] = 5
        shown = numpy.asarray(x)
        return shown.flags.c_contiguous, shown.flags.f_contiguous, shown.tolist()

    assert lying(np) == lying(numpy)


PRODUCTS = {
    "matmul": lambda np, a, b: a @ b.T,
    "dot": lambda np, a, b: np.dot(a, b.T),
    "multi_dot": lambda np, a, b: np.linalg.multi_dot([a, b.T, a]),
    "multi_dot of four": lambda np, a, b: np.linalg.multi_dot([a, b.T, a, b.T]),
    "chain": lambda np, a, b: a @ b.T @ a,
    "power": lambda np, a, b: np.linalg.matrix_power(a @ b.T, 3),
    "inner": lambda np, a, b: np.inner(a, b),
    "outer": lambda np, a, b: np.outer(a, b),
    "tensordot": lambda np, a, b: np.tensordot(a, b, ((1,), (1,))),
    "einsum": lambda np, a, b: np.einsum("ij,kj->ik", a, b),
    "turned einsum": lambda np, a, b: np.einsum("ij,kj->ki", a, b),
    "einsum of three": lambda np, a, b: np.einsum("ij,kj,kl->il", a, b, a),
    "kron": lambda np, a, b: np.kron(a, b),
    "cov": lambda np, a, b: np.cov(a, b),
    "gram": lambda np, a, b: a.T @ a,
    "turned product": lambda np, a, b: (a @ b.T).T,
    "vecdot": lambda np, a, b: np.vecdot(a, b),
    "solve": lambda np, a, b: np.linalg.solve(a @ a.T + numpy.eye(len(a)) * 9, b),
    "inv": lambda np, a, b: np.linalg.inv(a @ a.T + numpy.eye(len(a)) * 9),
    "qr": lambda np, a, b: np.linalg.qr(a)[0],
}
LYING = {
    "C": lambda np, x: x,
    "F": lambda np, x: np.asarray(x.T.copy()).T,
    "found": lambda np, x: np.argwhere(x[None] * x[:, None])[:, :2].astype(x.dtype)[: len(x)],
    "backwards": lambda np, x: x[::-1, ::-1],
    "part": lambda np, x: np.repeat(x, 2, axis=1)[:, ::2],
}


@pytest.mark.some(60)
@pytest.mark.parametrize("dtype", ["f8", "i8", "c8"])
@pytest.mark.parametrize(("product", "one", "other"), list(itertools.product(PRODUCTS, LYING, LYING)))
def test_products_lie_as_numpys(mode, product, one, other, dtype):
    found = []
    for xp in (numpy, np):
        a, b = (LYING[way](xp, xp.array((X[0] + 1).astype(dtype))) for way in (one, other))
        if a.shape != b.shape:
            a, b = (x[:3, :2] for x in (a, b))
        made = PRODUCTS[product](xp, a, b)
        again = xp.round(made, 1)
        found.append([(x.flags.c_contiguous, x.flags.f_contiguous) for x in (made, again)])
    assert found[1] == found[0]


def test_one_axis_as_memory_has_it_of_stretched_and_turned_arrays(mode):
    """An axis whose elements are one has no place in memory's order."""
    for seed in range(200):
        found = []
        for package in (numpy, np):
            draw = random.Random(seed)
            x = package.arange(24).reshape(draw.choice([(2, 3, 4), (4, 6), (24,), (1, 24), (3, 1, 8)]))
            for _ in range(draw.randint(1, 3)):
                step = draw.choice(["stretch", "in front", "turn", "backwards", "part"])
                if step == "stretch":
                    axis = draw.randint(0, x.ndim)
                    shape = (*x.shape[:axis], 3, *x.shape[axis:])
                    x = package.broadcast_to(package.expand_dims(x, axis), shape)
                elif step == "in front":
                    x = package.broadcast_to(x, (2, *x.shape))
                elif step == "turn":
                    x = x.transpose(draw.sample(range(x.ndim), x.ndim))
                else:
                    x = x[..., :: -1 if step == "backwards" else 2]
            lines = x.ravel("K"), x.flatten("K"), x.copy("K").ravel("K")
            found.append([numpy.asarray(line).tolist() for line in lines])
        assert found[0] == found[1], seed
