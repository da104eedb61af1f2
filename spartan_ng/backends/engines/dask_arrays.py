"""Arrays from and to `dask.array`, chunk by tile: on the cluster that both run on, past the program."""

from __future__ import annotations

from itertools import product
from typing import Any

import dask
import dask.array
import numpy as np

from spartan_ng.arrays import ArrayRef, Tiling, box_shape
from spartan_ng.arrays.copying import aligned
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.backends.engines.kinds.dask import DaskEngine
from spartan_ng.backends.protocol import Backend
from spartan_ng.errors import ConnectionFailed
from spartan_ng.kernels.formats import dense
from spartan_ng.worker.tasks import Made, Number, read


def taken(backend: Backend, x: dask.array.Array) -> ArrayRef:
    """An array of dask's, computed by dask in chunks that are our tiles."""
    home, engine = _on_dask(backend)
    if not isinstance(x, dask.array.Array):
        raise TypeError(
            f"from_dask takes a dask.array.Array, not {type(x).__name__}; np.array() takes NumPy's arrays, "
            "and lists"
        )
    _check(x._meta)
    if any(np.isnan(s) for s in x.shape):
        x = x.compute_chunk_sizes()
    axis = int(np.argmax(x.shape)) if x.ndim and x.shape[0] < home.workers else 0
    parts = tuple(min(home.workers, max(n, 1)) if a == axis else 1 for a, n in enumerate(x.shape))
    tiling = Tiling.grid(*parts)
    chunks = tuple(
        tuple(hi - lo for lo, hi in (tiling.cut(a, n, i) for i in range(p)))
        for a, (n, p) in enumerate(zip(x.shape, parts, strict=True))
    )
    delayed = x.rechunk(chunks).to_delayed() if x.ndim else x.to_delayed()
    every = engine.adopted(list(np.asarray(delayed, object).ravel()))
    handles = [engine.submit("from_dask", _tile, one, np.dtype(x.dtype)) for one in every]
    ref = ArrayRef(x.shape, np.dtype(x.dtype))
    home.adopt(ref, tiling, handles)
    return ref


def given(backend: Backend, ref: ArrayRef) -> dask.array.Array:
    """An array with a chunk for each of our tiles."""
    home, engine = _on_dask(backend)
    tiles, tiling = home.laid_out(ref)
    blocks = np.empty(tiling.parts, object)
    for index in product(*map(range, tiling.parts)):
        tile = tiles[0 if tiling.duplicate else tiling.rank(index)]
        future = engine.future(home.tasks.submit("to_dask", _chunk, tile.handle, tile.number))
        shape = box_shape(tiling.box(ref.shape, index))
        blocks[index] = dask.array.from_delayed(dask.delayed(future), shape, ref.dtype)
    whole = dask.array.block(blocks.tolist()) if ref.shape else blocks[()]
    return whole.astype(ref.dtype)  # as it is, but for the other order of bytes, which dask's blocks lose


def _on_dask(backend: Backend) -> tuple[EngineBackend, DaskEngine]:
    if not isinstance(backend, EngineBackend) or not isinstance(backend.engine, DaskEngine):
        raise ConnectionFailed(
            "arrays pass to and from dask on a cluster that both run on: np.connect(client) with your "
            "distributed.Client first"
        )
    return backend, backend.engine


def _check(chunk: Any) -> None:
    """TypeError for masked arrays, whose masks ours would lose."""
    if isinstance(chunk, np.ma.MaskedArray):
        raise TypeError(
            "from_dask: the array's chunks are masked, and arrays of this package have no masks: "
            "dask.array.ma.filled(x, value) says what stands for what is masked"
        )


def _chunk(made: Made, number: Number) -> Any:
    """A tile as others know arrays: what is sparse or compressed here is no NumPy's array to dask."""
    return dense(read(made, number, None))


def _tile(chunk: Any, dtype: np.dtype[Any]) -> Made:
    _check(chunk)  # dask need not know before
    dense = getattr(chunk, "toarray", None) or getattr(chunk, "todense", None)  # SciPy's, and sparse's
    chunk = chunk if dense is None else dense()
    return Made({0: aligned(np.ascontiguousarray(chunk, dtype)).reshape(np.shape(chunk))})
