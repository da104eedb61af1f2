"""Folds and products of windows that lie over each other: NumPy does them as they lie, in few bytes."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any
from unittest.mock import patch

import numpy
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.core import door
from spartan_ng.config import config
from spartan_ng.costs.choices import SLAB_BYTES, WINDOW_ELEMENTS
from tests.sampling import Some
from tests.test_programs import running_on

windows = numpy.lib.stride_tricks.sliding_window_view
FOLDS = ("sum", "mean", "max", "min", "prod", "any", "all", "std", "argmax", "cumsum")


def _drawn(seed: int) -> tuple[Any, Any, tuple[int, ...], tuple[slice, ...]]:
    """An array, how long its windows are, and along which axes, and which of them are looked at."""
    rng, numbers = random.Random(seed), numpy.random.default_rng(seed)
    shape = [rng.randint(40, 90) for _ in range(rng.randint(1, 2))]
    a = numbers.integers(0, 5, shape).astype(rng.choice(["f8", "f8", "f4", "i8", "u1", "?", "c16"]))
    axes = tuple(rng.sample(range(a.ndim), rng.randint(1, a.ndim)))
    lengths = tuple(rng.choice([1, 2, 5, WINDOW_ELEMENTS, WINDOW_ELEMENTS + 1, 30]) for _ in axes)
    step = tuple(slice(None, None, rng.choice([1, 1, 2, -1])) for _ in shape)
    return a, lengths, axes, step


@pytest.mark.slow
def test_answers_are_numpys(some: Some) -> None:
    for seed in some(range(600), 40):
        a, lengths, axes, step = _drawn(seed)
        theirs, ours = windows(a, lengths, axes)[step], windows(sp.array(a), lengths, axes)[step]
        rng = random.Random(seed)
        axis: Any = rng.choice([-1, tuple(range(-len(axes), 0)), 0, None])
        name = rng.choice(FOLDS)
        axis = axis if name not in ("argmax", "cumsum") or type(axis) is int else -1
        vector = numpy.arange(theirs.shape[-1]).astype(rng.choice([a.dtype, "f8"]))
        matrix = numpy.stack([vector, vector[::-1]], 1)
        for small in (1000, a.nbytes + 8, 1 << 25):
            with config.override(small_bytes=small):
                pairs = [
                    (getattr(ours, name)(axis=axis), getattr(theirs, name)(axis=axis)),
                    (ours @ sp.array(vector), theirs @ vector),
                    (ours @ sp.array(matrix), theirs @ matrix),
                    (sp.dot(ours, sp.array(vector)), numpy.dot(theirs, vector)),
                ]
                lines, columns = "abcd"[: theirs.ndim], "abcd"[: theirs.ndim - 1]
                last = lines[-1]
                for text, other in ((f"{last}", vector), (f"{last}z", matrix), (f"z{last}", matrix.T)):
                    for result in (columns + text.replace(last, ""), text.replace(last, "") + columns[::-1]):
                        for call in (f"{lines},{text}->{result}", f"{text},{lines}->{result}"):
                            mine = [ours, sp.array(other)], [theirs, other]
                            pair = [v if call.startswith(lines + ",") else v[::-1] for v in mine]
                            pairs.append((sp.einsum(call, *pair[0]), numpy.einsum(call, *pair[1])))
                pairs += [
                    (sp.tensordot(ours, sp.array(matrix), 1), numpy.tensordot(theirs, matrix, 1)),
                    (
                        sp.tensordot(matrix, ours, ((0,), (-1,))),
                        numpy.tensordot(matrix, theirs, ((0,), (-1,))),
                    ),
                    (sp.inner(ours, sp.array(vector)), numpy.inner(theirs, vector)),
                    (sp.inner(sp.array(matrix.T), ours), numpy.inner(matrix.T, theirs)),
                    (sp.vecdot(ours, sp.array(vector)), numpy.vecdot(theirs, vector)),
                    (sp.argmax(ours, axis=-1), numpy.argmax(theirs, axis=-1)),
                    (sp.argmin(ours, axis=0, keepdims=True), numpy.argmin(theirs, axis=0, keepdims=True)),
                    (sp.var(ours, axis=(-1,), ddof=-1), numpy.var(theirs, axis=(-1,), ddof=-1)),
                    (sp.var(ours, axis=0, keepdims=True), numpy.var(theirs, axis=0, keepdims=True)),
                ]
                for stretched in (numpy.asarray(vector), numpy.arange(theirs.shape[-2]).reshape(-1, 1)):
                    product, wanted = ours * sp.array(stretched), theirs * stretched
                    pairs.append((product.sum(axis=axis), wanted.sum(axis=axis)))
                    pairs.append((product.mean(axis=-1, keepdims=True), wanted.mean(axis=-1, keepdims=True)))
                    short = (*wanted.shape[:-1], 1, wanted.shape[-1])
                    pairs.append((product.reshape(short)[::-1].sum(-1), wanted.reshape(short)[::-1].sum(-1)))
                if theirs.ndim == 2:
                    pairs.append((sp.array(vector) @ ours.T, vector @ theirs.T))
                for n, (found, wanted) in enumerate(pairs):
                    told = f"{seed}, {n}: {name} along {axis}, {lengths} of {a.shape} {a.dtype}"
                    value = numpy.asarray(found)
                    assert (value.dtype, value.shape) == (wanted.dtype, wanted.shape), told
                    numpy.testing.assert_allclose(value, wanted, rtol=1e-5, err_msg=told)


def test_what_is_shown_again_is_told_by_its_addresses(some: Some) -> None:
    for seed in some(range(600, 1200), 40):
        a, lengths, axes, step = _drawn(seed)
        shown = windows(a, lengths, axes)[step]
        offsets = sum(
            numpy.arange(n).reshape(-1, *(1,) * (shown.ndim - i - 1)) * s
            for i, (n, s) in enumerate(zip(shown.shape, shown.strides, strict=True))
        )
        below = int(numpy.ptp(offsets)) + a.itemsize
        for small in (below - 1, below):
            with config.override(small_bytes=small):
                assert door.is_shown_again(shown) == (below < shown.nbytes)
                with running_on(SimulatedBackend(2)):
                    for sooner in (False, True):
                        with patch.object(door, "is_sooner_here", lambda steps, nbytes, is_=sooner: is_):
                            read = sooner or below <= small
                            assert door.is_shown_again(shown) == (read and below < shown.nbytes)
        assert not door.is_shown_again(a)
        assert not door.is_shown_again(numpy.broadcast_to(a, (9, *a.shape)))


@pytest.mark.parametrize(
    ("is_lazy", "call"),
    [
        (False, lambda w: w @ sp.arange(40.0)),
        (False, lambda w: sp.dot(w, sp.arange(40.0))),
        (False, lambda w: w.astype(int, copy=False) @ sp.ones((40, 3), int) if w.dtype == int else w.sum(1)),
        (False, lambda w: w.sum(axis=1)),
        (False, lambda w: w.max(axis=0)),
        (True, lambda w: w[:, :WINDOW_ELEMENTS].sum(axis=1)),  # which the optimizer makes slices of
        (True, lambda w: w * 2),  # as large as what is shown
        (False, lambda w: w @ sp.ones((40, 3))),
        (False, lambda w: w.std(axis=1)),
        (False, lambda w: w.var(axis=1, ddof=1, keepdims=True)),
        (False, lambda w: w.argmax(axis=1)),
        (False, lambda w: sp.ones((3, 40)) @ w.T),
        (False, lambda w: w.reshape(-1, 11, 40) @ sp.ones(40)),
        (False, lambda w: sp.einsum("ij,j->i", w, sp.ones(40))),
        (False, lambda w: sp.einsum("...j,j", w, sp.ones(40))),
        (False, lambda w: sp.einsum(w, [0, 1], sp.ones((40, 3)), [1, 2], [0, 2])),
        (False, lambda w: sp.einsum("ij,ij->i", w, w)),
        (False, lambda w: sp.tensordot(w, sp.ones(40), 1)),
        (False, lambda w: sp.tensordot(sp.ones((3, 40)), w, ((1,), (1,)))),
        (False, lambda w: sp.inner(w, sp.ones(40))),
        (False, lambda w: sp.vecdot(w, sp.ones(40))),
        (False, lambda w: sp.matvec(w, sp.ones(40))),
        (True, lambda w: w.T @ w),  # as much work as BLAS shares
        (True, lambda w: w.var()),  # nothing is kept
    ],
)
def test_they_are_done_at_once(is_lazy: bool, call: Any) -> None:
    for kind in (float, int):
        a = sp.array(numpy.arange(5000).astype(kind) % 7)
        with config.override(small_bytes=1 << 17):
            found = call(windows(a, 40))
            if kind is float or not is_lazy:
                assert (found._cell.value is None) == is_lazy


CONTRACTIONS = {
    "einsum": lambda w, k: sp.einsum("ij,j->i", w, k),
    "einsum of columns": lambda w, k: sp.einsum("ij,cj->ic", w, sp.stack([k, k, k])),
    "einsum of three": lambda w, k: sp.einsum("ij,j,i->i", w, k, w[:, 0]),
    "tensordot": lambda w, k: sp.tensordot(w, k, 1),
    "inner": lambda w, k: sp.inner(w, k),
    "dot": lambda w, k: sp.dot(w, k),
    "vecdot": lambda w, k: sp.vecdot(w, k),
    "matmul": lambda w, k: w @ sp.stack([k, k, k], 1),
    "var": lambda w, k: w.var(axis=1),
    "argmax": lambda w, k: w.argmax(axis=1),
    "sum": lambda w, k: w.sum(axis=1),
    "multiply and sum": lambda w, k: (w * k).sum(axis=1),
    "multiply and mean": lambda w, k: (w * k).mean(axis=-1, keepdims=True),
    "multiply twice": lambda w, k: (k[None] * w * k).sum(axis=1),
    "multiply and fold": lambda w, k: (w[::2] * k).reshape(-1, 4, 64).sum(1),
}
"""What folds windows to one of them, or a few."""


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_windows_are_not_made_on_either_side_of_what_is_small(name: str) -> None:
    a, k = sp.array(numpy.random.default_rng(1).random(20_000)), sp.array(numpy.arange(256.0))
    shown = windows(a, 256)
    for small in (shown.nbytes - 1, 8 * a.nbytes):
        with config.override(small_bytes=small):
            tracemalloc.start()
            try:
                found = CONTRACTIONS[name](shown, k)._force()
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        assert peak < 8 * (SLAB_BYTES + found.nbytes), (name, small, peak, shown.nbytes)
