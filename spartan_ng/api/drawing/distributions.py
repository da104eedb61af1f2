"""Distributions with NumPy's names, arguments and numbers; in parallel where nobody asked for a stream."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import elements
from spartan_ng.api.core.quick import drawn_by
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.drawing.bit_generators import OfNumPys
from spartan_ng.api.drawing.streams import long_stream, may_be_long, numbers_ahead

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


class Drawing(metaclass=OfNumPys):
    """A generator of numbers over one of NumPy's, `_numpy`."""

    def _in_parallel(self, size: Any, more: tuple[int, ...] = ()) -> bool:
        """Whether nobody asked for a stream, and the numbers are many."""
        raise NotImplementedError

    def _apart(self, name: str, given: dict[str, Any]) -> ndarray | None:
        """Numbers of a distribution in no stream, by its arguments' names; None where there must be one."""
        raise NotImplementedError


def drawn(numpys: Callable[..., Any]) -> Callable[..., ndarray]:
    """The method that draws as this one of NumPy's."""
    name, signature = numpys.__name__, inspect.signature(numpys)
    names = [*signature.parameters]
    place = names.index("size") - 1

    def draw(self: Any, *args: Any, **keywords: Any) -> ndarray:
        size = args[place] if len(args) > place else keywords.get("size")
        if door.are_few(size, *args[:place], *(v for k, v in keywords.items() if k != "size")):
            return wrap(numpys(self._numpy, *args, **keywords))
        if size is not None and self._in_parallel(size):
            bound = signature.bind(self, *args, **keywords)
            bound.apply_defaults()
            _, *given = bound.arguments.items()
            found = self._apart(name, dict(given))
            if found is not None:
                return found  # type: ignore[no-any-return]
        plain = [elements(a) for a in args]
        named = {k: elements(v) for k, v in keywords.items()}
        if size is not None:
            numbers_ahead(size)
        if size is not None and may_be_long(size):
            options = dict(signature.bind(self._numpy, *plain, **named).arguments)
            source = options.pop("self")
            del options["size"]
            if all(np.ndim(v) == 0 for v in options.values()):
                found = long_stream(lambda n: numpys(source, **options, size=n), size)
                if found is not None:
                    return wrap(found)
        return wrap(numpys(self._numpy, *plain, **named))  # one number is Python's, as NumPy gives it

    draw.__name__, draw.__doc__ = name, numpys.__doc__
    draw.__signature__ = signature  # type: ignore[attr-defined]
    return drawn_by(numpys, place + 1, *names[1:])(draw)
