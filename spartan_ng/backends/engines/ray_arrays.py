"""Arrays from and to data sets of Ray, a block for each tile: on the Ray of both, past the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import ray.data
from ray.data.block import BlockAccessor

from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.backends.engines.kinds.ray import RayEngine
from spartan_ng.backends.protocol import Backend
from spartan_ng.errors import ConnectionFailed
from spartan_ng.kernels.formats import dense
from spartan_ng.worker.tasks import Made, Number, read


def taken(backend: Backend, rows: ray.data.Dataset, column: str) -> ArrayRef:
    """An array of the rows of a column, computed by Ray, and joined to our tiles by its tasks."""
    home, engine = _on_ray(backend)
    if not isinstance(rows, ray.data.Dataset):
        raise TypeError(
            f"from_ray takes a ray.data.Dataset, not {type(rows).__name__}; np.array() takes NumPy's arrays"
        )
    with _in_order(rows):
        found = [ref for bundle in rows.iter_internal_ref_bundles() for ref in bundle.block_refs]
    blocks = [engine.submit("column", _column, block, column) for block in found]
    known = engine.get([engine.submit("block", _kind, block) for block in blocks])
    filled = [(block, kind) for block, kind in zip(blocks, known, strict=True) if kind[0][0]]
    if not filled:  # what a filter has emptied may have no columns
        filled = [(b, k) for b, k in zip(blocks, known, strict=True) if not k[1].hasobject][:1]
    blocks, known = [b for b, _ in filled], [k for _, k in filled]
    shapes = {shape[1:] for shape, _ in known}
    dtype = np.result_type(*(d for _, d in known)) if known else np.dtype(float)
    if len(shapes) > 1 or dtype.hasobject:
        raise TypeError(
            f"column {column!r} has no rows of one shape and of numbers, but of {dtype} {sorted(shapes)}; "
            "from_ray takes no texts and no other objects"
        )
    starts = np.cumsum([0, *(shape[0] for shape, _ in known)]).tolist()
    shape = (starts[-1], *(shapes.pop() if shapes else ()))
    parts = min(home.workers, max(shape[0], 1))
    tiling = Tiling.grid(parts, *(1 for _ in shape[1:]))
    handles = []
    for part in range(parts):
        lo, hi = tiling.cut(0, shape[0], part)
        inside = [i for i in range(len(blocks)) if starts[i] < hi and lo < starts[i + 1]]
        cuts = tuple((max(lo - starts[i], 0), hi - starts[i]) for i in inside)
        tile_shape = (hi - lo, *shape[1:])
        handles.append(
            engine.submit("from_ray", _tile, tile_shape, dtype, cuts, *(blocks[i] for i in inside))
        )
    ref = ArrayRef(shape, dtype)
    home.adopt(ref, tiling, handles)
    return ref


def given(backend: Backend, ref: ArrayRef, column: str) -> ray.data.Dataset:
    """The rows of an array that is cut by rows or not at all, a block for each tile."""
    home, _ = _on_ray(backend)
    tiles, tiling = home.laid_out(ref)
    ranks = (
        [0]
        if tiling.duplicate
        else [tiling.rank((i,) + (0,) * (len(ref.shape) - 1)) for i in range(tiling.parts[0])]
    )
    blocks = [
        home.tasks.submit("to_ray", _native, tiles[r].handle, tiles[r].number, None)
        for r in ranks
        if r in tiles
    ]
    rows = ray.data.from_numpy_refs(blocks)
    return rows if column == "data" else rows.rename_columns({"data": column})


@contextmanager
def _in_order(rows: ray.data.Dataset) -> Iterator[None]:
    """Have Ray give a data set's blocks in their order, and not as they come."""
    options = rows.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        yield
    finally:
        options.preserve_order = before


def _on_ray(backend: Backend) -> tuple[EngineBackend, RayEngine]:
    if not isinstance(backend, EngineBackend) or not isinstance(backend.engine, RayEngine):
        raise ConnectionFailed(
            'data sets pass to and from Ray on a Ray that both run on: np.connect("ray") or '
            'np.connect("ray://host:10001") first'
        )
    return backend, backend.engine


def _native(found: Made, number: Number, region: None) -> Any:
    """A tile in the machine's order of bytes, and dense: Ray's tables have no other, and take the bytes as
    they are."""
    tile = dense(read(found, number, region))
    return np.asarray(tile, tile.dtype.newbyteorder("="))


def _column(block: Any, column: str) -> np.ndarray[Any, Any]:
    """What Ray's `to_numpy_refs` gives of a block; one that a filter has emptied has no columns."""
    rows = BlockAccessor.for_block(block)
    if not rows.num_rows() and column not in rows.column_names():
        return np.empty(0, object)
    found = np.asarray(rows.to_numpy(column))
    if found.dtype == object and len(found):  # so it has complex numbers, which Arrow does not know
        with suppress(ValueError):  # rows of several shapes
            numbers = np.array([*found])
            return numbers if numbers.dtype.kind == "c" else found
    return found


def _kind(block: np.ndarray[Any, Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return block.shape, block.dtype


def _tile(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    cuts: tuple[tuple[int, int], ...],
    *blocks: np.ndarray[Any, Any],
) -> Made:
    tile = np.empty(shape, dtype)
    filled = 0
    for block, (lo, hi) in zip(blocks, cuts, strict=True):
        rows = block[lo:hi]
        tile[filled : filled + len(rows)] = rows
        filled += len(rows)
    return Made({0: tile})
