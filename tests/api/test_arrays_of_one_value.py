"""Zeros, ones, and what is full of one value, by a shape or like another array: as NumPy's, and at once."""

from __future__ import annotations

import pickle
import warnings
from itertools import product

import numpy
import pytest

import spartan_ng as sp
from spartan_ng.api.core import quick
from tests.api.test_small_calls import calls_of_ours

SHAPES = [
    6,
    (),
    (6,),
    (2, 3),
    [2, 3],
    [4],
    [],
    (0, 3),
    (3, 1, 2),
    numpy.int64(4),
    (numpy.int32(2), 3),
    True,
    -1,
    (2, -1),
    2.0,
    "3",
    (1 << 62, 1 << 62),
    (1 << 70, 0),
    (1,) * 65,
    numpy.array([2, 3]),
]
DTYPES = [
    None,
    int,
    float,
    bool,
    complex,
    numpy.float32,
    "i8",
    "float32",
    "?",
    numpy.dtype("u1"),
    ">f8",
    "e",
    "g",
    "G",
    "U3",
    "M8[s]",
    object,
    "i4,f8",
    "(2,)f8",
    "nonsense",
]
VALUES = [
    0,
    1,
    -1,
    300,
    2.5,
    -0.0,
    True,
    1j,
    float("nan"),
    1e300,
    1 << 70,
    numpy.float32(0.1),
    numpy.int8(3),
    numpy.bool_(True),
    numpy.complex64(1j),
    "7",
    None,
    [1, 2],
]
ORDERS = ["C", "F", "c", None]
LIKE = {
    "line": lambda: numpy.arange(6.0),
    "columns": lambda: numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)),
    "turned": lambda: numpy.arange(24).reshape(2, 3, 4).transpose(1, 2, 0),
    "strided": lambda: numpy.arange(24.0).reshape(4, 6)[::-2, ::3],
    "none": lambda: numpy.zeros((0, 3), "f4"),
    "one": lambda: numpy.array(3.0),
    "swapped": lambda: numpy.arange(6, dtype=">i4"),
    "truths": lambda: numpy.array([True, False]),
    "texts": lambda: numpy.array(["a", "bc"]),
    "records": lambda: numpy.zeros(2, "i4,f8"),
    "objects": lambda: numpy.array([1, "a"], object),
    "list": lambda: [[1.0, 2.0], [3.0, 4.0]],
    "number": lambda: numpy.float32(2),
}
CALLS = [
    *[("zeros", (s, *d), {}) for s in SHAPES for d in [(), *[(d,) for d in DTYPES]]],
    *[("ones", (s,), {"dtype": d}) for s in SHAPES for d in DTYPES],
    *[("full", (s, v), {}) for s in SHAPES for v in VALUES],
    *[("full", ((2, 3), v, d), {}) for v in VALUES for d in DTYPES],
    *[(f, ((2, 3),), {"dtype": d, "order": o}) for f, d, o in product(("zeros", "ones"), DTYPES, ORDERS)],
    *[("full", ([2, 3], 2, float, o), {}) for o in ORDERS],
    *[(f, (), {"shape": s, "dtype": d}) for f in ("zeros", "ones") for s in SHAPES for d in DTYPES],
    *[("full", (), {"fill_value": v, "shape": s}) for v in VALUES for s in SHAPES],
    ("zeros", (), {}),
    ("zeros", (3,), {"shape": 3}),
    ("zeros", (3,), {"fill_value": 1}),
    ("full", (3,), {}),
    ("full", (3, 1), {"fill_value": 1}),
    ("ones", (3, int), {"dtype": int}),
    ("ones", (3,), {"x": 1}),
]
PLAIN_DTYPES = [d for d in DTYPES if d != "(2,)f8"]
LIKE_CALLS = [
    *[(f, d, {}) for f in ("zeros_like", "ones_like") for d in [(), *[(d,) for d in PLAIN_DTYPES]]],
    *[(f, (), {"dtype": d}) for f in ("zeros_like", "ones_like") for d in PLAIN_DTYPES],
    *[("full_like", (v,), {}) for v in VALUES],
    *[("full_like", (v, d), {}) for v in VALUES if v is not None for d in PLAIN_DTYPES],
    *[("ones_like", (), {"order": o}) for o in ORDERS],
    *[("zeros_like", (), {"shape": s}) for s in SHAPES if type(s) is not tuple or 1 << 62 not in s],
]


def told(function, args, keywords):
    """What a call gives, or that it gives nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = function(*args, **keywords)
            elements = repr(numpy.asarray(found).tolist())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            return isinstance(error, TypeError | ValueError | OverflowError | MemoryError)
    strides = [s for n, s in zip(found.shape, found.strides, strict=True) if n > 1] if found.size else []
    flags = (found.flags.writeable, found.flags.owndata, found.flags.c_contiguous, found.flags.f_contiguous)
    return found.dtype, found.shape, strides, flags, elements


@pytest.mark.some(400)
@pytest.mark.parametrize("n", range(len(CALLS)))
def test_what_is_made_by_a_shape_is_as_numpys(n, some):
    name, args, keywords = CALLS[n]
    wanted = told(getattr(numpy, name), args, keywords)
    for small in some([1 << 20, 64, 0], 2):
        with sp.config.override(small_bytes=small):
            assert told(getattr(sp, name), args, keywords) == wanted


@pytest.mark.some(200)
@pytest.mark.parametrize("n", range(len(LIKE_CALLS)))
def test_what_is_made_like_an_array_is_as_numpys(n):
    name, more, keywords = LIKE_CALLS[n]
    for kind, make in LIKE.items():
        wanted = told(getattr(numpy, name), (make(), *more), keywords)
        for given in [make(), sp.array(make(), order="K")] if isinstance(make(), numpy.ndarray) else [make()]:
            assert told(getattr(sp, name), (given, *more), keywords) == wanted, kind


def test_what_is_to_be_written_begins_with_zeros():
    for kind, make in LIKE.items():
        for dtype in (None, int, "U3", object):
            found, wanted = sp.empty_like(make(), dtype=dtype), numpy.empty_like(make(), dtype=dtype)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), kind
            begins = wanted if wanted.dtype.hasobject else numpy.zeros(wanted.shape, wanted.dtype)
            assert found.tolist() == begins.tolist(), (kind, dtype)


def test_each_has_memory_of_its_own():
    a = sp.array(numpy.arange(6.0))
    for make in (
        sp.zeros_like,
        sp.ones_like,
        sp.empty_like,
        lambda x: sp.full_like(x, 2),
        lambda x: sp.zeros(6),
    ):
        one, other = make(a), make(a)
        one += 5
        assert (one - 5 == other).all()
        assert a.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_function_of_c_becomes_no_method():
    class Has:
        zeros, array, full = sp.zeros, sp.array, sp.full

    assert Has().zeros(2).tolist() == [0, 0]
    assert Has().array([1]).tolist() == [1]
    assert [pickle.loads(pickle.dumps(f)) is f for f in (sp.zeros, sp.array, sp.full)] == [True] * 3
    with pytest.raises((TypeError, AttributeError)):
        Has().full(2)  # NumPy's is Python's, which has the object first


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize(
    "statement",
    [
        "np.zeros([6, 1])",
        "np.zeros(shape=(6, 1))",
        "np.ones([6, 1], dtype=int)",
        "np.full(shape=3, fill_value=2.5)",
        "np.zeros((3, 3), order='F')",
        "np.empty_like(x, dtype=bool)",
        "np.zeros_like(x, int)",
        "np.ones_like(x, dtype=np.float32)",
        "np.full_like(x, 3, int)",
        "np.array(x, dtype=int)",
        "np.array(x, bool)",
    ],
)
def test_no_python_makes_them(statement):
    assert calls_of_ours(statement, {"np": sp, "x": sp.arange(6.0)}) == []
