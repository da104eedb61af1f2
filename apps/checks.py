"""What apps ask of data and options: each rule once, with the words that scikit-learn's users know."""

from __future__ import annotations

from typing import Any

import numpy
from scipy import sparse

import spartan_ng as np
from spartan_ng.api.core.handle import Handle
from spartan_ng.apps.errors import DataConversionWarning, warn


def array(X: Any) -> Any:
    """X as an array of ours; what comes from elsewhere and is not sparse goes through NumPy."""
    return np.asarray(X if isinstance(X, Handle) or sparse.issparse(X) else numpy.asarray(X))


def points(X: Any) -> Any:
    """X as a two-dimensional array of floating-point numbers.

    Arrays from elsewhere are searched for NaN and infinite values at once, in memory; arrays of ours lie
    with the workers, and what a fit makes of them is asked (`require_finite`).
    """
    given, X = X, array(X)
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {X.dtype}")
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}; it must be (n_points, n_features). Reshape your data: "
            "X.reshape(-1, 1) is one feature, X.reshape(1, -1) one point"
        )
    for count, what in zip(X.shape, ("sample", "feature"), strict=True):
        if not count:
            raise ValueError(f"X has 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    if not isinstance(given, Handle) and X.format == "dense" and not bool(np.isfinite(X).all()):
        raise ValueError(f"X of shape {X.shape} holds NaN or infinity")
    return X


def column(name: str, X: Any, y: Any) -> Any:
    """One target for each of X's rows; a column is taken as a vector, with a warning."""
    y = array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected: y of shape "
            f"{y.shape} is taken as {y.shape[:1]}",
            DataConversionWarning,
        )
        y = y[:, 0]
    if y.shape != X.shape[:1]:
        raise ValueError(f"{name}: y has shape {y.shape}, X has {X.shape[0]} rows")
    return y


def targets(name: str, X: Any, y: Any) -> Any:
    """Floating-point targets, one for each of X's rows."""
    given, y = y, column(name, X, y)
    if y.dtype.kind not in "biuf":
        raise ValueError(f"{name}: Unknown label type: y has dtype {y.dtype}, targets are numbers")
    y = y.astype(X.dtype)
    if not isinstance(given, Handle) and not bool(np.isfinite(y).all()):
        raise ValueError(f"{name}: y of shape {y.shape} holds NaN or infinity")
    return y


def distinct(name: str, X: Any, y: Any, least: int = 1) -> tuple[Any, Any]:
    """The classes of X's rows, and which there are, sorted: at least `least`."""
    y = column(name, X, y)
    classes = np.unique(y).compute()
    if classes.dtype.kind in "fc":
        if not bool(np.isfinite(classes).all()):
            raise ValueError(f"{name}: y of shape {y.shape} holds NaN or infinity")
        if bool((classes != np.floor(classes)).any()):
            raise ValueError(f"{name}: Unknown label type: continuous; classes are whole numbers or names")
    if len(classes) < least:
        raise ValueError(f"{name}: y has one class only, {classes.tolist()}")
    return y, classes


def two_classes(name: str, X: Any, y: Any) -> tuple[Any, Any]:
    """The two sorted classes of y, and -1 or 1 for each point."""
    y, classes = distinct(name, X, y, 2)
    if len(classes) != 2:
        raise ValueError(
            f"{name}: Only binary classification is supported. The type of the target is multiclass: "
            f"y has {len(classes)} classes, not two"
        )
    return classes, np.where(y == classes[1], 1.0, -1.0).astype(X.dtype).persist()


def require_positive(name: str, **values: float) -> None:
    """Raise ValueError for a value that is not above 0."""
    for what, value in values.items():
        if not value > 0:
            raise ValueError(f"{name}: {what} is {value}, it must be positive")


def require_finite(name: str, X: Any, *made: Any) -> None:
    """Raise ValueError where a value that was made of all points is no number, as then one of them is.

    It is asked of what a fit has computed anyway, so that X is read no second time.
    """
    if not all(bool(np.isfinite(value).all()) for value in made):
        raise ValueError(
            f"{name}: X of {X.shape[0]} rows, or what belongs to them, holds NaN or infinite (or far too "
            "large) values"
        )
