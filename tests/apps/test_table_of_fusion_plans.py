"""The algorithms of Fusion plans, Table 2: its defaults, and errors that name shapes where no model fits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.apps.als_cg import ALSCG, als_cg
from spartan_ng.apps.autoencoder import AutoEncoder, autoencoder
from spartan_ng.apps.glm import GLM, glm
from spartan_ng.apps.kmeans import KMeans, kmeans
from spartan_ng.apps.l2svm import L2SVM, l2svm
from spartan_ng.apps.mlogreg import MultinomialLogisticRegression, mlogreg

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
Y = (X[:, 0] + 0.3 * RANDOM.normal(size=60) > 0) * 1.0
FEW = RANDOM.integers(0, 3, (60, 4)) * 1.0
SUPERVISED: dict[str, Callable[..., Any]] = {"l2svm": l2svm, "mlogreg": mlogreg, "glm": glm}
FITS: dict[str, Callable[..., Any]] = {name: lambda X, f=f: f(X, Y) for name, f in SUPERVISED.items()} | {
    "kmeans": lambda X: kmeans(X, 3, init=X[:3] + 0.1) if len(X) else kmeans(X, 3),
    "als_cg": als_cg,
    "autoencoder": lambda X: autoencoder(X, epochs=2),
}


TABLE: dict[Callable[..., Any], dict[str, Any]] = {
    l2svm: {"reg": 1e-3, "tol": 1e-12, "max_iter": 20, "fit_intercept": False},
    mlogreg: {"reg": 1e-3, "tol": 1e-12, "max_iter": 20, "max_inner": 10, "fit_intercept": False},
    glm: {
        "family": "probit",
        "reg": 1e-3,
        "tol": 1e-12,
        "max_iter": 20,
        "max_inner": 10,
        "fit_intercept": False,
    },
    kmeans: {"n_clusters": 5, "tol": 1e-12, "max_iter": 20},
    als_cg: {"rank": 20, "reg": 1e-3, "tol": 1e-12, "max_iter": 20, "max_inner": None},
    autoencoder: {"batch": 512, "h1": 500, "h2": 2, "epochs": 1},
}
"""The paper's hyper-parameters; None: as many inner steps as the rank."""
ESTIMATORS: dict[Callable[..., Any], type[Any]] = {
    l2svm: L2SVM,
    mlogreg: MultinomialLogisticRegression,
    glm: GLM,
    kmeans: KMeans,
    als_cg: ALSCG,
    autoencoder: AutoEncoder,
}


@pytest.mark.parametrize("fit", TABLE, ids=lambda f: f.__name__)
def test_the_papers_hyper_parameters_are_the_defaults(fit):
    given = {k: p.default for k, p in inspect.signature(fit).parameters.items()}
    options = ESTIMATORS[fit]().get_params()
    for name, value in TABLE[fit].items():
        assert given[name] == options[name] == value


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", FITS)
def test_a_point_that_is_not_finite(name, value):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=rf"{name}: X of shape \(60, 4\)"), np.errstate(all="ignore"):
        FITS[name](bad)


@pytest.mark.parametrize("name", sorted(set(FITS) - {"als_cg"}))  # without ratings there are factors
def test_no_points(name):
    with pytest.raises(ValueError, match=r"0 points|n_points is 0|y has shape \(60,\), X has 0 rows"):
        FITS[name](X[:0])


@pytest.mark.parametrize("name", SUPERVISED)
def test_targets_that_do_not_fit(name):
    fit = SUPERVISED[name]
    for y in (Y[:-1], Y[:, None]):
        with pytest.raises(ValueError, match=rf"{name}: y has shape .*, X has 60 rows"):
            fit(X, y)
    with pytest.raises(ValueError, match=f"{name}: .*(nan|NaN)"):
        fit(X, np.where(np.arange(60) == 2, np.nan, Y))
    if name == "glm":
        with pytest.raises(ValueError, match="glm: y has dtype <U1, targets are numbers"):
            fit(X, np.array(["a", "b"])[Y.astype(int)])


@pytest.mark.parametrize("name", FITS)
def test_compressed_columns_give_the_same(name):
    plain, packed = FITS[name](FEW), FITS[name](sp.compress_columns(FEW))
    for field in plain.__dataclass_fields__:
        a, b = getattr(plain, field), getattr(packed, field)
        if field != "n_iter" and np.asarray(a).dtype.kind == "f":
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-7)
