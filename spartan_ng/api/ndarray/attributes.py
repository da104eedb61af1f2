"""Attributes of arrays: what they are like, and parts of them that are arrays themselves."""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, creation, indexing, manipulation, reductions
from spartan_ng.api.core.chains import full_shape
from spartan_ng.api.core.conversion import forced, over_buffer
from spartan_ng.api.core.flags import Flags
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import is_subclass
from spartan_ng.api.core.views import REVERSED, ComplexPart
from spartan_ng.api.core.wrapping import make, wrap, wrap_node
from spartan_ng.api.ndarray.protocols import Protocols
from spartan_ng.api.places.flat import MOST_AXES_OF_FLAT, Flat
from spartan_ng.callers import warn_user
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


class Attributes(Protocols):
    """Arrays with NumPy's attributes."""

    __slots__ = ()

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
        return self._see(ComplexPart("real")) if self.dtype.kind == "c" else self  # type: ignore[return-value]

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = creation.asarray(value)  # a number, too, is cast as the elements of an array are

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
            return self._see(ComplexPart("imag"))
        zeros = constants.zeros_like(self, order="A")
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
        self._views, self._state = self.view(dtype)._views, None  # type: ignore[attr-defined]

    dtype = property(Handle.dtype.fget, _recast, doc=Handle.dtype.__doc__)  # type: ignore[attr-defined]

    @property
    def flat(self) -> Flat:
        """The elements in C order, to iterate over, read and write."""
        if self.ndim > MOST_AXES_OF_FLAT:
            raise RuntimeError(
                f"this function only supports up to {MOST_AXES_OF_FLAT} dimensions "
                f"but the array has {self.ndim}."
            )
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        is_array = isinstance(value, Handle | np.ndarray)  # cast by force; anything else has to fit
        dtype = None if is_array or self.dtype.kind not in "biufc" else self.dtype
        values = creation.asarray(np.asarray(value) if is_subclass(value) else value, dtype)
        if values.size:
            Flat(self)[:] = values

    @property
    def flags(self: Any) -> Flags:
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
        if not self._is_view():
            return self._cell.lender  # type: ignore[no-any-return]
        owner = self._cell.owner
        found = owner() if owner is not None else None
        if found is None:
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
    def nnz(self: Any) -> int:
        """The number of stored elements of a sparse array, of non-zeros of a dense one."""
        if self.format == "csr":
            self.persist()
            ref = self._node().data
            if ref is not None and ref.nnz is not None:
                return ref.nnz  # type: ignore[no-any-return]
        return int(reductions.count_nonzero(self))

    @property
    def data(self) -> memoryview:
        """The elements' memory, read-only where it is not lent (`lent.py`)."""
        return self._exported(None).data  # type: ignore[no-any-return]

    @property
    def ctypes(self) -> Any:
        """The elements' memory for ctypes, which reads and writes it where it is; not to be written to where
        the array must not be."""
        return self._addressed().ctypes

    def _addressed(self) -> np.ndarray[Any, Any]:
        """The elements' memory for who knows its address, as long as there is the array, and writes only
        where the array may: `__array_interface__` and `__array_struct__`, too."""
        if self.format != "dense":
            raise AttributeError(f"an array in {self.format} format has no address")
        if self._cell.frozen:
            return self._to_read()
        seen = self._lent().view()
        seen.flags.writeable &= self.flags.writeable
        return seen  # type: ignore[no-any-return]
