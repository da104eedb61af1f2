"""Histograms of equally wide bins over dtypes, data, limits and weights: NumPy's, to the last value."""

from __future__ import annotations

import itertools
import random
import warnings
from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.api.test_shared_functions import told
from tests.sampling import Some

DTYPES = ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
DATA = ("common", "on edges", "far from zero", "outside", "tiny", "huge", "equal")
BINS = (1, 7, 100, "sqrt")
LIMITS = (None, (0, 1), (-1.5, 2.0), (numpy.float64(-0.3), numpy.float32(0.7)))
WEIGHTS = (None, "f8", "i4")


def _floats(data: str, dtype: numpy.dtype[Any], rng: numpy.random.Generator) -> Any:
    info = numpy.finfo(dtype)
    x = {
        "common": lambda: rng.standard_normal(3000),
        "on edges": lambda: rng.integers(-20, 21, 3000) / 10,
        "far from zero": lambda: min(1e7, float(info.max) / 2) + rng.random(3000),
        "outside": lambda: rng.standard_normal(3000),
        "tiny": lambda: rng.random(3000) * (float(info.tiny) * 100),
        "huge": lambda: rng.random(3000) * (float(info.max) * 0.4),
        "equal": lambda: numpy.full(1000, 7.0),
    }[data]().astype(dtype)
    if data == "outside":
        x[::7], x[3] = numpy.nan, numpy.inf
    return x


def _integers(data: str, dtype: numpy.dtype[Any], rng: numpy.random.Generator) -> Any:
    if data == "equal":
        return numpy.full(1000, 7, dtype)
    low, high = numpy.iinfo(dtype).min, numpy.iinfo(dtype).max
    if data != "huge":
        low, high = max(low, -1000), min(high, 1000)
    return rng.integers(low, high, 3000, dtype=dtype, endpoint=True)


def _histogram(m: Any, x: Any, bins: Any, limits: Any, weights: Any, density: Any) -> Any:
    """Counts and edges, or the kind of error."""
    given = None if weights is None else m.array(weights)
    try:
        counts, edges = m.histogram(m.array(x), bins, limits, density, given)
    except (ValueError, TypeError, MemoryError) as error:
        return type(error)
    return numpy.asarray(counts), numpy.asarray(edges)


@pytest.mark.slow
def test_counts_are_numpys(mode: None, some: Some) -> None:
    rng = numpy.random.default_rng(0)
    cases = itertools.product(DTYPES, DATA, BINS, LIMITS, WEIGHTS, (None, True))
    for name, data, bins, limits, kind, density in some(cases, 150):
        dtype = numpy.dtype(name)
        x = (_floats if dtype.kind == "f" else _integers)(data, dtype, rng)
        weights = None if kind is None else rng.integers(0, 9, x.size).astype(kind)
        asked = (x, bins, limits, weights, density)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of overflows and divisions by zero, as NumPy warns
            expected, found = _histogram(numpy, *asked), _histogram(np, *asked)
        said = (name, data, bins, limits, kind, density)
        if isinstance(expected, type) or isinstance(found, type):
            assert found is expected, said
            continue
        assert found[0].dtype == expected[0].dtype, said
        numpy.testing.assert_allclose(found[0], expected[0], rtol=1e-12, err_msg=str(said))
        assert found[1].tobytes() == expected[1].tobytes(), said


@pytest.mark.parametrize("bins", ["sqrt", "sturges", "rice", "scott", "doane", "fd", "auto", "stone"])
@pytest.mark.parametrize("dtype", ["f8", "i8", "u2"])
def test_equal_values_have_one_bin(mode: None, bins: str, dtype: str) -> None:
    x = numpy.full(50, 3, dtype)
    counts, edges = np.histogram(np.array(x), bins)
    numpy.testing.assert_array_equal(counts, numpy.histogram(x, bins)[0])
    numpy.testing.assert_array_equal(edges, numpy.histogram(x, bins)[1])


def test_equal_bins_are_counted_as_numpy_counts_them(request):
    """To the bit, sums of weights too: numbers at edges and beyond, infinite ones and NaN; and its errors."""
    draw = random.Random(request.config.option.seed)
    for _ in range(120):
        size = draw.choice([1, 7, 1000, 65_535, 65_536, 70_000, 140_000])
        rng = numpy.random.default_rng(draw.randrange(1000))
        bins = draw.choice([1, 2, 7, 10, 33, 1000])
        x: Any = rng.standard_normal(size) * draw.choice([1, 1e-300, 1e300, 1e7])
        if draw.random() < 0.5:
            x = rng.integers(0, bins + 1, size) * draw.choice([1.0, 0.1, 1 / 3])
        if draw.random() < 0.2:
            x[:: draw.randrange(1, 50)] = draw.choice([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0])
        x = x.reshape(draw.choice([(-1,), (1, -1), (size, 1)]))
        weights = draw.choice([None, rng.random(x.shape), rng.random(size + 1), rng.integers(0, 9, x.shape)])
        limits = draw.choice([None, None, (0, 1), (-1.0, 2.5), (0.1, bins * 0.1), (1, 1), (2, 1), (0, 1e308)])
        keywords = {"weights": weights, "range": limits, "density": draw.choice([None, False, True])}
        expected, found = (told(partial(histogram, s, x, bins, keywords)) for s in (numpy, np))
        assert (found[0] == expected[0]) or issubclass(found[0], expected[0]), (x, bins, keywords)


def histogram(space, x, bins, keywords):
    """The counts and the edges in one array."""
    given = {k: space.array(v) if isinstance(v, numpy.ndarray) else v for k, v in keywords.items()}
    counts, edges = space.histogram(space.array(x), bins, **given)
    return numpy.concatenate([numpy.asarray(counts), numpy.asarray(edges)])
