"""All methods of NumPy's generators, of many times the memory: what is folded is drawn as it is needed, with
NumPy's numbers and the state of its generator behind them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from tests.put_aside import put_aside

MEMORY, N = 1 << 20, 1_200_000
COV = numpy.diag([1.0, 2, 3]) + 0.5
P = [0.1, 0.3, 0.6]

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "beta": (2, 3),
    "binomial": (40, 0.3),
    "chisquare": (3,),
    "exponential": (),
    "f": (3, 4),
    "gamma": (2,),
    "geometric": (0.3,),
    "gumbel": (),
    "hypergeometric": (9, 7, 5),
    "integers": (0, 1000),
    "laplace": (),
    "logistic": (),
    "lognormal": (),
    "logseries": (0.5,),
    "negative_binomial": (4, 0.4),
    "noncentral_chisquare": (3, 2),
    "noncentral_f": (3, 4, 1),
    "normal": (),
    "pareto": (2,),
    "poisson": (3,),
    "power": (2,),
    "randint": (0, 1000),
    "random": (),
    "random_sample": (),
    "rayleigh": (),
    "standard_cauchy": (),
    "standard_exponential": (),
    "standard_gamma": (2,),
    "standard_normal": (),
    "standard_t": (4,),
    "tomaxint": (),
    "triangular": (0, 1, 2),
    "uniform": (),
    "vonmises": (0, 1),
    "wald": (1, 2),
    "weibull": (2,),
    "zipf": (2.5,),
}


def _drawn(name: str, g: Any, m: Any) -> Any:
    return getattr(g, name)(*ARGUMENTS[name], size=N)


Draw = Callable[[Any, Any], Any]
"""Of a generator and the module whose it is."""
CALLS: dict[str, Draw] = {
    **{name: partial(_drawn, name) for name in ARGUMENTS},
    "choice": lambda g, m: g.choice(7, N),
    "choice by weights": lambda g, m: g.choice(3, N, p=P),
    "choice of an array": lambda g, m: g.choice(m.arange(5) ** 2, N),
    "dirichlet": lambda g, m: g.dirichlet([0.5, 2, 3], N // 3),
    "multinomial": lambda g, m: g.multinomial(20, P, N // 3),
    "multivariate_hypergeometric": lambda g, m: g.multivariate_hypergeometric([30, 40, 50], 40, N // 3),
    "multivariate_normal": lambda g, m: g.multivariate_normal([0, 1, 2], COV, N // 3),
    "rand": lambda g, m: g.rand(N),
    "randn": lambda g, m: g.randn(N),
}
ORDERS: dict[str, Draw] = {
    "choice without": lambda g, m: g.choice(N, N // 10, replace=False),
    "permutation": lambda g, m: g.permutation(N),
    "permuted": lambda g, m: g.permuted(m.arange(N).reshape(10, -1), axis=1),
    "shuffle": lambda g, m: _shuffled(g, m.arange(N) * 1),
}
"""What is put in an order, which lies in a file."""
NOT_ARRAYS = {"bytes", "spawn", "bit_generator", "seed", "get_state", "set_state"}
DEPRECATED = {"random_integers", "ranf", "sample"}


def _shuffled(g: Any, x: Any) -> Any:
    g.shuffle(x)
    return x


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported() -> None:
    with config.override(memory_bytes=MEMORY):
        for _ in range(2):
            float(np.random.default_rng(0).normal(size=N).sum())


def kinds(name: str) -> list[str]:
    return [
        kind
        for kind, of in (("default_rng", numpy.random.Generator), ("RandomState", numpy.random.RandomState))
        if hasattr(of, name.split(maxsplit=1)[0])
    ]


@pytest.mark.parametrize("of", [numpy.random.Generator, numpy.random.RandomState])
def test_the_tables_have_all_methods(of: type) -> None:
    known = {name.split()[0] for name in (*CALLS, *ORDERS)} | NOT_ARRAYS | DEPRECATED
    assert {name for name in dir(of) if not name.startswith("_")} <= known


@pytest.mark.some(16)
@pytest.mark.parametrize(("name", "kind"), [(n, k) for n in (*CALLS, *ORDERS) for k in kinds(n)])
def test_nothing_has_more_than_the_memory(name: str, kind: str) -> None:
    draw = (CALLS | ORDERS)[name]
    theirs = getattr(numpy.random, kind)(5)
    wanted = draw(theirs, numpy).sum(axis=0)
    with config.override(memory_bytes=MEMORY), put_aside() as aside:
        ours = getattr(np.random, kind)(5)
        tracemalloc.start()
        try:
            found = numpy.asarray(draw(ours, np).sum(axis=0))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak <= 3 * MEMORY  # of nine that the result takes
        assert bool(aside) <= (name in ORDERS)
        assert ours.normal() == theirs.normal()
    numpy.testing.assert_allclose(found, wanted, rtol=1e-9)
