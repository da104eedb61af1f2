"""Keys of graphs: equal where plans may be shared, different where leaves ask for plans of their own."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
from scipy import sparse

from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.graph.rows import flatten

F8 = np.dtype(float)
SHAPE = (640, 30)


def key(ref):
    """The key of a program over one array."""
    roots = [build.map_("exp", build.data(ref))]
    found, leaves = flatten(topological(roots), roots)
    assert leaves == [ref]
    return found


def csr(nnz, skewed=False):
    """A sparse array; the rows of a skewed one are as unequal as can be."""
    rows = np.repeat([0, 1], [nnz // 2, nnz - nnz // 2]) if skewed else np.arange(nnz) % 640
    value = sparse.csr_array((np.ones(nnz), (rows, np.arange(nnz) % 30)), SHAPE)
    return ArrayRef(SHAPE, F8, value=value, format="csr", nnz=nnz)


def outside(*chunks, value=None, beside=0, whole=0):
    """An array that lies outside, mapped if it has a value."""
    source = SimpleNamespace(chunks=chunks, beside_bytes=beside, whole_bytes=whole)
    return ArrayRef(SHAPE, F8, value=value, source=source)


def kept(*tilings):
    """An array on the workers, in further tilings, too."""
    ref = ArrayRef(SHAPE, F8, tiling=Tiling.grid(4, 1))
    ref.also = tuple(ArrayRef(SHAPE, F8, tiling=t) for t in tilings)
    return ref


def on_disk():
    """An array on the workers whose memory had no room for it."""
    ref = ArrayRef(SHAPE, F8, tiling=Tiling.grid(4, 1), value=np.ones(SHAPE))
    ref.on_disk = True
    return ref


def test_leaves_that_are_planned_alike_have_one_key():
    ones, zeros = (ArrayRef(SHAPE, F8, value=np.full(SHAPE, v)) for v in (1.0, 0.0))
    assert key(ones) == key(zeros)
    assert key(csr(600)) == key(csr(601)), "about as many non-zeros"
    assert key(outside(64, 30)) == key(outside(64, 30))
    assert key(kept(Tiling.grid(1, 4))) == key(kept(Tiling.grid(1, 4)))


def test_leaves_that_are_planned_in_other_ways_have_other_keys():
    value = np.ones(SHAPE)
    refs = {
        "dense": ArrayRef(SHAPE, F8, value=value),
        "shape": ArrayRef((30, 640), F8, value=value.T),
        "dtype": ArrayRef(SHAPE, np.dtype("f4"), value=value.astype("f4")),
        "few": csr(600),
        "many": csr(6000),
        "outside, packed": outside(64, 30, beside=1000),
        "outside, with a dictionary": outside(64, 30, whole=1000),
        "skewed": csr(600, skewed=True),
        "skewed otherwise": csr(600, skewed=True),
        "chunks": outside(64, 30),
        "other chunks": outside(32, 30),
        "mapped": outside(64, 30, value=value),
        "on the workers": kept(),
        "twice": kept(Tiling.grid(1, 4)),
        "twice otherwise": kept(Tiling.grid(2, 2)),
        "on disk": on_disk(),
    }
    for (one, a), (other, b) in combinations(refs.items(), 2):
        assert key(a) != key(b), (one, other)
