"""Random programs for fusion: sparse, compressed and dense operands, products around them, many folds.

A program is a list of lines of Python over `np`, so that one that fails can be printed and run. Shapes come
from three lengths only, so that most arrays fit to each other, and what the templates of fusion are made for
comes often. Inputs hold small whole numbers: sums of them are exact in any order, and only what was computed
from exact values meets functions that jump (comparisons, floors, positions of extremes).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

_LARGEST = 1e5
"""Values beyond which a line is dropped: whole numbers up to here stay exact in sums of squares."""
_ELEMENTS = 30_000
_LENGTHS = (0, 1, 1, 2, 3, 5, 8, 17, 33, 70)
_DTYPES = ("f8",) * 8 + ("f4", "i8", "i8", "i1", "?", "c16")


@dataclass(frozen=True)
class Input:
    """An array and how it is handed over: dense, transposed, csr, csc, coo or compressed."""

    value: Any
    form: str


@dataclass(frozen=True)
class Line:
    """One assignment: `text` over the names a, b, c, which stand for the arrays in `operands`."""

    text: str
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """Inputs and lines; `outputs` are the numbers of the arrays that are asked for."""

    inputs: tuple[Input, ...]
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]
    rtol: float
    scale: float
    """The largest magnitude on the way: what errors are measured with."""

    def run(self, xp: Any, convert: Callable[[Input], Any]) -> list[Any]:
        """The results in the library `xp`, not forced."""
        arrays = [convert(i) for i in self.inputs]
        for line in self.lines:
            arrays.append(evaluate(xp, line, arrays))
        return [arrays[i] for i in self.outputs]

    def __repr__(self) -> str:
        n = len(self.inputs)
        shown = [f"  a{i} = {x.form} {x.value.dtype} {x.value.shape}" for i, x in enumerate(self.inputs)]
        shown += [f"  a{n + i} = {_spelled(line)}" for i, line in enumerate(self.lines)]
        return "\n".join(["Program", *shown, f"  -> {', '.join(f'a{i}' for i in self.outputs)}"])


def evaluate(xp: Any, line: Line, arrays: list[Any]) -> Any:
    """A line's value."""
    names = dict(zip("abc", (arrays[i] for i in line.operands), strict=False))
    functions = {"updated": _updated, "forced": _forced, "outlived": _outlived}
    return xp.asarray(eval(line.text, {"np": xp, **functions, **names}))


def _updated(np: Any, a: Any, b: Any) -> Any:
    """What is built on an array before it is written to keeps the value from before."""
    copy = np.array(a, copy=True)
    before = copy * 2
    copy += b
    copy[..., ::2] = 1
    return before + copy


def _forced(a: Any) -> Any:
    """The same array; with a value, where it can be forced."""
    if hasattr(a, "persist"):
        a.persist()
    return a


def _outlived(np: Any, a: Any) -> Any:
    """A step on the way that lives on behind a value which is forced, and is used again."""
    step = np.tanh(a) + 1
    _forced((step * 2).sum())
    return step * step


def _spelled(line: Line) -> str:
    return f"{line.text}   # {', '.join(f'{n} = a{i}' for n, i in zip('abc', line.operands, strict=False))}"


def numpys(given: Input) -> Any:
    """An input as NumPy's array."""
    return np.array(given.value)


def ours(given: Input) -> Any:
    """An input as this package's array."""
    import spartan_ng as sp

    if given.form == "compressed":
        return sp.compress_columns(given.value, always=True)
    if given.form == "transposed":
        return sp.asarray(np.ascontiguousarray(given.value.T)).T
    if given.form == "dense":
        return sp.asarray(given.value)
    return sp.asarray(getattr(sparse, f"{given.form}_array")(given.value))


# --- lines -------------------------------------------------------------------------------------------------

_TEXTS = {
    kind: tuple(line.strip() for line in lines.split(";"))
    for kind, lines in {
        "unary": """
            np.square(a); np.abs(a); a * 2; a / 3; -a; a ** 2; np.sin(a); np.tanh(a); np.expm1(np.tanh(a));
            np.maximum(a, 0); np.minimum(a, 0); np.clip(a, -1, 1); np.sqrt(np.abs(a)); np.cos(a); a + 1;
            1 - a; np.exp(-np.abs(a)); np.log(np.abs(a) + 1); 1 / (1 + np.exp(-np.clip(a, -9, 9)));
            np.exp(np.tanh(a)) - 1; np.real(a); np.conj(a); a.astype('f8'); a * 0; a.astype('c16');
            np.log1p(np.abs(a)); 2.0 ** np.tanh(a); np.positive(a); np.reciprocal(np.abs(a) + 1.0)
        """,
        "jumping unary": """
            np.sign(a); a != 0; a == 0; a > 1; a < 1; a >= 0; np.floor(a / 2); np.isfinite(a); a // 2; a % 3;
            np.rint(a); np.logical_not(a); a > 0.5; ~(a > 0); a.astype(bool); a.astype('i8'); a.astype('f4');
            np.isnan(a)
        """,
        "pairs": """
            a * b; a * b; a + b; a - b; np.maximum(a, b); np.minimum(a, b); a / (np.abs(b) + 1); a * b + a;
            np.arctan2(a, np.abs(b) + 0.5); np.hypot(a, b); (a - b) ** 2; a * np.exp(-np.abs(b));
            np.multiply(b, a) / 2; np.logaddexp(a, b); a * a * b
        """,
        "jumping pairs": """
            (a != 0) * b; np.where(a != 0, b, 0); np.where(a > 0, a, b); a != b; a > b; (a > 0) & (b > 0);
            np.where(a > b, a, b * 2); (a - b) * (a != 0); a * (b > 0); a % (np.abs(b) + 1); np.fmax(a, b)
        """,
        "triples": """
            a * b + c; a * b * c; np.where(a > 0, b, c); (a + b) * (a != 0) * c; a * (b - c) ** 2;
            np.clip(a, b, b + 2)
        """,
        "outer": """
            a * np.log(np.abs(b @ c.T) + 1); (a != 0) * (b @ c.T); (a * np.exp(-np.abs(b @ c.T))) @ c;
            ((a - b @ c.T) ** 2 * (a != 0)); np.where(a != 0, np.log(np.abs(b @ c.T) + 1), 0);
            np.log(np.abs(b @ c.T) + 1) * a; (a * np.tanh(b @ c.T)).T @ b;
            np.sum(a * np.log(np.abs(b @ c.T) + 1)); (a * (b @ c.T)).sum(axis=0);
            (a * (b @ c.T)).sum(axis=1, keepdims=True); a + (a != 0) * (b @ c.T); a * a * (b @ c.T);
            a / (np.abs(b @ c.T) + 1); (a.T * (c @ b.T)).T; (a * (b @ c.T)).max(axis=0);
            b.T @ (a * (b @ c.T)); a * (b @ c.T) + b @ c.T; (a * (b @ c.T)).mean(); (a != 0) * (a - b @ c.T);
            (a * (b @ c.T)).argmax(); a - b @ c.T; np.sum((a - b @ c.T) ** 2); a * (b[:, :1] @ c.T[:1]);
            a * np.outer(b[:, 0], c[:, 0]); (a * (b @ c.T))[:, ::2]; (a * (b @ c.T) * (a > 0)).sum(axis=1);
            np.minimum(a, 0) * (b @ c.T); (a @ c) * b; (a @ c - b * (b.T @ b).sum())
        """,
        "rows": """
            a.T @ (np.tanh(a @ b) * c); a.T @ (a @ b); a.T @ (c - a @ b); (a @ b - c).sum();
            a.T @ ((a @ b) * (c > 0)); np.tanh(a @ b)[:, None] * a; (a * (a @ b)[:, None]).sum(axis=0);
            ((a @ b - c) ** 2).mean()
        """,
        "lines": """
            a - a.max(axis=1, keepdims=True); np.exp(a - a.max(axis=1, keepdims=True));
            a / (np.abs(a).sum(axis=1, keepdims=True) + 1);
            np.exp(np.tanh(a)) / np.exp(np.tanh(a)).sum(axis=1, keepdims=True); a - a.mean(axis=0);
            (a - a.mean(axis=0)) / (a.std(axis=0) + 1); a * a.sum(axis=1)[:, None];
            a.T @ (a * a.sum(axis=1, keepdims=True)); (a == a.max(axis=1, keepdims=True)) * a; a - a.mean();
            a.sum(axis=1) @ a; a.T @ a.max(axis=1); np.sort(a, axis=1)[:, ::-1] * a; a - np.sort(a, axis=-1);
            a @ a.T; a.T @ a; np.cumsum(a, axis=1) / (np.abs(a).sum(axis=1, keepdims=True) + 1);
            np.linalg.norm(a, axis=1); a.argmax(axis=1)[:, None] == np.arange(a.shape[1])
        """,
        "squares": """
            a + a.T; a.T * a; a - a.T; np.sum(a * a.T); (a + a.T).sum(axis=0); np.maximum(a, a.T);
            a.T + 1 + a; np.trace(a); (a @ a.T) * a; np.triu(a) + a.T; (a + a.T) @ a; a * np.eye(a.shape[0])
        """,
        "square pairs": """
            a + b.T; a.T * b; np.sum(a.T * b); (a - b.T).max(axis=1); (a.T @ b) * a
        """,
        "masked": """
            a[a > 0].sum(); a[a > 1].mean(); np.count_nonzero(a > 1); (a > 1).sum(axis=0); a.sum(where=a > 0);
            np.mean(a, axis=0, where=a > 0); a[a > 100].mean(); a[a < -100].sum();
            np.sum(a * 2, axis=-1, where=a != 0); a.max(where=a > 0, initial=-5); (a[a > 0] * 2 + 1).sum();
            np.any(a > 3, axis=0); np.all(a > -3, axis=-1); a[a != 0].var(); np.count_nonzero(a, axis=0);
            a[a > 0].astype('f8').sum() / (a > 0).sum(); np.sort(a[a > 0]); a[a != 0].std(); np.nonzero(a)[0];
            a[a != 0][::2]; a[(a != 0) & (a < 2)].min(initial=7); np.nansum(np.where(a > 0, a, np.nan))
        """,
        "masked pairs": """
            a[b > 0].sum(); a[b > 0].mean(); (a[b != 0] * 3).sum(); (a * b)[b > 1].sum(); a[b > 0] @ a[b > 0];
            np.sum(a * b, where=a > 0); (a[b > 0] - a[b > 0].mean()).sum()
        """,
        "several": """
            np.stack([a.mean(), a.var(), a.min(), a.max()]);
            np.stack([a.mean(axis=0), a.std(axis=0), a.max(axis=0)]);
            a.sum(axis=0).sum() + a.sum(axis=1).max(initial=0); np.ptp(a, axis=0);
            np.stack([a.argmax(axis=0), a.argmin(axis=0), np.any(a > 1, axis=0)]);
            a.max() - a.min() + a.sum(); np.stack([a.sum(), (a * a).sum(), (a > 0).sum()]);
            (a - a.min(axis=0)) / (np.ptp(a, axis=0) + 1); np.var(a, axis=1, ddof=1); np.std(a);
            a.var(axis=0, keepdims=True) + a; a.argmax() + a.argmin(); np.average(a, axis=0);
            np.median(a, axis=0); np.stack([a.sum(axis=1), a.min(axis=1), np.abs(a).max(axis=1)])
        """,
        "scans": """
            np.cumsum(a, axis=0); np.cumsum(a, axis=-1); np.cumsum(a).max(initial=0);
            np.cumsum(a, axis=0) * 2 + a; np.minimum.accumulate(a, axis=0);
            np.maximum.accumulate(a, axis=-1) - a; (np.cumsum(a, axis=0) / 2).max(axis=0);
            np.cumsum(a * a, axis=0).sum(axis=0); np.cumsum(a[::-1], axis=0)[::-1];
            np.cumsum(a, axis=0) - a.sum(axis=0); np.diff(a, axis=0);
            np.cumsum(np.cumsum(a, axis=0), axis=-1); np.cumprod(np.sign(a), axis=0);
            np.add.reduceat(a, [0], axis=0);
            np.stack([np.cumsum(a, axis=0).max(axis=0), np.cumsum(a, axis=0).min(axis=0), a.sum(axis=0)])
        """,
        "views": """
            a.T; a.T; a[::2]; a[1:]; a[..., ::-1]; a[:1]; a[-1]; a[..., :1]; a[:0]; a[..., 1:]; a[None];
            a[..., None]; np.reshape(a, (-1,)); np.reshape(a, (-1, 1)); np.squeeze(a); a[[0, -1, 0]];
            a[..., 0]; np.concatenate([a, a]); a[::-1, ::2]; np.flip(a); np.swapaxes(a, 0, -1);
            np.roll(a, 1, axis=0); np.repeat(a, 2, axis=0); np.ravel(a.T); np.tile(a, 2)
        """,
        "products": """
            a @ b; a.T @ b; a @ b.T; np.dot(a, b); b.T @ a
        """,
        "state": """
            updated(np, a, b)
        """,
        "alive": """
            forced(a); outlived(np, a); forced(a * 2) - a; updated(np, a, a)
        """,
    }.items()
}
"""Lines by kind: functions of one, two and three arrays, and what each template is made for."""
_FOLDS = ("sum", "sum", "sum", "mean", "min", "max", "prod", "var", "any", "all", "argmax", "argmin", "std")
_WEIGHTS = {
    "unary": 4,
    "pairs": 5,
    "triples": 2,
    "outer": 4,
    "rows": 2,
    "lines": 2,
    "squares": 1,
    "square pairs": 1,
    "masked": 2,
    "masked pairs": 1,
    "several": 2,
    "scans": 2,
    "views": 3,
    "products": 2,
    "folds": 4,
    "state": 1,
    "alive": 2,
}
_COUNTS = {"pairs": 2, "triples": 3, "masked pairs": 2, "square pairs": 2, "products": 2, "state": 2}
"""Operands of kinds that have not one, nor operands of given shapes."""
_INEXACT: tuple[str, ...] = (
    "sin",
    "tanh",
    "exp",
    "log",
    "sqrt",
    "cos",
    "/",
    "arctan2",
    "hypot",
    "mean",
    "std",
    "var",
    "2.0 **",
)
_INEXACT += ("'f4'", "norm", "average", "median", "reciprocal")
"""What makes whole numbers into others, and"""
_JUMPING = (">", "<", "!=", "==", "arg", "sign", "sort", "nonzero", "//", "%")
"""what tells one from another: these are not given values that may differ by rounding."""


class _Builder:
    """A program as it grows: its arrays by NumPy, and which of them are exact."""

    def __init__(self, seed: int, special: bool, kinds: str) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.special = special
        self.kinds = kinds
        n, m, k = (self.random.choice(_LENGTHS) for _ in range(3))
        if self.random.random() < 0.7:
            n, m = max(n, 2), max(m, 2)
        self.n, self.m, self.k = n, n if self.random.random() < 0.3 else m, min(max(k, 1), 8)
        self.inputs: list[Input] = []
        self.arrays: list[Any] = []
        self.exact: list[bool] = []
        self.lines: list[Line] = []
        self.scale = 1.0

    def add_inputs(self) -> None:
        """Matrices in several forms, factors, vectors, and what stretches against them."""
        n, m, k = self.n, self.m, self.k
        forms = ["csr", "csr", "csc", "compressed", "coo", "dense", "dense", "transposed"]
        if self.special:
            forms = ["dense", "transposed"]
        if self.kinds == "sparse":
            forms = ["csr", "csr", "csr", "csc"]
        shapes: list[tuple[int, ...]] = [(n, m)] * self.random.choice([1, 2, 3])
        shapes += [(n, k), (m, k), (m,), (n,)]
        shapes += self.random.sample([(1, m), (n, 1), (), (k,), (k, k), (2, n, m), (1, 1)], 3)
        for shape in shapes:
            form = self.random.choice(forms) if shape == (n, m) else "dense"
            dtype = "f8" if self.random.random() < 0.6 else self.random.choice(_DTYPES)
            self._enter(form, shape, dtype)

    def _enter(self, form: str, shape: tuple[int, ...], dtype: str) -> None:
        value = self.numbers.integers(-3, 4, shape)
        if form not in ("dense", "transposed"):
            value = value * (self.numbers.random(shape) < self.random.choice([0.0, 0.05, 0.3, 1.0]))
        if dtype == "c16":
            value = value + 1j * self.numbers.integers(-2, 3, shape)
        value = np.asarray(value).astype(dtype)
        if self.special and dtype in ("f8", "f4"):
            odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
            places = self.numbers.random(shape) < self.random.choice([0.0, 0.02, 0.3])
            value = np.where(places, self.numbers.choice(odd, shape), value).astype(dtype)
        self.inputs.append(Input(value, form))
        self.arrays.append(value)
        self.exact.append(True)

    def add_line(self) -> None:
        """One more line, if it can be run, and if its result says something."""
        kind = self.random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        chosen = self._operands(kind)
        if chosen is None:
            return
        exact = all(self.exact[i] for i in chosen)
        line = Line(self._text(kind, self.arrays[chosen[0]]), chosen)
        if not exact and any(word in line.text for word in _JUMPING):
            return
        try:
            value = np.asarray(evaluate(np, line, self.arrays))
        except (ValueError, TypeError, IndexError, ZeroDivisionError):
            return  # shapes or dtypes that NumPy has no answer for
        finite = value[np.isfinite(value)]
        largest = float(np.max(np.abs(finite.astype("c16")), initial=0.0))
        known = self.special or finite.size == value.size or not self._has_sparse
        if value.size > _ELEMENTS or value.ndim > 4 or largest > _LARGEST or not known:
            return
        self.scale = max(self.scale, largest)
        self.lines.append(line)
        self.arrays.append(value)
        whole = value.dtype.kind in "biu"
        kept = not any(word in line.text for word in _INEXACT) and bool((finite == np.rint(finite)).all())
        self.exact.append(exact and (whole or kept))

    @property
    def _has_sparse(self) -> bool:
        """Whether some input is a CSR array, whose zeros times a NaN are zero."""
        return any(i.form in ("csr", "csc", "coo") for i in self.inputs)

    def _pick(self, fits: Callable[[Any], bool]) -> int | None:
        """An array that fits, the newer ones more often."""
        found = [i for i, a in enumerate(self.arrays) if fits(a)]
        return found[int(len(found) * self.random.random() ** 0.7)] if found else None

    def _operands(self, kind: str) -> tuple[int, ...] | None:
        """Arrays for a line of this kind; None where there are none."""
        n, m, k = self.n, self.m, self.k
        shapes: dict[str, list[tuple[int, ...]]] = {
            "outer": [(n, m), (n, k), (m, k)],
            "rows": [(n, m), (m,), (n,)],
        }
        wanted = shapes.get(kind)
        if wanted is not None:
            found = [self._pick(lambda a, s=s: a.shape == s) for s in wanted]  # type: ignore[misc]
        else:
            first = self._pick(lambda a: _suits(kind, a.shape))
            if first is None:
                return None
            shape = self.arrays[first].shape
            more = _COUNTS.get(kind, 1) - 1
            found = [first, *(self._pick(lambda a: _meets(kind, shape, a.shape)) for _ in range(more))]
        chosen = tuple(i for i in found if i is not None)
        return chosen if len(chosen) == len(found) else None

    def _text(self, kind: str, a: Any) -> str:
        if kind == "folds":
            return self._fold(a)
        lines = _TEXTS[kind]
        if kind in ("unary", "pairs"):
            lines += _TEXTS[f"jumping {kind}"]
        return self.random.choice(lines)

    def _fold(self, a: Any) -> str:
        name = self.random.choice(_FOLDS)
        axes = ["None", *(str(d) for d in range(-a.ndim, a.ndim))]
        if a.ndim > 1 and not name.startswith("arg"):
            axes.append("(0, 1)")
        keep = self.random.choice(["", ", keepdims=True"])
        return f"np.{name}(a, axis={self.random.choice(axes)}{keep})"


def _suits(kind: str, shape: tuple[int, ...]) -> bool:
    """Whether an array of this shape may come first in a line."""
    if kind in ("squares", "square pairs"):
        return len(shape) == 2 and shape[0] == shape[1]
    return len(shape) == 2 if kind == "lines" else True


def _meets(kind: str, first: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether an array may be a further operand."""
    if kind in ("masked pairs", "square pairs"):
        return first == other
    if kind == "products":
        return bool(first and other and {first[0], first[-1]} & {other[0], other[-1]})
    return all(m == n or 1 in (m, n) for m, n in zip(first[::-1], other[::-1], strict=False))


def program(seed: int, most: int = 14, special: bool = False, kinds: str = "") -> Program:
    """The program of a seed, of up to `most` lines.

    With `special`, all inputs are dense, with NaNs, infinities and signed zeros; with `kinds="sparse"`, all
    matrices of the main shape are sparse.
    """
    builder = _Builder(seed, special, kinds)
    with np.errstate(all="ignore"):
        builder.add_inputs()
        for _ in range(builder.random.randint(2, most)):
            builder.add_line()
    n = len(builder.inputs)
    made = range(n, n + len(builder.lines)) or range(n)
    count = min(len(made), builder.random.choice([1, 1, 2, 3, 6]))
    outputs = tuple(sorted({made[-1], *builder.random.sample(list(made), count)}))
    widths = {a.dtype.char for a in builder.arrays}
    rtol = 2e-2 if "e" in widths else 2e-4 if widths & {"f", "F"} else 1e-9
    return Program(tuple(builder.inputs), tuple(builder.lines), outputs, rtol, builder.scale)
