"""The same elements once more: copies, other dtypes, views of their bytes, and who may write to them."""

from __future__ import annotations

import builtins
import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.api.base import creation
from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell
from spartan_ng.api.core.chains import Views, may_overlap
from spartan_ng.api.core.conversion import in_order, order_for
from spartan_ng.api.core.dispatch import check_device, fresh
from spartan_ng.api.core.handle import copied
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.layouts import lying_as_any
from spartan_ng.api.core.quick import AS_GIVEN, shortened, shown_by
from spartan_ng.api.core.recast import Bytes, Recast
from spartan_ng.api.core.telling import told
from spartan_ng.api.core.views import Broadcast, Diagonal, Windows
from spartan_ng.api.core.wrapping import make, wrap
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.ndarray.attributes import Attributes
from spartan_ng.api.places import blockwise

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def _unlocked(cell: Cell, views: Views) -> Views | None:
    """The views by which an array may be written to that is read-only by some of these; None where NumPy lets
    nobody: of an array or of memory that is locked itself, and of windows, which are no array's to it."""
    if cell.shared and not cell.value.flags.writeable:
        return None
    found: Views = ()
    for view in views:
        if isinstance(view, Windows):
            return None
        if isinstance(view, Broadcast) and not view.writeable and make(cell, found).shape == view.shape:
            if not found:
                return None
            continue
        if isinstance(view, Broadcast):
            view = Broadcast(view.shape, writeable=True)
        elif isinstance(view, Diagonal):
            view = replace(view, writeable=True)
        found = (*found, view)
    return found


class Copies(Attributes):
    """Arrays that are copied and seen otherwise."""

    __slots__ = ()

    def __copy__(self) -> ndarray:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> ndarray:
        return wrap(copy.deepcopy(self._force(), memo)) if self.dtype.hasobject else self.copy("K")

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + (0 if self._views else self.nbytes)

    @shortened(np.ndarray.astype, 2, AS_GIVEN, frozenset())
    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> ndarray:
        """The elements as another dtype."""
        value = self._peek()
        if copy is False and value.__class__ is np.ndarray and not self._cell.frozen and order == "K":
            wanted = np.dtype(dtype)
            if value.dtype is wanted and not wanted.hasobject:
                return self  # type: ignore[return-value]
        if copy is True and value.__class__ is np.ndarray and door.is_small(value.nbytes):
            if value.dtype.hasobject:  # whose elements' code is the user's
                return wrap(value.astype(dtype, order, casting))  # type: ignore[call-overload]
            return wrap(told(value.astype, dtype, order, casting))
        return in_order(creation.astype(self, dtype, casting=casting, copy=copy), order_for(order, self))

    def copy(self, order: str = "C") -> ndarray:
        """The same elements in an array of their own."""
        value = self._peek()
        if type(value) is np.ndarray and door.is_small(value.nbytes):
            return wrap(value.copy(order))  # type: ignore[arg-type]
        result = copied(self, order)
        result._cell.frozen = False
        return result

    @shown_by(np.ndarray.view, 2)
    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        """Another array over the same elements, or over their bytes as another dtype.

        A subclass of NumPy's array class gives an instance of it, which reads and writes the same memory.
        """
        for asked in (dtype, type):
            if isinstance(asked, builtins.type) and issubclass(asked, np.ndarray):
                return self._shown_as(asked, None if asked is dtype else dtype)  # type: ignore[no-any-return]
        seen = self.dtype if dtype is None or dtype is Late.ndarray else np.dtype(dtype)
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

    def _shown_as(self: Any, subclass: Any, dtype: Any) -> Any:
        """The memory as NumPy shows it in a subclass of its own."""
        here = self.compute() if self._cell.frozen else self._lent()
        return here.view(subclass) if dtype is None else here.view(dtype, subclass)

    def to_device(self: Any, device: str, /, *, stream: Any = None) -> ndarray:
        """The array API standard's move between devices; there is one."""
        check_device(device)
        if stream is not None:
            raise ValueError("The stream argument in to_device() is not supported")
        return self  # type: ignore[no-any-return]

    @shortened(np.ndarray.conj, 1)
    def conj(self: Any, out: Any = None) -> ndarray:
        """Complex conjugates; of real numbers, the array itself."""
        if self.dtype.kind in "cO" or out is not None:
            return ufuncs.conjugate(self, out=out)  # type: ignore[no-any-return]
        if self.dtype.kind not in "biuf":
            raise TypeError(f"cannot conjugate non-numeric dtype: {self.dtype}")
        return self  # type: ignore[no-any-return]

    conjugate = conj

    def getfield(self, dtype: Any, offset: int = 0) -> ndarray:
        """The bytes of each element from an offset on, as another dtype; a view of an array."""
        if self._cell.frozen:
            return blockwise.bytes_as(self, dtype, offset)
        return self._see(Bytes(self._layout().getfield(dtype, offset).dtype, offset))

    def setfield(self: Any, val: Any, dtype: Any, offset: int = 0) -> None:
        """Write into the bytes of each element from an offset on."""
        self.getfield(dtype, offset)[...] = val

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Allow or refuse writes through this array (a broadcast view is what refuses them)."""
        if uic:
            raise ValueError("cannot set WRITEBACKIFCOPY flag to True")
        if write is None:
            return
        last = self._views[-1:] == (Broadcast(self.shape),)
        locked = last and make(self._cell, self._views[:-1]).shape == self.shape  # it stretches nothing
        if not write and not locked:
            self._own()  # what may only be read is no view of another array
            self._views = (*self._views, Broadcast(self.shape))
        elif write:
            below = self._views[:-1] if locked else self._views
            found = _unlocked(self._cell, below)
            if found is None:
                raise ValueError("cannot set WRITEABLE flag to True of this array")
            self._views = found
        self._state = None

    @shortened(np.ndarray.byteswap, 1, AS_GIVEN, frozenset())
    def byteswap(self: Any, inplace: bool = False) -> ndarray:
        """The bytes of each element reversed."""
        if inplace and may_overlap(self):
            self._in_place().byteswap(True)
            return self  # type: ignore[no-any-return]
        swapped = lying_as_any(blockwise.byteswapped(self), self)
        if not inplace:
            return swapped
        self[...] = swapped
        return self  # type: ignore[no-any-return]
