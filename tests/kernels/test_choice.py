"""`where` by bits against NumPy's: dtypes, special values, layouts."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.kernels.choice import choose, has_bits

RANDOM = np.random.default_rng(0)
DTYPES = [
    np.dtype(c)
    for c in ("?", "i1", "u2", "f2", "i4", "f4", ">f4", "u8", "f8", "M8[s]", "c8", "c16", "U1", "O")
]


def sample(dtype, shape):
    """Any bits there are."""
    if dtype.kind in "OU":
        return RANDOM.integers(0, 9, shape).astype(dtype)
    if dtype.kind == "b":
        return RANDOM.random(shape) > 0.5
    return RANDOM.integers(0, 256, (*shape, dtype.itemsize), dtype="u1").view(dtype)[..., 0]


LAYOUTS = {
    "rows": lambda c, x, y: (c, x, y),
    "columns": lambda c, x, y: (c, x.copy(order="F"), y),
    "strides": lambda c, x, y: (c[::2, ::-1], x[::2, ::-1], y[1::2]),
    "stretched": lambda c, x, y: (c[:, :1], x[3], y),
    "scalars": lambda c, x, y: (c, x[0, 0, ...], y[1, 1, ...]),
    "one condition": lambda c, x, y: (c[0, 0, ...], x, y),
    "nothing": lambda c, x, y: (c[:0], x[:0], y[:0]),
}


@pytest.mark.some(40)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_as_numpy(dtype, layout):
    shape = (30, 17)
    c, x, y = LAYOUTS[layout](RANDOM.random(shape) > 0.5, sample(dtype, shape), sample(dtype, shape))
    wanted = np.asarray(np.where(c, x, y))
    for out in (np.empty(wanted.shape, dtype), np.empty((*wanted.shape[:-1], 40), dtype)[..., 1:18]):
        got = choose(c, x, y, out if has_bits(dtype) else None)
        assert got is out or not has_bits(dtype)
        assert got.dtype == dtype
        if dtype.kind == "O":
            assert got.tolist() == wanted.tolist()
        else:
            assert got.tobytes() == wanted.astype(dtype).tobytes()


def test_other_conditions_and_dtypes_are_numpys():
    x, y = np.arange(6.0), -np.arange(6.0)
    out = np.empty(6)
    for condition, first in ((np.arange(6) % 3, x), (x > 2, x.astype("f4")), (x > 2, x.astype("i8"))):
        assert choose(condition, first, y, out) is out
        np.testing.assert_array_equal(out, np.where(condition, first, y))


@pytest.mark.some(40)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if has_bits(d)], ids=str)
@pytest.mark.parametrize("shared", ["x", "y", "xy", "c", "cx", "cy", "cxy"])
@pytest.mark.parametrize("move", [0, 1])
def test_out_may_be_what_is_chosen_from(dtype, shared, move):
    """Each operand in `shared` lies where the result goes, or (`move`) an element beside it."""
    memory = {name: sample(dtype if name != "c" else np.dtype("?"), (41,)) for name in "cxy"}
    if "c" in shared and dtype.kind != "b":
        pytest.skip("a condition is no number")
    home = sample(dtype, (41,))
    c, x, y = (home[move : 40 + move] if name in shared else memory[name][:40] for name in "cxy")
    wanted = np.where(c, x, y).astype(dtype).tobytes()
    assert choose(c, x, y, home[:40]).tobytes() == wanted
