"""Expressions that once gave something else than NumPy: values, dtypes, shapes, kinds of exceptions."""

from __future__ import annotations

import decimal
import fractions
import warnings

import numpy
import pytest

import spartan_ng
from spartan_ng import config
from spartan_ng.api.core.handle import Handle

ROWS = {
    "windows": """
        np.hamming(np.int8(10))
        np.bartlett(7.5)
        np.kaiser(np.uint8(200), 14)
        np.blackman(0)
        np.hanning(True)
    """,
    "bins": """
        np.digitize([0.5, 1.5, 3, 1], [3, 2, 1])
        np.digitize([0.5, 1.5, 3, 1], [3, 2, 1], right=True)
        np.digitize(1j, [1, 2])
        np.digitize([1], [1j, 2])
        np.digitize([1], [1, 3, 2])
        np.histogram([1, 2, 2], weights=np.array([1, 2, 3]))[0]
        np.histogram([1.0, 2, 2], bins=[1, 1.5, 3], weights=np.array([1j, 2, 3]))[0]
        np.histogram([1, 2], weights=[1])
        np.histogram([1, 2], 2.4)
        np.histogram(np.array([-120, 120], np.int8), 'sturges')
        np.histogramdd(np.arange(6.0).reshape(3, 2), bins=[2, [-np.inf, 2, 10]])[0]
    """,
    "objects": """
        np.array([D(1), D(3)]).sum()
        np.array([D(1), D(3)]).mean()
        np.array([D(1), D(3)]) / D(2)
        F(1, 3) + np.arange(3)
        np.average(np.array([D(1), D(3)]))
        np.median(np.array([F(1, 2), F(3, 2)]))
        np.array([1, 'a', None], dtype=object) == np.array([1, 'b', None], dtype=object)
        np.any(np.array([0, 'x'], dtype=object))
        np.cumsum(np.array([D(1), D(3)]))
        np.array([[1, 2], [3]], dtype=object)
        np.array([np.arange(2), np.arange(2)], dtype=object)
        np.isin(np.array([None], dtype=object), np.array([1, None] * 10, dtype=object), kind='bad')
        np.frompyfunc(lambda a, b: a + b, 2, 1).reduce([1, 2, 3])
        np.add.reduceat(np.array([1, 2, 3], dtype=object), [0, 2])
    """,
    "texts and times": """
        np.array(['a', 'bc'])[1]
        np.array(['2020-01-01', '2021-01-01'], 'M8[D]').max()
        np.array(['2020-01-01', '2021-01-01'], 'M8[D]')[0]
        np.diff(np.array(['2020-01-01', '2021-01-01'], 'M8[D]'))[0]
        np.zeros_like(np.zeros(2, 'U3'))
        np.ones_like(np.array(['a']))
        np.array(['2020-01-01', '2020-02']).astype('M8')
        np.arange(3) == 'a'
        np.arange(2) == np.array(['a', 'b'])
        np.arange(2) != np.array(['a', 'b'])
        np.array(['a', 'b']) < 3
        np.array(2) == 'a'
    """,
    "records": """
        np.array([(1, 2.0), (3, 4.0)], dtype='i4,f8') == np.array([(1, 2.0), (3, 5.0)], dtype='i4,f8')
        np.array([('a', 1.0, [[1, 2], [3, 4]])], dtype=[('n', 'U4'), ('x', float), ('b', int, (2, 2))])['b']
        np.zeros(2, dtype=[('a', 'f4', (2, 3))])['a'].shape
        np.zeros(2, dtype='V4') == np.zeros(2, dtype='V4')
    """,
    "products": """
        np.vecmat(np.array([1 + 1j, 2]), np.array([[1j, 1], [2, 3j]]))
        np.vecdot(np.array([1 + 1j, 2]), np.array([1j, 3]))
        np.matvec(np.ones((2, 2)), np.arange(2.0), out=np.zeros(2))
        np.vecdot(np.ones((2, 3)), np.ones((2, 3)), keepdims=True)
        np.einsum(',i->i', 2, np.ones(0))
        np.einsum('i')
        np.einsum('i', np.ones(2), order='W')
        np.linalg.outer([[1]], [1])
        np.linalg.cross([1, 2], [1, 2])
        np.cross(1, [1, 2, 3])
        np.linalg.matrix_power(np.eye(2), 1.5)
    """,
    "choices": """
        np.piecewise([0, 0], [True, False], [1])
        np.piecewise(np.arange(4.0), [np.arange(4) < 2], [-1, lambda x: x * 2])
        np.piecewise(np.arange(4.0), [np.arange(4) < 2], [1, 2, 3])
        np.select([np.arange(3)], [1])
        np.clip(np.arange(3), 1)
        np.clip(np.arange(5, dtype=np.uint8), -1, 300)
        np.clip(np.arange(3), 0, 1, max=2)
        np.isclose(np.arange(3.0), [0, 1.5, 2], atol=np.array([1, 0.1, 3.0]))
        np.isclose(np.float32(1), 1.00000001, rtol=0, atol=0)
        np.nan_to_num(np.nan)
        np.nan_to_num(np.array(np.inf))
        np.real(1)
        np.imag(2j)
        np.sinc(np.zeros(2, np.float16))
        np.array([True, False]).conj()
        np.array(['a']).conj()
    """,
    "places": """
        np.put(np.zeros(3), [0], [])
        np.place(np.zeros(3), [False] * 3, [])
        np.piecewise([0, 0], np.array([True, False]), [1])
        np.percentile([1, 2, 3], 50, None, None, False)
        (lambda y: (np.percentile(np.arange(9.0), 40, out=y, method='lower'), y)[1])(np.zeros(()))
        (lambda y: (np.nanpercentile([1, np.nan, 3], 40, out=y, method='lower'), y)[1])(np.zeros(()))
        np.arange(3).take(1, mode='bad')
        np.place([1], [True], [1])
        np.put_along_axis(np.zeros((2, 2)), np.array([0]), 1, 1)
        np.ix_(np.zeros(0, np.float32))[0]
        np.partition(np.arange(3), [])
        np.diag_indices_from(np.ones(3))
        np.add.at(np.zeros(3), [0])
        np.reshape(np.ones(2), (True, -1))
        np.reshape(np.ones(2), (1.0, -1))
        np.ones((2, 3, 4)).transpose(np.array([2, 0, 1])).shape
        np.arange(4).reshape((2, 2), order='f')
    """,
    "joins": """
        np.concatenate([[1.0]], out=np.empty(1, int))
        np.concatenate([[1.0], [2]], out=np.empty(3))
        np.concatenate([[1.0], [2]], out=np.empty(2), dtype=float)
        np.concatenate([[1.5], [2]], dtype=int, casting='unsafe')
        np.concatenate([['abc'], [1]], dtype='U')
        np.stack(x for x in [[1], [2]])
        np.vstack(x for x in [[1], [2]])
        np.block(([1], [2]))
        np.block([1, [2]])
        np.block([])
        np.convolve([1, 2], [3], mode=None)
        np.vander([1, 2], 0)
    """,
    "ufuncs": """
        np.add([1], [2], sig='ll->l')
        np.add([1], [2], signature='dd->d', dtype=float)
        np.add(1, 2, out=...)
        np.add.reduce(np.ones((2, 3)), out=np.ones((5, 3)))
        np.argmax(np.ones((2, 3)), axis=0, out=np.zeros((1, 3), int))
        np.corrcoef([1, 2, 3], [1, 2, 4], dtype=np.float32)
        np.hstack(([1, 2], [3.5]), dtype=np.int64, casting='unsafe')
        np.vectorize(lambda a, b=2: a * b)([1, 2], b=3)
        np.vectorize(lambda a: a)(np.zeros((0, 2)))
        np.astype([1], int)
        np.bincount(Like())
        np.add(Like(), 1)
        np.concatenate([Like(), Like()])
    """,
    "spreads": """
        np.var(np.arange(5, dtype=np.float16))
        np.nanvar(np.array([1, 2, np.nan], np.float16))
        np.nanstd(np.arange(9, dtype=np.float16) * 100)
        np.var(np.arange(3.0), ddof=1, correction=1)
        np.nanvar(np.arange(3.0), ddof=1, correction=0)
        np.nanmean(np.array([1, np.nan]), dtype=int)
        np.testing.assert_equal(np.arange(3), np.arange(3))
        np.testing.assert_equal({'a': [np.ones(2)]}, {'a': [np.ones(2)]})
        np.testing.assert_array_equal(np.arange(3), [0, 1, 2])
    """,
    "numbers": """
        np.random.default_rng(0).random()
        np.random.RandomState(0).randint(5)
        np.random.default_rng(0).normal(size=2)
        np.random.default_rng(0).standard_gamma(2.0, dtype=np.float32, out=np.zeros(3, np.float32))
        np.random.default_rng(0).random(out=np.zeros(3, np.float32))
        np.random.default_rng(0).random(3, out=np.zeros(4))
        np.random.default_rng(0).poisson(3)
    """,
    "memory": """
        np.eye(3, order='F').flags.fnc
        np.ones((2, 3)).copy('f').flags['F']
        repr(np.arange(4).reshape(2, 2).T.flags)
        np.arange(3).flags == np.ones(3).flags
        np.ascontiguousarray(np.ones(10)[::2]).flags.c_contiguous
        (lambda a: a[1:].base is a)(np.arange(3))
        (lambda a: a[1:][1:].base is a)(np.arange(3))
        (lambda a: a.T.base is a)(np.ones((2, 2)))
        np.arange(3).base
        np.ndarray((2,), 'i4', b'12345678')
        np.array([[1, 2]], ndmax=1, dtype=object).shape
    """,
}


class Likes:
    """An object that says how it becomes an array of the namespace it is tried in."""

    def __init__(self, xp):
        self.xp = xp

    def __call__(self):
        xp = self.xp

        class Like:
            def __array__(self, dtype=None, copy=None):
                return xp.ones(3, int)

        return Like()


def found(xp, expression):
    """What an expression gives: its form and values, or the kind of its exception."""
    names = {"np": xp, "D": decimal.Decimal, "F": fractions.Fraction, "Like": Likes(xp)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(expression, names)
        except (TypeError, ValueError, IndexError) as error:
            return next(k for k in (TypeError, ValueError, IndexError) if isinstance(error, k))
        if isinstance(result, Handle):
            (result,) = spartan_ng.compute(result)
        if isinstance(result, numpy.ndarray | numpy.generic):
            return result.__class__, result.shape, result.dtype.newbyteorder("="), result.tolist()
        return type(result), result


@pytest.mark.some(120)
@pytest.mark.parametrize("small_bytes", [1 << 20, 0], ids=["eager", "lazy"])
@pytest.mark.parametrize(
    "expression", [line.strip() for rows in ROWS.values() for line in rows.splitlines() if line.strip()]
)
def test_expression(expression, small_bytes):
    with config.override(small_bytes=small_bytes):
        numpy.testing.assert_equal(found(spartan_ng, expression), found(numpy, expression))
