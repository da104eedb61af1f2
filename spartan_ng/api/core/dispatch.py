"""Which of NumPy's functions we have, the shortcut for small operands, and the fallback for the rest.

`@numpy_function(np.x)` enters a function into the table that `__array_function__` consults. With `eager` it
also lets NumPy do the work at once when all array arguments are small and on the driver. What is not in
the table is gathered, given to NumPy, and reported once in a warning.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import is_array_like, over_buffer, values, with_elements
from spartan_ng.api.core.few import QUICKER
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import PLAIN, SubclassError, any_stays, is_subclass
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.layouts import RULES, by_rule
from spartan_ng.api.core.loans import lends, on_loan
from spartan_ng.api.core.numbers import NUMERIC, OURS
from spartan_ng.api.core.others import by_scipys, has_its_own
from spartan_ng.api.core.outputs import INTO, into, is_written, to_write
from spartan_ng.api.core.quick import AS_BROADCAST, AS_GIVEN, ASKING, are_of, in_front
from spartan_ng.api.core.work import takes_long, work_of
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.callers import warn_user
from spartan_ng.errors import alone

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""Ours for each of NumPy's functions."""

NUMPYS: dict[Callable[..., Any], Any] = {}
"""NumPy's function for each of ours."""

_warned: set[str] = set()


class FallbackWarning(UserWarning):
    """A function runs in NumPy on the driver, after its operands were gathered."""


def numpy_function(
    *functions: Any,
    eager: bool = False,
    whole: bool | Callable[[list[Any]], bool] = False,
    few: int = 0,
    front: Any = None,
    asks: frozenset[str] = frozenset(),
) -> Callable[[F], F]:
    """Enter a function in the table; `eager` functions leave small operands to NumPy.

    An eager function must not return much more than it is given, and never a view of it. A `whole` function
    is an eager one that nothing fuses with, because it sorts or counts: NumPy takes operands that have values
    and fit into the memory with what it makes of them, unless workers are sooner done; a function says of a
    call's values whether it is one. Of other functions, NumPy does a call of at most `few` operands, if
    they are nothing but small arrays and numbers: it must not return much more than operands have that are
    broadcast together, and never one of them. `front` is put in front of what makes an array of no other one,
    see `shortened`; an eager function `asks` by keywords besides those of its parameters.
    """

    def enter(ours: F) -> F:
        if functions[0] in RULES:
            ours = by_rule(functions[0], ours)  # type: ignore[assignment]
        if functions[0] in INTO:
            ours = into(functions[0], ours, by_numpy)
        if eager or whole:
            called: Any = _with_shortcut(ours, functions[0], whole, asks)
        else:
            called = _leaving_subclasses(ours, functions[0])
        if few:
            called = _for_few(called, functions[0], few)
        called = called if front is None else front(called)
        if isinstance(functions[0], types.BuiltinFunctionType) and hasattr(type(called), "__get__"):
            called = _Builtin(called)
        for f in functions:
            FUNCTIONS[f] = called
        NUMPYS[called] = functions[0]
        return called  # type: ignore[no-any-return]

    return enter


class _Builtin(staticmethod):  # type: ignore[type-arg]
    """A function that, as an attribute of a class, becomes no method: NumPy's are not Python's."""

    def __reduce__(self) -> str:
        return self.__qualname__


def _leaving_subclasses(ours: F, numpys: Callable[..., Any]) -> F:
    """`ours`, but NumPy's function where an operand's class has rules of its own."""
    has_device = "device" in inspect.signature(ours).parameters
    is_dispatched = isinstance(numpys, _DISPATCHED)
    method = numpys.__name__

    @functools.wraps(ours)
    def call(*args: Any, **keywords: Any) -> Any:
        if has_device and "device" in keywords:
            check_device(keywords["device"])
        lent = False
        for a in (*args, *keywords.values()) if keywords else args:
            first = a[0] if (type(a) is list or type(a) is tuple) and a else a
            is_ours = isinstance(first, Handle) and (first._cell.shared or first._cell.borrowed)
            if is_ours or type(first) is np.ndarray:
                lent = lent or lends(a)
        for a in args:
            kind = type(a)
            if kind in _PLAIN or isinstance(a, Handle):
                continue
            if a is args[0] and kind not in _NUMPYS_TO_READ:
                if has_its_own(a, method):
                    return by_numpy(numpys, *args, **keywords)
                if (found := by_scipys(numpys, args, keywords)) is not NotImplemented:
                    return fresh(found)
            if not is_dispatched or ((kind is list or kind is tuple) and (not a or type(a[0]) in _PLAIN)):
                continue
            if _is_foreign(a):
                return _by_others(numpys, FUNCTIONS[numpys], args, keywords)
        if keywords:
            if keywords.get("like") is not None and not isinstance(keywords["like"], Handle):
                return by_numpy(numpys, *args, **keywords)
            if is_dispatched and any(map(_is_foreign, keywords.values())):
                return _by_others(numpys, FUNCTIONS[numpys], args, keywords)
        try:
            found = on_loan(ours, *args, **keywords) if lent else ours(*args, **keywords)
        except SubclassError:
            return by_numpy(numpys, *args, **keywords)
        except ValueError as error:
            args, keywords = with_elements(error, (args, keywords))
            return call(*args, **keywords)
        if type(found) in Late.numbers and (value := found._peek()) is not None:
            found = value[()]
        return OURS[type(found)](found) if type(found) in OURS else found  # an element of an array, say

    return call  # type: ignore[return-value]


_NUMPYS_TO_READ: frozenset[type] = frozenset({list, tuple, np.ndarray})
"""Classes of most that is no array of ours: NumPy asks none of them for a method."""
_DISPATCHED: type = type(np.sum)
"""NumPy's functions that ask `__array_function__`; others call `asarray` and the like from there."""


def _is_foreign(a: Any) -> bool:
    """Whether an argument, or one in a list of them, is an array of another library (NEP 18)."""
    if isinstance(a, list | tuple):
        if len(set(map(type, a))) == 1 and isinstance(a[0], Handle):
            return False
        leaves = bool(a) and type(a[0]) not in _PLAIN and not isinstance(a[0], list | tuple)
        return leaves and any(map(_is_foreign, filter(_is_leaf, a)))
    return hasattr(type(a), "__array_function__") and not isinstance(a, Handle | np.ndarray)


def _is_leaf(a: Any) -> bool:
    return not isinstance(a, list | tuple)


def _by_others(
    numpys: Callable[..., Any], ours: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """What a library whose array is among the arguments says that a function gives.

    It knows the function as NumPy's, or as ours where its program imports this package.
    """
    args, keywords = _plain(args), _plain(keywords)
    leaves: list[Any] = []
    _collect((args, keywords), leaves, object)
    known = {type(a): a for a in reversed(leaves) if hasattr(type(a), "__array_function__")}
    types = tuple(known)
    for a in sorted(filter(_is_foreign, known.values()), key=lambda a: -len(type(a).__mro__)):
        for function in (numpys, ours):
            found = a.__array_function__(function, types, args, keywords)
            if found is not NotImplemented:
                return found
    raise TypeError(
        f"no implementation found for 'numpy.{numpys.__name__}' on types that implement "
        f"__array_function__: {types}"
    )


def check_device(device: Any) -> None:
    """ValueError for a device of the array API standard's that is not the one there is."""
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


def _with_shortcut(
    ours: F, numpys: Callable[..., Any], whole: bool | Callable[[list[Any]], bool], asks: frozenset[str]
) -> F:
    """`ours`, but for small operands NumPy's function at once, unless a keyword is not NumPy's."""
    checked, quicker = _leaving_subclasses(ours, numpys), QUICKER.get(numpys, numpys)
    own, theirs = (frozenset(inspect.signature(f).parameters) for f in (ours, numpys))
    takes_out, beyond = "out" in own, own - theirs
    first = next(iter(inspect.signature(ours).parameters))
    joins = first in _JOINED

    @functools.wraps(ours)
    def call(*args: Any, **keywords: Any) -> Any:
        if joins and args and _is_line_of_objects(args[0]):
            args = list(args[0]), *args[1:]
        elif joins and first in keywords and _is_line_of_objects(keywords[first]):
            keywords[first] = list(keywords[first])
        if keywords and not beyond.isdisjoint(keywords):
            return checked(*args, **keywords)
        if takes_out and (len(args) > 2 or keywords.get("out") is not None):
            is_done = len(args) <= 2 and is_written(numpys, args, keywords, _known)
            return keywords["out"] if is_done else checked(*args, **keywords)
        given = (*args, *keywords.values()) if keywords else args
        known = door.few_values(given, _PLAIN_OR_NUMERIC)
        if known is None:
            known = []
            nbytes = _known(given, known)
            if nbytes is None:
                return checked(*args, **keywords)
            if not door.is_small(nbytes) and not any_stays(known):
                fits = whole and door.is_left_here(nbytes, work_of(known))
                if not (whole(known) if fits and callable(whole) else fits):
                    return checked(*args, **keywords)
        if not door.fit_as_indices(known) and not any_stays(known):
            return checked(*args, **keywords)
        if whole and takes_long(known):
            from spartan_ng.interrupts import is_interruptible, run_interruptibly

            if is_interruptible():
                return run_interruptibly(lambda: _answer(quicker, given, known, keywords))
        return _answer(quicker, given, known, keywords)

    most = 2 if takes_out else sys.maxsize
    return in_front(call, numpys, (theirs | asks) - _ELSEWHERE, most, AS_GIVEN)  # type: ignore[return-value]


def _is_line_of_objects(a: Any) -> bool:
    """Whether it may hold arrays of ours, which NumPy would ask us to join."""
    return type(a) is Late.ndarray and a.ndim == 1 and a.dtype.hasobject


_JOINED = frozenset({"arrays", "tup"})
"""What the parameter is called of functions that join several arrays."""
_ELSEWHERE = frozenset({"device", "like", "out"})
"""Keywords that say where the result goes, or whose it is."""


def _for_few(called: Callable[..., Any], numpys: Callable[..., Any], most: int) -> Callable[..., Any]:
    """`called`, but NumPy's function at once where a call has few operands, and no lists among them."""

    @functools.wraps(called)
    def call(*args: Any, **keywords: Any) -> Any:
        if len(args) <= most and (not keywords or ASKING.issuperset(keywords)):
            given = (*args, *keywords.values()) if keywords else args
            known = door.few_values(given, _PLAIN_OR_NUMERIC)
            if known is not None:
                try:
                    if keywords:
                        return _answer(numpys, given, known, keywords)
                    found = numpys(*known)
                except ValueError:  # ours name the shapes
                    with alone():
                        return called(*args, **keywords)
                if type(found) in OURS:
                    return OURS[type(found)](found)
                # By this name and as an argument: nobody else knows it.
                if type(found) is np.ndarray and sys.getrefcount(found) == 2:
                    return fresh(found)
                return operand_or_fresh(found, given, known)
        return called(*args, **keywords)

    return in_front(call, numpys, ASKING, most, AS_BROADCAST)


_PLAIN: frozenset[type] = PLAIN | {type(None)}
_PLAIN_OR_NUMERIC: frozenset[type] = _PLAIN | NUMERIC


def _known(arguments: Iterable[Any], known: list[Any]) -> int | None:
    """Append the NumPy forms of arguments to `known`; their bytes, or None where one has no such form."""
    nbytes: int = 0
    for a in arguments:
        kind = type(a)
        if kind in _PLAIN:
            pass
        elif isinstance(a, Handle):
            a = a._peek()
            if a is None:
                return None
            nbytes += getattr(a, "nbytes", 0)
        elif isinstance(a, list | tuple):
            if (not a or type(a[0]) is not Late.ndarray) and are_of(a, _PLAIN_OR_NUMERIC, True):
                known.append(a)
                continue
            parts: list[Any] = []
            more = _known(a, parts)
            if more is None:
                return None
            nbytes += more
            a = tuple(parts) if isinstance(a, tuple) else parts
        elif is_sparse(a) or is_array_like(a):
            return None
        elif not isinstance(a, type):
            nbytes += getattr(a, "nbytes", 0)
        known.append(a)
    return nbytes


def _answer(
    numpys: Callable[..., Any], given: tuple[Any, ...], known: list[Any], keywords: dict[str, Any]
) -> Any:
    """What a NumPy function gives for the values that are `known` of the `given` arguments, those of the
    keywords last."""
    if keywords:
        n = len(known) - len(keywords)
        found = numpys(*known[:n], **dict(zip(keywords, known[n:], strict=True)))
    else:
        found = numpys(*known)
    kind = type(found)
    if kind in OURS:
        return OURS[kind](found)
    if kind is np.ndarray and sys.getrefcount(found) == 2:
        return fresh(found)
    return operand_or_fresh(found, given, known)


def operand_or_fresh(result: Any, given: tuple[Any, ...], known: list[Any]) -> Any:
    """NumPy's results; an operand that is among them stays the one array that it is."""
    if isinstance(result, list | tuple):
        parts = [operand_or_fresh(r, given, known) for r in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    for argument, value in zip(given, known, strict=True):
        if value is result:
            return argument
    return fresh(result, [a for a in known if is_subclass(a)])


def fresh(result: Any, own: Sequence[Any] = ()) -> Any:
    """NumPy's results as arrays with memory of their own; what shows that of an array of the program's `own`
    classes has it together with that array, as NumPy's would: whoever writes to one means both."""
    if type(result) is np.ndarray and result.base is None and result.flags.writeable:
        return wrap(result)
    if isinstance(result, np.ndarray):
        if is_subclass(result):
            return result
        base = result.base
        if base is None:
            return wrap(result.copy())
        if own and any(np.may_share_memory(result, a) for a in own):
            return over_buffer(result)
        # The view of a whole array that nobody else knows: this name, the view, and the argument.
        whole = base.__class__ is np.ndarray and base.base is None and base.nbytes == result.nbytes > 0
        known = not whole or sys.getrefcount(base) > 3 or not result.flags.writeable
        return wrap(result.copy("K") if known else result)
    if isinstance(result, np.generic):
        return wrap(result)
    if isinstance(result, tuple | list):
        parts = [fresh(r, own) for r in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def by_numpy(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Run a NumPy function on gathered operands; what it gives is an array of its own, or our `out`."""
    written = 0 if getattr(function, "__name__", "") == "at" else _WRITTEN.get(function)
    if written is not None and len(args) > written:
        args = (*args[:written], to_write(args[written]), *args[written + 1 :])
    found: list[Handle] = []
    _collect((args, keywords), found)
    values(*found)
    outs = keywords.get("out")
    if not any(isinstance(o, Handle) for o in (outs if isinstance(outs, tuple) else (outs,))):
        try:
            result = function(*_plain(list(args)), **_plain(keywords))
        except ValueError as error:
            args, keywords = with_elements(error, (args, keywords))
            result = function(*args, **keywords)
        # An operand that is given back stays the one array that it is.
        same = next((h for h in found if h._peek() is result), None) if type(result) is np.ndarray else None
        if same is not None:
            return same
        theirs: list[Any] = []
        _collect((args, keywords), theirs, np.ndarray)
        return fresh(result, [a for a in theirs if is_subclass(a)])
    several = outs if isinstance(outs, tuple) else (outs,)
    copies = tuple(o.compute() if isinstance(o, Handle) else o for o in several)  # type: ignore[attr-defined]
    given = {**_plain(keywords), "out": copies if isinstance(outs, tuple) else copies[0]}
    result = function(*_plain(list(args)), **given)
    for ours, theirs in zip(several, copies, strict=True):
        if isinstance(ours, Handle):
            ours[...] = theirs  # type: ignore[index]
    results = result if isinstance(result, tuple) else (result,)
    named = [next((o for o, w in zip(several, copies, strict=True) if w is r), None) for r in results]
    shown = tuple(fresh(r) if o is None else o for o, r in zip(named, results, strict=True))
    return shown if isinstance(result, tuple) else shown[0]


def gathered(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Run a NumPy function on the driver, and say so once, if they are not small."""
    given, few = (*args, *keywords.values()), None
    if "out" not in keywords and function not in _WRITTEN:
        few = door.few_values(given, _PLAIN_OR_NUMERIC)
    if few is not None:
        return _answer(function, given, few, keywords)
    name = f"{getattr(function, '__module__', None) or 'numpy'}.{getattr(function, '__name__', function)}"
    known: list[Any] = []
    nbytes = _known(given, known) if door.is_open() else None
    small = nbytes is not None and (door.is_small(nbytes) or any_stays(known))
    if name not in _warned and not small:
        _warned.add(name)
        warn_user(
            f"{name} is not distributed: its operands are gathered and NumPy runs it on the driver",
            FallbackWarning,
        )
    return by_numpy(function, *args, **keywords)


_WRITTEN = dict.fromkeys((np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis), 0)
"""Which operand functions of NumPy's write into, as a `ufunc.at` does, or let a function write to."""
_WRITTEN[np.apply_along_axis] = 2


def _collect(a: Any, found: list[Any], wanted: type = Handle) -> None:
    """Arrays (or what else is wanted) anywhere in nested arguments."""
    if isinstance(a, list | tuple | dict):
        for i in a.values() if isinstance(a, dict) else a:
            _collect(i, found, wanted)
    elif isinstance(a, wanted):
        found.append(a)


def _plain(a: Any) -> Any:
    """Nested arguments with NumPy values in place of arrays."""
    if isinstance(a, Handle):
        return a._force()
    if isinstance(a, list):
        return [_plain(i) for i in a]
    if isinstance(a, tuple):
        return tuple(_plain(i) for i in a)
    if isinstance(a, dict):
        return {k: _plain(v) for k, v in a.items()}
    return a


__all__ = ["FallbackWarning"]
