"""What an array is to Python, to NumPy and to other libraries: numbers, text, their arrays and functions."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.algebra import products
from spartan_ng.api.core import printing, summaries
from spartan_ng.api.core.chains import is_read_only, is_stretched, seen_through
from spartan_ng.api.core.conversion import as_handle, forced, is_override, knows_numpys_alone, numpys, values
from spartan_ng.api.core.dispatch import FUNCTIONS, gathered
from spartan_ng.api.core.door import few_pair, few_values
from spartan_ng.api.core.forcing import value_of
from spartan_ng.api.core.handle import Handle, settle
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.outputs import to_write
from spartan_ng.api.core.quick import told_by
from spartan_ng.api.core.telling import applied
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.ndarray.methods import Methods
from spartan_ng.arrays.copying import private_copy
from spartan_ng.arrays.sparse import csr_array
from spartan_ng.costs.tuned import AROUND_BYTES
from spartan_ng.errors import is_refusal

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_NUMPYS = (Handle, np.ndarray, np.generic)
"""Classes of operands that we know; arrays of other libraries may know us instead."""
_WRITES = "operand array with iterator write flag set is read-only"
"""What NumPy says of an operand that a universal function writes into, and may not."""


class Protocols(Methods):
    """Arrays that other code takes as its own."""

    __slots__ = ()
    __array_priority__ = 1000.0

    # --- Python's numbers and text -----------------------------------------------------------------

    def _alone(self) -> Any:
        """The value of an array without axes, or a number; TypeError for others."""
        if self.ndim:
            raise TypeError(
                f"only 0-dimensional arrays can be converted to Python scalars (shape {self.shape})"
            )
        return numpys(self)

    def __float__(self) -> float:
        return float(self._alone())

    def __int__(self) -> int:
        return int(self._alone())

    def __complex__(self) -> complex:
        return complex(self._alone())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            hint = "" if self.ndim else "; float(a) is Python's number"
            raise TypeError(
                "only integer scalar arrays can be converted to a scalar index, "
                f"not {self.dtype} of shape {self.shape}{hint}"
            )
        return int(self._force())

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                f"Use a.any() or a.all() (shape {self.shape})"
            )
        return bool(self._force())

    def __bytes__(self) -> bytes:
        """The elements' memory in C order, as of a buffer; of an integer without axes, so many zeros."""
        value = self._force()
        return bytes(int(value)) if not value.ndim and value.dtype.kind in "iu" else value.tobytes()

    def __repr__(self) -> str:
        return printing.array_repr(self)

    def __str__(self) -> str:
        return printing.array_str(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return summaries.mime_bundle(self)

    def __format__(self, spec: str) -> str:
        if self.ndim == 0:
            return format(self._force()[()], spec)
        if spec:
            raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
        return str(self)

    # --- NumPy's protocols ---------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The elements where they lie, which is the array's memory and the caller's from then on, or a copy.

        `lent.py` says what has such memory. With `copy=True` it is a copy in any case; with `copy=False` what
        has none is given to be read only. ValueError where another dtype would need a copy.
        """
        is_other = dtype is not None and self.dtype != dtype
        if is_other and copy is False:
            raise ValueError(f"a copy is needed to convert {self.dtype} to {np.dtype(dtype)}")
        if not (is_other or copy) and self._is_lendable():
            return self._on_loan()  # type: ignore[no-any-return]
        if copy is False:
            return self._to_read()
        if is_other:
            return np.asarray(self._force()).astype(dtype)
        if self._views and (seen := self._among_others()) is not None:
            return seen
        return self._own_memory(False)

    def _among_others(self) -> np.ndarray[Any, Any] | None:
        """A copy of a view's elements, with what lies around them, as its strides say, if that costs little:
        SciPy's `circulant` goes back from where a view begins."""
        root, shown, views = self._cell.value, self._peek(), self._views
        if shown is None or not root.flags.forc or root.nbytes > max(AROUND_BYTES, 2 * shown.nbytes):
            return None
        if is_read_only(views) or is_stretched(views):  # in the caller's own memory each element is one
            return None
        return seen_through(private_copy(root), views)  # type: ignore[no-any-return]

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The elements as by `numpy.asarray(a)`: what matplotlib and others ask of a data frame's column."""
        return self.__array__(copy=True)

    def __arrow_array__(self, type: Any = None) -> Any:
        """The elements as PyArrow's array, of its `type` or of the one that is ours."""
        return import_module("pyarrow").array(self.__array__(copy=True), type=type)

    def _own_memory(self, is_temporary: bool) -> np.ndarray[Any, Any]:
        """The elements in the caller's own memory: a copy, but of a temporary's and of what was gathered."""
        value = np.asarray(self._force())
        if sys.getrefcount(value) == 2 and value.flags.owndata and value.flags.writeable:
            return value
        if is_temporary and not self._views:
            del value  # which counts what it finds
            given = self._cell.given_away()
            if given is not None:
                return given  # type: ignore[no-any-return]
            value = np.asarray(self._force())
        return private_copy(value)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """NumPy's ufuncs of our arrays are ours (NEP 13)."""
        if not keywords and method == "__call__" and type(function) is np.ufunc and function in ufuncs.OURS:
            few = few_pair(*inputs) if len(inputs) == 2 else few_values(inputs)  # a number, and a small array
            if few is not None:
                try:
                    found = applied(function, tuple(few))
                    return tuple(map(wrap, found)) if type(found) is tuple else wrap(found)
                except ValueError as error:  # ours name the shapes
                    if not is_refusal(error):
                        raise
        function = getattr(function, "np", function)
        if not (isinstance(function, np.ufunc) or (callable(function) and hasattr(function, "nout"))):
            raise TypeError(
                f"__array_ufunc__ takes a ufunc, the name of its method and operands: {function!r}"
            )
        others = [*filter(is_override, (*inputs, *keywords.get("out", ())))]
        if others and not all(map(knows_numpys_alone, others)):
            return NotImplemented
        if others and method != "at":
            return getattr(function, method)(*values(*inputs), **keywords)
        if others:  # it writes, so the first operand has to be asked where
            inputs = (inputs[0], *map(np.asarray, inputs[1:]))
        ours = ufuncs.of_name(function.__name__) or products.GUFUNCS.get(function)
        if ours is None or ours.np is not function:
            return _by_others_ufunc(function, method, inputs, keywords)
        out = keywords.get("out")
        if isinstance(out, tuple) and len(out) == 1:
            keywords["out"] = out[0]
        return (ours if method == "__call__" else getattr(ours, method))(*inputs, **keywords)

    @property
    def __numpy_dtype__(self) -> Any:
        """What NumPy makes of it where it asks for a dtype: that of a number; an array is a mistake."""
        if not self._cell.frozen:
            raise TypeError("Cannot construct a dtype from an array")
        return self.dtype

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """What a NumPy function that knows this protocol has made, as an array of ours or as a number."""
        return wrap(array[()] if return_scalar else array)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions of our arrays are ours (NEP 18); those we lack gather their operands."""
        function, keywords = func, kwargs
        for name, given, kind in (("args", args, tuple), ("kwargs", keywords, dict)):
            if not isinstance(given, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, not {type(given).__name__}")
        if not all(issubclass(t, _NUMPYS) for t in types):
            return NotImplemented
        ours = FUNCTIONS.get(function)
        if ours is not None:
            return ours(*args, **keywords)
        found = gathered(function, *args, **keywords)
        # A method of a class derived from NumPy's, which works on with what NumPy gives.
        derived = any(t is not np.ndarray and issubclass(t, np.ndarray) for t in types)
        return forced(found) if derived and "out" not in keywords else found

    # --- other libraries -----------------------------------------------------------------------------

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The array API standard's view of this package; its arrays are arrays of this class, too."""
        return Late.namespace(api_version)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """The elements for another library (DLPack), gathered; read-only unless copied."""
        copy = copy if copy is None else bool(copy)
        value = np.asarray(self._force())
        shown_only = not self._cell.frozen and not self.flags.writeable  # type: ignore[attr-defined]
        if shown_only and not copy and max_version is None:
            raise BufferError("Cannot export readonly array: this version of DLPack has no sign for it")
        if copy is not False or not (value.flags.c_contiguous or value.flags.f_contiguous):
            value = value.copy()
        return value.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU, in DLPack's numbers."""
        return np.empty(0).__dlpack_device__()

    def matvec(self, x: Any) -> Any:
        """A matrix times a vector, as SciPy's linear operators ask what is none of NumPy's arrays
        (`scipy.sparse.linalg.aslinearoperator`, and `cg`, `eigsh`, `svds`, ... by it)."""
        return forced(products.matmul(self, x))

    def rmatvec(self, x: Any) -> Any:
        """A matrix's conjugate transpose times a vector, or several as columns, for linear operators."""
        turned = self.T  # type: ignore[attr-defined]
        return forced(products.matmul(turned.conj() if self.dtype.kind == "c" else turned, x))

    rmatmat = rmatvec

    # --- the elements as something else -------------------------------------------------------------

    @told_by(np.ndarray.tolist, 1)
    def tolist(self) -> Any:
        """Nested lists of Python scalars."""
        return self._force().tolist()

    @told_by(np.ndarray.tobytes, 1)
    def tobytes(self, order: Any = "C") -> bytes:
        """The elements' bytes."""
        return self._force().tobytes(order)  # type: ignore[no-any-return]

    def toarray(self) -> Any:
        """A sparse array as a dense NumPy array."""
        return np.array(self._force())

    def todense(self) -> ndarray:
        """A sparse array as a dense one."""
        return wrap(np.asarray(self._force())) if self.format == "csr" else as_handle(self)

    def tocsr(self) -> Any:
        """The elements as a `scipy.sparse.csr_array`."""
        settle(self)
        ref = self._node().data
        if self.format == "csr" and ref is not None:
            return csr_array(value_of(ref), copy=True)
        return csr_array(self._force())


def _by_others_ufunc(function: Any, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run a universal function that is not NumPy's on the driver: SciPy's, Numba's, or `np.frompyfunc`'s.

    It may write into its operands, and does not tell which: it gets them to be read first, and the arrays'
    own memory where it asks for that.
    """
    if method == "at":
        return gathered(function.at, to_write(inputs[0]), *inputs[1:], **keywords)
    if method != "__call__":
        return gathered(getattr(function, method), *inputs, **keywords)
    if len(inputs) > function.nin:
        keywords = {**keywords, "out": inputs[function.nin :]}
        inputs = inputs[: function.nin]
    values(*inputs)
    try:
        return gathered(function, *map(_to_read, inputs), **keywords)
    except ValueError as error:
        if str(error) != _WRITES:
            raise
    return gathered(function, *map(to_write, inputs), **keywords)


def _to_read(operand: Any) -> Any:
    return operand._to_read() if isinstance(operand, Handle) else operand
