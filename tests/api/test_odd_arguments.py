"""Arguments that programs give by accident or by habit: functions times odd values, answered as NumPy does.

An answer is a value with its shape and dtype, or the class of an exception.
"""

from __future__ import annotations

import itertools

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from tests.api.answers import differences

pytestmark = pytest.mark.filterwarnings("ignore")

ARRAYS = {
    "0-d": numpy.array(5.0),
    "1-d": numpy.array([3.0, 1.0, 2.0, 1.0, 0.0]),
    "none": numpy.zeros(0),
    "2-d": (numpy.arange(12, dtype="i4") * 7 % 13).reshape(3, 4),
    "empty rows": numpy.zeros((3, 0)),
}


# --- axes ------------------------------------------------------------------------------------------

AXES = [None, 0, -1, 1, 2, (), (0,), (0, 0), (0, 1), 1.0, "0", numpy.int8(0)]
OF_AN_AXIS = """
    all any argmax argmin argpartition argsort average compress cumprod cumsum cumulative_sum delete diff
    flip insert max mean median min nanargmax nancumsum nanmax nanmean nanmedian nanstd nansum partition
    percentile prod ptp repeat roll sort squeeze std sum take trapezoid unique var count_nonzero
    concatenate stack expand_dims split
"""
MORE = {
    "argpartition": (0,),
    "partition": (0,),
    "delete": (0,),
    "insert": (0, 9),
    "percentile": (50,),
    "repeat": (2,),
    "roll": (1,),
    "take": (0,),
    "split": (1,),
}


@pytest.mark.some(30)
@pytest.mark.parametrize("name", OF_AN_AXIS.split())
def test_axes(mode, name):
    def call(x, axis):
        def run(np):
            a, more = np.array(x), MORE.get(name, ())
            if name in ("concatenate", "stack"):
                return getattr(np, name)([a, a], axis=axis)
            if name == "compress":
                return np.compress([True], a, axis=axis)
            if name == "argpartition":  # what lies behind the place has no order
                return np.sort(np.argpartition(a, *more, axis=axis), axis=-1)
            return getattr(np, name)(a, *more, axis=axis)

        return run

    axes = [a for a in AXES if not (name == "roll" and isinstance(a, tuple) and len(a) == 0)]
    cases = itertools.product(ARRAYS.items(), axes)
    assert not differences((f"{name}({kind}, axis={axis!r})", call(x, axis)) for (kind, x), axis in cases)


# --- numbers ---------------------------------------------------------------------------------------

NUMBERS: list = [0, 1, -1, -7, 1.0, 0.5, 1.5, -1.5, True, None, "1", [1], [], numpy.int8(1)]
NUMBERS += [numpy.array(1), numpy.array([1])]
ACCIDENTS = {("roll", "'1'"), ("resize", "array(1)"), ("nth norm", "[1]")}
"""What NumPy answers by accident: a text that counts, a count that does not, a norm of a list."""
OF_A_NUMBER = {
    "tri": lambda np, x, n: np.tri(n),
    "tri, width": lambda np, x, n: np.tri(3, n),
    "tri, k": lambda np, x, n: np.tri(3, 4, n),
    "tril": lambda np, x, n: np.tril(x, n),
    "triu": lambda np, x, n: np.triu(x, n),
    "eye, k": lambda np, x, n: np.eye(3, 4, n),
    "diag": lambda np, x, n: np.diag(x, n),
    "diagonal": lambda np, x, n: np.diagonal(x, n),
    "trace": lambda np, x, n: np.trace(x, n),
    "repeat": lambda np, x, n: np.repeat(x, n),
    "repeat, axis": lambda np, x, n: np.repeat(x, n, axis=0),
    "tile": lambda np, x, n: np.tile(x, n),
    "roll": lambda np, x, n: np.roll(x, n),
    "rot90": lambda np, x, n: np.rot90(x, n),
    "diff": lambda np, x, n: np.diff(x, n),
    "array_split": lambda np, x, n: np.array_split(x, n),
    "take": lambda np, x, n: np.take(x, n),
    "take, axis": lambda np, x, n: np.take(x, n, axis=1),
    "take, wrap": lambda np, x, n: np.take(x, n, mode="wrap"),
    "take, clip": lambda np, x, n: np.take(x, n, mode="clip"),
    "delete": lambda np, x, n: np.delete(x, n),
    "reshape": lambda np, x, n: np.reshape(x, n),
    "resize": lambda np, x, n: np.resize(x, n),
    "transpose": lambda np, x, n: np.transpose(x, n),
    "expand_dims": lambda np, x, n: np.expand_dims(x, n),
    "squeeze": lambda np, x, n: np.squeeze(np.ones((1, 2)), n),
    "round": lambda np, x, n: np.round(x, n),
    "zeros": lambda np, x, n: np.zeros(n),
    "linspace": lambda np, x, n: np.linspace(0, 1, n),
    "partition": lambda np, x, n: np.partition(x, n),
    "bincount, minlength": lambda np, x, n: np.bincount([1, 2], minlength=n),
    "element": lambda np, x, n: x[n],
    "element, column": lambda np, x, n: x[:, n],
    "broadcast_to": lambda np, x, n: np.broadcast_to(np.ones(1), n),
    "swapaxes": lambda np, x, n: np.swapaxes(x, n, 0),
    "moveaxis": lambda np, x, n: np.moveaxis(x, n, 0),
    "quantile": lambda np, x, n: np.quantile(x, n),
    "nth norm": lambda np, x, n: np.linalg.norm(np.ravel(x), n),
}


@pytest.mark.parametrize("name", list(OF_A_NUMBER))
def test_numbers(mode, name):
    def call(n):
        def run(np):
            given = np.array(n) if isinstance(n, numpy.ndarray) else n
            return OF_A_NUMBER[name](np, np.array(ARRAYS["2-d"]), given)

        return run

    numbers = [n for n in NUMBERS if (name, repr(n)) not in ACCIDENTS]
    assert not differences((f"{name} of {n!r}", call(n)) for n in numbers)


# --- indices ---------------------------------------------------------------------------------------

INDICES = [
    numpy.array([-1], "i1"),
    numpy.array([1, 200], "u1"),
    numpy.array([1], "u8"),
    numpy.array([True, False]),
    numpy.array([1.0]),
    numpy.zeros(0),
    numpy.zeros(0, int),
    [[]],
    [[], []],
    [1.9],
    [True, False],
    [[0, 1], [2, 3]],
    (),
    2**40,
]
OF_INDICES = {
    "take": lambda np, x, i: np.take(x, i),
    "take, wrap": lambda np, x, i: np.take(x, i, mode="wrap"),
    "take, clip": lambda np, x, i: np.take(x, i, mode="clip"),
    "take, axis": lambda np, x, i: np.take(x.reshape(2, -1), i, axis=1),
    "item": lambda np, x, i: x[i],
    "item of rows": lambda np, x, i: x.reshape(4, -1)[i],
    "item of columns": lambda np, x, i: x.reshape(2, -1)[:, i],
    "set": lambda np, x, i: (x.__setitem__(i, 7), x),
    "put": lambda np, x, i: (np.put(x, i, 7), x),
    "put, wrap": lambda np, x, i: (np.put(x, i, 7, mode="wrap"), x),
    "put, clip": lambda np, x, i: (np.put(x, i, 7, mode="clip"), x),
    "delete": lambda np, x, i: np.delete(x, i),
    "add.at": lambda np, x, i: (np.add.at(x, i, 1), x),
}


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("name", list(OF_INDICES))
@pytest.mark.parametrize("size", [128, 300])
def test_indices(mode, name, size):
    def call(i):
        def run(np):
            given = np.array(i) if isinstance(i, numpy.ndarray) else i
            return OF_INDICES[name](np, np.arange(size), given)

        return run

    assert not differences((f"{name} by {i!r}", call(i)) for i in INDICES)


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f4", "c8"])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract", "divide", "logical_or"])
def test_updates_in_place(mode, dtype, name):
    updates = [1, 300, 1.5, True, 1j, numpy.array([1, 2, 3]), numpy.array([1.5, 2, 0], "f4"), numpy.int8(-1)]

    def call(b):
        def run(np):
            x = np.ones(3, dtype)
            getattr(np, name).at(x, [0, 1, 1], np.array(b) if isinstance(b, numpy.ndarray) else b)
            return x

        return run

    assert not differences((f"{name}.at({dtype}, {b!r})", call(b)) for b in updates)


# --- orders and kinds ------------------------------------------------------------------------------

LETTERS = [None, "C", "F", "A", "K", "c", "f", "x", "", 0]
OF_AN_ORDER = {
    "reshape": lambda np, x, o: x.reshape(4, 3, order=o),
    "np.reshape": lambda np, x, o: np.reshape(x, (2, 6), order=o),
    "ravel": lambda np, x, o: x.ravel(o),
    "np.ravel": lambda np, x, o: np.ravel(x.T, order=o),
    "flatten": lambda np, x, o: x.T.flatten(o),
    "copy": lambda np, x, o: x.copy(o),
    "astype": lambda np, x, o: x.astype("f4", order=o),
    "array": lambda np, x, o: np.array(x, order=o),
    "asarray": lambda np, x, o: np.asarray(x, order=o),
}


@pytest.mark.parametrize("name", list(OF_AN_ORDER))
def test_orders(mode, name):
    def call(o):
        return lambda np: OF_AN_ORDER[name](np, np.array(ARRAYS["2-d"]), o)

    assert not differences((f"{name}, order={o!r}", call(o)) for o in LETTERS)


KINDS = [None, "quick", "q", "m", "HEAP", "stab", "mergesort", "x", "", b"s", 3]


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_kinds_of_sorts(mode, name):
    x = numpy.arange(30)[::-1] // 2
    stable = [k for k in KINDS if name == "sort" or (k and str(k)[:1] in "ms")] + ["x", "", 3]
    assert not differences(
        (f"{name}, kind={k!r}", lambda np, k=k: getattr(np, name)(np.array(x), kind=k)) for k in stable
    )


@pytest.mark.parametrize("call", ["partition", "argpartition"])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2)])
@pytest.mark.parametrize("kth", [0, 1, 3, -4])
def test_arrays_without_elements_have_any_position(call, shape, kth):
    with config.override(small_bytes=0):
        for axis in range(len(shape)):
            found = getattr(np, call)(np.zeros(shape), kth, axis=axis)
            wanted = getattr(numpy, call)(numpy.zeros(shape), kth, axis=axis)
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
