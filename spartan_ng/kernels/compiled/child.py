"""The compiler's own process: sources come in on its standard input, machine code goes out on its output.

Numba is Python, and would hold the lock of the interpreter that wants to compute. So it runs here, at a lower
priority, as a program that knows of the package nothing but what kernels call. What goes out is an object
file with one function, which needs nothing but the C library: see `native`. Each message, in and out, is its
length in eight bytes, and then that many bytes. When nobody is left to send any, the process ends at once,
whatever it is doing.

Started with a folder, it is the heir of programs that have ended, see `heir`: sources lie there, and machine
code is put there.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

NICENESS = 2
"""How far the compiler stands back: it gets two fifths of a core that it shares. Further back, what it saves
comes too late."""
MACHINE_CODE, FAILURE = b"o", b"f"
"""First byte of an answer; the rest is an object file, or why there is none."""
_LENGTH_BYTES = 8
_PACKAGE = "spartan_ng.kernels.compiled"


def read_message(descriptor: int) -> bytes | None:
    """The next message from a pipe; None at its end."""
    length = _read(descriptor, _LENGTH_BYTES)
    return None if length is None else _read(descriptor, int.from_bytes(length, "little"))


def write_message(descriptor: int, message: bytes) -> None:
    """Send a message into a pipe."""
    left = memoryview(len(message).to_bytes(_LENGTH_BYTES, "little") + message)
    while left:
        left = left[os.write(descriptor, left) :]


def _read(descriptor: int, nbytes: int) -> bytes | None:
    parts = []
    while nbytes:
        part = os.read(descriptor, min(nbytes, 1 << 20))
        if not part:
            return None
        parts.append(part)
        nbytes -= len(part)
    return b"".join(parts)


def _serve(requests: int, answers: int) -> None:
    """Compile what is asked for, one kernel after the other."""
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def receive() -> None:
        while (message := read_message(requests)) is not None:
            waiting.put(message)
        os._exit(0)

    threading.Thread(target=receive, daemon=True).start()
    while True:
        name, _, source = waiting.get().decode().partition("\n")
        try:
            answer = MACHINE_CODE + _compile(name, source)
        except Exception as error:  # noqa: BLE001  # whatever it is, the loop is interpreted instead
            answer = FAILURE + f"{type(error).__name__}: {error}".encode()
        write_message(answers, answer)


def _compile(name: str, source: str) -> bytes:
    """An object file with the function `name`: the source's `kernel`, as its entry calls it."""
    from spartan_ng.kernels.compiled.instructions import BeyondError
    from spartan_ng.kernels.compiled.lowering import lower_to_llvm
    from spartan_ng.kernels.compiled.machine import object_file

    try:
        text, function = lower_to_llvm(name, source), name
    except BeyondError:
        text, function = _lowered_by_numba(name, source)
    return object_file(text, function, name)


def _lowered_by_numba(name: str, source: str) -> tuple[str, str]:
    """LLVM's text of a source that `lower_to_llvm` knows in part, and what the entry is called there."""
    module = ModuleType(name)
    sys.modules[name] = module  # numba looks up the module of a function by its name
    try:
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
        found = _entry(module.__dict__["kernel"])
    finally:
        del sys.modules[name]
    return found.library.get_llvm_str(), found.fndesc.llvm_func_name


def _entry(kernel: Any) -> Any:
    """The function that makes a table of an address and calls the kernel, compiled."""
    import numpy as np
    from numba import types

    from spartan_ng.kernels.compiled.intrinsics import array_at, compiled

    def entry(address: Any, lines: Any, columns: Any) -> None:
        kernel(array_at(address, (lines, columns), np.int64))

    function = compiled(entry)
    function.compile((types.int64, types.int64, types.int64))
    (found,) = function.overloads.values()
    return found


def _without_front_door(directory: Path) -> None:
    """Make the package's modules importable, without importing the package itself: kernels need little."""
    for parts in range(1, _PACKAGE.count(".") + 2):
        name = ".".join(_PACKAGE.split(".")[:parts])
        package = ModuleType(name)
        package.__path__ = [str(directory.joinpath(*name.split(".")))]
        sys.modules[name] = package


def _without_blas() -> None:
    """Have numba find none: no kernel calls it, and the import of SciPy's takes longer than numba's own."""
    sys.modules["scipy"] = None  # type: ignore[assignment]


def _quiet() -> tuple[int, int]:
    """The pipes to and from who started the process; what anybody else prints goes nowhere."""
    pipes = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    return pipes


def _give_way() -> None:
    from spartan_ng.system.processes import give_way

    give_way(NICENESS)


def main(arguments: list[str]) -> None:
    """Serve until the input ends, or compile what lies in a folder: the first of `arguments`, or nothing. The
    others are the directories that the parent imports from."""
    requests, answers = _quiet()
    folder, *paths = arguments
    sys.path += [p for p in paths if p not in sys.path]
    _without_front_door(Path(__file__).resolve().parents[3])
    _without_blas()
    if folder:
        from spartan_ng.kernels.compiled.heir import inherit

        inherit(Path(folder), _compile)
    else:
        _give_way()
        _serve(requests, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
