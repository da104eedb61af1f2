"""How many bytes pass through memory: the one count, for nodes of graphs, drafts of stages, and stages.

A pass reads the parts of an array that its views show, each once, however many of its steps look at them.
What it reads against the order in which it lies counts more, as does what it writes.
Fusion, which compares plans that read the same arrays alike, leaves out in which order that is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

from spartan_ng.costs.tuned import TURNED, WRITTEN

Array = TypeVar("Array", bound=Hashable)
Seen = tuple[Array, int, bool]
"""An array, how many of its elements a view shows, and whether a pass goes against their order."""


class ArrayBytes(NamedTuple):
    """An array as it is stored: all its elements, and the bytes that they take."""

    size: int
    nbytes: int


def touched(
    seen: Iterable[Seen[Array]], written: Iterable[Array], stored: Callable[[Array], ArrayBytes]
) -> dict[Array, int]:
    """Bytes of each array that a pass reads or writes, those that take longer several times.

    Parameters
    ----------
    seen : what each view shows
    written : the results
    stored : how an array is stored
    """
    shown: dict[Array, int] = {}
    turned = set[Array]()
    for array, elements, is_turned in seen:
        shown[array] = shown.get(array, 0) + elements
        if is_turned:
            turned.add(array)
    found = {}
    for array, elements in shown.items():
        size, nbytes = stored(array)  # views that lie over each other show together no more than there is
        found[array] = read_bytes(nbytes * min(elements, size) // max(size, 1), array in turned)
    for array in written:
        found[array] = written_bytes(stored(array).nbytes)
    return found


def read_bytes(nbytes: int, turned: bool = False) -> int:
    """What so many bytes count that are read."""
    return nbytes * TURNED if turned else nbytes


def written_bytes(nbytes: int) -> int:
    """What so many bytes count that are written."""
    return nbytes * WRITTEN
