"""xarray's door for arrays that are worked on in parts: with it, `chunks=` gives arrays of this package.

`xr.open_dataset(path, chunks={}, chunked_array_type="spartan_ng")` reads nothing: data are read where they
are worked on, as from any source. Chunks say how to read, and nothing else: how arrays are cut is the
optimizer's to choose, for each program anew. So xarray is told of one chunk an axis (`managed.Managed`), and
functions may ask for whole lines along any.

What xarray does with arrays that have chunks comes here: reading them into memory (`load`, `compute`),
writing them to files, functions of NumPy's arrays on their parts (`apply_ufunc(..., dask="parallelized")`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray
from xarray.namedarray.parallelcompat import ChunkManagerEntrypoint

from spartan_ng import in_parts
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.files.saving import drain
from spartan_ng.api.files.sinks import in_rows
from spartan_ng.api.files.sources import from_source
from spartan_ng.api.ndarray.array import compute, ndarray, persist
from spartan_ng.graph.evaluation import shares_files
from spartan_ng.managed import NAMESPACE, Chunks, Managed, as_managed, managed
from spartan_ng.sinks import ZarrPart
from spartan_ng.sinks.zarr_store import stored_chunks
from spartan_ng.sources.source import note_loop
from spartan_ng.sources.zarr_array import ZarrArray


class ChunkManager(ChunkManagerEntrypoint[Any]):  # type: ignore[misc]  # mypy does not follow xarray
    """What xarray asks of who works on arrays in parts."""

    def __init__(self) -> None:
        self.array_cls = Managed

    def is_chunked_array(self, data: Any) -> bool:
        """Whether it is an array of this package: `isinstance` says so of NumPy's, too."""
        return isinstance(data, Handle)

    def chunks(self, data: Any) -> Chunks:
        """One part an axis: who asks may have the whole."""
        return tuple((n,) for n in data.shape)

    @property
    def array_api(self) -> Any:
        """The package's functions."""
        return NAMESPACE

    def normalize_chunks(
        self,
        chunks: Any,
        shape: Sequence[int] | None = None,
        limit: int | None = None,
        dtype: Any = None,
        previous_chunks: Any = None,
    ) -> Chunks:
        """The lengths of parts along each axis of `shape`: `chunks` as dask takes them.

        Where these leave it open ("auto", None), what is stored in chunks (`previous_chunks`) keeps them, and
        other axes are whole.
        """
        assert shape is not None, "xarray tells it"
        asked = _by_axis(chunks, len(shape))
        stored = _by_axis(previous_chunks, len(shape))
        return tuple(_parts(a, s, n) for a, s, n in zip(asked, stored, shape, strict=True))

    def from_array(self, data: Any, chunks: Any, **keywords: Any) -> Any:
        """An array over what xarray has not read yet; over an array in memory that array. Objects (texts of
        any length) are read now, and are NumPy's: no source can have them."""
        if data.dtype.hasobject:
            return np.asarray(data)
        if isinstance(data, np.ndarray):
            return managed(from_source(data))
        parts = self.normalize_chunks(chunks, data.shape)
        asked = tuple(max(lengths, default=1) for lengths in parts)
        found = _stored(data, asked)
        return managed(from_source(UnreadFile(data, asked) if found is None else found))

    def rechunk(self, data: Any, chunks: Any, **keywords: Any) -> Any:
        """The same array: nothing of it depends on chunks."""
        return managed(data)

    def unify_chunks(self, *arguments: Any, **keywords: Any) -> tuple[dict[Any, Any], list[Any]]:
        """The arrays, which stand before the names of their axes, as they are; and the axes' chunks."""
        arrays, names = arguments[::2], arguments[1::2]
        pairs = [
            pair for a, axes in zip(arrays, names, strict=True) for pair in zip(axes, a.shape, strict=True)
        ]
        return {name: (n,) for name, n in pairs}, list(arrays)

    def compute(self, *data: Any, **keywords: Any) -> tuple[Any, ...]:
        """NumPy's arrays of all of them, computed together."""
        return compute(*data)

    def persist(self, *data: Any, **keywords: Any) -> tuple[Any, ...]:
        """The same arrays, whose elements stay where they were made."""
        return persist(*data)

    def shuffle(self, x: Any, indexer: Sequence[Sequence[int]], axis: int, chunks: Any) -> Any:
        """The elements at the indices in all of some lists, one after the other."""
        return x.take(np.concatenate([np.asarray(part, np.intp) for part in indexer]), axis=axis)

    def map_blocks(
        self,
        func: Callable[..., Any],
        *arguments: Any,
        dtype: Any = None,
        chunks: Any = None,
        drop_axis: Any = None,
        new_axis: Any = None,
        **keywords: Any,
    ) -> Any:
        """A function of elements; where it changes axes, it gets the whole at once."""
        changes = chunks is not None or drop_axis is not None or new_axis is not None
        called = functools.partial(func, **keywords)
        return as_managed(in_parts.elementwise(called, arguments, None if changes else dtype))

    def reduction(
        self,
        arr: Any,
        func: Callable[..., Any],
        combine_func: Callable[..., Any] | None = None,
        aggregate_func: Callable[..., Any] | None = None,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
    ) -> Any:
        """What `func`, and then `aggregate_func`, make of lines along one axis."""
        (along,) = (axis,) if isinstance(axis, int) else axis
        last = aggregate_func or combine_func or func

        def lines(block: Any) -> Any:
            return last(func(block, axis=-1, keepdims=True), axis=-1, keepdims=False)

        made = self.apply_gufunc(
            lines, "(i)->()", np.moveaxis(arr, along, -1), output_dtypes=[dtype or arr.dtype]
        )
        return np.expand_dims(made, along) if keepdims else made

    def store(
        self,
        sources: Any,
        targets: Any,
        *,
        regions: Any = None,
        compute: bool = True,
        **keywords: Any,
    ) -> None:
        """Write arrays into arrays of files: to local zarr stores from the workers that make the elements,
        else from here, some rows at a time.

        NotImplementedError where it is to be done later (`compute=False`): that takes dask.
        """
        if not compute:
            raise NotImplementedError("arrays of spartan_ng are written at once: compute=False takes dask's")
        for source, target, region in zip(sources, targets, regions or [None] * len(sources), strict=True):
            _write(source, target, region)

    def apply_gufunc(
        self,
        func: Callable[..., Any],
        signature: str,
        *arrays: Any,
        output_dtypes: Any = None,
        output_sizes: dict[str, int] | None = None,
        vectorize: bool = False,
        axes: Any = None,
        keepdims: bool = False,
        allow_rechunk: bool = True,
        meta: Any = None,
        **keywords: Any,
    ) -> Any:
        """A function of NumPy's arrays on lines along its core dimensions, some of them at a time."""
        if axes is not None or keepdims:
            raise NotImplementedError("apply_gufunc: core dimensions are last, and go (no axes=, keepdims=)")
        called = functools.partial(func, **keywords)
        if output_dtypes is not None and not isinstance(output_dtypes, list | tuple):
            output_dtypes = [output_dtypes]
        lines = in_parts.lines_of(called, signature, output_sizes, vectorize, output_dtypes)
        made = as_managed(in_parts.apply(lines, arrays, output_dtypes))
        return made[0] if len(made) == 1 else made


class UnreadFile:
    """What xarray has of a file, for workers to read boxes of."""

    def __init__(self, data: Any, chunks: tuple[int, ...]) -> None:
        self.data, self.shape, self.dtype = data, data.shape, data.dtype
        self.waits_for_loop = _is_of_zarr(data)
        self.chunks = chunks if chunks != data.shape else None
        """The whole says nothing of how to read."""

    def __getitem__(self, box: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        return np.asarray(self.data[box])


_AS_IT_LIES = ("ImplicitToExplicitIndexingAdapter", "CopyOnWriteArray", "LazilyIndexedArray")
"""xarray's classes around an array whose elements stay as they are, but for a key."""


def _stored(data: Any, chunks: tuple[int, ...]) -> ZarrArray | None:
    """The zarr store's array that xarray hands on as it lies there, if the chunks are its own: we read it in
    less memory, and see where it is written to."""
    inner = data
    while type(inner).__name__ in _AS_IT_LIES:
        key = getattr(getattr(inner, "key", None), "tuple", ())
        inner = inner.array if all(part == slice(None) for part in key) else None
    if type(inner).__name__ != "ZarrArrayWrapper":
        return None
    array = inner._array
    folder = _folder_of(array)
    if folder is None or tuple(min(n, c) for n, c in zip(array.shape, array.chunks, strict=True)) != chunks:
        return None
    found = ZarrArray(folder)
    return found if (found.shape, found.dtype) == (data.shape, data.dtype) else None


def _is_of_zarr(data: Any) -> bool:
    """Whether zarr reads it, below what xarray has put around; then zarr's loop is noted."""
    while data is not None:
        if type(data).__module__.startswith(("zarr.", "xarray.backends.zarr")):
            note_loop()
            return True
        data = getattr(data, "array", None)
    return False


def _by_axis(chunks: Any, ndim: int) -> list[Any]:
    if isinstance(chunks, dict):
        return [chunks.get(axis) for axis in range(ndim)]
    if isinstance(chunks, tuple | list):
        return list(chunks)
    return [chunks] * ndim


def _parts(asked: Any, stored: Any, length: int) -> tuple[int, ...]:
    for part in (asked, stored):
        if isinstance(part, tuple | list):
            return tuple(part)
        if isinstance(part, int | np.integer):
            each = length if part < 0 else min(int(part), length)
            whole, rest = divmod(length, each) if each else (1, 0)
            return (each,) * whole + (rest,) * bool(rest)
    return (length,)


# --- writing ---------------------------------------------------------------------------------------------


def to_zarr(data: xarray.Dataset | xarray.DataArray, store: Any = None, **keywords: Any) -> Any:
    """`data.to_zarr(store, **keywords)`, of arrays that need not fit into memory.

    An array is written in the pass that makes it, by the workers, as `spartan_ng.to_zarr` writes it. Where no
    `encoding` says how it is stored, chunks are whole rows of about 8 MB. Those that a region or an append
    meets in part are safe (`safe_chunks=False`): who writes to one has it alone.
    """
    return _for_files(data).to_zarr(store, **{"safe_chunks": False, **keywords})


def to_netcdf(data: xarray.Dataset | xarray.DataArray, path: Any = None, **keywords: Any) -> Any:
    """`data.to_netcdf(path, **keywords)`, of arrays that need not fit into memory: some rows are made and
    written at a time."""
    return _for_files(data).to_netcdf(path, **keywords)


def _for_files(data: Any) -> Any:
    """The same with arrays that say how they are stored; what is empty or no numbers is NumPy's."""
    if isinstance(data, xarray.DataArray):
        changed = {name: _for_file(v) for name, v in data.coords.variables.items() if _is_ours(v)}
        written = _for_file(data) if _is_ours(data.variable) else data
        return written.assign_coords(changed)
    return data.assign({name: _for_file(v) for name, v in data.variables.items() if _is_ours(v)})


def _is_ours(variable: xarray.Variable) -> bool:
    return isinstance(variable._data, Handle)  # `data` would read what lies in a file


def _for_file(variable: Any) -> Any:
    """A variable, or an array with labels, on its way to a file."""
    array = variable.data
    if not array.size or not array.ndim or array.dtype.kind not in "biufc":
        return variable.copy(deep=False, data=np.asarray(array))
    new = variable.copy(deep=False, data=managed(array))
    new.encoding = {"chunks": stored_chunks(array.shape, array.dtype), **variable.encoding}
    return new


def _write(source: ndarray, target: Any, region: Any) -> None:
    """Write an array to a box of zarr's array, or of any other that takes slices."""
    slices = region or (slice(None),) * source.ndim
    box = tuple(s.indices(n)[:2] for s, n in zip(slices, target.shape, strict=True))
    folder = _folder_of(target)
    if folder is not None and shares_files():
        drain(source, ZarrPart(target, folder, box))
        return
    first, rest = box[0][0], tuple(slice(*span) for span in box[1:])
    for part in in_rows(source):
        target[(slice(first, first + len(part)), *rest)] = part
        first += len(part)


def _folder_of(target: Any) -> str | None:
    """Where an array of zarr's lies, if that is a folder of this machine."""
    root = getattr(getattr(target, "store", None), "root", None)
    if isinstance(root, os.PathLike):
        return f"{root}/{target.path}"
    return None
