"""Universal functions of arrays whose lines are short, where an operand is stretched along or across them:
several lines are one to NumPy's loop, for which operands are gathered. The bits are NumPy's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.sampling import Some

OPERANDS = {
    "lines": lambda n, m, made: made((n, m)),
    "a column": lambda n, m, made: made((n, 1)),
    "a row": lambda n, m, made: made((m,)),
    "one number": lambda n, m, made: made((1, 1)),
    "every second of a line": lambda n, m, made: made((n, 2 * m))[:, ::2],
    "every second line": lambda n, m, made: made((2 * n, m))[::2],
    "backwards": lambda n, m, made: made((n, m))[:, ::-1],
    "lines backwards": lambda n, m, made: made((n, m))[::-1],
    "turned": lambda n, m, made: made((m, n)).T,
    "a turned column": lambda n, m, made: made((3, n)).T[:, 1:2],
    "a part of longer lines": lambda n, m, made: made((n, m + 3))[:, 1:-2],
    "of three axes": lambda n, m, made: made((2, n, m)),
    "a column of three axes": lambda n, m, made: made((2, 1, m)),
    "a matrix of three axes": lambda n, m, made: made((2, n, 1)),
}
PAIRS = [(a, b) for a, b in product(OPERANDS, OPERANDS) if not a == b == "lines"]
FUNCTIONS = {
    "fi": ("add", "subtract", "multiply", "maximum", "less", "equal"),
    "f": ("divide", "power", "arctan2", "hypot", "floor_divide"),
    "i": ("bitwise_and", "left_shift"),
    "b": ("logical_and", "logical_or", "bitwise_xor"),
    "c": ("add", "multiply", "divide"),
}
KINDS = ("f8", "f4", "i8", "i4", "i2", "u1", "b", "c8", "c16")
WRITES = (
    *("a += b", "np.multiply(a, b, out=a)", "np.maximum(b, a, out=c)", "c[:, :] = a - b"),
    *("w[:, :m] = a - b", "w[:, 1::2] = a * 2 - b", "w[:, -m:] *= b", "np.add(a, b, out=w[:, 1 : m + 1])"),
    *("w[:, 1::2] += b - 1", "w[:, :m] = b - w[:, :m]", "w[1:, :m] = a[1:] * 2", "t[:, 0, :m] = a + b"),
)
OVERLAPPING = ("a[:, ::2] *= b[:, :1]", "a *= a[:, :1]", "a += a[:1]", "a.T[...] += b.T", "a[1:] -= a[:-1]")
SIZES = [(5, 3), (700, 2), (6000, 3), (2000, 17), (900, 64), (500, 65), (40, 1), (9000, 2)]


@pytest.fixture(autouse=True)
def _numpys_loops() -> Iterator[None]:
    """A kernel for an expression that comes again may round in another way, whenever it has been compiled."""
    with np.config.override(kernels="interpret"):
        yield


def maker(kind: str, seed: int) -> Any:
    random = numpy.random.default_rng(seed)

    def made(shape: tuple[int, ...]) -> Any:
        if kind == "b":
            return random.random(shape) < 0.5
        if kind[0] in "iu":
            return random.integers(1, 7, shape).astype(kind)
        found = random.standard_normal(shape).astype(kind)
        found.flat[0] = numpy.nan
        found.flat[-1] = -0.0
        return found

    return made


def functions(kind: str) -> list[str]:
    letter = {"u": "i"}.get(kind[0], kind[0])
    return [name for letters, names in FUNCTIONS.items() if letter in letters for name in names]


def same(ours: Any, theirs: Any, case: Any) -> None:
    found = numpy.asarray(ours)
    assert (found.dtype, found.shape, found.strides) == (theirs.dtype, theirs.shape, theirs.strides), case
    assert found.tobytes() == theirs.tobytes(), case


@pytest.mark.some(24)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_bits_are_numpys(one: str, other: str, some: Some) -> None:
    for kind, (n, m) in some(list(product(KINDS, SIZES)), 9):
        a, b = (OPERANDS[k](n, m, maker(kind, i)) for i, k in enumerate((one, other)))
        for name in some(functions(kind), 3):
            with numpy.errstate(all="ignore"):
                expected = getattr(numpy, name)(a, b)
                found = getattr(np, name)(np.asarray(a), np.asarray(b))
            same(found, expected, (name, kind, n, m))


@pytest.mark.some(16)
@pytest.mark.parametrize("other", [k for k in OPERANDS if "three" not in k])
@pytest.mark.parametrize("form", WRITES)
def test_results_are_written_where_they_belong(form: str, other: str) -> None:
    for kind, (n, m) in product(("f8", "f4", "i4", "c16"), SIZES):
        if kind == "c16" and "maximum" in form:
            continue
        results = []
        for namespace in (np, numpy):
            made = maker(kind, 4)
            names: dict[str, Any] = {"np": namespace, "a": namespace.array(made((n, m)))}
            names["b"] = namespace.asarray(OPERANDS[other](n, m, made))
            names["c"], names["w"] = (namespace.array(made((n, length))) for length in (m, 2 * m + 1))
            names["t"], names["m"] = namespace.array(made((n, 2, m + 1))), m
            exec(form, names)
            results.append([numpy.asarray(names[k]) for k in "acwt"])
        for ours, theirs in zip(*results, strict=True):
            same(ours, theirs, (form, other, kind, n, m))


@pytest.mark.parametrize("form", OVERLAPPING)
def test_places_that_overlap_or_lie_apart(form: str) -> None:
    for n, m in SIZES:
        results = []
        for namespace in (np, numpy):
            made = maker("f8", 2)
            names: dict[str, Any] = {"a": namespace.array(made((n, m))), "b": namespace.array(made((n, m)))}
            exec(form, names)
            results.append(numpy.asarray(names["a"]))
        same(results[0], results[1], (form, n, m))


@pytest.mark.parametrize("n", [6, 6000])
def test_errors_of_floating_point_numbers_are_told(n: int) -> None:
    lines, column = np.ones((n, 3)), np.ones((n, 1))
    column[n // 2] = 0.0
    with numpy.errstate(divide="raise"), pytest.raises(FloatingPointError):
        lines / column
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        lines / column


CHAINS = (
    "np.exp(-((a - b) ** 2) / 1800.0)",
    "0.25 * (a + b) - a * b + (b - 0.5)",
    "np.float64(0.7) * np.sqrt(abs(a - b)) + 1",
    "np.where(a > b, a - b, b * 2) - 1",
)


@pytest.mark.parametrize("m", [65, 158, 300, 1000, 2000])
@pytest.mark.parametrize("form", CHAINS)
def test_lines_of_parts_in_expressions_of_several(form: str, m: int) -> None:
    """Longer ones are put together where there are more loops to call for each."""
    wanted = ("lines", "every second of a line", "every second line", "backwards", "a part of longer lines")
    for kind, other in product(("f8", "f4"), wanted):
        results = []
        for namespace in (np, numpy):
            made = maker(kind, 5)
            names: dict[str, Any] = {
                "np": namespace,
                "a": namespace.asarray(OPERANDS[wanted[4]](40, m, made)),
            }
            names["b"] = namespace.asarray(OPERANDS[other](40, m, made))
            results.append(numpy.asarray(eval(form, names)))
        same(results[0], results[1], (form, kind, other, m))


STACKED = (
    "v[:, :, None] * v[:, None, :]",
    "s[:, None, None] * v[:, :, None] * v[:, None, :]",
    "np.maximum(v[:, :, None], v[:, None, :]) - 1",
    "(v[:, :, None] - v[:, None, :]) ** 2 * s[:, None, None] + m",
    "m * v[:, None, :] + v[:, :, None] * 2",
    "np.where(m > 0, v[:, :, None], v[:, None, :]) * m",
    "m / (v[:, :, None] + 2) > m",
    "m * m - v[0] * s[:, None, None]",
)


@pytest.mark.parametrize("size", [(50, 2), (1000, 3), (700, 5), (3000, 2), (400, 6), (200, 9)])
@pytest.mark.parametrize("form", STACKED)
def test_lines_of_small_matrices_are_stretched(form: str, size: tuple[int, int]) -> None:
    n, k = size
    for kind in ("f8", "f4", "i4", "c16"):
        results = []
        for namespace in (np, numpy):
            made = maker(kind, 7)
            names: dict[str, Any] = {"np": namespace, "v": namespace.asarray(made((n, k)))}
            names |= {"s": namespace.asarray(made((n, 1))[:, 0]), "m": namespace.asarray(made((n, k, k)))}
            with numpy.errstate(all="ignore"):
                results.append(numpy.asarray(eval(form, names)))
        same(results[0], results[1], (form, kind, size))
