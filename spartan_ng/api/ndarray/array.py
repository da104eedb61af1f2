"""`ndarray`: NumPy's array class over lazy handles. Attributes, evaluation, elements and copies."""

from __future__ import annotations

import builtins
import copy
import operator
import warnings
import weakref
from collections.abc import Iterator
from types import GenericAlias
from typing import Any, Self

import numpy as np

from spartan_ng.api.base import constants, creation, indexing, joining, manipulation, reductions
from spartan_ng.api.core.chains import bounded, full_shape, is_read_only
from spartan_ng.api.core.conversion import as_handle, forced, in_order, numpys
from spartan_ng.api.core.deriving import Deriving
from spartan_ng.api.core.dispatch import check_device, fresh
from spartan_ng.api.core.few import few_values
from spartan_ng.api.core.flags import Flags
from spartan_ng.api.core.handle import (
    CHAIN,
    Handle,
    Late,
    copied,
    make,
    over_buffer,
    register,
    scalar,
    settle,
    wrap,
    wrap_node,
)
from spartan_ng.api.core.kinds import NUMERIC, PYTHONS, is_subclass
from spartan_ng.api.core.layouts import lie, lying_as_copy
from spartan_ng.api.core.recast import Bytes, Recast
from spartan_ng.api.core.views import REVERSED, Broadcast, Part
from spartan_ng.api.core.warn import warn_user
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.ndarray.protocols import Protocols
from spartan_ng.api.places import blockwise, taking
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process

_QUICK = frozenset({int, tuple, slice})
"""Classes of keys that NumPy takes as they are."""
_QUICK_TO_WRITE = _QUICK | NUMERIC | {type(Ellipsis), np.ndarray}
_SIMPLE = frozenset({int, slice, type(None), type(Ellipsis)})
_INTEGERS = frozenset({int})
_OBJECTS = np.dtype(object).num
_array = np.ndarray
_new = object.__new__


def _known(value: Any) -> Any:
    """NumPy's value of an array on the driver, a number's as a number; else None."""
    known = value._peek() if isinstance(value, Handle) else None
    return known[()] if known is not None and value._cell.frozen else known


def _plain(key: Any) -> Any:
    """A key with NumPy's own value in place of an array on the driver that is all of it."""
    known = _known(key)
    return key if known is None else known


def _stays_small(value: Any, index: Any) -> bool:
    """Whether a small array's elements that an array of truths or integers selects are few bytes, too."""
    nbytes, small = value.nbytes, config.small_bytes
    if nbytes > small or not value.ndim:
        return False
    return index.dtype.kind == "b" or index.size * nbytes < small * len(value)  # type: ignore[no-any-return]


def _with_arrays(key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A key of small arrays with axes, numbers and slices as NumPy takes it; None for all others."""
    few = few_values(key, _SIMPLE)
    if few is None or not all(k.ndim for k in few if k.__class__ is np.ndarray):
        return None
    return tuple(few)


def _integer(part: Any) -> Any:
    """An integer of ours in a key as Python's; any other part as it is."""
    return int(part._number) if type(part) is Late.scalar and part._number.dtype.kind in "iu" else part


_SHORT = 64
"""Indices in a list for which NumPy is asked first."""


def _is_short(key: Any) -> bool:
    """Whether a part of a key is a list of a few integers, of which NumPy makes a copy."""
    return key.__class__ is list and 0 < len(key) <= _SHORT and _INTEGERS.issuperset(map(type, key))


def _numbers(value: Any) -> Iterator[Any]:
    """The elements of a vector of numbers, each as `scalar` would make it."""
    cls = Late.scalar
    for element in value:
        number = _new(cls)
        number._number = element
        yield number


class ndarray(Protocols, metaclass=Deriving, own=True):
    """An N-dimensional array whose elements are computed when they are asked for.

    `ndarray(shape, dtype=float)` makes one of zeros; `array`, `zeros`, `arange` and their like are
    the usual ways.
    """

    __slots__ = ()

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """The class with types of its shape and dtype, for annotations."""
        np.ndarray[item]  # its errors
        return GenericAlias(cls, item)

    def __new__(
        cls,
        shape: Any = None,
        dtype: Any = float,
        buffer: Any = None,
        offset: int = 0,
        strides: Any = None,
        order: Any = None,
    ) -> Self:
        """An array of zeros or over a buffer, or (without a shape) an empty shell for a cell.

        A subclass of NumPy's that asks for an instance, as `np.ndarray.__new__(cls, shape)`, gets it.
        """
        if issubclass(cls, np.ndarray):
            return np.ndarray.__new__(cls, shape, dtype, forced(buffer), offset, strides, order)  # type: ignore[unreachable]
        if shape is None:
            return object.__new__(cls)
        if buffer is None and (strides is not None or not np.dtype(dtype).itemsize):
            return wrap(np.ndarray(shape, dtype, None, 0, strides, order))  # type: ignore[return-value]
        if buffer is None:
            return constants.empty(shape, dtype, order or "C")  # type: ignore[return-value]
        memory = buffer._lent() if isinstance(buffer, Handle) else buffer
        return over_buffer(np.ndarray(shape, dtype, memory, offset, strides, order), buffer)  # type: ignore[return-value]

    # --- attributes --------------------------------------------------------------------------------

    @property
    def T(self) -> ndarray:
        """The axes reversed."""
        value = self._peek()
        if value is None or self._cell.frozen:
            return manipulation.transpose(self)
        shown = value.T
        return self._seen(REVERSED[shown.ndim], shown)

    @property
    def mT(self) -> ndarray:
        """The last two axes swapped."""
        if not self.ndim and self._cell.frozen:
            raise AttributeError(f"{self.dtype} numbers have no mT, matrices do")
        if self.ndim < 2:
            raise ValueError(f"matrix transpose with ndim < 2 is undefined (shape {self.shape})")
        return manipulation.swapaxes(self, -1, -2)

    @property
    def real(self) -> ndarray:
        """The real part; writing to it writes to the array."""
        if self._cell.frozen and self.dtype.kind == "c":
            return (
                wrap_node(build.map_("real", self._node()))
                if self._peek() is None
                else wrap(self._force().real)
            )
        return self._see(Part("real")) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> ndarray:
        """The imaginary part; writing to it writes to the array."""
        if self._cell.frozen and self.dtype.kind == "c":
            return (
                wrap_node(build.map_("imag", self._node()))
                if self._peek() is None
                else wrap(self._force().imag)
            )
        if self.dtype.kind == "c":
            return self._see(Part("imag"))
        zeros = constants.zeros_like(self)
        if self._cell.frozen:
            return zeros[()]  # type: ignore[no-any-return]
        zeros.setflags(write=False)
        return zeros

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes; a filtered array counts its elements now."""
        return self._known().shape  # type: ignore[no-any-return]

    @shape.setter
    def shape(self, shape: Any) -> None:
        if self._cell.frozen:
            raise AttributeError("attribute 'shape' of 'numpy.generic' objects is not writable")
        new = full_shape(shape, self.size, self.shape)
        if not manipulation.reshapes_without_copy(self, new):
            raise AttributeError("incompatible shape for in-place modification; use reshape() to make a copy")
        self._views = indexing.reshaped(self, new)._views
        self._state = None

    def _recast(self, dtype: Any) -> None:
        """Show the bytes of the elements as another type."""
        if self._cell.frozen:
            raise AttributeError("attribute 'dtype' of 'numpy.generic' objects is not writable")
        self._views, self._state = self.view(dtype)._views, None

    dtype = property(Handle.dtype.fget, _recast, doc=Handle.dtype.__doc__)  # type: ignore[attr-defined]

    @property
    def flat(self) -> taking.Flat:
        """The elements in C order, to iterate over, read and write."""
        if self.ndim > taking.MOST_AXES_OF_FLAT:
            raise RuntimeError(
                f"this function only supports up to {taking.MOST_AXES_OF_FLAT} dimensions "
                f"but the array has {self.ndim}."
            )
        return taking.Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        values = creation.asarray(np.asarray(value) if is_subclass(value) else value)
        if values.size:
            taking.Flat(self)[:] = values

    @property
    def flags(self) -> Flags:
        """What NumPy tells about the memory."""
        return Flags(self)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides NumPy would have, in bytes; setting them is deprecated, as in NumPy."""
        return self._layout().strides

    @strides.setter
    def strides(self, value: Any) -> None:
        warn_user(
            "Setting the strides on a NumPy array has been deprecated: np.lib.stride_tricks makes views",
            DeprecationWarning,
        )
        if self._cell.frozen:
            raise TypeError("the strides of a number cannot be set")
        seen = self._lent().view()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            seen.strides = forced(value)
        self._cell, self._views, self._state = over_buffer(seen, self.base)._cell, (), None

    @property
    def base(self) -> ndarray | None:
        """The array this is a view of, or another's object whose memory it shows, or None."""
        if not self._views:
            return self._cell.origin[0] if self._cell.origin is not None else self._cell.lender  # type: ignore[no-any-return]
        owner = self._cell.owner
        found = owner() if owner is not None else None
        if found is None or found._views:
            found = make(self._cell)
            self._cell.owner = weakref.ref(found)  # the same one for as long as somebody looks at it
        return found

    @property
    def device(self) -> str:
        """Where the array API standard says the array is."""
        return "cpu"

    @device.setter
    def device(self, value: Any) -> None:
        raise AttributeError("attribute 'device' of 'ndarray' objects is not writable")

    @property
    def nnz(self) -> int:
        """The number of stored elements of a sparse array, of non-zeros of a dense one."""
        if self.format == "csr":
            self.persist()
            ref = self._node().data
            if ref is not None and ref.nnz is not None:
                return ref.nnz
        return int(reductions.count_nonzero(self))

    # --- values ------------------------------------------------------------------------------------

    def compute(self) -> Any:
        """The value as a NumPy array (or scalar, or CSR array) of the caller's own."""
        return compute(self)[0]

    def persist(self) -> ndarray:
        """Evaluate now and keep the result where it is, on the workers or the driver."""
        persist(self)
        return self

    # --- elements ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        value = self._peek()
        if value is not None and value.ndim:
            return len(value)
        shape = self.shape
        if not shape and self._cell.frozen and self.dtype.names:
            return len(self.dtype.names)
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        shape = self.shape
        if not shape and self._cell.frozen and self.dtype.names:
            return (self[name] for name in self.dtype.names)
        if not shape:
            raise TypeError("iteration over a 0-d array")
        if len(shape) == 1 and self.dtype.kind != "V":
            value = self._force()
            return _numbers(value) if value.dtype.type in NUMERIC else map(scalar, value)
        return self._parts(shape[0])

    def _parts(self, n: int) -> Iterator[Any]:
        """What the first axis has, one after the other."""
        cell, views, shown = self._cell, self._views, self._peek()
        value = cell.value
        quick = value is not None and shown.ndim > 1 and len(views) < CHAIN
        if quick:
            self._own()
        for i in range(n):
            if not quick or cell.value is not value:  # it is not on the driver, or no longer what it was
                yield self[i]
            else:
                view = _new(ndarray)
                view._cell = cell
                view._views = (*views, i)
                view._state = value
                view._shown = shown[i]
                yield view

    def __contains__(self, item: Any) -> bool:
        return bool(reductions.any(ufuncs.equal(self, item)))

    def item(self, *args: Any) -> Any:
        """An element as a Python scalar."""
        if not args:
            if self.size != 1:
                raise ValueError("can only convert an array of size 1 to a Python scalar")
            return self._force().item()
        value = self._peek()
        if value is not None:
            return value.item(*map(forced, args))
        if len(args) == 1 and self.ndim != 1:
            flat = args[0]
            if not isinstance(flat, tuple):
                flat = np.unravel_index(bounded(operator.index(flat), self.size, 0), self.shape)
            args = tuple(int(i) for i in flat)
        found = self[args]
        return found.item() if isinstance(found, ndarray | np.generic) else found

    def __getitem__(self, key: Any) -> Any:
        """Elements and rows of what is on the driver without a detour; everything else by `indexing`.

        Loops over elements are in here most of their time: the questions that they need come first.
        """
        cell = self._cell
        shown = value = cell.value
        if (views := self._views) and value is not None:
            shown = self._shown if self._state is value else None
        kind, plain = type(key), True
        if kind is tuple:
            if len(key) == 2:
                first, last = key
                plain = type(first) in _SIMPLE and type(last) in _SIMPLE
            else:
                plain = _SIMPLE.issuperset(map(type, key))
            if not plain and (type(key[0]) is ndarray or type(key[-1]) is ndarray):
                return self._by_other_keys(key, kind, shown)
        elif kind is Late.scalar and type(key := _integer(key)) is int:
            kind = int
        elif kind is not int and kind is not slice:
            return self._by_other_keys(key, kind, shown)
        try:
            element = shown[key]
        except (IndexError, TypeError, ValueError):  # there is none, or no value
            return indexing.getitem(self, key)
        found = type(element)
        if found is not _array:
            if found not in NUMERIC:
                return indexing.getitem(self, key)
            number = _new(Late.scalar)
            number._number = element
            return number
        if not plain:  # it may hold arrays
            return self._by_mixed_keys(key, element)
        if shown.dtype.num == _OBJECTS:  # an element may be an array
            return indexing.getitem(self, key)
        if views:
            if len(views) >= CHAIN:
                return self._seen(key, element)
            views = views + (key,)  # noqa: RUF005 (half the time of unpacking)
        else:
            views = (key,)
            if cell.owner is None:
                if cell.frozen:
                    return indexing.getitem(self, key)
                cell.owner = weakref.ref(self)
        view = _new(ndarray)
        view._cell = cell
        view._views = views
        view._state = value
        view._shown = element
        return view

    def _by_mixed_keys(self, key: tuple[Any, ...], element: Any) -> Any:
        """What a tuple with arrays, lists or our numbers in it selects; `element` as NumPy found it."""
        if Late.scalar in map(type, key):
            key = tuple(map(_integer, key))
            if _SIMPLE.issuperset(map(type, key)):
                return self[key]
        short = element.ndim and all(type(k) in _SIMPLE or _is_short(k) for k in key)
        if short and config.small_bytes and not self._cell.frozen:
            return wrap(element)
        return indexing.getitem(self, key)

    def _by_other_keys(self, key: Any, kind: type, shown: Any) -> Any:
        """What keys select that are no integers, slices or tuples, or of what is not on the driver."""
        if kind is ndarray and shown is not None:
            index = key._peek()
            if index is not None and index.ndim and _stays_small(shown, index):
                try:
                    return wrap(shown[index])
                except IndexError:  # ours name the shapes
                    pass
        elif kind is tuple and shown is not None:
            index = _with_arrays(key)
            if index is not None:
                try:
                    return fresh(shown[index])
                except IndexError:
                    pass
        elif shown is not None and config.small_bytes and _is_short(key):
            try:
                return wrap(shown[key])
            except IndexError:
                pass
        return indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes into what is on the driver without a detour; everything else by `indexing`."""
        cell = self._cell
        target = cell.value if cell.settled and cell._node is None else self._open()
        if target is not None and self._views:
            target = self._shown if self._state is cell.value else None
        if target is not None:
            kind, of = type(key), type(value)
            if of in PYTHONS:
                known = value
            elif of is Late.scalar:
                known = value._number
            elif of is ndarray:
                known = value._peek() if value._views else value._cell.value
                if target.dtype.num == _OBJECTS:  # it may become an element
                    known = None
            else:
                known = _known(value)
            if known is not None:
                plain, takes = key, True
                if kind not in _QUICK:
                    plain = _plain(key)
                    takes = plain.__class__ in _QUICK_TO_WRITE or _is_short(plain)
                elif kind is tuple and key and (type(key[0]) is ndarray or type(key[-1]) is ndarray):
                    plain = _with_arrays(key)
                    takes = plain is not None
                if takes:
                    try:
                        target[plain] = known
                        return
                    except (ValueError, IndexError):  # read-only memory is copied; our errors name the shapes
                        pass
        indexing.setitem(self, key, value)

    def __delitem__(self, key: Any) -> None:
        if self._cell.frozen and self.dtype.kind != "V":
            raise TypeError(f"'numpy.{self.dtype.type.__name__}' object does not support item deletion")
        raise ValueError("cannot delete array elements")

    def fill(self, value: Any) -> None:
        """Set every element to a scalar."""
        target = self._open()
        if target is not None and type(value) in PYTHONS and target.flags.writeable:
            target.fill(value)
            return
        if self.dtype.hasobject and not self.dtype.names:
            one = np.empty((), object)
            one[()], value = value, one
        elif not self.dtype.names:
            one = np.zeros(1, self.dtype)
            one.fill(numpys(value))  # with NumPy's errors, which are a number's own
            value = one[0]
        if not self._cell.frozen:  # of a number, NumPy fills a copy
            self[...] = value

    # --- kind and copies ---------------------------------------------------------------------------

    def __copy__(self) -> ndarray:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> ndarray:
        return wrap(copy.deepcopy(self._force(), memo)) if self.dtype.hasobject else self.copy("K")

    def __reduce__(self) -> Any:
        plain = not self._cell.frozen and self.format == "dense"
        return (_restored, (self._force() if plain else self.compute(), self._cell.frozen))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """From protocol 5 on the memory itself, which pickle copies or hands out as a buffer."""
        if protocol < 5 or self._cell.frozen or self.format == "csr":
            return self.__reduce__()
        return (_restored, (self._force(), False))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + (0 if self._views else self.nbytes)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> ndarray:
        """The elements as another dtype."""
        value = self._peek()
        if copy is True and value.__class__ is np.ndarray and value.nbytes <= config.small_bytes:
            return wrap(value.astype(dtype, order, casting))  # type: ignore[call-overload]
        return in_order(creation.astype(self, dtype, casting=casting, copy=copy), order)

    def copy(self, order: str = "C") -> ndarray:
        """The same elements in an array of their own."""
        value = self._peek()
        if type(value) is np.ndarray and value.nbytes <= config.small_bytes:
            return wrap(value.copy(order))  # type: ignore[arg-type]
        result = copied(self, order)
        result._cell.frozen = False
        return result

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        """Another array over the same elements, or over their bytes as another dtype.

        A subclass of NumPy's array class gives an instance of it, which reads and writes the same memory.
        """
        for asked in (dtype, type):
            if isinstance(asked, builtins.type) and issubclass(asked, np.ndarray):
                return self._shown_as(asked, None if asked is dtype else dtype)  # type: ignore[no-any-return]
        seen = self.dtype if dtype is None or dtype is ndarray else np.dtype(dtype)
        if seen == self.dtype and seen.type is self.dtype.type:
            return self._whole()
        step = Recast(seen)
        value = self._peek()
        if self._cell.frozen and value is not None:
            return fresh(value.view(dtype))  # type: ignore[no-any-return]
        if value is not None:
            return self._seen(step, value.view(step.dtype))
        self._layout().view(step.dtype)  # its errors
        return self._see(step)

    def _whole(self) -> ndarray:
        """A view of all elements."""
        if self._cell.frozen or self._cell.masked is not None or self.format == "csr":
            return make(self._cell, self._views)
        value = self._peek()
        return self._see(...) if value is None else self._seen(..., value[...])

    def _shown_as(self, subclass: Any, dtype: Any) -> Any:
        """The memory as NumPy shows it in a subclass of its own; of what is not in this process, a copy."""
        here = self.compute() if self._cell.frozen or not in_process() else self._lent()
        return here.view(subclass) if dtype is None else here.view(dtype, subclass)

    def to_device(self, device: str, /, *, stream: Any = None) -> ndarray:
        """The array API standard's move between devices; there is one."""
        check_device(device)
        if stream is not None:
            raise ValueError("The stream argument in to_device() is not supported")
        return self

    def conj(self, out: Any = None) -> ndarray:
        """Complex conjugates; of real numbers, the array itself."""
        if self.dtype.kind in "cO" or out is not None:
            return ufuncs.conjugate(self, out=out)  # type: ignore[no-any-return]
        if self.dtype.kind not in "biuf":
            raise TypeError(f"cannot conjugate non-numeric dtype: {self.dtype}")
        return self

    conjugate = conj

    @property
    def data(self) -> memoryview:
        """The elements' memory on the driver, read-only."""
        return self._to_read().data

    @property
    def ctypes(self) -> Any:
        """The elements' memory for ctypes, which reads and writes it where it is; not to be written to where
        the array must not be, or does not lie in this process."""
        return (self._lent() if in_process() and self.flags.writeable else self._to_read()).ctypes

    def getfield(self, dtype: Any, offset: int = 0) -> ndarray:
        """The bytes of each element from an offset on, as another dtype; a view of an array."""
        if self._cell.frozen:
            return blockwise.field(self, dtype, offset)
        return self._see(Bytes(self._layout().getfield(dtype, offset).dtype, offset))

    def setfield(self, val: Any, dtype: Any, offset: int = 0) -> None:
        """Write into the bytes of each element from an offset on."""
        self[...] = blockwise.with_field(self, val, dtype, offset)

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Allow or refuse writes through this array (a broadcast view is what refuses them)."""
        if uic:
            raise ValueError("cannot set WRITEBACKIFCOPY flag to True")
        if write is None:
            return
        locked = bool(self._views) and self._views[-1] == Broadcast(self.shape)
        if not write and not locked:
            self._views = (*self._views, Broadcast(self.shape))
        elif write:
            cell = self._cell
            if cell.shared and not cell.value.flags.writeable:
                raise ValueError("cannot set WRITEABLE flag to True of this array")
            below = self._views[:-1] if locked else self._views
            if is_read_only(below):
                raise ValueError(
                    "cannot set WRITEABLE flag to True of this array: what it shows is read-only"
                )
            self._views = below
        self._state = None

    def byteswap(self, inplace: bool = False) -> ndarray:
        """The bytes of each element reversed."""
        swapped = lying_as_copy(blockwise.byteswapped(self), self)
        if not inplace:
            return swapped
        self[...] = swapped
        return self


def _restored(value: Any, frozen: bool) -> ndarray:
    """An unpickled array."""
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return over_buffer(value)  # another's, as pickle's buffers say
    h = as_handle(value)
    h._cell.frozen = frozen
    h._cell.borrowed = False
    return h


def compute(*arrays: Any) -> tuple[Any, ...]:
    """The values of several arrays, evaluated together, as NumPy arrays of the caller's own.

    What is not an array passes through. A sparse array gives a `scipy.sparse.csr_array`.
    """
    persist(*arrays)
    out: list[Any] = []
    for a in arrays:
        if not isinstance(a, Handle):
            out.append(a)
        elif a.format == "csr":
            out.append(a.tocsr())  # type: ignore[attr-defined]
        else:
            value = a._force()
            out.append(value[()] if a._cell.frozen and not a._views else np.array(value))
    return tuple(out)


def persist(*arrays: Any) -> tuple[Any, ...]:
    """Evaluate several arrays together; their elements stay on the workers or the driver."""
    settle(*arrays)
    return arrays


def _listed(parts: list[ndarray]) -> ndarray:
    """A list of arrays as one, in C order however they lie."""
    return lie(joining.stack(parts), None)


register(ndarray, _listed)

__all__ = ["compute", "ndarray", "persist"]
