"""Principal components from the covariance matrix, which one pass over the points makes.

Spartan (ATC '15), section 5. The (features × features) covariance is decomposed on the driver; points with
more features than that suits are a case for `ssvd`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array, points, require_finite
from spartan_ng.apps.errors import warn
from spartan_ng.apps.estimator import Transformer
from spartan_ng.apps.pictures import Panel


@dataclass(frozen=True, slots=True)
class Components:
    """What `pca` finds.

    Parameters
    ----------
    mean : of the points, shape (n_features,)
    components : directions of largest variance, unit rows, shape (n_components, n_features)
    explained_variance : along each of them, descending
    explained_variance_ratio : the same as shares of the whole variance
    """

    mean: Any
    components: Any
    explained_variance: Any
    explained_variance_ratio: Any


def pca(X: Any, n_components: int | None = None) -> Components:
    """Find the directions in which points vary most.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    n_components : how many directions; default is all

    Raises
    ------
    ValueError : X is not two-dimensional, has one point only, or n_components does not fit

    Warns
    -----
    RuntimeWarning : all points are equal; then no component has a share of their variance
    """
    X = points(X)
    rows, columns = X.shape
    count = min(rows, columns) if n_components is None else n_components
    if rows < 2 or not 1 <= count <= min(rows, columns):
        raise ValueError(
            f"pca: n_samples={rows} points of {columns} features have no {count} principal components"
        )
    mean = X.mean(axis=0).compute()
    moved = X - mean
    covariance = (moved.T @ moved / (rows - 1)).compute()
    require_finite("pca", X, covariance)
    variances, vectors = linalg.eigh(covariance)
    variances, vectors = variances[::-1].clip(0), vectors[:, ::-1].T[:count]
    largest = abs(vectors).argmax(axis=1)
    vectors = vectors * np.sign(vectors[range(count), largest]).compute()[:, None]
    rounding = (4 * float(np.finfo(X.dtype).eps) * float(abs(mean).max())) ** 2 * rows * columns
    if not variances.sum() > rounding:
        warn("pca: all points are equal: there is no variance to explain", RuntimeWarning)
        return Components(mean, vectors, 0 * variances[:count], 0 * variances[:count] + float("nan"))
    return Components(mean, vectors, variances[:count], variances[:count] / variances.sum())


@dataclass(eq=False, repr=False)
class PCA(Transformer):
    """Principal components as an estimator, with scikit-learn's names; see `pca`.

    Attributes after `fit`: `mean_`, `components_`, `explained_variance_`, `explained_variance_ratio_`,
    `n_features_in_`. The largest part of each component is positive.
    """

    _find = staticmethod(pca)
    _learned = "components_"
    _sparse: ClassVar[bool] = True

    n_components: int | None = None

    def transform(self, X: Any) -> Any:
        """Points in terms of the components, shape (n_points, n_components)."""
        return (self._seen(X) - self.mean_) @ self.components_.T

    def inverse_transform(self, Z: Any) -> Any:
        """The points with these coordinates, shape (n_points, n_features)."""
        return array(Z) @ self.components_ + self.mean_

    def score(self, X: Any, y: Any = None) -> float:
        """The share of the variance of points that is left when they are turned and turned back; NaN where
        the fit has found none."""
        nothing = bool(np.isnan(self.explained_variance_ratio_[0]))
        return float("nan") if nothing else super().score(X, y)

    def _middle(self) -> Any:
        return self.mean_

    def _panels(self, *data: Any) -> list[Panel]:
        total = float(self.explained_variance_[0] / (self.explained_variance_ratio_[0] or 1.0))
        return [
            pictures.spectrum(self.explained_variance_, "variance", total),
            *(pictures.scatter(self.transform(X), "points") for X in data[:1]),
            pictures.images(self.components_, "components"),
        ]
