"""This package as the array API backend of the tests that SciPy and scikit-learn run over backends."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from spartan_ng.api import standard

NAME = standard.__name__


def of_scipy() -> None:
    """The fixture `xp` gives our namespace alone; SciPy says which tests are for NumPy only."""
    conftest: Any = importlib.import_module("scipy.conftest")
    conftest.xp_known_backends.add(NAME)
    ours = pytest.param(standard, id="spartan_ng", marks=pytest.mark.array_api_backends)
    conftest.xp = pytest.fixture(params=[ours], name="xp")(conftest.xp.__wrapped__)
    conftest.devices = pytest.fixture(name="devices")(_devices)


def _devices(xp: Any) -> list[Any]:
    """What SciPy's fixture gives; it adds to a list, which the standard made a tuple in 2025.12."""
    return [*xp.__array_namespace_info__().devices(), None]


def of_sklearn() -> None:
    """Tests over namespaces are of ours alone."""
    namespaces: Any = importlib.import_module("sklearn.utils._array_api")

    def ours(include_numpy_namespaces: bool = True) -> Iterator[str]:
        yield NAME

    namespaces.yield_namespaces = ours


BACKENDS = {"scipy": of_scipy, "sklearn": of_sklearn}
