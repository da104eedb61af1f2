"""Transforms of lines that memory has no room for are NumPy's, of whatever length has factors."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

LIMIT = 20_000
"""Bytes: lines of some four hundred complex numbers have room."""
NAMES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
REAL = ("rfft", "ihfft")


def drawn(seed: int) -> tuple[str, Any, dict[str, Any]]:
    """A transform, what it is of, and how."""
    draw = random.Random(seed)
    name = NAMES[seed % len(NAMES)]
    shown = draw.randint(2, 40) * draw.randint(20, 60)
    given = (
        draw.choice([shown, shown, shown + 7, shown // 2])
        if name not in ("irfft", "hfft")
        else shown // 2 + 1
    )
    shape = draw.choice([(given,), (given,), (3, given), (given, 2)])
    axis = shape.index(given) - draw.choice([0, len(shape)])
    numbers = numpy.random.default_rng(seed)
    value: Any = numbers.random(shape)
    if name not in REAL and draw.random() < 0.7:
        value = value + 1j * numbers.random(shape)
    if draw.random() < 0.2:
        value = value.astype(numpy.complex64 if value.dtype.kind == "c" else numpy.float32)
    how = {"n": shown, "axis": axis, "norm": draw.choice([None, "backward", "ortho", "forward"])}
    if given == shown and draw.random() < 0.5:
        del how["n"]
    return name, value, how


@pytest.mark.some(12)
@pytest.mark.parametrize("seed", range(120))
@pytest.mark.parametrize("workers", [0, 3])
def test_long_lines_are_transformed_as_numpy_does(seed: int, workers: int) -> None:
    name, value, how = drawn(seed)
    expected = getattr(numpy.fft, name)(value, **how)
    limited = Profile(memory_bytes=LIMIT, limited=True)
    backend = SimulatedBackend(workers, limited) if workers else EmbeddedBackend(2, LIMIT)
    with running_on(backend), config.override(memory_bytes=LIMIT, small_bytes=0):
        found = getattr(np.fft, name)(over(Recorder(value)), **how)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        close = 2e-6 if expected.dtype.itemsize in (4, 8) and value.dtype.itemsize < 16 else 1e-10
        scale = abs(expected).max()
        numpy.testing.assert_allclose(numpy.asarray(found) / scale, expected / scale, rtol=0, atol=close)
        assert found.strides == numpy.asarray(found).strides == expected.strides


def test_a_long_line_of_prime_length_says_which_one_has_room() -> None:
    value = numpy.random.default_rng(0).random(1009)
    with running_on(EmbeddedBackend(2, LIMIT)), config.override(memory_bytes=LIMIT, small_bytes=0):
        x = over(Recorder(value))
        with pytest.raises(MemoryBudgetError, match=r"1,009 elements takes about 161,440 bytes.*n=1024"):
            np.fft.rfft(x)
        numpy.testing.assert_allclose(np.fft.rfft(x, n=1024), numpy.fft.rfft(value, n=1024))
