"""What columns of pyarrow's have as NumPy's elements.

Codes of a dictionary are what they stand for, lists of one length rows. What lacks is NaN among floats, NaT
among dates, or a value that was given for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.extras import needed


class Lists(Struct, frozen=True):
    """Elements of a column that are lists of one length of numbers."""

    length: int
    dtype: np.dtype[Any]


def lists_of(schema: Any, columns: str | Sequence[str] | None) -> Lists | None:
    """What the elements of a column are lists of, where it is the one that is named; None of others."""
    if not isinstance(columns, str):
        return None
    types, kind = needed("pyarrow", "tables").types, schema.field(columns).type
    if not types.is_fixed_size_list(kind) or not is_numeric(kind.value_type):
        return None
    return Lists(kind.list_size, np.dtype(kind.value_type.to_pandas_dtype()))


def is_numeric(kind: Any) -> bool:
    """Whether elements of a type of pyarrow's are numbers or truth values of NumPy's."""
    types = needed("pyarrow", "tables").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def plain(column: Any) -> Any:
    """A column of codes or of views as one of what they stand for, which all of pyarrow's functions take."""
    arrow = needed("pyarrow", "tables")
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):
        return plain(needed("pyarrow.compute", "tables").cast(column, kind.value_type))
    if is_view_of(kind, "string"):
        return column.cast(arrow.large_string())
    return column.cast(arrow.large_binary()) if is_view_of(kind, "binary") else column


def is_view_of(kind: Any, what: str) -> bool:
    """Whether elements are views of texts ("string") or bytes ("binary"), which older versions have not."""
    asked = getattr(needed("pyarrow", "tables").types, f"is_{what}_view", None)
    return asked is not None and bool(asked(kind))


def checked_fill(fill: Any, dtype: np.dtype[Any], what: str) -> None:
    """TypeError where a value is no element of a dtype."""
    try:
        with np.errstate(invalid="ignore"):
            found = np.full((), fill, dtype)
        if dtype.kind in "mM":
            is_one = np.asarray(fill).dtype.kind not in "biufc"
        else:
            is_one = bool(found == fill or (found != found and fill != fill))  # NaN is one
    except (TypeError, ValueError, OverflowError):
        is_one = False
    if not is_one:
        raise TypeError(f"{what}: fill={fill!r} is no element of an array of {dtype}")


def numpy_elements(column: Any, dtype: np.dtype[Any], fill: Any = None) -> np.ndarray[Any, Any]:
    """The elements of a column of `plain` ones, of a dtype that is cast to `dtype`; `fill` stands for what
    lacks."""
    types = needed("pyarrow", "tables").types
    is_list = types.is_fixed_size_list(column.type)
    if column.null_count and (fill is not None or is_list):
        rows = (len(column), column.type.list_size) if is_list else (len(column),)
        value = fill if fill is not None else np.array("NaT", dtype) if dtype.kind in "mM" else np.nan
        found = np.full(rows, value, dtype)
        found[column.is_valid().to_numpy()] = numpy_elements(column.drop_null(), dtype, fill)
        return found
    if is_list:
        arrow = needed("pyarrow", "tables")
        inside = arrow.chunked_array([c.flatten() for c in column.chunks], column.type.value_type)
        return numpy_elements(inside, dtype, fill).reshape(len(column), column.type.list_size)
    if not column.null_count and (types.is_integer(column.type) or types.is_floating(column.type)):
        parts = [np.from_dlpack(part) for part in column.chunks]  # `to_numpy` imports pandas
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0, dtype)])
    own: np.ndarray[Any, Any] = column.to_numpy()
    return own.astype(dtype) if own.dtype.hasobject else own  # None is NaN, and NaT
