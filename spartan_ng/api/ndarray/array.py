"""`ndarray`: NumPy's array class over lazy handles, how it is made and evaluated."""

from __future__ import annotations

import sys
from types import GenericAlias
from typing import Any, Self
from uuid import uuid4

import numpy as np

from spartan_ng.api.base import constants, joining
from spartan_ng.api.core import door, temporaries
from spartan_ng.api.core.ahead import read_ahead
from spartan_ng.api.core.cell import Cell
from spartan_ng.api.core.chains import CHAIN
from spartan_ng.api.core.conversion import as_handle, forced, over_buffer
from spartan_ng.api.core.deriving import Deriving
from spartan_ng.api.core.dispatch import FUNCTIONS, operand_or_fresh
from spartan_ng.api.core.handle import Handle, settle
from spartan_ng.api.core.kinds import NUMBERS
from spartan_ng.api.core.late import register_class
from spartan_ng.api.core.layouts import lie
from spartan_ng.api.core.lenses import learn_lenses
from spartan_ng.api.core.numbers import OURS
from spartan_ng.api.core.quick import Probe, Quick, connect, learn_expressions
from spartan_ng.api.core.views import REVERSED, field
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.ndarray.elements import NUMPYS_INTEGERS, Elements
from spartan_ng.config import config
from spartan_ng.error_state import may_raise
from spartan_ng.errors import ShapeError
from spartan_ng.system.machine import cores


class ndarray(Quick, Elements, metaclass=Deriving, own=True):
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

    # --- values ------------------------------------------------------------------------------------

    def compute(self) -> Any:
        """The value as a NumPy array (or scalar, or CSR array) of the caller's own."""
        if (
            sys.getrefcount(self) == temporaries.OF_METHOD
            and self.format == "dense"
            and not self._cell.frozen
        ):
            settle(self)
            return self._own_memory(True)
        return compute(self)[0]

    def persist(self) -> ndarray:
        """Evaluate now and keep the result where it is, on the workers or the driver."""
        persist(self)
        return self

    # --- pickles ------------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        plain = not self._cell.frozen and self.format == "dense"
        return (_restored, (self._force() if plain else self.compute(), self._cell.frozen))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """From protocol 5 on the memory itself, which pickle copies or hands out as a buffer."""
        if protocol < 5 or self._cell.frozen or self.format == "csr":
            return self.__reduce__()
        return (_restored, (self._force(), False))

    def __dask_tokenize__(self) -> Any:
        """What dask may know it by: by its elements where they are here, else by a name of its own.

        Dask asks in a lock that its scheduler waits for in the same process, so nothing is computed.
        """
        here = self._peek()
        if here is None:
            return ("spartan_ng", uuid4().hex)
        from dask.tokenize import normalize_token

        return normalize_token(here)


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
            is_number = a._cell.frozen and not a._views
            out.append(a._force()[()] if is_number else a._own_memory(False))  # type: ignore[attr-defined]
    return tuple(out)


def persist(*arrays: Any) -> tuple[Any, ...]:
    """Evaluate several arrays together; their elements stay on the workers or the driver."""
    settle(*arrays)
    return arrays


def _listed(parts: list[ndarray]) -> ndarray:
    """A list of arrays as one, in C order however they lie."""
    return lie(joining.stack(parts), None)


register_class(ndarray, _listed)
connect(
    array=ndarray,
    methods=Elements,
    cell=Cell,
    wrap=wrap,
    numbers=NUMBERS,
    integers=NUMPYS_INTEGERS,
    ours=OURS,
    ufuncs=ufuncs.OURS,
    lacking=ufuncs.LACKING,
    functions=FUNCTIONS,
    dot=np.dot,
    finish=operand_or_fresh,
    reversed=REVERSED,
    config=config,
    surely=door.SURELY,
    least=door.PLAIN_BYTES,
    flops=door.QUICK_FLOPS,
    most_flops=door.AT_ONCE_FLOPS,
    looped=door.LOOPED,
    chain=CHAIN,
    cores=cores(),
    field=field,
    learn=learn_lenses,
    unfitting=ShapeError,
    temporaries=Probe is not None and temporaries.learn(Probe),
)


class Pending(ndarray, own=True):
    """An array whose operators the interpreter has yet to ask for the last of (`plain/expressions.h`): by any
    look at it, it is an `ndarray`."""

    __slots__ = ()


if learn_expressions is not None:
    learn_expressions(
        Pending, read_ahead, may_raise, sys.modules["spartan_ng"], np.where, np.square, np.reciprocal, np.sqrt
    )

__all__ = ["compute", "ndarray", "persist"]
