"""What scikit-learn, lifelines, statsmodels, SciPy and textbooks find in the apps' files."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy
from scipy import optimize, stats

from benchmarks.app_measures import (
    Files,
    area,
    centred,
    divergence,
    energy,
    explained,
    fuzzy_loss,
    hinge,
    inertia,
    log_loss,
    partial_likelihood,
    probit_loss,
    rating_loss,
    reconstruction,
    topic_loss,
)


def linear_model(model: Any, f: Files, target: str) -> tuple[Any, float]:
    """The weights and the intercept of a model of scikit-learn's that is fitted to the points."""
    model.fit(f["points.npy"], f[target])
    return numpy.ravel(model.coef_), float(numpy.ravel(model.intercept_)[0])


def textbook_als(f: Files, rank: int, reg: float, sweeps: int, start: Any) -> float:
    """Each row's least squares by its own normal equations, users and items in turns."""
    R = f["ratings.mtx"]
    V = start

    def solved_rows(ratings: Any, others: Any) -> Any:
        out = numpy.zeros((len(ratings), rank))
        for i, row in enumerate(ratings):
            seen = others[row != 0]
            system = seen.T @ seen + reg * max(len(seen), 1e-9) * numpy.eye(rank)
            out[i] = numpy.linalg.solve(system, seen.T @ row[row != 0])
        return out

    for _ in range(sweeps):
        U = solved_rows(R, V)
        V = solved_rows(R.T, U)
    return rating_loss(U, V, f, reg)


def uniform(f: Files, rank: int, seed: int) -> Any:
    """Items' first factors."""
    return numpy.random.default_rng(seed).random((f["ratings.mtx"].shape[1], rank))


def textbook_fuzzy(f: Files, seed: int, fuzziness: float = 1.5) -> float:
    """Bezdek's iteration from k-means++'s centers."""
    from sklearn.cluster import kmeans_plusplus

    X = f["points.npy"]
    centers, _ = kmeans_plusplus(X, 10, random_state=seed)
    for _ in range(300):
        apart = numpy.maximum(((X[:, None] - centers) ** 2).sum(axis=2), 1e-100) ** (-1 / (fuzziness - 1))
        weights = (apart / apart.sum(axis=1, keepdims=True)) ** fuzziness
        centers = (weights.T @ X) / weights.sum(axis=0)[:, None]
    return fuzzy_loss(centers, f, fuzziness)


def nmf(f: Files, name: str, loss: str, beta: int, seed: int, sweeps: int) -> float:
    """scikit-learn's multiplicative updates."""
    from sklearn.decomposition import NMF

    model = NMF(20, init="random", solver="mu", beta_loss=loss, random_state=seed, max_iter=sweeps)
    W = model.fit_transform(f[name])
    return divergence(W, model.components_, f, name, beta)


def network(f: Files, seed: int) -> float:
    """scikit-learn's network of the same layers, batches, rates and momentum."""
    from sklearn.neural_network import MLPRegressor

    X = f["points.npy"]
    mean, scale = X.mean(axis=0), X.std(axis=0)
    Z, sizes = (X - mean) / scale, (100, 2, 100)
    model = MLPRegressor(
        hidden_layer_sizes=sizes, activation="tanh", solver="sgd", alpha=0.0, batch_size=512,
        nesterovs_momentum=False, shuffle=False, max_iter=1, random_state=seed, learning_rate_init=0.01,
    )  # fmt: skip
    model.partial_fit(Z[:1], Z[:1])
    random = numpy.random.default_rng(seed)
    order = random.permutation(len(Z))
    layers = (Z.shape[1], *sizes, Z.shape[1])
    model.coefs_ = [(6 / (a + b)) ** 0.5 * (2 * random.random((a, b)) - 1) for a, b in pairwise(layers)]
    model.intercepts_ = [numpy.zeros(n) for n in layers[1:]]
    model._optimizer.params = [*model.coefs_, *model.intercepts_]
    model._optimizer.velocities = [numpy.zeros_like(p) for p in model._optimizer.params]
    for epoch in range(200):
        model._optimizer.learning_rate = 0.01 * 0.95**epoch
        for first in range(0, len(Z), 512):
            batch = Z[order[first : first + 512]]
            model.partial_fit(batch, batch)
    found = {f"w{i + 1}": w for i, w in enumerate(model.coefs_)}
    found |= {f"b{i + 1}": b for i, b in enumerate(model.intercepts_)}
    return reconstruction(found | {"mean": mean, "scale": scale}, f)


def curve(f: Files) -> float:
    """The area under lifelines' survival curve."""
    from lifelines import KaplanMeierFitter

    with numpy.errstate():  # the fitter silences errors, and leaves it at that
        fitted = KaplanMeierFitter().fit(f["times.npy"], f["seen.npy"]).survival_function_["KM_estimate"]
    return area(fitted.index.to_numpy()[1:], fitted.to_numpy()[1:])


def hazards(f: Files) -> float:
    """The likelihood of lifelines' weights."""
    import pandas
    from lifelines import CoxPHFitter

    frame = pandas.DataFrame(f["covariates.npy"]).add_prefix("x")
    fitted = CoxPHFitter().fit(frame.assign(t=f["times.npy"], e=f["seen.npy"]), "t", "e")
    return partial_likelihood(fitted.params_.to_numpy(), f)


def probit(f: Files) -> float:
    """The loss of statsmodels' weights."""
    from statsmodels.discrete.discrete_model import Probit

    ones = numpy.ones((len(f["points.npy"]), 1))
    found = Probit(f["answers.npy"], numpy.concatenate([f["points.npy"], ones], axis=1)).fit(disp=0).params
    return probit_loss(found[:-1], found[-1], f)


def topics(f: Files) -> float:
    """The loss of scikit-learn's multinomial naive Bayes."""
    from sklearn.naive_bayes import MultinomialNB

    model = MultinomialNB().fit(f["words.mtx"], f["topics.npy"])
    return topic_loss(model.predict_joint_log_proba(f["words.mtx"]), f)


def solved(f: Files) -> float:
    """The energy of NumPy's solution."""
    return energy(numpy.linalg.solve(f["matrix.mtx"], f["right.npy"]), f)


def decayed(f: Files, half_life: float) -> float:
    """The mean rate, from sums over all pairs of times."""
    t = numpy.sort(f["times.npy"])
    counts = numpy.tril(0.5 ** ((t[:, None] - t) / half_life)).sum(axis=1)
    return float(counts.mean() * numpy.log(2) / half_life)


def best_pages(ranks: Any) -> float:
    """The share of all visits that the ten best pages have."""
    return float(numpy.sort(ranks)[-10:].sum() / ranks.sum())


def visited(f: Files, damping: float = 0.85) -> float:
    """The best pages' share, by a solution of the linear system."""
    A = f["links.mtx"]
    n, out = len(A), A.sum(axis=1)
    moves = numpy.where(out[:, None] > 0, A / numpy.maximum(out, 1)[:, None], 1 / n)
    return best_pages(numpy.linalg.solve(numpy.eye(n) - damping * moves.T, numpy.full(n, (1 - damping) / n)))


def formula(S: Any, K: Any, T: Any, r: float = 0.02, v: float = 0.3) -> Any:
    """Calls by SciPy's normal distribution."""
    d = (numpy.log(S / K) + (r + v * v / 2) * T) / (v * numpy.sqrt(T))
    return S * stats.norm.cdf(d) - K * numpy.exp(-r * T) * stats.norm.cdf(d - v * numpy.sqrt(T))


def asian(strike: float, steps: int, seed: int) -> float:
    """A call on the mean price, simulated with the geometric mean's as control."""
    z = numpy.random.default_rng(seed).standard_normal((400_000, steps))
    step, drift, v = 1 / steps, 0.02 - 0.3**2 / 2, 0.3
    logs = numpy.log(100) + numpy.cumsum(drift * step + v * step**0.5 * z, axis=1)
    mean = numpy.log(100) + drift * step * (steps + 1) / 2
    spread = v * (step * (steps + 1) * (2 * steps + 1) / (6 * steps)) ** 0.5
    d = (mean - numpy.log(strike) + spread**2) / spread
    exact = numpy.exp(mean + spread**2 / 2) * stats.norm.cdf(d) - strike * stats.norm.cdf(d - spread)
    pays = numpy.maximum(numpy.exp(logs).mean(axis=1) - strike, 0)
    control = numpy.maximum(numpy.exp(logs.mean(axis=1)) - strike, 0)
    return float(numpy.exp(-0.02) * ((pays - control).mean() + exact))


def jamshidian(strike: float, interval: float, found: Any) -> float:
    """With one source of shocks all bonds move together: the swaption is a sum of puts on bonds."""
    coupons = numpy.full(found.bonds.shape[1], strike * interval)
    coupons[-1] += 1
    spread = numpy.sqrt((found.bonds**2).sum(axis=0))
    forward = found.today[1:] / found.today[0]

    def bonds(x: float) -> Any:
        return forward * numpy.exp(-spread * x - spread**2 / 2)

    K = bonds(optimize.brentq(lambda x: coupons @ bonds(x) - 1, -20, 20))
    d = (numpy.log(forward / K) + spread**2 / 2) / spread
    puts = K * stats.norm.cdf(spread - d) - forward * stats.norm.cdf(-d)
    return float(found.today[0] * coupons @ puts)


def sklearn(path: str, **options: Any) -> Any:
    """An estimator of scikit-learn's."""
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f"sklearn.{module}"), name)(**options)


def kmeans(f: Files, seed: int) -> float:
    """The inertia of scikit-learn's centers."""
    return inertia(
        sklearn("cluster.KMeans", n_clusters=10, random_state=seed).fit(f["points.npy"]).cluster_centers_, f
    )


def leading(f: Files, seed: int, passes: int) -> float:
    """What scikit-learn's randomized decomposition explains."""
    from sklearn.utils.extmath import randomized_svd

    _, _, right = randomized_svd(f["matrix.mtx"], 20, n_iter=passes, random_state=seed)
    return explained(right, f["matrix.mtx"])


def logistic(f: Files, reg: float) -> float:
    """The loss of scikit-learn's logistic regression."""
    model = sklearn("linear_model.LogisticRegression", C=1 / reg, tol=1e-8, max_iter=1000)
    return log_loss(*linear_model(model, f, "classes.npy"), f, reg)


def separated(f: Files, C: float, power: int) -> float:
    """The loss of scikit-learn's linear support vector machine."""
    options = {"loss": "squared_hinge" if power == 2 else "hinge", "dual": power == 1, "max_iter": 1_000_000}
    model = sklearn("svm.LinearSVC", C=C, random_state=0, **options)
    return hinge(*linear_model(model, f, "classes.npy"), f, C, power)


def principal(f: Files) -> float:
    """What scikit-learn's principal components explain."""
    model = sklearn("decomposition.PCA", n_components=3).fit(f["points.npy"])
    return explained(model.components_, centred(f))
