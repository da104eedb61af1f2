"""Random numbers under NumPy's names, the same whatever the layout.

A seeded generator gives NumPy's own numbers. Uniform doubles take one step of the bit generator each, so
that a large array of them is drawn in parallel by jumping; everything else is drawn in stream order on the
driver. An unseeded generator draws large arrays in parallel in logical blocks.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import joining, manipulation
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle, elements, forced, shape_tuple
from spartan_ng.api.core.dispatch import fresh
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import is_subclass
from spartan_ng.api.core.operands import stored
from spartan_ng.api.core.quick import chosen_by, drawn_by, shuffled_by
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.drawing.bit_generators import OfNumPys
from spartan_ng.api.drawing.blocks import BlockKeys
from spartan_ng.api.drawing.distributions import Drawing, drawn
from spartan_ng.api.drawing.normals import normal_rows
from spartan_ng.api.drawing.shuffled import as_count, few_to_write, shuffle_other
from spartan_ng.api.drawing.streams import (
    check_one_go,
    is_copied,
    long_choice,
    long_order,
    long_orders,
    may_be_long,
    numbers_ahead,
    places_by,
)
from spartan_ng.api.ordering import sorting
from spartan_ng.api.places import taking
from spartan_ng.graph import build
from spartan_ng.ops.random import DISTRIBUTIONS

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_FLOAT = np.dtype(np.float64)


_NumPys: Any = np.random.Generator
"""The class as a base whose signatures ours need not repeat: ours give arrays of ours."""


def _scalars(*parameters: Any) -> bool:
    return all(np.ndim(p) == 0 and not isinstance(p, Handle) for p in parameters)


class Generator(Drawing, _NumPys, metaclass=OfNumPys):  # type: ignore[misc]
    """`numpy.random.Generator` over lazy arrays; other code takes it as NumPy's own.

    Its numbers come from `_numpy`, NumPy's generator over the same bits, whose methods call none of ours.

    Parameters
    ----------
    bit_generator : NumPy's bit generator, whose stream is followed
    seeded : whether the numbers must be that stream's, or any
    """

    def __init__(self, bit_generator: Any, seeded: bool = True) -> None:
        super().__init__(bit_generator)
        self._numpy: np.random.Generator = np.random.Generator(bit_generator)
        self._blocks = None if seeded else BlockKeys()

    @property
    def bit_generator(self) -> Any:
        """NumPy's bit generator, which stands behind all that has been drawn."""
        return self._bit_generator

    def __reduce__(self) -> Any:
        return (_restored, (self.bit_generator,), self._blocks)

    def __setstate__(self, blocks: Any) -> None:
        self._blocks = blocks

    def spawn(self, n_children: int) -> list[Generator]:
        """Independent generators."""
        return [Generator(g.bit_generator, self._blocks is None) for g in self._numpy.spawn(n_children)]

    # --- how numbers are drawn -----------------------------------------------------------------------

    def _small(self, shape: tuple[int, ...], itemsize: int = 8) -> bool:
        return not shape or (door.is_open() and door.is_small(prod(shape) * itemsize))

    def _stream(self, name: str, parameters: tuple[Any, ...], shape: tuple[int, ...]) -> ndarray:
        """Doubles reached by jumping; the generator goes on behind them."""
        bits = self._numpy.bit_generator
        state = bits.state
        key = ("stream", (state["state"]["state"], state["state"]["inc"], 0))
        bits.advance(prod(shape))  # type: ignore[attr-defined]
        after = bits.state
        after["has_uint32"], after["uinteger"] = state["has_uint32"], state["uinteger"]  # type: ignore[index]
        bits.state = after
        return wrap_node(build.random(name, key, parameters, shape, _FLOAT))

    def _draw(
        self, name: str, parameters: tuple[Any, ...], size: Any, dtype: Any = None, **keywords: Any
    ) -> ndarray:
        """Draw by NumPy in stream order, or in parallel if nobody asked for a stream."""
        own = DISTRIBUTIONS[name].dtype if name in DISTRIBUTIONS else _FLOAT
        kind = own if dtype is None else np.dtype(dtype)
        shape = () if size is None else shape_tuple(size)
        plain = tuple(map(elements, parameters))
        are_many = bool(shape) and not self._small(shape, kind.itemsize) and _scalars(*plain)
        if are_many and self._blocks is not None and name in DISTRIBUTIONS and not keywords:
            getattr(self._numpy, name)(*plain, size=0)  # its errors for bad parameters
            return wrap_node(build.random(name, self._blocks.key(), plain, shape, kind))
        if dtype is not None:
            keywords["dtype"] = kind
        if shape and may_be_long(shape):
            found = self._long(name, shape, plain, keywords)
            if found is not None:
                return found
            check_one_go(name, shape)
        if shape:
            numbers_ahead(shape)
        if size is not None:
            keywords["size"] = shape
        return wrap(
            getattr(self._numpy, name)(*plain, **keywords)
        )  # one number is Python's, as NumPy gives it

    def _apart(self, name: str, given: dict[str, Any]) -> ndarray | None:
        size = given.pop("size")
        return self._draw(name, tuple(given.values()), size) if name in DISTRIBUTIONS else None

    def _into(self, out: Any, name: str, parameters: tuple[Any, ...], size: Any, dtype: Any) -> Any:
        """Draw into an array of the dtype that is drawn, in C order."""
        kind = np.dtype(dtype)
        if out.dtype != kind:
            raise TypeError(f"Supplied output array has the wrong type. Expected {kind}, got {out.dtype}")
        if size is not None and shape_tuple(size) != out.shape:
            raise ValueError(f"size {size} must match out.shape {out.shape} when used together")
        flags = out.flags
        if not (flags.c_contiguous or flags.f_contiguous) or not flags.writeable:
            raise ValueError(
                "Supplied output array must be C-contiguous, writable, aligned, and in machine byte-order."
            )
        lines = out if flags.c_contiguous else out.T  # as the numbers lie in memory
        lines[...] = self._draw(name, parameters, lines.shape, kind)
        return out

    def _in_parallel(self, size: Any, more: tuple[int, ...] = ()) -> bool:
        """Whether nobody asked for a stream, and the numbers are many."""
        return self._blocks is not None and size is not None and not self._small((*shape_tuple(size), *more))

    # --- doubles -------------------------------------------------------------------------------------

    @drawn_by(_NumPys.random, 1, "size")
    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> ndarray:
        """Doubles (or floats) in [0, 1)."""
        if out is None and dtype is np.float64 and door.are_few(size):
            return wrap(self._numpy.random(size))
        if out is not None:
            return self._into(out, "random", (), size, dtype)  # type: ignore[no-any-return]
        if self._jumps_for(size) and np.dtype(dtype) == _FLOAT:
            return self._stream("random", (), shape_tuple(size))
        return self._draw("random", (), size, None if dtype is np.float64 else dtype)

    @drawn_by(_NumPys.uniform, 3, "low", "high", "size")
    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> ndarray:
        """Doubles in [low, high)."""
        if door.are_few(size, low, high):
            return wrap(self._numpy.uniform(low, high, size))
        if self._jumps_for(size) and _scalars(low, high):
            self._numpy.uniform(low, high, 0)  # its errors for bad parameters
            return self._stream("uniform", (float(low), float(high)), shape_tuple(size))
        return self._draw("uniform", (low, high), size)

    def _jumps_for(self, size: Any) -> bool:
        """Whether so many numbers are reached by jumping in the stream."""
        if self._blocks is not None or size is None or self._small(shape_tuple(size)):
            return False
        return isinstance(self.bit_generator, np.random.PCG64)

    # --- other distributions -------------------------------------------------------------------------

    beta = drawn(_NumPys.beta)
    binomial = drawn(_NumPys.binomial)
    chisquare = drawn(_NumPys.chisquare)
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
    multivariate_hypergeometric = drawn(_NumPys.multivariate_hypergeometric)
    negative_binomial = drawn(_NumPys.negative_binomial)
    noncentral_chisquare = drawn(_NumPys.noncentral_chisquare)
    noncentral_f = drawn(_NumPys.noncentral_f)
    normal = drawn(_NumPys.normal)
    pareto = drawn(_NumPys.pareto)
    poisson = drawn(_NumPys.poisson)
    power = drawn(_NumPys.power)
    rayleigh = drawn(_NumPys.rayleigh)
    standard_cauchy = drawn(_NumPys.standard_cauchy)
    standard_t = drawn(_NumPys.standard_t)
    triangular = drawn(_NumPys.triangular)
    vonmises = drawn(_NumPys.vonmises)
    wald = drawn(_NumPys.wald)
    weibull = drawn(_NumPys.weibull)
    zipf = drawn(_NumPys.zipf)

    @drawn_by(_NumPys.integers, 3, "low", "high", "size", "endpoint")
    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> ndarray:
        """Integers in [low, high), or in [low, high] with `endpoint`."""
        if dtype is np.int64 and door.are_few(size, low, high):
            return wrap(self._numpy.integers(low, high, size, endpoint=endpoint))
        if high is None:
            low, high = 0, low
        if endpoint and not _scalars(low, high):
            return self._draw("integers", (low, high), size, dtype, endpoint=True)
        if size is None and (dtype is int or dtype is bool) and _scalars(low, high):  # Python's own
            return self._numpy.integers(low, high, None, dtype, endpoint)  # type: ignore[no-any-return]
        some = size is None or 0 not in shape_tuple(size)
        if endpoint and _scalars(low, high) and low > high and some:
            self._numpy.integers(low, high, None, dtype, True)  # its error
        if self._blocks is not None and _scalars(low, high) and low >= high + bool(endpoint):
            raise ValueError("low > high" if endpoint else "low >= high")
        return self._draw("integers", (low, high + 1 if endpoint else high), size, dtype)

    @drawn_by(_NumPys.standard_normal, 1, "size")
    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> ndarray:
        """The standard normal distribution."""
        if out is not None:
            return self._into(out, "standard_normal", (), size, dtype)  # type: ignore[no-any-return]
        return self._draw("standard_normal", (), size, dtype)

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> ndarray:
        """The exponential distribution with scale 1."""
        if out is not None and method == "zig":
            return self._into(out, "standard_exponential", (), size, dtype)  # type: ignore[no-any-return]
        if out is not None:
            out[...] = self._draw("standard_exponential", (), out.shape, dtype, method=method)
            return out  # type: ignore[no-any-return]
        if method != "zig":
            return self._draw("standard_exponential", (), size, dtype, method=method)
        return self._draw("standard_exponential", (), size, dtype)

    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None
    ) -> ndarray:
        """The gamma distribution with scale 1."""
        if out is not None:
            if np.ndim(forced(shape)) and not out.flags.c_contiguous:
                raise ValueError("Supplied output array must be C-contiguous where shape is an array")
            return self._into(out, "standard_gamma", (shape,), size, dtype)  # type: ignore[no-any-return]
        if np.dtype(dtype) == np.float64:
            return self._draw("standard_gamma", (shape,), size)
        return self._draw("standard_gamma", (shape,), size, dtype)

    @drawn_by(_NumPys.multivariate_normal, 3, "mean", "cov", "size")
    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> ndarray:
        """The multivariate normal distribution."""
        given: Any = (elements(mean), elements(cov))
        many = np.shape(given[0])
        if self._in_parallel(size, many) or (size is not None and may_be_long((*shape_tuple(size), *many))):
            named: Any = {"check_valid": check_valid, "tol": tol, "method": method}
            self._numpy.multivariate_normal(given[0], given[1], 0, **named)  # its errors for bad parameters
            return normal_rows(self.standard_normal, given, size, method)
        return self._draw("multivariate_normal", given, size, check_valid=check_valid, tol=tol, method=method)

    @drawn_by(_NumPys.dirichlet, 2, "size")
    def dirichlet(self, alpha: Any, size: Any = None) -> ndarray:
        """The Dirichlet distribution."""
        alpha = elements(alpha)
        if self._in_parallel(size, np.shape(alpha)) and len(alpha) <= _COLUMNS:
            self._numpy.dirichlet(alpha)  # its errors for bad parameters
            weights = [self.standard_gamma(a, size) for a in np.asarray(alpha, float).tolist()]
            parts = joining.stack(weights, -1)
            return parts / parts.sum(axis=-1, keepdims=True)
        return self._draw("dirichlet", (alpha,), size)

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        return self._numpy.bytes(length)

    # --- permutations --------------------------------------------------------------------------------

    @chosen_by(_NumPys.choice, 5, "size", "replace", "p", "axis", "shuffle")
    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> ndarray:
        """Elements of an array (or of `range(a)`), drawn with or without replacement."""
        shape = None if size is None else shape_tuple(size)
        if isinstance(a, list | tuple | range):
            a = as_handle(a)
        n = as_count(a)
        if n is not None:
            if self._in_parallel(shape) and p is None and replace:
                return self.integers(0, n, shape)
            index = self._chosen(n, shape, replace, elements(p), axis, shuffle)
            return index if isinstance(index, Handle) else wrap(index)  # type: ignore[return-value]
        a = as_handle(a)
        where = build.axis_index(axis, a.ndim)
        if self._in_parallel(shape) and p is None and replace:
            return taking.take(a, self.integers(0, a.shape[where], shape), where)
        value = a._peek()
        if type(value) is np.ndarray and not a.dtype.hasobject and door.is_small(value.nbytes):
            line = value.nbytes // max(value.shape[where], 1)
            if self._small(shape or (), line):
                return fresh(self._numpy.choice(value, shape, replace, elements(p), where, shuffle))  # type: ignore[no-any-return]
        index = self._chosen(a.shape[where], shape, replace, elements(p), 0, shuffle)
        found = taking.take(a, wrap(index) if isinstance(index, np.ndarray) else index, where)
        if shape == () and a.ndim == 1:  # an array without axes, also of an object
            one = np.empty(1, a.dtype)
            one[0] = found if a.dtype.hasobject else forced(found)
            return wrap(one.reshape(()))
        return found

    def _chosen(
        self, n: Any, shape: tuple[int, ...] | None, replace: bool, weights: Any, axis: Any, shuffle: bool
    ) -> Any:
        """NumPy's choice, which makes all of a range where nothing is put back, and much is taken."""
        if replace and shape is not None and may_be_long(shape):
            self._numpy.choice(n, 0, True, weights)  # its errors
            return (
                places_by(weights, self.random, shape) if weights is not None else self.integers(0, n, shape)
            )
        if isinstance(n, int | np.integer) and shape is not None and weights is None and not replace:
            draw = partial(self._numpy.integers, 0, endpoint=True)
            found = long_choice(draw, int(n), prod(shape), bool(shuffle))
            if found is not None:
                return found.reshape(shape)
        return self._numpy.choice(n, shape, replace, weights, axis, shuffle)

    @chosen_by(_NumPys.permutation, 2)
    def permutation(self, x: Any, axis: int = 0) -> ndarray:
        """A shuffled copy (or a shuffled range)."""
        if isinstance(x, np.ndarray) and is_subclass(x):
            return self._numpy.permutation(x, axis)  # type: ignore[return-value]
        n = as_count(x)
        if isinstance(n, int | np.integer):
            if self._in_parallel((int(n),)):
                return sorting.argsort(self.random(int(n)))
            order = long_order(self._numpy.shuffle, int(n))
            return wrap(self._numpy.permutation(n) if order is None else order)
        a = as_handle(x)
        where = build.axis_index(axis, a.ndim)
        value = a._peek()
        if value is not None and is_copied(value.nbytes) and not self._in_parallel(a.shape):
            return wrap(self._numpy.permutation(value, axis=where))
        return a[(*(slice(None),) * where, self._order(a, where))]  # type: ignore[no-any-return]

    @chosen_by(_NumPys.permuted, 2, "axis")
    def permuted(self, x: Any, *, axis: Any = None, out: Any = None) -> ndarray:
        """A copy whose lines are shuffled one by one."""
        if isinstance(x, np.ndarray) and is_subclass(x):
            result = wrap(self._numpy.permuted(x, axis=axis))
        else:
            result = self._permuted(as_handle(x), axis)
        return stored("permuted", result, out)

    def _permuted(self, a: Handle, axis: Any) -> ndarray:
        """Lines in an order each; what memory has no room for is looked up by its places."""
        if is_copied(a.nbytes) or a.dtype.hasobject or not a.ndim:
            return wrap(self._numpy.permuted(forced(a), axis=axis))
        if axis is None:
            line = manipulation.ravel(a)
            return line[self._order(line, 0)].reshape(a.shape)  # type: ignore[no-any-return]
        where = build.axis_index(axis, a.ndim)
        places = wrap(long_orders(self._numpy.permuted, a.shape, where))
        return taking.take_along_axis(a, places, where)

    @shuffled_by(_NumPys.shuffle)
    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle in place along an axis."""
        if not isinstance(x, Handle):
            shuffle_other(self._numpy, x, *(() if axis == 0 else (axis,)))
            return
        here = few_to_write(x)
        where = build.axis_index(axis, x.ndim)
        if here is not None and not self._in_parallel((x.shape[where],)):
            self._numpy.shuffle(here, where)
            return
        x[...] = x[(*(slice(None),) * where, self._order(x, where))]  # type: ignore[index]

    def _order(self, a: Handle, axis: int) -> Any:
        """The order NumPy's shuffle gives along an axis; unseeded, that of numbers drawn in parallel.

        NumPy shuffles one-dimensional arrays and sub-arrays with different draws: an object array of
        one axis or a plain array of two goes the same way as the array in question.
        """
        n = a.shape[axis]
        if self._in_parallel((n,)):
            return sorting.argsort(self.random(n))
        columns = 0 if a.ndim == 1 else 2
        order: Any = long_order(self._numpy.shuffle, n, columns)
        if order is not None:
            return wrap(order[:, 0] if columns else order)
        order = np.repeat(np.arange(n)[:, None], 2, axis=1) if columns else np.arange(n)
        self._numpy.shuffle(order)
        return order[:, 0] if columns else order


def _restored(bit_generator: Any) -> Generator:
    """An unpickled generator; from NumPy's old pickles, over a bit generator of that name."""
    named = isinstance(bit_generator, str)
    made = Generator(getattr(np.random, bit_generator)() if named else bit_generator)
    made._blocks = None
    return made


_COLUMNS = 64
"""Parameters of a distribution of vectors up to which its columns are drawn one by one."""


def default_rng(seed: Any = None) -> Generator:
    """A generator; with a seed it gives NumPy's own numbers."""
    if issubclass(type(seed), Generator):
        return seed  # type: ignore[no-any-return]
    if isinstance(seed, np.random.Generator):
        return Generator(seed.bit_generator)
    if isinstance(seed, np.random.RandomState):
        return Generator(seed._bit_generator)
    return Generator(np.random.default_rng(forced(seed)).bit_generator, seed is not None)
