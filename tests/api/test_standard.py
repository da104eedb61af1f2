"""The array API standard: the namespace, its information, and DLPack."""

from __future__ import annotations

import contextlib
import pickle
import sys
import warnings
from pathlib import Path

import numpy
import pytest
import scipy.special

import spartan_ng as np
from spartan_ng.api import standard
from spartan_ng.api import standard as xp
from spartan_ng.api.core import quick
from spartan_ng.api.ndarray.own_classes import of_class
from spartan_ng.managed import Managed


def test_namespace(mode):
    a = np.arange(3)
    xp = a.__array_namespace__(api_version="2024.12")
    assert xp is standard
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match="2019"):
        a.__array_namespace__(api_version="2019.1")
    info = xp.__array_namespace_info__()
    assert info.devices() == (a.device,)
    assert info.default_device() == a.device
    assert info.capabilities()["data-dependent shapes"]
    assert all(getattr(xp, name) == kind for name, kind in info.dtypes().items())
    assert xp.finfo(xp.complex64).eps.__class__ is float
    assert xp.finfo(xp.asarray([1.0])).bits == 64
    with pytest.raises(AttributeError, match="no_such"):
        xp.no_such  # noqa: B018


@pytest.mark.parametrize("given", [["yes", "no"], numpy.array(["a"]), numpy.array([None]), [object()]])
def test_there_are_no_texts_and_objects(mode, given):
    with pytest.raises(TypeError, match="no arrays of"):
        xp.asarray(given)
    assert np.asarray(given).shape == (len(given),)


@pytest.mark.parametrize("given", [[1.5, 2], [True], [1j], 3, [[1], [2]]])
def test_arrays_of_numbers_are_taken(mode, given):
    assert xp.asarray(given).tolist() == given
    assert type(xp.asarray(given, dtype=xp.complex128)) is standard.Array


@pytest.mark.parametrize("kind", [standard.Array, Managed])
def test_classes_hand_themselves_on(mode, kind):
    x = of_class(kind, np.asarray([[1.0, 2], [3, 4]]))
    for made in (x.T, x.mT, x.real, x.imag, x + 1, 1 - x, -x, x == x, *divmod(x, 2), x[0], x.sum(), *x):
        assert type(made) is kind
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    x.real = [[5, 6], [7, 8]]
    del made
    x.resize((1, 2))
    assert x.tolist() == [[5, 6]]


def test_arrays_stay_the_standards(mode):
    x = xp.asarray([4.0, 9.0])
    y = xp.sqrt(x + np.ones(2))[:1].T
    assert type(y) is type(1 - y) is type(np.ones(1) * y) is type(x) is standard.Array
    assert type(xp.unique_all(x).counts) is type(xp.meshgrid(x, x)[1]) is standard.Array
    assert isinstance(y, np.ndarray)
    assert type(np.sqrt(x)) is np.ndarray
    assert type(xp.hstack([x, x])) is type(xp.fft.fft(x)) is standard.Array
    a = np.ones(3)
    b = xp.asarray(a)
    b[0] = 7
    assert a[0] == 7
    b += 1
    assert type(b) is standard.Array
    assert a.tolist() == [8, 2, 2]
    again = pickle.loads(pickle.dumps(b))
    assert type(again) is standard.Array
    assert again.tolist() == [8, 2, 2]


INF, NAN = numpy.inf, numpy.nan


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floor_divide_of_infinities(mode):
    """Limits where the standard has them; NumPy's NaN and -1 where NumPy is asked."""
    x = [INF, -INF, INF, 1.0, -1.0, 0.0, INF, NAN, 7.0]
    y = [2.0, 2.0, -2.0, -INF, INF, INF, INF, INF, 2.0]
    wanted = numpy.array([INF, -INF, -INF, -0.0, -0.0, 0.0, NAN, NAN, 3.0])
    a, b = xp.asarray(x), xp.asarray(y)
    in_place = xp.asarray(x, copy=True)
    in_place //= b
    for got in (a // b, xp.floor_divide(a, b), x // b, in_place):
        assert type(got) is standard.Array
        numpy.testing.assert_array_equal(got, wanted)
        numpy.testing.assert_array_equal(numpy.signbit(got)[3:5], [True, True])
    assert (xp.asarray(INF) // 2.0).item() == INF
    with numpy.errstate(all="ignore"):
        theirs = numpy.floor_divide(x, y)
        numpy.testing.assert_array_equal(np.array(x) // np.array(y), theirs)
    assert (xp.asarray([7]) // 2).dtype == numpy.int64
    for quotient in (xp.asarray([7.0], dtype=xp.float32) // 2.0, 7.0 // xp.asarray([2.0], dtype=xp.float32)):
        assert quotient.dtype == numpy.float32
        assert quotient.tolist() == [3]
    with pytest.raises(TypeError):
        a // {}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "x", "wanted"),
    [
        ("expm1", complex(INF, 0), complex(INF, 0)),
        ("expm1", complex(-INF, INF), complex(-1, 0)),
        ("expm1", complex(-INF, NAN), complex(-1, 0)),
        ("expm1", complex(INF, INF), complex(INF, NAN)),
        ("expm1", complex(NAN, 0), complex(NAN, 0)),
        ("expm1", complex(1e-20, 1e-20), complex(1e-20, 1e-20)),
        ("expm1", 1e-20, 1e-20),
        ("tanh", complex(INF, 3.0), complex(1, 0.0)),
        ("tanh", complex(INF, -3.0), complex(1, -0.0)),
        ("tanh", complex(-INF, 3.0), complex(-1, 0.0)),
        ("tanh", complex(0.5, 0.5), numpy.tanh(0.5 + 0.5j)),
        ("tanh", 0.5, numpy.tanh(0.5)),
    ],
)
def test_special_cases(mode, name, x, wanted):
    got = getattr(xp, name)(xp.asarray([x]))[0].item()
    assert got.real == wanted.real or got.real != got.real
    assert got.imag == pytest.approx(wanted.imag, abs=0, nan_ok=True)
    if wanted.imag == 0 and name == "tanh":
        assert numpy.signbit(got.imag) == numpy.signbit(wanted.imag)


@pytest.mark.filterwarnings("ignore::spartan_ng.api.core.dispatch.FallbackWarning")
def test_eigenvalues_are_complex(mode):
    a = xp.asarray([[2.0, 1.0], [1.0, 2.0]], dtype=xp.float32)
    found = xp.linalg.eig(a)
    assert found.eigenvalues.dtype == found.eigenvectors.dtype == xp.linalg.eigvals(a).dtype == xp.complex64
    assert sorted(xp.linalg.eigvals(a).real.tolist()) == pytest.approx([1, 3])


def test_sorts_keep_equal_elements_in_order(mode):
    x = numpy.zeros(40, "u1")
    assert xp.argsort(xp.asarray(x)).tolist() == list(range(40))
    assert xp.argsort(xp.asarray(x), descending=True).tolist() == list(range(40))
    assert xp.sort(xp.asarray([2, 3, 1]), descending=True).tolist() == [3, 2, 1]


def test_clip_by_keyword(mode):
    assert xp.clip(xp.asarray([1, 5, 9]), min=2, max=6).tolist() == [2, 5, 6]
    assert xp.clip(xp.asarray([1, 5, 9]), max=6).tolist() == [1, 5, 6]


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 2), (2, 3)])
def test_cross_of_unsigned(mode, n, m):
    a, b = numpy.arange(1, n + 1, dtype="u1"), numpy.arange(5, m + 5, dtype="u1")[::-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        wanted = numpy.cross(a, b)
        got = np.cross(np.array(a), np.array(b))
    assert got.dtype == wanted.dtype
    numpy.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("shape", "mask"), [((1,), (0,)), ((1, 3), (0,)), ((3, 1), (3, 0)), ((5, 2), (0, 0))]
)
def test_masks_that_are_empty_along_an_axis(mode, shape, mask):
    a = np.ones(shape)
    got = a[np.zeros(mask, bool)]
    assert got.shape == numpy.ones(shape)[numpy.zeros(mask, bool)].shape
    a[np.zeros(mask, bool)] = 5
    assert a.sum() == numpy.prod(shape)
    with pytest.raises(IndexError, match="boolean index did not match"):
        a[np.zeros(9, bool)]


@pytest.mark.parametrize("k", [2**63, -(2**70), 2, -2])
def test_diagonals_far_outside(mode, k):
    numpy.testing.assert_array_equal(np.eye(2, 3, k), numpy.eye(2, 3, k))
    if k < -(2**63):  # NumPy has no such numbers for its columns
        with pytest.raises(OverflowError):
            numpy.tri(2, 3, k)
        with pytest.raises(OverflowError):
            np.tri(2, 3, k)
    else:
        numpy.testing.assert_array_equal(np.tri(2, 3, k), numpy.tri(2, 3, k))


def test_dlpack_out_and_in(mode):
    a = np.arange(6.0).reshape(2, 3) * 2
    out = numpy.from_dlpack(a)
    numpy.testing.assert_array_equal(out, numpy.arange(6.0).reshape(2, 3) * 2)
    assert a.__dlpack_device__() == out.__dlpack_device__()
    back = np.from_dlpack(out)
    assert isinstance(back, np.ndarray)
    assert np.array_equal(back, a)


def test_dlpack_copy_is_the_readers_own(mode):
    a = np.ones(3)
    out = numpy.from_dlpack(a, copy=True)
    out[0] = 7
    assert a[0] == 1


def test_vecdot_keeps_small_integers(mode):
    a = numpy.arange(3, dtype="u1")
    assert np.vecdot(np.array(a), np.array(a)).dtype == numpy.vecdot(a, a).dtype


@pytest.mark.parametrize(
    "call",
    [
        lambda np: np.arange(5),
        lambda np: np.arange(stop=5),
        lambda np: np.arange(1, stop=5),
        lambda np: np.arange(1, 5, 2, dtype="f4"),
        lambda np: np.arange(5, step=2),
    ],
)
def test_arange_arguments(mode, call):
    got, wanted = call(np), call(numpy)
    assert got.dtype == wanted.dtype
    numpy.testing.assert_array_equal(got, wanted)


def test_linalg_takes_the_last_axes(mode):
    a = numpy.arange(24.0).reshape(2, 3, 4)
    for name in ("diagonal", "trace"):
        got, wanted = getattr(np.linalg, name)(np.array(a)), getattr(numpy.linalg, name)(a)
        numpy.testing.assert_array_equal(got, wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
@pytest.mark.parametrize("dtype", ["f8", "i4", "c16", "?"])
def test_what_is_made_of_the_standards_arrays_is_the_standards(mode, shape, dtype):
    """Libraries ask each array for its namespace: one of another class is another's, or nobody's."""
    x = standard.asarray(numpy.ones(shape, dtype))
    made = {}
    for name in dir(x):
        if not name.startswith(("_", "to", "compute")):
            with contextlib.suppress(TypeError, ValueError, numpy.exceptions.AxisError):
                found = getattr(x, name)
                made[name] = found() if callable(found) else found
    made |= {"astype": x.astype("f4"), "reshape": x.reshape(-1), "repeat": x.repeat(2)}
    for call in (numpy.negative, numpy.exp, numpy.real, numpy.sum, numpy.sort, scipy.special.expit):
        with contextlib.suppress(TypeError, ValueError, numpy.exceptions.AxisError):
            made[call.__name__] = call(x)
    for name in np.special.__all__:
        with contextlib.suppress(TypeError):
            made[f"special.{name}"] = getattr(standard.special, name)(*[x] * (1 + (name == "xlogy")))
    assert len(made) > 40
    for name, found in made.items():
        if isinstance(found, np.ndarray | numpy.generic):
            assert type(found) is standard.Array, name


SMALL = [
    *("xp.sqrt(a)", "xp.add(a, a)", "xp.sum(a)", "xp.sum(a, axis=0)", "xp.max(a, axis=0)", "xp.argmax(a)"),
    *("xp.matmul(a, a)", "xp.where(a > 1, a, a)", "xp.any(a)", "xp.zeros((3, 4))", "xp.arange(5)"),
    *("xp.permute_dims(a, (1, 0))", "xp.reshape(a, (-1,))", "xp.linalg.inv(a)", "xp.linalg.matmul(a, a)"),
    *("xp.concat([a, a])", "xp.asarray(a)", "xp.asarray([1.0, 2.0])"),
]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="it is Python that calls")
@pytest.mark.parametrize("call", SMALL)
def test_small_arrays_take_few_functions_of_ours(call):
    """Names are found once, and what comes out has its class without further questions."""
    room, called = str(Path(np.__file__).parent), []
    code, names = compile(call, "a call", "eval"), {"xp": xp, "a": np.array([[1.0, 2.0], [3.0, 5.0]])}
    eval(code, names)

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(room):
            called.append(frame.f_code.co_name)

    sys.setprofile(look)
    try:
        found = eval(code, names)
    finally:
        sys.setprofile(None)
    assert type(found) is standard.Array
    of_numbers = {"wrap", "__instancecheck__", "<lambda>"}  # NumPy asks how their memory is laid out
    assert not set(called) - {"asarray", "call", "standard", "of_class"} - of_numbers
    wanted = eval(call, {"xp": numpy, "a": numpy.asarray(names["a"])})
    numpy.testing.assert_array_equal(found, wanted, strict=True)
