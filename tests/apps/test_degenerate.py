"""Data without shape: constant, equal or few rows. Each app says so, or gives what is true of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest
from click.testing import CliRunner
from scipy import io, sparse
from sklearn import cluster, decomposition, linear_model, naive_bayes, svm

from spartan_ng.apps import samples
from spartan_ng.apps.fuzzy_kmeans import FuzzyKMeans
from spartan_ng.apps.kmeans import KMeans
from spartan_ng.apps.l2svm import L2SVM
from spartan_ng.apps.linear_regression import LinearRegression, Ridge
from spartan_ng.apps.logistic_regression import LogisticRegression
from spartan_ng.apps.naive_bayes import NaiveBayes
from spartan_ng.apps.pca import PCA
from spartan_ng.apps.ssvd import SSVD
from spartan_ng.apps.svd import SVD
from spartan_ng.apps.table import APPS
from spartan_ng.cli import main

Array = numpy.ndarray[Any, Any]


def _few(v: Array, count: int) -> Array:
    """The first rows; of a square matrix its corner."""
    return v[:count, :count] if v.ndim == 2 and v.shape[0] == v.shape[1] else v[:count]


def _equal_rows(v: Array) -> Array:
    return v[numpy.zeros(len(v), int)]


KINDS: dict[str, Callable[[Array], Array]] = {
    "zeros": numpy.zeros_like,
    "ones": numpy.ones_like,
    "tenths": lambda v: numpy.full(v.shape, 0.1),
    "equal rows": _equal_rows,
    "rows of two kinds": lambda v: v[numpy.arange(len(v)) % 2],
    "one row": lambda v: _few(v, 1),
    "two rows": lambda v: _few(v, 2),
}
READING = [name for name, row in APPS.items() if re.search(r"\.(npy|mtx)\b", row.example)]
_NOT_LEARNED = "--picture", "--save"
_SLOW = frozenset({"als-cg", "gnmf", "kl-nmf"})
"""What iterates for long, and is asked for few iterations: whether it converges is not the question."""


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory) -> Path:
    """The samples, all turned into one kind."""
    found: Path = tmp_path_factory.mktemp("samples")
    for name, value in samples.files().items():
        whole = value.toarray() if sparse.issparse(value) else value
        made = KINDS[request.param](whole)
        if name.endswith(".npy"):
            numpy.save(found / name, made)
        else:
            io.mmwrite(found / name, sparse.coo_array(made), precision=17)
    return found


@contextmanager
def as_shown() -> Iterator[None]:
    """Warnings that Python shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for unseen in (DeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", unseen)
        yield


@pytest.mark.some(20)
@pytest.mark.parametrize("name", READING)
def test_every_app_ends_with_what_is_true_or_with_one_line(name, folder, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    words = APPS[name].example.split()
    for option in _NOT_LEARNED:
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    words += ["--max-iter", "20"] if name in _SLOW else []
    with as_shown():
        done = CliRunner().invoke(main, ["app", name, *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    told = done.stderr.splitlines()
    assert all(re.match("Warning: |Error: ", line) for line in told)
    assert sum(line.startswith("Error: ") for line in told) == (done.exit_code == 1)
    found = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in done.stdout.splitlines())
    if any(re.search(r"\bnan\b", value) for value in found.values()):
        assert told
    assert not any("invalid value" in line for line in told)
    for share in ("explained share", "accuracy", "area under ROC"):
        assert found.get(share) in (None, "nan") or 0 <= float(found[share]) <= 1
    assert found.get("R2") in (None, "nan") or float(found["R2"]) <= 1
    if name in ("kmeans", "fuzzy-kmeans") and done.exit_code == 0:
        assert any("distinct clusters" in line for line in told)
        assert float(found["silhouette of centers"]) <= 0.5


def _points(kind: str) -> Array:
    return KINDS[kind](abs(numpy.random.default_rng(0).standard_normal((30, 4))))


PAIRS: list[tuple[Callable[[], Any], Callable[[], Any], str]] = [
    (lambda: KMeans(2, random_state=0), lambda: cluster.KMeans(2, random_state=0, n_init=1), "none"),
    (lambda: LinearRegression(), lambda: linear_model.LinearRegression(), "numbers"),
    (lambda: Ridge(), lambda: linear_model.Ridge(), "numbers"),
    (lambda: LogisticRegression(), lambda: linear_model.LogisticRegression(), "classes"),
    (lambda: L2SVM(reg=1.0), lambda: svm.LinearSVC(C=1.0), "classes"),
    (lambda: NaiveBayes(), lambda: naive_bayes.MultinomialNB(), "classes"),
    (lambda: NaiveBayes(kind="gaussian"), lambda: naive_bayes.GaussianNB(), "classes"),
]


def _fitted(make: Callable[[], Any], X: Array, y: Array | None) -> tuple[Any, set[str]]:
    """A score (or the kind of error) and the kinds of warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = make().fit(X) if y is None else make().fit(X, y)
            found: Any = float(model.score(X) if y is None else model.score(X, y))
        except ValueError:
            found = "ValueError"
    return found, {w.category.__name__ for w in told} & {"ConvergenceWarning", "UndefinedMetricWarning"}


@pytest.mark.some(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("ours", "theirs", "target"), PAIRS)
def test_what_scikit_learn_refuses_or_warns_of_we_do_too(ours, theirs, target, kind) -> None:
    X = _points(kind)
    n = len(X)
    y = {"none": None, "numbers": X[:, 0] + numpy.arange(n) % 3, "classes": numpy.arange(n) % 2}[target]
    found, told = _fitted(ours, X, y)
    wanted, warned = _fitted(theirs, X, y)
    assert told == warned
    if isinstance(wanted, str):
        assert found == wanted
    else:
        assert found == pytest.approx(wanted, rel=1e-3, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("kind", ["zeros", "ones", "tenths", "equal rows", "rows of two kinds"])
def test_components_say_one_thing(kind) -> None:
    """Shares of a variance that there is not are no numbers, and a share of another is the ratios' sum."""
    X = _points(kind)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = PCA(2).fit(X)
    ratios, score = numpy.asarray(model.explained_variance_ratio_), model.score(X)
    if kind == "rows of two kinds":
        assert score == pytest.approx(ratios.sum())
        assert not told
        return
    assert ["there is no variance" in str(w.message) for w in told] == [True]
    assert numpy.isnan(ratios).all()
    assert numpy.isnan(score)
    reference = decomposition.PCA(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference.fit(X)
    if kind in ("zeros", "ones"):  # of others, theirs has a variance of rounding errors
        assert numpy.isnan(reference.explained_variance_ratio_).all()


@pytest.mark.some(10)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("shape", [(40, 10), (10, 40), (12, 12)])
@pytest.mark.parametrize("make", [SVD, SSVD])
def test_matrices_of_lower_rank_are_decomposed(make, shape, rank, scale) -> None:
    """Beyond the rank, values are 0, and their vectors add nothing."""
    random = numpy.random.default_rng(0)
    A = scale * random.random((shape[0], rank)) @ random.random((rank, shape[1]))
    model = make(6, random_state=0).fit(A)
    left, values, right = (numpy.asarray(getattr(model, f"{name}_")) for name in ("left", "values", "right"))
    expected = numpy.linalg.svd(A, compute_uv=False)[:6]
    assert (values[rank:] == 0).all()
    numpy.testing.assert_allclose(values[:rank], expected[:rank], rtol=1e-10)
    numpy.testing.assert_allclose(left * values @ right, A, atol=1e-12 * scale)
    numpy.testing.assert_allclose(model.inverse_transform(model.transform(A)), A, atol=1e-12 * scale)
    lengths = numpy.linalg.norm(right, axis=1)
    assert (numpy.isclose(lengths, 1) | numpy.isclose(lengths, 0)).all()
    assert model.score(A) == pytest.approx(1)
    assert model.score(A) <= 1


def test_fuzzy_clusters_of_equal_points_are_few() -> None:
    with pytest.warns(match=r"distinct clusters \(1\)"):
        FuzzyKMeans(3, random_state=0).fit(numpy.full((20, 2), 0.1))
