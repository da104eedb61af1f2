"""Second copies of arrays, on other workers than their tiles, so that a lost worker need not be made up for.

A user asks for one by `checkpoint(*arrays)`. By itself a session makes them where computing again all that
lives would take longer than `config.recover_s`, and copying takes at most a fiftieth of the time it saves; a
copy of an array that nobody has any more stays until there are later ones.

Young's interval between checkpoints (CACM 17(9), 1974) weighs the same two by how often machines fail. That
is not known here, so the share of time is bounded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

from spartan_ng.arrays import ArrayRef
from spartan_ng.backends.protocol import Losing
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import SpartanError, WorkersChanged
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.lineage import Origin, origin_of
from spartan_ng.memory import available_bytes

_log = logging.getLogger(__name__)
_SHARE = 50
"""Copying takes at most one part in so many of the time that has been worked."""
_TRIES = 8
"""To copy arrays, while workers come and go."""
_MEMORY_SHARE = 4
"""What is copied without being asked for takes at most one part in so many of a worker's memory, or of this
machine's, where workers have no budget."""


class Replicas:
    """The second copies of arrays that the workers behind `losing` have."""

    def __init__(self, losing: Losing) -> None:
        self._losing = losing
        self.copies: WeakKeyDictionary[Origin, ArrayRef] = WeakKeyDictionary()
        """By where the array came from, which a copy must not know: it would keep itself."""
        self.had_others = False
        """Whether a worker has ever had another one, when arrays were to be copied."""
        self._making = False
        self._at_s = 0.0
        """When the last were made without being asked for, in seconds of work."""

    def make(self, refs: Iterable[ArrayRef], evaluate: Callable[[list[Node]], list[ArrayRef]]) -> int:
        """Copy arrays of which each worker has a tile to other workers, of other hosts if there are any; how
        many were copied."""
        wanted = [ref for ref in refs if self._is_single(ref)]
        copies, changed = self._copied(wanted, evaluate), 0
        while copies is None:
            changed += 1
            if changed == _TRIES:
                raise WorkersChanged("workers come and go faster than arrays can be copied")
            copies = self._copied(wanted, evaluate)
        for ref, copy in zip(wanted if copies else (), copies, strict=True):
            copy.origin = None
            self._losing.spare(copy)
            self.copies[origin_of(ref)] = copy
        return len(copies)

    def _copied(
        self, wanted: list[ArrayRef], evaluate: Callable[[list[Node]], list[ArrayRef]]
    ) -> list[ArrayRef] | None:
        """Copies on the workers that are there now, none where there is only one; None where they change
        meanwhile."""
        shift, around = self._losing.partner()
        self.had_others = self.had_others or shift > 0
        if not shift or not wanted:
            return []
        nodes = [
            build.tile_as(build.data(ref), ref.tiling.shifted(shift, around)) for ref in wanted if ref.tiling
        ]
        try:
            return evaluate(nodes)
        except WorkersChanged:
            return None

    def use(self, ref: ArrayRef, by: ArrayRef) -> None:
        """An array is to be another one, which may be its copy: it has none any more then."""
        if self.copies.get(origin_of(ref)) is by:
            del self.copies[origin_of(ref)]

    def make_in_time(
        self,
        worked_s: float,
        profile_now: Callable[[], Profile],
        evaluate: Callable[[list[Node]], list[ArrayRef]],
    ) -> None:
        """Copy what lives, after so much work in all, where it is time to; a copy that fails is none."""
        since_s = worked_s - self._at_s
        if config.recover_s is None or since_s < config.recover_s or self._making:
            return
        profile = profile_now()
        living = [ref for ref in self._losing.living() if self._is_single(ref)]
        nbytes = sum(ref.nbytes for ref in living)
        takes_s = (
            len(living) * profile.message_ns + profile.move_ns(nbytes) // max(profile.workers, 1)
        ) / 1e9
        room = profile.memory_bytes if profile.limited else available_bytes()
        if takes_s * _SHARE > since_s or nbytes * _MEMORY_SHARE > room:
            return
        self._at_s = worked_s
        # They go only once there are later ones, from which all that lives can be made.
        before = [origin for origin in self.copies if origin.ref() is None]
        # To copy is to evaluate, which would ask for copies again.
        self._making = True
        try:
            self.make(living, evaluate)
        except SpartanError as error:
            _log.warning("arrays are not copied: %s", error)
        else:
            for origin in before:
                self.copies.pop(origin, None)
        finally:
            self._making = False

    def _is_single(self, ref: ArrayRef) -> bool:
        """Whether each of an array's elements is on one worker, and nowhere else."""
        if ref.backend is not self._losing or ref.value is not None or ref.origin is None:
            return False
        if ref.tiling is None or ref.tiling.duplicate or ref.format == "compressed":
            return False
        copy = self.copies.get(origin_of(ref))
        return not self._losing.is_lost(ref) and (copy is None or self._losing.is_lost(copy))
