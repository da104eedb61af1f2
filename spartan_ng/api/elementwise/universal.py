"""The class of universal functions: NumPy's calling rules over the one table of elementwise rows.

Small operands on the driver go to NumPy at once; anything else becomes a map. A Python scalar is weak (NEP
50) and becomes a 0-d constant of the dtype that the other operands ask for.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Masked
from spartan_ng.api.core.conversion import (
    as_handle,
    check_wraps,
    forced,
    in_order,
    is_array_like,
    is_override,
    knows_numpys_alone,
    order_for,
    values,
    wraps,
)
from spartan_ng.api.core.dispatch import by_numpy, fresh, gathered
from spartan_ng.api.core.door import few_pair, few_values
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.kinds import NUMBERS, SubclassError
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.layouts import lying_as
from spartan_ng.api.core.loans import lends, on_loan
from spartan_ng.api.core.numbers import as_number
from spartan_ng.api.core.operands import (
    WEAK,
    check_outputs,
    check_places,
    common_mask,
    dtypes_first,
    has_objects,
    kind_of,
    mask_of,
    operand,
    small_values,
    stay_small,
    stored,
    unfiltered,
    without_output,
    wrapped_by,
)
from spartan_ng.api.core.others import by_scipys
from spartan_ng.api.core.quick import IS_COMPILED, QuickFunction
from spartan_ng.api.core.telling import applied
from spartan_ng.api.core.wrapping import wrap, wrap_masked, wrap_node
from spartan_ng.api.elementwise.asked import (
    HALVES,
    Asked,
    asked_of,
    asking_others,
    check_exponents,
    chosen,
    dtypes_of,
    have_to_stay,
    keywords_of,
    safe_where,
    weak_value,
)
from spartan_ng.api.elementwise.folding import Folding
from spartan_ng.api.elementwise.writing import Writing
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.callers import warn_user
from spartan_ng.error_state import error_state
from spartan_ng.errors import is_refusal
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

_PLACES = frozenset({"out", "where"})
"""Keywords that say where results go."""
_COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


class ufunc(QuickFunction, Folding, Writing):
    """A universal function with NumPy's signature.

    Parameters
    ----------
    name : a row of the table
    module : where it is found by its name
    """

    def __init__(self, name: str, module: str = _TABLE) -> None:
        self.row = row = ELEMENTWISE[name]
        assert row.is_ufunc, f"the row of {name!r} calls no ufunc, which dtypes, out and where are asked of"
        self.__name__ = name
        self.__module__ = module
        self.np: Any = row.function
        self.nin, self.nout = row.nin, row.nout
        self.nargs = row.nin + row.nout
        self.takes_place = name not in ("maximum", "minimum")
        self.simple = self.nargs == 2
        self.of_scalars = _OF_SCALARS.get(name)
        self.identity = getattr(row.function, "identity", None)
        self.signature = None
        self.types = getattr(row.function, "types", [])
        self.ntypes = len(self.types)
        self.__doc__ = (getattr(row.function, "__doc__", None) or name).strip()
        self.__signature__ = getattr(row.function, "__signature__", None)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __delattr__(self, name: str) -> None:
        """NumPy's text is there again where another one is deleted."""
        super().__delattr__(name)
        if name == "__doc__":
            self.__doc__ = self.np.__doc__

    def __reduce__(self) -> str:
        return self.__name__

    # What NumPy's function has besides, for who calls its loops. (`__getattr__` would slow every attribute.)
    _get_strided_loop = property(operator.attrgetter("np._get_strided_loop"))
    _resolve_dtypes_and_context = property(operator.attrgetter("np._resolve_dtypes_and_context"))

    def __eq__(self, other: object) -> bool:
        """Equal to NumPy's function, which is what `__array_ufunc__` is given."""
        return self is other or other is self.np

    def __hash__(self) -> int:
        return hash(self.np)

    # --- calls -------------------------------------------------------------------------------------

    def _called(self, *args: Any, **keywords: Any) -> Any:
        """Apply to operands, with NumPy's keywords; of numbers alone, to what NumPy gives."""
        given_place = len(args) == self.nin + 1 == self.nargs and not keywords
        if given_place and self.takes_place and type(args[-1]) is Late.ndarray:
            args, keywords = args[:-1], {"out": args[-1]}
        if self.simple and not keywords and len(args) == 1 and type(a := args[0]) is Late.ndarray:
            x = a._peek() if a._views else a._cell.value
            if type(x) is np.ndarray and door.is_small(x.nbytes):
                return wrap(applied(self.np, (x,)))
        elif len(args) == self.nin:
            if type(args[0]) in NUMBERS and type(args[-1]) in NUMBERS and len(args) < 3 and not keywords:
                return self.np(*args)
            known: Any = few_pair(*args) if len(args) == 2 else few_values(args)
            if known is not None:
                try:
                    if not keywords:
                        found = applied(self.np, tuple(known))
                        return wrap(found) if self.nout == 1 else tuple(map(wrap, found))
                    if _PLACES.issuperset(keywords) and self._write(tuple(known), **keywords):
                        out = keywords["out"]
                        return out[0] if self.nout == 1 and type(out) is tuple else out
                except ValueError as error:  # read-only memory is copied
                    if not is_refusal(error):
                        raise
                    if not keywords:
                        build.broadcast_shapes(self.__name__, *map(np.shape, known))
        try:
            if keywords or len(args) != self.nin:
                return self._full(args, **keywords)
            return self._two(*args) if self.nin == 2 else self._some(args)
        except SubclassError:
            others = [*filter(is_override, args)]
            if others:
                given = values(*args) if all(map(knows_numpys_alone, others)) else args
                return self.np(*given, **keywords)
            if any(map(wraps, args)):
                return self._wrapped(args, keywords)
            return by_numpy(self.np, *args, **keywords)

    if not IS_COMPILED:
        __call__ = _called

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
            if weak and type(x) is np.ndarray and door.is_small(nbytes) and door.is_open():
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
        if not door.is_small(nbytes) and not has_objects(x, y):
            return self._lazy((a, b))
        if weak and nbytes:
            if self.of_scalars is not None and (isinstance(x, np.generic) or isinstance(y, np.generic)):
                return as_number(self.of_scalars(x, y))
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
            r = applied(self.np, operands, **keywords)
        except ValueError:
            build.broadcast_shapes(self.__name__, *map(np.shape, operands))
            raise
        return tuple(map(wrap, r)) if type(r) is tuple else wrap(r)

    def _lazy(
        self,
        args: tuple[Any, ...],
        asked: Asked | None = None,
        casting: str = "same_kind",
        lent: bool = False,
    ) -> Any:
        """A map (two for two results); what others own is `lent` to it, if it is large."""
        for a in () if lent else args:
            is_ours = isinstance(a, Handle) and (a._cell.shared or a._cell.borrowed)
            if (is_ours or type(a) is np.ndarray) and lends(a):
                return on_loan(self._lazy, args, asked, casting, True)
        if asked is None and not isinstance(args[0], Handle) and not isinstance(args[-1], Handle):
            found = by_scipys(self.np, args, {})
            if found is not NotImplemented:
                return fresh(found)
        operands = [a if isinstance(a, Handle) or type(a) in WEAK else operand(a) for a in args]
        kinds = tuple([type(o) if type(o) in WEAK else o.dtype for o in operands])
        strict = error_state().is_strict
        if strict or have_to_stay(kinds) or (asked is not None and asked.of_texts_or_objects()):
            run = gathered if strict and not in_process() else by_numpy
            return run(self.np, *args, casting=casting, **keywords_of(asked))
        if self.nout == 2:
            if asked is not None:
                return gathered(self.np, *args, casting=casting, **keywords_of(asked))
            return self._pair(operands)
        if self.__name__ == "power":
            check_exponents(operands, kinds, casting, asked)
        masked = common_mask(operands)
        if masked is not None:
            inputs = [unfiltered(o) for o in operands]
            node = self.node(inputs, asked, casting)
            result = wrap_masked(Masked(build.broadcast(node, masked.a.shape), masked.mask), True)
            orders = {o._cell.order for o in operands if isinstance(o, Handle) and o._masked() is not None}
            if len(orders) == 1:
                (result._cell.order,) = orders
            return result
        node = self.node(operands, asked, casting, kinds)
        found = wrap_node(node)
        return lying_as(found, *operands) if len(node.shape) > 1 else found

    def node(
        self,
        operands: list[Any],
        asked: Asked | None = None,
        casting: str = "same_kind",
        kinds: tuple[Any, ...] | None = None,
    ) -> Node:
        """The map over handles, nodes and Python scalars; `kinds` as from `kind_of`, where they are known."""
        if kinds is None:
            kinds = tuple(map(kind_of, operands))
        dtypes = dtypes_of(self.__name__, kinds, casting, None if asked is None else asked.dtypes)
        inputs: list[Node] = []
        for i, o in enumerate(operands):
            if isinstance(o, Node):
                inputs.append(o)
            elif isinstance(o, Handle):
                inputs.append(o._node())
            else:
                try:
                    inputs.append(build.constant(weak_value(o, dtypes[i])))
                except OverflowError:
                    if self.__name__ not in _COMPARISONS:
                        raise
                    return self._beyond(operands, i)
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
        first, second = HALVES[self.__name__]
        one, two = (
            lying_as(wrap_node(build.map_(UserFunction(f, origin=self.__name__), x._node(), dtype=d)), x)
            for f, d in zip((first, second), dtypes[-2:], strict=True)
        )
        return one, two

    def _check_count(self, given: int) -> None:
        if not self.nin <= given <= self.nargs:
            raise TypeError(
                f"{self.__name__}() takes from {self.nin} to {self.nargs} positional arguments "
                f"but {given} {'was' if given == 1 else 'were'} given"
            )

    def _by_position(self, args: tuple[Any, ...], out: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Operands, and the outputs that were given behind them."""
        if out is not None:
            raise TypeError("cannot specify 'out' as both a positional and keyword argument")
        if not self.takes_place:
            warn_user(
                "Passing more than 2 positional arguments to np.maximum and np.minimum is deprecated: "
                "use out= for the result; of more than 2 arrays in one, maximum.reduce",
                DeprecationWarning,
            )
        outs = args[self.nin :]
        return args[: self.nin], (*outs, *(None,) * (self.nout - len(outs)))

    @asking_others
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
        self._check_count(len(args))
        if len(args) > self.nin:
            args, out = self._by_position(args, out)
        asked = asked_of(self, dtype, signature, sig)
        as_array = out is Ellipsis
        out = None if as_array else out
        if self.nout > 1 and not isinstance(out, tuple | None):
            raise TypeError("'out' must be a tuple of arrays")
        outs = out if isinstance(out, tuple) else (out,) * self.nout
        if len(outs) != self.nout:
            raise ValueError(f"The 'out' tuple must have exactly {self.nout} entries")
        if self.__name__ == "multiply" and isinstance(outs[0], Handle) and outs[0].dtype.kind in "SU":
            return by_numpy(
                self.np, *args, out=outs[0], where=forced(where), casting=casting, **keywords_of(asked)
            )
        where = mask_of(where)
        if self._written(args, outs, where, casting=casting, **keywords_of(asked)):
            return outs if self.nout > 1 else outs[0]
        signature = {} if asked is None else {"signature": asked.signature()}
        with dtypes_first(self.np, args, outs, casting=casting, **signature):
            known, has_places = small_values(args), any(o is not None for o in outs)
            at_once = where is not True and (known is not None or error_state().is_strict)
            if has_places and known is not None:  # what is refused tells of no division by zero
                check_places(self.__name__, [np.shape(x) for x in known], outs)
            if at_once:
                found = by_numpy(chosen, self.np, args, where, casting=casting, **keywords_of(asked))
            elif known is not None:
                found = self._now(known, casting=casting, **keywords_of(asked))
            else:
                found = self._lazy(
                    args if where is True else safe_where(self.__name__, args, where), asked, casting
                )
            results = found if self.nout > 1 else (found,)
            if has_places:  # all of them, before one is written to
                check_outputs(self.__name__, results, outs, casting)
        if as_array:
            results = tuple(map(copied, results))
        elif has_places or where is not True:
            backwards = [  # of outputs that overlap, NumPy writes the first one last
                without_output(self.__name__, r)
                if o is None and at_once
                else stored(self.__name__, r, o, where, casting, broadcast=True)
                for r, o in reversed([*zip(results, outs, strict=True)])
            ]
            results = tuple(reversed(backwards))
        elif order != "K":
            results = tuple(in_order(r, order_for(order, *args)) for r in results)
        return results if self.nout > 1 else results[0]


_QUOTIENT, _REST = ufunc("floor_divide"), ufunc("remainder")
