"""Every distribution of both generators: NumPy's numbers after a seed, its arguments, and its errors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.api.drawing.distributions import drawn
from spartan_ng.config import config

GIVEN = {
    "Generator": np.random.Generator,
    "RandomState": np.random.RandomState,
}
VALUES = {
    "a": 2.5, "b": 1.5, "alpha": [1.0, 2.0, 3.0], "colors": [4, 5, 6], "cov": [[2.0, 0.5], [0.5, 1.0]],
    "dfden": 5.0, "dfnum": 3.0, "df": 4.0, "kappa": 2.0, "lam": 3.0, "left": -1.0, "loc": 0.5, "mean": 1.0,
    "method": "marginals", "mode": 0.0, "mu": 0.5, "n": 9, "nbad": 6, "ngood": 7, "nonc": 1.5, "nsample": 5,
    "p": 0.3, "pvals": [0.2, 0.3, 0.5], "right": 2.0, "scale": 1.5, "shape": 2.0, "sigma": 0.5,
}  # fmt: skip
"""A value that every distribution takes for an argument of this name."""
OTHERS = {
    "bytes", "choice", "integers", "permutation", "permuted", "rand", "randint", "randn", "random",
    "random_integers", "random_sample", "ranf", "sample", "seed", "shuffle", "spawn", "get_state",
    "set_state",
}  # fmt: skip


def distributions(kind: str) -> list[str]:
    """The methods that draw by parameters alone."""
    found = [n for n in dir(GIVEN[kind]) if n[0] != "_" and n not in OTHERS]
    return [n for n in found if callable(getattr(GIVEN[kind], n))]


CASES = [(kind, name) for kind in GIVEN for name in distributions(kind)]


def arguments(kind: str, name: str) -> tuple[list[str], list[object]]:
    """The names of what is before the size, and a value for each."""
    names = [*inspect.signature(getattr(GIVEN[kind], name)).parameters][1:]
    names = names[: names.index("size")]
    values: list[object] = [VALUES[n] if n in VALUES else {"low": 1.0, "high": 3.0}[n] for n in names]
    if name == "multivariate_normal":
        values[0] = [1.0, 2.0]
    if name == "zipf":
        values[0] = 2.0
    return names, values


def made(kind: str, seed: int | None) -> tuple[object, object]:
    """A generator of ours, and NumPy's."""
    if kind == "RandomState":
        return sp.random.RandomState(seed), np.random.RandomState(seed)
    return sp.random.default_rng(seed), np.random.default_rng(seed)


@pytest.mark.parametrize("small_bytes", [0, 1 << 16])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_seeded_numbers_are_numpys(kind, name, small_bytes):
    names, values = arguments(kind, name)
    with config.override(small_bytes=small_bytes):
        ours, theirs = (getattr(g, name) for g in made(kind, 7))
        for args, keywords in (
            (values, {}),
            (values, {"size": 3}),
            ([*values, (2, 3)], {}),
            ([], {**dict(zip(names, values, strict=True)), "size": (4,)}),
            ([sp.array(v) if isinstance(v, list) else v for v in values], {"size": 2}),
            (values[:1] if name in ("normal", "uniform", "gamma") else values, {"size": 2}),
        ):
            wanted = theirs(*[np.asarray(a) if hasattr(a, "compute") else a for a in args], **keywords)
            np.testing.assert_array_equal(np.asarray(ours(*args, **keywords)), wanted)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_arguments_are_numpys_and_wrong_ones_are_errors(kind, name):
    ours, theirs = made(kind, 7)
    signature = inspect.signature(getattr(type(ours), name))
    assert [*signature.parameters] == [*inspect.signature(getattr(GIVEN[kind], name)).parameters]
    assert getattr(ours, name).__doc__
    for args, keywords in (([1.0] * 9, {}), ([], {"wrong": 1}), ([], {"size": "x"})):
        for generator in (ours, theirs, made(kind, None)[0]):
            with pytest.raises((TypeError, ValueError)):
                getattr(generator, name)(*args, **keywords)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_unseeded_numbers_have_numpys_shape_and_dtype(kind, name, by_name):
    """Many are drawn apart from any stream where that is known how, in the very same way."""
    names, values = arguments(kind, name)
    ours, theirs = made(kind, None)
    given: tuple[list[object], dict[str, object]] = ([*values, (50, 40)], {})
    if by_name:
        given = ([], {**dict(zip(names, values, strict=True)), "size": (50, 40)})
    with config.override(small_bytes=64):
        found = getattr(ours, name)(*given[0], **given[1])
    wanted = getattr(theirs, name)(*given[0], **given[1])
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    middle = np.median(wanted)
    for below in (np.less, np.less_equal):  # seven standard errors
        assert abs(below(found, middle).mean() - below(wanted, middle).mean()) < 0.12


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_methods_are_made_without_their_signatures(kind, name, monkeypatch):
    """To ask for those of all methods takes longer than to import them."""
    monkeypatch.delattr(inspect, "signature")
    assert drawn(getattr(GIVEN[kind], name)).__name__ == name
