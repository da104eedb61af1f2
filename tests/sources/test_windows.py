"""Programs over what lies outside, drawn by a number: a kind of source, a function, an axis, a dtype and a
budget. What is put on disk is no more than projected, and nothing of what goes along its source; the arrays
that there are at a time are no more than projected, either."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.arrays import box_slices
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.put_aside import put_aside
from tests.test_programs import running_on

SHAPES = [(2400, 200), (48_000, 10), (240, 2000)]
_BESIDE = 50_000
"""What no projection counts: of results, and of parts of them, that take little."""


def _chunk(value: Any) -> tuple[int, int]:
    """Of some 5 kB."""
    return max(5000 // value[0].nbytes, 1), value.shape[1]


def _function(value: Any, folder: Path) -> Any:
    return np.from_function(lambda box: value[box_slices(box)], value.shape, value.dtype)


def _object(value: Any, folder: Path) -> Any:
    return np.from_source(_Chunked(value))


class _Chunked:
    def __init__(self, value: Any) -> None:
        self.value, self.shape, self.dtype, self.chunks = value, value.shape, value.dtype, _chunk(value)

    def __getitem__(self, key: Any) -> Any:
        return self.value[key]


def _zarr(value: Any, folder: Path) -> Any:
    np.to_zarr(np.array(value), folder / "x.zarr", chunks=_chunk(value))
    return np.load(folder / "x.zarr")


def _hdf5(value: Any, folder: Path) -> Any:
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("data", data=value, chunks=_chunk(value), compression="gzip", compression_opts=1)
    return np.load(folder / "x.h5")


def _mapped(value: Any, folder: Path) -> Any:
    value.tofile(folder / "x.raw")
    return np.from_raw(folder / "x.raw", value.shape, value.dtype)


def _joined(value: Any, folder: Path) -> Any:
    for k in (0, 1):
        np.to_zarr(
            np.array(value[k * len(value) // 2 : (k + 1) * len(value) // 2]),
            folder / f"{k}.zarr",
            chunks=_chunk(value),
        )
    return np.load([str(folder / "0.zarr"), str(folder / "1.zarr")])


KINDS: dict[str, Callable[[Any, Path], Any]] = {
    "function": _function,
    "object": _object,
    "zarr": _zarr,
    "hdf5": _hdf5,
    "mapped": _mapped,
    "joined": _joined,
}
Along = Callable[[Any, Any, Any], Any]
"""Of NumPy's names, an array and an axis."""
GOES_ALONG: dict[str, Along] = {
    "sums": lambda m, x, axis: m.sum(x, axis),
    "running sums": lambda m, x, axis: m.cumsum(x, axis, dtype="f8").max(-1),
    "running products": lambda m, x, axis: m.cumprod(x * 0 + 1, axis).sum(0),
    "running extremes": lambda m, x, axis: m.maximum.accumulate(m.ravel(x) if axis is None else x, axis or 0)[
        -1
    ],
    "deviations": lambda m, x, axis: m.std(x, axis, dtype="f8"),
    "extremes": lambda m, x, axis: m.ptp(x, axis),
    "differences": lambda m, x, axis: m.diff(x, axis=axis or 0).max(1),
    "places": lambda m, x, axis: m.argmax(x, axis),
    "of a mask": lambda m, x, axis: m.sum(x * 2, axis, where=x > 3),
    "weighted": lambda m, x, axis: m.average(x, axis or 0, weights=m.arange(x.shape[axis or 0]) + 1.0),
    "squares": lambda m, x, axis: m.sum(x[:, :9].astype("f8").T @ x[:, :9]),
}
"""What reads its source some indices at a time."""
STANDS: dict[str, Along] = {
    "sorted": lambda m, x, axis: m.sort(x, axis)[::7],
    "turned over": lambda m, x, axis: m.flip(x, axis).cumsum(axis)[-1:],
    "running twice": lambda m, x, axis: m.cumsum(m.cumsum(x, 1), 0).max(axis),
    "quantiles": lambda m, x, axis: m.quantile(x.astype("f8"), 0.3, axis=axis),
}
"""What may be put on disk, if that is projected."""
DTYPES = ("u1", "i2", "f4", "f8", "c16")


OF_COMPLEX = ("sums", "running products", "weighted", "turned over", "running twice")


@pytest.mark.some(16)
@pytest.mark.parametrize("number", range(400))
def test_a_drawn_program_keeps_to_what_is_projected(number: int, tmp_path: Path) -> None:
    draw = random.Random(number)
    kind, dtype = draw.choice([*KINDS]), draw.choice(DTYPES)
    name = draw.choice([n for n in (*GOES_ALONG, *GOES_ALONG, *STANDS) if dtype != "c16" or n in OF_COMPLEX])
    shape, axis, budget = draw.choice(SHAPES), draw.choice([0, 1, None]), draw.choice([1 << 18, 1 << 19])
    said = f"{name} along {axis} of {dtype} {shape} of {kind}, {budget:,} bytes"
    value = numpy.random.default_rng(number).integers(0, 9, shape).astype(dtype)
    program = (GOES_ALONG | STANDS)[name]
    wanted = program(numpy, value, axis)
    backend = EmbeddedBackend(2, budget)
    with running_on(backend), config.override(memory_bytes=budget, small_bytes=1 << 10):
        y = program(np, KINDS[kind](value, tmp_path), axis)
        projected = np.explain(y)
        with put_aside() as aside:
            found = numpy.asarray(y)
        assert backend._store.pool is not None
        peak = backend._store.pool.peak_bytes
    numpy.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=said)
    small = 2 * found.nbytes + _BESIDE
    # What lies on disk as a whole is projected to have what memory has room for there.
    assert max(aside, default=0) <= projected.disk_bytes + budget + small, (said, aside, projected.disk_bytes)
    is_kept = axis is not None or 16 * max(value[0].nbytes, 5000) <= budget  # a row of chunks, in C order
    if name in GOES_ALONG and is_kept:
        assert sum(aside) <= small, (said, aside)
    assert peak <= 2 * projected.projected_bytes + small, (said, peak, projected.projected_bytes)
