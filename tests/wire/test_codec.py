"""Values survive the wire exactly, arrays without copies, and nothing unknown is ever built."""

import math
import pickle
import types

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse import random as random_csr

from spartan_ng.arrays import Tiling
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Row, Slot
from spartan_ng.plan.stages import Combine
from spartan_ng.wire.codec import Blob, Reader, encode
from spartan_ng.wire.framing import join, split_frames
from spartan_ng.wire.functions import load_function
from spartan_ng.wire.messages import Hello, JobDone, RunJob
from spartan_ng.wire.pieces import Pieces, whole
from spartan_ng.wire.plans import decode_plan, encode_plan
from spartan_ng.wire.transfers import Fetch, SharedArray, SharedTile
from spartan_ng.wire.values import pack, unpack

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.binary(),
    lambda inner: st.lists(inner).map(tuple) | st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def through(value):
    return unpack(Blob([bytes(f) for f in pack(value).frames]), load_function)


@pytest.mark.slow
@given(plain)
def test_plain_values_come_back_with_their_types(value):
    back = through(value)
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize("bits", [63, 64, 4095, 4096, 20000])
def test_large_ints(bits):
    assert through((1 << bits, -(1 << bits))) == (1 << bits, -(1 << bits))


@pytest.mark.parametrize("value", [-0.0, math.inf, -math.inf, 5e-324, 0.1])
def test_extreme_floats(value):
    assert repr(through(value)) == repr(value)


def test_nan():
    assert math.isnan(through(math.nan))
    assert math.isnan(through(complex(math.nan, 1.0)).real)


@pytest.mark.parametrize("value", [..., slice(None), slice(3, None, -2)])
def test_indices(value):
    assert through(value) == value


@pytest.mark.parametrize(
    "dtype",
    [
        "?",
        "i1",
        "<u8",
        ">f4",
        "f2",
        "g",
        "c16",
        "S3",
        "U2",
        "M8[ns]",
        "m8[D]",
        "V5",
        [("x", "f4"), ("y", "i2", (2,))],
    ],
)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_arrays(dtype, shape):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array = np.empty(shape, dtype)
    if size:
        array = np.ones(size, np.uint8).view(np.dtype(dtype)).reshape(shape)
    back = through(array)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_an_array_is_not_copied():
    array = np.arange(1000.0)
    blob = pack(array)
    assert np.shares_memory(np.frombuffer(whole(blob.frames[1])), array)
    assert np.shares_memory(unpack(blob), array)


def in_pieces(blob):
    """What arrives where a value has been sent."""
    return Blob([f if isinstance(f, Pieces) else bytes(f) for f in join(split_frames(blob.frames))])


LONG = np.arange(100_000.0).reshape(500, 200)


def test_a_long_array_is_put_together_where_it_is_wanted():
    target = np.zeros((500, 200))
    asked = []

    def make(shape, dtype):
        asked.append((shape, dtype))
        return target

    assert unpack(in_pieces(pack(LONG)), make=make) is target
    assert asked == [((500, 200), np.dtype(float))]
    np.testing.assert_array_equal(target, LONG)


@pytest.mark.parametrize(
    "value",
    [LONG, LONG.T, (LONG, "between", LONG[:3]), {"bytes": bytes(1 << 20)}, list(range(200_000))],
    ids=["an array", "its transpose", "a tuple", "bytes", "a long text"],
)
def test_long_values_come_out_of_pieces_as_they_went_in(value):
    back = unpack(in_pieces(pack(value)))
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        np.testing.assert_array_equal(back, value)
    elif isinstance(value, tuple):
        for one, other in zip(back, value, strict=True):
            np.testing.assert_array_equal(one, other)
    else:
        assert back == value


@pytest.mark.parametrize("shape", [[500, 201], [500, 199], [-500, -200], [1 << 40, 1 << 40]])
def test_pieces_that_are_no_such_array_are_refused_before_memory_is_taken(shape):
    blob = in_pieces(pack(LONG))
    header = msgspec.msgpack.encode({"a": ["<f8", shape, 0]})
    with pytest.raises(ValueError, match=r"no array|negative"):
        unpack(Blob([header, *blob.frames[1:]]))


def test_strided_arrays_travel_in_c_order():
    array = np.arange(24).reshape(4, 6)[::2, ::-3].T
    np.testing.assert_array_equal(through(array), array)


def test_numpy_scalars_and_dtypes():
    for value in (np.float32(0.1), np.int8(-3), np.datetime64("2020-01-01"), np.bool_(True)):
        back = through(value)
        assert back == value
        assert back.dtype == value.dtype
    assert through(np.dtype([("x", "f4"), ("y", [("z", "i2")])])) == np.dtype(
        [("x", "f4"), ("y", [("z", "i2")])]
    )


def test_csr():
    array = csr_array(random_csr(20, 30, 0.2, random_state=0, format="csr"))
    back = through(array)
    assert (back != array).nnz == 0
    assert back.shape == array.shape


def test_python_objects_are_refused():
    with pytest.raises(TypeError, match="Python objects"):
        pack(np.array([object()]))
    with pytest.raises(TypeError, match="cannot travel"):
        pack(object())


def test_unregistered_classes_are_never_built():
    for tree in ({"k": ["Popen", "ls"]}, {"__reduce__": 1}):
        with pytest.raises(KeyError):
            unpack(Blob([msgspec.msgpack.encode(tree)]))


def test_functions_are_refused_where_nobody_says_how_they_are_loaded():
    for function in (double, math.gcd):
        with pytest.raises(TypeError, match="only data"):
            unpack(pack(UserFunction(function, "")))


@pytest.mark.parametrize("dtype", ["O", [("x", "O")], [("x", "f4"), ("y", [("z", "O", (2,))])]])
def test_python_objects_are_never_built(dtype):
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype)) if dtype != "O" else "|O"
    for tree in ({"y": descr}, {"a": [descr, [0], 0]}, {"s": [descr, bytes(16)]}):
        with pytest.raises((TypeError, ValueError)):
            unpack(Blob([msgspec.msgpack.encode(tree), bytes(16)]))


def test_messages():
    for message in (
        Hello(1, "worker", label="é", threads=4),
        Fetch(3, ("c1/4", 7), ((0, 5, 2),), True),
        SharedTile(1, 2, SharedArray(1, 2, 3, 4, 5, np.dtype([("x", "f4"), ("y", "i2", (2,))]), (1,), (8,))),
        JobDone("c/1", ((0.5, 1, 2, 3),), (7,), (Blob((b"a", b"bc")), Blob(), Blob((b"d",)))),
        RunJob("c/1", "k", 2, 3, (("c", 1),), (), True, False, (("c", 9),), ("c/0",), Blob((b"a", b"bc"))),
    ):
        assert Reader(type(message))(encode(message)) == message


def test_blobs_pass_unread():
    message = JobDone("c/1", (), (), (Blob((b"no msgpack", b"\x00\xff")),))
    assert Reader(JobDone)(encode(message)) == message


def double(x):
    return 2 * x


def test_functions_by_value_and_by_name():
    by_value = pack(UserFunction(double, "script.py:3")).frames
    assert len(by_value) == 2
    assert b"double" in bytes(by_value[1])
    pickled = pickle.loads(bytes(by_value[1]))
    assert pickled is not double  # not by a module name that other hosts do not have
    assert through(UserFunction(double, "script.py:3")).origin == "script.py:3"
    by_name = pack(UserFunction(math.gcd, ""))
    assert len(by_name.frames) == 1
    assert unpack(by_name, load_function).function is math.gcd
    assert through(UserFunction(np.add)).function is np.add
    factor = 3
    assert through(UserFunction(lambda x: factor * x)).function(4) == 12


def test_functions_by_value_keep_the_file_that_they_were_written_in():
    """Whatever cloudpickle does: it has dropped files between two of its releases."""

    def inner(x):
        return double(x)

    def codes(code):
        yield code
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                yield from codes(const)

    def lines(function):
        return [(c.co_filename, list(c.co_lines())) for c in codes(function.__code__)]

    for function in (double, inner, lambda x: [inner(y) + 1 for y in x]):
        assert lines(through(UserFunction(function)).function) == lines(function)
    seen = through(UserFunction(inner)).function
    assert seen.__globals__["double"].__code__.co_filename == __file__


def test_a_plan_comes_back_equal():
    slot = Slot((10, 4), np.dtype("f4"), Tiling.grid(2, 1))
    row = Row("map", "exp", (0,), (1 << 70, math.inf, None, "x"), np.dtype("f4"), (10, 4), (0, 1))
    combine = Combine("sum", row, (0,), 1, 1)
    plan = Plan("key", (slot, slot), (0,), (1,), (combine,), 2, (123,))
    assert decode_plan(encode_plan(plan)) == plan
