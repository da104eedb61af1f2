"""Code written for NumPy's arrays and generators takes ours: compiled kernels, SciPy, scikit-learn, types."""

from __future__ import annotations

import copy
import ctypes
import inspect
import operator
import pickle

import numpy
import pytest
import scipy.sparse
from numpy._core._operand_flag_tests import inplace_add  # type: ignore[import-not-found]

import spartan_ng as np

X = numpy.random.default_rng(0).integers(0, 11, (4, 6)).astype(float)

# --- sparse ----------------------------------------------------------------------------------------

OPERATORS = ["add", "sub", "mul", "truediv", "matmul", "eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATORS)
def test_sparse_operands(mode, name):
    """SciPy says no to some operands that NumPy's rules have an answer to; whatever it answers is ours."""
    for kind in ("csr_array", "csc_array", "coo_array"):
        sparse = getattr(scipy.sparse, kind)(numpy.array([[1.0, 0], [0, 2]]))
        for dense in (
            numpy.ones((2, 2)),
            numpy.arange(2),
            numpy.full((1, 2), 2.0),
            numpy.ones((2, 1)),
            numpy.float64(3),
        ):
            for turned in (False, True):

                def answer(d, s=sparse, turned=turned):
                    r = getattr(operator, name)(*((d, s) if turned else (s, d)))
                    return numpy.asarray(r.toarray() if hasattr(r, "toarray") else r)

                try:
                    wanted = answer(dense)
                except (NotImplementedError, TypeError, ValueError):
                    continue
                numpy.testing.assert_array_equal(answer(np.asarray(dense)), wanted)


# --- memory ----------------------------------------------------------------------------------------

DTYPES = ["?", "i1", "u8", "f2", ">f4", "f8", "g", "c8", "M8[s]", "S3", "U2", "O", "i4,f8"]


def of(dtype):
    return numpy.arange(24).astype("i8").reshape(4, 6).astype(dtype)


def held(xp, x):
    """Arrays over one base, as programs have them: whole, lazy, views, and what a graph has taken."""
    a = xp.array(x)
    yield a
    yield a.copy()[...]
    yield a.T
    yield a[1:, ::-2]
    yield a[2]
    yield xp.where(a == a, a, a)
    yield xp.asarray(x)
    yield xp.broadcast_to(a[0], (3, 6))
    yield xp.array(x)[:1, 0].reshape(())


@pytest.mark.parametrize("dtype", DTYPES)
def test_others_have_the_memory_as_numpys(mode, dtype):
    x = of(dtype)
    for a, wanted in zip(held(np, x), held(numpy, x.copy()), strict=True):
        before = np.asarray(a).copy()
        built = np.stack([before, a])
        given = numpy.asarray(a)
        assert type(given) is numpy.ndarray
        assert given.flags.writeable == wanted.flags.writeable
        assert (given.shape, given.dtype) == (a.shape, a.dtype)
        again = numpy.asarray(a)
        for value in (numpy.zeros((), dtype), of(dtype)[0, 1]) if wanted.flags.writeable else ():
            given[...] = wanted[...] = value
            assert numpy.all(again == wanted)
            assert np.all(a == wanted)
            value = of(dtype)[1, 1]
            a[...] = wanted[...] = value
            assert numpy.all(given == wanted)
        assert np.all(built[0] == built[1])
    assert (x == of(dtype)).all()


def test_a_number_is_a_copy(mode):
    a = np.arange(4)[2]
    numpy.asarray(a)[...] = 7
    assert a == 2


def test_what_must_not_be_copied_is_the_memory(mode):
    a = np.array(X)
    shown, read = numpy.asarray(a, copy=False), numpy.asarray(a.data)
    assert read.flags.writeable
    shown[0, 0] += 1
    read[0, 1] += 1
    numpy.testing.assert_array_equal(a, shown)
    numpy.testing.assert_array_equal(read, shown)
    with pytest.raises(ValueError, match="copy"):
        numpy.asarray(a, "f4", copy=False)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_lies_as_it_did(mode, order):
    assert numpy.asarray(np.array(X, order=order)).flags[order]


@pytest.mark.slow
def test_compiled_kernels_write_into_it(mode):
    numba = pytest.importorskip("numba")

    @numba.njit
    def doubled(x):
        for i in range(x.shape[0]):
            x[i] *= 2
        return x.sum()

    a = np.arange(5.0) + 1
    assert doubled(numpy.asarray(a)) == 30
    assert a.sum() == 30


def ramps(m):
    """Arrays of integers as programs have them."""
    yield m.arange(12).reshape(3, 4)
    yield m.zeros((3, 4), int)
    yield m.arange(12).reshape(3, 4) * 5 % 7
    yield (m.arange(12).reshape(4, 3) * 5).T
    yield (m.arange(48).reshape(6, 8) * 5)[::2, 1:5]
    yield m.asarray(numpy.arange(12).reshape(3, 4))
    yield m.broadcast_to(m.arange(4), (3, 4))


def kernels_that_write():
    """Compiled functions that write into what they are given, by name."""
    numba = pytest.importorskip("numba")

    @numba.guvectorize(["void(i8[:], i8[:])"], "(n),(n)", writable_args=(0,))
    def increase(x, y):
        for i in range(x.shape[0]):
            x[i] += y[i]

    doubled = numba.vectorize(["i8(i8)"])(lambda x: 2 * x)
    yield "numba", lambda a: increase(a[1], a[0] + 1)
    yield "numba of rows", lambda a: increase(a.T, a.T)
    yield "numba's out", lambda a: doubled(a[0], a[1])
    yield "numba's out=", lambda a: doubled(a[0], out=a[1])
    yield "numpy", lambda a: inplace_add(a, 3)
    yield "numpy of a part", lambda a: inplace_add(a[1:, ::2].T, [[5]])
    yield "numpy of itself", lambda a: inplace_add(a, a[:, :1])
    yield "Python's", lambda a: numpy.frompyfunc(lambda x: x + 1, 1, 1)(a, out=a, casting="unsafe")
    yield "ctypes", lambda a: ctypes.memset(a.ctypes.data, 1, 8)
    yield "ctypes' pointer", lambda a: operator.setitem(a.ctypes.data_as(ctypes.POINTER(ctypes.c_long)), 0, 7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::spartan_ng.api.core.dispatch.FallbackWarning")
def test_what_kernels_write_is_seen_as_numpy_shows_it(mode):
    """By the array and its views, not by what was built on it before."""
    for name, write in kernels_that_write():
        for a, b in zip(ramps(np), ramps(numpy), strict=True):
            if name.startswith("ctypes") and not b.flags.writeable:
                continue  # NumPy's arrays are written to all the same
            answers = []
            for x in (a, b):
                built, view, copy_ = x * 2 + 1, x[1:, ::-1], x.copy()
                error = None
                try:
                    write(x)
                except (ValueError, TypeError) as e:
                    error = type(e)
                seen = (x, view, built, copy_, x + 1)
                answers.append((error, [numpy.asarray(s).tolist() for s in seen]))
            assert answers[0] == answers[1], name


def scipys():
    ndimage = pytest.importorskip("scipy.ndimage")
    from scipy import interpolate, signal, spatial, stats

    sections = signal.butter(2, 0.3, output="sos")
    yield lambda x: ndimage.label(x > 5)[0]
    yield lambda x: ndimage.uniform_filter(x, 3)
    yield lambda x: ndimage.map_coordinates(x, [[0.5, 1.0], [1.0, 2.5]])
    yield lambda x: signal.sosfilt(sections, x)
    yield lambda x: signal.lfilter([1.0, 0.5], [1.0, 0.1], x, axis=0)
    yield lambda x: signal.medfilt(x)
    yield lambda x: spatial.distance.cdist(x, x)
    yield lambda x: spatial.KDTree(x).query(x)[0]
    yield lambda x: stats.rankdata(x, axis=1)
    yield lambda x: stats.gaussian_kde(x[:2])(x[:2])
    yield lambda x: interpolate.CubicSpline(numpy.arange(4), x)(1.5)
    yield lambda x: interpolate.interp1d(numpy.arange(6), x)(0.5)


@pytest.mark.filterwarnings("ignore::spartan_ng.api.core.dispatch.FallbackWarning")
def test_scipys_kernels(mode):
    for call in scipys():
        numpy.testing.assert_allclose(numpy.asarray(call(np.array(X))), call(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::spartan_ng.api.core.dispatch.FallbackWarning")
def test_sklearns_kernels(mode):
    sklearn = pytest.importorskip("sklearn")
    from sklearn import cluster, ensemble, feature_selection, neighbors, svm

    labels = numpy.array([0, 1, 0, 1])
    calls = [
        lambda x, y: feature_selection.chi2(x, y)[0],
        lambda x, y: cluster.KMeans(2, n_init=1, random_state=0).fit(x).inertia_,
        lambda x, y: ensemble.RandomForestClassifier(3, random_state=0).fit(x, y).predict(x),
        lambda x, y: neighbors.KNeighborsClassifier(1).fit(x, y).predict(x),
        lambda x, y: svm.SVC().fit(x, y).decision_function(x),
    ]
    assert sklearn.get_config()["array_api_dispatch"] is False
    for call in calls:
        got = call(np.array(X), np.array(labels))
        numpy.testing.assert_allclose(numpy.asarray(got), call(X, labels), rtol=1e-9)


# --- generators ------------------------------------------------------------------------------------

GENERATORS = {
    "Generator": (np.random.default_rng, numpy.random.default_rng),
    "RandomState": (np.random.RandomState, numpy.random.RandomState),
}


@pytest.fixture(params=list(GENERATORS))
def pair(request):
    """One of our generators, and NumPy's with the same seed."""
    ours, theirs = GENERATORS[request.param]
    return ours(7), theirs(7)


def test_generators_are_numpys(mode, pair):
    ours, theirs = pair
    assert isinstance(ours, type(theirs))
    made = pickle.loads(pickle.dumps(ours))
    for g in (made, copy.deepcopy(ours), ours):
        assert type(g) is type(ours)
        assert numpy.asarray(g.normal(size=3)).tolist() == copy.deepcopy(theirs).normal(size=3).tolist()


def mean_of_first(a, b):
    return a.mean()


@pytest.mark.filterwarnings("ignore::spartan_ng.api.core.dispatch.FallbackWarning")
def test_scipy_and_sklearn_draw_from_ours(mode, pair):
    stats = pytest.importorskip("scipy.stats")
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.utils import check_random_state

    ours, theirs = pair
    calls = [
        lambda g: stats.norm.rvs(size=5, random_state=g),
        lambda g: stats.poisson.rvs(3, size=5, random_state=g),
        lambda g: stats.multivariate_normal.rvs([0, 1], size=3, random_state=g),
        lambda g: stats.bootstrap((X[0],), numpy.mean, n_resamples=20, random_state=g).standard_error,
        lambda g: stats.permutation_test((X[0], X[1]), mean_of_first, n_resamples=9, rng=g).pvalue,
    ]
    if isinstance(ours, numpy.random.RandomState):
        assert check_random_state(ours) is ours
        calls.append(lambda g: datasets.make_blobs(9, random_state=g)[0])
        calls.append(lambda g: datasets.make_classification(9, 5, n_informative=3, random_state=g)[0])
    for call in calls:
        numpy.testing.assert_allclose(numpy.asarray(call(ours)), call(theirs))


def test_the_module_is_a_generator_as_numpys_is(mode):
    stats = pytest.importorskip("scipy.stats")
    pytest.importorskip("sklearn")
    from sklearn.utils import check_random_state

    def drawn(module):
        module.seed(3)
        return numpy.asarray(stats.norm.rvs(size=4, random_state=module)).tolist()

    assert drawn(np.random) == drawn(numpy.random)
    assert check_random_state(np.random).permutation(3).shape == (3,)
    assert inspect.ismodule(np.random)


@pytest.mark.some(40)
@pytest.mark.parametrize("name", ["choice", "permutation"])
@pytest.mark.parametrize("a", [4, 0, -1, 3.5, True, numpy.int8(3), [3, 1, 2], numpy.array(3)])
@pytest.mark.parametrize("given", [lambda a: a, np.array, lambda a: np.asarray([a, a])[0]])
def test_a_number_is_its_range(mode, pair, name, a, given):
    if isinstance(a, list) and given is not np.array:
        pytest.skip("not a number")
    ours, theirs = pair
    (wanted,) = np.compute(given(a))
    if type(given(a)) is not type(wanted) and isinstance(given(a), numpy.generic):
        wanted = wanted[()]
    assert outcome(getattr(ours, name), given(a)) == outcome(getattr(theirs, name), wanted)


def outcome(function, *args):
    """A value, or the builtin class of what is raised."""
    try:
        return numpy.asarray(function(*args)).tolist()
    except Exception as error:  # noqa: BLE001 (its class is what is compared)
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


# --- types -----------------------------------------------------------------------------------------


def test_annotations():
    """A typed program runs: its annotations are evaluated as it is imported."""
    program: dict = {}
    text = (
        "import numpy.typing as npt, spartan_ng as np\n"
        "Plane = np.ndarray[tuple[int, ...], np.dtype[np.float64]]\n"
        "def f(x: Plane, y: npt.NDArray[np.int8]) -> np.ndarray[float]:\n"
        "    return x * 2\n"
        "z: np.typing.NDArray[np.float64] = f(np.ones(2), None)"
    )
    exec(compile(text, "typed", "exec", dont_inherit=True), program)
    assert program["z"].tolist() == [2, 2]
    assert program["f"].__annotations__["return"].__origin__ is np.ndarray


@pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 3)])
@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array"])
def test_scipys_matrices_multiply_as_matrices(shape, kind, mode):
    theirs = getattr(scipy.sparse, kind)(numpy.array([[1.0, 2, 0], [0, 1, 0], [0, 0, 3]]))
    a = numpy.arange(1.0, 1 + numpy.prod(shape)).reshape(shape)
    if kind.endswith("matrix"):
        numpy.testing.assert_array_equal(numpy.asarray(np.array(a) * theirs), a * theirs)
    elif shape != (2, 3):
        numpy.testing.assert_array_equal(numpy.asarray(np.array(a) * theirs), a * theirs.toarray())
