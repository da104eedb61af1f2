"""ALS, ALS-CG, GNMF and KL-NMF against NumPy, SciPy and scikit-learn."""

from __future__ import annotations

import numpy
import pytest
from scipy import optimize, sparse
from sklearn import datasets, decomposition
from sklearn.base import clone

from spartan_ng.apps.als import ALS, als
from spartan_ng.apps.als_cg import ALSCG, als_cg
from spartan_ng.apps.nmf import DIVERGENCE, GNMF, KLNMF, SQUARES, gnmf, kl_nmf, weights

RNG = numpy.random.default_rng(0)
TRUTH = RNG.random((60, 3)) @ RNG.random((3, 40))
RATINGS = sparse.csr_array(TRUTH * (RNG.random((60, 40)) < 0.5))
DIGITS = datasets.load_digits().data[:200]
FIRST = RNG.random((200, 5)), RNG.random((5, 64))


def dense(a) -> numpy.ndarray:
    return numpy.asarray(a)


def solved(R, others, reg: float, implicit: bool, alpha: float) -> numpy.ndarray:
    """Each row's factors by its own normal equations, the confidences spelled out."""
    out = numpy.zeros((R.shape[0], others.shape[1]))
    for i, row in enumerate(R):
        rated = row != 0
        confidence = 1 + alpha * row if implicit else rated.astype(float)
        wanted = rated.astype(float) if implicit else row
        penalty = reg * (1 if implicit else max(rated.sum(), 1e-9)) * numpy.eye(others.shape[1])
        system = (others.T * confidence) @ others + penalty
        out[i] = numpy.linalg.solve(system, (others.T * confidence) @ wanted)
    return out


@pytest.mark.some(2)
@pytest.mark.parametrize("implicit", [False, True])
def test_als(implicit, anywhere) -> None:
    R = RATINGS.toarray()
    R[7] = 0
    ours = als(sparse.csr_array(R), 4, reg=0.05, implicit=implicit, alpha=3.0, max_iter=4, tol=0.0, seed=0)
    V = numpy.random.default_rng(0).random((40, 4)) / 2
    for _ in range(4):
        U = solved(R, V, 0.05, implicit, 3.0)
        V = solved(R.T, U, 0.05, implicit, 3.0)
    numpy.testing.assert_allclose(dense(ours.user_factors), U, rtol=1e-6, atol=1e-9)
    numpy.testing.assert_allclose(dense(ours.item_factors), V, rtol=1e-6, atol=1e-9)
    P, rated = U @ V.T, R != 0
    if implicit:
        expected = ((1 + 3 * R) * (rated - P) ** 2).sum() + 0.05 * ((U**2).sum() + (V**2).sum())
    else:
        penalty = (rated.sum(1) * (U**2).sum(1)).sum() + (rated.sum(0) * (V**2).sum(1)).sum()
        expected = (rated * (R - P) ** 2).sum() + 0.05 * penalty
    assert ours.objective == pytest.approx(expected, rel=1e-9)


def test_als_finds_ratings_that_it_has_not_seen() -> None:
    model = ALS(3, reg=1e-4, max_iter=100, tol=0.0, random_state=0).fit(RATINGS)
    users, items = numpy.nonzero(RATINGS.toarray() == 0)
    predicted = dense(model.predict(users, items))
    assert numpy.abs(predicted - TRUTH[users, items]).mean() < 0.01


@pytest.mark.slow
@pytest.mark.some(1)
def test_als_cg(anywhere) -> None:
    R, reg, rank = RATINGS.toarray(), 0.01, 2
    rated = R != 0

    def objective(flat):
        U, V = flat[: 60 * rank].reshape(60, rank), flat[60 * rank :].reshape(40, rank)
        error = rated * (U @ V.T - R)
        users, items = reg * rated.sum(1)[:, None], reg * rated.sum(0)[:, None]
        slope = numpy.concatenate([(error @ V + users * U).ravel(), (error.T @ U + items * V).ravel()])
        return ((error**2).sum() + (users * U * U).sum() + (items * V * V).sum()) / 2, slope

    random = numpy.random.default_rng(0)
    start = numpy.concatenate([(random.random((n, rank)) - 0.5).ravel() for n in (60, 40)])
    options = {"maxiter": 5000, "gtol": 1e-9, "ftol": 0.0, "maxfun": 10**6}
    best = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    ours = als_cg(RATINGS, rank, reg=reg, max_iter=60, tol=0.0, seed=0)
    assert ours.objective == pytest.approx(best.fun, rel=1e-5)
    flat = numpy.concatenate([dense(ours.user_factors).ravel(), dense(ours.item_factors).ravel()])
    assert ours.objective == pytest.approx(objective(flat)[0], rel=1e-9)


@pytest.mark.some(4)
@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
@pytest.mark.parametrize("form", [numpy.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("fit", "loss"), [(gnmf, "frobenius"), (kl_nmf, "kullback-leibler")])
def test_nmf_follows_scikit_learn(fit, loss, form, anywhere) -> None:
    reference = decomposition.NMF(5, init="custom", solver="mu", beta_loss=loss, max_iter=30, tol=0)
    W = reference.fit_transform(DIGITS, W=FIRST[0].copy(), H=FIRST[1].copy())
    ours = fit(form(DIGITS), 5, first_weights=FIRST[0], first_components=FIRST[1], max_iter=30, tol=0.0)
    numpy.testing.assert_allclose(dense(ours.weights), W, rtol=1e-4, atol=1e-7)
    numpy.testing.assert_allclose(dense(ours.components), reference.components_, rtol=1e-4, atol=1e-7)
    assert ours.objective == pytest.approx(reference.reconstruction_err_**2 / 2, rel=1e-6)


@pytest.mark.parametrize("fit", [gnmf, kl_nmf])
def test_nmf_never_rises(fit) -> None:
    found = [fit(DIGITS, 4, max_iter=n, tol=0.0, seed=3).objective for n in (1, 2, 5, 20, 80)]
    assert found == sorted(found, reverse=True)
    assert fit(DIGITS, 4, max_iter=500, tol=1e-2).n_iter < 100


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        (GNMF(5, max_iter=2000, random_state=0), SQUARES),
        (KLNMF(5, random_state=0, max_iter=2000), DIVERGENCE),
    ],
)
def test_nmf_estimators(model, rule) -> None:
    assert clone(model).get_params() == model.get_params()
    W = dense(model.fit_transform(DIGITS))
    again = dense(model.transform(DIGITS))
    H = dense(model.components_)
    assert float(rule.objective(DIGITS, again, H)) <= 1.01 * float(rule.objective(DIGITS, W, H))
    assert (dense(weights(rule, DIGITS, model.components_, 3, 0.0)) >= 0).all()
    with pytest.raises(ValueError, match="3 features"):
        model.transform(DIGITS[:, :3])


def test_bad_input_is_named() -> None:
    for fit in (als, als_cg, gnmf, kl_nmf):
        with pytest.raises(ValueError, match="is 0, it must be positive"):
            fit(RATINGS, 0)
        with pytest.raises(ValueError, match="must be"):
            fit(numpy.ones(3))
    for factorize in (gnmf, kl_nmf):
        with pytest.raises(ValueError, match="Negative values"):
            factorize(-DIGITS)
        with pytest.raises(ValueError, match=r"first factors of shapes \(200, 5\)"):
            factorize(DIGITS, 3, first_weights=FIRST[0])
    assert clone(ALSCG(7)).rank == 7
