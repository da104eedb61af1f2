"""Who computes the rows of `larger`: ours, embedded and on two workers, and dask.array and cubed where they
are installed.

A side gives what a row knows as `np`: NumPy's names, and `load`, `save` and `compute`. dask.array has no
limit of memory; its chunks, and those of cubed, which has one, are a small part of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy

WORKERS = 2
_CHUNKS = 32
"""A peer's chunk is one part in so many of the limit."""

Opened = Callable[[int, str], AbstractContextManager[Any]]
"""`opened(limit, folder)` gives the side's `np` with so many bytes, and a folder for what it puts on disk."""


@dataclass(frozen=True)
class Side:
    """Who computes, and what it has nothing for."""

    opened: Opened
    library: str = "spartan_ng"
    lacks: tuple[str, ...] = ()
    """Rows that it cannot compute."""


@contextmanager
def _embedded(limit: int, folder: str) -> Iterator[Any]:
    import spartan_ng as np
    from spartan_ng import session

    np.config.memory_bytes = limit
    session.embed()
    yield np


@contextmanager
def _workers(limit: int, folder: str) -> Iterator[Any]:
    import spartan_ng as np
    from spartan_ng import session
    from spartan_ng.backends.local import LocalCluster

    np.config.memory_bytes = limit
    with LocalCluster(WORKERS, memory=limit // WORKERS) as backend:
        session.use(backend)
        yield np


class _Mapped:
    """An array in a file that is read box by box: dask copies what is NumPy's as a whole."""

    def __init__(self, file: str) -> None:
        x = numpy.load(file, "r")
        self._file, self.shape, self.dtype, self.ndim = file, x.shape, x.dtype, x.ndim

    def __getitem__(self, box: Any) -> Any:
        return numpy.array(numpy.load(self._file, "r")[box])


class _Peer:
    """A library's namespace, with what NumPy and ours call otherwise."""

    def __init__(self, names: Any, limit: int) -> None:
        self._names, self._limit = names, limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._names, name)

    def _opened(self, file: str) -> tuple[Any, tuple[int, ...]]:
        """A file, and the shape of its chunks: rows."""
        x = _Mapped(file)
        line = x.dtype.itemsize * prod(x.shape[1:])
        return x, (max(1, self._limit // _CHUNKS // line), *x.shape[1:])


class _Dask(_Peer):
    def load(self, file: str) -> Any:
        return self._names.from_array(*self._opened(file))

    def save(self, out: str, value: Any) -> None:
        self._names.store(value, numpy.lib.format.open_memmap(out, "w+", value.dtype, value.shape))

    def compute(self, *values: Any) -> Any:
        import dask

        return dask.compute(*values)


class _Cubed(_Peer):
    def __init__(self, names: Any, limit: int, folder: str) -> None:
        super().__init__(names, limit)
        import cubed

        self._cubed = cubed
        self._spec = cubed.Spec(work_dir=folder, allowed_mem=limit, reserved_mem=0)

    def load(self, file: str) -> Any:
        x, chunks = self._opened(file)
        return self._cubed.from_array(x, chunks=chunks, spec=self._spec)

    def save(self, out: str, value: Any) -> None:
        self._cubed.to_zarr(value, out)

    def compute(self, *values: Any) -> Any:
        return self._cubed.compute(*values)


@contextmanager
def _dask(limit: int, folder: str) -> Iterator[Any]:
    import dask.array

    yield _Dask(dask.array, limit)


@contextmanager
def _cubed(limit: int, folder: str) -> Iterator[Any]:
    import cubed.array_api

    yield _Cubed(cubed.array_api, limit, folder)


_SORTS = ("sort to a file", "median and quantiles")
_EVERY = {
    "embedded": Side(_embedded),
    f"{WORKERS} workers": Side(_workers),
    "dask.array": Side(_dask, "dask", _SORTS),
    "cubed": Side(
        _cubed,
        "cubed",
        (*_SORTS, "masked sum", "cumsum to a file", "k-means", "logistic regression"),
    ),
}
SIDES = {name: side for name, side in _EVERY.items() if find_spec(side.library) is not None}
"""Those that are installed."""
