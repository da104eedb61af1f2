"""Arrays of ours around what they show: cells, NumPy's values, nodes, and what a mask keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core.cell import Cell, Masked
from spartan_ng.api.core.chains import Views
from spartan_ng.api.core.errstate import note, quieten
from spartan_ng.api.core.kinds import is_subclass
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.numbers import as_number
from spartan_ng.callers import warn_user
from spartan_ng.error_state import error_state
from spartan_ng.graph import build
from spartan_ng.graph.node import Node

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_new = object.__new__


def make(cell: Cell, views: Views = (), of: type | None = None) -> ndarray:
    """An array over a cell; `of` is a class of ours."""
    h = object.__new__(Late.ndarray if of is None else of)
    h._cell = cell
    h._views = views
    h._state = None
    return h  # type: ignore[no-any-return]


def wrap(value: Any) -> ndarray:
    """An array for a NumPy value that nobody else will write to.

    A NumPy scalar stays one, and so does an array of a subclass.
    """
    if type(value) is not np.ndarray:
        if not isinstance(value, np.ndarray):
            return as_number(value)  # type: ignore[no-any-return]
        if is_subclass(value):
            return value  # type: ignore[return-value]
    cell = _new(Cell)
    cell.value = value
    h = _new(Late.ndarray)
    h._cell = cell
    h._views = ()
    h._state = None
    return h  # type: ignore[no-any-return]


Late.wrap = wrap  # the methods of numbers make arrays


def wrap_node(node: Node) -> ndarray:
    """An array for a node; one without axes is what NumPy would return as a scalar."""
    note(node)
    if node.shape:
        return make(Cell(node=node))
    if not node.dtype.isnative:
        node = build.cast(node, node.dtype.newbyteorder("="))
    h = _new(Late.number_of(node.dtype.type))
    h._cell, h._views, h._state = Cell(node=node, frozen=True), (), None
    return h  # type: ignore[no-any-return]


def wrap_array(node: Node) -> ndarray:
    """An array for a node, also for one without axes: a number's class and cell know no writes."""
    note(node)
    return make(Cell(node=node))


def wrap_masked(masked: Masked, computed: bool = False) -> ndarray:
    """An array whose shape is not known yet; `computed` are also elements that its mask leaves out."""
    (quieten if computed else note)(masked.a)
    return make(Cell(masked=masked))


def converted_node(node: Node, dtype: np.dtype[Any]) -> Node:
    """A program's own conversion of elements, which it is told of where imaginary parts are lost."""
    if node.dtype.kind == "c" and dtype.kind in "iuf":
        warn_user("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)
        node = build.map_("real", node)
    loses = error_state().is_strict and not np.can_cast(node.dtype, dtype)
    if loses or (node.dtype.hasobject and not dtype.hasobject):
        return make(Cell(wrap_node(node)._force().astype(dtype)))._node()
    return build.cast(node, dtype)
