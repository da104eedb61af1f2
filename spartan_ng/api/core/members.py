"""Where a line of integers has each of its values, for programs that ask for one after the other.

`for k in range(n): x[labels == k]` compares all labels n times, and looks through as many masks. Once a line
has been compared with a few numbers, its places are written down, one value after the other, in a few passes
over it; the mask of a value is then written at its places alone, and what the mask keeps is copied from
there. That is never dearer than twice the best. Places are kept with the leaf that graphs have of the line,
and of a mask: whatever is written to these is not that leaf any more.

Karlin, Manasse, Rudolph, Sleator: Competitive snoopy caching (Algorithmica 1988), renting and buying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBERS
from spartan_ng.api.core.quick import grouped, taken_at
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.graph.node import Node

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_INTEGERS = frozenset({int}) | frozenset(t for t in NUMBERS if issubclass(t, np.integer))
_CODES = frozenset("ilq")
"""Of dtypes as wide as what is written down."""


class _Groups:
    """The places of each value of a line, after those of lesser ones."""

    __slots__ = ("_firsts", "_least", "_places")

    def __init__(self, least: int, firsts: Any, places: Any) -> None:
        self._least, self._firsts, self._places = least, firsts, places

    def of_value(self, value: int) -> Any:
        """Where the line has a value, from its start to its end."""
        at = value - self._least
        if not 0 <= at < len(self._firsts) - 1:
            return self._places[:0]
        return self._places[self._firsts[at] : self._firsts[at + 1]]


_groups: WeakKeyDictionary[Node, _Groups | None] = WeakKeyDictionary()
"""Those of lines; None of lines that have too many values."""
_members: WeakKeyDictionary[Node, Any] = WeakKeyDictionary()
"""Where masks are true."""


def equal_to(a: Handle, value: Any) -> ndarray | None:
    """`a == value`, of a line whose places are known; None where all of it is to be compared."""
    cell = a._cell
    line = cell.value
    if a._views or grouped is None or type(line) is not np.ndarray or line.dtype.char not in _CODES:
        return None
    if type(value) not in _INTEGERS or line.ndim != 1 or cell.shared or cell.borrowed or cell.blank:
        return None
    cell.tests += 1
    if not door.is_grouped(cell.tests, line.nbytes):
        return None
    node = cell.node  # another thread may write to the line meanwhile, but not to this leaf
    groups = _groups_of(node)
    if groups is None:
        return None
    places = groups.of_value(int(value))
    mask = np.zeros(node.shape, bool)
    mask[places] = True
    found = wrap(mask)
    _members[found._cell.node] = places
    return found


def _groups_of(node: Node) -> _Groups | None:
    try:
        return _groups[node]
    except KeyError:
        line = None if node.data is None else node.data.value
        found = None if line is None or grouped is None else grouped(line)
        groups = _groups[node] = None if found is None else _Groups(*found)
        return groups


def kept_by_mask(shown: Any, mask: Handle) -> Any:
    """What NumPy's array has where a mask is true whose places are known; None of any other, or where that is
    not small."""
    node = mask._cell._node
    places = None if node is None or mask._views else _members.get(node)
    if places is None or not shown.ndim or len(shown) != node.shape[0]:  # type: ignore[union-attr]
        return None
    return taken_at(shown, places) if door.is_small(len(places) * (shown.nbytes // len(shown))) else None
