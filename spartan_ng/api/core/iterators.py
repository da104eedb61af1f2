"""NumPy's iterators over the memory of our arrays: `nditer` and `nested_iters`.

What they give are NumPy's arrays, over the memory itself where an operand is written to. An iterator's
operands are those that it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Self

import numpy as np

from spartan_ng.api.core.conversion import elements, over_buffer
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.wrapping import make

_WRITES = frozenset({"readwrite", "writeonly"})


def _memory(op: Any, op_flags: Any) -> Any:
    """NumPy's forms of one operand or several; memory that others write to for those which are written to."""
    flags = list(op_flags or ())
    if not isinstance(op, list | tuple):
        flat = flags[0] if len(flags) == 1 and not isinstance(flags[0], str) else flags
        return _values(op, not _WRITES.isdisjoint(flat))
    if not flags or isinstance(flags[0], str):
        return [_values(o, not _WRITES.isdisjoint(flags)) for o in op]
    if len(flags) != len(op):  # NumPy's error
        return [_values(o, False) for o in op]
    return [_values(o, not _WRITES.isdisjoint(f)) for o, f in zip(op, flags, strict=True)]


def _values(operand: Any, written: bool) -> Any:
    if not isinstance(operand, Handle):
        return elements(operand)
    if operand._cell.frozen:
        return operand._force()
    written = written and operand.flags.writeable  # type: ignore[attr-defined]
    if not written and operand._peek() is None and not operand._layout().flags.c_contiguous:
        make(operand._cell)._force()  # the order of elements follows the memory
    memory = operand._lent() if written else operand._force().view()
    memory.flags.writeable = written
    return memory


def _as_list(op: Any) -> list[Any]:
    return list(op) if isinstance(op, list | tuple) else [op]


def _of_iterator(name: str) -> Any:
    """An attribute of NumPy's iterator, which loops read at each element, without a frame of Python's."""
    return property(
        attrgetter(f"_iterator.{name}"),
        lambda self, value: setattr(self._iterator, name, value),
        lambda self: delattr(self._iterator, name),
    )


class nditer:
    """An iterator over one array or several together; NumPy's, with all its arguments and attributes."""

    __slots__ = ("_given", "_iterator")

    def __init__(
        self,
        op: Any,
        flags: Any = None,
        op_flags: Any = None,
        op_dtypes: Any = None,
        order: Any = "K",
        casting: Any = "safe",
        op_axes: Any = None,
        itershape: Any = None,
        buffersize: Any = 0,
    ) -> None:
        memory = _memory(op, op_flags)
        more = {} if itershape is None else {"itershape": itershape}
        made = np.nditer(
            memory, flags, op_flags, op_dtypes, order, casting, op_axes, buffersize=buffersize, **more
        )
        self._begin(made, op, memory)

    def _begin(self, iterator: Any, op: Any, memory: Any) -> Self:
        object.__setattr__(self, "_iterator", iterator)
        object.__setattr__(self, "_given", (memory, list(op) if isinstance(op, list | tuple) else op))
        return self

    @property
    def operands(self) -> tuple[Any, ...]:
        """The arrays that are iterated over: those given, or made for the iterator."""
        pairs = zip(*(_as_list(x) for x in self._given), strict=True)
        given = {id(memory): ours for memory, ours in pairs if isinstance(ours, Handle)}
        return tuple(given[id(o)] if id(o) in given else over_buffer(o) for o in self._iterator.operands)

    finished = _of_iterator("finished")
    index = _of_iterator("index")
    iterindex = _of_iterator("iterindex")
    iternext = _of_iterator("iternext")
    multi_index = _of_iterator("multi_index")
    value = _of_iterator("value")

    def copy(self, /) -> nditer:
        """An iterator at the same place."""
        made = object.__new__(nditer)
        object.__setattr__(made, "_iterator", self._iterator.copy())
        object.__setattr__(made, "_given", self._given)
        return made

    __copy__ = copy

    def __iter__(self) -> Any:
        return iter(self._iterator)

    def __next__(self) -> Any:
        return next(self._iterator)

    def __enter__(self) -> Self:
        self._iterator.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        return self._iterator.__exit__(*error)

    def __len__(self) -> int:
        return len(self._iterator)

    def __getitem__(self, key: Any) -> Any:
        return self._iterator[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._iterator[key] = value._force() if isinstance(value, Handle) else value

    def __delitem__(self, key: Any) -> None:
        del self._iterator[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._iterator, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._iterator, name)


def nested_iters(
    op: Any, axes: Sequence[Any], flags: Any = None, op_flags: Any = None, *args: Any, **keywords: Any
) -> tuple[nditer, ...]:
    """Iterators over different axes of one array or several, each nested in the one before."""
    memory = _memory(op, op_flags)
    made = np.nested_iters(memory, axes, flags, op_flags, *args, **keywords)
    return tuple(object.__new__(nditer)._begin(i, op, memory) for i in made)


__all__ = ["nditer", "nested_iters"]
