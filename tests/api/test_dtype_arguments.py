"""`dtype=` in all its spellings, for functions and methods that take one of what they compute in."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.api.answers import differences

SPELLINGS = [numpy.float32, numpy.dtype("f4"), "f4", "float32", numpy.float64, float, "d"]
X = numpy.arange(1.0, 13).reshape(3, 4)
CALLS: dict[str, Callable[..., Any]] = {
    "array": lambda xp, x, d: xp.array(x, dtype=d),
    "asarray": lambda xp, x, d: xp.asarray(x, dtype=d),
    "astype": lambda xp, x, d: x.astype(dtype=d),
    "full": lambda xp, x, d: xp.full(3, 2, dtype=d),
    "full_like": lambda xp, x, d: xp.full_like(x, 2, dtype=d),
    "ones_like": lambda xp, x, d: xp.ones_like(x, dtype=d),
    "linspace": lambda xp, x, d: xp.linspace(0, 1, 5, dtype=d),
    "arange": lambda xp, x, d: xp.arange(5, dtype=d),
    "einsum": lambda xp, x, d: xp.einsum("ij->i", x, dtype=d, casting="unsafe"),
    "concatenate": lambda xp, x, d: xp.concatenate([x, x], dtype=d, casting="unsafe"),
    "stack": lambda xp, x, d: xp.stack([x, x], dtype=d, casting="unsafe"),
    "add": lambda xp, x, d: xp.add(x, x, dtype=d, casting="unsafe"),
    "matmul": lambda xp, x, d: xp.matmul(x, x.T, dtype=d, casting="unsafe"),
    "reduce": lambda xp, x, d: xp.add.reduce(x, dtype=d),
    "accumulate": lambda xp, x, d: xp.add.accumulate(x, dtype=d),
    "outer": lambda xp, x, d: xp.multiply.outer(x, x, dtype=d, casting="unsafe"),
    "trace": lambda xp, x, d: xp.trace(x, dtype=d),
    "cov": lambda xp, x, d: xp.cov(x, dtype=d),
    "corrcoef": lambda xp, x, d: xp.corrcoef(x, dtype=d),
    **{
        name: lambda xp, x, d, name=name: getattr(xp, name)(x, dtype=d)
        for name in ("sum", "prod", "mean", "var", "std", "cumsum", "cumprod", "nansum", "nanprod", "nanmean")
    },
    **{
        f"method {name}": lambda xp, x, d, name=name: getattr(x, name)(dtype=d)
        for name in ("sum", "prod", "mean", "var", "std", "cumsum", "cumprod", "trace")
    },
}


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("name", CALLS)
def test_a_dtype_is_taken_as_numpy_takes_it(name, small):
    with np.config.override(small_bytes=small):
        for dtype in SPELLINGS:
            wanted, found = CALLS[name](numpy, X, dtype), CALLS[name](np, np.array(X), dtype)
            assert found.dtype == wanted.dtype, dtype
            numpy.testing.assert_allclose(numpy.asarray(found), wanted, rtol=1e-5)


OWN = [
    *"?Og",
    "i1",
    "u2",
    "i4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    "m8[s]",
    "M8[s]",
    ">f8",
    "S3",
    "U3",
]
ASKED: list[Any] = [
    None,
    *SPELLINGS[3:],
    int,
    "i4",
    bool,
    complex,
    "f4",
    object,
    "m8[s]",
    "m8",
    "M8[s]",
    ">f8",
    "U5",
]


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
def test_every_kind_of_elements_in_every_dtype_is_numpys_or_its_error(small, some):
    """Also where one is none of numbers, or has an order of bytes: `np.dtype("f8") == None` is true."""
    value = numpy.arange(12).reshape(3, 4) % 5

    def asked(name, kind, dtype):
        x = value.astype(kind)
        return f"{name} of {kind} in {dtype}", lambda xp: CALLS[name](xp, xp.array(x), dtype)

    calls = itertools.starmap(asked, some(itertools.product(CALLS, OWN, ASKED), 1500))
    with np.config.override(small_bytes=small):
        assert not differences(calls)
