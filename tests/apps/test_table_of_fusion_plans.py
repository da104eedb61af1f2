"""The algorithms of Fusion plans, Table 2: compressed columns, and errors where no model fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.apps.als_cg import als_cg
from spartan_ng.apps.autoencoder import autoencoder
from spartan_ng.apps.glm import glm
from spartan_ng.apps.kmeans import kmeans
from spartan_ng.apps.l2svm import l2svm
from spartan_ng.apps.mlogreg import mlogreg
from spartan_ng.config import config

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
Y = (X[:, 0] + 0.3 * RANDOM.normal(size=60) > 0) * 1.0
FEW = RANDOM.integers(0, 3, (60, 4)) * 1.0
SUPERVISED: dict[str, Callable[..., Any]] = {"l2svm": l2svm, "mlogreg": mlogreg, "glm": glm}
FITS: dict[str, Callable[..., Any]] = {name: lambda X, f=f: f(X, Y) for name, f in SUPERVISED.items()} | {
    "kmeans": lambda X: kmeans(X, 3, init=X[:3] + 0.1) if len(X) else kmeans(X, 3),
    "als_cg": lambda X: als_cg(X, max_iter=20, tol=0.0, seed=0),
    "autoencoder": lambda X: autoencoder(X, epochs=2, tol=0.0, seed=0),
}


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", FITS)
def test_a_point_that_is_not_finite(name, value):
    """Arrays from elsewhere are looked at as they come, ours as they are read."""
    bad = X.copy()
    bad[3, 1] = value
    with np.errstate(all="ignore"):
        for given, words in ((bad, ""), (sp.asarray(bad), f"{name}: ")):
            with pytest.raises(
                ValueError, match=rf"{words}X of (shape \(60, 4\)|60 rows).* holds NaN or infini"
            ):
                FITS[name](given)


@pytest.mark.parametrize("name", sorted(set(FITS) - {"als_cg"}))  # without ratings there are factors
def test_no_points(name):
    with pytest.raises(ValueError, match=r"X has 0 sample\(s\) \(shape=\(0, 4\)\)"):
        FITS[name](X[:0])


@pytest.mark.parametrize("name", SUPERVISED)
def test_targets_that_do_not_fit(name):
    fit = SUPERVISED[name]
    for y in (Y[:-1], np.stack([Y, Y], axis=1)):
        with pytest.raises(ValueError, match=rf"{name}: y has shape .*, X has 60 rows"):
            fit(X, y)
    with pytest.raises(ValueError, match=f"{name}: .*(nan|NaN)"):
        fit(X, np.where(np.arange(60) == 2, np.nan, Y))
    if name == "glm":
        with pytest.raises(ValueError, match="glm: Unknown label type: y has dtype <U1, targets are numbers"):
            fit(X, np.array(["a", "b"])[Y.astype(int)])


@pytest.mark.parametrize("name", FITS)
def test_compressed_columns_give_the_same(name):
    with config.override(kernels="interpret"):  # a kernel that comes between two fits rounds otherwise
        plain, packed = FITS[name](FEW), FITS[name](sp.compress_columns(FEW))
    for field in plain.__dataclass_fields__:
        a, b = getattr(plain, field), getattr(packed, field)
        if field != "n_iter" and np.asarray(a).dtype.kind == "f":
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-7)
