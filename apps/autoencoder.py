"""A two-layer autoencoder: points through a bottleneck and back, fitted by mini-batches with momentum.

Fusion plans (PVLDB '18), Table 2, and FuseME (SIGMOD '22), section 6.5, after SystemML's script: tanh
layers of H1, H2 and H1 neurons and a linear last one. The batches are cut once, all of one shape, so that
every step of every epoch runs the same plan; weights and velocities stay with the workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array, points, require_finite, require_positive
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.estimator import Transformer, explained
from spartan_ng.apps.pictures import Panel

LAYERS = 4
_PATIENCE = 10
"""Epochs that may bring nothing, as in scikit-learn."""


@dataclass(frozen=True, slots=True)
class Network:
    """What `autoencoder` finds: four layers, `x @ weights + bias`, all but the last through tanh.

    Parameters
    ----------
    w1, w2, w3, w4 : weights, shape (n_inputs, n_outputs) of each layer; on the workers
    b1, b2, b3, b4 : biases, shape (n_outputs,)
    mean, scale : of the features, which are standardized first
    n_iter : number of epochs that were run
    converged : whether `tol` ended them
    history : each epoch's half squared error of a point, on average, before each batch's step
    """

    w1: Any
    w2: Any
    w3: Any
    w4: Any
    b1: Any
    b2: Any
    b3: Any
    b4: Any
    mean: Any
    scale: Any
    n_iter: int
    converged: bool
    history: Any


def autoencoder(
    X: Any,
    *,
    h1: int = 500,
    h2: int = 2,
    batch: int = 512,
    epochs: int = 200,
    tol: float = 1e-4,
    rate: float = 0.01,
    decay: float = 0.95,
    momentum: float = 0.9,
    standardize: bool = True,
    seed: int | None = None,
) -> Network:
    """Fit a network that gives points back from a bottleneck.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    h1 : neurons of the first and the third layer
    h2 : neurons of the second layer, the bottleneck
    batch : points of a batch; the last one of an epoch has what is left
    epochs : how often each point is seen at most
    tol : stop when ten epochs in a row have not lowered the least loss by so much
    rate : step size, for the batch's mean gradient
    decay : what the step size is multiplied with after each epoch
    momentum : share of the last step that is taken again
    standardize : whether features get mean 0 and variance 1 first
    seed : seed of the first weights and of the points' order

    Raises
    ------
    ValueError : X is not two-dimensional or has no points, or an option out of its range

    Warns
    -----
    ConvergenceWarning : `epochs` ended it, and tol is not 0
    """
    X = points(X)
    require_positive("autoencoder", h1=h1, h2=h2, batch=batch, epochs=epochs, rate=rate, n_points=X.shape[0])
    random = np.random.default_rng(seed)
    mean, scale = _standard(X) if standardize else (np.zeros(X.shape[1]), np.ones(X.shape[1]))
    require_finite("autoencoder", X, mean, scale)
    batches = _batches(((X - mean) / scale).persist(), min(batch, X.shape[0]), random)
    sizes = (X.shape[1], h1, h2, h1, X.shape[1])
    values = [a.astype(X.dtype) for a in _first(sizes, random)]
    velocity = [np.zeros_like(a) for a in values]
    least, waited = float("inf"), 0
    loop = Iterations("the autoencoder", epochs, tol, "epochs")
    mu = np.asarray(momentum, X.dtype)
    for epoch in loop:
        step = np.asarray(rate * decay ** (epoch - 1), X.dtype)
        seen = []
        for points_ in batches:
            loss, slopes = gradients(points_, values)
            velocity = [mu * v - step * g for v, g in zip(velocity, slopes, strict=True)]
            values = [a + v for a, v in zip(values, velocity, strict=True)]
            np.persist(loss, *values, *velocity)
            seen.append((loss, points_.shape[0]))
        now = sum(float(loss) * n for loss, n in seen) / X.shape[0]
        if epoch == 1:
            require_finite("autoencoder", X, now)
        loop.saw(now)
        waited = waited + 1 if now > least - tol else 0
        least = min(now, least)
        loop.converged = tol > 0 and waited >= _PATIENCE
    w1, w2, w3, w4, b1, b2, b3, b4 = values
    layers = w1, w2, w3, w4, b1, b2, b3, b4
    return Network(*layers, mean, scale, loop.n_iter, loop.converged, loop.history)


def _standard(X: Any) -> tuple[Any, Any]:
    """Means and standard deviations of the features; constant ones are left as they are."""
    mean, scale = np.compute(X.mean(axis=0), X.std(axis=0))
    return mean, scale + (scale == 0)


def _batches(X: Any, size: int, random: Any) -> list[Any]:
    """The points in a random order, cut into batches of `size`; evaluated."""
    order = random.permutation(X.shape[0]).compute()
    starts = range(0, X.shape[0], size)
    return [np.take(X, np.asarray(order[i : i + size]), axis=0).persist() for i in starts]


def _first(sizes: Sequence[int], random: Any) -> list[Any]:
    """Weights, uniform within the bounds of Glorot and Bengio (2010), then biases of 0."""
    weights = [(6 / (a + b)) ** 0.5 * (2 * random.random((a, b)) - 1) for a, b in pairwise(sizes)]
    return weights + [np.zeros(n) for n in sizes[1:]]


def forward(X: Any, values: Sequence[Any]) -> list[Any]:
    """What each layer gives, the points first; lazy."""
    weights, biases = values[:LAYERS], values[LAYERS:]
    layers = [X]
    for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
        z = layers[-1] @ w + b
        layers.append(z if i == LAYERS - 1 else np.tanh(z))
    return layers


def gradients(X: Any, values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The half squared error of a point, on average, and its derivatives by weights and biases; lazy."""
    layers = forward(X, values)
    back = layers[-1] - X
    loss = 0.5 * (back * back).sum() / X.shape[0]
    by_weights: list[Any] = []
    by_biases: list[Any] = []
    for i in reversed(range(LAYERS)):
        by_weights.insert(0, layers[i].T @ back / X.shape[0])
        by_biases.insert(0, back.sum(axis=0) / X.shape[0])
        if i > 0:
            back = (back @ values[i].T) * (1 - layers[i] * layers[i])
    return loss, by_weights + by_biases


@dataclass(eq=False, repr=False)
class AutoEncoder(Transformer):
    """The autoencoder as an estimator that turns points into their bottleneck; see `autoencoder`.

    Attributes after `fit`: `w1_` … `w4_`, `b1_` … `b4_`, `mean_`, `scale_`, `n_iter_`, `converged_`,
    `history_`, `n_features_in_`.
    """

    _find = staticmethod(autoencoder)
    _learned = "w1_"
    _history: ClassVar[str] = "loss of an epoch"

    h1: int = 500
    h2: int = 2
    _: KW_ONLY
    batch: int = 512
    epochs: int = 200
    tol: float = 1e-4
    rate: float = 0.01
    decay: float = 0.95
    momentum: float = 0.9
    standardize: bool = True
    random_state: int | None = None

    def _layers(self, X: Any) -> list[Any]:
        values = [getattr(self, f"{kind}{i}_") for kind in "wb" for i in range(1, LAYERS + 1)]
        return forward((self._seen(X) - self.mean_) / self.scale_, values)

    def transform(self, X: Any) -> Any:
        """The points' bottleneck, shape (n_points, h2)."""
        return self._layers(X)[2]

    def inverse_transform(self, Z: Any) -> Any:
        """The points that come out of a bottleneck, shape (n_points, n_features)."""
        w3, w4, b3, b4 = self.w3_, self.w4_, self.b3_, self.b4_
        return (np.tanh(array(Z) @ w3 + b3) @ w4 + b4) * self.scale_ + self.mean_

    def predict(self, X: Any) -> Any:
        """The points as they come back, shape (n_points, n_features)."""
        return self._layers(X)[-1] * self.scale_ + self.mean_

    def score(self, X: Any, y: Any = None) -> float:
        """The share of the standardized points' squares that comes back: at most 1."""
        del y
        layers = self._layers(X)
        return explained(((layers[-1] - layers[0]) ** 2).sum(), (layers[0] ** 2).sum())

    def _panels(self, *data: Any) -> list[Panel]:
        return [pictures.scatter(self.transform(X), "bottleneck") for X in data[:1]]
