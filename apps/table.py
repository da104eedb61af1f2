"""Every app, one row each: the command line, the documentation and tests are made from it.

An app's module has a function that does the work, with a docstring whose parameters become the command's
options; a dataclass of what it finds, whose fields the command prints and saves; and an estimator. An app
says nowhere how its arrays are cut.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

SPARTAN = "Spartan, section 5"
FUSION = "Fusion plans, Table 2"
FUSEME = "FuseME, section 6"
SCANS = "Cumulative aggregates, section 1"


@dataclass(frozen=True, slots=True)
class App:
    """One app.

    Parameters
    ----------
    name : of its command and its workload
    module : where it is, below `spartan_ng.apps`
    function, estimator : their names in the module
    source : the paper it comes from
    reference : what its tests compare it with
    example : the command's arguments, as the help shows them
    """

    name: str
    module: str
    function: str
    estimator: str
    source: str
    reference: str
    example: str

    def load(self, attribute: str) -> Any:
        """Something of the app's module, None where it has no such thing."""
        return getattr(importlib.import_module(f"spartan_ng.apps.{self.module}"), attribute, None)


_ROWS = [
    App(
        "cox",
        "cox",
        "cox",
        "CoxRegression",
        SCANS,
        "lifelines' CoxPHFitter",
        "--data covariates.npy --times times.npy --events seen.npy",
    ),
    App(
        "kaplan-meier",
        "kaplan_meier",
        "kaplan_meier",
        "KaplanMeier",
        SCANS,
        "lifelines' KaplanMeierFitter",
        "--times times.npy --events seen.npy --picture curve.png",
    ),
    App(
        "kmeans",
        "kmeans",
        "kmeans",
        "KMeans",
        f"{SPARTAN}; {FUSION}",
        "scikit-learn's KMeans (Lloyd)",
        "--data points.npy --clusters 10 --output found.npz",
    ),
    App(
        "logistic-regression",
        "logistic_regression",
        "logistic_regression",
        "LogisticRegression",
        SPARTAN,
        "scikit-learn's LogisticRegression",
        "--data points.npy --target classes.npy",
    ),
]

APPS: dict[str, App] = {row.name: row for row in sorted(_ROWS, key=lambda row: row.name)}
"""Every app by its name."""
