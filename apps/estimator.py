"""What scikit-learn expects of any estimator, without scikit-learn.

An estimator's parameters are its constructor's arguments, kept unchanged under their own names;
what `fit` learns ends in an underscore. With that, scikit-learn clones, searches and pipelines it.
An app's estimator is a dataclass of its function's options; the fields of what the function finds become
the attributes.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, Self

import spartan_ng as np


class NotFittedError(ValueError, AttributeError):
    """An estimator was asked for what only `fit` gives it."""


class Estimator:
    """The parameter conventions; a subclass adds its constructor and `fit`."""

    _kind: ClassVar[str | None] = None
    """scikit-learn's estimator type, "classifier", "regressor" or "clusterer"; None for transformers."""
    _learned: ClassVar[str]
    """An attribute that exists after `fit`."""

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments as they were given; `deep` is accepted and changes nothing here."""
        del deep
        return {name: getattr(self, name) for name in self._names()}

    def _options(self) -> dict[str, Any]:
        """The constructor's arguments as the app's function calls them."""
        params = self.get_params()
        if "random_state" in params:
            params["seed"] = params.pop("random_state")
        return params

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; a wrong name raises ValueError."""
        for name in params:
            if name not in self._names():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: it has {self._names()}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _learn(self, found: Any, features: int | None = None) -> Self:
        """Keep every field of what a function found as an attribute; `features` is what `fit` saw."""
        for field in fields(found):
            setattr(self, field.name + "_", getattr(found, field.name))
        if features is not None:
            self.n_features_in_ = features
        return self

    def __getattr__(self, name: str) -> Any:
        """Only what is missing comes here."""
        if name.endswith("_") and not name.startswith("_"):
            raise NotFittedError(f"{type(self).__name__}: call fit before asking for {name}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _require_fit(self) -> None:
        if not hasattr(self, self._learned):
            raise NotFittedError(f"{type(self).__name__}: call fit before asking for results")

    def _require_features(self, columns: int) -> None:
        expected: int = self.n_features_in_
        if columns != expected:
            raise ValueError(f"{type(self).__name__}: X has {columns} columns, fit saw {expected}")

    def _seen(self, X: Any) -> Any:
        """X as points with as many features as `fit` saw."""
        self._require_fit()
        X = points(X)
        self._require_features(X.shape[1])
        return X

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of the estimator; only scikit-learn itself asks for it."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=self._kind,
            target_tags=TargetTags(required=self._kind in ("classifier", "regressor")),
            classifier_tags=ClassifierTags() if self._kind == "classifier" else None,
            regressor_tags=RegressorTags() if self._kind == "regressor" else None,
            transformer_tags=TransformerTags() if self._kind is None else None,
            input_tags=InputTags(),
        )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({arguments})"


class Regressor(Estimator):
    """A linear predictor `X @ coef_ + intercept_` of numbers."""

    _kind: ClassVar[str | None] = "regressor"
    _learned: ClassVar[str] = "coef_"

    def predict(self, X: Any) -> Any:
        """The expected targets of points, shape (n_points,)."""
        return self._seen(X) @ self.coef_ + self.intercept_

    def score(self, X: Any, y: Any) -> float:
        """The coefficient of determination: 1 less the share of the variance that is not explained."""
        y = np.asarray(y)
        left, spread = np.compute(((y - self.predict(X)) ** 2).sum(), ((y - y.mean()) ** 2).sum())
        return 1.0 - float(left) / float(spread)


class Classifier(Estimator, ABC):
    """A predictor of classes from `decision_function`: a number for two classes, else one for each."""

    _kind: ClassVar[str | None] = "classifier"
    _learned: ClassVar[str] = "coef_"

    @abstractmethod
    def decision_function(self, X: Any) -> Any:
        """How far points lie on the second class's side, or for each class how much speaks for it."""

    def predict(self, X: Any) -> Any:
        """The class of each point."""
        z = self.decision_function(X)
        index = (z > 0).astype(np.int64) if z.ndim == 1 else z.argmax(axis=1)
        return np.asarray(self.classes_)[index]

    def score(self, X: Any, y: Any) -> float:
        """The share of points whose class is predicted right."""
        return float((self.predict(X) == np.asarray(y)).mean())


class Separator(Classifier):
    """Two classes on the two sides of a plane."""

    def decision_function(self, X: Any) -> Any:
        """How far points lie on the second class's side, in margins."""
        return self._seen(X) @ self.coef_ + self.intercept_


class Transformer(Estimator, ABC):
    """Turns points into what `transform` gives."""

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from points."""

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """The points in their new form."""

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from points, and turn them."""
        return self.fit(X, y).transform(X)


def points(X: Any) -> Any:
    """X as a two-dimensional array of floating-point numbers."""
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; it must be (n_points, n_features)")
    return X if X.dtype.kind == "f" else X.astype(np.float64)


def targets(name: str, X: Any, y: Any) -> Any:
    """Floating-point targets, one for each of X's rows."""
    y = np.asarray(y)
    if y.shape != X.shape[:1] or not X.shape[0]:
        raise ValueError(f"{name}: y has shape {y.shape}, X has {X.shape[0]} rows")
    if y.dtype.kind not in "biuf":
        raise ValueError(f"{name}: y has dtype {y.dtype}, targets are numbers")
    return y.astype(X.dtype)


def softmax(z: Any) -> Any:
    """Probabilities of classes from their log odds, shape (n_points, n_classes)."""
    e = np.exp(z - z.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]


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
            f"{name}: X of shape {X.shape}, or what belongs to its rows, holds NaN or infinite (or far too "
            "large) values"
        )


def distinct(name: str, X: Any, y: Any) -> tuple[Any, Any]:
    """The classes of X's rows, and which there are, sorted."""
    y = np.asarray(y)
    if y.shape != X.shape[:1]:
        raise ValueError(f"{name}: y has shape {y.shape}, X has {X.shape[0]} rows")
    classes = np.unique(y).compute()
    if classes.dtype.kind in "fc" and bool(np.isnan(classes).any()):
        raise ValueError(f"{name}: y of shape {y.shape} holds NaN")
    return y, classes


def two_classes(name: str, X: Any, y: Any) -> tuple[Any, Any]:
    """The two sorted classes of y, and -1 or 1 for each point."""
    y, classes = distinct(name, X, y)
    if len(classes) != 2:
        raise ValueError(f"{name}: y has {len(classes)} classes, not two")
    return classes, np.where(y == classes[1], 1.0, -1.0).astype(X.dtype).persist()
