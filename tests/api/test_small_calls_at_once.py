"""What is asked of small arrays is NumPy's at once, whatever function it is: nothing is left to be planned.

Small is what `config.small_bytes` says, and not what one function or another thinks: a call that leaves a
graph behind takes three to eight times as long as NumPy's, and so does all that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np

CALLS = """
a + c
c - w
a[:, None] - b[None, :5]
np.atleast_3d(a) * 2
np.where(m, a, c)
np.clip(a, c, 1)
np.hypot(c, w)
np.subtract.outer(w, w)
np.exp(a[..., None])
a[m]
x[j]
a[:, j[:100] % 300]
a.sum(0)
a.mean(0, where=m)
np.add.reduce(a, 1, where=m, initial=0)
np.add.reduceat(a, [0, 5, 100], axis=0)
np.maximum.accumulate(a, 1)
np.add.reduceat(x, [5, 3, 9])
np.median(a, axis=1)
np.quantile(x, 0.3)
np.sort(a, 0)
np.argsort(a, 1)
np.unique(i)
np.bincount(i.ravel(), weights=a.ravel())
np.histogram(x, 50)[0]
np.searchsorted(np.sort(w), x)
np.interp(x, np.sort(w), w)
np.convolve(x, w[:9])
np.gradient(a)[0]
np.diff(a, axis=1)
np.outer(w, w)
np.einsum("ij,ij->i", a, b)
np.einsum("ij,j->ij", a, w)
np.einsum("ij->j", a)
np.einsum("ij,ij", a, b)
np.einsum("ijk,ik->ij", t, t[0])
np.einsum("ij,jk,ik->i", a[:25, :9], b[:9, :9], a[:25, :9])
np.einsum("...i,i->...", a, w)
np.einsum(a, [0, 1], [1])
np.kron(w[:9], b[:9])
np.tensordot(a, b, 1)
np.trace(a)
np.tril(a)
np.roll(a, 3, 1)
np.tile(a, (2, 2))
np.repeat(a, 2, 0)
np.concatenate([a, b], 1)
np.stack([a, b], -1)
np.dstack((a, b))
np.block([[a, b], [b, a]])
np.pad(a, 3)
np.block([[a, c], [w, np.ones((1, 1))]])
np.moveaxis(t, 0, 2) + 1
np.broadcast_to(w, (300, 300)) * 2
np.power(a, 2)
np.floor_divide(a, c)
np.isclose(a, b)
np.all(m, 0)
np.count_nonzero(m, axis=0)
np.nonzero(m)[0]
np.linalg.norm(a, axis=1)
np.linalg.solve(a, w)
np.fft.fft2(a)
np.nanmean(a, 0)
np.cov(a[:50])
np.average(a, weights=w, axis=0)
np.cross(s, s[::-1])
np.mgrid[:200, :300][0] * 2
np.select([m, a > 0.5], [a, b])
np.choose(m.astype(int), [a, b])
np.choose(i % 2, [c, w])
np.isin(i, [1, 2, 3])
np.isin(a, w[:20], invert=True)
np.polyval([1, 2, 3], x)
np.intersect1d(i, j)
np.trapezoid(a, axis=1)
np.take_along_axis(a, np.argsort(a, 1), 1)
np.lib.stride_tricks.sliding_window_view(a, (3, 3)).max((2, 3))
np.delete(a, 3, 0)
np.append(w, w)
np.divide(s, c[:, None], out=s, where=s > 0.5)
np.sqrt(a, where=m, out=np.zeros_like(a))
np.ones_like(a) * w
"""
TEXTS = CALLS.strip().splitlines()


def _given(xp: Any) -> dict[str, Any]:
    rng = numpy.random.default_rng(0)
    return {
        "np": xp,
        "a": xp.array(rng.random((300, 300))),
        "b": xp.array(rng.random((300, 300))),
        "c": xp.array(rng.random((300, 1))),
        "w": xp.array(rng.random(300)),
        "x": xp.array(rng.random(90_000)),
        "i": xp.array(rng.integers(0, 99, (300, 300))),
        "j": xp.array(rng.integers(0, 90_000, 20_000)),
        "m": xp.array(rng.random((300, 300)) > 0.5),
        "t": xp.array(rng.random((40, 40, 40))),
        "s": xp.array(rng.random((300, 200, 3))),
    }


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for v in value:
            yield from _arrays(v)
    elif type(value) is np.ndarray:
        yield value


@pytest.mark.some(50)
@pytest.mark.parametrize("text", TEXTS)
def test_nothing_is_left_to_be_planned(text: str) -> None:
    ours, theirs = _given(np), _given(numpy)
    with np.config.override(small_bytes=1 << 25):
        found = eval(text, ours)
        left = [a for a in _arrays([found, *ours.values()]) if a._cell._node is not None]
        assert not left
    numpy.testing.assert_allclose(numpy.asarray(found), numpy.asarray(eval(text, theirs)), rtol=1e-9)
