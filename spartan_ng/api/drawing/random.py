"""`spartan_ng.random`: generators, and the legacy functions over a global state."""

import sys
from types import ModuleType
from typing import Any

import numpy as np

from spartan_ng.api.drawing.bit_generators import (
    MT19937,
    PCG64,
    PCG64DXSM,
    SFC64,
    BitGenerator,
    Philox,
    SeedSequence,
)
from spartan_ng.api.drawing.generator import Generator, default_rng
from spartan_ng.api.drawing.legacy_random import (
    RandomState,
    beta,
    binomial,
    bytes,
    chisquare,
    choice,
    dirichlet,
    exponential,
    f,
    gamma,
    geometric,
    get_bit_generator,
    get_state,
    gumbel,
    hypergeometric,
    laplace,
    logistic,
    lognormal,
    logseries,
    multinomial,
    multivariate_normal,
    negative_binomial,
    noncentral_chisquare,
    noncentral_f,
    normal,
    pareto,
    permutation,
    poisson,
    power,
    rand,
    randint,
    randn,
    random,
    random_integers,
    random_sample,
    ranf,
    rayleigh,
    sample,
    seed,
    set_bit_generator,
    set_state,
    shuffle,
    standard_cauchy,
    standard_exponential,
    standard_gamma,
    standard_normal,
    standard_t,
    triangular,
    uniform,
    vonmises,
    wald,
    weibull,
    zipf,
)

bit_generator, mtrand = np.random.bit_generator, np.random.mtrand
test = np.random.test  # type: ignore[attr-defined]


class _StandsForItsState(ModuleType):
    """A module taken where a generator is asked for, as NumPy's is: its functions are methods of one.

    SciPy and scikit-learn know NumPy's module by its identity, and everything else by its class.
    """

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the global state, so that `isinstance` holds; `type` tells the truth."""
        return RandomState


sys.modules[__name__].__class__ = _StandsForItsState

__all__ = [
    "MT19937",
    "PCG64",
    "PCG64DXSM",
    "SFC64",
    "BitGenerator",
    "Generator",
    "Philox",
    "RandomState",
    "SeedSequence",
    "beta",
    "binomial",
    "bit_generator",
    "bytes",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "get_bit_generator",
    "get_state",
    "gumbel",
    "hypergeometric",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "mtrand",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rand",
    "randint",
    "randn",
    "random",
    "random_integers",
    "random_sample",
    "ranf",
    "rayleigh",
    "sample",
    "seed",
    "set_bit_generator",
    "set_state",
    "shuffle",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "test",
    "triangular",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
]
