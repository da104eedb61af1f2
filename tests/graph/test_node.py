"""What a node shows of itself, to who reads a plan or a failed test."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph import build
from spartan_ng.graph.node import VIEWS, Op

F8 = np.dtype(float)
A = build.data(ArrayRef((4, 6), F8))
NODES = [
    *(A, build.iota(5), build.map_("exp", A), build.fold("add", A, (0,)), build.scan("add", A, 1)),
    *(build.transpose(A, (1, 0)), build.reshape(A, (3, 8)), build.slice_(A, (0, 1), (1, 1), (4, 2))),
    *(build.broadcast(A, (2, 4, 6)), build.matmul(A, build.transpose(A, (1, 0)), F8)),
    build.concatenate([A, A], 0),
]


@pytest.mark.parametrize("node", NODES, ids=lambda n: n.op.value)
def test_nodes_name_what_they_do_their_shape_and_dtype(node):
    shown = repr(node)
    assert node.op.value in shown
    assert f"{node.shape} {node.dtype}" in shown
    assert "None" not in shown
    named = node.op not in (*VIEWS, Op.DATA, Op.SLICE)
    assert (f":{node.fn} " in shown) == named == (node.fn is not None)
