"""xarray's door for arrays that are worked on in parts: with it, `chunks=` gives arrays of this package.

`xr.open_dataset(path, chunks={}, chunked_array_type="spartan_ng")` reads nothing: data are read where they
are worked on, as from any source. Chunks say how to read, and nothing else: how arrays are cut is the
optimizer's to choose, for each program anew. So an array of ours has no `chunks`, and xarray treats it as it
does NumPy's: `apply_ufunc` gives functions the whole, and refuses arrays with chunks unless told `dask=`.

What has no `chunks` xarray writes to files as one array in memory. `to_zarr` and `to_netcdf` here call
xarray's own with arrays that have them, which come back to `ChunkManager.store`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray
from xarray.namedarray.parallelcompat import ChunkManagerEntrypoint

from spartan_ng.api import standard
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.files.saving import drain
from spartan_ng.api.files.sinks import in_rows
from spartan_ng.api.files.sources import from_source
from spartan_ng.api.ndarray.array import compute, ndarray
from spartan_ng.graph.evaluation import shares_files
from spartan_ng.sinks import ZarrPart
from spartan_ng.sinks.zarr_store import stored_chunks
from spartan_ng.sources.source import note_loop

Chunks = tuple[tuple[int, ...], ...]
"""The lengths of the parts along each axis."""


class ChunkManager(ChunkManagerEntrypoint[Any]):  # type: ignore[misc]  # mypy does not follow xarray
    """What xarray asks of who works on arrays in parts."""

    def __init__(self) -> None:
        self.array_cls = ndarray

    def is_chunked_array(self, data: Any) -> bool:
        """Whether it is an array of this package: `isinstance` says so of NumPy's, too."""
        return isinstance(data, Handle)

    def chunks(self, data: Any) -> Chunks:
        """One part an axis: who asks may have the whole."""
        return tuple((n,) for n in data.shape)

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
            return from_source(data)
        parts = self.normalize_chunks(chunks, data.shape)
        return from_source(Unread(data, tuple(max(lengths, default=1) for lengths in parts)))

    def rechunk(self, data: Any, chunks: Any, **keywords: Any) -> Any:
        """The same array: nothing of it depends on chunks."""
        return data

    def compute(self, *data: Any, **keywords: Any) -> tuple[Any, ...]:
        """NumPy's arrays of all of them, computed together."""
        return compute(*data)

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

    def apply_gufunc(self, *arguments: Any, **keywords: Any) -> Any:
        """Nothing: xarray asks for it where arrays have `chunks`."""
        raise NotImplementedError("arrays of spartan_ng have no chunks: functions get the whole array")


class Unread:
    """What xarray has of a file, for workers to read boxes of."""

    def __init__(self, data: Any, chunks: tuple[int, ...]) -> None:
        self.data, self.shape, self.dtype = data, data.shape, data.dtype
        self.waits_for_loop = _is_of_zarr(data)
        self.chunks = chunks if chunks != data.shape else None
        """The whole says nothing of how to read."""

    def __getitem__(self, box: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        return np.asarray(self.data[box])


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
    """The same with arrays that xarray's writers give to `store`, or that NumPy has."""
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
    new = variable.copy(deep=False, data=_given(standard.standard(array)))
    new.encoding = {"chunks": stored_chunks(array.shape, array.dtype), **variable.encoding}
    return new


def _given(made: Any) -> Any:
    """What xarray's encoders make of such arrays, in their class."""
    if type(made) is not standard.Array:
        return made
    found = object.__new__(Written)
    found._cell, found._views, found._state = made._cell, made._views, None
    return found


def _handed_on(function: Callable[..., Any]) -> Any:
    @functools.wraps(function, updated=())
    def call(*arguments: Any, **keywords: Any) -> Any:
        return _given(function(*arguments, **keywords))

    return call


_Array = standard.Array


class Written(_Array, own=True):
    """An array on its way to a file. It has `chunks`, one an axis, by which xarray sees that it is not to be
    made in memory; so has what it is encoded to."""

    __slots__ = ()

    __add__, __radd__ = _handed_on(_Array.__add__), _handed_on(_Array.__radd__)
    __sub__, __rsub__ = _handed_on(_Array.__sub__), _handed_on(_Array.__rsub__)
    __mul__, __rmul__ = _handed_on(_Array.__mul__), _handed_on(_Array.__rmul__)
    __truediv__, __rtruediv__ = _handed_on(_Array.__truediv__), _handed_on(_Array.__rtruediv__)
    __floordiv__, __rfloordiv__ = _handed_on(_Array.__floordiv__), _handed_on(_Array.__rfloordiv__)
    __mod__, __rmod__ = _handed_on(_Array.__mod__), _handed_on(_Array.__rmod__)
    __pow__, __rpow__ = _handed_on(_Array.__pow__), _handed_on(_Array.__rpow__)
    __matmul__, __rmatmul__ = _handed_on(_Array.__matmul__), _handed_on(_Array.__rmatmul__)
    __and__, __rand__ = _handed_on(_Array.__and__), _handed_on(_Array.__rand__)
    __or__, __ror__ = _handed_on(_Array.__or__), _handed_on(_Array.__ror__)
    __xor__, __rxor__ = _handed_on(_Array.__xor__), _handed_on(_Array.__rxor__)
    __lshift__, __rlshift__ = _handed_on(_Array.__lshift__), _handed_on(_Array.__rlshift__)
    __rshift__, __rrshift__ = _handed_on(_Array.__rshift__), _handed_on(_Array.__rrshift__)
    __neg__, __pos__ = _handed_on(_Array.__neg__), _handed_on(_Array.__pos__)
    __abs__, __invert__ = _handed_on(_Array.__abs__), _handed_on(_Array.__invert__)
    __lt__, __le__ = _handed_on(_Array.__lt__), _handed_on(_Array.__le__)
    __gt__, __ge__ = _handed_on(_Array.__gt__), _handed_on(_Array.__ge__)
    __eq__, __ne__ = _handed_on(_Array.__eq__), _handed_on(_Array.__ne__)
    __copy__, __deepcopy__ = _handed_on(_Array.__copy__), _handed_on(_Array.__deepcopy__)
    __getitem__ = _handed_on(_Array.__getitem__)
    __ifloordiv__ = _handed_on(_Array.__ifloordiv__)
    to_device = _handed_on(_Array.to_device)
    all = _handed_on(_Array.all)
    any = _handed_on(_Array.any)
    argmax = _handed_on(_Array.argmax)
    argmin = _handed_on(_Array.argmin)
    argpartition = _handed_on(_Array.argpartition)
    argsort = _handed_on(_Array.argsort)
    astype = _handed_on(_Array.astype)
    byteswap = _handed_on(_Array.byteswap)
    choose = _handed_on(_Array.choose)
    clip = _handed_on(_Array.clip)
    compress = _handed_on(_Array.compress)
    compute = _handed_on(_Array.compute)
    conj = _handed_on(_Array.conj)
    conjugate = _handed_on(_Array.conjugate)
    copy = _handed_on(_Array.copy)
    cumprod = _handed_on(_Array.cumprod)
    cumsum = _handed_on(_Array.cumsum)
    diagonal = _handed_on(_Array.diagonal)
    dot = _handed_on(_Array.dot)
    fill = _handed_on(_Array.fill)
    flatten = _handed_on(_Array.flatten)
    getfield = _handed_on(_Array.getfield)
    max = _handed_on(_Array.max)
    mean = _handed_on(_Array.mean)
    min = _handed_on(_Array.min)
    nonzero = _handed_on(_Array.nonzero)
    partition = _handed_on(_Array.partition)
    persist = _handed_on(_Array.persist)
    prod = _handed_on(_Array.prod)
    put = _handed_on(_Array.put)
    ravel = _handed_on(_Array.ravel)
    repeat = _handed_on(_Array.repeat)
    reshape = _handed_on(_Array.reshape)
    resize = _handed_on(_Array.resize)
    round = _handed_on(_Array.round)
    searchsorted = _handed_on(_Array.searchsorted)
    setfield = _handed_on(_Array.setfield)
    setflags = _handed_on(_Array.setflags)
    sort = _handed_on(_Array.sort)
    squeeze = _handed_on(_Array.squeeze)
    std = _handed_on(_Array.std)
    sum = _handed_on(_Array.sum)
    swapaxes = _handed_on(_Array.swapaxes)
    take = _handed_on(_Array.take)
    trace = _handed_on(_Array.trace)
    transpose = _handed_on(_Array.transpose)
    var = _handed_on(_Array.var)
    view = _handed_on(_Array.view)
    __array_ufunc__ = _handed_on(_Array.__array_ufunc__)
    __array_function__ = _handed_on(_Array.__array_function__)

    def __iter__(self) -> Any:
        return map(_given, super().__iter__())

    @property
    def chunks(self) -> Chunks:
        """One part an axis: where parts of a file end is no concern of xarray's."""
        return tuple((n,) for n in self.shape)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The standard's functions, whose arrays have chunks, too."""
        return _NAMESPACE


class _Namespace:
    """The standard's namespace for `Written`."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(standard, name)
        return found if isinstance(found, type) or not callable(found) else _handed_on(found)


_NAMESPACE = _Namespace()


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
