"""Protocols with the real libraries: NumPy's own, pandas, matplotlib, opt_einsum, scikit-learn."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np


@pytest.mark.parametrize("call", [lambda x: numpy.asarray([1, 2], like=x), lambda x: numpy.zeros(2, like=x)])
def test_like(mode, call):
    assert isinstance(call(np.ones(3)), np.ndarray)


def test_pandas(mode):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(3) * 2})
    assert frame["a"].tolist() == [0, 2, 4]


def test_opt_einsum(mode):
    opt_einsum = pytest.importorskip("opt_einsum")
    a = numpy.arange(6.0).reshape(2, 3)
    got = opt_einsum.contract("ij,jk,kl->il", np.array(a), np.array(a.T), np.array(a))
    assert isinstance(got, np.ndarray)
    numpy.testing.assert_allclose(got, a @ a.T @ a)


def test_matplotlib(mode):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    (line,) = Figure().subplots().plot(np.arange(3), np.arange(3) ** 2)
    assert list(line.get_ydata()) == [0, 1, 4]


def test_sklearn_through_numpy(mode):
    linear = pytest.importorskip("sklearn.linear_model")
    x = numpy.arange(6.0).reshape(-1, 1)
    model = linear.LinearRegression().fit(np.array(x), np.array(3 * x[:, 0] + 1))
    assert model.coef_ == pytest.approx([3.0])
