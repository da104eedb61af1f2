"""The class of universal functions: NumPy's calling rules over the one table of elementwise rows.

Small operands on the driver go to NumPy at once; anything else becomes a map. A Python scalar is weak (NEP
50) and becomes a 0-d constant of the dtype that the other operands ask for.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import cumulative, reductions, segments
from spartan_ng.api.core.cell import Masked
from spartan_ng.api.core.dispatch import by_numpy, gathered, is_foreign, stays
from spartan_ng.api.core.errstate import is_strict
from spartan_ng.api.core.handle import (
    Handle,
    SubclassError,
    as_dtype,
    as_handle,
    check_wraps,
    copied,
    forced,
    in_order,
    is_array_like,
    is_override,
    is_subclass,
    numbers_here,
    scalar,
    wrap,
    wrap_masked,
    wrap_node,
    wraps,
)
from spartan_ng.api.core.layouts import lying_as
from spartan_ng.api.core.operands import (
    WEAK,
    common_mask,
    dtypes_first,
    has_objects,
    kind_of,
    operand,
    small_values,
    stay_small,
    stored,
    unfiltered,
    wrapped_by,
)
from spartan_ng.api.core.warn import warn_user
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process
from spartan_ng.graph.node import Node
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_TABLE = "spartan_ng.api.elementwise.ufuncs"
"""Where pickles find a function by its name."""
_OF_SCALARS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}
"""NumPy's operators of two scalars take a tenth of its ufuncs' time."""

_COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def _asking_others(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that NumPy's does instead where an operand or output says what it means; one output alone."""
    name = {"_full": "__call__", "_outer": "outer"}.get(method.__name__, method.__name__)

    @functools.wraps(method)
    def ask(self: ufunc, *args: Any, **keywords: Any) -> Any:
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


class ufunc:
    """A universal function with NumPy's signature.

    Parameters
    ----------
    name : a row of the table
    module : where it is found by its name
    """

    def __init__(self, name: str, module: str = _TABLE) -> None:
        row = ELEMENTWISE[name]
        self.row = row
        self.__name__ = name
        self.__module__ = module
        self.np: Any = row.function
        self.nin, self.nout = row.nin, row.nout
        self.nargs = row.nin + row.nout
        self.of_scalars = _OF_SCALARS.get(name)
        self.identity = getattr(row.function, "identity", None)
        self.signature = None
        self.types = getattr(row.function, "types", [])
        self.ntypes = len(self.types)
        first = (getattr(row.function, "__doc__", None) or name).strip().splitlines()
        self.__doc__ = "\n".join(first)
        self.__signature__ = getattr(row.function, "__signature__", None)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self) -> str:
        return self.__name__

    def __eq__(self, other: object) -> bool:
        """Equal to NumPy's function, which is what `__array_ufunc__` is given."""
        return self is other or other is self.np

    def __hash__(self) -> int:
        return hash(self.np)

    # --- calls -------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Apply to operands, with NumPy's keywords."""
        try:
            if keywords or len(args) != self.nin:
                return self._full(args, **keywords)
            if self.nin == 2:
                return self._two(*args)
            if self.nargs == 2 and isinstance(args[0], Handle):
                x = args[0]._peek()
                if type(x) is np.ndarray:
                    if x.nbytes <= config.small_bytes:
                        return wrap(self.np(x))
                elif x is not None and config.small_bytes:
                    return wrap(self.np(x))
            return self._some(args)
        except SubclassError:
            if any(map(is_override, args)):
                return self.np(*args, **keywords)
            if any(map(wraps, args)):
                return self._wrapped(args, keywords)
            return by_numpy(self.np, *args, **keywords)

    def _wrapped(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What the operand of the highest `__array_priority__` makes of results."""
        maker = max(filter(wraps, args), key=lambda a: getattr(a, "__array_priority__", 0.0))
        found = self(*(as_handle(a) if wraps(a) else a for a in args), **keywords)
        if keywords.get("out") is not None:
            return found
        made = [
            wrapped_by(maker, r, (self, args, i)) for i, r in enumerate(found if self.nout > 1 else (found,))
        ]
        return tuple(made) if self.nout > 1 else made[0]

    def _two(self, a: Any, b: Any) -> Any:
        """The common case of two operands and nothing else, kept short."""
        x, y, nbytes = a, b, 0
        weak = type(a) in WEAK or type(b) in WEAK
        if isinstance(a, Handle):
            x = a._peek()
            if x is None:
                return self._lazy((a, b))
            nbytes = x.nbytes
            if weak and type(x) is np.ndarray and nbytes <= config.small_bytes and config.small_bytes:
                return self._now((x, y))
        elif not weak and is_sparse(a):
            return self._lazy((a, b))
        if isinstance(b, Handle):
            y = b._peek()
            if y is None:
                return self._lazy((a, b))
            nbytes += y.nbytes
        elif not weak and is_sparse(b):
            return self._lazy((a, b))
        if nbytes > config.small_bytes and not has_objects(x, y):
            return self._lazy((a, b))
        if weak and nbytes:
            if self.of_scalars is not None and (isinstance(x, np.generic) or isinstance(y, np.generic)):
                return scalar(self.of_scalars(x, y))
            return self._now((x, y))
        try:
            if x.shape != y.shape and x.ndim and y.ndim and not stay_small((x, y)):
                return self._lazy((a, b))
        except AttributeError:  # a sequence, which NumPy takes as it is, but for numbers of ours
            x, y = (as_handle(o)._force() if o.__class__ in (list, tuple) else o for o in (x, y))
            if is_array_like(a) or is_array_like(b):
                check_wraps(a)
                check_wraps(b)
                return self._two(*(as_handle(o) if is_array_like(o) else o for o in (a, b)))
        return self._now((x, y))

    def _some(self, args: tuple[Any, ...]) -> Any:
        """Any number of operands and nothing else."""
        known = small_values(args)
        return self._lazy(args) if known is None else self._now(known)

    def _now(self, operands: tuple[Any, ...], **keywords: Any) -> Any:
        """NumPy at once."""
        try:
            r = self.np(*operands, **keywords)
        except ValueError:
            build.broadcast_shapes(self.__name__, *(np.shape(o) for o in operands))
            raise
        return tuple(map(wrap, r)) if type(r) is tuple else wrap(r)

    def _lazy(self, args: tuple[Any, ...], asked: _Asked | None = None, casting: str = "same_kind") -> Any:
        """A map (two for two results)."""
        operands = [a if isinstance(a, Handle) else operand(a) for a in args]
        kinds = tuple([kind_of(o) for o in operands])
        strict = is_strict()
        by_dtype = any(isinstance(k, np.dtype) and stays(k) for k in kinds)
        if strict or by_dtype or (asked is not None and asked.of_texts_or_objects()):
            run = gathered if strict and not in_process() else by_numpy
            return run(self.np, *args, casting=casting, **_keywords(asked))
        if self.nout == 2:
            if asked is not None:
                return gathered(self.np, *args, casting=casting, **_keywords(asked))
            return self._pair(operands)
        if self.__name__ == "power":
            _check_exponents(operands, kinds, casting, asked)
        masked = common_mask(operands)
        if masked is not None:
            inputs = [unfiltered(o) for o in operands]
            node = self.node(inputs, asked, casting)
            return wrap_masked(Masked(build.broadcast(node, masked.a.shape), masked.mask))
        return lying_as(wrap_node(self.node(operands, asked, casting, kinds)), *operands)

    def node(
        self,
        operands: list[Any],
        asked: _Asked | None = None,
        casting: str = "same_kind",
        kinds: tuple[Any, ...] | None = None,
    ) -> Node:
        """The map over handles, nodes and Python scalars; `kinds` as from `kind_of`, where they are known."""
        if kinds is None:
            kinds = tuple([kind_of(o) for o in operands])
        dtypes = _dtypes(self.__name__, kinds, casting, None if asked is None else asked.dtypes)
        nodes = [o if isinstance(o, Node) else None for o in operands]
        for i, o in enumerate(operands):
            if isinstance(o, Handle):
                nodes[i] = o._node()
            elif nodes[i] is None:
                try:
                    nodes[i] = build.constant(_weak_value(o, dtypes[i]))
                except OverflowError:
                    if self.__name__ not in _COMPARISONS:
                        raise
                    return self._beyond(operands, i)
        inputs: list[Node] = nodes  # type: ignore[assignment]
        if asked is not None:
            inputs = [build.cast(n, d) for n, d in zip(inputs, dtypes, strict=False)]
        return build.map_(self.__name__, *inputs, dtype=dtypes[-1])

    def _beyond(self, operands: list[Any], i: int) -> Node:
        """A comparison with a Python integer that the other operand's dtype cannot hold."""
        other = operands[1 - i]
        sample = np.zeros((), other.dtype)
        pair = (operands[0], sample) if i == 0 else (sample, operands[1])
        return build.broadcast(build.constant(np.asarray(self.np(*pair))), other.shape)

    def _pair(self, operands: list[Any]) -> tuple[ndarray, ndarray]:
        """Two results: two maps."""
        if self.__name__ == "divmod":
            return _QUOTIENT(*operands), _REST(*operands)
        (x,) = [as_handle(o) for o in operands]
        dtypes = build.elementwise_dtypes(self.__name__, x.dtype)
        first, second = _HALVES[self.__name__]
        one, two = (
            lying_as(wrap_node(build.map_(UserFunction(f, origin=self.__name__), x._node(), dtype=d)), x)
            for f, d in zip((first, second), dtypes[-2:], strict=True)
        )
        return one, two

    @_asking_others
    def _full(
        self,
        args: tuple[Any, ...],
        out: Any = None,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
        sig: Any = None,
    ) -> Any:
        """All of NumPy's arguments."""
        if len(args) < self.nin or len(args) > self.nargs:
            raise TypeError(
                f"{self.__name__}() takes from {self.nin} to {self.nargs} positional arguments "
                f"but {len(args)} {'was' if len(args) == 1 else 'were'} given"
            )
        if len(args) > self.nin:
            if out is not None:
                raise TypeError("cannot specify 'out' as both a positional and keyword argument")
            if self.__name__ in ("maximum", "minimum"):
                warn_user(
                    "Passing more than 2 positional arguments to np.maximum and np.minimum is deprecated: "
                    "use out= for the result; of more than 2 arrays in one, maximum.reduce",
                    DeprecationWarning,
                )
            outs = args[self.nin :]
            args, out = args[: self.nin], (*outs, *(None,) * (self.nout - len(outs)))
        asked = self._asked(dtype, signature, sig)
        as_array = out is Ellipsis
        if as_array:
            out = None
        if not isinstance(out, tuple):
            if out is not None and self.nout > 1:
                raise TypeError("'out' must be a tuple of arrays")
            out = (out,) * self.nout
        outs = out
        if len(outs) != self.nout:
            raise ValueError(f"The 'out' tuple must have exactly {self.nout} entries")
        if self.__name__ == "multiply" and isinstance(outs[0], Handle) and outs[0].dtype.kind in "SU":
            return by_numpy(
                self.np, *args, out=outs[0], where=forced(where), casting=casting, **_keywords(asked)
            )
        with (
            nullcontext()
            if outs[0] is None or self.nout > 1 or asked is not None
            else dtypes_first(self.np, args, outs[0], casting)
        ):
            known = small_values(args)
            if known is not None:
                found = self._now(known, casting=casting, **_keywords(asked))
            else:
                found = self._lazy(args, asked, casting)
        results = found if self.nout > 1 else (found,)
        if as_array:
            results = tuple(map(copied, results))
        elif any(o is not None for o in outs) or where is not True:
            results = tuple(
                stored(self.__name__, r, o, where, casting, broadcast=True)
                for r, o in zip(results, outs, strict=True)
            )
        elif order in ("C", "F"):
            results = tuple(in_order(r, order) for r in results)
        return results if self.nout > 1 else results[0]

    def _asked(self, dtype: Any, signature: Any, sig: Any) -> _Asked | None:
        """What `dtype=` or `signature=` ask for; TypeError for a signature of another form."""
        if sig is not None:
            if signature is not None:
                raise TypeError("cannot specify both 'sig' and 'signature'")
            signature = sig
        if signature is None:
            if dtype is None:
                return None
            dtype = as_dtype(dtype)
            dtypes = (None,) * self.nin + (dtype,) * self.nout
            return _Asked(dtypes, "dtype", type(dtype) if is_foreign(dtype) else dtype)
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
        if len(dtypes) != self.nargs:
            self.np(*(0,) * self.nin, signature=signature)  # NumPy's error
            raise TypeError(f"{self.__name__}: signature {signature!r} does not name {self.nargs} dtypes")
        return _Asked(dtypes, "signature", signature)

    # --- methods -----------------------------------------------------------------------------------

    @_asking_others
    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> ndarray:
        """Fold along `axis`."""
        self._binary("reduce")
        return reductions.reduce(self.__name__, array, axis, dtype, out, keepdims, initial, where)

    @_asking_others
    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
        """The cumulative fold along `axis`."""
        self._binary("accumulate")
        return cumulative.accumulate(self.__name__, array, axis, dtype, out)

    def outer(self, A: Any, B: Any, **keywords: Any) -> Any:
        """The function of every pair of elements."""
        if self.nin != 2:
            raise ValueError("outer product only supported for binary functions")
        x, y = numbers_here(A), numbers_here(B)
        small = x is not None and y is not None and x.nbytes * y.size <= config.small_bytes
        if small and not keywords:
            return self._now((x.reshape(x.shape + (1,) * y.ndim), y))
        return self._outer(A, B, **keywords)

    @_asking_others
    def _outer(self, A: Any, B: Any, **keywords: Any) -> Any:
        """`outer` of what is no pair of small arrays."""
        a, b = as_handle(A), as_handle(B)
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **keywords)

    @_asking_others
    def at(self, a: Any, indices: Any, b: Any = None, /) -> Any:
        """Apply in place at `indices`, repeated indices one after the other."""
        if self.nout != 1:
            raise ValueError("Only single output ufuncs supported at this time")
        if not isinstance(a, Handle) or a._cell.frozen:
            raise TypeError(f"{self.__name__}.at: the first operand must be an array")
        if self.nin == 2 and b is None:
            raise ValueError("second operand needed for ufunc")
        if self.nin == 1 and b is not None:
            raise ValueError("second operand provided when ufunc is unary")
        if b is None:
            segments.repeat_at(self, a, indices)  # type: ignore[arg-type]
        else:
            segments.accumulate_at(self.__name__, a, indices, b)  # type: ignore[arg-type]
        return None

    @_asking_others
    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> ndarray:
        """Folds of the slices that `indices` begin."""
        self._binary("reduceat")
        return segments.reduceat(self.__name__, array, indices, axis, dtype, out)

    def resolve_dtypes(self, *args: Any, **keywords: Any) -> Any:
        """The dtypes of operands and results, as NumPy has them."""
        return self.np.resolve_dtypes(*args, **keywords)

    def _binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"{method} only supported for binary functions")


# --- operands --------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _dtypes(
    name: str, kinds: tuple[Any, ...], casting: str, signature: tuple[Any, ...] | None
) -> tuple[np.dtype[Any], ...]:
    return build.elementwise_dtypes(name, *kinds, casting=casting, signature=signature)


def _check_exponents(operands: list[Any], kinds: tuple[Any, ...], casting: str, asked: _Asked | None) -> None:
    """NumPy's ValueError for integers to negative powers, where those are here to be looked at."""
    base, exponents = operands
    known = exponents._peek() if isinstance(exponents, Handle) else exponents
    dtypes = _dtypes("power", kinds, casting, None if asked is None else asked.dtypes)
    if known is None or dtypes[-1].kind != "i":
        return
    if kinds[0] in WEAK:
        _weak_value(base, dtypes[0])  # whether the number fits comes before what its power is
    if np.less(known, 0).any() and as_handle(base).size:
        build.broadcast_shapes("power", as_handle(base).shape, np.shape(known))  # shapes before elements
        raise ValueError("Integers to negative integer powers are not allowed.")


def _weak_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python scalar as a 0-d array of the resolved dtype; OverflowError where it does not fit."""
    return np.asarray(dtype.type(value) if dtype.kind in "iufcb" else value, dtype)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The dtypes that a call asks for, of operands and results (None where it does not), and its keyword."""

    dtypes: tuple[Any, ...]
    keyword: str
    value: Any

    def of_texts_or_objects(self) -> bool:
        """Whether one of the dtypes is of what NumPy alone works on, or is converted to it."""
        return any(d is not None and (d.kind in "SU" or stays(d)) for d in self.dtypes)


def _keywords(asked: _Asked | None) -> dict[str, Any]:
    return {} if asked is None else {asked.keyword: asked.value}


def _fraction(x: Any) -> Any:
    return np.modf(x)[0]


def _integral(x: Any) -> Any:
    return np.modf(x)[1]


def _mantissa(x: Any) -> Any:
    return np.frexp(x)[0]


def _exponent(x: Any) -> Any:
    return np.frexp(x)[1]


_QUOTIENT, _REST = ufunc("floor_divide"), ufunc("remainder")
_HALVES = {"modf": (_fraction, _integral), "frexp": (_mantissa, _exponent)}
