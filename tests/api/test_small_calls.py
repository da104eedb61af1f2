"""Calls on small arrays: few of our functions in between, NumPy's answers, and memory as NumPy's."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.algebra import products
from spartan_ng.api.core import door, quick
from spartan_ng.api.core.dispatch import FUNCTIONS

OURS = str(Path(np.__file__).parent)

CALLS = {
    "a + b": 1,
    "a * 2.0": 1,
    "2.0 - a": 1,
    "a < b": 1,
    "a[2] * a": 4,
    "x * a": 3,
    "a[1:4] + b[1:4]": 5,
    "-a": 2,
    "s - 1.0": 1,
    "x - s": 1,
    "s / s": 1,
    "-s": 1,
    "s * a": 2,
    "a += b": 3,
    "a[1:4] *= 2.0": 5,
    "a[2]": 1,
    "m[1, 2]": 1,
    "m[1]": 1,
    "a[1:3]": 1,
    "a[2] + a[3]": 3,
    "a[2] = 1.0": 1,
    "a[1:3] = b[1:3]": 3,
    "m[i, i]": 9,
    "m[i, i] = 0.0": 6,
    "a[a > 0.5]": 6,
    "m.T": 4,
    "m.reshape(16)": 5,
    "a.copy()": 3,
    "m.ravel()": 5,
    "m.reshape((2, 8), order='F')": 13,
    "m.ravel('F')": 10,
    "m.flatten('F')": 10,
    "np.choose(i % 2, [i, 7])": 10,
    "np.choose(i % 2, m[:2])": 13,
    "f[f > 0.5]": 7,
    "f[i]": 6,
    "a.sum()": 6,
    "np.add.reduceat(f > 0.5, i, dtype=int)": 5,
    "np.minimum.accumulate(f)": 5,
    "m.mean(axis=0)": 5,
    "a.any()": 5,
    "a.argmax()": 5,
    "a.cumsum()": 5,
    "np.sqrt(a)": 2,
    "np.add(a, b)": 3,
    "np.maximum(a, 0.5)": 3,
    "np.add(a, b, out=c)": 4,
    "np.where(a > 0.5, a, b)": 6,
    "np.sum(a)": 7,
    "np.argmax(a)": 2,
    "np.cumsum(a)": 5,
    "np.std(a, axis=0)": 4,
    "np.dot(m, m)": 4,
    "m @ m": 5,
    "np.sort(a)": 5,
    "np.clip(a, 0.2, 0.8)": 6,
    "np.isclose(a, b)": 6,
    "np.einsum('ij,jk', m, m)": 6,
    "np.zeros(4)": 6,
    "np.zeros((2, 2))": 6,
    "np.ones(4)": 4,
    "np.add.at(a, i, 0.5)": 5,
    "np.add.at(a, [0, 1, 1], 0.5)": 6,
    "np.subtract.at(m, (i, i), a[:4])": 6,
    "g.random()": 4,
    "g.random(3)": 4,
    "g.integers(0, 40, 2)": 4,
    "g.normal(size=3)": 5,
    "r.rand(3)": 4,
    "r.randint(0, 5, 3)": 4,
    "np.apply_along_axis(np.convolve, 0, m, a[:3])": 67,
    "np.cross(a[:3], b[:3])": 9,
    "[*f.flat, *m.T.flat]": 9 if quick.IS_COMPILED else 20_100,
    "a.flags.writeable": 12,
}
"""Statements, and the most calls of our Python functions that they make."""
AT_ONCE = (
    "a.sum()",
    "m.mean(axis=0)",
    "a.any()",
    "a.argmax()",
    "a.cumsum()",
    "a.std(ddof=1)",
    "m.max(axis=1, keepdims=True)",
    "e.nonzero()",
    "np.nonzero(e)",
    "np.nonzero(m)",
    "np.flatnonzero(e)",
    "np.where(e)",
    "np.where(e, a, 0)",
    "np.sum(a)",
    "np.sort(m, axis=0)",
    "np.argsort(a)",
    "np.lexsort((a, b))",
    "np.unique(a, return_counts=True)",
    "np.searchsorted(a, 0.4)",
    "np.bincount([1, 2, 2])",
    "np.take(a, [1, 2])",
    "np.isclose(a, b)",
    "np.allclose(a, b)",
    "np.concatenate([a, b, [1.0]])",
    "np.vstack([a, b])",
    "np.stack((a, b), axis=1)",
    "np.linalg.solve(m[1:3, :2], a[:2])",
    "np.linalg.norm(a)",
    "np.fft.fft(a)",
    "np.interp(0.3, a, b)",
    "np.histogram(a, bins=4)",
    "np.zeros(4)",
    "np.zeros((2, 2), int)",
    "np.ones(4, dtype=bool)",
    "np.isfinite(np.empty(4))",
    "np.full((2, 2), 3.0)",
    "np.arange(4)",
    "np.arange(0.0, 1.0, 0.25)",
    "np.asarray(a)",
    "m[1] = 1.0, s, 2, x",
    "m[1, :2] = [s, 0.5]",
    "a[2:4] = s, s",
    "m[[0, 1]] = 1.0, 2.0, x, s",
    "j[1] = (1, 2, 3)",
    "np.zeros_like(a)",
    "np.ones_like(m)",
    "a[:] = n",
    "m[1] = n[:4]",
    "a[numpy.array([1, 2])]",
    "np.sin(n)",
    "np.add(n, a, out=c)",
    "n + a",
    "a * n",
    "m @ n[:4]",
    "n[:4] @ m",
    "np.dot(m, n[:4])",
    "m.dot(n[:4])",
    "np.sum(n)",
    "np.mean(n)",
    "np.where(n > 0.5, n, a)",
    "np.concatenate([n, a])",
    "np.linalg.norm(n)",
    "np.linalg.norm(m, 1)",
    "np.linalg.norm(m[:, :1], 2)",
    "np.linalg.norm(a, ord=3)",
    "np.unravel_index(5, (3, 4))",
    "np.unravel_index(i, (2, 2))",
    "np.unravel_index(a.argmax(), m.shape)",
    "np.asarray(n)",
    "np.ravel(n)",
    "np.asarray(n[:3])",
    "numpy.asarray(a)",
    "numpy.array(m)",
    "numpy.asarray(a * 2.0)",
    "n[:] = a",
    "numpy.sqrt(a)",
    "numpy.maximum(a, n)",
    "sum(row[0] for row in m)",
    "for row, other in zip(m, m.T): row += other",
    "p, q, *r = m",
    "np.array([s, x, 2])",
    "np.array(n)",
    "np.array([[s, x], [1, 2]], dtype=float)",
    "np.maximum(m[:, :1], m)",
    "np.subtract(n[:4, None], a[None, :4])",
    "np.tensordot(m, m, axes=([0], [1]))",
    "np.tensordot(np.ones((8, 20)), np.ones((20, 4, 8)), 1)",
    "np.shape(s), np.ndim(x), np.size(2.5)",
    "m[i, i.max()]",
    "m[i.argmin(), i] = 0.0",
    "m[i > 1, i.max()] += 1.0",
    "np.array(a, copy=True)",
    "np.asarray(a, dtype=float)",
    "np.asarray(n, float)",
    "np.asarray([s, 2], dtype=float)",
    "np.asanyarray(1.5)",
    "np.asanyarray(a, dtype=a.dtype)",
    "np.array([1, 2], numpy.float32)",
    "np.array(i, float)",
    "np.array([a, b], dtype=numpy.float64)",
    "g.random() + g.random(size=None)",
    "g.normal(0.0, s)",
    "g.normal(loc=1, size=3)",
    "g.integers(10)",
    "g.integers(2, 5, endpoint=True)",
    "g.uniform(size=(2, 3))",
    "g.standard_normal(2)",
    "g.poisson(3.0)",
    "r.rand() + r.randn()",
    "r.randint(0, 5)",
    "r.normal()",
    "r.random_sample(3)",
    "np.put(a, i, 0.5)",
    "a.put(i, [0.5, s])",
    "np.place(a, e, [1.0, 2.0])",
    "np.putmask(a, e, b)",
    "np.copyto(a, b, where=e)",
    "np.fill_diagonal(m, 2.0)",
    "np.put_along_axis(m, j[:, :1], 0.5, 1)",
    "[*f, *m]",
    "np.char.upper(t)",
    "np.char.startswith(t, 'a')",
    "np.strings.str_len(t)",
    "np.char.add(t, t)",
    "numpy.char.find(t, 'd')",
    "g.permutation(40)",
    "g.permutation(a)",
    "g.shuffle(a)",
    "g.choice(a)",
    "g.choice(a, p=b / b.sum())",
    "g.choice(5, 3, replace=False)",
    "g.choice([1, 2, 3], size=2)",
    "g.normal(a, 1.0)",
    "g.multinomial(5, [0.5, 0.5])",
    "g.dirichlet([1.0, 2.0])",
    "r.shuffle(a)",
    "r.permutation(a)",
    "r.choice(a)",
    "r.choice(4, p=[0.1, 0.2, 0.3, 0.4])",
    "np.add.reduceat(a, i)",
    "np.logical_and.reduce([e, e])",
    "np.multiply.outer(a, b)",
    "np.less(a, b, out=d, where=e)",
    "np.add(a, b, dtype=numpy.float32)",
    "np.modf(a)",
    "np.divmod(a, b + 1.0)",
    "np.tile(a, (2, 1))",
    "np.resize(a, (3, 2))",
    "np.eye(3, k=1)",
    "np.diag(a)",
    "np.diag([1.0, 2.0])",
    "np.tile([1, 2], (2, 1))",
    "np.repeat([1, 2], [3, 1])",
    "np.vander(a, 3)",
    "np.vander([1.0, 2.0, 3.0])",
    "np.isscalar(s)",
    "np.linspace(0.0, s, 7)",
    "np.geomspace(1.0, 9.0, num=5)",
    "np.hanning(7)",
    "np.fft.fftfreq(7, d=0.1)",
    "np.indices((2, 3))",
    "np.full_like(a, 2.0)",
    "np.block([[m, m], [m, m]])",
    "np.select([a > 0.5, e], [a, b], 0.5)",
    "np.choose(i % 2, [i, 7])",
    "a.clip(0.2, max=0.5)",
    "a.argsort()",
    "a.compress(e)",
    "np.tensordot(m, m, 1)",
    "np.result_type(a, i)",
    "np.linalg.svd(m)",
    "np.linalg.eigh(m + m.T)",
    "np.stack([m, m]) @ m",
    "np.matvec(m, a[:4])",
    "np.vecdot(m, m)",
    "w - w[::-1]",
    "w[0] - w",
    "np.isnat(w)",
    "np.is_busday(w)",
    "z['x'] = 1.0",
    "z['x'] = a[:3]",
)
"""Statements that call none of them, where there is what is compiled."""


def calls_of_ours(statement: str, names: dict[str, Any]) -> list[str]:
    """Our functions that a statement calls, in their order."""
    code = compile(statement, "statement", "exec")
    exec(code, names)  # what is made once is there by now
    found: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            found.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        exec(code, names)
    finally:
        sys.setprofile(None)
    return found


def small(namespace: Any = np) -> dict[str, Any]:
    """Operands by their names."""
    a = numpy.linspace(0.0, 1.0, 10)
    return {
        "np": namespace,
        "numpy": numpy,
        "n": a[::-1].copy(),
        "j": namespace.zeros((4, 3), int),
        "a": namespace.array(a),
        "b": namespace.array(a[::-1]),
        "c": namespace.zeros(10),
        "d": namespace.zeros(10, bool),
        "e": namespace.array(a > 0.3),
        "i": namespace.arange(4),
        "t": namespace.array(["ab", "cde"]),
        "w": namespace.array(numpy.arange("2020-01-01", "2020-01-05", dtype="M8[D]")),
        "z": namespace.array(numpy.zeros(3, [("x", float), ("y", int)])),
        "g": namespace.random.default_rng(0),
        "r": namespace.random.RandomState(0),
        "f": namespace.array(numpy.linspace(0.0, 1.0, 20_000)),
        "x": numpy.float64(0.5),
        "s": namespace.array(a).sum(),
        "m": namespace.array(numpy.arange(16.0).reshape(4, 4)),
    }


@pytest.mark.parametrize("statement", CALLS)
def test_few_calls(statement):
    found = calls_of_ours(statement, small())
    assert len(found) <= CALLS[statement], found


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize("statement", AT_ONCE)
def test_no_calls(statement):
    assert calls_of_ours(statement, small()) == []


PRODUCTS = [
    form.format(*pair)
    for form in ("{} @ {}", "np.dot({}, {})", "{}.dot({})")
    for pair in (("m[:, 2]", "m[:, 2:]"), *zip("mvvmm", ("v", "m", "v", "m[:, ::-1]", "m.T"), strict=True))
]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize("kind", ["f8", "f4", "c16"])
@pytest.mark.parametrize("statement", PRODUCTS)
def test_products_of_what_is_here_ask_no_function(statement: str, kind: str) -> None:
    m = numpy.random.default_rng(0).random((310, 310)).astype(kind)
    theirs = {"np": numpy, "m": m, "v": numpy.arange(310).astype(kind) / 310}
    ours = {"np": np, "m": np.array(m), "v": np.array(theirs["v"])}
    assert m.size * len(m) > door.QUICK_FLOPS
    with np.config.override(small_bytes=1 << 25):
        assert calls_of_ours(statement, ours) == []
        found, expected = eval(statement, ours), eval(statement, theirs)
    numpy.testing.assert_array_equal(numpy.asarray(found), expected)
    assert numpy.asarray(found).strides == expected.strides


@pytest.mark.parametrize("statement", ["y @ v", "v @ y", "np.dot(y, v)", "np.matmul(y, y)"])
def test_products_of_what_is_computed_later_are_asked_for_once(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(products, "quick", lambda *given: asked.append(given))
    with np.config.override(small_bytes=64):
        y = np.array(numpy.random.default_rng(0).random((30, 30))) * 2
        found = eval(statement, {"np": np, "y": y, "v": np.array(numpy.arange(30.0))})
    assert len(asked) == 1
    plain, v = numpy.asarray(y), numpy.arange(30.0)
    numpy.testing.assert_allclose(found, eval(statement, {"np": numpy, "y": plain, "v": v}), rtol=1e-12)


@pytest.mark.parametrize("statement", [*CALLS, *AT_ONCE])
def test_answers_are_numpys(statement):
    ours, theirs = small(), small(numpy)
    for names in (ours, theirs):
        exec(statement if "= " in statement.replace("== ", "") else f"found = {statement}", names)
    for name, value in theirs.items():
        for ours_one, one in zip(_parts(ours[name]), _parts(value), strict=True):
            if isinstance(one, numpy.ndarray | numpy.generic):
                numpy.testing.assert_array_equal(numpy.asarray(ours_one), one, err_msg=name)
                assert ours_one.dtype == one.dtype


def _parts(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _arrays(found: Any) -> list[Any]:
    if isinstance(found, list | tuple):
        return [a for f in found for a in _arrays(f)]
    return [found] if isinstance(found, numpy.ndarray | np.ndarray) else []


OPERANDS = {
    "one": lambda a: (a,),
    "two": lambda a: (a, a[::-1] + a.dtype.type(1)),
    "number": lambda a: (a, 1),
    "nothing": lambda a: (a, 0),
    "square": lambda a: (a[:4].reshape(2, 2),),
    "squares": lambda a: (a[:4].reshape(2, 2), a[2:6].reshape(2, 2)),
    "mask": lambda a: (a > a[2], a),
    "choice": lambda a: (a > a[2], a, a),
}
_IN_PLACE = {numpy.copyto, numpy.place, numpy.put, numpy.putmask, numpy.fill_diagonal, numpy.put_along_axis}
_WITHOUT_VALUES = {
    numpy.empty,
    numpy.empty_like,
    numpy.lib.stride_tricks.as_strided,
}  # which may reach beyond
_FUNCTIONS = [f for f in FUNCTIONS if callable(f) and f not in _WITHOUT_VALUES | _IN_PLACE]


@pytest.mark.parametrize("dtype", ["f8", "i4", "c8", "?"])
@pytest.mark.parametrize("operands", OPERANDS)
def test_results_have_memory_as_numpys(operands, dtype):
    """All functions there are, on small arrays: NumPy's elements, and a write to a result is seen in the
    operands where NumPy's is."""
    asked = 0
    values = numpy.array([0, 1, 3, 2, 5, 4, 1]).astype(dtype)
    for function in _FUNCTIONS:
        outcomes: list[Any] = []
        for namespace, called in ((numpy, function), (np, FUNCTIONS[function])):
            given = OPERANDS[operands](values)
            args = [namespace.array(g) if isinstance(g, numpy.ndarray) else g for g in given]
            with warnings.catch_warnings(), numpy.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    results = _arrays(called(*args))
                except Exception:  # noqa: BLE001 - whatever it refuses is another test's
                    break
                kept = [numpy.array(r) for r in results]
                for r in results:
                    if r.flags.writeable and r.size:
                        r[...] = r.dtype.type(1) if r.dtype.kind in "biufc" else r
            outcomes.append((kept, [numpy.array(a) for a in args]))
        if len(outcomes) < 2:
            continue
        asked += 1
        (theirs, after), (ours, ours_after) = outcomes
        name = function.__name__
        for wanted, got in zip(theirs, ours, strict=True):
            numpy.testing.assert_array_equal(got.shape, wanted.shape, err_msg=name)
            assert got.dtype == wanted.dtype, name
        for wanted, got in zip(after, ours_after, strict=True):
            numpy.testing.assert_array_equal(got, wanted, err_msg=name)
    assert asked > 15
