"""NumPy's array methods that are one call of a function: reshaping, folds, places, sorting."""

from __future__ import annotations

import functools
import inspect
import operator
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from spartan_ng.api.algebra import products
from spartan_ng.api.base import assigning, cumulative, indexing, manipulation, reductions
from spartan_ng.api.core import door
from spartan_ng.api.core.chains import may_overlap
from spartan_ng.api.core.conversion import forced
from spartan_ng.api.core.dispatch import NUMPYS, by_numpy
from spartan_ng.api.core.loans import lends, on_loan
from spartan_ng.api.core.outputs import INTO, into
from spartan_ng.api.core.quick import (
    AS_BROADCAST,
    AS_GIVEN,
    AS_WRITTEN,
    shortened,
    shown_by,
    turned_by,
)
from spartan_ng.api.elementwise import logic
from spartan_ng.api.ndarray.arithmetic import Arithmetic
from spartan_ng.api.ordering import sorting
from spartan_ng.api.places import rearranging, resizing, taking
from spartan_ng.api.statistics import statistics
from spartan_ng.sinks.places import file_place, replacing

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

F = TypeVar("F", bound=Callable[..., Any])


class _Counted:
    """How many references a method finds to an object with one name, and to what only the object has."""

    def __init__(self) -> None:
        self.inner = object()

    def references(self, *given: Any) -> tuple[int, int]:
        return sys.getrefcount(self), sys.getrefcount(self.inner)


_counted = _Counted()
_ONE_NAME, _ONE_CELL = _counted.references(1)


def _method(function: F) -> F:
    """A function as a method, which need not look for an array of ours among what it is given."""
    plain, numpys = inspect.unwrap(function), NUMPYS[function]
    placing = into(numpys, plain, by_numpy) if numpys in INTO else plain

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        called = placing if len(args) > 1 or "out" in keywords else plain
        if (self._cell.shared or self._cell.borrowed) and lends(self):
            return on_loan(called, self, *args, **keywords)
        return called(self, *args, **keywords)

    return method  # type: ignore[return-value]


class Methods(Arithmetic):
    """Arrays with NumPy's methods."""

    __slots__ = ()

    # --- shape -------------------------------------------------------------------------------------

    @shown_by(np.ndarray.reshape, 12)
    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> ndarray:
        """The same elements under another shape."""
        if not shape:
            raise TypeError("reshape() takes a shape, and none is given")
        wanted = shape[0] if len(shape) == 1 else shape
        seen = manipulation.seen_as(self, wanted) if order == "C" and not copy else None
        return manipulation.reshape(self, wanted, order=order, copy=copy) if seen is None else seen

    def resize(self: Any, *shape: Any, refcheck: bool = True) -> None:
        """Change the shape in place; new elements are zero. Somebody else's array keeps its shape, as does a
        scalar.

        Raises
        ------
        ValueError : the array is a view, or (with `refcheck`) has another name or a view
        """
        if not isinstance(refcheck, int):
            raise TypeError(f"'{type(refcheck).__name__}' object cannot be interpreted as an integer")
        if shape in ((), (None,)):
            return
        resized = resizing.resized(self, shape[0] if len(shape) == 1 else shape)
        if self._cell.frozen:
            return
        if resized.size == self.size:
            self._lie_as(resized.shape)
            return
        if self.itemsize:
            if self._is_view():
                raise ValueError("cannot resize this array: it does not own its data")
            if refcheck and (sys.getrefcount(self) > _ONE_NAME or sys.getrefcount(self._cell) > _ONE_CELL):
                raise ValueError(
                    "cannot resize an array that references or is referenced\nby another array in this way.\n"
                    "Use the np.resize function or refcheck=False"
                )
        if resized._views:
            resized = resized.copy()
        writeable = self.flags.writeable
        self._cell, self._views, self._state = resized._cell, (), None
        if not writeable:
            self.flags.writeable = False

    def _lie_as(self: Any, shape: tuple[int, ...]) -> None:
        """Show the elements that are there, as they lie, in another shape: views go on showing them, too."""
        if self.flags.c_contiguous:
            seen = indexing.reshaped(self, shape)
        elif self.flags.f_contiguous:
            seen = indexing.reshaped(self.T, shape[::-1]).T
        else:
            raise ValueError("resize only works on single-segment arrays")
        self._views, self._state = seen._views, None

    @shown_by(np.ndarray.ravel, 1)
    def ravel(self, order: str = "C") -> ndarray:
        """One axis, as a view where possible."""
        seen = manipulation.seen_as(self, -1) if order == "C" else None
        if seen is not None:
            return seen
        return manipulation.ravel(self, order)

    @shortened(np.ndarray.flatten)
    def flatten(self, order: str = "C") -> ndarray:
        """One axis, always a copy."""
        return manipulation.ravel(self, order).copy()

    @turned_by(np.ndarray.transpose, 12)
    def transpose(self, *axes: Any) -> ndarray:
        """The axes in another order."""
        if len(axes) == 1 and not isinstance(axes[0], int | np.integer):
            return manipulation.transpose(self, axes[0])
        return manipulation.transpose(self, axes or None)

    swapaxes = manipulation.swapaxes
    squeeze = manipulation.squeeze
    repeat = rearranging.repeat
    diagonal = manipulation.diagonal
    trace = products.trace

    @shortened(np.dot)
    def dot(self, b: Any, out: Any = None) -> ndarray:
        """The dot product."""
        return products.dot(self, b) if out is None else products.dot(self, b, out)

    # --- folds -------------------------------------------------------------------------------------

    sum = shortened(np.ndarray.sum)(_method(reductions.sum))
    prod = shortened(np.ndarray.prod)(_method(reductions.prod))
    max = shortened(np.ndarray.max)(_method(reductions.max))
    min = shortened(np.ndarray.min)(_method(reductions.min))

    argmax = shortened(np.ndarray.argmax)(_method(reductions.argmax))
    argmin = shortened(np.ndarray.argmin)(_method(reductions.argmin))
    mean = shortened(np.ndarray.mean)(_method(statistics.mean))
    var = shortened(np.ndarray.var)(_method(statistics.var))
    std = shortened(np.ndarray.std)(_method(statistics.std))
    cumsum = shortened(np.ndarray.cumsum)(cumulative.cumsum)
    cumprod = shortened(np.ndarray.cumprod)(cumulative.cumprod)

    @shortened(np.ndarray.any)
    def any(
        self,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        *,
        where: Any = True,
        dtype: Any = None,
    ) -> ndarray:
        """Whether some element is true."""
        return reductions.fold_truths("logical_or", self, axis, dtype, out, keepdims, where)

    @shortened(np.ndarray.all)
    def all(
        self,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        *,
        where: Any = True,
        dtype: Any = None,
    ) -> ndarray:
        """Whether every element is true."""
        return reductions.fold_truths("logical_and", self, axis, dtype, out, keepdims, where)

    # --- places -------------------------------------------------------------------------------------

    @shortened(np.ndarray.take, 3)
    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> ndarray:
        """Elements at indices along an axis."""
        if out is None and mode == "raise":
            return taking.take(self, indices) if axis is None else taking.take(self, indices, axis)
        return taking.take(self, indices, axis, out, mode)

    @shortened(np.ndarray.put, 4, AS_WRITTEN, frozenset({"mode"}))
    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Set flat elements."""
        taking.put(self, indices, values, mode)

    @shortened(np.ndarray.choose, 2, AS_BROADCAST, frozenset({"mode"}))
    def choose(self, *choices: Any, out: Any = None, mode: str = "raise") -> ndarray:
        """Elements from the choice that each element names; the choices one by one, or as a sequence."""
        if not choices:
            raise TypeError("choose() takes choices, and none is given")
        return taking.choose(self, choices[0] if len(choices) == 1 else choices, out, mode)

    @shortened(np.ndarray.compress, 2, AS_GIVEN)
    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> ndarray:
        """Slices along an axis where a condition holds."""
        return taking.compress(condition, self, axis, out)

    nonzero = shortened(np.ndarray.nonzero, 1)(sorting.nonzero)

    # --- the rest ----------------------------------------------------------------------------------

    @shortened(np.ndarray.clip, 3, AS_BROADCAST, frozenset({"min", "max"}))
    def clip(self, min: Any = None, max: Any = None, out: Any = None, **keywords: Any) -> ndarray:
        """Elements limited to a range."""
        return logic.clip(self, min, max, out, **keywords)

    @shortened(np.ndarray.round, 2, AS_GIVEN)
    def round(self, decimals: int = 0, out: Any = None) -> ndarray:
        """Elements rounded to decimals."""
        return logic.round(self, decimals) if out is None else logic.round(self, decimals, out)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Sort in place along `axis`."""
        axis = operator.index(axis)
        overlaps = may_overlap(self)  # one line after the other, in whatever the ones before have left
        target = self._in_place() if overlaps else self._open()
        if overlaps or (target is not None and door.is_small(target.nbytes) and target.flags.writeable):
            target.sort(axis, kind, order, stable=stable)
            return
        assigning.setitem(self, ..., sorting.sort(self, axis, kind, order, stable=stable))

    @shortened(np.ndarray.argsort, 2, AS_GIVEN, frozenset({"axis", "kind", "stable"}))
    def argsort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> ndarray:
        """The indices that sort."""
        return sorting.argsort(self, axis, kind, order, stable=stable)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
        """Partition in place along `axis`."""
        axis = operator.index(axis)
        if may_overlap(self):
            self._in_place().partition(forced(kth), axis, kind, order)
            return
        assigning.setitem(self, ..., sorting.partition(self, kth, axis, kind, order))

    @shortened(np.ndarray.argpartition, 3, AS_GIVEN, frozenset({"axis", "kind"}))
    def argpartition(self, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> ndarray:
        """The indices that partition."""
        return sorting.argpartition(self, kth, axis, kind, order)

    searchsorted = sorting.searchsorted

    # --- files and pickles ---------------------------------------------------------------------------

    def tofile(self, file: Any, sep: str = "", format: str = "%s") -> None:
        """Write the elements to a file, which takes the place of one that is there when it is whole."""
        nbytes = 0 if sep else self.nbytes
        self._written(file, lambda value, to: value.tofile(to, sep, format), nbytes)

    def dump(self, file: Any) -> None:
        """Pickle to a file, which takes the place of one that is there when it is whole."""
        self._written(file, lambda value, to: value.dump(to))

    def _written(self, file: Any, write: Callable[[Any, Any], None], nbytes: int = 0) -> None:
        """Have the elements written to a file of a name, or to an open one; of no less than so many bytes."""
        if not isinstance(file, str | os.PathLike) or isinstance(os.fspath(file), bytes):
            write(self._force(), file)
            return
        file_place(file, nbytes=nbytes)
        value = self._force()
        with replacing(file) as to:
            write(value, to)

    def dumps(self) -> bytes:
        """The pickle of the elements."""
        return self._force().dumps()  # type: ignore[no-any-return]
