"""Objects of a program whose `__array__` gives an array of ours, as it does once the import is replaced."""

import numpy
import pytest

import spartan_ng as np


class Like:
    """An object as programs have them: `np` is NumPy, or this package."""

    def __init__(self, np, elements):
        self.np, self.elements = np, elements

    def __array__(self, dtype=None, copy=None):
        return self.np.asarray(self.elements, dtype=dtype)


def _set(np, a):
    z = np.zeros(3)
    z[:] = a
    return z


def _set_scattered(np, a):
    z = np.zeros(3)
    z[[2, 0, 1]] = a
    return z


def _copied(np, a):
    z = np.zeros(3)
    np.copyto(z, a)
    return z


def _put(np, a):
    z = np.zeros(3)
    np.put(z, [0, 1, 2], a)
    return z


CALLS = {
    "full": lambda np, a: np.full(3, a),
    "full_like": lambda np, a: np.full_like(np.zeros(3), a),
    "copyto": _copied,
    "put": _put,
    "setitem": _set,
    "setitem scattered": _set_scattered,
    "linspace": lambda np, a: np.linspace(a, 5, 3),
    "geomspace": lambda np, a: np.geomspace(1, a, 3),
    "polyval": lambda np, a: np.polyval(a, 2.0),
    "polyfit": lambda np, a: np.polyfit([1.0, 2.0, 3.0], a, 1),
    "bincount": lambda np, a: np.bincount([0, 1, 2], a),
    "frompyfunc": lambda np, a: np.frompyfunc(lambda x: x, 1, 1)(a),
    "vectorize": lambda np, a: np.vectorize(lambda x: 2 * x)(a),
    "nditer": lambda np, a: [float(x) for x in np.nditer(a)],
    "array of objects": lambda np, a: np.array([a], dtype=object),
    "block": lambda np, a: np.block([a, a]),
    "piecewise": lambda np, a: np.piecewise(a, [[True, False, True]], [1, 2]),
    "pad": lambda np, a: np.pad(a, 1),
    "gradient": lambda np, a: np.gradient(a),
    "unique": lambda np, a: np.unique(a),
    "lexsort": lambda np, a: np.lexsort((a,)),
    "insert": lambda np, a: np.insert(np.zeros(3), 1, a),
    "append": lambda np, a: np.append(a, a),
    "repeat": lambda np, a: np.repeat(a, 2),
    "digitize": lambda np, a: np.digitize(a, [1.5]),
    "nan_to_num": lambda np, a: np.nan_to_num(a),
    "einsum": lambda np, a: np.einsum("i,i", a, a),
    "clip": lambda np, a: np.clip(a, 0, a),
    "kron": lambda np, a: np.kron(a, a),
    "apply_along_axis": lambda np, a: np.apply_along_axis(sum, 0, a),
    "average": lambda np, a: np.average(a, weights=a),
    "isin": lambda np, a: np.isin(a, a),
    "i0": lambda np, a: np.i0(a),
    "correlate": lambda np, a: np.correlate(a, a),
    "meshgrid": lambda np, a: np.meshgrid(a, a),
    "unwrap": lambda np, a: np.unwrap(a),
    "solve": lambda np, a: np.linalg.solve(2 * np.eye(3), a),
    "lstsq": lambda np, a: np.linalg.lstsq(np.eye(3), a)[0],
    "normal": lambda np, a: np.random.RandomState(1).normal(a, 1.0),
    "poisson": lambda np, a: np.random.RandomState(1).poisson(a),
    "choice": lambda np, a: np.random.RandomState(1).choice(a, 2),
    "generator's normal": lambda np, a: np.random.default_rng(1).normal(loc=a, scale=2.0),
    "generator's uniform": lambda np, a: np.random.default_rng(1).uniform(a, 9.0),
    "generator's gamma": lambda np, a: np.random.default_rng(1).gamma(a),
    "generator's choice": lambda np, a: np.random.default_rng(1).choice(3, 2, p=np.asarray(a) / 6.0),
    "multivariate_normal": lambda np, a: np.random.default_rng(1).multivariate_normal(a, np.eye(3)),
    "permutation": lambda np, a: np.random.default_rng(1).permutation(a),
    "assert_allclose": lambda np, a: np.testing.assert_allclose(a, a),
}


@pytest.mark.parametrize("name", CALLS)
def test_objects_are_the_arrays_that_they_give(name):
    expected = CALLS[name](numpy, Like(numpy, [1.0, 2.0, 3.0]))
    found = CALLS[name](np, Like(np, [1.0, 2.0, 3.0]))
    numpy.testing.assert_equal(str(found), str(expected))
    if isinstance(expected, numpy.ndarray) and expected.dtype != object:
        numpy.testing.assert_allclose(numpy.asarray(found), expected, rtol=1e-13)


@pytest.mark.parametrize("given", [[1.0, 2.0], None, "texts"])
def test_objects_that_give_no_array_are_refused_as_numpy_does(given):
    class Other:
        def __array__(self, dtype=None, copy=None):
            return given

    for call in (lambda np: np.full(3, Other()), lambda np: np.linspace(Other(), 1, 3)):
        for package in (numpy, np):
            with pytest.raises(ValueError, match="not producing an array"):
                call(package)


@pytest.mark.parametrize("items", [["", "a", ""], ["0", "a", " "], [b"", b"x"], [None, 1, 0], ["", ""]])
def test_zeros_of_texts_and_objects_are_trimmed(items):
    for dtype in [object, None] if None not in items else [object]:
        expected = numpy.trim_zeros(numpy.array(items, dtype))
        assert np.trim_zeros(np.array(items, dtype)).tolist() == expected.tolist()
