"""What shows an array's memory in another way, on workers as here: who writes to one writes to both."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy
import pytest

import spartan_ng
from spartan_ng import session
from spartan_ng.config import config

N = 300
SHOWN = {
    "windows": lambda np, a: np.lib.stride_tricks.sliding_window_view(a, 3, writeable=True),
    "windows of a part": lambda np, a: np.lib.stride_tricks.sliding_window_view(a[10:90], 3, writeable=True),
    "strides": lambda np, a: np.lib.stride_tricks.as_strided(a, (N // 2, 2), (8, 8)),
    "strides of every second": lambda np, a: np.lib.stride_tricks.as_strided(a[::2], (20, 5), (16, 16)),
    "a constructor": lambda np, a: np.ndarray((5, 8), a.dtype, a, 16),
    "bytes": lambda np, a: np.frombuffer(a, "u1").view("f8").reshape(-1, 4),
    "a matrix": lambda np, a: a.view(numpy.matrix).reshape(-1, 2),
    "a pointer": lambda np, a: numpy.ctypeslib.as_array(
        ctypes.cast(a.ctypes.data, ctypes.POINTER(ctypes.c_double)), (10, 10)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("made", ["computed", "a view", "read before"])
@pytest.mark.parametrize("name", SHOWN)
def test_what_shows_memory_is_written_to_together_with_it(backend, name, made):
    def run(np: Any) -> list[Any]:
        x = np.arange(2.0 * N) * 3 + 1
        a = x[N // 2 : N // 2 + N] if made == "a view" else x[:N] * 1
        found: list[Any] = [float(a.sum())] if made == "read before" else []
        later = a * 2
        shown = SHOWN[name](np, a)
        shown[2, 1] = -1
        found += [numpy.array(a), numpy.array(a + 1), float(x.sum())]
        a[3:9] += 10
        found += [numpy.array(shown[:4]), numpy.array(a * a), float(x.max()), numpy.array(later)]
        return found

    before = session.current().backend
    session.use(backend)
    try:
        with config.override(small_bytes=0):
            ours = run(spartan_ng)
    finally:
        session.use(before)
    for got, wanted in zip(ours, run(numpy), strict=True):
        numpy.testing.assert_array_equal(got, wanted)
