"""Every function's results lie in memory as NumPy's do: `ravel` and `reshape` are views or copies by it."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.core import layouts
from tests.test_programs import running_on

X = numpy.random.default_rng(0).permutation(60).reshape(3, 4, 5) / 7 + 1
TURNED: dict[str, Callable[[Any], Any]] = {
    "F": lambda x: x.T,
    "last two": lambda x: x.transpose(0, 2, 1),
    "first two": lambda x: x.transpose(1, 0, 2),
    "round": lambda x: x.transpose(1, 2, 0),
    "part": lambda x: x.T[1:, ::2],
    "backwards": lambda x: x.T[::-1],
    "made": lambda x: (x * 2).T,
    "made, last two": lambda x: (x * 2).transpose(0, 2, 1),
    "one": lambda x: x[:, :1].T,
    "first of many": lambda x: x.T[:, :1],
    "stretched": lambda x: stretched(x[:1, :, :1], 2),
    "stretched and turned": lambda x: stretched(x[:1, :, :1], 2).transpose(1, 0, 2),
    "last ones stretched": lambda x: stretched(x[:, :1, :1], 2),
    "first ones stretched": lambda x: stretched(x[:1, :1], 2),
    "middle stretched": lambda x: stretched(x[:, :1], 2),
    "none of the last": lambda x: x.T[:, :, :0],
    "none of the first": lambda x: x.T[:0],
    "made, none of the last": lambda x: (x * 2).T[:, :, :0],
    "made of none": lambda x: (x[:0] * (x[:1] * 2)).T,
    "made of none, round": lambda x: (x[:, :0] * (x[:, :1] * 2)).transpose(1, 2, 0),
    "stretched integers": lambda x: stretched(x[:1, :, :1].astype(int), 2),
    "last ones of integers stretched": lambda x: stretched(x[:, :1, :1].astype("u1"), 2),
    "none of the last, taken": lambda x: x[:, [0, -1], :0],
    "none of the first, taken": lambda x: x[:0, :, [0, -1]],
    "none of the turned, taken": lambda x: x.T[:, :0, [0, -1]],
    "made and stretched": lambda x: stretched((x * 2)[:1, :, :1], 2),
    "integers of unknown number, stretched": lambda x: stretched((x.ravel() > 7).nonzero()[0][:4], (2, 3, 4)),
}


def stretched(x: Any, to: int | tuple[int, ...]) -> Any:
    """Axes of one element that are seen `to` times, or a shape that is seen."""
    namespace = numpy if type(x) is numpy.ndarray else np
    shape = to if isinstance(to, tuple) else tuple(to if length == 1 else length for length in x.shape)
    return namespace.broadcast_to(x, shape)


FOLDS = (
    "sum prod min max mean std var median ptp any all argmin argmax count_nonzero average trapezoid "
    "nansum nanprod nanmin nanmax nanmean nanstd nanvar nanmedian nanargmin nanargmax linalg.vector_norm"
)
ALONG = (
    "sort argsort cumsum cumprod nancumsum nancumprod flip diff gradient unwrap cumulative_sum "
    "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft"
)
AXES = (0, 1, 2)


def function(np: Any, name: str) -> Any:
    for part in name.split("."):
        np = getattr(np, part)
    return np


def tables() -> Iterator[tuple[str, Callable[[Any, Any], Any]]]:
    """Names, and calls of a namespace and an array."""

    def each(names: str, choices: Any, call: Callable[[Any, Any, Any], Any], text: str = "") -> Any:
        for name, choice in itertools.product(names.split(), choices):
            yield (
                f"{name}({text}{choice})",
                lambda np, x, name=name, choice=choice: call(function(np, name), x, choice),
            )

    yield from each(f"{FOLDS} {ALONG}", AXES, lambda f, x, i: f(x, axis=i))
    some = "sum mean std var median nanmedian nanmin nanmean nanstd"
    yield from each(some, ((), (0,), (2,), (0, 1)), lambda f, x, i: f(x, axis=i))
    yield from each(some, ((), (1,), (1, 2)), lambda f, x, i: f(x, axis=i, keepdims=True), "keepdims ")
    yield from each("min max", AXES, lambda f, x, i: f(x, axis=i, where=x > 2, initial=9), "where ")
    yield from each("sum mean std var", AXES, lambda f, x, i: f(x, axis=i, where=x > 0), "where ")
    quantiles = "quantile percentile nanquantile nanpercentile"
    yield from each(quantiles, (*AXES, (0, 2)), lambda f, x, i: f(x, [0.2, 0.5], axis=i))
    yield from each(quantiles, AXES, lambda f, x, i: f(x, 0.3, axis=i, keepdims=True), "keepdims ")
    initial = "cumulative_sum cumulative_prod"
    yield from each(initial, AXES, lambda f, x, i: f(x, axis=i, include_initial=True), "initial ")
    yield from each("partition argpartition roll", AXES, lambda f, x, i: f(x, 1, axis=i))
    yield from each("take", AXES, lambda f, x, i: f(x, [0, 0], axis=i))
    yield from each("repeat", AXES, lambda f, x, i: f(x, 2, axis=i))
    yield from each("repeat", AXES, lambda f, x, i: f(x, [2] * x.shape[i], axis=i), "each ")
    yield from each("compress", AXES, lambda f, x, i: f([True] * x.shape[i], x, axis=i))
    yield from each("concatenate stack append", AXES, lambda f, x, i: f(*joined(f, x), axis=i))
    yield from each("delete", AXES, lambda f, x, i: f(x, 0, axis=i))
    yield from each("delete", AXES, lambda f, x, i: f(x, [0], axis=i), "list ")
    yield from each("delete", AXES, lambda f, x, i: f(x, slice(0, 1), axis=i), "slice ")
    yield from each("insert", AXES, lambda f, x, i: f(x, 0, 7.0, axis=i))
    yield from each("pad", ("edge", "wrap", "constant"), lambda f, x, i: f(x, 1, i))
    yield from each("tile", ((1, 1, 1), (2, 1, 1), (1, 1, 2)), lambda f, x, i: f(x, i))
    yield from each("add.reduceat minimum.reduceat", AXES, lambda f, x, i: f(x, [0, 0, 0], axis=i))
    yield from each("add.reduceat", AXES, lambda f, x, i: f(x, [0] * 20, axis=i), "many ")
    yield from each("fft.fft2 fft.ifftn fft.rfftn", ((0, 1), (1, 2)), lambda f, x, i: f(x, axes=i))
    yield from CALLS.items()


def joined(f: Any, x: Any) -> Any:
    return (x, x) if f.__name__ == "append" else ([x, x],)


def three(x: Any) -> Any:
    return x[..., :1] * numpy.arange(1.0, 4.0)


def whole(x: Any) -> Any:
    return x.astype(int)


def of_bytes(x: Any) -> Any:
    return (x > 3).astype("u1")


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "nan_to_num": lambda np, x: np.nan_to_num(x),
    "nan_to_num by other numbers": lambda np, x: [np.nan_to_num(x, nan=2.5), np.nan_to_num(x, neginf=[0.0])],
    "round to one": lambda np, x: np.round(x, 1),
    "round to tens": lambda np, x: [np.round(x, -1), x.round(-1), np.round(x.astype(int), -1)],
    "round": lambda np, x: [np.round(x), np.round(x.astype(int), 1), np.round(x.astype(int)), x.round(0)],
    "where": lambda np, x: np.where(x > 2, x, 0),
    "clip": lambda np, x: np.clip(x, 1, 3),
    "copies": lambda np, x: [
        *(x.copy(o) for o in "CFAK"),
        np.copy(x),
        *(np.array(x, order=o) for o in "CFAK"),
    ],
    "copies of masks": lambda np, x: [x[(x > 0).all(axis=(1, 2))].copy(o) for o in "CFAK"],
    "methods": lambda np, x: [
        x.byteswap(),
        x.conj(),
        x.clip(1, 2),
        x.round(),
        x.round(1),
        x.repeat(2, 1),
        +x,
    ],
    "sorting methods": lambda np, x: [x.argsort(0), x.argpartition(0, axis=1), x.argmax(0), x.cumsum(1)],
    "in other orders": lambda np, x: [x.astype("f4", order=o) for o in "CFAK"],
    "universal functions' orders": lambda np, x: [np.add(x, 1, order=o) for o in "CFAK"],
    "sinc": lambda np, x: np.sinc(x),
    "angle": lambda np, x: np.angle(x * 1j),
    "parts": lambda np, x: [np.imag(x), np.imag(x * 1j), np.real(x * 1j)],
    "i0": lambda np, x: np.i0(x),
    "isclose": lambda np, x: [
        *(np.isclose(y, 2) for y in (x, whole(x), x > 2)),
        *(np.isclose(x, y) for y in (x, whole(x), x > 2, x * 1j, x[:, :1])),
        np.isclose(x, x),
        np.isclose(whole(x), whole(x)),
    ],
    "rounded complex": lambda np, x: [np.round(x * 1j), np.round(x * 1j, 1), np.round(x * 1j, -1)],
    "folds of whole numbers": lambda np, x: [
        f(whole(x), axis=i, keepdims=k) for f in (np.sum, np.any) for i in (0, 1, (0, 2)) for k in (0, 1)
    ],
    "like": lambda np, x: [np.ones_like(x), np.full_like(x, 3, dtype="i4"), np.zeros_like(x, order="A")],
    "like, of a shape": lambda np, x: [np.zeros_like(x, shape=(3, 3, 3)), np.zeros_like(x, shape=(3, 3))],
    "two of one": lambda np, x: [*np.modf(x), *np.frexp(x), *np.divmod(x, 2)],
    "piecewise": lambda np, x: np.piecewise(x, [x > 2, x < 1], [1, lambda v: v * 2]),
    "select": lambda np, x: np.select([x > 2, x < 1], [x, x * 2], 5),
    "digitize": lambda np, x: np.digitize(x, [1, 2, 3]),
    "searchsorted": lambda np, x: np.searchsorted([1.0, 2.0, 3.0], x),
    "interp": lambda np, x: np.interp(x, [1.0, 2.0, 3.0], [3.0, 4.0, 1.0]),
    "triangles": lambda np, x: [np.triu(x), np.tril(x, 1)],
    "vectorize": lambda np, x: np.vectorize(lambda v: v * 2)(x),
    "frompyfunc": lambda np, x: np.frompyfunc(lambda v: v * 2, 1, 1)(x),
    "isin": lambda np, x: np.isin(x, [1.0, 2.0]),
    "polyval": lambda np, x: np.polyval([1, 2, 3], x),
    "apply_along_axis": lambda np, x: np.apply_along_axis(lambda v: v * 2, 0, x),
    "apply_along_axis to numbers": lambda np, x: np.apply_along_axis(lambda v: v.sum(), 1, x),
    "apply_over_axes": lambda np, x: np.apply_over_axes(np.sum, x, [0]),
    "svdvals": lambda np, x: np.linalg.svdvals(x),
    "norms": lambda np, x: [np.linalg.norm(x, axis=1, keepdims=True, ord=1), np.linalg.norm(x, axis=(0, 1))],
    "traces": lambda np, x: [np.trace(x), np.diagonal(x)],
    "progressions": lambda np, x: [
        np.linspace(x, 7, 3),
        np.linspace(x, 7, 3, axis=1),
        np.geomspace(x, 7, 3),
        np.logspace(x, 7, 3),
    ],
    "atleast_3d": lambda np, x: np.atleast_3d(x[0]),
    "block": lambda np, x: np.block([x, x]),
    "stacks": lambda np, x: [np.vstack([x, x]), np.hstack([x, x]), np.dstack([x, x])],
    "choose": lambda np, x: [np.choose((x > 2) * 1, [x, x * 2]), np.choose((x > 2) * 1, [1, 2])],
    "argwhere": lambda np, x: np.argwhere(x > 2),
    "tensordot": lambda np, x: np.tensordot(x, x, (0, 0)),
    "kron": lambda np, x: np.kron(x, x),
    "matmul": lambda np, x: x @ x.swapaxes(1, 2),
    "inner": lambda np, x: np.inner(x, x),
    "outer": lambda np, x: [np.outer(x, x), np.add.outer(x[0], x[0])],
    "einsum": lambda np, x: [np.einsum("ijk->kij", x) * 1, np.einsum("ijk,ijk->ik", x, x)],
    "folding einsum": lambda np, x: np.einsum("ijk->ki", x),
    "masks": lambda np, x: [x[np.arange(x.shape[0]) % 2 == 0], x[:, np.arange(x.shape[1]) >= 0]],
    "maps of masked ones": lambda np, x: [
        f(x[mask])
        for mask in (np.arange(x.shape[0]) % 2 == 0, (x > 0).all(axis=(1, 2)))
        for f in (lambda y: y * 2, lambda y: np.divide(y, np.float32(0.5)) + y, np.sin, lambda y: y > 1)
    ],
    "cross": lambda np, x: [
        np.cross(three(x), three(x) + 1),
        np.linalg.cross(three(x), three(x)),
        np.cross(three(x), three(x) + 1, axisc=0),
        np.cross(three(x)[..., :2], three(x)[..., 1:]),
    ],
    "a mask of results": lambda np, x: x[(x > 0).all(axis=(1, 2))],
    "index arrays": lambda np, x: [
        x[[0, 0]],
        x[:, [0, 0]],
        x[[0, 0], :, [0, 0]],
        x[..., [0]],
        x[:, [[0], [0]]],
    ],
    "astype": lambda np, x: [x.astype("f4"), x.astype(x.dtype), np.astype(x, "f4"), np.astype(x, x.dtype)],
    "view": lambda np, x: x.copy("K").view("i8"),
    "reshape": lambda np, x: [x.reshape(x.shape[0], -1), x.reshape(x.shape[0], -1, order="F")],
    "broadcast": lambda np, x: [x[:, None] + 1, x + np.arange(float(x.shape[2])), x[:, :, 0][..., None] + x],
    "stretched": lambda np, x: np.broadcast_to(x[:1], x.shape) * 2,
    "accumulate": lambda np, x: np.add.accumulate(x, 2),
    "permuted": lambda np, x: np.random.default_rng(1).permuted(x, axis=1),
    "permutation": lambda np, x: np.random.default_rng(1).permutation(x, axis=1),
    "choice": lambda np, x: np.random.default_rng(1).choice(x, 2, axis=1),
    "windows": lambda np, x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=2) * 2,
    "resize": lambda np, x: np.resize(x, (2, 3)),
    "asked for": lambda np, x: [
        np.require(x, "f4", ["F"]),
        np.asfortranarray(x * 2),
        np.ascontiguousarray(x),
    ],
    "solve": lambda np, x: np.linalg.solve(np.eye(x.shape[1]) * 2, x),
    "qr": lambda np, x: np.linalg.qr(x)[0],
    "svd": lambda np, x: np.linalg.svd(x)[2],
    "powers": lambda np, x: [np.linalg.matrix_power(x[:, :1, :1], n) for n in (0, 1, 2)],
    "powers of a matrix": lambda np, x: [np.linalg.matrix_power(x[:3, :3, 0], n) for n in (0, 1, 2)],
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.argsort(x, 1), 1),
    "lexsort": lambda np, x: np.lexsort((x, x), axis=0),
    "roll all": lambda np, x: [np.roll(x, 1), np.roll(x, (1, 1), (0, 1))],
    "diagonals": lambda np, x: [
        x.diagonal(0, a, b) * 2 for a, b in ((0, 1), (1, 0), (0, 2), (2, 1), (-1, 0))
    ],
    "reshaped": lambda np, x: [
        x.reshape(*x.shape[:2], -1, 1) * 2,
        x.reshape(1, *x.shape) * 2,
        x[..., None] * 2,
    ],
    "moved axes": lambda np, x: [np.moveaxis(x, 0, -1) * 2, np.rollaxis(x, 2) * 2, np.rot90(x) * 2],
    "bits": lambda np, x: [f(of_bytes(x), axis=i) for f in (np.packbits, np.unpackbits) for i in AXES],
    "ldexp": lambda np, x: np.ldexp(x, 2),
    "vecdot": lambda np, x: np.vecdot(x, x) if x.size else [],  # of nothing: only NumPy's goes by its strides
}
ALL = dict(tables())


def order(a: Any) -> list[int]:
    """The axes from the longest stride to the shortest; those of one element have none."""
    return sorted((i for i, n in enumerate(a.shape) if n > 1), key=lambda i: -abs(a.strides[i]))


def arrays(result: Any) -> list[Any]:
    return [a for a in (result if isinstance(result, list | tuple) else [result]) if numpy.ndim(a) and a.size]


pytestmark = pytest.mark.filterwarnings("ignore")
CASES = list(itertools.product(TURNED, ALL))


@pytest.mark.some(150)
@pytest.mark.parametrize(("turned", "name"), CASES)
def test_results_lie_as_numpys(mode, turned, name):
    compare(turned, name)


@pytest.mark.some(60)
@pytest.mark.parametrize(("turned", "name"), CASES)
def test_results_of_workers_lie_as_numpys(turned, name):
    with running_on(SimulatedBackend(3)), np.config.override(small_bytes=0):
        compare(turned, name)


def compare(turned: str, name: str) -> None:
    wanted = None
    with suppress(
        ValueError, IndexError, ZeroDivisionError, numpy.linalg.LinAlgError
    ):  # what a shape does not have
        wanted = arrays(ALL[name](numpy, TURNED[turned](X)))
    if wanted is None:
        return
    found = arrays(ALL[name](np, TURNED[turned](np.array(X))))
    assert list(map(order, found)) == list(map(order, wanted))
    for a in found:
        numpy.asarray(a)
    assert list(map(order, found)) == list(map(order, wanted)), "once computed"


TAKING: list[Callable[..., Any]] = [
    lambda a, b=2, /, c=3: None,
    lambda a, *more, c=3: None,
    lambda a, b=2, *, c=3, **names: None,
]
ARGUMENTS: list[tuple[Any, Any, Any]] = list(
    itertools.product(
        TAKING,
        [(1,), (1, "b"), (1, "b", "c"), (1, "b", "c", "d")],
        [{}, {"c": "k"}, {"d": "k"}, {"e": 5, "c": 6}, {"b": 7}],
    )
)


def test_a_rule_is_given_the_arguments_in_the_order_of_parameters() -> None:
    """Whatever was left out, and however they were given: as `inspect` has them."""
    taken = 0
    for function, args, keywords in ARGUMENTS:
        with suppress(TypeError):
            expected = inspect.signature(function).bind(*args, **keywords)
            expected.apply_defaults()
            found = layouts._in_order(function)(*args, **keywords)
            assert found == (*expected.args, *expected.kwargs.values())
            taken += 1
    assert taken > len(ARGUMENTS) // 3
