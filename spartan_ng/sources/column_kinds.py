"""The dtypes that columns of tables have, alone and together.

Numbers, bools and dates have NumPy's own, and fit each other as NumPy promotes them. Texts are as wide as the
longest of them, which only a look at all says, and so are bytes; they fit nothing else, though NumPy would
make numbers texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.sources.column_elements import is_view_of, plain

if TYPE_CHECKING:
    from spartan_ng.sources.columns import Columns

Kind = np.dtype[Any] | None
"""Of a column; None of one that has no elements yet."""
_TEXTS = "US"


def in_lines(table: Columns, found: Any, lines: int) -> Any:
    """What was `found` in a CSV file; SourceError where its rows are not its lines."""
    if found.num_rows != lines:
        raise SourceError(
            f"{table}: {lines} lines hold {found.num_rows} rows. A text in quotes has a line break, and is "
            "not read region by region: take the breaks out, or save the table as Parquet"
        )
    return found


def kinds_of(table: Columns, schema: Any) -> list[Kind]:
    """The dtypes of a table's columns; TypeError where an array cannot have them together."""
    said = {n: _dtype_of(schema.field(n)) for n in table.names}
    if table.lists is not None:
        said = dict.fromkeys(table.names, table.lists.dtype)
    unsaid = {n for n, (_, value) in table.keys.items() if value is None}
    found = {n: None if n in unsaid else dtype for n, dtype in said.items()}
    kinds = [dtype for dtype in found.values() if dtype is not None]
    strange = [n for n, dtype in found.items() if dtype is not None and dtype.hasobject]
    is_one = len(schema.names) == 1 and bool(set(schema.names[0]) & set(";\t|"))
    texts = [n for n, dtype in found.items() if dtype is not None and dtype.kind in _TEXTS]
    if not strange and not (is_one and texts) and are_alike(kinds):
        return [_wide(table, n, dtype) for n, dtype in found.items()]
    if strange or texts:
        one = (strange or texts)[0]
        others = "" if strange or is_one else ", and others have none such"
        wrong = f"column {one!r} has elements of type {schema.field(one).type}{others}"
    else:
        each = ", ".join(f"{n!r} {dtype}" for n, dtype in found.items())
        wrong = f"its columns have no dtype in common: {each}"
    usable = [n for n, dtype in found.items() if dtype is not None and dtype.kind in "biuf"]
    way = f"ask for columns={usable}" if usable else "none of its columns has numbers"
    types = needed("pyarrow", "tables").types
    if strange and types.is_decimal(schema.field(strange[0]).type):
        raise TypeError(f"{table}: {wrong}, which no array can have: ask for dtype=float")
    if strange and types.is_fixed_size_list(schema.field(strange[0]).type):
        way = f"ask for one such column by its name (columns={strange[0]!r})"
    if is_one and not usable:
        way += "; are they separated by commas?"
    raise TypeError(f"{table}: {wrong}, which no array can have; {way}")


def _wide(table: Columns, name: str, dtype: Kind) -> Kind:
    """A dtype with the width that a column's texts need."""
    if dtype is None or dtype.kind not in _TEXTS or dtype.itemsize:
        return dtype
    value = table.keys.get(name, (None, None))[1]
    widest = len(value) if value is not None else max(map(_longest, table.parts_of(name)), default=0)
    filled = len(table.fill) if isinstance(table.fill, str | bytes) else 0
    return np.dtype(f"{dtype.kind}{max(widest, filled, 1)}")


def _longest(column: Any) -> int:
    """The characters, or bytes, of the longest element."""
    compute, types = needed("pyarrow.compute", "tables"), needed("pyarrow", "tables").types
    column = plain(column)
    is_text = types.is_string(column.type) or types.is_large_string(column.type)
    lengths = compute.utf8_length(column) if is_text else compute.binary_length(column)
    return compute.max(lengths).as_py() or 0


def _are_texts(kinds: Iterable[Kind]) -> bool:
    return any(kind is not None and kind.kind in _TEXTS for kind in kinds)


def are_alike(kinds: Sequence[Kind]) -> bool:
    """Whether columns fit each other: as texts, as bytes, or as NumPy promotes what is neither."""
    known = [kind for kind in kinds if kind is not None]
    if _are_texts(known):
        return len({kind.kind for kind in known}) == 1
    try:
        np.result_type(*known, *([] if known else [float]))
    except TypeError:
        return False
    return True


def common_kind(parts: Sequence[Columns]) -> np.dtype[Any]:
    """What all columns of some tables fit; of columns that only lack elements, NaN or NaT."""
    kinds = [kind for part in parts for kind in part.kinds if kind is not None]
    lacking = any(None in part.kinds and part.shape[0] for part in parts)
    is_other = bool(kinds) and all(kind.kind in "mM" for kind in kinds)  # it can say what lacks, or never
    is_other = is_other or _are_texts(kinds)
    return np.result_type(*kinds, *([float] if not kinds or (lacking and not is_other) else []))


def together(parts: Sequence[Columns], columns: str | Sequence[str] | None) -> Sequence[Columns]:
    """Tables of several files, with the columns of the first by their names, each with the dtype that fits
    all (`Joined` says where there is none).

    Raises
    ------
    SourceError : `columns` is None, and a file has others than the first
    TypeError : a file has texts where another has none
    """
    first = parts[0]
    for part in parts[1:] if columns is None else ():
        if set(part.names) != set(first.names):
            raise SourceError(
                f"{part} has the columns {', '.join(part.names)}, {first} has {', '.join(first.names)}: "
                "ask for those that all files have, by columns=[...]"
            )
        part.names = first.names
    for part in parts[1:]:
        if _are_texts([*first.kinds, *part.kinds]) and not are_alike([*first.kinds, *part.kinds]):
            raise TypeError(
                f"{part} has elements of dtype {part.dtype}, {first} of {first.dtype}: no dtype fits both"
            )
    with suppress(TypeError):
        fit = common_kind(parts) if any(part.kinds for part in parts) else first.dtype
        for part in parts:
            part.dtype = fit
    return parts


def _dtype_of(field: Any) -> Kind:
    """NumPy's dtype for a column, of no width yet for texts, of objects where there is none; None where all
    elements lack."""
    types = needed("pyarrow", "tables").types
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_null(kind):
        return None
    if types.is_string(kind) or types.is_large_string(kind) or is_view_of(kind, "string"):
        return np.dtype("U")
    if types.is_fixed_size_binary(kind):
        return np.dtype(f"S{kind.byte_width}")
    if types.is_binary(kind) or types.is_large_binary(kind) or is_view_of(kind, "binary"):
        return np.dtype("S")
    if types.is_timestamp(kind):  # with a time zone, too: arrow has them in UTC
        return np.dtype(f"M8[{kind.unit}]")
    try:
        found: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        return np.dtype(object)
    return found


def with_room(table: Any, fill: Any = None) -> Any:
    """A table's schema, with room for what is missing where it is missing in the table, and no number stands
    for that."""
    arrow = needed("pyarrow", "tables")
    found = table.schema
    for i, field in enumerate(found):
        is_whole = (fill is None and arrow.types.is_integer(field.type)) or arrow.types.is_null(field.type)
        if is_whole and table.column(i).null_count:
            found = found.set(i, arrow.field(field.name, arrow.float64()))
    return found


def is_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
