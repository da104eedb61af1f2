"""Compressed columns against dense ones, on data that come with scikit-learn.

The digits' 64 pixels have 17 values each (rows drawn again to 2e5), the photographs' channels 256 in a matrix
that the cache holds, and their shades, a column each, two. The titles say how many bytes the compressed
matrices take; vectors and results are dense on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from sklearn import datasets

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from spartan_ng.apps.l2svm import l2svm

DRAWN = 200_000

Text = Callable[..., Any]


def digits() -> Inputs:
    """Images of handwritten digits, one a row."""
    random = numpy.random.default_rng(0)
    known = datasets.load_digits().data
    return _with_vectors(known[random.integers(0, len(known), DRAWN)], random)


def photographs() -> Inputs:
    """The pixels of two photographs, in raster order."""
    images = datasets.load_sample_images().images
    pixels = numpy.concatenate([i.reshape(-1, 3) for i in images]).astype(float)
    return _with_vectors(pixels, numpy.random.default_rng(0))


def shades() -> Inputs:
    """The photographs' channels in sixteen shades each, a column for every shade."""
    images = datasets.load_sample_images().images
    shade = numpy.concatenate([i.reshape(-1, 3) for i in images]) // 16
    one_hot = numpy.eye(16)[shade].reshape(len(shade), 48)
    return _with_vectors(one_hot, numpy.random.default_rng(0))


def _with_vectors(X: Any, random: numpy.random.Generator) -> Inputs:
    return {"X": X, "u": random.random(X.shape[0]), "v": random.random(X.shape[1])}


def squares(np: Any, X: Any, u: Any, v: Any) -> Any:
    """The workload's text."""
    return np.sum(X**2)


def times_vector(np: Any, X: Any, u: Any, v: Any) -> Any:
    """The workload's text."""
    return X @ v


def vector_times(np: Any, X: Any, u: Any, v: Any) -> Any:
    """The workload's text."""
    return u @ X


def mean_and_spread(np: Any, X: Any, u: Any, v: Any) -> Any:
    """The workload's text."""
    mean = np.sum(X, axis=0) / X.shape[0]
    return np.sqrt(np.sum(X**2, axis=0) / X.shape[0] - mean**2)


def chain(np: Any, X: Any, u: Any, v: Any) -> Any:
    """The workload's text."""
    return X.T @ (X @ v)


def _numpy(text: Text) -> Side:
    return lambda inputs: lambda: text(numpy, inputs["X"], inputs["u"], inputs["v"])


def _ours(text: Text, compress: bool) -> Side:
    def side(inputs: Inputs) -> Run:
        X = spartan_ng.asarray(inputs["X"])
        X = spartan_ng.compress_columns(X, always=True) if compress else X
        u, v = spartan_ng.asarray(inputs["u"]), spartan_ng.asarray(inputs["v"])
        return lambda: numpy.asarray(text(spartan_ng, X, u, v))

    return side


def _case(text: Text, name: str, title: str, inputs: Callable[[], Inputs]) -> Case:
    sides = {"numpy": _numpy(text), OURS: _ours(text, True), "spartan_ng dense": _ours(text, False)}
    return Case(f"compressed-{name}", title, inputs, sides, rounds=5)


def _classifier(compress: bool) -> Side:
    """Ten directions of L2SVM, for which rows have the larger products with a vector, and some noise."""

    def side(inputs: Inputs) -> Run:
        X = (spartan_ng.compress_columns if compress else spartan_ng.asarray)(inputs["X"])
        score = inputs["X"] @ inputs["v"] + inputs["u"]
        y = score > numpy.median(score)
        return lambda: numpy.asarray([l2svm(X, y, max_iter=10, tol=0.0).objective])

    return side


def _algorithm(name: str, title: str, inputs: Callable[[], Inputs]) -> Case:
    """L2SVM on both forms of the matrix; the dense one is compared with."""
    sides = {"spartan_ng dense": _classifier(False), OURS: _classifier(True)}
    return Case(f"compressed-{name}", title, inputs, sides, rounds=3, rtol=1e-6)


_DATA = {
    "digits": (digits, f"digits, {DRAWN} × 64: 102.4 MB dense, 4.9 MB compressed"),
    "shades": (shades, "shades of photographs, 546560 × 48: 209.9 MB dense, 1.8 MB compressed"),
    "pixels": (photographs, "pixels of photographs, 546560 × 3: 13.1 MB dense, 1.6 MB compressed"),
}
_TEXTS = (
    (squares, "squares", "sum(X ** 2)"),
    (mean_and_spread, "spread", "standard deviations of columns"),
    (times_vector, "times-vector", "X @ v"),
    (vector_times, "vector-times", "u @ X"),
    (chain, "chain", "X.T @ (X @ v)"),
)
COMPRESSED_CASES = (
    *(
        _case(text, f"{name}-{data}", f"{title}, {about}", inputs)
        for data, (inputs, about) in _DATA.items()
        for text, name, title in _TEXTS
    ),
    *(
        _algorithm(f"l2svm-{data}", f"L2SVM, ten directions, {_DATA[data][1]}", _DATA[data][0])
        for data in ("digits", "shades")
    ),
)
