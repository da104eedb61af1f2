"""Every row of the elementwise table, on every dtype NumPy takes, against NumPy: values and dtypes."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.numbers import NUMERIC
from spartan_ng.api.elementwise.ufuncs import of_name
from spartan_ng.ops.elementwise import ELEMENTWISE

DTYPES = ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
ROWS = [r for r in ELEMENTWISE.values() if r.is_ufunc]
pytestmark = pytest.mark.filterwarnings("ignore")


def sample(dtype, turn=0):
    values = numpy.array([0, 1, 2, 3, 5, 7, 1, 0, 4, 6, 2, 1]).reshape(3, 4)
    values = numpy.roll(values, turn)
    out = values.astype(dtype)
    if out.dtype.kind in "ifc":
        out[0] = -out[0]
    if out.dtype.kind == "f":
        out[1, :3] = [numpy.nan, numpy.inf, 0.5]
    if out.dtype.kind == "c":
        out[1, 0] = 1 + 2j
    return out


def compare(got, wanted):
    got, wanted = (x if isinstance(x, tuple) else (x,) for x in (got, wanted))
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == w.dtype
        value = g.compute()
        if w.dtype.kind in "fc" and w.dtype.itemsize > 2:
            numpy.testing.assert_allclose(
                value, w, rtol=4e-5 if w.dtype.itemsize == 4 or w.dtype == "c8" else 1e-12
            )
        else:
            numpy.testing.assert_array_equal(value, w)


@pytest.mark.some(60)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_row(mode, row):
    ufunc: Any = of_name(row.name)
    ran = 0
    for dtype in DTYPES:
        operands = [sample(dtype, i) for i in range(row.nin)]
        if row.name == "ldexp":
            operands[1] = numpy.array([1, 2, 3, 4])
        try:
            wanted = row.function(*operands)
        except (TypeError, ValueError) as error:
            with pytest.raises(ValueError if isinstance(error, ValueError) else TypeError):
                ufunc(*map(np.array, operands)).compute()
            continue
        compare(ufunc(*map(np.array, operands)), wanted)
        ran += 1
    assert ran or row.name == "isnat"


@pytest.mark.some(150)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scalar", [True, 2, -1, 2.5, 1j, 300], ids=str)
@pytest.mark.parametrize("name", ["add", "multiply", "power", "less", "equal", "maximum", "floor_divide"])
def test_python_scalars_are_weak(mode, dtype, scalar, name):
    x = sample(dtype)
    for swap in (False, True):
        args = (scalar, x) if swap else (x, scalar)
        ours = (scalar, np.array(x)) if swap else (np.array(x), scalar)
        try:
            wanted = getattr(numpy, name)(*args)
        except (TypeError, OverflowError, ValueError) as error:
            kinds = [k for k in (TypeError, OverflowError, ValueError) if isinstance(error, k)]
            with pytest.raises(tuple(kinds)):
                getattr(np, name)(*ours).compute()
            continue
        compare(getattr(np, name)(*ours), wanted)


@pytest.mark.some(30)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [2, 0.5, -1.0, 3, 0, 1, 2.0])
def test_power_operator(mode, dtype, exponent):
    x = sample(dtype)
    compare(np.array(x) ** exponent, x**exponent)


def test_out_where_casting_and_dtype(mode):
    x, y = numpy.arange(6.0).reshape(2, 3), numpy.arange(3)
    a, b = np.array(x), np.array(y)
    out, wanted = np.zeros((2, 3), "f4"), numpy.zeros((2, 3), "f4")
    assert np.add(a, b, out=out) is out
    numpy.add(x, y, out=wanted)
    compare(out, wanted)
    np.multiply(a, 3, out, where=a > 2)
    numpy.multiply(x, 3, wanted, where=x > 2)
    compare(out, wanted)
    compare(np.add(a, b, dtype="f4"), numpy.add(x, y, dtype="f4"))
    compare(np.add(b, b, dtype=float), numpy.add(y, y, dtype=float))
    with pytest.raises(TypeError):
        np.add(a, b, out=np.zeros((2, 3), int))
    with pytest.raises(TypeError):
        np.add(a, b, dtype=int, casting="safe")
    with pytest.raises(ValueError, match="non-broadcastable output"):
        np.add(a, b, out=np.zeros(3))
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(2,\) cannot be broadcast together"):
        a + numpy.arange(2)
    n = numpy.zeros((2, 3))
    assert np.add(a, 1, out=n) is n
    numpy.testing.assert_array_equal(n, x + 1)


def test_in_place_casting(mode):
    a = np.arange(3)
    with pytest.raises(TypeError):
        a += 1.5
    with pytest.raises(TypeError):
        a /= 2
    a += numpy.int8(1)
    a *= 2
    a **= 2
    a -= np.ones(3, int)
    assert a.dtype == int
    assert a.tolist() == [3, 15, 35]
    b = np.ones((2, 3))
    with pytest.raises(ValueError, match="broadcast"):
        b += np.ones((4, 2, 3))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logical_or", "subtract", "hypot"])
def test_methods(mode, name):
    x = numpy.arange(1.0, 7).reshape(2, 3)
    u, v = getattr(np, name), getattr(numpy, name)
    if name != "subtract":
        compare(u.reduce(np.array(x)), v.reduce(x))
        compare(
            u.reduce(np.array(x), axis=(0, 1), keepdims=True),
            v.reduce(x, axis=(0, 1), keepdims=True),
        )
        compare(u.accumulate(np.array(x), 1), v.accumulate(x, 1))
        compare(u.reduceat(np.array(x), [0, 2, 1], 1), v.reduceat(x, [0, 2, 1], 1))
    compare(u.outer(np.array(x), np.arange(4)), v.outer(x, numpy.arange(4)))


def test_numpys_functions_come_to_us(mode):
    a = np.arange(6.0).reshape(2, 3)
    for result in (
        numpy.add(a, 1),
        numpy.exp(a),
        numpy.sum(a),
        numpy.concatenate([a, a]),
        numpy.ones(3) + a,
        numpy.float64(2) * a,
        numpy.add.reduce(a),
        numpy.matmul(a, a.T),
        numpy.where(a > 1, a, 0),
    ):
        assert issubclass(type(result), Handle) or type(result) in NUMERIC
    numpy.testing.assert_array_equal(numpy.asarray(numpy.float64(2) * a), numpy.arange(6.0).reshape(2, 3) * 2)
