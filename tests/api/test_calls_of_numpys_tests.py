"""Calls that NumPy's own tests make, over tables of arguments: the same values, dtypes and errors."""

from __future__ import annotations

import collections.abc
import itertools
from fractions import Fraction

import numpy
import pytest

import spartan_ng as np

ERRORS = (ValueError, TypeError, IndexError, OverflowError, AttributeError, BufferError, RuntimeError)


def outcome(call, module):
    """A value with its dtype and shape, or the kinds of the error."""
    try:
        (found,) = np.compute(call(module))
    except ERRORS as error:
        return [k.__name__ for k in ERRORS if isinstance(error, k)]
    if isinstance(found, (numpy.ndarray, numpy.generic)):
        return found.dtype, found.shape, str(found)
    return type(found), found


def check(call):
    assert outcome(call, np) == outcome(call, numpy)


@pytest.mark.parametrize("small", [None, 0])
class TestBoth:
    """Eager and lazy."""

    @pytest.fixture(autouse=True)
    def mode(self, small):
        with np.config.override(**({} if small is None else {"small_bytes": small})):
            yield

    @pytest.mark.parametrize("bounds", [(0, 1), (0, -1), (1, 0), (3, 3), (0.0, 5e-324)])
    @pytest.mark.parametrize("step", [10, -10, numpy.inf, -numpy.inf, 1e308, 0.3])
    def test_arange(self, bounds, step):
        check(lambda m: m.arange(*bounds, step).size)

    def test_arange_without_an_end(self):
        for call in (
            lambda m: m.arange(start=4),
            lambda m: m.arange(0, numpy.inf),
            lambda m: m.arange(0, numpy.nan),
            lambda m: m.arange(2**64),
            lambda m: m.array(1, ndmin=65),
        ):
            check(call)

    @pytest.mark.some(60)
    @pytest.mark.parametrize("values", [["1", "x"], [None, 1], [b"7", b"2"], ["é"], [1.5, 2.0], [300]])
    @pytest.mark.parametrize("dtype", ["i1", "f4", "S3", "U4", "O", "M8[s]", "?"])
    @pytest.mark.parametrize("casting", ["unsafe", "same_value", "safe"])
    def test_casts(self, values, dtype, casting):
        with numpy.errstate(all="ignore"):
            check(lambda m: m.array(values).astype(dtype, casting=casting))

    @pytest.mark.some(30)
    @pytest.mark.parametrize("a", [(2, 2), (3,), (2, 3, 3), ()])
    @pytest.mark.parametrize("b", [(2, 2), (2, 1), (3, 3), (3,), (3, 1), (2, 3, 3), ()])
    def test_products_in_place(self, a, b):
        def call(m):
            x = m.ones(a)
            x @= m.ones(b)
            return x

        check(call)

    @pytest.mark.some(30)
    @pytest.mark.parametrize("dtype", ["i8", "f4", "U2", "S2", "O", "M8[s]", "?"])
    @pytest.mark.parametrize("place", [(0,), (3,), (-1,), (1, 1), ((0, 1),), (7,), ("x",)])
    def test_items(self, dtype, place):
        check(lambda m: m.array([[0, 1], [2, 3]]).astype(dtype).item(*place))

    @pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
    @pytest.mark.parametrize("order", ["C", "F", "A", "K"])
    @pytest.mark.parametrize("shape", [None, (), (4,), (3, 4), (2, 3, 4)])
    def test_arrays_like_others(self, name, order, shape):
        for like in (numpy.ones((2, 3)), numpy.ones((3, 2)).T):
            ours, theirs = (
                getattr(m, name)(m.asarray(like), order=order, shape=shape).flags for m in (np, numpy)
            )
            assert (ours.c_contiguous, ours.f_contiguous) == (theirs.c_contiguous, theirs.f_contiguous)

    @pytest.mark.parametrize("kept", ["full", "same", "valid", 0, 1, 2, -1, None])
    def test_modes_of_convolution(self, kept):
        check(lambda m: m.convolve(m.arange(5.0), m.ones(3), mode=kept))

    @pytest.mark.parametrize("axes", [((0, 0), (0, 1)), ((0, 1), (1, 1)), ((0, 1), (0, 1)), ((0,), (0, 1))])
    def test_axes_of_products(self, axes):
        check(lambda m: m.tensordot(m.ones((2, 2)), m.ones((2, 2)), axes))

    @pytest.mark.parametrize("axes", [[0, 0], [(0,), (0,), ()], [0], [5, 0]])
    def test_axes_of_generalized_functions(self, axes):
        check(lambda m: m.vecdot(m.arange(4.0).reshape(2, 2), m.ones((2, 2)), axes=axes))

    def test_records_that_are_not_zero(self):
        def records(m):
            x = m.zeros((2, 3), "i4,2i4")
            x["f1"][1, 2] = 5
            return x

        check(lambda m: m.count_nonzero(records(m)))
        check(lambda m: m.nonzero(records(m))[1])

    def test_characters(self):
        def call(m):
            x = m.zeros((2, 5), "c")
            x[0] = "asdfg"
            x[1] = b"qwert"
            return x

        check(call)

    @pytest.mark.parametrize("axis", [None, 0, -1, 1, 3])
    @pytest.mark.parametrize("name", ["sort", "partition"])
    def test_sorting_in_place(self, name, axis):
        def call(m):
            x = m.array([[3, 1], [0, 2]])
            getattr(x, name)(*([1] if name == "partition" else []), axis=axis)
            return x

        check(call)

    @pytest.mark.parametrize("equal_nan", [False, True])
    def test_equal_arrays(self, equal_nan):
        arrays = [[1.0, numpy.nan], ["NaT", "2020-01-01"], [None, 1], [1, 2]]
        for values, dtype in zip(arrays, ("f8", "M8[D]", "O", "i4"), strict=True):
            check(lambda m, v=values, d=dtype: m.array_equal(m.array(v, d), m.array(v, d), equal_nan))

    def test_types_of_outputs(self):
        for dtype, out in itertools.product(["i8", "f4"], ["f4", "i8", "f8"]):
            check(
                lambda m, d=dtype, o=out: m.array([[1, 2], [3, 4]], d).compress(
                    [True, False], axis=1, out=m.zeros((2, 1), o)
                ),
            )

    def test_objects_in_objects(self):
        for index in (0, 1, [1, 0]):
            check(lambda m, i=index: m.take(m.array([None, 2.5], object), i))

    @pytest.mark.parametrize("see", ["view", "broadcast", "windows", "turned"])
    def test_read_only_views_of_what_others_write(self, see):
        memory = numpy.arange(12.0).reshape(3, 4)
        seen = {
            "view": memory.view(),
            "broadcast": numpy.broadcast_to(memory, (2, 3, 4)),
            "windows": numpy.lib.stride_tricks.sliding_window_view(memory, (2, 2)),
            "turned": numpy.broadcast_to(memory.T[::-1, 1:], (2, 4, 2)),
        }[see]
        seen.flags.writeable = False
        wanted = seen * 2
        got = np.asarray(seen) * 2
        memory[...] = -1
        numpy.testing.assert_array_equal(got.compute(), wanted)


def strided(m):
    x = m.arange(6.0)
    m.lib.stride_tricks.as_strided(x, (2, 3), (8, 8))[0, 1] = 9
    return x


def windows(m):
    x = m.arange(6.0)[::-1]
    m.lib.stride_tricks.sliding_window_view(x, 2, writeable=True)[1] = 7
    return x


def records(m):
    return m.rec.array(m.zeros(3, "i4,f8")).f1


def rows_of_records(m):
    return m.rec.fromrecords([(1, 2.5), (3, 4.5)], names="a,b").b + m.ones(2)


@pytest.mark.parametrize("small", [None, 0])
@pytest.mark.parametrize("call", [strided, windows, records, rows_of_records])
def test_memory_through_numpys_modules(call, small):
    with np.config.override(**({} if small is None else {"small_bytes": small})):
        check(call)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.copyto([1, 2], 3),
        lambda m: m.copyto(3.0, 3),
        lambda m: m.from_dlpack(m.array([1, 2], ">i4")),
        lambda m: m.from_dlpack(m.array(["a"])),
        lambda m: m.broadcast_to(m.ones(2), (2, 2)).__dlpack__(),
        lambda m: m.ndarray[()],
        lambda m: m.ndarray[int, int, int],
        lambda m: m.no_such_name,
        lambda m: m.float_,
        lambda m: m.char.array(m.array([["abc", "é"]])).upper(),
        lambda m: m.char.asarray(m.array(["a ", "b"])).tolist(),
        lambda m: repr(m.array(["%d", "%5.1f"]).view(m.char.chararray) % m.array([3, 7])),
        lambda m: repr(m.array([(1, "a")], "i8,S4").view(numpy.dtype((m.record, "i8,S4")))),
        lambda m: m.arange(3).astype("f4", copy=numpy._CopyMode.NEVER),
        lambda m: m.arange(3).__dlpack__(copy=m.arange(3)),
        lambda m: m.busday_count("2011-01-03", "2011-02-01", busdaycal=m.busdaycalendar("Mon")),
        lambda m: m.busday_count("2011-01-03", "2011-02-01", "Mon", ["2011-01-10"]),
        lambda m: m.busday_offset("2011-01-03", 1, weekmask="Mon", busdaycal=m.busdaycalendar()),
        lambda m: m.unravel_index([], (10, 3)),
        lambda m: m.ravel_multi_index(([], ["a"]), (10, 3)),
        lambda m: m.is_busday("2011-01-03", holidays=[], busdaycal=m.busdaycalendar()),
    ],
)
@pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")
def test_errors_and_texts(call):
    assert outcome(call, np) == outcome(call, numpy)


OUTPUTS = """sum prod max min mean var std median ptp any argmax nansum nanmax nanmean nanvar nanstd nanmedian
quantile nanpercentile round take compress"""


@pytest.mark.some(60)
@pytest.mark.parametrize("small", [None, 0])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (4,), (1, 4), (4, 1), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", OUTPUTS.split())
def test_shapes_of_outputs(name, axis, shape, small):
    """Few functions stretch a result to an output."""
    axes = {} if name == "round" else {"axis": axis}

    def call(m):
        out = m.zeros(shape, {"any": "?", "argmax": "i8"}.get(name, "f8"))
        a = m.arange(12.0).reshape(3, 4)
        given = {"take": (a, [0]), "compress": ([True, False, True], a), "round": (a,)}.get(name)
        found = getattr(m, name)(*(given or (a, 0.5)[: 1 + name.endswith("ile")]), out=out, **axes)
        assert found is out
        return out

    with np.config.override(**({} if small is None else {"small_bytes": small})):
        check(call)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, a: m.r_["r", [1, 2], [3, 4]],
        lambda m, a: m.r_["c", a[0], 3],
        lambda m, a: m.r_["rc", a[0], 3],
        lambda m, a: m.r_["a, a; a, a"],
        lambda m, a: m.r_["0,2", a, a],
        lambda m, a: m.c_[a[0], a[1]],
        lambda m, a: m.bmat("a,a;a,a"),
        lambda m, a: m.bmat("b", {"b": a}, {}),
        lambda m, a: m.bmat("x, a", {"x": a}, {"a": a * 2, "x": 3}),
        lambda m, a: m.bmat([a, a]),
        lambda m, a: m.bmat([[a, a], [a, a]]),
        lambda m, a: m.bmat(a),
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_blocks(call):
    def told(m):
        found = call(m, m.array([[1, 2], [3, 4]]) + m.ones((2, 2), int))
        return str((type(found) is numpy.matrix, found.dtype, found.tolist()))

    check(told)


@pytest.mark.parametrize("small", [None, 0])
def test_texts_of_any_length_lie_in_memory_of_their_own_dtype(small):
    with np.config.override(**({} if small is None else {"small_bytes": small})):
        for m in (numpy, np):
            kind = numpy.dtypes.StringDType()
            a = m.array(["a", "bc"], numpy.dtypes.StringDType())
            assert a.astype(a.dtype, copy=False) is a
            assert a.astype(kind, copy=False).dtype is kind
            for other in (a.astype(kind, copy=False), m.asarray(a, kind), m.array(a, kind, copy=None)):
                assert other is not a
                assert other.tolist() == ["a", "bc"]
            for make in (m.array, m.asarray):
                with pytest.raises(ValueError, match="Unable to avoid copy"):
                    make(a, kind, copy=False)


LAID_OUT = ["(2,2)f4", "2i", "S4", [("a", "(2,)i4"), ("b", "f8")], numpy.dtype(("f4", (3,)))]
PADDED = {"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [3, 9], "itemsize": 24}


@pytest.mark.some(40)
@pytest.mark.parametrize("small", [None, 0])
@pytest.mark.parametrize("dtype", [*LAID_OUT, PADDED])
@pytest.mark.parametrize(
    "call",
    [
        lambda m, d: m.zeros(3, d),
        lambda m, d: m.ones((2, 1), d),
        lambda m, d: m.full(2, 1, d),
        lambda m, d: m.zeros_like(m.ones(2), d),
        lambda m, d: m.full_like(m.ones((2, 2)), 3, d),
        lambda m, d: m.ones(2, d)[::-1].copy(),
        lambda m, d: m.zeros((2, 2), d, order="F"),
        lambda m, d: m.array([1, 2], dtype=d),
        lambda m, d: m.zeros((), d),
    ],
)
def test_elements_with_axes_fields_and_gaps(call, dtype, small):
    def told(m):
        found = call(m, dtype)
        return str((found.dtype, found.shape, found.strides, found.tolist()))

    with np.config.override(**({} if small is None else {"small_bytes": small})):
        check(told)


@pytest.mark.parametrize("small", [None, 0])
@pytest.mark.parametrize("axis", [None, 0, -1, 1, 2])
@pytest.mark.parametrize("a", [[[1, 2], [1, 2], [0, 3]], [numpy.nan, 0, 0, numpy.nan], [[], []]])
def test_distinct_slices(a, axis, small):
    with np.config.override(**({} if small is None else {"small_bytes": small})):
        for wanted in itertools.product((False, True), repeat=3):
            for equal in (False, True):
                check(lambda m, w=wanted, e=equal: str(m.unique(m.array(a), *w, axis=axis, equal_nan=e)))


@pytest.mark.parametrize("small", [None, 0])
@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.concatenate([m.float32(1), 1.0], axis=None),
        lambda m: m.concatenate([m.array([1], "u1"), 3], axis=None),
        lambda m: m.concatenate([1, True], axis=None),
        lambda m: m.concatenate([[1, 2], 2.5], axis=None),
        lambda m: m.append(m.ones(1, "f4"), 2.0),
        lambda m: m.apply_over_axes(m.max, [1, 2], 0),
        lambda m: m.apply_over_axes(m.max, True, -1),
        lambda m: m.apply_over_axes(m.max, m.ones(2).sum(), -1),
        lambda m: str(m.unravel_index([0], ())),
        lambda m: str(m.unravel_index([1], ())),
        lambda m: str(m.unravel_index(1, (2**32 - 1, 2**31 + 1))),
        lambda m: m.ravel_multi_index(m.zeros((3, 1), int), (2, 1, 0), mode="clip"),
        lambda m: m.ravel_multi_index(m.zeros((3, 0), int), (2, 1, 0), mode="wrap"),
        lambda m: m.ravel_multi_index(([0], [0]), (2**62, 2)),
        lambda m: m.ones((1,) * 33).flat,
        lambda m: m.choose(m.zeros(2, int), [1] * 64),
        lambda m: m.choose(m.zeros(2, int), [1] * 63),
        lambda m: m.arange(0, [None, []], 1),
        lambda m: m.ones((2, 3)).swapaxes(1, 1).flags.owndata,
        lambda m: m.ones(3).cumsum().view().flags.owndata,
        lambda m: isinstance(m.ones(3), collections.abc.Hashable),
        lambda m: hash(m.ones(3)),
        lambda m: hash(m.ones(3).sum()) == hash(3.0),
        lambda m: setattr(m.ones(2), "device", "cpu"),
        lambda m: m.choose(m.zeros((1,) * 33, int), [1, 2]),
        lambda m: m.lib.stride_tricks.sliding_window_view(m.ones((4, 4)), (5, 5)),
        lambda m: m.zeros(3, [("x", "S0")])["x"].resize(5),
        lambda m: m.add.reduceat(m.arange(5), [0, 2], axis=None),
        lambda m: m.add.reduceat(m.ones((2, 2)), [0, 1], axis=None),
        lambda m: m.add.accumulate(m.arange(5), axis=None),
        lambda m: m.add.accumulate(m.ones((2, 2)), axis=None),
        lambda m: m.linalg.norm(m.array([1, 2], object), ord=1),
        lambda m: m.linalg.norm(m.array([Fraction(1, 3), Fraction(2, 3)], object), ord=1),
        lambda m: m.eye(2, 3, dtype="S3").tolist(),
        lambda m: m.eye(2, dtype="M8[s]").tolist(),
        lambda m: m.histogramdd(m.ones((1, 10)), bins=2**10),
        lambda m: m.histogram2d(m.ones(3), m.ones(4)),
        lambda m: m.unpackbits(m.ones(3, "u1"), bitorder=10),
        lambda m: m.pad(m.ones((2, 0)), 1, mode="edge"),
        lambda m: m.ones((3,) * 5)[m.ix_(*[m.zeros(7132, int)] * 5)],
        lambda m: m.einsum("ab,bc,cd->ad", *[m.ones((2, 2))] * 3, optimize=["einsum_path", (2, 3), (0, 1)]),
        lambda m: m.einsum("ab,bc,cd->ad", *[m.ones((2, 2))] * 3, optimize=["einsum_path", (1, 2), (0, 1)]),
        lambda m: m.einsum("ab,bc->ac", *[m.ones((2, 2))] * 2, optimize="no way"),
        lambda m: (
            m.einsum(
                "xft,mf->xmt", m.ones((2, 3, 5), order="F"), m.ones((4, 3), order="F"), order="A"
            ).strides
        ),
        lambda m: m.einsum("xft,mf->xmt", m.ones((2, 3, 5), order="F"), m.ones((4, 3)), order="A").strides,
    ],
)
def test_edges_of_functions(call, small):
    with np.config.override(**({} if small is None else {"small_bytes": small})):
        check(call)
