"""Functions of SciPy's sparse matrices alone give what they give with NumPy, wherever that is an answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest
from scipy import sparse

import spartan_ng as np

CLASSES = ("csr_matrix", "csr_array", "csc_matrix", "csc_array", "coo_matrix", "coo_array", "dia_matrix")
DTYPES = ("f8", "c16", "i8")
UFUNCS = sorted({f.__name__ for f in vars(numpy).values() if isinstance(f, numpy.ufunc)})
ALONE = sorted(
    name for name, f in vars(numpy).items() if callable(f) and not isinstance(f, numpy.ufunc | type)
)


def matrix(kind: str, dtype: str, seed: int = 0) -> Any:
    """Some non-zeros among others."""
    rng = numpy.random.default_rng(seed)
    dense = rng.integers(1, 9, (5, 5)) * (rng.random((5, 5)) < 0.5)
    return getattr(sparse, kind)((dense * (1 + 2j) if dtype == "c16" else dense).astype(dtype))


def answer(f: Any, *args: Any, **keywords: Any) -> Any:
    """What a function gives; None where it fails or gives objects."""
    try:
        found = f(*args, **keywords)
    except Exception:  # noqa: BLE001  # whatever it is, it is no answer
        return None
    return None if isinstance(found, numpy.ndarray) and found.dtype.hasobject else found


def same(found: Any, wanted: Any) -> bool:
    """Whether both are sparse matrices of one class, NumPy's matrices, or else have the same values."""
    if sparse.issparse(wanted):
        return (
            type(found) is type(wanted)
            and found.dtype == wanted.dtype
            and same(found.todense(), wanted.todense())
        )
    if isinstance(wanted, tuple):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, numpy.matrix) and type(found) is not numpy.matrix:
        return False
    a, b = numpy.asarray(found), numpy.asarray(wanted)
    return (
        a.shape == b.shape and a.dtype == b.dtype and numpy.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    )


def check(name: str, *args: Any, **keywords: Any) -> bool:
    """That our function gives what NumPy's does, if that is anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = answer(getattr(numpy, name), *args, **keywords)
        if wanted is None:
            return False
        found = answer(getattr(np, name), *args, **keywords)
    assert found is not None
    assert type(found) is np.ndarray or type(wanted) is not numpy.ndarray, name
    assert same(found, wanted), (name, found, wanted)
    return True


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", CLASSES)
def test_functions_by_element_are_asked_of_the_matrices(kind: str, dtype: str) -> None:
    m, n = matrix(kind, dtype), matrix(kind, dtype, 1)
    one = sum(check(name, m) for name in UFUNCS if getattr(numpy, name).nin == 1)
    assert one >= (13 if dtype != "c16" else 5)
    both = sum(
        check(name, a, b)
        for name in UFUNCS
        if getattr(numpy, name).nin == 2
        for a, b in ((m, n), (m, 2), (2, m), (m, numpy.float64(3)), (m, True))
    )
    assert both >= 8


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", CLASSES)
def test_functions_that_matrices_have_are_theirs(kind: str, dtype: str) -> None:
    m = matrix(kind, dtype)
    own = [name for name in ALONE if hasattr(type(m), name) or name == "round"]
    assert sum(check(name, m) for name in own) >= 10
    folds = [(name, axis) for name in ("sum", "mean", "max", "min") for axis in (0, 1, -1, None)]
    assert sum(hasattr(m, name) and check(name, m, axis=axis) for name, axis in folds) >= 8
    assert check("dot", m, matrix(kind, dtype, 1))
    assert check("reshape", m, (1, 25))


def test_where_they_have_no_answer_they_are_arrays_of_ours() -> None:
    """Also beside arrays, and by a function that is asked of them with one that is none of theirs."""
    m = matrix("csr_matrix", "f8")
    dense = m.toarray()
    numpy.testing.assert_array_equal(np.exp(m), numpy.exp(dense))
    numpy.testing.assert_array_equal(np.isfinite(m), True)
    numpy.testing.assert_array_equal(np.trace(m), numpy.trace(dense))
    numpy.testing.assert_array_equal(np.linalg.norm(m), numpy.linalg.norm(dense))
    numpy.testing.assert_array_equal(np.multiply(m, np.ones((5, 5))).todense(), dense)
    numpy.testing.assert_array_equal(np.dot(m, np.ones(5)), dense @ numpy.ones(5))


def test_a_program_of_power_flows_mixes_both() -> None:
    """Admittances are sparse, voltages are not (the Jacobian of MATPOWER's `dSbus_dV`)."""
    y = matrix("csr_matrix", "c16")
    found = []
    for module in (numpy, np):
        v = module.exp(1j * module.arange(5.0))
        places = range(5)
        current = sparse.csr_matrix((module.asarray(y * v), (places, places)))
        voltage = sparse.csr_matrix((v, (places, places)))
        by_angle = 1j * voltage * module.conj(current - y * voltage)
        by_size = voltage * module.conj(y * voltage) + module.conj(current) * voltage
        upper = sparse.hstack([by_angle.real, by_size.imag])
        found.append(sparse.vstack([upper, sparse.hstack([by_angle[:, module.arange(5)], by_size])]))
    assert type(found[1]) is type(found[0])
    numpy.testing.assert_array_equal(found[1].toarray(), found[0].toarray())
