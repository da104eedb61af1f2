"""Operators of many small blocks, cut out of larger ones along several axes: lines of more than one block are
put together, read and written. The bits are NumPy's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.api.test_short_lines import CHAINS, KINDS, functions, maker, same
from tests.sampling import Some

OPERANDS = {
    "whole": lambda k, r, c, made: made((k, r, c)),
    "cut": lambda k, r, c, made: made((k, r + 2, c + 3))[:, 1:-1, :-3],
    "cut along lines": lambda k, r, c, made: made((k, r, c + 1))[..., 1:],
    "every second block": lambda k, r, c, made: made((2 * k, r, c))[::2],
    "every second of each": lambda k, r, c, made: made((k, 2 * r, 2 * c))[:, ::2, ::2],
    "backwards": lambda k, r, c, made: made((k, r, c))[::-1, ::-1, ::-1],
    "turned": lambda k, r, c, made: made((c, r, k)).T,
    "turned blocks": lambda k, r, c, made: made((k, c, r)).swapaxes(1, 2),
    "a number for each": lambda k, r, c, made: made((k, 1, 1)),
    "one for all": lambda k, r, c, made: made((r, c)),
    "a column of each": lambda k, r, c, made: made((k, r, c))[..., :1],
    "a line of each": lambda k, r, c, made: made((k, r + 1, c))[:, :1],
    "of four axes": lambda k, r, c, made: made((2, k, r + 1, c + 1))[..., 1:, :-1],
}
SIZES = [
    (1, 3, 4),
    (2, 2, 2),
    (300, 3, 4),
    (7000, 2, 3),
    (900, 1, 5),
    (900, 5, 1),
    (400, 7, 9),
    (30, 60, 3),
    (90, 3, 40),
]
WRITES = (
    *("w[:, 1:-1, :-1] = a + b", "w[:, 1:-1, 1:] += b", "np.multiply(a, b, out=w[:, :-2, :-1])", "a *= b"),
    *("w[:, ::2][:, :r, :-1] = a - b", "w[:, 1:-1, :-1] -= w[:, 1:-1, :-1] * 2", "np.add(b, a, out=a)"),
    *(
        "w[:, :-1, :-1] += w[:, 1:, 1:]",
        "w[:, 1:, :-1] *= w[:, :-1, :-1]",
        "w[:, :r, ::-1][..., 1:] = a * b - a",
    ),
)


@pytest.fixture(autouse=True)
def _numpys_loops() -> Iterator[None]:
    """A kernel for an expression that comes again may round in another way, whenever it has been compiled."""
    with np.config.override(kernels="interpret"):
        yield


@pytest.mark.some(40)
@pytest.mark.parametrize(("one", "other"), list(product(OPERANDS, OPERANDS)))
def test_bits_are_numpys(one: str, other: str, some: Some) -> None:
    for kind, (k, r, c) in some(list(product(KINDS, SIZES)), 9):
        a, b = (OPERANDS[name](k, r, c, maker(kind, i)) for i, name in enumerate((one, other)))
        for name in some(functions(kind), 3):
            with numpy.errstate(all="ignore"):
                expected = getattr(numpy, name)(a, b)
                found = getattr(np, name)(np.asarray(a), np.asarray(b))
            same(found, expected, (name, kind, k, r, c))


@pytest.mark.some(40)
@pytest.mark.parametrize("other", [name for name in OPERANDS if "four" not in name])
@pytest.mark.parametrize("form", WRITES)
def test_results_are_written_where_they_belong(form: str, other: str) -> None:
    for kind, (k, r, c) in product(("f8", "f4", "u1", "c16"), SIZES):
        results = []
        for namespace in (np, numpy):
            made = maker(kind, 4)
            names: dict[str, Any] = {"np": namespace, "a": namespace.array(made((k, r, c))), "r": r}
            names["b"] = namespace.asarray(OPERANDS[other](k, r, c, made))
            rows = 2 * r if "::2" in form else r + 2
            names["w"] = namespace.array(made((k, rows, c + 1)))
            exec(form, names)
            results.append([numpy.asarray(names[name]) for name in "aw"])
        for ours, theirs in zip(*results, strict=True):
            same(ours, theirs, (form, other, kind, k, r, c))


@pytest.mark.parametrize("one", [name for name in OPERANDS if "four" not in name])
@pytest.mark.parametrize("form", CHAINS)
def test_expressions_of_several_operators(form: str, one: str) -> None:
    for k, r, c in SIZES:
        results = []
        for namespace in (np, numpy):
            made = maker("f8", 5)
            a = namespace.asarray(OPERANDS[one](k, r, c, made))
            b = namespace.asarray(OPERANDS["cut"](k, r, c, made))
            with numpy.errstate(all="ignore"):
                results.append(eval(form, {"np": namespace, "a": a, "b": b}))
        same(results[0], results[1], (form, one, k, r, c))
