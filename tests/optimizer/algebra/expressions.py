"""Random expressions of products, and what to compare of their answers.

Numbers are small integers, in whatever dtype, so that sums are exact in every order and answers can be
compared to the last bit; some may be infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

Run = Callable[..., Any]
"""`run(xp, leaves)`: the expression's value in a library."""
SIDES = st.sampled_from([1, 1, 2, 3, 4, 7])
DTYPES = ("f8", "f4", "c16", "i8", "i4", "i1", "?", "f2")
SPECIALS = (np.inf, -np.inf, np.nan)


@dataclass(frozen=True)
class Expression:
    """NumPy arrays, and what is made of them."""

    leaves: tuple[Any, ...]
    run: Run
    text: str

    def __repr__(self) -> str:
        return f"{self.text} of " + ", ".join(f"{a.dtype}{a.tolist()}" for a in self.leaves)


class _Drawing:
    """The leaves drawn so far, and how to draw matrices made of them."""

    def __init__(self, draw: st.DrawFn, dtype: str, special: bool) -> None:
        self.draw, self.dtype = draw, dtype
        self.leaves: list[Any] = []
        self.special = special and dtype in ("f8", "f4")

    def leaf(self, *shape: int) -> tuple[Run, str]:
        """An array of its own."""
        rng = np.random.default_rng(self.draw(st.integers(0, 2**32 - 1)))
        values = rng.integers(-2, 3, shape).astype(self.dtype)
        if self.special and values.size and self.draw(st.booleans()):
            values.flat[rng.integers(values.size)] = self.draw(st.sampled_from(SPECIALS))
        self.leaves.append(values)
        i = len(self.leaves) - 1
        return (lambda xp, leaves: leaves[i]), f"a{i}"

    def matrix(self, rows: int, columns: int, depth: int) -> tuple[Run, str]:
        """A matrix of so many rows and columns."""
        kind = self.draw(st.sampled_from("ppppctsnaf")) if depth else "l"
        if kind == "l":
            return self.leaf(rows, columns)
        if kind == "t":
            f, text = self.matrix(columns, rows, depth - 1)
            return (lambda xp, leaves: f(xp, leaves).T), f"{text}.T"
        if kind == "s":
            start, step, more = self.draw(st.tuples(st.integers(0, 2), st.sampled_from([1, 1, 2, -1]), SIDES))
            f, text = self.matrix(start + abs(step) * (rows - 1) + more, columns, depth - 1)
            key = slice(start, start + step * rows, step) if step > 0 else slice(start + rows - 1, None, -1)
            stop = slice(None, rows)
            return (lambda xp, leaves: f(xp, leaves)[key][stop]), f"{text}[{key}][:{rows}]"
        if kind in "cn":
            f, text = self.matrix(rows, columns, depth - 1)
            if kind == "c":
                return (lambda xp, leaves: 2 * f(xp, leaves)), f"(2 * {text})"
            g, number = self.leaf()
            return (lambda xp, leaves: f(xp, leaves) * g(xp, leaves)), f"({text} * {number})"
        if kind in "af":
            return self.running(rows, columns)
        inner = self.draw(SIDES)
        f, left = self.matrix(rows, inner, depth - 1)
        g, right = self.matrix(inner, columns, depth - 1)
        return (lambda xp, leaves: f(xp, leaves) @ g(xp, leaves)), f"({left} @ {right})"

    def running(self, rows: int, columns: int) -> tuple[Run, str]:
        """A scan down a leaf, or what is left of it in the end: operators that share their functions' names
        with elementwise ones."""
        name = self.draw(st.sampled_from(["add", "maximum", "minimum"] + ["multiply"] * (self.dtype != "f2")))
        f, text = self.leaf(self.draw(SIDES) if rows == 1 else rows, columns)
        of_dtype = {"dtype": self.dtype} if name in ("add", "multiply") else {}
        if rows > 1:
            return (
                lambda xp, leaves: getattr(xp, name).accumulate(f(xp, leaves), axis=0, **of_dtype),
                f"{name}.accumulate({text})",
            )
        return (
            lambda xp, leaves: getattr(xp, name).reduce(f(xp, leaves), axis=0, keepdims=True, **of_dtype),
            f"{name}.reduce({text})",
        )


_ENDS: dict[str, Run] = {
    "whole": lambda xp, m: m,
    "row": lambda xp, m: m[-1],
    "column": lambda xp, m: m[:, 0],
    "element": lambda xp, m: m[0, -1],
    "reversed": lambda xp, m: m[::-1, ::2],
    "columns": lambda xp, m: m.sum(0),
    "rows": lambda xp, m: m.sum(1, keepdims=True),
    "total": lambda xp, m: m.sum(),
    "own dtype": lambda xp, m: m.sum(0, dtype=m.dtype),
    "mean": lambda xp, m: m.mean(1),
    "trace": lambda xp, m: xp.trace(m),
    "diagonal": lambda xp, m: xp.diagonal(m, -1),
    "diagonal above": lambda xp, m: xp.trace(m, 1, dtype=m.dtype),
    "einsum": lambda xp, m: xp.einsum("ij,ij->j", m, m),
    "picked": lambda xp, m: m[xp.asarray([-1, 0, -1])],
    "masked": lambda xp, m: m[xp.asarray(np.arange(m.shape[0]) % 2 == 0)],
    "twice": lambda xp, m: m[0] + m.sum(0),
    "squared": lambda xp, m: (m.T @ m)[0],
}


@st.composite
def expressions(draw: st.DrawFn, special: bool = True, ends: str | None = None) -> Expression:
    """Products of up to eight matrices, and what is asked of them."""
    drawing = _Drawing(draw, draw(st.sampled_from(DTYPES)), special)
    rows, columns = draw(SIDES), draw(SIDES)
    f, text = drawing.matrix(rows, columns, draw(st.integers(1, 3)))
    end = ends or draw(st.sampled_from([*_ENDS, "vector", "between vectors"]))
    if end == "vector":
        g, _ = drawing.leaf(columns)
        return Expression((*drawing.leaves,), lambda xp, leaves: f(xp, leaves) @ g(xp, leaves), f"{text} @ v")
    if end == "between vectors":
        g, _ = drawing.leaf(columns)
        h, _ = drawing.leaf(rows)
        return Expression(
            (*drawing.leaves,),
            lambda xp, leaves: h(xp, leaves) @ f(xp, leaves) @ g(xp, leaves),
            f"w @ {text} @ v",
        )
    ask = _ENDS[end]
    return Expression((*drawing.leaves,), lambda xp, leaves: ask(xp, f(xp, leaves)), f"{end} of {text}")


def same(found: Any, expected: Any, strict: bool = False) -> None:
    """Compare answers: what is finite to the bit, and what is not is not in both, of whatever kind."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if not strict and expected.dtype.kind in "fc":
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(np.isfinite(found), finite)
        found, expected = found[finite], expected[finite]
    np.testing.assert_array_equal(found, expected)
