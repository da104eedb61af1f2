"""Protocols with the real libraries: NumPy's own, array-api-compat, scikit-learn, SciPy, xarray, opt_einsum,
pandas, matplotlib."""

from __future__ import annotations

import contextlib
import operator
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

import spartan_ng as np
from spartan_ng.api.core.dispatch import FUNCTIONS
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.numbers import OURS

X = numpy.arange(12.0).reshape(3, 4) % 5


class Stranger:
    """An array of a library that knows ours."""

    __array_ufunc__ = __array_function__ = lambda self, *args, **keywords: "theirs"


# --- NEP 13 ----------------------------------------------------------------------------------------


def same(got, wanted):
    assert issubclass(type(got), Handle) or type(got) in OURS.values()
    assert got.dtype == numpy.asarray(wanted).dtype
    numpy.testing.assert_allclose(got, wanted)


def test_ufuncs_are_ours(mode):
    a = np.array(X)
    same(numpy.add(X, a), X + X)
    same(numpy.float32(2) * a, numpy.float32(2) * X)
    same(numpy.add.reduce(a, axis=1), X.sum(1))
    same(numpy.multiply.accumulate(a), numpy.multiply.accumulate(X))
    same(numpy.subtract.outer(a[0], a[1]), numpy.subtract.outer(X[0], X[1]))
    same(numpy.divmod(a, 2)[1], X % 2)
    out = np.zeros((3, 4))
    assert numpy.multiply(X, 3, out=out) is out  # type: ignore[call-overload]
    same(out, X * 3)
    theirs = numpy.zeros((3, 4))
    assert numpy.multiply(a, 3, out=theirs, where=X > 1) is theirs
    numpy.testing.assert_array_equal(theirs, numpy.where(X > 1, X * 3, 0))
    numpy.add.at(a, (0, [1, 1]), 10)  # type: ignore[arg-type]
    assert a[0, 1] == X[0, 1] + 20


def test_other_libraries_have_their_turn(mode):
    a = np.array(X)
    assert numpy.add(a, Stranger()) == "theirs"  # type: ignore[call-overload]
    assert numpy.concatenate([a, Stranger()]) == "theirs"


class Asked:
    """What says which function it is asked for, at which place it stands, and whether in place."""

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        return function.__name__, method, [i is self for i in inputs], sorted({*keywords} - {"axes"})


class Refusing:
    """What has operators of its own, and wants no functions."""

    __array_ufunc__ = None

    def _theirs(self, other, *_):
        return "theirs"

    __radd__ = __rpow__ = __rmatmul__ = __rdivmod__ = __rand__ = __rlshift__ = _theirs


BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift"]
OPERATORS = {
    **{name: getattr(operator, name) for name in BINARY},
    **{f"in place {name}": getattr(operator, f"i{name.rstrip('_')}") for name in BINARY},
    **{f"reflected {name}": lambda a, b, name=name: getattr(operator, name)(b, a) for name in BINARY},
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "rshift")},
    "divmod": divmod,
    "reflected divmod": lambda a, b: divmod(b, a),
}


@pytest.mark.some(40)
@pytest.mark.parametrize("theirs", [Asked, Refusing])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_ask_whoever_says_what_functions_are(mode, name, theirs):
    found = []
    for a in (X.copy(), np.array(X)):
        try:
            found.append(OPERATORS[name](a, theirs()))
        except TypeError:
            found.append(TypeError)
    assert found[0] == found[1]


class Told(NDArrayOperatorsMixin):
    """An array that could be converted, but says itself what functions of it are."""

    def __init__(self, array):
        self.array = array

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    ndim = property(lambda self: self.array.ndim)

    def __array__(self, dtype=None, copy=None):
        return numpy.asarray(self.array)

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        plain = [i.array if isinstance(i, Told) else i for i in inputs]
        return Told(getattr(function, method)(*plain, **keywords))


@pytest.mark.parametrize("n", [3, 300_000])
@pytest.mark.parametrize(
    "call",
    [
        lambda x, t: np.log(t),
        lambda x, t: np.negative(t, dtype="f4"),
        lambda x, t: np.add(t, t),
        lambda x, t: np.add(x, t),
        lambda x, t: np.maximum(t, x),
        lambda x, t: np.add(t, 1),
        lambda x, t: np.subtract(1.5, t),
        lambda x, t: np.clip(t, 0, 1),
        lambda x, t: np.matmul(t, x),
        lambda x, t: np.add.reduce(t),
        lambda x, t: x - t,
        lambda x, t: t - x,
    ],
)
def test_arrays_that_can_be_converted_have_their_turn_first(mode, n, call):
    x = np.ones(n)
    found = call(x, Told(np.ones(n) * 2))
    assert type(found) is Told
    same(np.asarray(found.array), np.asarray(call(x, x * 2)))


@pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")
def test_ufuncs_of_other_libraries(mode):
    special = pytest.importorskip("scipy.special")
    same(special.expit(np.array(X)), special.expit(X))
    same(special.stdtr(np.array(X) + 1, 0.5), special.stdtr(X + 1, 0.5))


# --- NEP 18 and NEP 35 -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:numpy.lib.stride_tricks")
@pytest.mark.parametrize(
    "call",
    [
        numpy.sum,
        numpy.median,
        numpy.cumsum,
        numpy.transpose,
        lambda a: numpy.concatenate([a, X]),
        lambda a: numpy.stack([X, a]),
        lambda a: numpy.where(a > 1, a, 0),
        lambda a: numpy.einsum("ij,kj->ik", a, a),
        lambda a: numpy.linalg.norm(a, axis=0),
        lambda a: numpy.fft.fft(a),
        lambda a: numpy.tensordot(a, X, ((0,), (0,))),
        lambda a: numpy.unique(a),
        lambda a: numpy.full_like(a, 7),
        lambda a: numpy.histogram(a, 3)[0],
        lambda a: numpy.lib.stride_tricks.sliding_window_view(a, 2, axis=1),
    ],
)
def test_functions_are_ours(mode, call):
    same(call(np.array(X)), call(X))


@pytest.mark.parametrize(
    "create",
    [
        lambda **like: numpy.asarray([1, 2], **like),
        lambda **like: numpy.array([[1.5]], ndmin=3, **like),
        lambda **like: numpy.zeros(2, **like),
        lambda **like: numpy.ones((2, 3), "i2", **like),
        lambda **like: numpy.full(2, 7.0, **like),
        lambda **like: numpy.arange(1, 9, 2, **like),
        lambda **like: numpy.eye(2, 3, 1, **like),
        lambda **like: numpy.identity(3, **like),
        lambda **like: numpy.tri(3, **like),
        lambda **like: numpy.fromfunction(lambda i, j: i + j, (2, 3), **like),
        lambda **like: numpy.frombuffer(b"ab", "u1", **like),
        lambda **like: numpy.fromiter([1, 2], int, **like),
        lambda **like: numpy.loadtxt(["1 2", "3 4"], **like),
    ],
)
def test_like(mode, create):
    same(create(like=np.ones(3)), create())


# --- other libraries -------------------------------------------------------------------------------


def test_array_api_compat(mode):
    compat = pytest.importorskip("array_api_compat")
    a = np.array(X)
    xp = compat.array_namespace(a, a.__array_namespace__().asarray(X), 1.0, None)
    assert xp is a.__array_namespace__()
    assert compat.is_array_api_obj(a)
    assert not compat.is_numpy_array(a)
    assert compat.device(a) == "cpu"
    assert compat.size(a) == 12
    assert not compat.is_lazy_array(a)
    same(xp.sum(compat.to_device(a, "cpu")), X.sum())


@pytest.mark.slow
def test_scipy_and_sklearn_with_array_api():
    """In a process of its own: SciPy reads its switch when it is imported."""
    script = Path(__file__).with_name("array_api_libraries.py")
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["scipy", "sklearn"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::spartan_ng.FallbackWarning")
def test_xarray(mode):
    xarray = pytest.importorskip("xarray")

    def results(x):
        d = xarray.DataArray(x, dims=("a", "b"), coords={"b": list("wxyz")})
        yield (d * 2 + 1).mean("a")
        yield numpy.sin(d)
        yield d.sel(b="x").isel(a=slice(0, 2))
        yield xarray.where(d > 1, d, 0).T
        yield from (
            d.std("a"),
            d.max(),
            d.argmax("a"),
            d.cumsum("a"),
            d.fillna(0),
            d - d.mean("b"),
            d.median("a"),
        )
        yield from (xarray.concat([d, d], "a"), d.stack(z=("a", "b")), d.expand_dims("z"), d.pad(a=1))
        yield xarray.dot(d, d, dim="a")
        yield d.rolling(b=2).mean()
        yield d.groupby("b").mean()
        yield xarray.Dataset({"v": d}).sum("a").v

    for got, wanted in zip(results(np.array(X)), results(X), strict=True):
        assert got.dims == wanted.dims
        same(got.data, wanted.data)
    assert "array" in repr(xarray.DataArray(np.array(X)))


def test_opt_einsum(mode):
    opt_einsum = pytest.importorskip("opt_einsum")
    a = numpy.arange(6.0).reshape(2, 3)
    got = opt_einsum.contract("ij,jk,kl->il", np.array(a), np.array(a.T), np.array(a))
    same(got, a @ a.T @ a)
    got = opt_einsum.contract("ijk,kl,lm->ijm", np.ones((2, 3, 4)), np.ones((4, 5)), np.ones((5, 6)))
    same(got, numpy.full((2, 3, 6), 20.0))


def test_pandas(mode):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(3) * 2})
    assert frame["a"].tolist() == [0, 2, 4]
    series = pandas.Series(np.arange(3.0) + 1, index=list("xyz"))
    assert series["z"] == 3
    assert (np.ones(3) + series).tolist() == (series + np.ones(3)).tolist() == [2, 3, 4]
    assert isinstance(numpy.add(np.ones(3), series), pandas.Series)
    assert isinstance(np.sqrt(series), pandas.Series)
    assert isinstance(np.add(series, [1, 2, 3]), pandas.Series)
    same(np.asarray(series) + 1, [2.0, 3, 4])


def test_matplotlib(mode):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    (line,) = axes.plot(np.arange(3), np.arange(3) ** 2)
    assert list(line.get_ydata()) == [0, 1, 4]
    counts, _, _ = axes.hist(np.array([1.0, 1, 2]), bins=2)
    assert list(counts) == [2, 1]
    image = axes.imshow(np.array(X))
    assert image.get_array().tolist() == X.tolist()
    axes.figure.canvas.draw()


def test_sklearn_through_numpy(mode):
    linear = pytest.importorskip("sklearn.linear_model")
    x = numpy.arange(6.0).reshape(-1, 1)
    model = linear.LinearRegression().fit(np.array(x), np.array(3 * x[:, 0] + 1))
    assert model.coef_ == pytest.approx([3.0])


def test_dlpack_with_numpy(mode):
    a = np.array(X) * 2
    numpy.testing.assert_array_equal(numpy.from_dlpack(a.T), X.T * 2)
    same(np.from_dlpack(X), X)
    with pytest.raises((BufferError, TypeError)):
        numpy.from_dlpack(np.array(["a"]))


class Container:
    """NumPy's user guide, "Writing custom array containers": its functions are what it asks arrays of."""

    def __init__(self):
        self.asked = []

    def __array__(self, dtype=None, copy=None):
        return numpy.eye(3, dtype=dtype)

    def __array_function__(self, function, types, args, keywords):
        self.asked.append(function)
        return NotImplemented


@pytest.mark.parametrize("name", ["array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"])
def test_what_makes_an_array_of_a_container_does_not_ask_it(name):
    found = getattr(np, name)(Container())
    assert type(found) is np.ndarray
    assert found.tolist() == numpy.eye(3).tolist()


def test_functions_ask_others_where_numpys_do():
    def asked(function):
        other = Container()
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            function(other)
        return bool(other.asked)

    dispatched = type(numpy.sum)
    wrong = [f.__name__ for f in FUNCTIONS if not isinstance(f, dispatched) and asked(FUNCTIONS[f])]
    assert not wrong
    assert all(map(asked, (np.sum, np.concatenate, np.linalg.norm)))
