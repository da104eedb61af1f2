"""Plans that earlier processes made: on disk beside the kernels, so that a program that starts again imports
no optimizer for plans that come again.

They are found by all that a plan depends on: the program's structure, the settings, the files of the package
that plans are made by. What one process alone knows is in none of them: plans that call users' functions,
or were made for sizes that were measured, for a bound on memory, or for arrays whose cuts follow their
elements, are not kept. Nor is anything unpickled: a plan is data. A process looks for the first of its plans,
and leaves the first that it made when it ends, where nobody waits for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, msgpack
from msgspec.structs import astuple, replace

from spartan_ng.arrays import ArrayRef
from spartan_ng.ending import at_end
from spartan_ng.graph.node import Op
from spartan_ng.kernels.compiled.cache import thin_out
from spartan_ng.memory import available_bytes, threads
from spartan_ng.ops.functions import users_of
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.starts import KEPT, earlier_plans, kept_folder, note_plans
from spartan_ng.system.ownership import why_not_own
from spartan_ng.system.processes import after_fork
from spartan_ng.system.sealed import put_sealed, read_sealed
from spartan_ng.system.signs import signs_of

MOST = 64
"""Plans that a process looks for, and that it leaves behind: who makes more goes on for long."""
MOST_BYTES = 1 << 18
"""What a plan may take there."""
VERSIONS = 8
"""Versions of the package whose plans are kept: those of a checkout change with each edit."""
MAKERS = (
    "arrays",
    "costs",
    "error_state.py",
    "graph",
    "kept_plans.py",
    "memory.py",
    "ops",
    "optimizer",
    "plan",
    "planner.py",
    "wire",
)
"""The rooms and files of the package that say what a plan is, and what file has it."""

_FOLDER = "plans"
"""What the folder of a version's plans is called, before as many digits as"""
_DIGITS = 16
"""its version has."""

_PREFIX = f"{KEPT}plan_"
"""What the names of its files begin with."""

Found = tuple[Plan, tuple[int, ...], tuple[int, ...]]
"""A plan, and the numbers of the program's leaves and roots, as in `planner.Planned`."""
_decoder = msgpack.Decoder(tuple[bytes, tuple[int, ...], tuple[int, ...]])
"""Of a file: the plan's text, and the numbers."""


class KeptPlans:
    """The plans on disk, as one process sees them."""

    def __init__(self) -> None:
        self._asked = 0
        self._met: dict[Path, Found | None] = {}
        """Those that this process has come to, with what it has made itself."""

    def clear(self) -> None:
        """Begin anew, as a process does."""
        self._asked = 0
        self._met.clear()

    def place_of(
        self, structure: Any, leaves: Sequence[ArrayRef], settings: Settings, left_out: Iterable[str]
    ) -> Path | None:
        """The file for a plan of such a program (`graph.rows.flatten`); None where there is to be none."""
        is_ours_alone = settings.profile.limited or any(ref.skewed for ref in leaves)
        if self._asked >= MOST or is_ours_alone or users_of(structure):
            return None
        self._asked += 1
        from spartan_ng.wire.values import pack

        row = tuple([value.name if isinstance(value, Op) else value for value in structure])
        asked = [astuple(value) if isinstance(value, Struct) else value for value in astuple(settings)]
        try:
            frames = pack((row, tuple(asked), tuple(sorted(left_out)), threads(), available_bytes())).frames
            if len(frames) == 1:
                return _place(hashlib.sha256(bytes(frames[0])).hexdigest())
        except (TypeError, ValueError, OSError, RuntimeError):  # not all of it is data; there is no folder
            pass
        return None

    def find(self, place: Path) -> Found | None:
        """The plan that an earlier process has left there, if any has."""
        found = _read(place)
        if found is not None:
            self.meet(place)
        return found

    def earlier(self) -> Iterator[tuple[Path, Found]]:
        """The plans that the last start of this program has come to."""
        with suppress(OSError, RuntimeError):
            for place in map(_place, earlier_plans()):
                found = _read(place)
                if found is not None:
                    yield place, found

    def meet(self, place: Path, made: Found | None = None) -> None:
        """Note that the process has come to a plan, and have it be put there as it ends where it is new."""
        if not self._met:
            at_end(self.put)
        self._met[place] = made

    def put(self) -> None:
        """Put there what is to be left."""
        met = dict(self._met)
        self._met.clear()
        for place, found in met.items():
            content = None if found is None else _text(found)
            with suppress(OSError):
                if content is not None and _is_our_folder(place.parent):
                    put_sealed(place, content)
                    thin_out(place.parent)
        if kept := [place for place in met if place.exists()]:
            note_plans([place.name.removeprefix(_PREFIX) for place in kept])


def _place(digest: str) -> Path:
    return kept_folder() / f"{_FOLDER}_{_version()}" / f"{_PREFIX}{digest}"


def _read(place: Path) -> Found | None:
    content = read_sealed(place)
    if content is None:
        return None
    from spartan_ng.wire.codec import Blob
    from spartan_ng.wire.plans import decode_plain_plan

    try:
        text, leaves, outputs = _decoder.decode(content)
        return decode_plain_plan(Blob((text,))), leaves, outputs
    except (ValueError, TypeError, LookupError):  # it was sealed by somebody who had other plans
        with suppress(OSError):
            place.unlink()
        return None


def _is_our_folder(folder: Path) -> bool:
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if why_not_own(folder) is not None:
        return False
    if is_new:
        _forget_versions(folder)
    return True


def _forget_versions(newest: Path) -> None:
    """Remove the plans of versions beyond `VERSIONS`, those first for which none has come for longest."""
    others = [other for other in newest.parent.glob(f"{_FOLDER}_{'?' * _DIGITS}") if other != newest]
    for other in sorted(others, key=lambda folder: folder.stat().st_mtime)[: 1 - VERSIONS]:
        with suppress(OSError):  # somebody else may be at it, or have something there
            for kept in list(other.glob(f"{_PREFIX}*")):
                kept.unlink(missing_ok=True)
            other.rmdir()


def _text(found: Found) -> bytes | None:
    """A plan as bytes; None where it is not data alone, takes much, or does not come back as it is."""
    from spartan_ng.wire.codec import Blob
    from spartan_ng.wire.plans import decode_plain_plan, encode_plan

    plan, leaves, outputs = found
    plan = replace(plan, key="")
    if users_of(plan):
        return None
    try:
        frames = encode_plan(plan).frames
        if len(frames) > 1 or len(frames[0]) > MOST_BYTES or decode_plain_plan(Blob(frames)) != plan:
            return None
    except TypeError:
        return None
    return msgpack.encode((bytes(frames[0]), leaves, outputs))


@cache
def _version() -> str:
    """A name for all that a plan depends on besides its program and its settings."""
    here = Path(__file__).parent
    signs = [np.__version__, *signs_of([here / maker for maker in MAKERS])]
    return hashlib.sha256("\n".join(signs).encode()).hexdigest()[:_DIGITS]


kept_plans = KeptPlans()
"""The process's view of them."""
after_fork(kept_plans.clear)
