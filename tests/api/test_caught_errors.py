"""Errors that a program catches: the arrays of the call are the program's alone again, collected or not."""

from __future__ import annotations

import gc
import sys

import numpy
import pytest

import spartan_ng as np

WRONG = [
    "a.reshape(7, -3)",
    "np.reshape(a, (4, 4))",
    "a + np.ones(7)",
    "a - c",
    "np.add(a, np.ones(7))",
    "np.add(a, a, out=np.ones(7))",
    "np.modf(a, out=(np.ones(7), None))",
    "a[9]",
    "a[[9]]",
    "a[a > 1, 0, 0]",
    "a['x']",
    "a[np.ones(7, bool)]",
    "a[1:3] = np.ones(7)",
    "a[9] = 1",
    "a @ np.ones(7)",
    "np.dot(a, c)",
    "np.concatenate([a, c])",
    "np.concatenate([a, a], out=np.ones(7))",
    "np.stack([a, np.ones(7)])",
    "np.einsum('i,j->k', a, a)",
    "np.sum(a, axis=3)",
    "a.sum(axis=3)",
    "a.transpose(1, 0)",
    "a.astype('nonsense')",
    "np.take(a, 99)",
    "np.where(a > 1, a, np.ones(7))",
    "np.linalg.inv(a)",
    "np.linalg.solve(np.zeros((6, 6)), a)",
    "np.split(a, 4)",
    "np.broadcast_to(a, (7, 7))",
    "np.repeat(a, [1, 2])",
    "np.place(a, a > 1, [])",
    "np.copyto(a, np.ones(7))",
    "np.put(a, [99], 1)",
    "np.interp(a, a, c)",
    "a.resize((2, -3))",
    "np.add.at(a, [99], 1)",
    "np.add.reduceat(a, [99])",
    "float(a)",
    "bool(a)",
    "int(a)",
    "np.clip(a, np.ones(7), 2)",
    "np.linalg.norm(a, axis=4)",
    "a.swapaxes(0, 3)",
    "a.view('i3')",
    "np.fft.fft(a, axis=2)",
    "np.cov(a, c, rowvar=5, aweights=a)",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(40)
@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("statement", WRONG)
def test_a_caught_error_keeps_no_array(statement: str, small: int) -> None:
    with np.config.override(small_bytes=small):
        a, c = np.asarray([0.0, 1, 2, 3, 4, 5]) + 0, np.ones((3, 2, 2))
        names = {"np": np, "a": a, "c": c}
        gc.collect()
        gc.disable()
        try:
            before = sys.getrefcount(a)
            try:
                exec(statement, names)
            except (ValueError, TypeError, LookupError, numpy.linalg.LinAlgError):
                pass
            else:
                pytest.fail("it is no mistake")
            assert sys.getrefcount(a) == before
        finally:
            gc.enable()


def test_an_array_is_resized_after_a_caught_error() -> None:
    a = np.arange(6.0)
    with pytest.raises(ValueError, match="reshape") as caught:
        a.reshape(7, -3)
    del caught
    a.resize(3)
    assert a.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["c16", "f8", "i8", "?", "M8[s]", "U3", "c8", "f4"])
@pytest.mark.parametrize("width", [40, 60, 75, 120])
@pytest.mark.parametrize("shape", [(12_500,), (70, 80), (4, 2000, 3), (1_234_567,)])
def test_shapes_beside_the_edges_break_lines_where_numpy_does(
    shape: tuple[int, ...], width: int, dtype: str
) -> None:
    with numpy.printoptions(linewidth=width), np.config.override(small_bytes=0):
        lazy = np.broadcast_to(np.asarray([1]).astype(dtype), shape)
        made = np.concatenate([lazy, lazy])[: shape[0]]
        assert made._peek() is None
        assert repr(made) == repr(numpy.broadcast_to(numpy.asarray([1]).astype(dtype), shape))
