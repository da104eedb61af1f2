"""Generalized universal functions: of sub-arrays, with the attributes and methods of NumPy's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.api.core.conversion import is_override
from spartan_ng.api.core.dispatch import by_numpy
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.operands import small_values
from spartan_ng.api.core.quick import IS_COMPILED
from spartan_ng.api.elementwise.universal import ufunc


class gufunc(ufunc):
    """A function with NumPy's object for it, whose folds and scans are not defined.

    Parameters
    ----------
    numpys : NumPy's object
    function : takes one or two operands, and `out` and other keywords
    of_two : what does the same for two arrays and nothing else, with a shortcut for small ones
    """

    def __init__(self, numpys: Any, function: Callable[..., Any], of_two: Callable[..., Any] | None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.of_two = of_two or function
        self.np = numpys
        self.nin, self.nout, self.nargs = numpys.nin, numpys.nout, numpys.nargs
        self.types, self.ntypes = numpys.types, numpys.ntypes
        self.identity, self.signature = numpys.identity, numpys.signature
        self.__signature__ = numpys.__signature__

    def _called(self, *args: Any, **keywords: Any) -> Any:
        """Apply to operands, with NumPy's keywords."""
        if not keywords and len(args) == 2 and type(args[0]) is type(args[1]) is Late.ndarray:
            return self.of_two(*args)
        if len(args) == self.nargs and "out" in keywords:
            raise TypeError("cannot specify 'out' as both a positional and keyword argument")
        out = keywords.get("out")
        if isinstance(out, tuple):
            (out,) = out
            keywords["out"] = out
        if any(map(is_override, (*args, out))):
            return self.np(*args, **keywords)
        if (keywords.keys() - {"out"} and small_values(args, broadcast=False) is not None) or any(
            isinstance(a, Handle | np.ndarray) and a.dtype.hasobject for a in args
        ):
            return by_numpy(self.np, *args, **keywords)
        self._check_axes(args, keywords)
        return self.function(*args, **keywords)

    if not IS_COMPILED:
        __call__ = _called

    def _check_axes(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """NumPy's errors for axes, asked of arrays of one element."""
        asked = {k: keywords[k] for k in ("axes", "axis", "keepdims") if k in keywords}
        if asked:
            self.np(*(np.ones((1,) * np.ndim(a)) for a in args[: self.nin]), **asked)

    def _binary(self, method: str) -> None:
        raise RuntimeError(f"{method.capitalize()} not defined on ufunc with signature")

    def outer(self, A: Any, B: Any, **keywords: Any) -> Any:
        """Refused, as by NumPy."""
        raise TypeError("method outer is not allowed in ufunc with non-trivial signature")

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Refused, as by NumPy."""
        raise TypeError("only functions of single elements update in place")


def generalized(
    numpys: Any, of_two: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], gufunc]:
    """The decorator that makes of a function one of these."""
    return lambda function: gufunc(numpys, function, of_two)


__all__ = ["gufunc"]
