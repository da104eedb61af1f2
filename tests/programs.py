"""Random array programs: drawn by running NumPy, replayed on anything with NumPy's interface.

A program is a list of steps over a growing list of arrays. Every step is drawn to be valid for the arrays
there are, so that shapes stay interesting (odd, tiny, with ones) and values stay finite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import strategies as st

Apply = Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """One operation: `apply(xp, *operands)`; `text` says what it is when a program fails."""

    text: str
    apply: Apply
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """Inputs and steps; the last `outputs` arrays are the results."""

    inputs: tuple[Any, ...]
    steps: tuple[Step, ...]
    outputs: int

    def run(self, xp: Any, convert: Callable[[Any], Any]) -> list[Any]:
        """The results in the library `xp`."""
        arrays = [convert(a) for a in self.inputs]
        for step in self.steps:
            arrays.append(xp.asarray(step.apply(xp, *(arrays[i] for i in step.operands))))
        return arrays[-self.outputs :]

    def __repr__(self) -> str:
        lines = [f"  a{i} = input{a.shape} {a.dtype}" for i, a in enumerate(self.inputs)]
        n = len(self.inputs)
        lines += [f"  a{n + i} = {s.text}{s.operands}" for i, s in enumerate(self.steps)]
        return "\n".join(["Program", *lines, f"  -> last {self.outputs}"])


Draw = Callable[[st.DrawFn, list[Any], int], Step]
"""Draws a step of one kind that works on the array of that number, and perhaps on others."""

_SIDES = st.sampled_from([1, 1, 2, 3, 5, 7, 8, 16, 33])
_UNARY = ("negative", "absolute", "square", "tanh", "floor", "sign", "cos")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "arctan2")
_FOLDS = ("sum", "min", "max", "mean", "prod", "argmax", "argmin", "any")


@st.composite
def programs(
    draw: st.DrawFn,
    most: int = 30,
    letters: str = "fffi",
    kinds: Sequence[str] = (),
    more: Mapping[str, Draw] = MappingProxyType({}),
) -> Program:
    """Programs of 2 to `most` steps over two or three inputs.

    Parameters
    ----------
    letters : what inputs are drawn from: f and s for float64 and float32, c for complex64, i for integers
    kinds : of steps; all, if it is left out
    more : what draws steps of further kinds, which are drawn as often
    """
    known = {**{k: KINDS[k] for k in kinds or sorted(KINDS)}, **more}
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    shape = tuple(draw(st.lists(_SIDES, min_size=1, max_size=3)))
    inputs = [_array(rng, shape, draw(st.sampled_from(letters))) for _ in range(draw(st.integers(1, 3)))]
    arrays: list[Any] = list(inputs)
    steps: list[Step] = []
    for _ in range(draw(st.integers(2, most))):
        step = _step(draw, arrays, known)
        value = np.asarray(step.apply(np, *(arrays[i] for i in step.operands)))
        if value.size > 20_000 or value.size == 0:
            continue
        steps.append(step)
        arrays.append(value)
    if not steps:
        steps.append(Step("negative", _call("negative"), (0,)))
    return Program(tuple(inputs), tuple(steps), draw(st.integers(1, min(3, len(steps)))))


def _array(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Any:
    if kind == "i":
        return rng.integers(-4, 5, shape)
    if kind == "c":
        return (np.round(rng.uniform(-2, 2, shape), 3) + 1j * rng.integers(-2, 3, shape)).astype(np.complex64)
    return np.round(rng.uniform(-2, 2, shape), 3).astype(np.float32 if kind == "s" else np.float64)


def _call(name: str, **keywords: Any) -> Apply:
    return lambda xp, *operands: getattr(xp, name)(*operands, **keywords)


def _step(draw: st.DrawFn, arrays: list[Any], kinds: Mapping[str, Draw]) -> Step:
    kind = draw(st.sampled_from(list(kinds)))
    i = draw(st.integers(0, len(arrays) - 1))
    return kinds[kind](draw, arrays, i)


def _unary(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    name = draw(st.sampled_from(_UNARY))
    if arrays[i].dtype == bool:
        name = "logical_not"
    return Step(name, _call(name), (i,))


def _astype(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    """To float64: narrower kinds round differently when a layout sums in another order."""
    return Step("astype(f8)", lambda xp, a: a.astype("f8"), (i,))


def _broadcast(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    shape = tuple(4 if n == 1 else n for n in arrays[i].shape)
    shape = (2, *shape) if len(shape) < 3 and draw(st.booleans()) else shape
    return Step(f"broadcast_to({shape})", lambda xp, a: xp.broadcast_to(a, shape), (i,))


def _scalar(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    c = draw(st.sampled_from([0.5, 2, -1, 3.0]))
    return Step(f"* {c}", lambda xp, a: a * c, (i,))


def _partners(arrays: list[Any], i: int, fits: Callable[[Any, Any], bool]) -> list[int]:
    return [j for j, b in enumerate(arrays) if fits(arrays[i], b)]


def _broadcasts(a: Any, b: Any) -> bool:
    return len(a.shape) <= 3 and all(
        m == n or 1 in (m, n) for m, n in zip(a.shape[::-1], b.shape[::-1], strict=False)
    )


def _binary(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    j = draw(st.sampled_from(_partners(arrays, i, _broadcasts)))
    name = draw(st.sampled_from(_BINARY))
    if bool in (arrays[i].dtype, arrays[j].dtype):
        name = "not_equal"
    return Step(name, _call(name), (i, j))


def _compare(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    j = draw(st.sampled_from(_partners(arrays, i, _broadcasts)))
    return Step("where(a > b, a, b * 2)", lambda xp, a, b: xp.where(a > b, a, b * 2), (i, j))


def _fold(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    name = draw(st.sampled_from(_FOLDS))
    a = arrays[i]
    if name == "prod" and a.size > 50:
        name = "sum"
    axes: list[Any] = [*range(a.ndim)]
    axis = draw(st.sampled_from([None, *axes])) if a.ndim else None
    keep = draw(st.booleans()) and axis is not None
    return Step(f"{name}(axis={axis}, keepdims={keep})", _call(name, axis=axis, keepdims=keep), (i,))


def _scan(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    a = arrays[i]
    if a.ndim == 0:
        return _scalar(draw, arrays, i)
    axis = draw(st.integers(0, a.ndim - 1))
    name = draw(st.sampled_from(["cumsum", "minimum", "hypot", "reduceat", "folded"]))
    if name == "folded" and a.size:
        over = draw(st.sampled_from([None, *range(a.ndim)]))
        return Step(
            f"(minimum.accumulate(axis={axis}) * 2).max({over})",
            lambda xp, a: (xp.minimum.accumulate(a, axis) * 2).max(over),
            (i,),
        )
    if name == "cumsum" or a.dtype == bool:
        return Step(f"cumsum(axis={axis})", _call("cumsum", axis=axis), (i,))
    if name == "reduceat" and a.shape[axis]:
        starts = range(0, a.shape[axis], 1 + a.shape[axis] // 40)
        return Step(
            f"maximum.reduceat(axis={axis})",
            lambda xp, a: xp.maximum.reduceat(a, list(starts), axis),
            (i,),
        )
    ufunc = "hypot" if name == "hypot" and a.dtype.kind == "f" else "minimum"
    return Step(
        f"{ufunc}.accumulate(axis={axis})", lambda xp, a: getattr(xp, ufunc).accumulate(a, axis), (i,)
    )


def _matmul(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    def fits(a: Any, b: Any) -> bool:
        return (
            0 < a.ndim <= 2 and 0 < b.ndim <= 2 and a.shape[-1] == b.shape[0] and a.dtype != bool != b.dtype
        )

    found = _partners(arrays, i, fits)
    if found:
        return Step("matmul", _call("matmul"), (i, draw(st.sampled_from(found))))
    if arrays[i].ndim == 2 and arrays[i].dtype != bool:
        return Step("a @ a.T", lambda xp, a: a @ a.T, (i,))
    return _unary(draw, arrays, i)


def _around_product(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    """A product with work on one side before it, and on its value behind it."""
    if arrays[i].ndim != 2 or arrays[i].dtype == bool:
        return _matmul(draw, arrays, i)
    turned = draw(st.booleans())

    def apply(xp: Any, a: Any) -> Any:
        value = xp.tanh(a * 0.5) @ xp.cos(a).T
        return xp.sqrt(abs(value.T if turned else value)) + value.shape[0]

    return Step(f"sqrt(abs(tanh(a / 2) @ cos(a).T)), turned={turned}", apply, (i,))


def _transpose(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    order = tuple(draw(st.permutations(range(arrays[i].ndim))))
    return Step(f"transpose{order}", lambda xp, a: xp.transpose(a, order), (i,))


def _reshape(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    n = arrays[i].size
    first = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    return Step(f"reshape({first}, -1)", lambda xp, a: xp.reshape(a, (first, -1)), (i,))


def _slice(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    a = arrays[i]
    parts: list[Any] = []
    for n in a.shape:
        start = draw(st.integers(-n, n))
        step = draw(st.sampled_from([1, 1, 2, -1, 3]))
        parts.append(
            draw(st.sampled_from([slice(None), slice(start, None, step), draw(st.integers(-n, n - 1))]))
        )
    key = tuple(parts)
    return Step(f"[{key}]", lambda xp, a: xp.asarray(a[key]), (i,))


def _newaxis(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    if arrays[i].ndim > 2:
        return _transpose(draw, arrays, i)
    axis = draw(st.integers(0, arrays[i].ndim))
    return Step(f"expand_dims({axis})", lambda xp, a: xp.expand_dims(a, axis), (i,))


def _concatenate(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    a = arrays[i]
    if a.ndim == 0:
        return _scalar(draw, arrays, i)
    axis = draw(st.integers(0, a.ndim - 1))

    def fits(a: Any, b: Any) -> bool:
        return a.ndim == b.ndim and all(
            m == n for d, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if d != axis
        )

    j = draw(st.sampled_from(_partners(arrays, i, fits)))
    return Step(f"concatenate(axis={axis})", lambda xp, a, b: xp.concatenate([a, b], axis=axis), (i, j))


def _sort(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    a = arrays[i]
    if a.ndim == 0:
        return _scalar(draw, arrays, i)
    axis = draw(st.integers(0, a.ndim - 1))
    return Step(f"sort(axis={axis})", _call("sort", axis=axis), (i,))


def _assign(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    a = arrays[i]
    key = tuple(slice(draw(st.integers(0, n - 1)), None, draw(st.integers(1, 2))) for n in a.shape)

    def apply(xp: Any, a: Any) -> Any:
        b = xp.array(a)
        b[key] = 1
        return b

    return Step(f"[{key}] = 1", apply, (i,))


def _write_view(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    def apply(xp: Any, a: Any) -> Any:
        b = xp.array(a + a)
        view = b.T
        view[...] = view + (1 if b.dtype != bool else True)
        return b

    return Step("write through a transpose", apply, (i,))


def _mask(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    c = draw(st.sampled_from([0, 1, -3]))

    def apply(xp: Any, a: Any) -> Any:
        return xp.concatenate([xp.reshape(a[a > c], (-1,)), xp.reshape(a, (-1,))[:1]])

    return Step(f"a[a > {c}] and one more", apply, (i,))


def _take(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    a = arrays[i]
    if a.ndim == 0:
        return _scalar(draw, arrays, i)
    indices = draw(st.lists(st.integers(-a.shape[0], a.shape[0] - 1), min_size=1, max_size=6))
    return Step(f"[{indices}]", lambda xp, a: a[indices], (i,))


def _exact(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    """What rounds the same everywhere, on narrow dtypes, too."""
    j = draw(st.sampled_from(_partners(arrays, i, _broadcasts)))
    name = draw(st.sampled_from(["negative", "conjugate", "add", "subtract", "real", "absolute"]))
    if bool in (arrays[i].dtype, arrays[j].dtype):
        return Step("not_equal", _call("not_equal"), (i, j))
    if name == "absolute" and arrays[i].dtype.kind == "c":
        name = "real"
    return Step(name, _call(name), (i, j) if name in ("add", "subtract") else (i,))


def _least(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    axis = draw(st.sampled_from([None, *range(arrays[i].ndim)]))
    name = draw(st.sampled_from(["min", "max"]))
    if arrays[i].dtype.kind == "c":
        return Step(f"{name} of real", lambda xp, a: getattr(xp, name)(xp.real(a), axis=axis), (i,))
    return Step(f"{name}(axis={axis})", _call(name, axis=axis), (i,))


NARROW = (
    "assign",
    "broadcast",
    "concatenate",
    "exact",
    "exact",
    "least",
    "newaxis",
    "reshape",
    "scalar",
    "slice",
    "take",
    "transpose",
    "write_view",
)
"""Kinds of steps whose results in float32 and complex64 do not depend on the order of work."""

KINDS: dict[str, Callable[[st.DrawFn, list[Any], int], Step]] = {
    "unary": _unary,
    "astype": _astype,
    "broadcast": _broadcast,
    "scalar": _scalar,
    "binary": _binary,
    "compare": _compare,
    "fold": _fold,
    "scan": _scan,
    "matmul": _matmul,
    "around_product": _around_product,
    "transpose": _transpose,
    "reshape": _reshape,
    "slice": _slice,
    "newaxis": _newaxis,
    "concatenate": _concatenate,
    "sort": _sort,
    "assign": _assign,
    "write_view": _write_view,
    "mask": _mask,
    "take": _take,
    "exact": _exact,
    "least": _least,
}
