"""`a.flat`: elements in C order, read and written one by one, by slices and by places."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import indexing, manipulation
from spartan_ng.api.core import door
from spartan_ng.api.core.chains import bounded, may_overlap
from spartan_ng.api.core.conversion import as_handle, forced, is_array_like, numpys
from spartan_ng.api.core.door import few_values
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.kinds import NUMBER_KINDS, NUMBERS
from spartan_ng.api.core.quick import Walker
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.places import resizing

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

MOST_AXES_OF_FLAT = 32
"""NumPy's flat iterators have so many."""


def is_at_hand(memory: np.ndarray[Any, Any]) -> bool:
    """Whether the memory of an array is small, of numbers, and may be written to."""
    return door.is_small(memory.nbytes) and memory.dtype.kind in NUMBER_KINDS and memory.flags.writeable


def elements_of(value: Any, dtype: np.dtype[Any]) -> ndarray:
    """What is put into an array: arrays are cast by force, numbers and lists of them must fit."""
    if isinstance(value, Handle):
        if value.ndim or not value._cell.frozen:
            return value  # type: ignore[return-value]
        value = value._force()
    elif isinstance(value, np.ndarray) or is_array_like(value):
        return as_handle(value)
    return wrap(np.asarray(value, dtype))


def set_in_copy(a: Handle, key: Any, value: Any) -> None:
    """Set elements of a flat copy, and write all of it back."""
    flat = copied(a).reshape(-1)
    flat[key] = value
    a._write(flat.reshape(a.shape))


class Flat(Walker):
    """`a.flat`: the elements in C order."""

    _value: Any = None
    _node: Any = None

    def __init__(self, array: Handle) -> None:
        self.base = array
        self._index = 0

    @property
    def index(self) -> int:
        """How many elements have been taken one after the other."""
        return self._index

    @property
    def coords(self) -> tuple[int, ...]:
        """The place of the next element."""
        found, n = [], self._index
        for length in self.base.shape[:0:-1]:
            n, place = divmod(n, length)
            found.append(place)
        return (n, *found[::-1]) if self.base.ndim else ()

    def _following(self) -> Any:
        """The next element."""
        cell = self.base._cell
        if not self._index or cell.value is not self._value or cell._node is not self._node:  # written to
            self._elements = self.base._force().flat
            self._value, self._node = cell.value, cell._node
        try:
            value = self._elements[self._index]
        except IndexError:
            raise StopIteration from None
        self._index += 1
        return value if type(value) in NUMBERS else wrap(value)

    def __len__(self) -> int:
        return int(self.base.size)

    def _places(self, key: Any) -> Any:
        """A key as integers, a slice or an array; NumPy's iterator says what lists, flags and others mean."""
        if isinstance(key, Handle | np.ndarray) and key.dtype == bool and key.shape != (self.base.size,):
            raise IndexError(
                f"boolean index did not match indexed flat iterator along axis 0; size of axis is "
                f"{self.base.size} but size of corresponding boolean axis is {key.size}"
            )
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return int(np.intp(int(key)))  # NumPy's error of one that no place has
        if isinstance(key, slice | Handle | np.ndarray):
            return key
        if key is Ellipsis:
            return slice(None)
        return np.arange(self.base.size).flat[key]

    def _read_flat(self, key: Any) -> Any:
        self._index = 0
        value = self.base._peek() if type(key) is int or type(key) is slice else None
        if value is not None and _are_few(key, value):
            found = value.flat[key]
            return found if type(key) is int else wrap(found)
        found = manipulation.ravel(self.base)[self._places(key)]
        return copied(found) if isinstance(found, Handle) and found.ndim else found

    def _write_flat(self, key: Any, value: Any) -> None:
        self._index = 0
        known = few_values((value,)) if type(key) is int or type(key) is slice else None
        target = None if known is None else self.base._open()
        if known is not None and target is not None and target.flags.writeable and _are_few(key, target):
            target.flat[key] = known[0]
            return
        if key.__class__ is tuple and not key:
            raise IndexError("Assigning to a flat iterator with a 0-D index is not supported")
        if not self.base.flags.writeable and not self.base._cell.frozen:
            raise ValueError("assignment destination is read-only")
        # Of objects, a sequence may be one element; where several are one, the last one written stays; and of
        # the same memory what has been written by then is read.
        is_own = isinstance(value, Handle) and value._cell is self.base._cell
        if is_own or self.base.dtype.hasobject or may_overlap(self.base):
            self.base._force()
            target = self.base._in_place()
            if target is not None:
                target.flat[forced(key)] = forced(value)
                return
        single = isinstance(key, int | np.integer | np.bool_)
        is_truth = isinstance(key, bool | np.bool_)
        if single:  # NumPy's error or warning, or the element that it takes
            if not is_truth:
                bounded(int(np.intp(int(key))), self.base.size, 0)
            one = np.zeros(1, self.base.dtype)
            place: Any = key if is_truth else 0
            if isinstance(value, Handle) and value._peek() is None and _is_held(value, one.dtype):
                one.flat[place] = np.broadcast_to(np.zeros((), value.dtype), value.shape)
            else:
                one.flat[place] = numpys(value)
                value = one[0]
        key = self._places(slice(int(key)) if is_truth else key)
        value = elements_of(value, self.base.dtype)
        if value.size == 0:
            return
        value = _cycled(self.base, key, value)
        if manipulation.reshapes_without_copy(self.base, (self.base.size,)):
            indexing.reshaped(self.base, (self.base.size,))[key] = value
        else:
            set_in_copy(self.base, key, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The elements in a line; read-only where NumPy has to copy them, or may not write to them."""
        line = np.array(manipulation.ravel(self.base), dtype)
        flags = self.base.flags
        line.flags.writeable = flags.writeable and flags.c_contiguous
        return line

    def copy(self) -> ndarray:
        """A flat copy."""
        return manipulation.ravel(self.base).copy()


def _are_few(key: Any, value: np.ndarray[Any, Any]) -> bool:
    """Whether an integer or a slice names numbers in memory that NumPy goes to one by one."""
    if value.dtype.kind not in NUMBER_KINDS:
        return False
    size = value.size
    if type(key) is int:
        return -size <= key < size
    return door.is_small(len(range(*key.indices(size))) * value.itemsize)


def _is_held(value: Handle, dtype: np.dtype[Any]) -> bool:
    """Whether an element of a dtype can be any of a value's: if not, NumPy raises for some."""
    return dtype.kind not in "iu" or np.can_cast(value.dtype, dtype)


def _cycled(base: Handle, key: Any, value: Any) -> Any:
    """Values, at least one, for a flat region, repeated as often as needed."""
    if value.ndim == 0:
        return value
    if isinstance(key, slice):
        shape: tuple[int, ...] = (len(range(*key.indices(base.size))),)
    else:
        shape = (int(ufuncs.not_equal(key, 0).sum()),) if key.dtype == bool else key.shape
    flat = value.ravel()
    return flat.reshape(shape) if flat.size == prod(shape) else resizing.resized(flat, shape, True)
