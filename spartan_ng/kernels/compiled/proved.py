"""Proofs that the last start of this program has seen: what gave one then need give none again.

A proof (`proof`) says that machine code, called with the tables of a layout, computes what the interpreter
does. That stays true from one start to the next where the code, the stage, its tile, its operands' layout,
and the files of the package that make tables of these are the same: its digest is of them all. So what lies
in a kernel's file since then proves itself before it is used. A process notes what has proved itself, and
leaves it when it ends, where nobody waits for it.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from spartan_ng.ending import at_end
from spartan_ng.kernels.compiled.cache import find, kernel_name
from spartan_ng.kernels.compiled.compile import compiler
from spartan_ng.kernels.compiled.prepared import Compiled, Signature
from spartan_ng.starts import KEPT, keep_newest, program_name
from spartan_ng.system.processes import after_fork
from spartan_ng.system.sealed import put_sealed, read_sealed
from spartan_ng.system.signs import signs_of

MOST = 64
"""Proofs that a process notes: who comes to more goes on for long."""
MAKERS = ("arrays", "costs", "kernels", "ops", "plan")
"""The rooms of the package whose files say how a kernel is called, and what it is to compute."""

_PREFIX = f"{KEPT}proofs_"
"""What the names of the files begin with, which lie beside the kernels."""


class KnownProofs:
    """What has proved itself, as one process sees it."""

    def __init__(self) -> None:
        self._held: list[tuple[Compiled, Signature]] = []
        self._earlier: frozenset[bytes] | None = None

    def clear(self) -> None:
        """Begin anew, as a process does."""
        self._held.clear()
        self._earlier = None

    def note(self, body: Compiled, operands: Signature) -> None:
        """A stage, laid out for such operands, has proved itself."""
        if not self._held:
            at_end(self.put)
        if len(self._held) < MOST:
            self._held.append((body, operands))

    def recall(self, body: Compiled, operands: Signature) -> bool:
        """Whether it did so when the program started last, with the code that lies on disk now; that is noted
        again."""
        if self._earlier is None:
            self._earlier = frozenset(_read())
        found = bool(self._earlier) and _digest(body, operands) in self._earlier
        if found:
            self.note(body, operands)
        return found

    def put(self) -> None:
        """Leave word of all that was noted."""
        held, self._held = self._held, []
        with suppress(ImportError, OSError, MemoryError):  # no compiler is found, or no room for it
            found = {digest for digest in (_digest(*each) for each in held) if digest}
            if found and found != set(_read()):
                put_sealed(_file(), b"".join(sorted(found)))
                keep_newest(compiler.folder, _PREFIX)


def _file() -> Path:
    return compiler.folder / f"{_PREFIX}{program_name()}"


def _read() -> list[bytes]:
    content, size = read_sealed(_file()) or b"", hashlib.sha256().digest_size
    return [content[i : i + size] for i in range(0, len(content), size)]


def _digest(body: Compiled, operands: Signature) -> bytes:
    """Of all that a proof depends on; empty where a kernel is not on disk, or a text does not say it all."""
    layout = repr((body.stage, body.tile, body.sizes, operands))
    if "..." in layout:  # of a large array
        return b""
    found = hashlib.sha256(f"{_version()}\n{layout}".encode())
    for kernel in body.kernels:
        code = find(compiler.folder, kernel_name(kernel.source))
        if code is None:
            return b""
        found.update(hashlib.sha256(code).digest())
    return found.digest()


@cache
def _version() -> str:
    package = Path(__file__).parents[2]
    return "\n".join(signs_of([package / maker for maker in MAKERS]))


known_proofs = KnownProofs()
"""The process's view of them."""
after_fork(known_proofs.clear)
