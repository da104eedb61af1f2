"""What arrays and cells have, and the plain case of what arrays do: in C if that was compiled, or in Python.

`Quick` stands in front of the methods of `ndarray`, which decide everything. Compiled (`_quick.c`), it has
NumPy do at once what small arrays of numbers are asked; in Python it is empty, and the methods are asked.
Answers are the same, as `SPARTAN_NG_PURE=1` lets anybody see, which leaves out what is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from spartan_ng.config import PURE_VARIABLE
from spartan_ng.system.built import built

F = TypeVar("F", bound=Callable[..., Any])
FOLDED: dict[Any, tuple[np.ufunc, bool]] = {
    np.sum: (np.add, False),
    np.ndarray.sum: (np.add, False),
    np.mean: (np.add, True),
    np.ndarray.mean: (np.add, True),
    np.prod: (np.multiply, False),
    np.ndarray.prod: (np.multiply, False),
    np.max: (np.maximum, False),
    np.ndarray.max: (np.maximum, False),
    np.min: (np.minimum, False),
    np.ndarray.min: (np.minimum, False),
    np.any: (np.logical_or, False),
    np.ndarray.any: (np.logical_or, False),
    np.all: (np.logical_and, False),
    np.ndarray.all: (np.logical_and, False),
}
"""What NumPy's functions fold by, and whether sums are divided by how many there are."""
FILLED: dict[Any, int | None] = {
    np.zeros: 0,
    np.zeros_like: 0,
    np.ones: 1,
    np.ones_like: 1,
    np.full: None,
    np.full_like: None,
}
"""What NumPy's functions fill arrays with, None where the second argument says it."""
_CALLED = "argmax argmin argpartition argsort choose nonzero repeat searchsorted take"
METHODS: dict[Any, Any] = {getattr(np, name): getattr(np.ndarray, name) for name in _CALLED.split()}
"""What functions of NumPy's, which are Python, call of an array with the same arguments. Those that may warn
are not among them: a warning names the line that called."""


def _compiled() -> ModuleType | None:
    """The compiled module, unless there is none, or nobody wants it."""
    if os.environ.get(PURE_VARIABLE, "0") != "0":
        return None
    parts = sorted(Path(__file__).with_name("plain").glob("*.h"))
    return built("spartan_ng.api.core._quick", __file__, "_quick.c", *(f"plain/{p.name}" for p in parts))


_module = None if TYPE_CHECKING else _compiled()
IS_COMPILED = _module is not None
"""Whether the plain case is answered in C."""

if TYPE_CHECKING or _module is None:

    class CellFields:
        """What a cell has; the class's defaults, since most cells hold a value and nothing else."""

        value: Any = None
        masked: Any = None
        frozen: bool = False
        borrowed: bool = False
        blank: bool = False
        picks: int = 0
        order: tuple[int, ...] | None = None
        shared: bool = False
        lent: int = 0
        rent: int = 0
        tests: int = 0
        lender: Any = None
        source: Any = None
        owner: Any = None
        settled: bool = False
        _node: Any = None

    class HandleFields:
        """What an array has."""

        __slots__ = ("__weakref__", "_cell", "_shown", "_state", "_views")

    class Quick(HandleFields):
        """The plain case of what arrays do, left to the methods."""

        __slots__ = ()

    class Walker:
        """What `a.flat` has, which walks over an array."""

        base: Any
        _index: int
        _following: Callable[[], Any]
        _read_flat: Callable[[Any], Any]
        _write_flat: Callable[[Any, Any], None]

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            return self._following()

        def __getitem__(self, key: Any) -> Any:
            return self._read_flat(key)

        def __setitem__(self, key: Any, value: Any) -> None:
            self._write_flat(key, value)

        def __delitem__(self, key: Any) -> None:
            raise TypeError("Cannot delete iterator elements")

    class QuickFunction:
        """The plain case of calls of a universal function, left to the method."""

        np: Any
        nin: int
        nout: int
        takes_place: bool

    Probe: type | None = None
    """Operators that learn who calls them."""

    def connect(**_: Any) -> None:
        """Say which classes, methods and tables the plain case is that of."""

    learn_expressions: Callable[..., None] | None = None
    """Say which class arrays are of that are pending, what reads code, and which functions it finds there."""

    def read_after(nbytes: int) -> None:
        """Say after how many bytes of results code is read for what becomes of them."""

    def settle_pending() -> None:
        """Compute all arrays that are pending."""

    def learn_recurring(kernel_for: Callable[..., int] | None, least: float) -> None:
        """Say who has kernels for expressions that come again and again, and how often they do at least."""

    NAMES_LINES: bool = False
    """Whether what an operator is told of names its line when it is computed in another."""

    number_class: Callable[[type], type] | None = None
    """A class of NumPy's numbers with the plain case of what its operators do."""

    def connect_numbers(number: type, methods: type, kind: type) -> None:
        """Say which class our numbers of one of NumPy's have."""

    def in_front(ours: F, numpys: Any, names: frozenset[str], most: int, size: int) -> F:
        """`ours`, but NumPy's function at once where its arguments are small arrays and no other ones."""
        return ours

    is_small: Callable[[float], bool] | None = None
    is_open: Callable[[], bool] | None = None
    """The questions of `door.py`, asked without a frame of Python's."""

    def are_of(items: Any, classes: frozenset[type], within: bool = False) -> bool:
        """Whether the class of each item of a list or a tuple is among some, or, `within`, of what lists and
        tuples in it hold."""
        every = (a for a in items if type(a) not in classes)
        return all(within and type(a) in (list, tuple) and are_of(a, classes, within) for a in every)

    lend: Callable[[Any], Any] | None = None
    """What NumPy is given of an array's memory; see `lent.py`."""

    def applied(numpys: Any, operands: tuple[Any, ...], out: Any = None) -> Any:
        """What a function of NumPy's gives for NumPy's arrays and numbers, or writes to `out`."""
        return numpys(*operands) if out is None else numpys(*operands, out=out)

    def selected(a: Any, key: Any) -> Any:
        """What an array of NumPy's has where another one is true, or at its indices."""
        return a[key]

    grouped: Callable[[Any], tuple[int, Any, Any] | None] | None = None
    """The least value of a line of integers, where the places of each value begin, and the places; None where
    they are not to be found in order."""

    def taken_at(a: Any, places: Any) -> Any:
        """What an array of NumPy's has at places along its first axis."""
        return a.take(places, axis=0)

    binned: Callable[[Any, Any, Any], Any] | None = None
    """How many doubles fall into each of some equally wide bins, or sums of weights; None where NumPy has to
    say it."""

    def put(a: Any, key: Any, value: Any) -> None:
        """Write into an array of NumPy's where another one is true, or by any key."""
        a[key] = value

else:
    CellFields, HandleFields, Quick = _module.CellFields, _module.HandleFields, _module.Quick
    QuickFunction, Probe, connect = _module.QuickFunction, _module.Probe, _module.connect
    Walker = _module.Walker
    learn_expressions, settle_pending = _module.learn_expressions, _module.settle_pending
    read_after = _module.read_after
    learn_recurring = _module.learn_recurring
    NAMES_LINES = bool(_module.NAMES_LINES)
    number_class, connect_numbers = _module.number_class, _module.connect_numbers

    def in_front(ours: F, numpys: Any, names: frozenset[str], most: int, size: int) -> F:
        """`ours`, but NumPy's function at once where its arguments are small arrays and no other ones."""
        fold, is_mean = FOLDED.get(numpys, (None, False))
        is_method = "." in ours.__qualname__
        whole = None if is_method or size not in _SHOWN else getattr(np, numpys.__name__, None)
        if numpys in METHODS:
            numpys, whole = METHODS[numpys], numpys
        given = (ours, numpys, names, most, size, fold, is_mean, whole)
        value = (FILLED[numpys],) if numpys in FILLED else ()
        return _module.in_front(*given, *value)  # type: ignore[no-any-return]

    is_small, is_open = _module.is_small, _module.is_open
    are_of = _module.are_of
    lend, applied = _module.lend, _module.applied
    selected, put, binned = _module.selected, _module.put, _module.binned
    grouped, taken_at = _module.grouped, _module.taken_at


AS_GIVEN, AS_BROADCAST, AS_OUTER, AS_LOOPS, AS_SHAPE, AS_RANGE, AS_REPEATED = range(7)
AS_ITSELF, AS_VIEW, AS_PYTHONS, AS_DRAWN, AS_COPY, AS_TURNED = range(7, 13)
AS_COUNTED, AS_SQUARE, AS_TILED, AS_WRITTEN, AS_CHOSEN, AS_SHUFFLED = range(13, 19)
AS_ROLLED, AS_CONTRACTED, AS_LIKE = range(19, 22)
"""What bounds a result's size: the operands'; what they are broadcast to; all of their products; what loops
over all letters of the first argument make; the first argument, a shape; all arguments, a range; the second,
how often there is each of the first. Or it is the only argument; a view of the first; what is Python's own;
numbers of a generator, as many as the last argument says; a copy of the first; a view of it that is the same
step whatever its lengths are. Or as `num` or the third argument says; the square of what the first says, or
is long, and the second adds; the first as often as the second says. Or it is None, and the first is written;
some of what a generator is given, in an order of its, or all of it, where it lies. Or a view of the first,
which is no list. Or two arrays are summed over axes of both, as the third argument says; or there are as
many elements as the first has."""
_SHOWN = frozenset({AS_VIEW, AS_TURNED, AS_ROLLED})
"""Of results that show the first argument: NumPy's function takes what is no array, and keywords, which the
method that makes the view sooner may not."""
ASKING = frozenset({"axis", "ddof", "decimals", "keepdims", "k"})
"""Keywords that say what is to be done, and nothing of where the result goes."""


def shortened(
    numpys: Any, most: int = 2, size: int = AS_BROADCAST, names: frozenset[str] = ASKING
) -> Callable[[F], F]:
    """A function or a method whose plain calls are one of NumPy's, with at most so many arguments by their
    places."""
    return lambda ours: in_front(ours, numpys, names, most, size)


_PLACES = frozenset({"axis", "axis1", "axis2", "offset", "k", "axes", "source", "destination", "shape"})


def shown_by(numpys: Any, most: int) -> Callable[[F], F]:
    """A function or a method whose result is a view of its first argument where one of NumPy's gives one, for
    axes, lengths and tuples of them: NumPy makes it of arrays that are here (`lenses.py`)."""
    return lambda ours: in_front(ours, numpys, _PLACES, most, AS_VIEW)


def turned_by(numpys: Any, most: int) -> Callable[[F], F]:
    """The same of one whose view says nothing of the array's lengths: what was made last is made again of an
    array of others, as in loops over parts of one."""
    return lambda ours: in_front(ours, numpys, _PLACES, most, AS_TURNED)


def rolled_by(numpys: Any, most: int) -> Callable[[F], F]:
    """The same of one that NumPy gives arrays alone."""
    return lambda ours: in_front(ours, numpys, _PLACES, most, AS_ROLLED)


def told_by(numpys: Any, most: int) -> Callable[[F], F]:
    """A method that tells elements as Python's objects, at places, as one of NumPy's does."""
    return lambda ours: in_front(ours, numpys, frozenset(), most, AS_PYTHONS)


def drawn_by(numpys: Any, place: int, *names: str) -> Callable[[F], F]:
    """A generator's method that draws few numbers, by parameters that are numbers, as one of NumPy's does:
    with a size at its place among all arguments, the last that it may have so, and others by `names`."""
    return lambda ours: in_front(ours, numpys, frozenset(names), place + 1, AS_DRAWN)


def chosen_by(numpys: Any, most: int, *names: str) -> Callable[[F], F]:
    """A generator's method that takes some of a small array or range, or puts it in another order, as one of
    NumPy's does, with a size as its second parameter."""
    return lambda ours: in_front(ours, numpys, frozenset(names), most, AS_CHOSEN)


def shuffled_by(numpys: Any) -> Callable[[F], F]:
    """A generator's method that puts a small array in another order where it lies."""
    return lambda ours: in_front(ours, numpys, frozenset(), 2, AS_SHUFFLED)


def plainly(numpys: Any) -> Callable[[F], F]:
    """An operator whose plain case is a function of NumPy's on the operands' values."""

    def mark(method: F) -> F:
        method.numpys = numpys  # type: ignore[attr-defined]
        return method

    return mark
