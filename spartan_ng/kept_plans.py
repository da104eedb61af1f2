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
import os
import sys
from collections.abc import Iterable, Sequence
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
from spartan_ng.kernels.compiled.cache import beside_kernels, kept_name, thin_out
from spartan_ng.memory import available_bytes, threads
from spartan_ng.ops.functions import users_of
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.system.ownership import why_not_own
from spartan_ng.system.processes import after_fork
from spartan_ng.system.sealed import put_sealed, read_sealed

MOST = 64
"""Plans that a process looks for, and that it leaves behind: who makes more goes on for long."""
MOST_BYTES = 1 << 18
"""What a plan may take there."""
PROGRAMS = 256
"""Programs that are known to have left plans."""
VERSIONS = 8
"""Versions of the package whose plans are kept: those of a checkout change with each edit."""
MAKERS = (
    "arrays",
    "costs",
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

_KINDS = "plan", "programs"
"""What lies there: plans, and which programs have left any, in so many bytes each."""
_PROGRAM_BYTES = 8

Found = tuple[Plan, tuple[int, ...], tuple[int, ...]]
"""A plan, and the numbers of the program's leaves and roots, as in `planner.Planned`."""
_decoder = msgpack.Decoder(tuple[bytes, tuple[int, ...], tuple[int, ...]])
"""Of a file: the plan's text, and the numbers."""


class KeptPlans:
    """The plans on disk, as one process sees them."""

    def __init__(self) -> None:
        self._asked = 0
        self._made: dict[Path, Found] = {}

    def clear(self) -> None:
        """Begin anew, as a process does."""
        self._asked = 0
        self._made.clear()

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
            folder = _folder()
        except (TypeError, ValueError, OSError, RuntimeError):  # not all of it is data; there is no folder
            return None
        return (
            folder / kept_name("plan", hashlib.sha256(bytes(frames[0])).hexdigest())
            if len(frames) == 1
            else None
        )

    def find(self, place: Path) -> Found | None:
        """The plan that an earlier process has left there, if any has."""
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

    def are_there(self) -> bool:
        """Whether an earlier process of this program has left any."""
        with suppress(OSError, RuntimeError):
            return _program() in _programs(_folder())
        return False

    def leave(self, place: Path, found: Found) -> None:
        """Have a plan be put there as this process ends."""
        if not self._made:
            at_end(self.put)
        self._made[place] = found

    def put(self) -> None:
        """Put there what is to be left."""
        made = dict(self._made)
        self._made.clear()
        for place, found in made.items():
            content = _text(found)
            with suppress(OSError):
                if content is not None and _is_our_folder(place.parent):
                    put_sealed(place, content)
                    thin_out(place.parent)
        for folder in {place.parent for place in made if place.exists()}:
            others = [program for program in _programs(folder) if program != _program()]
            put_sealed(_programs_file(folder), b"".join([_program(), *others[: PROGRAMS - 1]]))


def _program() -> bytes:
    """A name for what this process has been asked to run."""
    return hashlib.sha256("\0".join(sys.orig_argv).encode()).digest()[:_PROGRAM_BYTES]


def _programs_file(folder: Path) -> Path:
    return folder / kept_name("programs", "all")


def _programs(folder: Path) -> list[bytes]:
    """The programs that have left plans, the last one first."""
    content = read_sealed(_programs_file(folder)) or b""
    return [content[i : i + _PROGRAM_BYTES] for i in range(0, len(content), _PROGRAM_BYTES)]


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
            for kept in [kept for kind in _KINDS for kept in other.glob(kept_name(kind, "*"))]:
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


def _folder() -> Path:
    return beside_kernels(_FOLDER, _version())


def signs_of(places: Iterable[Path]) -> list[str]:
    """By what Python knows whether its byte code is of these files, or of all in these folders."""
    signs: list[str] = []
    waiting: list[str] = [str(place) for place in places]
    while waiting:
        place = waiting.pop()
        if place.endswith(".py"):
            status = os.stat(place)
            signs.append(f"{place} {status.st_size} {status.st_mtime_ns}")
        else:
            with os.scandir(place) as entries:
                waiting += sorted(e.path for e in entries if e.name.endswith(".py") or _is_room(e))
    return signs


def _is_room(entry: os.DirEntry[str]) -> bool:
    return entry.name != "__pycache__" and "." not in entry.name and entry.is_dir()


kept_plans = KeptPlans()
"""The process's view of them."""
after_fork(kept_plans.clear)
