"""What `out` asks of the arithmetic: NumPy folds in what the operand's dtype and that of `out` make together.

Where both are of one kind, a fold is made in the wider dtype, on workers as anywhere. Where they are not,
what comes out follows how NumPy's loops cast on the way; NumPy does these itself, or refuses them in its
words.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.operands import check_output

_MODULAR = frozenset({"add", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor"})
"""Folds of integers whose low bits do not ask for the high ones."""
_WITH_DTYPE = (np.mean, np.std, np.var, np.nanmean, np.nanstd, np.nanvar)
INTO = frozenset(
    {
        *_WITH_DTYPE,
        *(np.median, np.nanmedian, np.quantile, np.nanquantile, np.percentile, np.nanpercentile),
        *(np.argmin, np.argmax, np.nanargmin, np.nanargmax, np.ptp, np.round),
    }
)
"""Functions whose results are of a dtype that `out` may differ from; see `into`."""


def folds_in(name: str, own: np.dtype[Any], out: np.dtype[Any]) -> np.dtype[Any] | None:
    """The dtype that a ufunc's fold of such elements into such an `out` is made in; None where the loops cast
    in between. Raises NumPy's error where there is no loop."""
    ufunc: Any = getattr(np, name)
    kinds: tuple[np.dtype[Any], ...] = ufunc.resolve_dtypes(
        (out, own, None), casting="unsafe", reduction=True
    )
    made = kinds[2]
    if made == out or made == np.bool_ or (made.kind == out.kind and made.kind in "fc"):
        return made
    is_modular = name in _MODULAR and made.kind in "iu" and out.kind in "iu"
    return made if is_modular and out.itemsize <= made.itemsize else None


def is_other(own: np.dtype[Any], out: np.dtype[Any]) -> bool:
    """Whether a scan into such an `out` may be made in another dtype; of dates and durations it is not."""
    return own != out and {own.kind, out.kind}.isdisjoint("mM")


def is_written(
    numpys: Callable[..., Any],
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    known_of: Callable[[Iterable[Any], list[Any]], int | None],
) -> bool:
    """Whether NumPy's function has written what it gives for small operands into a small `out` of numbers
    that is here, and nobody else's. What is refused, and an `out` that an operand shows, are left to ours.

    `known_of` appends NumPy's forms of arguments to a list, and gives their bytes, or None.
    """
    out, known = keywords["out"], list[Any]()
    target = out._open() if type(out) is Late.ndarray else None
    if target is None or target.dtype.kind not in "biufc" or not door.is_small(target.nbytes):
        return False
    names = [name for name in keywords if name != "out"]
    nbytes = known_of((*args, *(keywords[name] for name in names)), known)
    if nbytes is None or not door.is_small(nbytes) or _may_share(known, target):
        return False
    given, asked = known[: len(args)], dict(zip(names, known[len(args) :], strict=True))
    try:
        return numpys(*given, out=target, **asked) is target
    except (TypeError, ValueError, LookupError):  # ours name the shapes; read-only memory is copied
        return False


def _may_share(known: Iterable[Any], target: Any) -> bool:
    """Whether one of NumPy's arrays, in lists or not, may show memory of the target; of objects nobody
    knows."""
    for a in known:
        if isinstance(a, np.ndarray):
            if a.dtype.hasobject or np.may_share_memory(a, target):
                return True
        elif isinstance(a, list | tuple) and _may_share(a, target):
            return True
    return False


def into(numpys: Callable[..., Any], ours: Callable[..., Any], by_numpy: Callable[..., Any]) -> Any:
    """`ours`, but NumPy's function where `out` has another dtype than the result, unless a mean is to be
    stored as another floating-point number."""
    signature = inspect.signature(ours)
    at = list(signature.parameters).index("out")
    has_dtype = numpys in _WITH_DTYPE

    @functools.wraps(ours)
    def call(*args: Any, **keywords: Any) -> Any:
        out = keywords.get("out") if len(args) <= at else args[at]
        if out is None or not isinstance(out, Handle | np.ndarray):
            return ours(*args, **keywords)
        given = signature.bind(*args, **keywords).arguments
        a = as_handle(next(iter(given.values())))
        dtype = given.get("dtype")
        natural = _natural(numpys, a.dtype, None if dtype is None else np.dtype(dtype), given.get("method"))
        if (natural is not None and natural == out.dtype) or dtype is not None:
            return ours(*args, **keywords)
        if natural is not None and has_dtype and natural.kind == out.dtype.kind and natural.kind in "fc":
            if a.dtype.kind != "c":
                given["dtype"] = np.promote_types(natural, out.dtype)
            return ours(**given)
        check_output(out)
        first, *rest = given.items()
        return by_numpy(numpys, first[1], **dict(rest))

    return call


@functools.lru_cache(1024)
def _natural(
    numpys: Callable[..., Any], own: np.dtype[Any], dtype: np.dtype[Any] | None, method: str | None
) -> np.dtype[Any] | None:
    """The dtype of what NumPy's function gives for elements of a dtype; None where it gives an error."""
    options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    if method is not None:
        options["method"] = method
    more = (0.5,) if "q" in inspect.signature(numpys).parameters else ()
    try:
        found: np.dtype[Any] = np.asarray(numpys(np.ones(2, own), *more, **options)).dtype
    except Exception:  # noqa: BLE001 - ours says what is wrong
        return None
    return found


def to_write(operand: Any) -> Any:
    """An operand's own memory; of what must not be written to, memory to be read."""
    if not isinstance(operand, Handle) or operand._cell.frozen:
        return operand
    return operand._memory() if operand.flags.writeable else operand._to_read()  # type: ignore[attr-defined]
