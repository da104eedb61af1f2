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
        "als",
        "als",
        "als",
        "ALS",
        SPARTAN,
        "each row's least squares in NumPy, for explicit and implicit ratings",
        "--data ratings.mtx --rank 20 --save factors.npz",
    ),
    App(
        "als-cg",
        "als_cg",
        "als_cg",
        "ALSCG",
        f"{FUSION}; {FUSEME}",
        "SciPy's minimum of the weighted squared loss",
        "--data ratings.mtx --rank 5 --reg 0.01 --tol 0.003",
    ),
    App(
        "autoencoder",
        "autoencoder",
        "autoencoder",
        "AutoEncoder",
        f"{FUSION}; {FUSEME}",
        "scikit-learn's MLPRegressor, step by step",
        "--data points.npy --h1 100 --h2 2 --epochs 200",
    ),
    App(
        "black-scholes",
        "options",
        "black_scholes",
        "BlackScholes",
        SPARTAN,
        "SciPy's normal distribution, and put-call parity",
        "--spot spots.npy --strike strikes.npy --years years.npy",
    ),
    App(
        "cholesky",
        "cholesky",
        "cholesky",
        "Cholesky",
        SPARTAN,
        "NumPy's cholesky",
        "--data matrix.npy --block 256 --save factor.npz",
    ),
    App(
        "conjugate-gradient",
        "linear_systems",
        "conjugate_gradient",
        "ConjugateGradient",
        SPARTAN,
        "NumPy's solve, SciPy's cg",
        "--data matrix.mtx --target right.npy",
    ),
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
        "event-rate",
        "event_rate",
        "event_rates",
        "EventRate",
        SCANS,
        "sums over all pairs of times",
        "--times times.npy --half-life 5 --picture rate.svg",
    ),
    App(
        "fuzzy-kmeans",
        "fuzzy_kmeans",
        "fuzzy_kmeans",
        "FuzzyKMeans",
        SPARTAN,
        "the textbook's iteration in NumPy",
        "--data points.npy --clusters 10 --fuzziness 1.5",
    ),
    App(
        "glm",
        "glm",
        "glm",
        "GLM",
        FUSION,
        "SciPy's minimum; scikit-learn's PoissonRegressor and GammaRegressor",
        "--data points.npy --target answers.npy --family probit",
    ),
    App(
        "gnmf",
        "nmf",
        "gnmf",
        "GNMF",
        FUSEME,
        "scikit-learn's NMF, iteration by iteration",
        "--data ratings.mtx --components 20 --max-iter 1000",
    ),
    App(
        "jacobi",
        "linear_systems",
        "jacobi",
        "Jacobi",
        SPARTAN,
        "NumPy's solve",
        "--data matrix.mtx --target right.npy",
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
        "kl-nmf",
        "nmf",
        "kl_nmf",
        "KLNMF",
        FUSEME,
        "scikit-learn's NMF, iteration by iteration",
        "--data words.mtx --components 20",
    ),
    App(
        "kmeans",
        "kmeans",
        "kmeans",
        "KMeans",
        f"{SPARTAN}; {FUSION}",
        "scikit-learn's KMeans (Lloyd)",
        "--data points.npy --clusters 10 --save clusters.npz",
    ),
    App(
        "l2svm",
        "l2svm",
        "l2svm",
        "L2SVM",
        FUSION,
        "scikit-learn's LinearSVC (squared hinge loss)",
        "--data points.npy --target classes.npy --reg 0.01",
    ),
    App(
        "linear-regression",
        "linear_regression",
        "linear_regression",
        "LinearRegression",
        SPARTAN,
        "scikit-learn's LinearRegression",
        "--data points.npy --target values.npy --picture residuals.png",
    ),
    App(
        "logistic-regression",
        "logistic_regression",
        "logistic_regression",
        "LogisticRegression",
        SPARTAN,
        "scikit-learn's LogisticRegression",
        "--data points.npy --target classes.npy --picture roc.png",
    ),
    App(
        "mlogreg",
        "mlogreg",
        "mlogreg",
        "MultinomialLogisticRegression",
        FUSION,
        "SciPy's minimum; scikit-learn's LogisticRegression",
        "--data points.npy --target classes.npy --reg 0.1",
    ),
    App(
        "monte-carlo",
        "options",
        "monte_carlo",
        "MonteCarlo",
        SPARTAN,
        "Black and Scholes's formula",
        "--strike 110 --payoff asian --steps 12",
    ),
    App(
        "naive-bayes",
        "naive_bayes",
        "naive_bayes",
        "NaiveBayes",
        SPARTAN,
        "scikit-learn's MultinomialNB and GaussianNB",
        "--data words.mtx --target topics.npy",
    ),
    App(
        "pagerank",
        "pagerank",
        "pagerank",
        "PageRank",
        SPARTAN,
        "the linear system in NumPy",
        "--data links.mtx --save ranks.npz",
    ),
    App(
        "pca",
        "pca",
        "pca",
        "PCA",
        SPARTAN,
        "scikit-learn's PCA",
        "--data points.npy --components 3",
    ),
    App(
        "ridge",
        "linear_regression",
        "ridge",
        "Ridge",
        SPARTAN,
        "scikit-learn's Ridge",
        "--data points.npy --target values.npy --alpha 0.5",
    ),
    App(
        "ssvd",
        "ssvd",
        "ssvd",
        "SSVD",
        SPARTAN,
        "NumPy's svd",
        "--data matrix.mtx --components 20 --passes 2",
    ),
    App(
        "svd",
        "svd",
        "svd",
        "SVD",
        SPARTAN,
        "NumPy's svd, SciPy's svds",
        "--data matrix.mtx --components 20",
    ),
    App(
        "svm",
        "svm",
        "svm",
        "SVM",
        SPARTAN,
        "scikit-learn's LinearSVC (hinge loss)",
        "--data points.npy --target classes.npy -C 0.1",
    ),
    App(
        "swaption",
        "swaption",
        "swaption",
        "Swaption",
        SPARTAN,
        "Jamshidian's closed form",
        "--strike 0.035 --expiry 2 --payments 10",
    ),
]

APPS: dict[str, App] = {row.name: row for row in _ROWS}
"""Every app by its name."""
