"""Have kernels compiled in the background, and keep them: in memory by their source, on disk by its hash.

One daemon thread waits for them, one kernel after the other, and nobody else ever does, unless they ask to. A
process of its own compiles, see `process`; machine code lies in a directory of the user's, see `cache`. What
was asked for and is not there at this process's end is compiled after it, see `heir`.
A compile that fails is remembered, and its loop goes on being interpreted.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from spartan_ng.costs.choices import COMPILE_SHARE, HOT_S, MISSED
from spartan_ng.costs.tuned import COMPILE_S, COMPILER_S
from spartan_ng.ending import at_end
from spartan_ng.events import record
from spartan_ng.kernels.compiled import native
from spartan_ng.kernels.compiled.cache import (
    cache_directory,
    find,
    has_kernels,
    is_kept,
    keep_code,
    keep_source,
    kernel_name,
    thin_out,
    turn,
    want,
)
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.process import CompileError, CompilerProcess, start_heir
from spartan_ng.system import object_files
from spartan_ng.system.processes import after_fork

MOST_REASON = 120
"""Characters of a compiler's message that people are shown."""
MOST_LATER = 64
"""Stages whose kernels are wished for at the process's end: an heir has no time for more."""
IDLE_S = 30.0
"""How long the compiler's process waits for a next kernel; starting another takes `COMPILER_S`."""


class Kernel(Struct):
    """One generated loop; `function` takes its table, and is None until it is compiled, or if that failed."""

    source: str
    function: Function | None = None
    failure: str = ""
    seconds: float = 0.0
    """What compiling (or loading) took."""
    requested: bool = False
    is_kept: bool | None = None
    """Whether it lay on disk; None until somebody asks."""
    missed_s: float = 0.0
    """Seconds that were worked without it when it was wished for last."""

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
    """The process's kernels and the thread that has them compiled."""

    patience_s: ClassVar[float] = 60.0
    """How long `config.kernels = "compile"` waits for the compiler."""

    def __init__(self) -> None:
        self._kernels: dict[str, Kernel] = {}
        self._queue: deque[Kernel] = deque()
        self._wishes: dict[str, Kernel] = {}
        self._later: dict[Hashable, Callable[[], tuple[Sequence[Kernel], float]]] = {}
        self._has_kernels: bool | None = None
        self.missed_s = 0.0
        """Seconds that kernels would have saved stages of this process, which were interpreted."""
        self._process = CompilerProcess()
        self._directory: Path | None = None
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._under_way: Kernel | None = None
        self._thread: threading.Thread | None = None

    def kernel(self, source: str) -> Kernel:
        """The kernel with this source, compiled or not."""
        with self._changed:
            return self._kernels.setdefault(source, Kernel(source))

    def request(self, kernel: Kernel) -> None:
        """Have a kernel compiled soon. One that lies on disk is there at once, where we load it ourselves: a
        thread takes longer to begin."""
        with self._changed:
            if kernel.requested:
                return
            kernel.requested = True
            if object_files.are_read_here() and self._loads_kept(kernel):
                return
            self._queue.append(kernel)
            # Begun with the first kernel, as most programs need none.
            if self._thread is None or not self._thread.is_alive():
                import subprocess  # noqa: F401 - not on that thread: a fork would leave the import's lock held

                self._thread = threading.Thread(target=self._work, name="kernel compiler", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    @property
    def pays(self) -> bool:
        """Whether kernels are worth the process that compiles them, or it is there.

        It works beside the program, which has fewer processors for so long: one that is through before any
        kernel is there would only have shared them. What it wishes for is compiled after it.
        """
        return self._process.is_there or self.missed_s >= MISSED * HOT_S

    @property
    def may_have_others(self) -> bool:
        """Whether a kernel may be there that nobody here has asked for: any lay on disk when that was asked
        first, or one has been compiled since. Where there are none, it takes longer to say which one is
        wanted than many programs have a use for."""
        if self._has_kernels is None:
            try:
                self._has_kernels = has_kernels(self.folder)
            except (ImportError, OSError, MemoryError):  # no compiler is found, or no room for it
                self._has_kernels = False
        return self._has_kernels

    def load_ahead(self) -> None:
        """Load what loads kernels, where any lie on disk: the first one takes a millisecond then, not 30."""
        try:
            if self.may_have_others:
                native.begin()
        except (ImportError, OSError, MemoryError):
            pass

    def wish(self, kernels: Sequence[Kernel], missed_s: float) -> None:
        """Have kernels compiled when this process has ended, the most missed first: for the next one."""
        with self._changed:
            self._wishes |= {k.source: k for k in kernels}
            for kernel in kernels:
                kernel.missed_s = missed_s

    def wish_at_end(self, wisher: Hashable, lay_out: Callable[[], tuple[Sequence[Kernel], float]]) -> None:
        """As `wish`, for what `lay_out` gives when this process ends; of `MOST_LATER` that wish for any."""
        with self._changed:
            if wisher in self._later or len(self._later) < MOST_LATER:
                self._later[wisher] = lay_out

    def is_kept(self, kernel: Kernel) -> bool:
        """Whether a kernel lay on disk when that was asked first."""
        if kernel.is_kept is None:
            try:
                kernel.is_kept = is_kept(self.folder, kernel_name(kernel.source))
            except (ImportError, OSError, MemoryError):  # no compiler is found, or no room for it
                kernel.is_kept = False
        return kernel.is_kept

    def wait_if_worth(self, kernels: Sequence[Kernel], expected_s: float) -> None:
        """Wait for kernels that were asked for, if what is to be done takes so long without them: for those
        that lie on disk, and for others no longer than they take to pay."""
        waiting = [k for k in kernels if not k.settled]
        # To load one takes milliseconds, whatever it would pay.
        if waiting and all(map(self.is_kept, waiting)):
            self._wait_for(waiting, expected_s)
        elif expected_s > COMPILE_SHARE * self._compiling_s(len(waiting)):
            self._wait_for(waiting, expected_s / COMPILE_SHARE)

    def _compiling_s(self, count: int) -> float:
        """Seconds that so many kernels are expected to take from now on."""
        return count * COMPILE_S + (0.0 if self._process.has_compiled else COMPILER_S)

    def wait_if_kept(self, kernel: Kernel, timeout_s: float) -> None:
        """Wait for a kernel that was asked for and lies on disk: so long takes what is done without it."""
        if self.is_kept(kernel):
            self._wait_for([kernel], timeout_s)

    def _wait_for(self, kernels: Sequence[Kernel], timeout_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: all(k.settled for k in kernels), timeout_s)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is left to compile, by default as long as its patience lasts; whether that came
        in time."""
        deadline = time.monotonic() + (self.patience_s if timeout_s is None else timeout_s)
        with self._changed:
            while self._queue or self._under_way:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def end(self) -> None:
        """As `stop`, and leave what was asked for to be compiled after this process's end, see `heir`."""
        for lay_out in self._later.values():
            self.wish(*lay_out())
        self._later.clear()
        with self._changed:
            under_way = [] if self._under_way is None else [self._under_way]
            # A short program is through before they are there, and so would be each of its next starts.
            wished = sorted(self._wishes.values(), key=lambda kernel: -kernel.missed_s)
            asked = [*under_way, *self._queue, *wished]
            left = list(dict.fromkeys(k.source for k in asked if not k.settled))
        self.stop()
        if left and self._directory is not None and self._directory.is_dir():
            files = want(self._directory, left)
            try:
                start_heir(self._directory)
            except (CompileError, OSError):  # nobody will come for them
                for file in files:
                    file.unlink(missing_ok=True)

    def stop(self) -> None:
        """Drop what waits, and end the compiler's process for good."""
        with self._changed:
            self._queue.clear()
        self._process.stop()

    def after_fork(self) -> None:
        """In the new process: there is no thread, locks are held for ever, and the compiler is not ours."""
        for kernel in self._kernels.values():
            # Those under way in the parent are asked for again when they are needed.
            kernel.requested = kernel.settled
        self._queue.clear()
        self._wishes.clear()
        self._later.clear()
        self._process.abandon()
        self._process = CompilerProcess()
        self._begin()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._under_way = None
                self._changed.notify_all()
                is_idle = not self._changed.wait_for(lambda: self._queue, IDLE_S)
            if is_idle:
                # A compiler holds tens of megabytes that nobody may ask for again.
                self._process.rest()
            with self._changed:
                self._changed.wait_for(lambda: self._queue)
                self._under_way = kernel = self._queue.popleft()
            self._compile(kernel)

    def _compile(self, kernel: Kernel) -> None:
        start = time.perf_counter()
        try:
            with record.span("compile"):
                function = self._load(kernel.source)
        except CompileError as error:
            kernel.failure = str(error)
        except ImportError as error:
            kernel.failure = f"numba is not installed ({error})"
        except Exception as error:  # noqa: BLE001  # whatever it is, the loop is interpreted instead
            kernel.failure = f"{type(error).__name__}: {error}"
        else:
            kernel.function = function
        kernel.seconds = time.perf_counter() - start

    def _loads_kept(self, kernel: Kernel) -> bool:
        """Load a kernel that lies on disk; False where it does not, or whoever compiles it has to say why it
        cannot be loaded."""
        start, name = time.perf_counter(), kernel_name(kernel.source)
        try:
            if not self.is_kept(kernel) or (code := find(self.folder, name)) is None:
                return False
            with record.span("compile"):
                kernel.function = native.load_code(name, code)
        except Exception:  # noqa: BLE001  # as in `_compile`, which is next
            return False
        kernel.seconds = time.perf_counter() - start
        return True

    def _load(self, source: str) -> Function:
        """The compiled function, from the disk where some process has compiled it before, or does so now."""
        directory, name = self.folder, kernel_name(source)
        code = find(directory, name)
        if code is None:
            # Workers of one host begin a stage at one time: the first compiles, the others find what it made.
            with turn(directory, name):
                code = find(directory, name) or self._compiled(directory, name, source)
        return native.load_code(name, code)

    def _compiled(self, directory: Path, name: str, source: str) -> bytes:
        code = self._process.compile(name, source, native.begin)
        keep_code(directory, name, code)
        self._has_kernels = True
        keep_source(directory, name, source)
        thin_out(directory)
        return code

    def source_file(self, kernel: Kernel) -> Path:
        """Where people find the kernel's source."""
        return keep_source(self.folder, kernel_name(kernel.source), kernel.source)

    @property
    def folder(self) -> Path:
        """Where kernels lie on disk."""
        if self._directory is None or not self._directory.is_dir():
            self._directory = cache_directory()
        return self._directory


compiler = Compiler()
"""The process's compiler."""
at_end(compiler.end)
after_fork(compiler.after_fork)


def wait_for_compiles(timeout_s: float | None = None) -> bool:
    """Wait until all kernels that were asked for are compiled; whether that came in time."""
    return compiler.wait(timeout_s)
