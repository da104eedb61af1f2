"""What small arrays give is there at once: one lazy array among them makes every later step a plan."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core.handle import Handle
from tests.budgets import functions
from tests.sampling import Some

_DRAWN = 150
_LAZY = frozenset(
    [
        "choose(x > .5, x, x)",  # the choices would be an array's
        *(f"fft.{name}(x, 2, 0)" for name in ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")),
        *(f"{name}(x, x > .5, value)" for name in ("intersect1d", "isin", "setdiff1d")),
    ]
)
"""What is lazy although it is small: arguments that say more than which arrays there are."""


def waiting(found: Any) -> bool:
    """Whether something of an answer has yet to be computed."""
    parts = found if isinstance(found, tuple | list) else [found]
    return any(isinstance(part, Handle) and part._peek() is None for part in parts)


@pytest.mark.slow
def test_functions_of_small_arrays(some: Some) -> None:
    x, line = np.array(numpy.random.default_rng(3).random((52, 10))), np.arange(520.0) / 520
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in some([n for n in functions.programs() if n not in _LAZY], _DRAWN):
            assert not waiting(functions.program(name)(np, x.copy(), line.copy())), name


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.einsum("ij,ik->jk", x, x),
        lambda m, x: m.einsum("nfp,npk->fk", x.reshape(4, 2, 65), x.reshape(4, 65, 2)),
        lambda m, x: m.einsum("bij,bjk->bik", x.reshape(4, 2, 65), x.reshape(4, 65, 2)),
        lambda m, x: m.einsum("ij,jk,ik->i", x, m.eye(10), x),
        lambda m, x: m.einsum("ij,kj->ik", x, x, optimize=True),
        lambda m, x: m.meshgrid(range(20), range(9)),
        lambda m, x: m.meshgrid([1.0, 2.0], x[0], indexing="ij"),
        lambda m, x: m.tril_indices(9),
        lambda m, x: m.triu_indices(9, -1, 4),
        lambda m, x: m.clip(x[0, 0], 0.25, 0.5),
        lambda m, x: m.clip(x, None, 0.5),
    ],
)
def test_more_of_them(call: Any) -> None:
    """Contractions, and what is made of plain sequences and numbers."""
    x = numpy.random.default_rng(3).random((52, 10))
    found, expected = call(np, np.array(x)), call(numpy, x)
    assert not waiting(found)
    for ours, theirs in zip(*((f if isinstance(f, tuple) else (f,)) for f in (found, expected)), strict=True):
        assert numpy.asarray(ours).dtype == theirs.dtype
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_contractions_have_no_negative_zeros() -> None:
    """NumPy adds to zeros, and BLAS need not."""
    for kind in ("f4", "f8", "c16"):
        a, b = numpy.full((300, 40), -0.0, kind), numpy.ones((40, 30), kind)
        for text in ("ij,jk->ik", "ij,jk->ki", "ij,jk->k"):
            ours = numpy.asarray(np.einsum(text, np.array(a), np.array(b)))
            assert ours.tobytes() == numpy.einsum(text, a, b).tobytes(), (kind, text)
