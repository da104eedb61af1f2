"""Files under other shapes: a leaf of its own, where elements lie in C order, and nothing is put together."""

from __future__ import annotations

from weakref import WeakValueDictionary

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph.node import Node, Op

_known: WeakValueDictionary[tuple[int, tuple[int, ...]], Node] = WeakValueDictionary()
"""By the serial of the file's own leaf: what is asked for twice is one leaf, which a pass reads once."""


def reshaped_file(ref: ArrayRef, shape: tuple[int, ...]) -> Node | None:
    """A leaf with the elements of a file's under another shape; None where they are to be put together."""
    if not ref.is_mapped:
        return None
    found = _known.get((ref.serial, shape))
    if found is None and (of := ref.reshaped(shape)) is not None:
        found = _known[ref.serial, shape] = Node(Op.DATA, None, (), (), shape, ref.dtype, data=of)
    return found
