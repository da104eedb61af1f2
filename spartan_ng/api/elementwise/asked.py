"""What a call of a universal function asks for: others first, dtypes, a signature, operands that fit.

Objects that say what an operation on them means are asked first, as NumPy does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from spartan_ng.api.core.conversion import (
    as_handle,
    is_override,
    wraps,
)
from spartan_ng.api.core.dispatch import by_numpy
from spartan_ng.api.core.door import few_values
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.kinds import NUMBERS, as_dtype, is_foreign, is_subclass, stays
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.operands import WEAK, common_mask, kind_of, left_out, mask_of, operand, wrapped_by
from spartan_ng.api.core.telling import told
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.elementwise.universal import ufunc


@functools.lru_cache(maxsize=4096)
def dtypes_of(
    name: str, kinds: tuple[Any, ...], casting: str, signature: tuple[Any, ...] | None
) -> tuple[np.dtype[Any], ...]:
    """The dtypes of operands and results that NumPy finds for these kinds of operands."""
    return build.elementwise_dtypes(name, *kinds, casting=casting, signature=signature)


@functools.lru_cache(maxsize=1024)
def have_to_stay(kinds: tuple[Any, ...]) -> bool:
    """Whether operands of these kinds have to stay on the driver."""
    return any(isinstance(k, np.dtype) and stays(k) for k in kinds)


def check_exponents(operands: list[Any], kinds: tuple[Any, ...], casting: str, asked: Asked | None) -> None:
    """NumPy's ValueError for integers to negative powers, where those are here to be looked at."""
    base, exponents = operands
    known = exponents._peek() if isinstance(exponents, Handle) else exponents
    dtypes = dtypes_of("power", kinds, casting, None if asked is None else asked.dtypes)
    if known is None or dtypes[-1].kind != "i":
        return
    if kinds[0] in WEAK:
        weak_value(base, dtypes[0])  # whether the number fits comes before what its power is
    if np.less(known, 0).any() and as_handle(base).size:
        build.broadcast_shapes("power", as_handle(base).shape, np.shape(known))  # shapes before elements
        raise ValueError("Integers to negative integer powers are not allowed.")


def weak_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python scalar as a 0-d array of the resolved dtype; OverflowError where it does not fit."""
    return np.asarray(dtype.type(value) if dtype.kind in "iufcb" else value, dtype)


class Asked(Struct, frozen=True):
    """The dtypes that a call asks for, of operands and results (None where it does not), and its keyword."""

    dtypes: tuple[Any, ...]
    keyword: str
    value: Any

    def of_texts_or_objects(self) -> bool:
        """Whether one of the dtypes is of what NumPy alone works on, or is converted to it."""
        return any(d is not None and (d.kind in "SU" or stays(d)) for d in self.dtypes)

    def signature(self) -> tuple[Any, ...]:
        """The dtypes, and the classes of those that NumPy takes as classes only."""
        return tuple(type(d) if d is not None and is_foreign(d) else d for d in self.dtypes)


def keywords_of(asked: Asked | None) -> dict[str, Any]:
    """What was asked for as the keyword that asked."""
    return {} if asked is None else {asked.keyword: asked.value}


def _fraction(x: Any) -> Any:
    return np.modf(x)[0]


def _integral(x: Any) -> Any:
    return np.modf(x)[1]


def _mantissa(x: Any) -> Any:
    return np.frexp(x)[0]


def _exponent(x: Any) -> Any:
    return np.frexp(x)[1]


HALVES = {"modf": (_fraction, _integral), "frexp": (_mantissa, _exponent)}


def asked_of(fn: ufunc, dtype: Any, signature: Any, sig: Any) -> Asked | None:
    """What `dtype=` or `signature=` ask for; TypeError for a signature of another form."""
    if sig is not None:
        if signature is not None:
            raise TypeError("cannot specify both 'sig' and 'signature'")
        signature = sig
    if signature is None:
        if dtype is None:
            return None
        dtype = as_dtype(dtype)
        dtypes = (None,) * fn.nin + (dtype,) * fn.nout
        return Asked(dtypes, "dtype", type(dtype) if is_foreign(dtype) else dtype)
    if dtype is not None:
        raise TypeError("cannot specify both 'signature' and 'dtype'")
    if isinstance(signature, bytes):
        signature = signature.decode()
    if not isinstance(signature, str | tuple):
        raise TypeError(f"the signature object to ufunc must be a string or a tuple, not {signature!r}")
    parts = tuple(signature.replace("->", "")) if isinstance(signature, str) else signature
    try:
        dtypes = tuple(None if p is None else as_dtype(p) for p in parts)
    except TypeError:
        dtypes = ()
    if len(dtypes) != fn.nargs:
        fn.np(*(0,) * fn.nin, signature=signature)  # NumPy's error
        raise TypeError(f"{fn.__name__}: signature {signature!r} does not name {fn.nargs} dtypes")
    return Asked(dtypes, "signature", signature)


def chosen(function: np.ufunc, operands: tuple[Any, ...], where: Any, **keywords: Any) -> Any:
    """NumPy's function of elements that a mask chooses: no others raise or warn, and have zero, or None."""
    weak = WEAK if any(type(o) not in WEAK for o in operands) else ()
    found = function(*(o if type(o) in weak else np.ravel(o)[:0] for o in operands), **keywords)
    shape = np.broadcast_shapes(*map(np.shape, (*operands, where)))
    outs = tuple(left_out(shape, f.dtype) for f in (found if type(found) is tuple else (found,)))
    found = function(*operands, out=outs, where=where, **keywords)
    if shape:
        return found
    return outs[0][()] if len(outs) == 1 else tuple(o[()] for o in outs)


@functools.lru_cache(maxsize=4096)
def harmless(name: str, kinds: tuple[Any, ...]) -> int | None:
    """An element, of 1, 0 and 2, that raises nothing in place of every array; None if there is none."""
    for one in (1, 0, 2):
        operands = [one if k in WEAK else np.ones((), k) * one for k in kinds]
        try:
            with np.errstate(all="raise"):
                getattr(np, name)(*operands)
        except (FloatingPointError, TypeError):
            continue
        return one
    return None


def _quickly(function: ufunc, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What NumPy's method gives for a small array of numbers, or a list of such ones, and indices and numbers
    beside it; None where there is more to ask."""
    first, count = args[0], 1
    if type(first) is list and first:
        args, count = (*first, *args[1:]), len(first)
    if type(args[0]) is not Late.ndarray or len(args) > count + 1 or not _SAYING.issuperset(keywords):
        return None
    dtype = keywords.get("dtype")
    if dtype is not None and not (type(dtype) is type and dtype in _NUMBERS):
        return None
    known = few_values(args, _BESIDE, are_broadcast=False)
    if known is None:
        return None
    is_whole = True
    for x in known[:count]:
        if type(x) is not np.ndarray or x.dtype.kind not in "biufc" or not x.ndim:
            return None
        is_whole = is_whole and x.dtype.kind in "biu"
    if type(first) is list:
        known = [known[:count], *known[count:]]
    numpys = getattr(function.np, name)
    try:
        if dtype is None and is_whole and function.__name__ in _QUIET:
            return wrap(numpys(*known, **keywords))
        return wrap(told(numpys, *known, **keywords))
    except (ValueError, TypeError, LookupError):  # ours name the shapes
        return None


_QUICK = frozenset({"reduce", "accumulate", "reduceat"})
_SAYING = frozenset({"axis", "keepdims", "dtype"})
_BESIDE = NUMBERS | {list}
_NUMBERS = frozenset({bool, int, float, complex})
_QUIET = frozenset({"add", "subtract", "multiply", "minimum", "maximum"})
"""Functions without warnings for integers, which need not be told whose line they would name."""


def asking_others(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that NumPy's does instead where an operand or output says what it means; one output alone."""
    name = {"_full": "__call__", "_outer": "outer", "_at": "at"}.get(method.__name__, method.__name__)
    is_quick = name in _QUICK

    @functools.wraps(method)
    def ask(self: ufunc, *args: Any, **keywords: Any) -> Any:
        if is_quick and args and (found := _quickly(self, name, args, keywords)) is not None:
            return found
        out = keywords.get("out")
        outs = out if isinstance(out, tuple) else (out,)
        given = args[0] if name == "__call__" else args
        if any(map(is_override, (*given, *outs))):
            return getattr(self.np, name)(*given, **keywords)
        if any(map(is_subclass, (*given, *outs))):
            return by_numpy(getattr(self.np, name), *given, **keywords)
        if args and name in ("reduce", "accumulate", "reduceat") and wraps(args[0]):
            return wrapped_by(args[0], ask(self, as_handle(args[0]), *args[1:], **keywords), None)
        if any(o is Ellipsis for o in given[(self.nin if name == "__call__" else 3) :]):
            raise TypeError("out=... is only allowed as a keyword argument.")
        if isinstance(out, tuple) and any(o is Ellipsis for o in out):
            raise TypeError("must use `...` as `out=...` and not per-operand/in a tuple")
        if out is not None and len(outs) == 1 and self.nout == 1:
            keywords["out"] = outs[0]
        if out is Ellipsis and name != "__call__":
            keywords["out"] = None
            return copied(method(self, *args, **keywords))
        return method(self, *args, **keywords)

    return ask


def safe_where(name: str, args: tuple[Any, ...], where: Any) -> tuple[Any, ...]:
    """Operands that have an element of no consequence where a mask leaves them out."""
    operands = tuple(map(operand, args))
    mask = mask_of(where)
    arrays = [o for o in operands if isinstance(o, Handle)]
    dense = all(a.format == "dense" and a.dtype.kind in "biufc" for a in (mask, *arrays))
    one = harmless(name, tuple(map(kind_of, operands))) if dense else None
    if one is None or common_mask([mask, *operands]) is not None:
        return operands
    return tuple(
        wrap_node(build.map_("where", mask._node(), o._node(), build.constant(o.dtype.type(one))))
        if isinstance(o, Handle)
        else o
        for o in operands
    )
