"""Expressions that come again and again have the bits that NumPy's loops make, and tell of the same errors,
once one loop is compiled for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng import config, recurring
from spartan_ng.api.core import quick
from spartan_ng.errors import KernelWarning
from spartan_ng.kernels.compiled.recurring import loop_source
from tests.fuzz.expressions import PROVEN, compiling

pytestmark = pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled")

Asked = list[tuple[tuple[Any, ...], int, int]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """What kernels are asked for, whether they are said to be wrong, and what the answer is."""
    every: Asked = []
    answer = recurring._address_of

    def told(expression: tuple[Any, ...], done: float, is_wrong: int) -> int:
        found = answer(expression, done, is_wrong)
        every.append((expression, is_wrong, found))
        return found

    monkeypatch.setattr(recurring, "_address_of", told)
    with compiling():
        yield every


def _given(dtype: str, shape: tuple[int, ...] = (70, 80)) -> dict[str, Any]:
    random = numpy.random.default_rng(0)
    made: dict[str, Any] = {name: (random.normal(size=shape) * 9).astype(dtype) for name in "abc"}
    made["a"].flat[::7] = 0
    made["row"], made["column"] = made["a"][0].copy(), made["b"][:, :1].copy()
    made["mask"] = random.random(shape) < 0.5
    return made


def _both(text: str, dtype: str = "f8", times: int = PROVEN) -> None:
    """Statements of a function do the same with both modules, however often they have run; `a` is given."""
    told: dict[Any, list[Any]] = {}
    found: dict[Any, list[Any]] = {}
    body = "\n    ".join(["def run(np, a, b, c, row, column, mask, s):", *text.split("; "), "return a"])
    space: dict[str, Any] = {}
    exec(body, space)
    for module in (numpy, np):
        found[module] = []
        with warnings.catch_warnings(record=True) as told[module]:
            warnings.simplefilter("always")
            for _ in range(times):
                given = {name: module.array(x) for name, x in _given(dtype).items()}
                value = numpy.asarray(space["run"](module, **given, s=0.25))
                found[module].append((value.dtype, value.shape, value.tobytes()))
    assert found[np] == found[numpy], text
    assert [str(w.message) for w in told[np]] == [str(w.message) for w in told[numpy]], text


REALS = (
    "a = a * 2 + b",
    "a = (a - b) / (c * c + 1) * s",
    "a[1:-1, 1:-1] = .25 * (b[2:, 1:-1] + b[:-2, 1:-1] + b[1:-1, 2:] + b[1:-1, :-2])",
    "a[1:-1, 1:-1] = .25 * (a[1:-1, 1:-1] + b[:-2, 1:-1] - c[1:-1, 2:])",
    "a += b * c - s",
    "a -= (b - c) * (c + s)",
    "a[:, ::2] = a[:, ::2] * 2 - b[:, 1::2]",
    "a = a[:, ::2] * b[:, ::2] + c[:, 1::2]",
    "a = a * row + column",
    "a = (a * column - row) * b",
    "a = np.sqrt(abs(a)) + np.square(b) - (-c)",
    "a = np.where(a > b, a - b, b * 2)",
    "a = np.where(mask, a * b, c - 1)",
    "a = np.maximum(a, b) - np.minimum(b + 1, c)",
    "a = (a < b) & (b <= c) | mask",
    "a = (a == b) ^ (b != c)",
    "a = a * mask + b * (a > 0)",
    "a = np.floor(a * 3) + np.ceil(b) - np.rint(c * s)",
    "a = (a * 1 + b).reshape(-1)[5:] * 2 + 1",
    "a = s / (2 * s) * (a - b) + c * (s + 1)",
    "a = np.negative(a) * 2 + np.absolute(b - c)",
)
WHOLE = (
    "a = a * 2 + b",
    "a = (a - b) * c - 1",
    "a = (a & b) | (c ^ 3)",
    "a = a * 1.5 + b",
    "a = np.where(a > b, a - b, b * 2)",
    "a[1:-1, 1:-1] = b[2:, 1:-1] + b[:-2, 1:-1] - a[1:-1, 1:-1]",
)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("text", REALS)
def test_floats(text: str, dtype: str, asked: Asked) -> None:
    _both(text, dtype)
    assert any(address > 0 for _, _, address in asked), "nothing was compiled"
    assert not any(is_wrong for _, is_wrong, _ in asked)


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1"])
@pytest.mark.parametrize("text", WHOLE)
def test_integers(text: str, dtype: str, asked: Asked) -> None:
    _both(text, dtype)
    assert not any(is_wrong for _, is_wrong, _ in asked)


@pytest.mark.parametrize(
    "text",
    [
        "a = (b + 1) / (a * 0) - c",
        "a = np.sqrt(a * 2) + b",
        "a = a * 1e200 * 1e200 - b",
        "a = (a - a) / (b - b) * c",
        "a /= (a * 2) - b * 0",
        "a[1:-1] = 1 / a[1:-1] + b[2:]",
        "b[5, 5] = np.nan; a = np.where(a < b, a * 2, b + 1)",
        "w = b; a = np.less(np.sqrt(a), (b > 0) ^ (w > 0)) * 2",
        "a = (np.sqrt(a) > 0) ^ (np.sqrt(a) > 0) | mask",
        "a = np.where(1 / a > b, c, c) + 1",
    ],
)
def test_errors_are_told_by_who_makes_them(text: str, asked: Asked) -> None:
    _both(text, times=PROVEN + 10)  # until nobody tries any more


@pytest.mark.parametrize(
    "text",
    [
        "a[...] = a * 2 / (b * 0 + 0)",
        "a[1:] = a[1:] * 2 / (b[1:] * 0)",
        "a += 1 / (b * 0)",
        "a /= b * 0",
        "a[2:] /= b[2:] * 0",
    ],
)
@pytest.mark.parametrize("how", ["raise", "warn"])
def test_an_error_that_is_raised_comes_before_what_is_written(text: str, how: str, asked: Asked) -> None:
    """All but in-place operators' own."""
    space: dict[str, Any] = {}
    exec(f"def run(a, b):\n    {text}", space)
    left = []
    for module in (numpy, np):
        for _ in range(PROVEN):
            x, y = module.full((60, 70), 3.0), module.ones((60, 70))
            with module.errstate(divide=how), warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(FloatingPointError if how == "raise" else RuntimeWarning):
                    space["run"](x, y)
        left.append(numpy.asarray(x).tolist())
    assert left[0] == left[1]


def test_a_kernel_that_makes_other_bits_is_told_of_and_not_used(
    monkeypatch: pytest.MonkeyPatch, asked: Asked
) -> None:
    from spartan_ng.kernels.compiled import recurring as sources

    own = sources.loop_source

    def other(*expression: Any) -> str | None:
        source = own(*expression)
        return None if source is None else source.replace("x0 * x1", "x0 * (x1 + x1)")

    monkeypatch.setattr(sources, "loop_source", other)
    monkeypatch.setattr(recurring, "_kernels", {})
    a, b = (numpy.random.default_rng(k).random((50, 90)) for k in range(2))
    x, y = np.array(a), np.array(b)

    def run() -> None:
        for _ in range(PROVEN):
            z = x * y - 1.75
            assert (numpy.asarray(z) == a * b - 1.75).all()

    with pytest.warns(KernelWarning, match="multiply > subtract"):
        run()
    assert [is_wrong for _, is_wrong, _ in asked] == [0, 1]


@pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
def test_what_a_signal_s_handler_raises_while_a_kernel_is_asked_for_is_not_lost(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the expression goes on being asked for."""
    answers: list[int] = []

    def answer(expression: tuple[Any, ...], done: float, is_wrong: int) -> int:
        answers.append(0)
        if len(answers) == 1:
            raise error
        return 0

    monkeypatch.setattr(recurring, "_address_of", answer)
    a, raised = np.ones(5000), 0
    with compiling():
        for _ in range(4 * PROVEN):
            try:
                b = a * 3.25 + 1
            except error:
                raised += 1
            else:
                assert float(b[0]) == 4.25
    assert raised == 1
    assert len(answers) > 1


def test_nothing_is_compiled_where_nothing_is_to_be(asked: Asked) -> None:
    a = np.ones(5000)

    def run() -> None:
        for _ in range(PROVEN):
            b = a * 3.5 + 1
            assert float(b.sum()) == 22500.0

    with config.override(kernels="interpret"):
        run()
    assert not asked
    run()
    assert len(asked) == 1


def _functions(run: Callable[[], Any], asked: Asked) -> list[int]:
    """How many functions the expressions have that a program asks kernels for."""
    run()
    return sorted(len(expression[0]) for expression, *_ in asked)


def test_expressions_beside_numbers_are_one(asked: Asked) -> None:
    a, b, c = (np.array(numpy.random.default_rng(k).random((50, 90))) for k in range(3))
    dt, dx, n = 0.1, 0.2, 3

    def run() -> None:
        a[1:-1] = (
            b[1:-1]
            - dt / (2 * dx) * (b[2:] - b[:-2])
            + n**2 * dx * (dt / dx * (c[2:] - 2 * c[1:-1] + c[:-2]))
        )

    assert _functions(run, asked) == [9]


def test_an_object_s_result_beside_an_expression_is_its_own(asked: Asked) -> None:
    class Scale:
        __array_ufunc__ = None

        def __mul__(self, other: Any) -> Any:
            return self

        def __rmul__(self, other: Any) -> Any:
            return self

    a, k = np.ones(5000), Scale()
    seen = k * 2 * (a - 1)
    assert seen is k


@pytest.mark.parametrize("function", ["exp", "sin", "power", "arctan2"])
def test_what_has_other_bits_has_no_source(function: str) -> None:
    double = numpy.dtype("f8")
    n = 2 if function in ("power", "arctan2") else 1
    given = (("multiply", double, (0, 1)), (function, double, (-1,) * n))
    assert loop_source(given, (double, double, double), "ccc") is None


def test_what_is_the_same_whatever_it_is_made_of_has_no_source() -> None:
    double, truth = numpy.dtype("f8"), numpy.dtype("?")
    roots = (("sqrt", double, (0,)), ("greater", truth, (-1, 1)))
    again = (("sqrt", double, (0,)), ("greater", truth, (-3, 1)))
    dtypes = (double, double, truth)
    for name in ("bitwise_xor", "not_equal", "logical_and"):
        assert loop_source((*roots, *again, (name, truth, (-2, -4))), dtypes, "ccc") is None
    opposed = (*roots, ("logical_not", truth, (-2,)), ("bitwise_and", truth, (-2, -3)))
    assert loop_source(opposed, dtypes, "ccc") is None
    assert (
        loop_source((*roots, ("bitwise_and", truth, (-2, 2))), (double, double, truth, truth), "cccc")
        is not None
    )


def test_a_number_that_is_taken_as_two_types_has_no_source() -> None:
    double, whole = numpy.dtype("f8"), numpy.dtype("i8")
    given = (
        ("add", double, (0, 1)),
        ("add", whole, (2, 1)),
        ("cast", double, (-2,)),
        ("add", double, (-1, -3)),
    )
    assert loop_source(given, (double, None, whole, double), "czcc") is None
    assert loop_source(given[:1], (double, None, double), "czc") is not None
