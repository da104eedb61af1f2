"""Elements and parts of arrays, read and written without a detour where they are on the driver."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from spartan_ng.api.base import assigning, indexing, reductions
from spartan_ng.api.core import door
from spartan_ng.api.core.chains import CHAIN, bounded
from spartan_ng.api.core.conversion import forced, numpys
from spartan_ng.api.core.dispatch import fresh
from spartan_ng.api.core.door import few_values
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBERS, PYTHONS
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.members import kept_by_mask
from spartan_ng.api.core.numbers import NUMERIC
from spartan_ng.api.core.quick import put, selected, told_by
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.ndarray.copies import Copies
from spartan_ng.memory import copied_bytes

NUMPYS_INTEGERS = frozenset(t for t in NUMERIC if issubclass(t, np.integer))
"""Classes of NumPy's integers, and ours."""
_QUICK = frozenset({int, tuple, slice}) | NUMPYS_INTEGERS
"""Classes of keys that NumPy takes as they are."""
_QUICK_TO_WRITE = _QUICK | NUMERIC | {type(Ellipsis), np.ndarray}
_SIMPLE = frozenset({int, slice, type(None), type(Ellipsis)})
_LISTED: frozenset[type] = frozenset({list, range})
_IN_KEYS = _SIMPLE | _LISTED
_INTEGERS = NUMPYS_INTEGERS | {int}
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
    nbytes = value.nbytes
    if not door.is_small(nbytes) or not value.ndim:
        return False
    return index.dtype.kind == "b" or (len(value) > 0 and door.is_small(index.size * (nbytes // len(value))))


def _has_room(value: Any, key: tuple[Any, ...], lists: Sequence[list[Any]]) -> bool:
    """Whether memory has room for what a key with short lists in it selects, or one, be it all they can."""
    if door.is_small(value.nbytes):
        return True
    one = slice(0, 1)
    try:
        line = value[tuple(one if type(k) is list else k for k in key) or one]
    except (IndexError, TypeError, ValueError):  # ours say what is wrong
        return False
    return bool(prod(map(len, lists)) * line.nbytes <= copied_bytes())


def _with_arrays(key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A key of small arrays with axes, short lists, ranges, numbers and slices as NumPy takes it; None for
    all others."""
    few = few_values(key, _IN_KEYS)
    if few is None or not all(k.ndim for k in few if k.__class__ is np.ndarray):
        return None
    if not _LISTED.isdisjoint(map(type, few)):
        few = [_as_places(k) if k.__class__ in _LISTED else k for k in few]
        if not _LISTED.isdisjoint(map(type, few)):
            return None
    return tuple(few)


def _integer(part: Any) -> Any:
    """An integer of NumPy's or ours in a key as Python's; any other part as it is."""
    return int(part) if type(part) in NUMPYS_INTEGERS else part


def _is_copied(nbytes: int) -> bool:
    """Whether memory has room for a copy of so many bytes."""
    return nbytes <= copied_bytes()


def _is_short(key: Any) -> bool:
    """Whether a part of a key is a list of a few integers, of which NumPy makes a copy."""
    return (
        key.__class__ is list and len(key) > 0 and door.is_short(key) and _INTEGERS.issuperset(map(type, key))
    )


def _as_places(part: Any) -> Any:
    """A short list of integers, or a range of few, in a key as the array that NumPy makes of it, which asks
    ranges for one number after the other; longer ones as they are."""
    if part.__class__ is range:
        few = door.is_counted(part.start, part.stop, part.step)
        return np.arange(part.start, part.stop, part.step) if few else part
    return np.array(part) if _is_short(part) else part


class Elements(Copies):
    """Arrays whose elements are read and written."""

    __slots__ = ()

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
            return iter(self._force()) if self._cell.frozen else self._numbers(shape[0])
        return self._parts(shape[0])

    def _numbers(self, n: int) -> Iterator[Any]:
        """The elements of a line, each as it is when asked for: a loop may write to what it goes over."""
        cell, taken = self._cell, 0
        while taken < n:
            found = self._force()
            state, node = cell.value, cell._node
            for element in found[taken:] if taken else found:
                taken += 1
                yield element
                if cell.value is not state or cell._node is not node:
                    break

    def _parts(self, n: int) -> Iterator[Any]:
        """What the first axis has, one after the other."""
        cell, views, shown = self._cell, self._views, self._peek()
        value = cell.value
        quick = value is not None and shown.ndim > 1
        for i in range(n):
            # Where it is not on the driver, or no longer what it was, it is asked for each.
            as_before = quick and cell.value is value and self._views is views
            yield self._seen(i, shown[i]) if as_before else self[i]

    def __contains__(self, item: Any) -> bool:
        return bool(reductions.any(self == item))

    @told_by(np.ndarray.item, 12)
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
        return found.item() if isinstance(found, Elements | np.generic) else found

    def __getitem__(self, key: Any) -> Any:
        """Elements and rows of what is on the driver without a detour; everything else by `indexing`.

        Loops over elements are in here most of their time: the questions that they need come first.
        """
        cell = self._cell
        shown = value = cell.value
        if (views := self._views) and value is not None:
            shown = self._shown if self._state is value else None
        kind = type(key)
        if kind is tuple:
            if len(key) == 2:
                first, last = key
                plain = type(first) in _SIMPLE and type(last) in _SIMPLE
            else:
                plain = _SIMPLE.issuperset(map(type, key))
            if not plain:
                if type(key[0]) is Late.ndarray or type(key[-1]) is Late.ndarray:
                    return self._by_other_keys(key, kind, shown)
                return self._by_mixed_keys(key, shown)
        elif kind is not int and kind is not slice:
            if kind in NUMPYS_INTEGERS:
                key = _integer(key)
            if type(key) is not int:
                return self._by_other_keys(key, kind, shown)
            kind = int
        try:
            element = shown[key]
        except (IndexError, TypeError, ValueError):  # there is none, or no value
            return indexing.getitem(self, key)
        found = type(element)
        if found is not _array:
            if found not in NUMERIC:
                return indexing.getitem(self, key)
            return element
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
        view = _new(Late.ndarray)
        view._cell = cell
        view._views = views
        view._state = value
        view._shown = element
        return view

    def _by_mixed_keys(self, key: tuple[Any, ...], shown: Any) -> Any:
        """What a tuple with arrays, lists or our numbers in it selects."""
        numbers = tuple(map(_integer, key))
        if any(map(operator.is_not, numbers, key)):
            key = numbers
            if _SIMPLE.issuperset(map(type, key)):
                return self[key]
        if shown is not None and door.is_open() and not self._cell.frozen:
            lists = [k for k in key if type(k) not in _SIMPLE]
            if all(map(_is_short, lists)) and _has_room(shown, key, lists):
                try:
                    return wrap(shown[key])
                except (IndexError, TypeError, ValueError):  # ours say what is wrong
                    pass
        return indexing.getitem(self, key)

    def _by_other_keys(self, key: Any, kind: type, shown: Any) -> Any:
        """What keys select that are no integers, slices or tuples, or of what is not on the driver."""
        if kind is Late.ndarray and shown is not None:
            found = kept_by_mask(shown, key)
            if found is not None:
                return wrap(found)
            index = key._peek()
            if index is not None and index.ndim and _stays_small(shown, index):
                try:
                    return wrap(selected(shown, index))
                except IndexError:  # ours name the shapes
                    pass
        elif kind is tuple and shown is not None:
            index = _with_arrays(key)
            if index is not None and indexing.selects_little(index, shown, _is_copied):
                try:
                    return fresh(shown[index])
                except IndexError:
                    pass
        elif shown is not None and door.is_open() and (_is_short(key) or kind is range):
            try:
                if _has_room(shown, (), (key,)):
                    return wrap(shown[_as_places(key) if kind is range else key])
            except IndexError:
                pass
        return indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes into what is on the driver without a detour; everything else by `indexing`."""
        cell = self._cell
        cell.tests = 0
        target = cell.value if cell.settled and cell._node is None else self._open()
        if target is not None and self._views:
            target = self._shown if self._state is cell.value else None
        if target is not None:
            kind, of = type(key), type(value)
            if of in NUMBERS:
                known = value
            elif of is Late.ndarray:
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
                elif (
                    kind is tuple and key and (type(key[0]) is Late.ndarray or type(key[-1]) is Late.ndarray)
                ):
                    plain = _with_arrays(key)
                    takes = plain is not None
                if takes:
                    try:
                        put(target, plain, known)
                        return
                    except (ValueError, IndexError):  # read-only memory is copied; our errors name the shapes
                        pass
        assigning.setitem(self, key, value)

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
