"""NumPy's functions of elements that are no ufuncs: business days, dates as text, the bytes of elements.

They run block by block where the elements lie. Dtypes and errors are NumPy's own, asked of empty arrays; what
depends on values is looked at before, since a worker must not raise what NumPy raises at the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import reductions
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.dispatch import gathered, numpy_function
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.operands import stored
from spartan_ng.api.core.quick import AS_BROADCAST, AS_GIVEN, shortened
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def on_blocks(function: Callable[..., Any], arrays: Sequence[Any], name: str) -> ndarray:
    """A function of blocks with the shape of all arrays together; its results have memory of their own."""
    found = [as_handle(a) for a in arrays]
    known = [a._peek() for a in found]
    if door.is_open() and all(k is not None and door.is_small(k.nbytes) for k in known):
        return wrap(function(*known))
    kind = function(*(np.empty(0, a.dtype) for a in found)).dtype
    node = build.map_(UserFunction(function, origin=name), *(a._node() for a in found), dtype=kind)
    return wrap_node(node)


# --- dates -------------------------------------------------------------------------------------------


def _dates(a: Any) -> Any:
    """Dates as NumPy reads them: of arrays, text, or Python's own."""
    return a if isinstance(a, Handle | np.ndarray) else np.asarray(a, "M8[D]")


_CALENDAR = frozenset({"weekmask", "holidays"})


@numpy_function(np.is_busday, front=shortened(np.is_busday, 3, AS_GIVEN, _CALENDAR))
def is_busday(
    dates: Any, weekmask: Any = None, holidays: Any = None, busdaycal: Any = None, out: Any = None
) -> ndarray:
    """Whether dates are business days."""
    days = _calendar(weekmask, holidays, busdaycal)
    return stored(
        "is_busday", on_blocks(lambda x: np.is_busday(x, **days), [_dates(dates)], "is_busday"), out
    )


@numpy_function(np.busday_offset, front=shortened(np.busday_offset, 5, AS_BROADCAST, _CALENDAR | {"roll"}))
def busday_offset(
    dates: Any,
    offsets: Any,
    roll: Any = "raise",
    weekmask: Any = None,
    holidays: Any = None,
    busdaycal: Any = None,
    out: Any = None,
) -> ndarray:
    """Dates moved to a business day, by the rule `roll`, and so many business days on."""
    days = _calendar(weekmask, holidays, busdaycal)
    dates = _dates(dates)
    if roll == "raise" and not reductions.all(is_busday(dates, **days)):
        raise ValueError("Non-business day date in busday_offset")
    moved = on_blocks(
        lambda x, n: np.busday_offset(x, n, roll=roll, **days), [dates, offsets], "busday_offset"
    )
    return stored("busday_offset", moved, out)


@numpy_function(np.busday_count, front=shortened(np.busday_count, 4, AS_BROADCAST, _CALENDAR))
def busday_count(
    begindates: Any,
    enddates: Any,
    weekmask: Any = None,
    holidays: Any = None,
    busdaycal: Any = None,
    out: Any = None,
) -> ndarray:
    """How many business days lie between dates, the second ones excluded."""
    days = _calendar(weekmask, holidays, busdaycal)
    both = [_dates(begindates), _dates(enddates)]
    found = on_blocks(lambda x, y: np.busday_count(x, y, **days), both, "busday_count")
    if any(bool(reductions.any(ufuncs.isnat(d))) for d in both):
        raise ValueError("Cannot compute a business day count with a NaT (not-a-time) date")
    return stored("busday_count", found, out)


def _calendar(weekmask: Any, holidays: Any, busdaycal: Any) -> dict[str, Any]:
    """The keywords that say which days are business days."""
    given = {"weekmask": forced(weekmask), "holidays": forced(holidays), "busdaycal": busdaycal}
    days = {name: value for name, value in given.items() if value is not None}
    if "busdaycal" in days and len(days) > 1:
        raise ValueError("Cannot supply both the weekmask/holidays and the busdaycal parameters")
    return days


@numpy_function(
    np.datetime_as_string,
    front=shortened(np.datetime_as_string, 4, AS_GIVEN, frozenset({"unit", "timezone", "casting"})),
)
def datetime_as_string(
    arr: Any, unit: Any = None, timezone: Any = "naive", casting: Any = "same_kind"
) -> ndarray:
    """Dates as text; how long `unit="auto"` makes it depends on all of them."""
    dates = as_handle(arr)
    if unit == "auto":
        return gathered(np.datetime_as_string, dates, unit, timezone, casting)  # type: ignore[no-any-return]
    np.datetime_as_string(np.zeros(1, dates.dtype), unit, timezone, casting)  # its errors
    return on_blocks(
        lambda x: np.datetime_as_string(x, unit, timezone, casting), [dates], "datetime_as_string"
    )


# --- bytes of elements -------------------------------------------------------------------------------


def byteswapped(a: Handle) -> ndarray:
    """The bytes of each element reversed."""
    found = on_blocks(lambda x: x.byteswap(), [a], "byteswap")
    return found if found.ndim or a._cell.frozen else copied(found)


def bytes_as(a: Handle, dtype: Any, offset: int) -> ndarray:
    """The bytes of each element from an offset on, as another dtype."""
    return on_blocks(lambda x: x.getfield(dtype, offset).copy(), [a], "getfield")


__all__ = [
    "busday_count",
    "busday_offset",
    "datetime_as_string",
    "is_busday",
]
