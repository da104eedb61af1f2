"""Distributions with NumPy's names, arguments and numbers; in parallel where nobody asked for a stream."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import elements, shape_tuple
from spartan_ng.api.core.quick import drawn_by
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.drawing.bit_generators import OfNumPys
from spartan_ng.api.drawing.streams import check_one_go, long_stream, may_be_long, numbers_ahead, through
from spartan_ng.ops.walks import set_state

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


class _CaughtUp:
    """NumPy's generator of ours, while it stands before numbers that nobody has drawn yet: it walks behind
    them when somebody asks for it, and takes its place."""

    def __get__(self, drawing: Any, owner: Any = None) -> Any:
        if drawing is None:
            return self
        with _catching_up:
            if drawing._before is not None:  # nobody else was faster
                generator, walk, count = drawing._before
                set_state(generator, through(walk, count))
                drawing._numpy, drawing._before = generator, None
        if "_numpy" not in vars(drawing):
            raise AttributeError("a generator that has not begun")
        return drawing._numpy


_catching_up = threading.RLock()


class Drawing(metaclass=OfNumPys):
    """A generator of numbers over one of NumPy's, `_numpy`."""

    _numpy: Any = _CaughtUp()
    _before: Any = None
    """Where `_numpy` is not there: it, and the walk that it has to make, and through how many numbers."""

    @property
    def _bit_generator(self) -> Any:
        """NumPy's bit generator, which stands behind all that has been drawn."""
        return self._numpy._bit_generator

    def _long(self, method: str, size: Any, args: tuple[Any, ...], named: dict[str, Any]) -> ndarray | None:
        """Numbers of NumPy's that memory has no room for; None where there is another way.

        Where somebody else may draw from the same bit generator, it goes on behind them at once.
        """
        alone = _is_alone(self)
        generator = self._numpy
        found = long_stream(generator, method, size, args, named)
        if found is None:
            return None
        node, walk = found
        if alone:
            self._before = generator, walk, node.size
            del self._numpy
        else:
            set_state(generator, through(walk, node.size))
        return wrap_node(node)

    def _begin_anew(self) -> Any:
        """NumPy's generator, which is about to be set to another state, wherever it is."""
        with _catching_up:
            if self._before is not None:
                (self._numpy, *_), self._before = self._before, None
        return self._numpy

    def _in_parallel(self, size: Any, more: tuple[int, ...] = ()) -> bool:
        """Whether nobody asked for a stream, and the numbers are many."""
        raise NotImplementedError

    def _apart(self, name: str, given: dict[str, Any]) -> ndarray | None:
        """Numbers of a distribution in no stream, by its arguments' names; None where there must be one."""
        raise NotImplementedError


_OWN = 3, 4
"""References to a generator of NumPy's, and to its bit generator, where nobody else has them: those of ours,
and of `_is_alone` while it counts."""


def _is_alone(drawing: Drawing) -> bool:
    """Whether nobody else has its generator's bit generator."""
    generator = drawing._numpy
    bits = generator._bit_generator
    return (sys.getrefcount(generator), sys.getrefcount(bits)) == _OWN


signature_of = cache(inspect.signature)
"""What is asked when it is needed first: of all methods it takes longer than to import them."""


def drawn(numpys: Callable[..., Any]) -> Callable[..., ndarray]:
    """The method that draws as this one of NumPy's."""
    name, code = numpys.__name__, numpys.__code__
    names = code.co_varnames[: code.co_argcount]
    place = names.index("size") - 1

    def draw(self: Any, *args: Any, **keywords: Any) -> ndarray:
        size = args[place] if len(args) > place else keywords.get("size")
        if door.are_few(size, *args[:place], *(v for k, v in keywords.items() if k != "size")):
            return wrap(numpys(self._numpy, *args, **keywords))
        if size is not None and self._in_parallel(size):
            bound = signature_of(numpys).bind(self, *args, **keywords)
            bound.apply_defaults()
            _, *given = bound.arguments.items()
            found = self._apart(name, dict(given))
            if found is not None:
                return found  # type: ignore[no-any-return]
        plain = [elements(a) for a in args]
        named = {k: elements(v) for k, v in keywords.items()}
        if size is not None and may_be_long(size):
            options = dict(signature_of(numpys).bind(None, *plain, **named).arguments)
            del options["self"], options["size"]
            long = self._long(name, size, (), options)
            if long is not None:
                return long  # type: ignore[no-any-return]
            check_one_go(name, shape_tuple(size))
        if size is not None:
            numbers_ahead(size)
        return wrap(numpys(self._numpy, *plain, **named))  # one number is Python's, as NumPy gives it

    draw.__name__, draw.__doc__ = name, numpys.__doc__
    draw.__wrapped__ = numpys  # type: ignore[attr-defined]  # whose signature it has
    return drawn_by(numpys, place + 1, *names[1:])(draw)
