"""Whether a program over the driver's own arrays stays on the driver, because it ends there before its arrays
would have reached the workers.

Sending an array costs once, and every later program gains by it. How many there will be nobody knows, so each
array has a bill: what staying has cost so far beyond what the workers would have taken. Its programs stay as
long as the bill is below the price of sending it, which is never dearer than twice the best.

Karlin, Manasse, Rudolph, Sleator: Competitive snoopy caching (Algorithmica 1988), the rule of renting and
buying.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from spartan_ng.arrays import ArrayRef
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError, WorkerLost, WorkersChanged
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.windows import are_windows
from spartan_ng.ops.functions import UserFunction
from spartan_ng.planner import Planner

_VIEWS = frozenset({Op.BROADCAST, Op.SLICE, Op.TRANSPOSE})
_GROWTH = 4
"""No step of what stays is larger than so many times what it reads: the workers have the memory."""


class Bargain(Struct, frozen=True):
    """A program that stays: the arrays that would have to be sent for it, the seconds that it takes here,
    those that it took on the workers if they had the arrays, and those of sending them."""

    leaves: tuple[ArrayRef, ...]
    here_s: float
    there_s: float
    sending_s: float


class _Here(Protocol):
    """A session in this process."""

    backend: Backend

    def retire(self) -> None: ...


_S = TypeVar("_S", bound=_Here)


class Home(Generic[_S]):
    """What of a backend's programs stays on the driver.

    Parameters
    ----------
    backend, planner : of the workers, and the plans made for them
    session : makes a session of a backend in this process
    """

    def __init__(self, backend: Backend, planner: Planner, session: Callable[[EmbeddedBackend], _S]) -> None:
        self.backend, self._planner = backend, planner
        self._session = session
        self._here: _S | None = None
        self._bills: weakref.WeakKeyDictionary[ArrayRef, float] = weakref.WeakKeyDictionary()

    def here(self) -> _S:
        """The session of what stays, with a worker's budget where the driver has none itself."""
        profile = self.backend.profile
        memory_bytes = config.memory_bytes or (profile.memory_bytes if profile.limited else None)
        if self._here is None:
            self._here = self._session(EmbeddedBackend(config.threads, memory_bytes))
        elif isinstance(own := self._here.backend, EmbeddedBackend):
            own.follow(config.threads, memory_bytes)
        return self._here

    def retire(self) -> None:
        """Let go of what runs it, as soon as no array needs that."""
        if self._here is not None:
            self._here.retire()

    def bargain(
        self, roots: Sequence[Node], order: Sequence[Node], driver: Callable[[], Planner]
    ) -> Bargain | None:
        """What leaving `roots`, whose graph is `order`, to the driver costs, and saves; None where they are
        for the workers. `driver` gives the plans made for the driver."""
        # 0 asks for the planner and the workers, whatever is faster.
        if not config.small_bytes or "home" in config.disabled_passes:
            return None
        leaves = self._leaves(roots, order)
        if not leaves:
            return None
        here, there = driver(), self._planner
        try:
            here_s = here.predicted_s(here.plan(roots, order, 1)[0].plan)
            there_s = here_s
            if self._may_gain():
                there_s = there.predicted_s(there.plan(roots, order, self.backend.workers)[0].plan)
                there_s += self.backend.profile.part_s()
        except (MemoryBudgetError, WorkerLost, WorkersChanged):  # whoever runs it says what that means
            return None
        sending_s = self.backend.profile.move_ns(sum(ref.nbytes for ref in leaves)) / 1e9
        billed = sum(self._bills.get(ref, 0.0) for ref in leaves)
        # What staying would cost with this program, too: the array is bought when rent has come to its price.
        stays = billed + here_s - there_s <= sending_s
        return Bargain(tuple(leaves), here_s, there_s, sending_s) if stays else None

    def _may_gain(self) -> bool:
        """Whether all workers together are faster than the driver at anything, or have memory of their own:
        those that share its processors are not, and to plan for them would take longer than many programs."""
        theirs = self.backend.profile
        own: Profile = self.here().backend.profile
        pairs = zip(theirs.together(theirs.workers), own.together(1), strict=True)
        return theirs.limited or any(together > alone for together, alone in pairs)

    def bill(self, struck: Bargain) -> None:
        """A program has stayed: each of its arrays has its share of what that cost, by its bytes."""
        # A program that is faster here costs nothing, and earns nothing for later ones.
        regret = max(0.0, struck.here_s - struck.there_s)
        every = sum(ref.nbytes for ref in struck.leaves)
        for ref in struck.leaves:
            self._bills[ref] = self._bills.get(ref, 0.0) + regret * ref.nbytes / every

    def _leaves(self, roots: Sequence[Node], order: Sequence[Node]) -> list[ArrayRef]:
        """The arrays that would have to be sent, or none where the program cannot stay: it reads what workers
        have or files, calls a user's function, or makes more than it reads, and more than is small."""
        leaves: dict[ArrayRef, None] = {}
        for node in order:
            ref = node.data
            if isinstance(node.fn, UserFunction):
                return []
            if ref is None:
                continue
            if ref.value is None or ref.source is not None or ref.backend is self.backend:
                return []
            leaves[ref] = None
        nbytes = sum(ref.nbytes for ref in leaves)
        made = sum(root.nbytes for root in roots)
        # Views take no memory, however often they show it again, and windows' places are never made.
        windows = [n for n in order if are_windows(n)]
        shown = {*windows, *(n.inputs[1] for n in windows), *(n for n in order if n.op in _VIEWS)}
        largest = max((n.nbytes for n in order if n not in shown), default=0)
        room = max(nbytes, config.small_bytes)
        # What is made here may have to be sent after all, where workers may gain anything by that.
        fits = made <= (1 if self._may_gain() else _GROWTH) * room and largest <= _GROWTH * room
        return list(leaves) if fits else []


def is_sooner_at(home: Home[Any] | None, steps: int, nbytes: int) -> bool:
    """Whether NumPy is done at a home with so many steps on so many bytes that are there before the workers
    would be, of which each does an equal part: how long a step takes is the same for both. Nowhere else."""
    if home is None or "home" in config.disabled_passes:
        return False
    here: Profile = home.here().backend.profile
    there = home.backend.profile
    apart_ns = there.compute_ns(steps, nbytes, there.workers) + there.move_ns(nbytes)
    return here.compute_ns(steps, nbytes, 1) <= apart_ns


_of_worker: int | None = None
"""The budget that the driver has of workers."""


def keep_to_worker(backend: Backend) -> None:
    """Have the driver's own work keep to as much memory as a worker of a backend, which runs programs from
    now on, if its option says nothing: what NumPy works on at once is a part of that."""
    global _of_worker
    if _of_worker is not None and config.memory_bytes == _of_worker:
        config.memory_bytes = None
    _of_worker = None
    profile = backend.profile
    if profile.limited and config.memory_bytes is None and not isinstance(backend, EmbeddedBackend):
        _of_worker = config.memory_bytes = profile.memory_bytes


def objects_apart(
    nodes: Sequence[Node],
    there: Callable[[list[Node]], list[ArrayRef]],
    here: Callable[[list[Node]], list[ArrayRef]],
) -> list[ArrayRef]:
    """The values of `nodes`: those with Python objects on their way, which cannot leave the process, by
    `here` with all of their inputs, the others by `there`."""
    held = [root for root in dict.fromkeys(nodes) if any(n.dtype.hasobject for n in topological([root]))]
    rest = [root for root in dict.fromkeys(nodes) if root not in held]
    values = dict(zip(rest, there(rest) if rest else (), strict=True))
    values.update(zip(held, here(held), strict=True))
    return [values[root] for root in nodes]
