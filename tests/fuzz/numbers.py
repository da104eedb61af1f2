"""A program for each way to give a number to an array that may not hold it.

NumPy sets elements to its numbers as to Python's, and says what an integer cannot hold; arrays it casts by
force, and operands it casts by rules. Which of these a function does is seen from what it makes of numbers
that are too large, negative, broken, complex or no number, computed or not yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.generator import Program, judged
from tests.fuzz.program import Line, Rounding, Step

DTYPES = ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8")
NUMBERS = (
    "np.sum(np.array([3000, 1]))",
    "np.sum(np.array([3, 1]))",
    "-np.max(np.array([3, 4]))",
    "np.sum(np.array([2.5, 1]))",
    "np.sum(np.array([N.nan, 1]))",
    "np.sum(np.array([1j, 2]))",
    "np.max(np.array([True, False]))",
    "np.max(np.array([200, 1], 'u1'))",
    "np.array([1, 40000])[1]",
    "np.array(40000)",
    "np.array([[40000]])",
    "np.array([3])",
)
WAYS = (
    "a0[0] = a1",
    "a0[...] = a1",
    "a0[1:2] = a1",
    "a0[0:0] = a1",
    "a0[[0, 2]] = a1",
    "a0[a0 > 0] = a1",
    "a0[a0 > 9] = a1",
    "a0.fill(a1)",
    "a0.flat[1] = a1",
    "a0.flat[-1] = a1",
    "a0.flat[:2] = a1",
    "a0.flat[[0, 1]] = a1",
    "a0.flat[a0 > 0] = a1",
    "a0.flat = a1",
    "np.put(a0, [0, 1], a1)",
    "np.place(a0, a0 == 1, a1)",
    "np.place(a0, a0 == 1, [a1])",
    "np.putmask(a0, a0 == 1, a1)",
    "np.copyto(a0, a1)",
    "np.copyto(a0, a1, casting='unsafe')",
    "np.fill_diagonal(a2, a1)",
    "np.put_along_axis(a0, np.array([0]), a1, 0)",
    "a0 += a1",
    "a0[0] *= a1",
    "np.maximum(a0, a1, out=a0)",
    "np.add.at(a0, [0, 0], a1)",
    "np.maximum.at(a0, [0, 1], a1)",
    "a3 = np.full(3, a1, a0.dtype)",
    "a3 = np.full_like(a0, a1)",
    "a3 = np.array([a1, 1], a0.dtype)",
    "a3 = np.array(a1, a0.dtype)",
    "a3 = np.insert(a0, 1, a1)",
    "a3 = np.append(a0, a1)",
    "a3 = np.pad(a0, 1)",
    "a3 = np.pad(a0, 1, constant_values=a1)",
    "a3 = np.pad(a0, 0, constant_values=a1)",
    "a3 = np.pad(a2, 1, constant_values=(a1, 0))",
    "a3 = np.pad(a2, ((0, 1), (1, 0)), constant_values=((a1, 0), (0, 1)))",
    "a3 = np.pad(a0, 1, 'linear_ramp', end_values=a1)",
    "a3 = np.where(a0 > 0, a1, a0)",
    "a3 = np.where(a0 > 0, a0, a1)",
    "a3 = np.select([a0 > 0], [a1], a0)",
    "a3 = np.select([a0 > 0], [a0], a1)",
    "a3 = np.choose([0, 1, 0], [a0, a1])",
    "a3 = np.clip(a0, a1, None)",
    "a3 = np.clip(a0, None, a1)",
    "a3 = a0.clip(0, a1)",
    "a3 = np.sum(a0, initial=a1)",
    "a3 = np.max(a0, initial=a1)",
    "a3 = np.isin(a0, a1)",
    "a3 = np.searchsorted(a0, a1)",
    "a3 = np.diff(a0, prepend=a1)",
    "a3 = np.ediff1d(a0, to_begin=a1)",
    "a3 = np.nan_to_num(a0, nan=a1)",
    "a3 = np.isclose(a0, a1)",
    "a3 = a0 == a1",
    "a3 = a0 < a1",
    "a3 = a0 // a1",
    "a3 = a0 % a1",
    "a3 = np.linspace(0, a1, 3, dtype=a0.dtype)",
    "a3 = np.piecewise(a0, [a0 > 0], [a1, 0])",
)


def programs() -> Iterator[tuple[str, str, str]]:
    """All there are, as their parts."""
    return ((way, number, dtype) for way in WAYS for number in NUMBERS for dtype in DTYPES)


def program_of(way: str, number: str, dtype: str) -> Program | None:
    """The program of its parts; None where nothing can be judged."""
    lines: list[Step] = [
        Line(f"a0 = np.array([1, 0, 1], {dtype!r})"),
        Line(f"a1 = {number}"),
        Line(f"a2 = np.zeros((2, 2), {dtype!r})"),
        Line(way, Rounding.ALWAYS if way.startswith("a3 = ") else Rounding.NEVER),
    ]
    return judged(1, lines)
