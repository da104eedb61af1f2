"""Universal functions: NumPy's calling rules over the one table of elementwise rows.

Small operands on the driver go to NumPy at once; anything else becomes a map. A Python scalar is weak (NEP
50) and becomes a 0-d constant of the dtype that the other operands ask for.
"""

from __future__ import annotations

import operator
import warnings
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from spartan_ng.api import reductions
from spartan_ng.api.cell import Masked
from spartan_ng.api.dispatch import by_numpy, gathered, weight
from spartan_ng.api.errstate import is_strict
from spartan_ng.api.handle import (
    PYTHON_SCALARS,
    Handle,
    SubclassError,
    as_handle,
    in_order,
    is_array_like,
    scalar,
    wrap,
    wrap_masked,
    wrap_node,
)
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import at_once_bytes, in_process
from spartan_ng.graph.node import Node
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray

_WEAK = frozenset(PYTHON_SCALARS)
_OF_SCALARS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}
"""NumPy's operators of two scalars take a tenth of its ufuncs' time."""

_COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


class ufunc:
    """A universal function with NumPy's signature.

    Parameters
    ----------
    name : a row of the table
    """

    def __init__(self, name: str) -> None:
        row = ELEMENTWISE[name]
        self.row = row
        self.__name__ = name
        self.np: Any = row.function
        self.nin, self.nout = row.nin, row.nout
        self.nargs = row.nin + row.nout
        self.of_scalars = _OF_SCALARS.get(name)
        self.gives_bool = name in _COMPARISONS
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
                if x is not None and x.nbytes <= config.small_bytes:
                    return wrap(self.np(x))
            return self._some(args)
        except SubclassError:
            return by_numpy(self.np, *args, **keywords)

    def _two(self, a: Any, b: Any) -> Any:
        """The common case of two operands and nothing else, kept short."""
        x, y, nbytes = a, b, 0
        weak = a.__class__ in _WEAK or b.__class__ in _WEAK
        if isinstance(a, Handle):
            x = a._peek()
            if x is None:
                return self._lazy((a, b))
            nbytes = x.nbytes
        if isinstance(b, Handle):
            y = b._peek()
            if y is None:
                return self._lazy((a, b))
            nbytes += y.nbytes
        large = nbytes > config.small_bytes and not (self.gives_bool and _is_small_answer(x, y))
        if large and not _has_objects(x, y):
            return self._lazy((a, b))
        if weak and nbytes:
            if self.of_scalars is not None and (isinstance(x, np.generic) or isinstance(y, np.generic)):
                return scalar(self.of_scalars(x, y))
            return self._now((x, y))
        try:
            if x.shape != y.shape and x.ndim and y.ndim and not _bounded((x, y)):
                return self._lazy((a, b))
        except AttributeError:  # a sequence, which NumPy takes as it is
            if sparse.issparse(x) or sparse.issparse(y):
                return self._lazy((a, b))
            if is_array_like(a) or is_array_like(b):
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
        if r.__class__ is tuple:
            return tuple(wrap(part) for part in r)
        return wrap(r) if isinstance(r, np.ndarray) else scalar(r)

    def _lazy(self, args: tuple[Any, ...], dtype: Any = None, casting: str = "same_kind") -> Any:
        """A map (two for two results)."""
        operands = [operand(a) for a in args]
        strict = is_strict()
        if strict or any(o.dtype.hasobject for o in operands if isinstance(o, Handle)):
            more = {} if dtype is None else {"dtype": dtype}
            run = gathered if strict and not in_process() else by_numpy
            return run(self.np, *args, casting=casting, **more)
        if self.nout == 2:
            return self._pair(operands)
        masked = common_mask(operands)
        if masked is not None:
            inputs = [_unfiltered(o) for o in operands]
            node = self.node(inputs, dtype, casting)
            return wrap_masked(Masked(build.broadcast(node, masked.a.shape), masked.mask))
        return wrap_node(self.node(operands, dtype, casting))

    def node(self, operands: list[Any], dtype: Any = None, casting: str = "same_kind") -> Node:
        """The map over handles, nodes and Python scalars."""
        kinds = tuple(kind_of(o) for o in operands)
        dtypes = _dtypes(self.__name__, kinds, casting, dtype)
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
        if dtype is not None:
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
            return floor_divide(*operands), remainder(*operands)
        (x,) = [as_handle(o) for o in operands]
        dtypes = build.elementwise_dtypes(self.__name__, x.dtype)
        first, second = _HALVES[self.__name__]
        one, two = (
            wrap_node(build.map_(UserFunction(f, origin=self.__name__), x._node(), dtype=d))
            for f, d in zip((first, second), dtypes[-2:], strict=True)
        )
        return one, two

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
                f"but {len(args)} were given"
            )
        if len(args) > self.nin:
            if out is not None:
                raise TypeError("cannot specify 'out' as both a positional and keyword argument")
            args, out = args[: self.nin], args[self.nin :]
        if sig is not None:
            if signature is not None:
                raise TypeError("cannot specify both 'sig' and 'signature'")
            signature = sig
        typed: dict[str, Any] = {}
        if signature is not None:
            if dtype is not None:
                raise TypeError("cannot specify both 'signature' and 'dtype'")
            typed = {"signature": signature}
            if not isinstance(signature, str | tuple):
                raise TypeError(
                    f"the signature object to ufunc must be a string or a tuple, not {signature!r}"
                )
            dtype = _signature_dtype(signature, self.nargs)
        as_array = out is Ellipsis
        if as_array:
            out = None
        outs = out if isinstance(out, tuple) else (out,) * self.nout if out is None else (out,)
        if len(outs) != self.nout:
            raise ValueError(f"The 'out' tuple must have exactly {self.nout} entries")
        dtype = None if dtype is None else np.dtype(dtype)
        known = small_values(args)
        if known is not None:
            results = self._now(known, casting=casting, **(typed or {"dtype": dtype}))
        elif dtype is None and casting == "same_kind":
            results = self._lazy(args)
        else:
            results = self._lazy(args, dtype, casting)
        if as_array:
            return tuple(r.copy() for r in results) if self.nout > 1 else results.copy()
        if all(o is None for o in outs) and where is True:
            if order in ("C", "F"):
                return (
                    tuple(in_order(r, order) for r in results) if self.nout > 1 else in_order(results, order)
                )
            return results
        if self.nout == 1:
            return stored(self.__name__, results, outs[0], where, casting)
        return tuple(stored(self.__name__, r, o, where, casting) for r, o in zip(results, outs, strict=True))

    # --- methods -----------------------------------------------------------------------------------

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

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
        """The cumulative fold along `axis`."""
        self._binary("accumulate")
        return reductions.accumulate(self.__name__, array, axis, dtype, out)

    def outer(self, A: Any, B: Any, **keywords: Any) -> Any:
        """The function of every pair of elements."""
        self._binary("outer")
        a, b = as_handle(A), as_handle(B)
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **keywords)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Apply in place at `indices`, repeated indices one after the other."""
        if not isinstance(a, Handle):
            raise TypeError(f"{self.__name__}.at: the first operand must be an array")
        if self.nin == 2 and b is None:
            raise ValueError("second operand needed for ufunc")
        if b is None:
            reductions.repeat_at(self, a, indices)  # type: ignore[arg-type]
        else:
            reductions.accumulate_at(self.__name__, a, indices, b)  # type: ignore[arg-type]

    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> ndarray:
        """Folds of the slices that `indices` begin."""
        self._binary("reduceat")
        return reductions.reduceat(self.__name__, array, indices, axis, dtype, out)

    def resolve_dtypes(self, *args: Any, **keywords: Any) -> Any:
        """The dtypes of operands and results, as NumPy has them."""
        return self.np.resolve_dtypes(*args, **keywords)

    def _binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"{method} only supported for binary functions")


# --- operands --------------------------------------------------------------------------------------


def kind_of(o: Any) -> Any:
    """A Python scalar's class, or anything else's dtype."""
    plain = isinstance(o, PYTHON_SCALARS) and not isinstance(o, Handle)
    return type(o) if plain else o.dtype


def operand(a: Any) -> Any:
    """An operand as a handle, or a Python scalar as itself."""
    if isinstance(a, Handle):
        return a
    if isinstance(a, PYTHON_SCALARS) and not isinstance(a, np.generic):
        return np.bool_(a) if isinstance(a, bool) else a
    return as_handle(a)


def small_values(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """NumPy values of operands that are small and on the driver, or None."""
    known: list[Any] = []
    nbytes = 0
    shape = None
    alike = True
    for a in args:
        if isinstance(a, Handle):
            a = a._peek()
            if a is None:
                return None
            if a.shape:
                alike = alike and (shape is None or shape == a.shape)
                shape = a.shape
            nbytes += weight(a)
            known.append(a)
            continue
        if a.__class__ in _WEAK:
            known.append(a)
            continue
        alike = False
        if isinstance(a, list | tuple) or sparse.issparse(a) or is_array_like(a):
            a = as_handle(a)._peek()
            if a is None:
                return None
        nbytes += weight(a)
        known.append(a)
    if nbytes > config.small_bytes or not (alike or _bounded(tuple(known))):
        return None
    return tuple(known)


def _has_objects(*operands: Any) -> bool:
    """Whether an operand holds Python's objects, which stay on the driver."""
    return any(o.dtype.hasobject for o in operands if isinstance(o, np.ndarray))


def _bounded(operands: tuple[Any, ...]) -> bool:
    """Whether the operands stay small when they are broadcast together."""
    shapes = {np.shape(o) for o in operands}
    if len(shapes) == 1:
        return True
    longest = max(map(len, shapes))
    size = prod(max(s[-i] for s in shapes if len(s) >= i) for i in range(1, longest + 1))
    return size * 8 <= max(config.small_bytes, 8 * max(map(prod, shapes)))  # type: ignore[no-any-return]


def _is_small_answer(x: Any, y: Any) -> bool:
    """Whether comparing what is here gives so few booleans that a plan would take longer to begin."""
    small = config.small_bytes
    if not small or x.__class__ is not np.ndarray or x.size > small:
        return False
    alike = y.__class__ in _WEAK or (isinstance(y, np.ndarray | np.generic) and y.shape in ((), x.shape))
    return alike and x.nbytes <= at_once_bytes(small)


def common_mask(operands: list[Any]) -> Masked | None:
    """The filter all operands with axes went through, if they can stay filtered."""
    found: Masked | None = None
    for o in operands:
        if not isinstance(o, Handle):
            continue
        masked = o._masked()
        if masked is None:
            if o._views or o._cell.masked is not None or o.ndim:
                return None
            continue
        if found is None:
            found = masked
        elif masked.mask is not found.mask or masked.a.shape != found.a.shape:
            return None
    return found


def _unfiltered(o: Any) -> Any:
    """A filtered operand's elements before the filter; anything else as it is."""
    masked = o._masked() if isinstance(o, Handle) else None
    return o if masked is None else masked.a


def stored(name: str, result: Any, out: Any, where: Any, casting: str = "same_kind") -> Any:
    """Put a result into `out` where `where` is true, under NumPy's casting rule."""
    if out is None:
        if where is True:
            return result
        warnings.warn(f"{name}: 'where' used without 'out', expect zeros where it is false", stacklevel=5)
        shape = build.broadcast_shapes(name, result.shape, np.shape(where))
        out = wrap_node(build.broadcast(build.constant(np.zeros((), result.dtype)), shape))
    if isinstance(out, np.ndarray):
        np.copyto(out, result._force(), casting=casting, where=_plain(where))  # type: ignore[arg-type]
        return out
    if not isinstance(out, Handle):
        raise TypeError("return arrays must be of ArrayType")
    if not np.can_cast(result.dtype, out.dtype, casting):  # type: ignore[arg-type]
        function = getattr(np, name, None)
        if not isinstance(function, np.ufunc):
            raise TypeError(
                f"{name}: cannot cast {result.dtype!r} to {out.dtype!r} with casting rule {casting!r}"
            )
        raise np._core._exceptions._UFuncOutputCastingError(  # type: ignore[attr-defined]
            function, casting, result.dtype, out.dtype, 0
        )
    whole = build.broadcast_shapes(name, result.shape, out.shape)
    if whole != out.shape:
        raise ShapeError(
            f"{name}: non-broadcastable output operand with shape {out.shape} "
            f"doesn't match the broadcast shape {whole}"
        )
    if where is not True:
        mask = as_handle(where)
        result = wrap_node(
            build.map_("where", mask._node(), build.cast(result._node(), out.dtype), out._node())
        )
    out._write(result)
    return out


def _plain(a: Any) -> Any:
    return a._force() if isinstance(a, Handle) else a


@lru_cache(maxsize=4096)
def _dtypes(name: str, kinds: tuple[Any, ...], casting: str, dtype: Any) -> tuple[np.dtype[Any], ...]:
    return build.elementwise_dtypes(name, *kinds, casting=casting, dtype=dtype)


def _weak_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python scalar as a 0-d array of the resolved dtype; OverflowError where it does not fit."""
    return np.asarray(dtype.type(value) if dtype.kind in "iufcb" else value, dtype)


def _signature_dtype(signature: Any, nargs: int) -> Any:
    """The result's dtype of a `signature=` argument."""
    if isinstance(signature, str):
        return np.dtype(signature.split("->")[-1])
    if isinstance(signature, tuple):
        return signature[-1] if len(signature) == nargs else signature[0]
    return signature


def _fraction(x: Any) -> Any:
    return np.modf(x)[0]


def _integral(x: Any) -> Any:
    return np.modf(x)[1]


def _mantissa(x: Any) -> Any:
    return np.frexp(x)[0]


def _exponent(x: Any) -> Any:
    return np.frexp(x)[1]


_HALVES = {"modf": (_fraction, _integral), "frexp": (_mantissa, _exponent)}

# --- the names -------------------------------------------------------------------------------------

add = ufunc("add")
subtract = ufunc("subtract")
multiply = ufunc("multiply")
divide = true_divide = ufunc("divide")
floor_divide = ufunc("floor_divide")
remainder = mod = ufunc("remainder")
fmod = ufunc("fmod")
divmod = ufunc("divmod")
power = pow = ufunc("power")
float_power = ufunc("float_power")
negative = ufunc("negative")
positive = ufunc("positive")
absolute = abs = ufunc("absolute")
fabs = ufunc("fabs")
sign = ufunc("sign")
reciprocal = ufunc("reciprocal")
square = ufunc("square")
sqrt = ufunc("sqrt")
cbrt = ufunc("cbrt")
gcd = ufunc("gcd")
lcm = ufunc("lcm")
heaviside = ufunc("heaviside")
rint = ufunc("rint")
floor = ufunc("floor")
ceil = ufunc("ceil")
trunc = ufunc("trunc")
exp = ufunc("exp")
exp2 = ufunc("exp2")
expm1 = ufunc("expm1")
log = ufunc("log")
log2 = ufunc("log2")
log10 = ufunc("log10")
log1p = ufunc("log1p")
logaddexp = ufunc("logaddexp")
logaddexp2 = ufunc("logaddexp2")
sin = ufunc("sin")
cos = ufunc("cos")
tan = ufunc("tan")
arcsin = asin = ufunc("arcsin")
arccos = acos = ufunc("arccos")
arctan = atan = ufunc("arctan")
arctan2 = atan2 = ufunc("arctan2")
hypot = ufunc("hypot")
sinh = ufunc("sinh")
cosh = ufunc("cosh")
tanh = ufunc("tanh")
arcsinh = asinh = ufunc("arcsinh")
arccosh = acosh = ufunc("arccosh")
arctanh = atanh = ufunc("arctanh")
degrees = ufunc("degrees")
radians = ufunc("radians")
deg2rad = ufunc("deg2rad")
rad2deg = ufunc("rad2deg")
equal = ufunc("equal")
not_equal = ufunc("not_equal")
less = ufunc("less")
less_equal = ufunc("less_equal")
greater = ufunc("greater")
greater_equal = ufunc("greater_equal")
maximum = ufunc("maximum")
minimum = ufunc("minimum")
fmax = ufunc("fmax")
fmin = ufunc("fmin")
logical_and = ufunc("logical_and")
logical_or = ufunc("logical_or")
logical_xor = ufunc("logical_xor")
logical_not = ufunc("logical_not")
bitwise_and = ufunc("bitwise_and")
bitwise_or = ufunc("bitwise_or")
bitwise_xor = ufunc("bitwise_xor")
invert = bitwise_not = bitwise_invert = ufunc("invert")
left_shift = bitwise_left_shift = ufunc("left_shift")
right_shift = bitwise_right_shift = ufunc("right_shift")
bitwise_count = ufunc("bitwise_count")
isfinite = ufunc("isfinite")
isinf = ufunc("isinf")
isnan = ufunc("isnan")
isnat = ufunc("isnat")
signbit = ufunc("signbit")
copysign = ufunc("copysign")
nextafter = ufunc("nextafter")
spacing = ufunc("spacing")
modf = ufunc("modf")
frexp = ufunc("frexp")
ldexp = ufunc("ldexp")
conjugate = conj = ufunc("conjugate")
expit = ufunc("expit")
erf = ufunc("erf")
erfc = ufunc("erfc")
gammaln = ufunc("gammaln")
ndtr = ufunc("ndtr")
log_ndtr = ufunc("log_ndtr")
xlogy = ufunc("xlogy")
clip3 = ufunc("clip")

UFUNCS: dict[str, ufunc] = {u.__name__: u for u in list(globals().values()) if isinstance(u, ufunc)}
"""Every ufunc by its row's name."""

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "conj",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "isnat",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "modf",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "spacing",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "ufunc",
]
