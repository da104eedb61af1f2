"""How many bytes of a call pass through the driver, on three workers that hold its operands.

A function is distributed if what it brings home, what it sends out and what it leaves on the driver is small,
while its operands or its results are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.api.core.handle import Handle
from spartan_ng.config import config
from tests.numpy_parity import calls, spaces
from tests.numpy_parity.operands import Call, values

SMALL_BYTES = 2048
"""What counts as small."""
LIMIT_BYTES = 3072
"""What may pass through the driver in all: less than any operand, a tenth of most."""
ELSEWHERE = {"numpy.linalg": spaces.LINALG, "numpy.fft": spaces.FFT, "numpy.random": spaces.RANDOM}


class CountingBackend(SimulatedBackend):
    """Three workers, and the bytes that go from and to the driver."""

    def __init__(self) -> None:
        super().__init__(3)
        self.home_bytes = 0
        self.sent_bytes = 0

    def gather(self, ref, box):
        """Count what comes home."""
        value = super().gather(ref, box)
        self.home_bytes += value.nbytes
        return value

    def upload(self, ref, tiling):
        """Count what is sent."""
        self.sent_bytes += ref.value.nbytes
        super().upload(ref, tiling)


@dataclass(frozen=True)
class Passed:
    """Bytes of a call that passed through the driver, and what it gave."""

    home: int
    sent: int
    left: int
    result: Any

    @property
    def distributed(self) -> bool:
        """Whether each of them is small."""
        return max(self.home, self.sent, self.left) <= LIMIT_BYTES

    def __str__(self) -> str:
        return f"{self.home} bytes brought home, {self.sent} sent, {self.left} left on the driver"


@contextmanager
def three_workers() -> Iterator[tuple[CountingBackend, SimpleNamespace]]:
    """The backend, and operands that lie with its workers."""
    before = session.current().backend
    backend = CountingBackend()
    session.use(backend)
    np.random.seed()  # nobody asks for a stream
    try:
        with config.override(small_bytes=SMALL_BYTES, disabled_passes=frozenset({"home"})):
            yield backend, SimpleNamespace(**{k: _spread(v) for k, v in values().items()})
    finally:
        session.use(before)
        backend.close()


def _spread(value: Any) -> Any:
    """An array whose elements only the workers have."""
    a = np.array(value)
    if value.dtype.kind == "b":
        return (a | False).persist()
    return (a + value.dtype.type(0) if value.dtype.kind != "M" else a + numpy.timedelta64(0, "D")).persist()


def passed(backend: CountingBackend, call: Call, operands: Any) -> Passed:
    """Make a call, evaluate what it gives, and count."""
    backend.home_bytes = backend.sent_bytes = 0
    result = call(np, operands)
    arrays = list(flat(result))
    ours = [a for a in arrays if issubclass(type(a), Handle)]
    assert not [a for a in arrays if type(a) is numpy.ndarray], "results are our arrays"
    left = sum(a.nbytes for a in ours if a._peek() is not None)
    np.persist(*ours)
    return Passed(backend.home_bytes, backend.sent_bytes, left, result)


def flat(result: Any) -> Iterator[Any]:
    """The arrays and numbers of a nested result."""
    if isinstance(result, list | tuple):
        for r in result:
            yield from flat(r)
    else:
        yield result


def all_calls() -> dict[tuple[str, str], Call]:
    """A call for every name."""
    found: dict[tuple[str, str], Call] = {("numpy", n): c for n, c in calls.NUMPY.items()}
    found |= {("numpy", n): _ufunc(n) for n in numpy.__all__ if isinstance(getattr(numpy, n), numpy.ufunc)}
    found |= {(space, n): c for space, table in ELSEWHERE.items() for n, c in table.items()}
    return found | {("numpy.ndarray", n): c for n, c in calls.NDARRAY.items()}


_PRODUCTS = {
    "matmul": lambda np, o: np.matmul(o.a, o.s),
    "matvec": lambda np, o: np.matvec(o.a, o.a[0]),
    "vecdot": lambda np, o: np.vecdot(o.a, o.s),
    "vecmat": lambda np, o: np.vecmat(o.a[0], o.a),
}


def _ufunc(name: str) -> Call:
    """A ufunc on the first operands that NumPy takes for it."""
    if name in _PRODUCTS:
        return _PRODUCTS[name]
    if name == "isnat":
        return lambda np, o: np.isnat(o.dates)
    if name == "ldexp":
        return lambda np, o: np.ldexp(o.v, o.i)
    function = getattr(numpy, name)
    for kinds, code in (("vw", "d"), ("ij", "l")):
        if any(t.startswith(code * function.nin + "->") for t in function.types):
            return _given(name, kinds[: function.nin])
    raise AssertionError(f"no operands for {name}")


def _given(name: str, kinds: str) -> Call:
    return lambda np, o: getattr(np, name)(*(getattr(o, k) for k in kinds))
