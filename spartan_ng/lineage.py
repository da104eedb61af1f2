"""Where evaluated arrays came from, so that what a lost worker took with it can be computed again.

An array remembers the program that made it, without its data, and where the program's leaves came from. The
programs of a loop are one object, so that a step costs a few hundred bytes. What came from the driver is
kept, within `config.keep_uploads` in memory, and beyond that on disk. Arrays that nobody needs are not kept
for the sake of others: what they were made of makes them again. What that takes is in `recovery`.

Resilient Distributed Datasets (NSDI '12), section 2.1, has the idea for partitions.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Box, box_of, box_shape
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.config import config
from spartan_ng.errors import OutOfResources
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.memory import free_disk_bytes
from spartan_ng.optimizer.rewrite.rebuild import rebuild
from spartan_ng.optimizer.rewrite.regions import restricted
from spartan_ng.scratch import on_disk

_DISK_SHARE = 4
"""An upload that is kept on disk takes at most one part in so many of what that has room for."""


class Recipe(Struct, frozen=True, eq=False):
    """A program over leaves that stand for any arrays of their shapes."""

    roots: tuple[Node, ...]
    leaves: tuple[Node, ...]

    @classmethod
    def of(cls, roots: Sequence[Node], leaves: Sequence[ArrayRef]) -> Recipe:
        """The program `roots` without what its leaves hold, of nodes of its own: others may become leaves."""
        blank = {
            ref: build.data(ArrayRef(ref.shape, ref.dtype, format=ref.format, nnz=ref.nnz)) for ref in leaves
        }

        def own(node: Node) -> Node:
            if node.data is not None:
                return blank[node.data]
            return node if node.inputs else replace(node)

        return cls(tuple(rebuild(roots, own)), tuple(blank[ref] for ref in leaves))

    def over(self, nodes: Iterable[Node]) -> list[Node]:
        """The program's results over values of the leaves."""
        leaf = dict(zip(self.leaves, nodes, strict=True))
        return rebuild(self.roots, lambda node: leaf.get(node, node))

    def within(self, wanted: Sequence[tuple[int, Box]]) -> RecipePart:
        """The program that makes boxes of some of its results, given by their numbers."""
        blank: dict[tuple[Node, Box], Node] = {}

        def leaf(node: Node, box: Box) -> Node:
            is_whole = box == box_of(node.shape)
            blank[node, box] = node if is_whole else build.data(ArrayRef(box_shape(box), node.dtype))
            return blank[node, box]

        roots, needed = restricted([self.roots[n] for n, _ in wanted], [box for _, box in wanted], leaf)
        number = {node: k for k, node in enumerate(self.leaves)}
        recipe = Recipe(tuple(roots), tuple(blank[at] for at in needed))
        return RecipePart(recipe, tuple((number[node], box) for node, box in needed))


class RecipePart(Struct, frozen=True):
    """A part of a recipe, and the leaves of the whole that it needs, by their numbers, with the boxes."""

    recipe: Recipe
    needs: tuple[tuple[int, Box], ...]


class Origin:
    """Where an array came from: `source` is a recipe over `parents`, with a number where it is another than
    the first result; or an array that came from the driver and is kept; or None for one that is not kept any
    more."""

    __slots__ = ("__weakref__", "parents", "ref", "source")

    def __init__(
        self,
        ref: ArrayRef,
        source: Recipe | tuple[Recipe, int] | ArrayRef | None,
        parents: tuple[Origin, ...] = (),
    ) -> None:
        self.ref = weakref.ref(ref)
        self.source = source
        self.parents = parents


_from_driver: weakref.WeakValueDictionary[Hashable, Origin] = weakref.WeakValueDictionary()
"""By the array's serial number: an array does not own what keeps it. Numbers, by value: steps share them."""


class Uploads:
    """The origins that keep an array of the driver's, the oldest first, and their bytes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[weakref.ref[Origin], int]] = OrderedDict()
        self._total = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, origin: Origin, ref: ArrayRef) -> None:
        """Keep one more; the oldest beyond `config.keep_uploads` go to disk, or where that has no room for
        them, are kept no longer."""
        serial, nbytes = ref.serial, 0 if _is_outside(ref) else ref.nbytes
        self._kept[serial] = weakref.ref(origin, lambda _: self._forget(serial)), nbytes
        self._total += nbytes
        while self._total > config.keep_uploads:
            oldest, (watch, _) = next(iter(self._kept.items()))
            old = watch()
            if old is not None:
                assert isinstance(old.source, ArrayRef), "what is kept has come from the driver"
                old.source = _written(old.source)
            self._forget(oldest)

    def _forget(self, serial: int) -> None:
        _, nbytes = self._kept.pop(serial, (None, 0))
        self._total -= nbytes


def _written(ref: ArrayRef) -> ArrayRef | None:
    """An array of the driver's in a file; None where it should not, or cannot, be in one."""
    value = ref.value
    if _is_outside(ref):
        return ref
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        return None
    # The disk is for arrays that are in use, first.
    if value.nbytes * _DISK_SHARE > free_disk_bytes():
        return None
    try:
        kept = on_disk(value.shape, value.dtype)
    except OutOfResources:
        return None
    np.copyto(kept, value)
    found = ArrayRef(ref.shape, ref.dtype, value=kept)
    found.on_disk = True
    return found


def _is_outside(ref: ArrayRef) -> bool:
    """Whether an array takes no memory of the driver's: a source is read again, and so is a file's map."""
    return ref.value is None or (isinstance(ref.value, np.ndarray) and is_mapped(ref.value))


_uploads = Uploads()


def record(recipe: Recipe, leaves: Sequence[ArrayRef], results: Iterable[ArrayRef]) -> None:
    """Note that `results` are those of `recipe` over `leaves`."""
    parents = tuple(origin_of(leaf) for leaf in leaves)
    for output, ref in enumerate(results):
        if ref.origin is None:
            ref.origin = Origin(ref, (recipe, output) if output else recipe, parents)


def origin_of(ref: ArrayRef) -> Origin:
    """Where an array came from."""
    if ref.origin is not None:
        return ref.origin  # type: ignore[return-value]
    is_number = (
        ref.format == "dense" and ref.shape == () and not ref.dtype.hasobject and ref.value is not None
    )
    # A loop sends the same numbers over and over, each time as a new array.
    key = (ref.dtype, ref.value.tobytes()) if is_number else ref.serial
    found = _from_driver.get(key)
    if found is None:
        found = _from_driver[key] = Origin(ref, ref if _is_there(ref) else None)
        if not is_number:
            _uploads.add(found, ref)
    return found


def _is_there(ref: ArrayRef) -> bool:
    """Whether an array's elements need no worker: they are on the driver, or in a source."""
    return ref.value is not None or ref.source is not None
