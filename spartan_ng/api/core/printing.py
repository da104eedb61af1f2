"""Printing: NumPy's own text, made from only those elements that are shown."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from spartan_ng.api.core.forcing import compute_nodes, value_of
from spartan_ng.api.core.handle import Handle
from spartan_ng.graph import build


def corners(a: Handle) -> Any:
    """The edges of a large array, with one element standing for all between them on each long axis."""
    edge = np.get_printoptions()["edgeitems"]
    node = a._node()
    for axis, n in enumerate(node.shape):
        if n <= 2 * edge + 1:
            continue
        pieces = []
        for start, length in ((0, edge + 1), (n - edge, edge)):
            starts = [start if i == axis else 0 for i in range(node.ndim)]
            shape = tuple(length if i == axis else m for i, m in enumerate(node.shape))
            pieces.append(build.slice_(node, starts, [1] * node.ndim, shape))
        node = build.concatenate(pieces, axis)
    if node.data is not None:
        return value_of(node.data)
    return value_of(compute_nodes([node])[0])


def _summarized(a: Handle) -> bool:
    return a._peek() is None and a.format != "csr" and a.size > np.get_printoptions()["threshold"]


def _summarizing() -> AbstractContextManager[Any]:
    """Options for NumPy to leave out what lies between the edges; naming one resets the formatter."""
    return np.printoptions(threshold=0, formatter=np.get_printoptions()["formatter"])


def array_repr(a: Handle) -> str:
    """`repr(a)` as NumPy has it."""
    if a._masked() is None and _summarized(a):
        part = corners(a)
        with _summarizing():
            text = repr(part)
        return _of_shape(text, part.shape, a.shape)
    value = a._force()
    if a.format == "csr":
        return f"<csr array of shape {a.shape} and dtype {a.dtype}, {a.nnz} stored elements>"  # type: ignore[attr-defined]
    return (
        repr(value if a._cell.frozen is False else value[()]) if not a._cell.frozen else _scalar_repr(value)  # type: ignore[redundant-expr]
    )


def _of_shape(text: str, edges: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """NumPy's text of the edges of an array, with the array's own shape, which may need a line of its own."""
    elements, _, more = text.rpartition(f"shape={edges}")
    line = elements[elements.rfind("\n") + 1 :]
    told = f"shape={shape}{more}"
    if line.strip() and len(line) + len(told) > np.get_printoptions()["linewidth"]:
        return f"{elements.rstrip()}\n{' ' * len('array(')}{told}"
    return elements + told


def _scalar_repr(value: Any) -> str:
    return repr(np.asarray(value)[()])


def array_str(a: Handle) -> str:
    """`str(a)` as NumPy has it."""
    if a._masked() is None and _summarized(a):
        with _summarizing():
            return str(corners(a))
    if a.format == "csr":
        return array_repr(a)
    value = a._force()
    return str(value[()] if a._cell.frozen and isinstance(value, np.ndarray) else value)
