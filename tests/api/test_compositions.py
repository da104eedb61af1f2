"""Polynomials, bits, order statistics without NaN, margins, insertions: compositions against NumPy."""

from __future__ import annotations

import ast
from itertools import product

import numpy
import pytest

import spartan_ng as np

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RANDOM = numpy.random.default_rng(3)
HOLES = numpy.where(RANDOM.random((7, 9)) < 0.4, numpy.nan, RANDOM.random((7, 9)))
HOLES[2] = numpy.nan
VECTOR = numpy.array([0.0, 0.0, 3.0, -1.0, 0.0, 2.5, 0.0])
BYTES = RANDOM.integers(0, 256, (3, 5)).astype(numpy.uint8)
FLAGS = RANDOM.random((4, 11)) < 0.5

CASES = {
    "nanmedian": lambda np, a: (np.nanmedian(a), np.nanmedian(a, axis=0), np.nanmedian(a, 1, keepdims=True)),
    "nanquantile": lambda np, a: (np.nanquantile(a, 0.3), np.nanquantile(a, [[0.1, 0.9]], axis=1)),
    "nanpercentile": lambda np, a: (np.nanpercentile(a, 35, axis=0), np.nanpercentile(a.ravel(), [0, 100])),
    "nanmedian f4": lambda np, a: np.nanmedian(a.astype("f4"), axis=0),
    "nanquantile out": lambda np, a: np.nanquantile(a, 0.5, axis=0, out=np.zeros(9)),
}


FRACTIONS = ["Python's", "a list", "f2", "f4", "f8", "f2s", "f4s", "f8s", "0", "1", "True", "[0, 1]", "[1]"]
METHODS = ["linear", "hazen", "median_unbiased", "lower", "weibull", "midpoint", "averaged_inverted_cdf"]
METHODS += ["interpolated_inverted_cdf", "inverted_cdf", "closest_observation", "nearest"]


def _fractions(kind, q):
    if kind in ("Python's", "a list"):
        return q if kind == "Python's" else [q, q / 2]
    if kind[0] != "f":
        return ast.literal_eval(kind)
    return numpy.array([q, q / 2], kind[:2]) if kind[2:] else numpy.dtype(kind).type(q)


@pytest.mark.some(36)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_have_the_precision_of_their_fractions(mode, name, fraction, dtype):
    """Also where lines have holes, and so their lengths are arrays."""
    a = (RANDOM.random((5, 40)) * (99 if dtype[0] in "iu" else 1)).astype(dtype)
    if name.startswith("nan") and dtype[0] == "f":
        a[1:, 3::7] = numpy.nan
    q = _fractions(fraction, 90 if "cent" in name else 0.9)
    for axis, method in product((None, 0, 1), METHODS):
        ours, theirs = (getattr(xp, name)(xp.array(a), q, axis, method=method) for xp in (np, numpy))
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), (axis, method)
        eps = numpy.finfo(theirs.dtype).eps if theirs.dtype.kind == "f" else 0
        numpy.testing.assert_allclose(ours, theirs, 8 * eps)


def check(ours, theirs):
    ours, theirs = ((r if isinstance(r, tuple | list) else (r,)) for r in (ours, theirs))
    for g, w in zip(ours, theirs, strict=True):
        assert numpy.shape(g) == numpy.shape(w)
        assert numpy.asarray(g).dtype == numpy.asarray(w).dtype
        numpy.testing.assert_allclose(g, w, 1e-6, 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_without_nan(mode, name):
    check(CASES[name](np, np.array(HOLES)), CASES[name](numpy, HOLES))


EMPTY = {
    "nanmin": "All-NaN slice encountered",
    "nanmax": "All-NaN slice encountered",
    "nanmean": "Mean of empty slice",
    "nanvar": "Degrees of freedom <= 0 for slice.",
    "nanstd": "Degrees of freedom <= 0 for slice.",
    "nanmedian": "All-NaN slice encountered",
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", EMPTY)
def test_slices_of_nan_warn(mode, name):
    """As NumPy does; in a lazy program when the values are made."""
    with pytest.warns(RuntimeWarning, match=EMPTY[name]) as found:
        got = numpy.asarray(getattr(np, name)(np.array(HOLES), axis=1))
    assert {w.category for w in found} == {RuntimeWarning}
    with numpy.errstate(all="ignore"), pytest.warns(RuntimeWarning):
        numpy.testing.assert_allclose(got, getattr(numpy, name)(HOLES, axis=1))
    rows = np.array(numpy.delete(HOLES, 2, 0))
    numpy.asarray(getattr(np, name)(rows, axis=1))  # quiet


POLYNOMIALS = {
    "poly": lambda np, v: np.poly(v),
    "poly of a matrix": lambda np, v: np.poly(np.outer(v[2:5], v[2:5]) + np.eye(3)),
    "roots": lambda np, v: np.sort_complex(np.roots(v)),
    "roots of nothing": lambda np, v: (np.roots(v * 0), np.roots(v[:3])),
    "polyadd": lambda np, v: (np.polyadd(v, v[3:]), np.polyadd(v[5:], v)),
    "polysub": lambda np, v: np.polysub(v[2:], [1, 2]),
    "polymul": lambda np, v: (np.polymul(v, v[2:4]), np.polymul(v[:2], v)),
    "polydiv": lambda np, v: np.polydiv(v[2:], [1.0, 0.5]),
    "polydiv by a longer one": lambda np, v: np.polydiv(v[5:], v[2:]),
    "polydiv exactly": lambda np, v: np.polydiv(np.polymul(v[2:4], [1.0, 2.0]), [1.0, 2.0]),
    "polyder": lambda np, v: (np.polyder(v), np.polyder(v, 3), np.polyder(v.astype(int))),
    "polyint": lambda np, v: (np.polyint(v), np.polyint(v, 2, [1.0, 2.0]), np.polyint(v, 2, 3)),
    "polyfit": lambda np, v: np.polyfit(np.arange(7), v, 3),
    "polyfit with weights": lambda np, v: np.polyfit(
        np.arange(7), np.stack([v, -v], 1), 1, w=np.arange(7) + 1
    ),
    "polyval": lambda np, v: np.polyval(v, np.arange(3.0)),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(mode, name):
    check(POLYNOMIALS[name](np, np.array(VECTOR)), POLYNOMIALS[name](numpy, VECTOR))


def test_polynomials_of_a_class_stay_numpys(mode):
    p = numpy.poly1d([1.0, 2.0])
    assert np.polyadd(p, p) == numpy.polyadd(p, p)
    assert np.polymul(np.arange(2.0), p) == numpy.polymul([0, 1], p)


SHAPES = [(), (0,), (1,), (2,), (3,), (1, 3), (3, 1), (2, 2), (0, 2), (2, 0), (1, 1), (2, 2, 2)]
OF_ONE = ["poly", "roots", "polyder", "polyint"]
OF_TWO = ["polyadd", "polysub", "polymul", "polydiv", "polyval"]
OPERANDS = [
    *((name, (s,)) for name, s in product(OF_ONE, SHAPES)),
    *((name, (s, t)) for name, s, t in product(OF_TWO, SHAPES, SHAPES)),
]


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("dtype", ["i8", "f4", "f8"])
@pytest.mark.parametrize("zeros", [0, 1, 9], ids="{} leading zeros".format)
def test_polynomials_of_any_shape_are_numpys(mode, some, dtype, zeros):
    """Most of what has several axes is refused; what NumPy makes of the rest is made here, too."""
    for name, shapes in some(OPERANDS, 200):
        operands = [numpy.arange(1, 1 + numpy.prod(s, dtype=int)).astype(dtype) for s in shapes]
        for a, shape in zip(operands, shapes, strict=True):
            a[:zeros], a.shape = 0, shape
        theirs, ours = (_result(xp, name, operands) for xp in (numpy, np))
        if isinstance(theirs, Exception):
            assert isinstance(ours, type(theirs)), (name, shapes)
        else:
            assert not isinstance(ours, Exception), (name, shapes)
            check(ours, theirs)


@pytest.mark.some(60)
@pytest.mark.parametrize(
    "dtypes", list(product(["?", "i8", "f2", "f4", "f8", "c8", "c16"], repeat=2)), ids=str
)
@pytest.mark.parametrize("name", OF_TWO)
def test_polynomials_of_two_dtypes_have_the_precision_of_numpys(mode, name, dtypes):
    """What is in the wider dtype has its digits, too."""
    a, b = (numpy.random.default_rng(3).uniform(0.2, 3, 5 - i).astype(d) for i, d in enumerate(dtypes))
    theirs, ours = (_result(xp, name, [a, b]) for xp in (numpy, np))
    assert isinstance(ours, Exception) == isinstance(theirs, Exception)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs))
        return
    theirs, ours = ((r if isinstance(r, tuple) else (r,)) for r in (theirs, ours))
    for g, w in zip(ours, theirs, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        if w.dtype.kind in "fc":
            near = 32 * numpy.finfo(w.dtype).eps
            numpy.testing.assert_allclose(g, w, near, near * numpy.abs(w).max())
        else:
            numpy.testing.assert_array_equal(g, w)


def _result(xp, name, operands):
    try:
        return getattr(xp, name)(*(xp.array(a) for a in operands))
    except Exception as error:  # noqa: BLE001 - its type is what is asked
        return error


MARGINS = [
    (mode, width, keywords)
    for width in (1, (2, 5), ((0, 3), (7, 0)))
    for mode, keywords in [
        ("edge", {}),
        ("wrap", {}),
        ("reflect", {}),
        ("symmetric", {}),
        ("constant", {"constant_values": 4}),
    ]
]


@pytest.mark.parametrize(("how", "width", "keywords"), MARGINS)
def test_pad(mode, how, width, keywords):
    a = numpy.arange(12).reshape(3, 4)
    check(np.pad(np.array(a), width, how, **keywords), numpy.pad(a, width, how, **keywords))


@pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")
def test_pad_reflects_oddly(mode):
    a = numpy.arange(5.0)
    check(
        np.pad(np.array(a), 3, "reflect", reflect_type="odd"), numpy.pad(a, 3, "reflect", reflect_type="odd")
    )


OTHERS = {
    "packbits": lambda np, b, f: (np.packbits(f), np.packbits(f, axis=1), np.packbits(f, 0, "little")),
    "unpackbits": lambda np, b, f: (
        np.unpackbits(b),
        np.unpackbits(b, axis=0),
        np.unpackbits(b, axis=1, count=-3, bitorder="little"),
        np.unpackbits(b, count=130),
    ),
    "insert": lambda np, b, f: (
        np.insert(b, [1, 3, 3], 9, axis=1),
        np.insert(b, [3, 0], [[1], [2], [3]], axis=1),
        np.insert(b, 2, b[0], axis=0),
        np.insert(b, -1, 7),
        np.insert(b, slice(0, 4, 2), [7, 8]),
    ),
    "delete": lambda np, b, f: (
        np.delete(b, -1, axis=1),
        np.delete(b, [0, 2, 2], axis=0),
        np.delete(b, slice(None, None, 2)),
        np.delete(b, [], axis=0),
        np.delete(b, f[0, :5], axis=1),
    ),
    "trim_zeros": lambda np, b, f: (
        np.trim_zeros(np.array([0, 0, 1, 0, 2, 0])),
        np.trim_zeros(np.array([0, 0, 1, 0, 2, 0]), "f"),
        np.trim_zeros(np.array([0, 1, 0]), "B"),
        np.trim_zeros(np.zeros(3), "f"),
        np.trim_zeros(np.pad(b + 1, 2)),
        np.trim_zeros(np.pad(b + 1, 2), axis=1),
    ),
    "unwrap": lambda np, b, f: (
        np.unwrap(b[0] / 10.0),
        np.unwrap(b.astype(int), period=100),
        np.unwrap(b / 10.0, axis=0, discont=4.0),
    ),
    "grids": lambda np, b, f: (
        *np.tril_indices(4, 1, 3),
        *np.triu_indices(4, -1),
        *np.triu_indices_from(b),
        *np.mask_indices(3, np.triu, 1),
        *np.diag_indices(4, 3),
        *np.ix_(f[0], [2, 1], np.arange(3)),
    ),
    "kaiser": lambda np, b, f: (np.kaiser(12, 14.0), np.kaiser(1, 3.0), np.kaiser(0, 3.0)),
    "over axes": lambda np, b, f: np.apply_over_axes(np.sum, b, [0, 1]),
    "real_if_close": lambda np, b, f: (np.real_if_close(b * (1 + 0j)), np.real_if_close(b * 1j)),
    "geomspace": lambda np, b, f: (
        np.geomspace(1, 1000, 7),
        np.geomspace(-2.0, -64.0, 6, endpoint=False),
        np.geomspace(1, 256, 9, dtype=int),
    ),
    "bin edges": lambda np, b, f: [
        np.histogram_bin_edges(b, name)
        for name in ("auto", "fd", "doane", "scott", "rice", "sturges", "sqrt")
    ],
    "convolve": lambda np, b, f: [
        np.convolve(np.arange(1500.0), np.arange(700.0) % 7, how) for how in ("full", "same", "valid")
    ],
    "ravel_multi_index": lambda np, b, f: (
        np.ravel_multi_index((np.array([1, 2]), np.array([0, 4])), (3, 5)),
        np.ravel_multi_index((np.array([1, 2]), np.array([7, -1])), (3, 5), ("raise", "wrap"), "F"),
    ),
    "resize": lambda np, b, f: [resized(np.arange(5), n) for n in (3, 8, (2, 4))],
    "vectorize": lambda np, b, f: np.vectorize(lambda x, y: x * 2 if x > y else -1)(b.astype(int), 100),
}


def resized(a, shape):
    a = a.copy()
    a.resize(shape, refcheck=False)
    return a


@pytest.mark.parametrize("name", OTHERS)
def test_others(mode, name):
    check(OTHERS[name](np, np.array(BYTES), np.array(FLAGS)), OTHERS[name](numpy, BYTES, FLAGS))


ERRORS = (ValueError, TypeError, IndexError)
MISTAKES = {
    "delete": lambda np, b: np.delete(b, 9, axis=1),
    "insert": lambda np, b: np.insert(b, 9, 1, axis=1),
    "ix_": lambda np, b: np.ix_(b),
    "nanquantile": lambda np, b: np.nanquantile(b / 2, 1.5),
    "packbits": lambda np, b: np.packbits(b / 2),
    "unpackbits": lambda np, b: np.unpackbits(b.astype(int)),
    "poly": lambda np, b: np.poly(b),
    "polyfit": lambda np, b: np.polyfit(b[0], b[0, 1:], 2),
    "ravel_multi_index": lambda np, b: np.ravel_multi_index((b[0] + 10, b[0]), (3, 5)),
    "trim_zeros": lambda np, b: np.trim_zeros(b, "x"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(mode, name):
    with pytest.raises(ERRORS) as theirs:
        MISTAKES[name](numpy, BYTES)
    with pytest.raises(theirs.type):
        MISTAKES[name](np, np.array(BYTES))
