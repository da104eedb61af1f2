"""Index grids, flat indices, triangles and text: small functions of NumPy's indexing and printing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.algebra import matrices
from spartan_ng.api.base import constants, creation, joining, manipulation
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle, forced, over_buffer, shape_tuple
from spartan_ng.api.core.dispatch import by_numpy, check_device, fresh, numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBERS, is_subclass
from spartan_ng.api.core.operands import small_values
from spartan_ng.api.core.quick import AS_GIVEN, AS_OUTER, AS_SHAPE, AS_WRITTEN, shortened
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.ordering import sorting
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


class _Grid:
    """`mgrid` and `ogrid`: grids from slices."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def __getitem__(self, key: Any) -> Any:
        result = self._grid[key]
        return fresh(result) if isinstance(result, np.ndarray) else tuple(fresh(r) for r in result)


mgrid = _Grid(np.mgrid)
ogrid = _Grid(np.ogrid)


class _Joiner:
    """`r_` and `c_`: arrays joined by an index expression."""

    def __init__(self, joiner: Any) -> None:
        self._joiner = joiner

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            caller = sys._getframe(1)
            return bmat(key, caller.f_globals, caller.f_locals)
        parts = key if isinstance(key, tuple) else (key,)
        found = self._joiner[tuple([p._force() if isinstance(p, Handle) else p for p in parts])]
        return wrap(found) if type(found) is np.ndarray and found.base is None else fresh(found)


def bmat(obj: Any, ldict: Any = None, gdict: Any = None) -> Any:
    """A matrix of blocks: of nested lists, or of text that names arrays of the caller's."""
    if not isinstance(obj, str):
        return by_numpy(np.bmat, obj)
    if gdict is None:
        caller = sys._getframe(1)
        ldict, gdict = caller.f_locals, caller.f_globals
    # NumPy looks into both, and needs no more of them.
    named = {n: forced(d[n]) for d in (gdict, ldict) for n in re.findall(r"[^\W\d]\w*", obj) if n in d}
    return np.bmat(obj, named, {})


r_ = _Joiner(np.r_)
c_ = _Joiner(np.c_)


@numpy_function(np.meshgrid, front=shortened(np.meshgrid, 8, AS_OUTER, frozenset({"indexing"})))
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[ndarray, ...]:
    """Coordinate matrices from coordinate vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    n = len(xi)
    lines = []
    for i, x in enumerate(xi):
        axis = {0: 1, 1: 0}.get(i, i) if indexing == "xy" and n > 1 else i
        lines.append(as_handle(x).reshape((1,) * axis + (-1,) + (1,) * (n - axis - 1)))
    if sparse:
        return tuple(line.copy() if copy else line for line in lines)
    if not copy:
        return manipulation.broadcast_arrays(*lines)
    shape = np.broadcast_shapes(*(line.shape for line in lines))
    known = small_values(tuple(lines))
    if known is not None:
        return tuple(wrap(np.broadcast_to(line, shape).copy()) for line in known)
    return tuple(wrap_node(build.broadcast(line._node(), shape)) for line in lines)


@numpy_function(np.indices, front=shortened(np.indices, 1, AS_SHAPE, frozenset({"dtype"})))
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """An array of grid indices."""
    shape = shape_tuple(dimensions)
    dtype = np.dtype(dtype)
    if not sparse and (door.is_open() and door.is_small(len(shape) * prod(shape) * dtype.itemsize)):
        return wrap(np.indices(shape, dtype))
    grids = meshgrid(*(creation.arange(n, dtype=dtype) for n in shape), indexing="ij", sparse=sparse)
    return grids if sparse else joining.stack(grids) if grids else constants.zeros((0,), dtype)


@numpy_function(np.fromfunction)
def fromfunction(function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **keywords: Any) -> Any:
    """An array from a function of its coordinates, which it gets as arrays."""
    return function(*indices(shape_tuple(shape), dtype), **keywords)


@numpy_function(np.fill_diagonal, front=shortened(np.fill_diagonal, 3, AS_WRITTEN, frozenset({"wrap"})))
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Set the main diagonal in place."""
    target = a._open() if isinstance(a, Handle) else None
    if target is not None and type(val) in NUMBERS and target.flags.writeable and target.ndim > 1:
        np.fill_diagonal(target, val, wrap)
        return
    if a.ndim < 2:
        raise ValueError(f"array must be at least 2-d, not of shape {a.shape}")
    if a.ndim == 2:
        step = a.shape[1] + 1
        end = None if wrap else a.shape[1] * a.shape[1]
    else:
        if len(set(a.shape)) > 1:
            raise ValueError(f"All dimensions of input must be of equal length, not {a.shape}")
        step = 1 + sum(a.shape[0] ** i for i in range(1, a.ndim))
        end = None
    a.flat[:end:step] = val


def diag_indices(n: int, ndim: int = 2) -> tuple[ndarray, ...]:
    """The indices of the main diagonal of an array with axes of length `n`."""
    return (creation.arange(n),) * ndim


@numpy_function(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[ndarray, ...]:
    """The indices of the main diagonal."""
    if arr.ndim < 2:
        raise ValueError(f"input array must be at least 2-d, not of shape {arr.shape}")
    if len(set(arr.shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, not {arr.shape}")
    return diag_indices(arr.shape[0], arr.ndim)


def _is_small(n: Any, m: Any) -> bool:
    """Whether the indices of an (n, m) array's elements are small together: NumPy has them at once."""
    sides = n if m is None else m, n
    return all(type(s) is int for s in sides) and door.is_small(2 * 8 * prod(sides))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """The indices of the lower triangle of an (n, m) array."""
    if _is_small(n, m):
        return tuple(map(wrap, np.tril_indices(n, k, m)))
    return sorting.nonzero(matrices.tri(n, m, k, bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """The indices of the upper triangle of an (n, m) array."""
    if _is_small(n, m):
        return tuple(map(wrap, np.triu_indices(n, k, m)))
    return sorting.nonzero(~matrices.tri(n, m, k - 1, bool))


@numpy_function(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> tuple[ndarray, ...]:
    """The indices of the lower triangle."""
    rows, columns = _plane(arr)
    return tril_indices(rows, k, columns)


@numpy_function(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> tuple[ndarray, ...]:
    """The indices of the upper triangle."""
    rows, columns = _plane(arr)
    return triu_indices(rows, k, columns)


def _plane(arr: Any) -> tuple[int, int]:
    if arr.ndim != 2:
        raise ValueError(f"input array must be 2-d, not of shape {arr.shape}")
    rows, columns = arr.shape
    return rows, columns


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[ndarray, ...]:
    """The indices of what a function such as `triu` leaves of an (n, n) array of ones."""
    return sorting.nonzero(mask_func(constants.ones((n, n), int), k) != 0)


@numpy_function(np.ix_)
def ix_(*args: Any) -> tuple[ndarray, ...]:
    """One-dimensional sequences as indices of an open mesh."""
    found = []
    for i, given in enumerate(args):
        line = as_handle(given)
        if line.ndim != 1:
            raise ValueError(f"Cross index must be 1 dimensional, not of shape {line.shape}")
        if line.size == 0 and not isinstance(given, Handle | np.ndarray):
            line = line.astype(np.intp)
        if line.dtype.kind == "b":
            (line,) = sorting.nonzero(line)
        found.append(line.reshape((1,) * i + (-1 if line.size else 0,) + (1,) * (len(args) - i - 1)))
    return tuple(found)


def array_repr(arr: Any, *args: Any, **keywords: Any) -> str:
    """`repr` with options."""
    return np.array_repr(_to_show(arr), *args, **keywords)


def array_str(a: Any, *args: Any, **keywords: Any) -> str:
    """`str` with options."""
    return np.array_str(_to_show(a), *args, **keywords)


def array2string(a: Any, *args: Any, **keywords: Any) -> str:
    """Text with options."""
    return np.array2string(_to_show(a), *args, **keywords)


def _to_show(a: Any) -> Any:
    """What NumPy prints: the elements, numbers, and instances of derived classes as they are."""
    if is_subclass(a):
        return a
    if not isinstance(a, Handle | np.ndarray | np.generic):
        raise AttributeError(f"{type(a).__name__!r} object has no attribute 'size'")
    a = as_handle(a)
    return a._force()[()] if a._cell.frozen and not a.ndim else a._force()


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Indices and elements in C order."""
    a = as_handle(arr)
    return zip(np.ndindex(a.shape), a.flat, strict=True)


_REQUIREMENTS = {
    **dict.fromkeys(("C", "C_CONTIGUOUS", "CONTIGUOUS"), "C"),
    **dict.fromkeys(("F", "F_CONTIGUOUS", "FORTRAN"), "F"),
    **dict.fromkeys(("A", "ALIGNED"), "A"),
    **dict.fromkeys(("W", "WRITEABLE"), "W"),
    **dict.fromkeys(("O", "OWNDATA"), "O"),
    **dict.fromkeys(("E", "ENSUREARRAY"), "E"),
}


@numpy_function(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> ndarray:
    """An array of a dtype whose flags are set; a copy, where they are not."""
    asked = {_REQUIREMENTS[r.upper()] for r in requirements or ()}
    if {"C", "F"} <= asked:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = next((o for o in ("C", "F") if o in asked), "A")
    taken = creation.asarray if "E" in asked else creation.asanyarray
    asked -= {"E"}
    found = taken(a, dtype, order)
    return found if all(found.flags[r] for r in asked) else found.copy(order)


def isfortran(a: Any) -> bool:
    """Whether NumPy would hold the elements in Fortran order only."""
    flags = as_handle(a).flags
    return flags.f_contiguous and not flags.c_contiguous


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """An array over the memory of another library's, through DLPack, or a copy; a view of one of ours."""
    check_device(device)
    if isinstance(x, Handle):
        if not x.ndim and x._cell.frozen:
            raise AttributeError(f"from_dlpack: {x.dtype} numbers have no __dlpack__, arrays do")
        x._layout().__dlpack__(max_version=(1, 0))  # NumPy's errors for dtypes and strides
        return x.copy("K") if copy else x.view()  # type: ignore[attr-defined, no-any-return]
    return over_buffer(np.from_dlpack(x, device=device, copy=copy))


def _check_indices(given: Any, indices: Handle) -> None:
    """TypeError for what are no integers."""
    if indices.dtype.kind in "biu":
        return
    if not indices.size and not isinstance(given, Handle | np.ndarray):
        raise TypeError("indices must be integral: the provided empty sequence was inferred as float")
    raise TypeError("only int indices permitted")


def _check_lengths(lengths: tuple[int, ...]) -> None:
    """ValueError where flat indices are beyond NumPy's integers."""
    if prod(lengths) > np.iinfo(np.intp).max:
        raise ValueError(f"invalid dims: array size defined by dims {lengths} is larger than the maximum")


@numpy_function(np.unravel_index, front=shortened(np.unravel_index, 2, AS_GIVEN))
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Flat indices as one array an axis."""
    lengths = shape_tuple(shape)
    flat = as_handle(indices)
    _check_indices(indices, flat)
    known = small_values((flat,))
    if known is not None:
        return tuple(wrap(np.asarray(i)[()]) for i in np.unravel_index(known[0], lengths, order))  # type: ignore[call-overload]
    _check_lengths(lengths)
    flat = flat.astype(np.intp, copy=False)
    if bool(((flat < 0) | (flat >= prod(lengths))).any()):
        raise ValueError(f"an index is out of bounds for array with size {prod(lengths)} (shape {lengths})")
    if flat.ndim and not lengths:
        raise ValueError("multiple indices are not supported for 0d arrays")
    ordered = lengths if order == "C" else lengths[::-1]
    strides = [prod(ordered[i + 1 :]) for i in range(len(ordered))]
    found = tuple((flat // s) % n for s, n in zip(strides, ordered, strict=True))
    return found if order == "C" else found[::-1]


@numpy_function(np.ravel_multi_index, eager=True)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> ndarray:
    """One array an axis as flat indices."""
    parts = [as_handle(i) for i in multi_index]
    lengths = shape_tuple(dims)
    if len(parts) != len(lengths):
        raise ValueError(
            f"parameter multi_index must be a sequence of length {len(lengths)}, not {len(parts)}"
        )
    for given, part in zip(multi_index, parts, strict=True):
        _check_indices(given, part)
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    _check_lengths(lengths)
    modes = [mode] * len(parts) if isinstance(mode, str) else list(mode)
    strides = [prod(lengths[i + 1 :] if order == "C" else lengths[:i]) for i in range(len(lengths))]
    total: Any = 0
    for part, n, stride, how in zip(parts, lengths, strides, modes, strict=True):
        if not n and part.size:
            raise ValueError(f"cannot unravel if shape has zero entries: {lengths}")
        if how == "wrap":
            part = part % n
        elif how == "clip":
            part = ufuncs.clip3(part, 0, n - 1)
        elif bool(((part < 0) | (part >= n)).any()):
            raise ValueError("invalid entry in coordinates array")
        total = total + part.astype(np.intp) * stride
    return total  # type: ignore[no-any-return]


__all__ = [
    "array2string",
    "array_repr",
    "array_str",
    "bmat",
    "c_",
    "diag_indices",
    "diag_indices_from",
    "fill_diagonal",
    "from_dlpack",
    "fromfunction",
    "indices",
    "isfortran",
    "ix_",
    "mask_indices",
    "meshgrid",
    "mgrid",
    "ndenumerate",
    "ogrid",
    "r_",
    "ravel_multi_index",
    "require",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]
