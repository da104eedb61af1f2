"""What lost workers took with them is computed again, and no more than that: boxes, not arrays.

From the latest array to the earliest, each says which box of it has to be computed: of one that was lost the
tiles that are gone, of one that nobody kept all that is needed. The recipe's part that makes the box
(`optimizer.rewrite.regions`) says which boxes it needs of what it was made of. Then the parts run, from the
earliest to the latest, over tiles that are still there and boxes that were made before.

Resilient Distributed Datasets (NSDI '12), section 2.1, computes whole partitions again, whatever of them
somebody needs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct, field

from spartan_ng.arrays import ArrayRef, Box, box_of, box_size, box_slices, intersect
from spartan_ng.backends.protocol import Losing, Losses
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError, WorkerDied
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.lineage import Origin, Recipe, RecipePart, origin_of
from spartan_ng.ops.functions import UserFunction, named_functions
from spartan_ng.optimizer.rewrite.regions import add, containing, inside
from spartan_ng.system.processes import after_fork


class Amount(Struct, frozen=True):
    """How much was lost and computed again, in elements.

    An array on the way to a lost one, which nobody kept, has lost as large a share as those that were wanted.
    """

    lost: int = 0
    computed: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.lost + other.lost, self.computed + other.computed)


_turn = threading.RLock()
"""Whose turn it is; for all backends, as what one has lost may be made of another's arrays."""


def _begin_anew() -> None:
    """In a fork, where the thread whose turn it was is not."""
    global _turn
    _turn = threading.RLock()


after_fork(_begin_anew)


def one_at_a_time(losing: Losing) -> AbstractContextManager[Any]:
    """A thread's turn to compute again what is lost: what several need is computed once, and others find it
    there then. Where all is gone, users' functions may run on this process's threads, and wait for nobody."""
    return nullcontext() if losing.is_gone() else _turn


Evaluate = Callable[[list[Node]], list[ArrayRef]]
Run = tuple[Recipe, tuple[Origin, ...]]
"""A recipe over the arrays of these origins."""


class _NeededArray(Struct):
    """What is needed of an array, and how it is had."""

    origin: Origin
    needed: list[Box] = field(default_factory=list)
    there: dict[Box, Node] = field(default_factory=dict)
    """Boxes of it that are there, or have been computed again."""
    tiles: Mapping[Box, ArrayRef | None] | None = None

    @property
    def is_found(self) -> bool:
        """Whether it is known what is there of it."""
        return bool(self.there) or self.tiles is not None

    def part(self, box: Box) -> Node:
        """The values in a box that is needed."""
        if not self.tiles:
            return self._there(box)
        cells: list[tuple[Box, Node]] = []
        for tile, left in self.tiles.items():
            common = intersect(tile, box) if box else ()
            if common is not None:
                node = self._there(common) if left is None else inside(build.data(left), tile, common)
                cells.append((common, node))
        return _joined(cells, 0)

    def _there(self, box: Box) -> Node:
        at = containing(self.there, box)
        return inside(self.there[at], at, box)


def _joined(cells: list[tuple[Box, Node]], axis: int) -> Node:
    """One array of boxes that form a grid."""
    if axis == len(cells[0][0]):
        ((_, node),) = cells
        return node
    lines: dict[tuple[int, int], list[tuple[Box, Node]]] = {}
    for box, node in sorted(cells, key=lambda cell: cell[0]):
        lines.setdefault(box[axis], []).append((box, node))
    nodes = [_joined(line, axis + 1) for line in lines.values()]
    return nodes[0] if len(nodes) == 1 else build.concatenate(nodes, axis)


class _Step(Struct, frozen=True):
    """Boxes that one run of a part of a recipe makes."""

    part: RecipePart
    parents: tuple[Origin, ...]
    makes: tuple[tuple[Origin, Box], ...]


def computed_again(
    lost: Sequence[ArrayRef],
    losses: Losses,
    evaluate: Evaluate,
    replicas: Mapping[Origin, ArrayRef] = MappingProxyType({}),
) -> tuple[list[ArrayRef], Amount] | None:
    """New arrays with the elements of `lost`, and what that took; None where nobody knows any more what they
    came from. `replicas` are second copies of arrays.

    Each run on the way is done once, for all that is wanted of it, and let go when no more is made of it.
    """
    search = _BoxSearch(losses, replicas)
    wanted = [origin_of(ref) for ref in lost]
    for origin, ref in zip(wanted, lost, strict=True):
        search.need(origin, box_of(ref.shape))
    if not search.run():
        return None
    arrays, uses = search.arrays, Counter(wanted)
    for step in search.steps:
        uses.update({step.parents[k] for k, _ in step.part.needs})
    # The search went from the latest array back; work goes forward.
    for step in reversed(search.steps):
        needs = [(step.parents[k], box) for k, box in step.part.needs]
        nodes = step.part.recipe.over([arrays[origin].part(box) for origin, box in needs])
        for (origin, box), ref in zip(step.makes, evaluate(nodes), strict=True):
            arrays[origin].there[box] = build.data(ref)
        # Nobody needs it any more: its memory is free for the next step.
        for origin in {origin for origin, _ in needs}:
            uses[origin] -= 1
            if not uses[origin]:
                del arrays[origin]
    nodes = [arrays[origin].part(box_of(ref.shape)) for origin, ref in zip(wanted, lost, strict=True)]
    # Whole arrays that were made in one box are there as they are.
    put_together = [node for node in nodes if node.data is None]
    values = iter(evaluate(put_together) if put_together else ())
    return [next(values) if node.data is None else node.data for node in nodes], search.amount(wanted)


class _BoxSearch:
    """Which boxes are to be computed, from the latest array on."""

    def __init__(self, losses: Losses, replicas: Mapping[Origin, ArrayRef]) -> None:
        self.steps: list[_Step] = []
        """The latest first."""
        self.arrays: dict[Origin, _NeededArray] = {}
        self._losses, self._replicas = losses, replicas
        self._living: dict[Origin, ArrayRef | None] = {}
        """The arrays that somebody had when they were first asked for; they are kept meanwhile."""
        self._of_run: dict[Run, list[Origin]] = {}
        """Arrays that are needed, by the run that made them."""
        self._parts: dict[Hashable, RecipePart] = {}
        self._sizes: dict[Origin, tuple[int, int, int]] = {}
        """Of each array that is computed again its elements, those that are, and those known to be lost."""

    def need(self, origin: Origin, box: Box) -> None:
        """Somebody needs a box of an array."""
        array = self.arrays.get(origin)
        if array is None:
            array = self.arrays[origin] = _NeededArray(origin)
            run = _run_of(origin)
            if run is not None:
                self._of_run.setdefault(run, []).append(origin)
        add(array.needed, box)

    def run(self) -> bool:
        """Find all that has to be computed; False where somebody's origin is not known."""
        for run in reversed(self._runs()):
            looked = [(origin, self._look(self.arrays[origin])) for origin in self._of_run.get(run, ())]
            gone = [(origin, box) for origin, boxes in looked for box in boxes]
            if gone:
                self._compute(run, gone)
        rest = [array for array in self.arrays.values() if not array.is_found]
        return not any(self._look(array) for array in rest)

    def _runs(self) -> list[Run]:
        """The runs that arrays may have to be computed by, each behind those that it needs."""
        found: dict[Run, None] = {}
        # Without recursion: a loop's arrays lead back as far as it has run.
        stack = [run for origin in self.arrays if (run := _run_of(origin)) is not None]
        while stack:
            run = stack[-1]
            if run not in found:
                before = [r for p in run[1] if not self._is_there(p) and (r := _run_of(p)) is not None]
                missing = [r for r in before if r not in found]
                if missing:
                    stack += missing
                    continue
                found[run] = None
            stack.pop()
        return list(found)

    def _is_there(self, origin: Origin) -> bool:
        """Whether all of an array is on the workers."""
        both = (self._living_of(origin), self._replicas.get(origin))
        return any(ref is not None and not self._losses.is_lost(ref) for ref in both)

    def _living_of(self, origin: Origin) -> ArrayRef | None:
        if origin not in self._living:
            self._living[origin] = origin.ref()
        return self._living[origin]

    def _look(self, array: _NeededArray) -> list[Box]:
        """Find what is there of an array; the boxes that are not."""
        source, ref = array.origin.source, self._living_of(array.origin)
        for there in (ref, self._replicas.get(array.origin)):
            if there is not None and not self._losses.is_lost(there):
                array.there[box_of(there.shape)] = build.data(there)
                return []
        if ref is not None and ref.format == "csr":
            replica = self._replicas.get(array.origin)
            found = self._losses.sparse_left([ref] if replica is None else [ref, replica])
            if found is not None:
                array.there[box_of(ref.shape)] = build.data(found)
                return []
        # The driver has it still, and sends what is needed again.
        if isinstance(source, ArrayRef):
            array.there.update(_sent(source, box) for box in array.needed)
            return []
        array.tiles = self._tiles_left(array.origin)
        # Nobody has it, or ever kept it: all that is needed has to be made.
        if not array.tiles:
            return array.needed
        gone: list[Box] = []
        for tile, left in array.tiles.items():
            for box in array.needed if left is None else ():
                common = intersect(tile, box) if tile else ()
                if common is not None:
                    add(gone, common)
        return gone

    def _tiles_left(self, origin: Origin) -> Mapping[Box, ArrayRef | None]:
        """The tiles of an array, by any worker that has one."""
        found: dict[Box, ArrayRef | None] = {}
        for ref in (self._living_of(origin), self._replicas.get(origin)):
            if ref is not None:
                tiles = self._losses.tiles_of(ref)
                found = {box: found.get(box) or left for box, left in tiles.items()} or found
        is_whole = None not in found.values()
        # Bits are the same only of whole arrays, so that what is left of one is of no use.
        return found if is_whole or not config.reproducible else {}

    def _compute(self, run: Run, gone: list[tuple[Origin, Box]]) -> None:
        recipe, parents = run
        if config.reproducible:  # how many rows a fold has decides how it adds
            gone = [(o, box_of(recipe.roots[_output(o)].shape)) for o in dict.fromkeys(o for o, _ in gone)]
        wanted = tuple((_output(origin), box) for origin, box in gone)
        key = (recipe, wanted)
        # A loop's steps are lost alike, and to cut a recipe takes longer than to look it up.
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = recipe.within(wanted)
        self.steps.append(_Step(part, parents, tuple(gone)))
        for origin, box in gone:
            _, before, _ = self._sizes.get(origin, (0, 0, 0))
            tiles = self.arrays[origin].tiles or {}
            missing = sum(box_size(tile) for tile, left in tiles.items() if left is None)
            self._sizes[origin] = recipe.roots[_output(origin)].size, before + box_size(box), missing
        for k, box in part.needs:
            self.need(parents[k], box)

    def amount(self, wanted: Sequence[Origin]) -> Amount:
        """What was lost and computed."""
        sizes = [self._sizes[origin] for origin in dict.fromkeys(wanted) if origin in self._sizes]
        size, missing = sum(s for s, *_ in sizes), sum(m for *_, m in sizes)
        total = Amount()
        for whole, computed, gone in self._sizes.values():
            total += Amount(gone or round(whole * missing / max(size, 1)), computed)
        return total


def _run_of(origin: Origin) -> Run | None:
    """What made an array."""
    source = origin.source
    if source is None or isinstance(source, ArrayRef):
        return None
    return (source[0] if isinstance(source, tuple) else source), origin.parents


def _output(origin: Origin) -> int:
    """Which result of its run an array is."""
    return origin.source[1] if isinstance(origin.source, tuple) else 0


def _sent(ref: ArrayRef, box: Box) -> tuple[Box, Node]:
    """A driver's array, or the box of it that is all that has to be sent."""
    if ref.tiling is not None or not isinstance(ref.value, np.ndarray) or ref.source is not None:
        return box_of(ref.shape), build.data(ref)
    key: tuple[Any, ...] = box_slices(box)
    part = ref.value[(*key, ...)]
    return box, build.data(ArrayRef(part.shape, ref.dtype, value=part))


def noted(error: WorkerDied) -> WorkerDied:
    """An error that is told of later: without the frames that it came through, which have what their programs
    were made of, and itself. Arrays on workers would stay until Python looks for such circles."""
    one: BaseException | None = error
    while one is not None:
        one.__traceback__ = None
        one = one.__cause__ or one.__context__
    return error


def blamed(users: tuple[UserFunction, ...], first: WorkerDied, second: WorkerDied) -> UserFunctionError:
    """What is raised where two workers have died under a job that calls users' functions."""
    return UserFunctionError(
        f"{named_functions(users)}: the processes of two workers ended while they ran this\n{first}\n{second}"
    )
