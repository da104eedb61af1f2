"""`spartan_ng.random`: generators, and the legacy functions over one global state."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
from numpy.random import bit_generator  # found also where Ctrl-C ended its first import
from numpy.random import mtrand as _numpys

from spartan_ng.api.core.conversion import forced
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
from spartan_ng.api.drawing.legacy_random import RandomState

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

_state = RandomState()
_state._follow(_numpys._rand)  # NumPy's own, from which other libraries draw, too: a seed is for all


def get_bit_generator() -> Any:
    """The bit generator of the global state."""
    return _state._numpy._bit_generator


def set_bit_generator(bitgen: Any) -> None:
    """Draw everything from another bit generator."""
    _numpys.set_bit_generator(bitgen)
    _state._follow(_numpys._rand)
    _state._parallel = None


def seed(seed: Any = None) -> None:
    """Start all again; another kind of bit generator takes its state from a new one."""
    bits: Any = get_bit_generator()
    if isinstance(bits, np.random.MT19937):
        _state.seed(seed)
    else:
        bits.state = type(bits)(forced(seed)).state


get_state = _state.get_state
set_state = _state.set_state
rand = _state.rand
randn = _state.randn
random = _state.random_sample
random_sample = _state.random_sample
ranf = _state.random_sample
sample = _state.random_sample
randint = _state.randint
standard_normal = _state.standard_normal
normal = _state.normal
uniform = _state.uniform
exponential = _state.exponential
poisson = _state.poisson
binomial = _state.binomial
beta = _state.beta
gamma = _state.gamma
multivariate_normal = _state.multivariate_normal
choice = _state.choice
permutation = _state.permutation
shuffle = _state.shuffle
bytes = _state.bytes
chisquare = _state.chisquare
dirichlet = _state.dirichlet
f = _state.f
geometric = _state.geometric
gumbel = _state.gumbel
hypergeometric = _state.hypergeometric
laplace = _state.laplace
logistic = _state.logistic
lognormal = _state.lognormal
logseries = _state.logseries
multinomial = _state.multinomial
negative_binomial = _state.negative_binomial
noncentral_chisquare = _state.noncentral_chisquare
noncentral_f = _state.noncentral_f
pareto = _state.pareto
power = _state.power
random_integers = _state.random_integers
rayleigh = _state.rayleigh
standard_cauchy = _state.standard_cauchy
standard_exponential = _state.standard_exponential
standard_gamma = _state.standard_gamma
standard_t = _state.standard_t
triangular = _state.triangular
vonmises = _state.vonmises
wald = _state.wald
weibull = _state.weibull
zipf = _state.zipf

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


class _LegacyModule(ModuleType):
    """NumPy's module of its legacy generator, with our generator, and its methods, in their places."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_numpys, name)

    def __dir__(self) -> list[str]:
        return dir(_numpys)


mtrand = _LegacyModule(_numpys.__name__, _numpys.__doc__)
vars(mtrand).update({name: globals()[name] for name in _numpys.__all__}, _rand=_state)
