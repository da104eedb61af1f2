"""Numbers of arrays of the other byte order are the machine's, as NumPy's elements are."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np

NUMBERS = {
    "an element": lambda xp, a: a[1, 1],
    "the only element": lambda xp, a: a[1:2, 1:2].sum(),
    "max": lambda xp, a: a.max(),
    "sum": lambda xp, a: a.sum(),
    "mean": lambda xp, a: a.mean(),
    "median": lambda xp, a: xp.median(a.real),
    "sorted": lambda xp, a: xp.sort(a, axis=None)[2],
    "take": lambda xp, a: xp.take(a, 3),
    "roll": lambda xp, a: xp.roll(a, 1)[0, 0],
    "masked max": lambda xp, a: xp.max(a.real, where=a.real > 2, initial=0),
    "argmax": lambda xp, a: a.argmax(),
}


@pytest.mark.some(40)
@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", ">i8", ">u4", ">c16", "<f4", "<i8"])
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_the_machines_order(dtype, small_bytes, name):
    values = numpy.arange(1, 7).reshape(2, 3)
    with np.config.override(small_bytes=small_bytes):
        found = NUMBERS[name](np, np.array(values).astype(dtype))
        expected = NUMBERS[name](numpy, values.astype(dtype))
        assert found.dtype.str == expected.dtype.str
        assert found == expected


CONVERSIONS = {
    "itself": lambda xp, a: a,
    "copy": lambda xp, a: a.copy(),
    "tril": lambda xp, a: xp.tril(a) if a.ndim else a,
    "triu": lambda xp, a: xp.triu(a) if a.ndim else a,
    "view": lambda xp, a: a.view(),
    "whole": lambda xp, a: a[...],
    "reshape": lambda xp, a: a.reshape(a.shape),
    "transpose": lambda xp, a: a.T,
    "squeeze": lambda xp, a: a.reshape((1, *a.shape)).squeeze(0),
    "array": lambda xp, a: xp.array(a),
    "asarray of a kind": lambda xp, a: xp.asarray(a, dtype=">i4"),
    "to narrower": lambda xp, a: a.astype(">f4"),
    "to complex": lambda xp, a: a.astype(">c16"),
    "to native": lambda xp, a: a.astype("=f8"),
    "real": lambda xp, a: a.real,
    "imag": lambda xp, a: a.imag,
    "a part, written": lambda xp, a: _written_part(a.copy()),
    "empty_like": lambda xp, a: xp.zeros_like(a),
    "full": lambda xp, a: xp.full(a.shape, 3, a.dtype),
    "broadcast": lambda xp, a: xp.broadcast_to(a, a.shape),
    "where": lambda xp, a: xp.where(xp.ones(a.shape, bool), a, a),
    "clip": lambda xp, a: a.clip(-1, a),
    "out": lambda xp, a: xp.add(a, 1, out=a.copy()),
    "written": lambda xp, a: _written(a.copy()),
}


def _written_part(a):
    a.real[...] = 7
    return a


def _written(a):
    a[...] = 7
    return a


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.some(60)
@pytest.mark.parametrize("dtype", [">f8", ">i8", "<u2", ">c8"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_arrays_keep_their_order_whether_they_have_axes_or_not(dtype, shape, small_bytes, name):
    values = numpy.arange(1, 1 + numpy.prod(shape, dtype=int)).reshape(shape)
    convert = CONVERSIONS[name]
    with np.config.override(small_bytes=small_bytes):
        expected = convert(numpy, values.astype(dtype))
        found = convert(np, np.array(values).astype(dtype))
        assert found.dtype.str == expected.dtype.str
        assert found.shape == expected.shape
        numpy.testing.assert_array_equal(numpy.asarray(found), expected)


_NAMES = (
    *("mean", "std", "var", "average", "median", "nanmean", "nanvar", "nanstd", "sum", "cumsum", "nansum"),
    *("unique", "round", "nan_to_num", "diff", "ptp", "flip", "copy", "ravel", "trim_zeros", "ediff1d"),
    *("zeros_like", "sqrt", "negative"),
)
_PLACES = {"least": slice(10), "greatest": slice(-10, None), "middle": slice(40, 60), "rest": slice(10, None)}


def _of(name):
    return lambda xp, a: getattr(xp, name)(a)


def _place(place):
    return lambda xp, a: xp.sort(a, axis=None)[place]


CALLS = {
    **{name: _of(name) for name in _NAMES},
    **{f"the {name} of a sort": _place(place) for name, place in _PLACES.items()},
    "by columns": lambda xp, a: xp.mean(a.reshape(-1, 4), axis=0),
    "deviations by rows": lambda xp, a: xp.std(a.reshape(4, -1), axis=1),
    "delete": lambda xp, a: xp.delete(a, 3),
    "delete some": lambda xp, a: xp.delete(a, [1, 5]),
    "insert": lambda xp, a: xp.insert(a, 3, 1),
    "insert some": lambda xp, a: xp.insert(a, [1, 5], 1),
    "append": lambda xp, a: xp.append(a, a),
    "resize": lambda xp, a: xp.resize(a, (3, 7)),
    "resize up": lambda xp, a: xp.resize(a, a.size + 3),
    "partition": lambda xp, a: xp.partition(a, 5)[5],
    "quantiles": lambda xp, a: xp.quantile(a.real, [0.1, 0.9]),
    "kept": lambda xp, a: a[a.real > 3],
    "clip": lambda xp, a: xp.clip(a.real, 1, 3),
    "roll": lambda xp, a: xp.roll(a, 3),
    "pad": lambda xp, a: xp.pad(a, 2),
    "tile": lambda xp, a: xp.tile(a, 2),
    "repeat": lambda xp, a: xp.repeat(a, 2),
    "take": lambda xp, a: xp.take(a, [1, 2]),
    "joined": lambda xp, a: xp.concatenate([a, a]),
    "product": lambda xp, a: a.reshape(4, -1) @ a.reshape(-1, 4),
    "chosen": lambda xp, a: xp.where(a.real > 2, a, a),
}


@pytest.mark.some(120)
@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", ">i2", ">i8", ">u4", ">c16"])
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("name", CALLS)
def test_results_have_numpys_order(dtype, small_bytes, name):
    values = (numpy.random.default_rng(0).integers(0, 1000, 400) / 2).astype(dtype)
    with np.config.override(small_bytes=small_bytes), numpy.errstate(all="ignore"):
        expected = CALLS[name](numpy, values)
        found = CALLS[name](np, np.array(values))
        assert found.dtype.str == expected.dtype.str
        computed = numpy.asarray(found)
        assert computed.dtype.str == expected.dtype.str
        if numpy.isfinite(expected).all():  # half precision overflows, in another order of sums or not
            numpy.testing.assert_allclose(computed, expected, rtol=1e-2 if dtype == ">f2" else 1e-5)
