"""Compile kernels in the background, and keep them: in the process by their source, on disk by its hash.

One daemon thread compiles, one kernel after the other; nobody else ever waits, unless they ask to. The
generated modules and the machine code (by numba's own cache) lie in a directory of the user's, see `cache`.
A compile that fails is remembered, and its loop goes on being interpreted.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spartan_ng.config import config
from spartan_ng.error_state import error_state
from spartan_ng.kernels.compiled.cache import cache_directory, forget, machine_code, put_source, remember_use

MOST_REASON = 120
"""Characters of a compiler's message that people are shown."""
PATIENCE_S = 60.0
"""How long `config.kernels = "compile"` waits for the compiler."""
_LAST_COMPILE_S = 10.0
"""How long the end of the process waits for a compile that is under way."""


@dataclass(slots=True)
class Kernel:
    """One generated loop; `function` takes its table, and is None until it is compiled, or if that failed."""

    source: str
    function: Callable[[np.ndarray[Any, Any]], None] | None = None
    failure: str = ""
    seconds: float = 0.0
    """What compiling (or loading) took."""
    requested: bool = False

    @property
    def reason(self) -> str:
        """The compiler's own words on why there is no function, in one line."""
        lines = [line.strip() for line in self.failure.splitlines()]
        return next((line for line in lines if line), "")[:MOST_REASON]

    @property
    def settled(self) -> bool:
        """Whether there is no more to wait for."""
        return self.function is not None or bool(self.failure)


class Compiler:
    """The process's kernels and the thread that compiles them."""

    def __init__(self) -> None:
        self._kernels: dict[str, Kernel] = {}
        self._queue: deque[Kernel] = deque()
        self._changed = threading.Condition()
        self._working = False
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._directory: Path | None = None

    def kernel(self, source: str) -> Kernel:
        """The kernel with this source, compiled or not."""
        with self._changed:
            return self._kernels.setdefault(source, Kernel(source))

    def request(self, kernel: Kernel) -> None:
        """Have a kernel compiled soon."""
        with self._changed:
            if self._process != os.getpid():  # a fork has no thread, and nobody will finish its queue
                self._process, self._thread, self._working = os.getpid(), None, False
            if kernel.requested:
                return
            kernel.requested = True
            self._queue.append(kernel)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="kernel compiler", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing is left to compile; whether that came in time."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._queue or self._working:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def stop(self) -> None:
        """Drop what waits, and let the kernel under way be finished: LLVM does not survive a sudden exit."""
        with self._changed:
            self._queue.clear()
            thread = self._thread if self._process == os.getpid() else None
        if thread is not None and self._working:
            self.wait(_LAST_COMPILE_S)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue:
                    self._working = False
                    self._changed.notify_all()
                    self._changed.wait()
                kernel = self._queue.popleft()
                self._working = True
            self._compile(kernel)

    def _compile(self, kernel: Kernel) -> None:
        start = time.perf_counter()
        try:
            function = self._load(kernel.source)
        except Exception as error:  # noqa: BLE001  # whatever it is, the loop is interpreted instead
            kernel.failure = f"{type(error).__name__}: {error}"
        else:
            kernel.function = function
        kernel.seconds = time.perf_counter() - start

    def _load(self, source: str) -> Callable[[np.ndarray[Any, Any]], None]:
        """The compiled function, from the disk where some process has compiled it before."""
        if self._directory is None or not self._directory.is_dir():
            self._directory = cache_directory()
        name = "spartan_ng_kernel_" + hashlib.sha256(source.encode()).hexdigest()[:32]
        path = self._directory / f"{name}.py"
        put_source(path, source)
        known = machine_code(path)
        try:
            function = _imported(name, path)
        except Exception:
            if not known:
                raise
            forget(known)  # broken, or half removed: as if nobody had compiled it before
            function = _imported(name, path)
        remember_use(path)
        return function


def _imported(name: str, path: Path) -> Callable[[np.ndarray[Any, Any]], None]:
    """The kernel of a generated module, compiled or with the machine code that numba finds beside it."""
    from numba import types

    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a path with a suffix has a loader"
    assert spec.loader is not None, "a path with a suffix has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba finds the module of a function it has cached by its name
    spec.loader.exec_module(module)
    module.kernel.compile((types.Array(types.int64, 2, "C"),))
    return module.kernel  # type: ignore[no-any-return]


compiler = Compiler()
"""The process's compiler."""
atexit.register(compiler.stop)


def wait_for_compiles(timeout_s: float) -> bool:
    """Wait until all kernels that were asked for are compiled; whether that came in time."""
    return compiler.wait(timeout_s)


def at_hand(source: str) -> Callable[[Any], None] | None:
    """The compiled function of a source, or None: NumPy has to do it (for now).

    Compiled loops report no floating-point errors: where NumPy's error state asks for more than warnings,
    there is none.
    """
    if not config.compiles or error_state().is_strict:
        return None
    kernel = compiler.kernel(source)
    if not kernel.settled:
        compiler.request(kernel)
        if config.kernels == "compile":
            compiler.wait(PATIENCE_S)
    return kernel.function
