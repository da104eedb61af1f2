"""NumPy's legacy generator; with a seed, or after `seed`, it gives NumPy's own numbers."""

from __future__ import annotations

import builtins
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle, elements, forced, shape_tuple
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import is_subclass
from spartan_ng.api.core.quick import chosen_by, drawn_by, shuffled_by
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.drawing.bit_generators import OfNumPys
from spartan_ng.api.drawing.distributions import Drawing, drawn
from spartan_ng.api.drawing.generator import default_rng
from spartan_ng.api.drawing.normals import normal_rows
from spartan_ng.api.drawing.shuffled import as_count, few_to_write, shuffle_other
from spartan_ng.api.drawing.streams import is_copied, long_order, may_be_long, numbers_ahead, places_by
from spartan_ng.callers import warn_user
from spartan_ng.ops.random import DISTRIBUTIONS

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_MODERN = DISTRIBUTIONS.keys() | {"dirichlet", "multivariate_normal"}
"""What is drawn in parallel as by the modern generator."""

_NumPys: Any = np.random.RandomState
"""The class as a base whose signatures ours need not repeat: ours give arrays of ours."""


class RandomState(Drawing, _NumPys, metaclass=OfNumPys):  # type: ignore[misc]
    """`numpy.random.RandomState` over lazy arrays; unseeded, large arrays are drawn in parallel.

    Other code takes it as NumPy's own. Its numbers come from `_numpy`, whose methods call none of ours.
    """

    def __init__(self, seed: Any = None) -> None:
        self._parallel = None if seed is not None else default_rng()
        self._follow(np.random.RandomState(forced(seed)))

    def _follow(self, numpys: np.random.RandomState) -> None:
        """Draw from NumPy's generator, in here and in what NumPy's class does itself."""
        self._numpy: np.random.RandomState = numpys
        super().__init__(numpys._bit_generator)

    def __reduce__(self) -> Any:
        return (_restored, (self._numpy._bit_generator, self._parallel), self.get_state(legacy=False))

    def __setstate__(self, state: Any) -> None:
        self._numpy.set_state(state)

    def seed(self, seed: Any = None) -> None:
        """Start again; with a seed, with NumPy's own numbers."""
        self._begin_anew().seed(forced(seed))
        self._parallel = None if seed is not None else default_rng()

    def get_state(self, legacy: bool = True) -> Any:
        """NumPy's state."""
        return self._numpy.get_state(legacy)  # type: ignore[call-overload]

    def set_state(self, state: Any) -> None:
        """Go on from a state of NumPy's."""
        self._begin_anew().set_state(state)
        self._parallel = None

    def _in_parallel(self, size: Any, more: tuple[int, ...] = ()) -> bool:
        return self._parallel is not None and self._parallel._in_parallel(size, more)

    def _apart(self, name: str, given: dict[str, Any]) -> ndarray | None:
        return getattr(self._parallel, name)(**given) if name in _MODERN else None

    @drawn_by(_NumPys.rand, 0)
    def rand(self, *shape: int) -> ndarray:
        """Doubles in [0, 1)."""
        return self.random_sample(shape or None)

    @drawn_by(_NumPys.randn, 0)
    def randn(self, *shape: int) -> ndarray:
        """The standard normal distribution."""
        return self.standard_normal(shape or None)

    @drawn_by(_NumPys.random_sample, 1, "size")
    def random_sample(self, size: Any = None) -> ndarray:
        """Doubles in [0, 1)."""
        if door.are_few(size):
            return wrap(self._numpy.random_sample(size))
        if self._parallel is not None and self._in_parallel(size):
            return self._parallel.random(size)
        found = None
        if size is not None:
            found = self._long("random_sample", forced(size), (), {})
            if found is None:
                numbers_ahead(forced(size))
        return wrap(self._numpy.random_sample(forced(size))) if found is None else found

    random = ranf = sample = random_sample

    @drawn_by(_NumPys.randint, 3, "low", "high", "size")
    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> ndarray:
        """Integers in [low, high)."""
        if door.are_few(size, low, high):
            return wrap(self._numpy.randint(low, high, size, dtype))
        shape = None if size is None else shape_tuple(size)
        if self._parallel is not None and shape is not None and not door.is_small(8 * prod(shape)):
            return self._parallel.integers(low, high, shape, dtype)
        if shape is not None and np.ndim(low) == np.ndim(high) == 0:
            bounds = (0, low) if high is None else (low, high)
            found = self._long("randint", shape, bounds, {"dtype": np.dtype(dtype)})
            if found is not None:
                return found
            numbers_ahead(shape)
        return wrap(self._numpy.randint(low, high, shape, dtype))

    beta = drawn(_NumPys.beta)
    binomial = drawn(_NumPys.binomial)
    chisquare = drawn(_NumPys.chisquare)
    dirichlet = drawn(_NumPys.dirichlet)
    exponential = drawn(_NumPys.exponential)
    f = drawn(_NumPys.f)
    gamma = drawn(_NumPys.gamma)
    geometric = drawn(_NumPys.geometric)
    gumbel = drawn(_NumPys.gumbel)
    hypergeometric = drawn(_NumPys.hypergeometric)
    laplace = drawn(_NumPys.laplace)
    logistic = drawn(_NumPys.logistic)
    lognormal = drawn(_NumPys.lognormal)
    logseries = drawn(_NumPys.logseries)
    multinomial = drawn(_NumPys.multinomial)
    _few_normals = drawn(_NumPys.multivariate_normal)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8
    ) -> ndarray:
        """The multivariate normal distribution."""
        given, checks = (elements(mean), elements(cov)), (check_valid, tol)
        many = size is not None and may_be_long((*shape_tuple(size), *np.shape(given[0])))
        if not many or self._in_parallel(size):
            return self._few_normals(*given, size, *checks)
        self._few_normals(*given, 0, *checks)  # its errors for bad parameters
        return normal_rows(self.standard_normal, given, size, "legacy")

    negative_binomial = drawn(_NumPys.negative_binomial)
    noncentral_chisquare = drawn(_NumPys.noncentral_chisquare)
    noncentral_f = drawn(_NumPys.noncentral_f)
    normal = drawn(_NumPys.normal)
    pareto = drawn(_NumPys.pareto)
    poisson = drawn(_NumPys.poisson)
    power = drawn(_NumPys.power)
    rayleigh = drawn(_NumPys.rayleigh)
    standard_cauchy = drawn(_NumPys.standard_cauchy)
    standard_exponential = drawn(_NumPys.standard_exponential)
    standard_gamma = drawn(_NumPys.standard_gamma)
    standard_normal = drawn(_NumPys.standard_normal)
    standard_t = drawn(_NumPys.standard_t)
    tomaxint = drawn(_NumPys.tomaxint)
    triangular = drawn(_NumPys.triangular)
    uniform = drawn(_NumPys.uniform)
    vonmises = drawn(_NumPys.vonmises)
    wald = drawn(_NumPys.wald)
    weibull = drawn(_NumPys.weibull)
    zipf = drawn(_NumPys.zipf)

    def bytes(self, length: int) -> builtins.bytes:
        """Random bytes."""
        return self._numpy.bytes(length)

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> ndarray:
        """Integers in [low, high], or in [1, low]."""
        warn_user("random_integers is deprecated: call randint(low, high + 1) instead", DeprecationWarning)
        low, high = (1, low) if high is None else (low, high)
        return self.randint(low, int(high) + 1 if np.ndim(high) == 0 else high + 1, size, "l")

    @chosen_by(_NumPys.choice, 5, "size", "replace", "p")
    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> ndarray:
        """Elements of a 1-d array (or of `range(a)`)."""
        shape = None if size is None else shape_tuple(size)
        if is_list := isinstance(a, list | tuple | range):
            a = as_handle(a)
        n = as_count(a)
        if n is None and as_handle(a).ndim != 1:
            raise ValueError("a must be 1-dimensional")
        drawn_from = n is None or isinstance(n, int | np.integer)
        if drawn_from and self._parallel is not None and self._parallel._in_parallel(shape):
            return self._parallel.choice(a, shape, replace, p)
        weights = elements(p)
        if n is not None or is_list or not isinstance(a, Handle):
            if replace and shape is not None and may_be_long(shape):
                return self._repeated(a if n is None else n, shape, weights)
            return wrap(self._chosen(elements(a), shape, replace, weights))
        if replace and shape is not None and may_be_long(shape):
            return self._repeated(a, shape, weights)
        index = self._chosen(a.shape[0], shape, replace, weights)
        return as_handle(a)[wrap(index) if isinstance(index, np.ndarray) else index]  # type: ignore[no-any-return]

    def _repeated(self, a: Any, shape: tuple[int, ...], weights: Any) -> ndarray:
        """Many numbers up to `a`, or elements of it, any of them several times."""
        many = np.ndim(a) > 0
        n = len(a) if many else a
        self._numpy.choice(n, 0, True, weights)  # its errors
        index = (
            self.randint(0, n, shape) if weights is None else places_by(weights, self.random_sample, shape)
        )
        return as_handle(a)[index] if many else index

    def _chosen(self, a: Any, shape: tuple[int, ...] | None, replace: bool, weights: Any) -> Any:
        """NumPy's choice, which puts all of a range in another order where nothing is put back."""
        counts = isinstance(a, int | np.integer) and weights is None and not replace
        if counts and shape is not None and 0 < prod(shape) <= a:
            order = long_order(self._numpy.shuffle, int(a))
            if order is not None:
                few = order[: prod(shape)]
                return (few.copy() if is_copied(few.nbytes) else few).reshape(shape)
        return self._numpy.choice(a, shape, replace, weights)

    @chosen_by(_NumPys.permutation, 2)
    def permutation(self, x: Any) -> ndarray:
        """A shuffled copy (or a shuffled range)."""
        if isinstance(x, np.ndarray) and is_subclass(x):
            return self._numpy.permutation(x)  # type: ignore[return-value]
        if type(x) is int and door.are_few(x):
            return wrap(self._numpy.permutation(x))
        n = as_count(x)
        counts = isinstance(n, int | np.integer)
        many = int(n) if counts else as_handle(x).size
        if self._parallel is not None and self._parallel._in_parallel((many,)):
            return self._parallel.permutation(x)
        if counts:
            order = self._order(many)
            return order if isinstance(order, Handle) else wrap(order)  # type: ignore[return-value]
        if n is not None:
            raise IndexError("x must be an integer or at least 1-dimensional")
        a = as_handle(x)
        value = a._peek()
        if type(value) is np.ndarray and door.is_small(value.nbytes):
            return wrap(self._numpy.permutation(value))
        return a[self._order(a.shape[0])]  # type: ignore[no-any-return]

    @shuffled_by(_NumPys.shuffle)
    def shuffle(self, x: Any) -> None:
        """Shuffle in place along the first axis."""
        if not isinstance(x, Handle):
            shuffle_other(self._numpy, x)
            return
        here = few_to_write(x)
        if self._parallel is not None and self._parallel._in_parallel(x.shape):
            self._parallel.shuffle(x)
            return
        if here is not None:
            self._numpy.shuffle(here)
            return
        if not is_copied(x.nbytes):
            x[...] = x[self._order(x.shape[0])]  # type: ignore[index]
            return
        value = np.array(x._force())
        self._numpy.shuffle(value)
        x[...] = value  # type: ignore[index]

    def _order(self, n: int) -> Any:
        """The numbers up to `n` in the order that NumPy gives them, and everything else of so many lines."""
        order = long_order(self._numpy.shuffle, n)
        return self._numpy.permutation(n) if order is None else wrap(order)


def _restored(bit_generator: Any, parallel: Any = None) -> RandomState:
    """An unpickled generator; from NumPy's old pickles, over a bit generator of that name."""
    named = isinstance(bit_generator, str)
    made = RandomState(getattr(np.random, bit_generator)() if named else bit_generator)
    made._parallel = parallel
    return made
