"""The autoencoder against scikit-learn's network with the same weights and batches, and by differences."""

from __future__ import annotations

from itertools import pairwise

import numpy
import pytest
from sklearn import datasets
from sklearn.base import clone
from sklearn.neural_network import MLPRegressor

import spartan_ng as np
from spartan_ng.apps import autoencoder as app
from spartan_ng.apps.autoencoder import AutoEncoder, autoencoder

X = datasets.load_digits().data[:600, 2:30] / 16
SIZES = (28, 12, 2, 12, 28)


def start() -> list[numpy.ndarray]:
    random = numpy.random.default_rng(0)
    random.permutation(600)
    values = [(6 / (a + b)) ** 0.5 * (2 * random.random((a, b)) - 1) for a, b in pairwise(SIZES)]
    return values + [numpy.zeros(n) for n in SIZES[1:]]


@pytest.mark.slow
@pytest.mark.some(1)
def test_gradients_are_slopes(anywhere) -> None:
    values = start()
    random = numpy.random.default_rng(1)
    directions = [random.standard_normal(v.shape) for v in values]
    handles = [np.asarray(v) for v in values]
    _, slopes = app.gradients(np.asarray(X), handles)
    along = sum(float((g * d).sum()) for g, d in zip(slopes, directions, strict=True))
    losses = []
    for h in (-1e-5, 1e-5):
        moved = [np.asarray(v + h * d) for v, d in zip(values, directions, strict=True)]
        losses.append(float(app.gradients(np.asarray(X), moved)[0]))
    assert along == pytest.approx((losses[1] - losses[0]) / 2e-5, rel=1e-6)


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_takes_scikit_learns_steps(anywhere) -> None:
    rate, epochs = 0.05, 2
    ours = autoencoder(
        X, h1=12, h2=2, batch=150, epochs=epochs, tol=0.0, rate=rate, decay=1.0, standardize=False, seed=0
    )
    order = numpy.random.default_rng(0).permutation(600)
    model = MLPRegressor(
        hidden_layer_sizes=SIZES[1:-1],
        activation="tanh",
        solver="sgd",
        alpha=0.0,
        batch_size=150,
        learning_rate_init=rate,
        momentum=0.9,
        nesterovs_momentum=False,
        shuffle=False,
        max_iter=1,
    )
    model.partial_fit(X[:150] * 0, X[:150] * 0)  # makes the layers
    values = start()
    model.coefs_, model.intercepts_ = values[:4], values[4:]
    model._optimizer.params = [*model.coefs_, *model.intercepts_]
    model._optimizer.velocities = [numpy.zeros_like(p) for p in model._optimizer.params]
    for _ in range(epochs):
        for first in range(0, 600, 150):
            model.partial_fit(X[order[first : first + 150]], X[order[first : first + 150]])
    for i in range(4):
        w, b = (numpy.asarray(getattr(ours, f"{kind}{i + 1}")) for kind in "wb")
        numpy.testing.assert_allclose(w, model.coefs_[i], rtol=1e-6, atol=1e-8)
        numpy.testing.assert_allclose(b, model.intercepts_[i], rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_two_numbers_a_point_beat_the_mean_and_near_two_components() -> None:
    model = AutoEncoder(20, 2, batch=60, epochs=60, tol=0.0, rate=0.02, decay=0.99, random_state=0).fit(X)
    Z = (X - X.mean(0)) / numpy.where(X.std(0) == 0, 1, X.std(0))
    values = numpy.linalg.svd(Z, compute_uv=False)
    linear = (values[2:] ** 2).sum() / (values**2).sum()
    assert 1 - model.score(X) < 1.05 * linear
    assert model.history_[-1] < model.history_[0]
    assert numpy.asarray(model.transform(X)).shape == (600, 2)
    back = numpy.asarray(model.predict(X))
    assert ((back - X) ** 2).sum() < ((X - X.mean(0)) ** 2).sum()


def test_conventions_and_bad_input() -> None:
    model = AutoEncoder(5, 2, epochs=3)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ValueError, match="h2 is 0, it must be positive"):
        autoencoder(X, h2=0)
    with pytest.raises(ValueError, match="0 sample"):
        autoencoder(X[:0])
