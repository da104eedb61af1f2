"""What scikit-learn expects of any estimator, without scikit-learn.

An estimator's parameters are its constructor's arguments, kept unchanged under their own names;
what `fit` learns ends in an underscore. With that, scikit-learn clones, searches and pipelines it.
An app's estimator is a dataclass of its function's options; the fields of what the function finds become
the attributes. The families here fit, predict, score, draw and are saved; an app adds what is its own.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

import spartan_ng as np
from spartan_ng.apps import models, pictures
from spartan_ng.apps.checks import array, column, points
from spartan_ng.apps.errors import NotFittedError, UndefinedMetricWarning, known, warn
from spartan_ng.apps.pictures import Panel


class Estimator:
    """The conventions; a subclass is a dataclass of options with a `fit`."""

    _kind: ClassVar[str | None] = None
    """scikit-learn's estimator type, "classifier", "regressor" or "clusterer"."""
    _find: ClassVar[Callable[..., Any]]
    """The app's function: of the data and the options, gives a dataclass of what it finds."""
    _learned: ClassVar[str]
    """An attribute that exists after `fit`."""
    _renamed: ClassVar[Mapping[str, str]] = {}
    """Attributes that are called otherwise than the function's fields."""
    _measure: ClassVar[str] = "score"
    """What people call the score."""
    _history: ClassVar[str] = "objective"
    """What `history_` has for each iteration, where there is one."""
    _sparse: ClassVar[bool] = False
    """Whether X may be sparse."""
    _binary: ClassVar[bool] = False
    """Whether a classifier knows two classes only."""
    _positive: ClassVar[bool] = False
    """Whether X must not be negative."""

    @classmethod
    def parameters(cls) -> list[str]:
        """The names of the constructor's arguments."""
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments as they were given; `deep` is accepted and changes nothing here."""
        del deep
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; a wrong name raises ValueError."""
        for name in params:
            if name not in self.parameters():
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: it has {self.parameters()}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def save(self, path: str, **more: Any) -> None:
        """Write the parameters and what was learned, and arrays of one's own, to a `.npz` file.

        Raises
        ------
        NotFittedError : there is nothing to save
        ValueError : the file's name does not end in `.npz`
        TypeError : a parameter or an attribute that is neither a number, a text nor an array of such
        """
        self._require_fit()
        models.write(path, type(self).__name__, self.get_params(), self.learned(), more)

    @classmethod
    def load(cls, path: str) -> Self:
        """The estimator that `save` wrote to a file, without running any code of the file.

        Raises
        ------
        ValueError : the file has no estimator, or another's
        """
        saved = models.read(path)
        if saved.name != cls.__name__:
            raise ValueError(f"{path} has a model of {saved.name}, not of {cls.__name__}")
        found = cls(**saved.params)
        for name, value in saved.learned.items():
            setattr(found, name + "_", value)
        return found

    def learned(self) -> dict[str, Any]:
        """What `fit` has learned, by names without their underscores."""
        return {
            name[:-1]: value
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_")
        }

    def quality(self, *data: Any) -> dict[str, float]:
        """What people look at to judge a model on data as `fit` takes them, by name."""
        return {self._measure: self.score(*data)} if hasattr(self, "score") else {}

    def plot(self, path: str, *data: Any) -> None:
        """Draw the model, and how it does on data as `fit` takes them, into a file; matplotlib's formats."""
        self._require_fit()
        pictures.check(path)
        pictures.draw(path, f"{type(self).__name__}", [*self._panels(*data), *self._path()])

    def _panels(self, *data: Any) -> list[Panel]:
        """What is drawn of the model; it knows the data."""
        del data
        return []

    def _path(self) -> list[Panel]:
        """How the iterations went."""
        history = vars(self).get("history_")
        if history is None or not len(history):
            return []
        return [pictures.convergence(history, self._history, self.n_iter_)]

    def _options(self) -> dict[str, Any]:
        """The constructor's arguments as the app's function calls them."""
        params = self.get_params()
        if "random_state" in params:
            params["seed"] = params.pop("random_state")
        return params

    def _fit(self, X: Any, *others: Any) -> Self:
        """Run the app's function, and keep what it finds; X has the features."""
        X = points(X)
        if not self._sparse and X.format != "dense":
            raise ValueError(f"{type(self).__name__}: sparse input is not supported; X.todense() is dense")
        return self._learn(type(self)._find(X, *others, **self._options()), X.shape[1])

    def _learn(self, found: Any, features: int | None = None) -> Self:
        """Keep every field of what a function found as an attribute; `features` is what `fit` saw."""
        for field in fields(found):
            name = self._renamed.get(field.name, field.name)
            setattr(self, name + "_", getattr(found, field.name))
        if features is not None:
            self.n_features_in_ = features
        return self

    def __getattr__(self, name: str) -> Any:
        """Only what is missing comes here."""
        if name.endswith("_") and not name.startswith("_"):
            raise known(NotFittedError)(f"{type(self).__name__}: call fit before asking for {name}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called, for scikit-learn's `check_is_fitted`."""
        return self._learned in vars(self)

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise known(NotFittedError)(f"{type(self).__name__}: call fit before asking for results")

    def _seen(self, X: Any) -> Any:
        """X as points with as many features as `fit` saw."""
        self._require_fit()
        X = points(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        return X

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of the estimator; only scikit-learn itself asks for it."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=self._kind,
            target_tags=TargetTags(required=self._kind in ("classifier", "regressor")),
            classifier_tags=(
                ClassifierTags(multi_class=not self._binary) if self._kind == "classifier" else None
            ),
            regressor_tags=RegressorTags() if self._kind == "regressor" else None,
            transformer_tags=TransformerTags() if hasattr(self, "transform") else None,
            input_tags=InputTags(sparse=self._sparse, positive_only=self._positive),
        )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({arguments})"


class _Supervised(Estimator):
    """Learns from points with targets."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model to points, shape (n_points, n_features), and their targets, shape (n_points,)."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        return self._fit(X, y)


class Regressor(_Supervised):
    """A linear predictor `X @ coef_ + intercept_` of numbers."""

    _kind: ClassVar[str | None] = "regressor"
    _learned: ClassVar[str] = "coef_"
    _measure: ClassVar[str] = "R2"

    def predict(self, X: Any) -> Any:
        """The expected targets of points, shape (n_points,)."""
        return self._seen(X) @ self.coef_ + self.intercept_

    def score(self, X: Any, y: Any) -> float:
        """The coefficient of determination: 1 less the share of the variance that is not explained."""
        y = column(type(self).__name__, array(X), y)
        return determination(y, self.predict(X))

    def quality(self, *data: Any) -> dict[str, float]:
        """The score, and the root of the mean squared error."""
        X, y = data
        error = float((((array(y) - self.predict(X)) ** 2).mean()) ** 0.5)
        return {**super().quality(*data), "root mean squared error": error}

    def _panels(self, *data: Any) -> list[Panel]:
        if not data:
            return []
        X, y = data
        return [pictures.residuals(self.predict(X), array(y))]


class Classifier(_Supervised, ABC):
    """A predictor of classes from `decision_function`: a number for two classes, else one for each."""

    _kind: ClassVar[str | None] = "classifier"
    _learned: ClassVar[str] = "coef_"
    _measure: ClassVar[str] = "accuracy"

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
        return float((self.predict(X) == column(type(self).__name__, array(X), y)).mean())

    def quality(self, *data: Any) -> dict[str, float]:
        """The score, and for two classes the area under the curve of the receiver's operation (ROC)."""
        X, y = data
        told = super().quality(X, y)
        if len(self.classes_) == 2:
            told["area under ROC"] = area(*roc(self.decision_function(X), array(y) == self.classes_[1]))
        return told

    def _panels(self, *data: Any) -> list[Panel]:
        if not data:
            return []
        X, y = data
        panels = [pictures.confusion(self.predict(X), array(y), self.classes_)]
        if len(self.classes_) == 2:
            curve = roc(self.decision_function(X), array(y) == self.classes_[1])
            panels.insert(0, pictures.roc(*curve, area(*curve)))
        return panels


class Separator(Classifier):
    """Two classes on the two sides of a plane."""

    _binary: ClassVar[bool] = True
    _sparse: ClassVar[bool] = True

    def decision_function(self, X: Any) -> Any:
        """How far points lie on the second class's side, in margins."""
        return self._seen(X) @ self.coef_ + self.intercept_


class Unsupervised(Estimator):
    """Learns from points alone."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from points, shape (n_points, n_features); `y` is ignored."""
        del y
        return self._fit(X)


class Transformer(Unsupervised, ABC):
    """Turns points into what `transform` gives, and nearly back by `inverse_transform`."""

    _measure: ClassVar[str] = "explained share"

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """The points in their new form."""

    @abstractmethod
    def inverse_transform(self, Z: Any) -> Any:
        """The points that have this form."""

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from points, and turn them."""
        return self.fit(X, y).transform(X)

    def _middle(self) -> Any:
        """From where squares are counted."""
        return 0.0

    def score(self, X: Any, y: Any = None) -> float:
        """The share of the points' squares that is left when they are turned and turned back: at most 1."""
        del y
        X = self._seen(X)
        back = self.inverse_transform(self.transform(X))
        return explained(((X - back) ** 2).sum(), ((X - self._middle()) ** 2).sum())


class Clusterer(Unsupervised):
    """Gives each point one of some clusters, which have centers."""

    _kind: ClassVar[str | None] = "clusterer"
    _learned: ClassVar[str] = "cluster_centers_"
    _renamed: ClassVar[Mapping[str, str]] = {"centers": "cluster_centers"}
    _measure: ClassVar[str] = "silhouette of centers"
    _history: ClassVar[str] = "squared movement of the centers"

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Find the clusters, and give each point's."""
        return self.fit(X, y).predict(X)

    def predict(self, X: Any) -> Any:
        """The cluster of each point, shape (n_points,)."""
        return self._apart(self._seen(X)).argmin(axis=1)

    def _apart(self, X: Any) -> Any:
        """Squared distances of points to centers, shape (n_points, n_clusters); lazy."""
        centers = np.asarray(self.cluster_centers_)
        squares = (X * X).sum(axis=1)[:, None] - 2 * (X @ centers.T) + (centers * centers).sum(axis=1)
        return np.maximum(squares, 0)

    def quality(self, *data: Any) -> dict[str, float]:
        """How much nearer points are to their own center than to the next one, on average, from 0 to 1.

        The silhouette with distances to centers in place of those to all points (Hruschka et al., 2004);
        0 for points whose two nearest centers lie where they do, but for rounding errors.
        """
        X = self._seen(data[0])
        apart = self._apart(X)
        if apart.shape[1] < 2:
            return {}
        own, next_ = (np.partition(apart, 1, axis=1)[:, i] for i in (0, 1))
        is_far = next_ > 8 * float(np.finfo(X.dtype).eps) * (X * X).sum(axis=1)
        return {
            self._measure: float(np.where(is_far, 1 - (own / np.where(is_far, next_, 1)) ** 0.5, 0).mean())
        }

    def _panels(self, *data: Any) -> list[Panel]:
        return [pictures.clusters(array(X), self.predict, self.cluster_centers_) for X in data[:1]]


def explained(lost: Any, whole: Any) -> float:
    """1 less the share of the `whole` that is lost; of nothing, whether nothing is."""
    lost, whole = (float(a) for a in np.compute(lost, whole))
    return 1.0 - lost / whole if whole > 0 else float(lost == 0)


def determination(given: Any, predicted: Any) -> float:
    """The share of the variance of what is given that the predictions explain; NaN for a single value."""
    if given.shape[0] < 2:
        warn("R² is not defined for less than two values", UndefinedMetricWarning)
        return float("nan")
    return explained(((given - predicted) ** 2).sum(), ((given - given.mean()) ** 2).sum())


def roc(evidence: Any, truth: Any) -> tuple[Any, Any]:
    """The shares of points found wrongly and rightly as less evidence is asked, from 0 to 1; NumPy arrays."""
    order = np.argsort(-evidence)
    sorted_, right = np.compute(evidence[order], np.cumsum(truth[order]))
    last = np.flatnonzero(np.append(np.asarray(sorted_[1:] != sorted_[:-1]), True)).compute()
    found = np.append(0, right[last]).compute()
    wrong = np.append(0, last + 1).compute() - found
    return wrong / max(wrong[-1], 1), found / max(found[-1], 1)


def area(x: Any, y: Any) -> float:
    """Under a curve of straight lines."""
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1])).sum() / 2)


def softmax(z: Any) -> Any:
    """Probabilities of classes from their log odds, shape (n_points, n_classes)."""
    e = np.exp(z - z.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]
