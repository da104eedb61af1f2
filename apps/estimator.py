"""What scikit-learn expects of any estimator, without scikit-learn.

An estimator's parameters are its constructor's arguments, kept unchanged under their own names;
what `fit` learns ends in an underscore. With that, scikit-learn clones, searches and pipelines it.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self


class NotFittedError(ValueError, AttributeError):
    """An estimator was asked for what only `fit` gives it."""


class Estimator:
    """The parameter conventions; a subclass adds its constructor and `fit`."""

    _kind: ClassVar[str]
    """scikit-learn's estimator type, "classifier" or "clusterer"."""
    _learned: ClassVar[str]
    """An attribute that exists after `fit`."""

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments as they were given; `deep` is accepted and changes nothing here."""
        del deep
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; a wrong name raises ValueError."""
        for name in params:
            if name not in self._names():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: it has {self._names()}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _require_fit(self) -> None:
        if not hasattr(self, self._learned):
            raise NotFittedError(f"{type(self).__name__}: call fit before asking for results")

    def _require_features(self, columns: int) -> None:
        expected: int = self.n_features_in_  # type: ignore[attr-defined]
        if columns != expected:
            raise ValueError(f"{type(self).__name__}: X has {columns} columns, fit saw {expected}")

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of the estimator; only scikit-learn itself asks for it."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        classifies = self._kind == "classifier"
        return Tags(
            estimator_type=self._kind,
            target_tags=TargetTags(required=classifies),
            classifier_tags=ClassifierTags() if classifies else None,
            input_tags=InputTags(),
        )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({arguments})"
