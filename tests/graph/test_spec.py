"""Each rule of graphs is broken once, and what passes make of random programs breaks none."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

import spartan_ng as sp
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op
from spartan_ng.graph.spec import RULES, BrokenRule, check_graph, check_pass
from spartan_ng.ops.functions import UserFunction
from spartan_ng.optimizer import pipeline

F8, I8, B1 = np.dtype(np.float64), np.dtype(np.int64), np.dtype(bool)


def leaf(*shape: int, dtype: np.dtype = F8) -> Node:
    return build.data(ArrayRef(shape, dtype, value=np.ones(shape, dtype)))


A, X = leaf(6, 4), leaf(6)
MAP = build.map_("add", A, A)
TURNED = build.transpose(A, (1, 0))
CUT = build.slice_(A, (1, 0), (2, 1), (2, 4))
PRODUCT = build.matmul(A, TURNED, F8)
INDICES = leaf(3, dtype=I8)
USER = build.join_update(UserFunction(np.add), [A, X], [0, 0], (6,), F8)

BROKEN: dict[str, list[Node]] = {
    "shape": [replace(MAP, shape=(6, -4)), replace(MAP, shape=(np.int64(6), 4)), replace(MAP, shape=[6, 4])],
    "dtype": [replace(MAP, dtype=float)],
    "format": [replace(MAP, format="coo"), replace(build.map_("negative", X), format="csr")],
    "leaves": [replace(MAP, inputs=()), replace(build.iota(6), inputs=(A,))],
    "values": [replace(MAP, data=A.data)],
    "data": [replace(A, shape=(4, 6)), replace(A, dtype=I8), replace(A, data=None)],
    "function": [
        replace(MAP, fn="addd"),
        replace(build.fold("add", A, [0]), fn="exp"),
        replace(build.iota(6), fn=None),
    ],
    "operands": [replace(MAP, inputs=(A,)), replace(build.map_("exp", A), inputs=(A, A))],
    "broadcast": [replace(MAP, shape=(4, 6)), replace(MAP, inputs=(A, TURNED))],
    "filter": [
        replace(build.nonzero(leaf(6, dtype=B1), 3), params=(4,)),
        replace(build.nonzero(leaf(6, dtype=B1), 3), inputs=(X,)),
        replace(build.compress(A, leaf(6, dtype=B1), 3), params=(4,)),
        replace(build.compress(A, leaf(6, dtype=B1), 3), inputs=(A, X)),
    ],
    "fold": [
        replace(build.fold("add", A, [0]), params=((1,),)),
        replace(build.fold("add", A, [0, 1]), params=((1, 0),)),
        replace(build.fold("add", A, [0], where=leaf(6, 4, dtype=B1)), inputs=(A, X)),
    ],
    "scan": [replace(build.scan("add", A, 1), params=(2,)), replace(build.scan("add", A, 1), shape=(4, 6))],
    "join": [
        replace(PRODUCT, shape=(6, 4)),
        replace(PRODUCT, inputs=(A, A)),
        replace(build.concatenate([A, A], 0), shape=(13, 4)),
        replace(build.concatenate([A, A], 0), dtype=I8),
        replace(build.assign(A, leaf(2, 4), ((0, 1), (0, 1))), params=((5, 1), (0, 1))),
        replace(build.take(A, INDICES, 0), shape=(4, 4)),
        replace(build.take(A, INDICES, 0), inputs=(A, leaf(3))),
        replace(build.scatter(X, INDICES, leaf(3)), inputs=(X, INDICES, leaf(4))),
        replace(build.tile_as(A, "row"), dtype=I8),
        replace(build.along_axis("sort", [A], 0, dtype=F8), params=("sort", 2, ())),
        replace(build.along_axis("sort", [A], 0, dtype=F8), params=("shuffle", 0, ())),
        replace(build.matrices("inv", [leaf(5, 2, 2)], [True], (5,), 4, dtype=F8), shape=(4, 4)),
        replace(build.bincount(INDICES, 7), shape=(8,)),
        replace(build.ends("sort", X, 3, False, F8), shape=(4,)),
        replace(build.places(X, ((0, 2), (4, 5))), params=("sort", ((0, 2), (1, 5)))),
        replace(build.places(X, ((0, 2), (4, 5))), params=("sort", ((0, 2), (4, 7)))),
        replace(build.distinct(X, 3), dtype=I8),
        replace(build.distinct(X, 3), inputs=(build.cast(X, F8.newbyteorder()),)),
        replace(build.ends("sort", X, 3, False, F8), dtype=F8.newbyteorder()),
        replace(build.between(X, [(1, True)], [True, False], 3), dtype=I8),
        replace(USER, inputs=(A, leaf(5))),
    ],
    "view": [replace(CUT, dtype=I8), replace(TURNED, inputs=(A, A)), replace(TURNED, fn="add")],
    "slice": [replace(CUT, params=((1, 6), (0, 1))), replace(CUT, params=((6, 1), (0, 1)))],
    "transpose": [replace(TURNED, params=((0, 0),)), replace(TURNED, shape=(6, 4))],
    "reshape": [replace(build.reshape(A, (24,)), shape=(23,))],
    "stretch": [replace(build.broadcast(X, (3, 6)), shape=(3, 5))],
}


def test_every_rule_is_broken_once() -> None:
    assert [*BROKEN] == [rule.name for _, rule in RULES]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(name: str) -> None:
    for node in BROKEN[name]:
        with pytest.raises(BrokenRule, match=f"after a test: .* breaks the rule '{name}'"):
            check_graph([node], "a test")


def test_a_rule_is_asked_of_nodes_under_the_roots() -> None:
    bad = replace(build.fold("add", A, [0]), params=((1,),))
    with pytest.raises(BrokenRule, match="'fold'"):
        check_graph([build.map_("exp", bad), MAP], "a test")


def test_a_pass_keeps_shapes_and_dtypes_of_roots() -> None:
    check_pass([A, MAP], [MAP, A], "a test")
    for after in ([A], [A, TURNED], [A, build.cast(MAP, np.dtype(np.float32))]):
        with pytest.raises(BrokenRule, match="the roots"):
            check_pass([A, MAP], after, "a test")


def test_the_passes_of_a_program_are_asked(monkeypatch) -> None:
    """A pass that leaves a graph that is none is named, if `config.check` is set."""
    name, step = pipeline.PASSES[2]

    def wrong(roots):
        return [replace(r, params=(1,)) if r.op is Op.SCAN else r for r in step(roots)]

    broken = tuple((n, wrong if n == name else s) for n, s in pipeline.PASSES)
    monkeypatch.setattr("spartan_ng.optimizer.pipeline.PASSES", broken)
    with config.override(small_bytes=0):
        with pytest.raises(BrokenRule, match=f"after {name}: <scan:add .* breaks the rule 'scan'"):
            sp.cumsum(sp.arange(20.0) * 3).compute()
        with config.override(check=False, kernels="interpret"), pytest.raises(IndexError):
            sp.cumsum(sp.arange(20.0) * 3).compute()
