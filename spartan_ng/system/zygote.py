"""A process that has imported what servers need, and waits: each server on this machine is its fork.

A new interpreter imports for half a second before it serves, and has a copy of its own of all that it has
imported. Forks begin at once, and share those pages. The zygote itself never computes and has one thread, so
that a fork of it is as good as a new process. It is a child of the program that starts clusters, and serves
all of them: a new interpreter, or a fork of a program that has nothing but imports behind it, as the command
has (`begin_as_fork`). They say:

    program   arguments, environment, folder, and the descriptors that the fork is to have  ->  zygote
    zygote    the fork's pid, a descriptor of it, and the end of a pipe for its exit code   ->  program

It ends when the program does, and after a while without forks. A fork has the environment of the program as
it is then; what interpreters and libraries read as they begin is the zygote's, which is replaced when that
differs.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from spartan_ng.errors import ConnectionFailed
from spartan_ng.system.processes import be_called, needs_linux

IDLE_S = 30.0
"""A zygote without forks ends after this long."""
_READ_AT_START = ("SPARTAN_NG_", "PYTHON", "OMP_", "OPENBLAS_", "MKL_", "GOTO_", "LD_", "MALLOC_", "GLIBC_")
"""How variables begin that are read once, by what the zygote has loaded."""
_LENGTH = struct.Struct("!I")
_ANSWER = struct.Struct("!i")
_MOST_DESCRIPTORS = 16

Argument = str | int
"""Of a command; a number is a descriptor of ours, and the fork sees the number of its own."""


class Fork:
    """A process that a zygote has started, with what `subprocess.Popen` has of it."""

    def __init__(self, pid: int, process: int, code: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._process, self._code = process, code
        self._lock = threading.Lock()

    def __del__(self) -> None:
        os.close(self._process)
        os.close(self._code)

    def poll(self) -> int | None:
        """The exit code if the process has ended."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once the process has ended; TimeoutExpired if it does not in so many seconds."""
        code = self._ended(timeout)
        if code is None:
            assert timeout is not None, "who waits for ever comes back with a code"
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Signal the process, if it has not ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        # Not select: it cannot watch descriptors beyond 1,023.
        watch = select.poll()
        watch.register(self._process, select.POLLIN)
        if self.returncode is None and watch.poll(None if timeout is None else 1000.0 * timeout):
            with self._lock:
                if self.returncode is None:
                    told = os.read(self._code, _ANSWER.size)
                    # A zygote that was killed tells nobody's code; then its forks have most likely been, too.
                    self.returncode = _ANSWER.unpack(told)[0] if told else -signal.SIGKILL
        return self.returncode


class _Child:
    """A fork of this process, with what a zygote's program needs of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self) -> int:
        """The exit code, once it has ended."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)


class Zygote:
    """The program's end of a zygote: of a new interpreter, or of a fork that calls `serve`."""

    def __init__(self, serve: Callable[[socket.socket], object] | None = None) -> None:
        self.began_with = _read_at_start()
        self._connection, theirs = socket.socketpair()
        with theirs:
            if serve is not None:
                self.process: _Child | subprocess.Popen[bytes] = _Child(_forked(theirs, serve))
                return
            self.process = subprocess.Popen(
                [sys.executable, "-m", "spartan_ng.cli", "zygote", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": _path()},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C on the terminal is the program's alone
            )

    def close(self) -> None:
        """Have it start nothing more, and end when its forks have."""
        self._connection.close()
        # Whoever starts it is its parent, and has to take note of its end some day.
        threading.Thread(target=self.process.wait, name="zygote", daemon=True).start()

    def leave(self) -> None:
        """Have it end when its forks have; nobody here will take note of it."""
        self._connection.close()
        if isinstance(self.process, subprocess.Popen):
            self.process.returncode = 0  # without one, it warns of the process as it goes

    def fork(self, arguments: Sequence[Argument]) -> Fork:
        """Run the command `spartan-ng` with these arguments. OSError if the zygote has ended."""
        null = os.open(os.devnull, os.O_WRONLY)
        # A program may have closed its outputs; the fork's would then be whatever it opens first.
        outputs = [n if _is_open(n) else null for n in (1, 2)]
        descriptors = [*outputs, *(a for a in arguments if isinstance(a, int))]
        order = {
            "arguments": arguments,
            "environment": {**os.environ, "PYTHONPATH": _path()},
            "folder": os.getcwd(),
        }
        text = json.dumps(order).encode()
        try:
            socket.send_fds(self._connection, [_LENGTH.pack(len(text))], descriptors)
        finally:
            os.close(null)
        self._connection.sendall(text)
        told, given, _, _ = socket.recv_fds(self._connection, _ANSWER.size, 2)
        if not told:
            raise BrokenPipeError("the zygote has ended")
        return Fork(_ANSWER.unpack(told)[0], *given)


class _Zygotes:
    """The one that serves this process, if there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: Zygote | None = None
        self._owner = 0

    def begin(self, serve: Callable[[socket.socket], object]) -> None:
        with self._lock:
            assert self._now is None, "a program that has a zygote is more than its imports"
            self._now, self._owner = Zygote(serve), os.getpid()

    def leave(self) -> None:
        with self._lock:
            if self._now is not None and self._owner == os.getpid():
                self._now.leave()
                self._now = None

    def fork(self, arguments: Sequence[Argument]) -> Fork:
        with self._lock:
            for _ in range(3):  # one may end between two of our words, when it has been idle for long
                if (
                    self._now is None
                    or self._owner != os.getpid()
                    or self._now.began_with != _read_at_start()
                ):
                    if self._now is not None and self._owner == os.getpid():
                        self._now.close()
                    self._now, self._owner = Zygote(), os.getpid()
                try:
                    return self._now.fork(arguments)
                except OSError as error:
                    self._now.close()
                    self._now, why = None, error
            raise ConnectionFailed(f"no process can be started for this cluster: {why}") from why


_zygotes = _Zygotes()
atexit.register(_zygotes.leave)


def begin_as_fork(serve: Callable[[socket.socket], object]) -> None:
    """Have this process's zygote be a fork of it, which calls `serve`: what has been imported is there.

    Only where this process has imported, and nothing else: it has one thread, and says nothing half-way.
    """
    needs_linux("a cluster of this machine's processes")
    _zygotes.begin(serve)


def _forked(connection: socket.socket, serve: Callable[[socket.socket], object]) -> int:
    """The process number of a fork that is what a new process would be that has only this descriptor."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()  # Ctrl-C on the terminal is the program's alone
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) != connection.fileno():
                with suppress(OSError):  # that of the listing has been closed
                    os.close(int(name))
        serve(connection)
        code = 0
    except BaseException:  # noqa: BLE001 - a fork must not go on with what the program does
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def fork(arguments: Sequence[Argument]) -> Fork:
    """Start a process of the command `spartan-ng` with these arguments; ConnectionFailed if that fails.

    It has this process's environment, folder, output and `sys.path`, a session of its own, and the
    descriptors among the arguments.
    """
    needs_linux("a cluster of this machine's processes")
    return _zygotes.fork(arguments)


def serve_forks(connection: socket.socket, run: Callable[[list[str]], Any]) -> None:
    """Be a zygote: fork a process that calls `run` for each order, until nobody is there to give any."""
    gc.collect()
    gc.freeze()  # collections would write into every page that forks share
    codes: dict[int, tuple[int, int]] = {}
    with selectors.DefaultSelector() as events:
        events.register(connection, selectors.EVENT_READ)
        listens = True
        while listens or codes:
            # While forks run, it waits for their ends as long as that takes: it is their parent.
            ready = events.select(None if codes else IDLE_S)
            if not ready:
                return
            for key, _ in ready:
                if key.fileobj is connection:
                    if not _take(connection, run, events, codes):
                        events.unregister(connection)
                        listens = False
                else:
                    _mourn(key.fd, events, codes)


def _take(
    connection: socket.socket,
    run: Callable[[list[str]], Any],
    events: selectors.BaseSelector,
    codes: dict[int, tuple[int, int]],
) -> bool:
    """Fork what is asked for next; whether somebody was there to ask."""
    told, given, _, _ = socket.recv_fds(connection, _LENGTH.size, _MOST_DESCRIPTORS)
    if not told:
        return False
    (length,) = _LENGTH.unpack(told)
    text = b""
    while len(text) < length:
        text += (part := connection.recv(length - len(text)))
        if not part:
            return False
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        events.close()
        connection.close()
        # Were another fork's pipe open here, too, its end would not be seen.
        for descriptor in (reading, writing, *codes, *(end for _, end in codes.values())):
            os.close(descriptor)
        _begin(json.loads(text), given, run)
    process = os.pidfd_open(pid)
    socket.send_fds(connection, [_ANSWER.pack(pid)], [process, reading])
    for descriptor in (reading, *given):
        os.close(descriptor)
    # The exit code goes through a pipe, as the program is not the fork's parent, and may not wait for it.
    codes[process] = pid, writing
    events.register(process, selectors.EVENT_READ)
    return True


def _mourn(process: int, events: selectors.BaseSelector, codes: dict[int, tuple[int, int]]) -> None:
    """Tell the exit code of a fork that has ended."""
    pid, writing = codes.pop(process)
    events.unregister(process)
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):  # nobody wants to know
        os.write(writing, _ANSWER.pack(os.waitstatus_to_exitcode(status)))
    os.close(writing)
    os.close(process)


def _begin(order: Mapping[str, Any], given: Sequence[int], run: Callable[[list[str]], Any]) -> NoReturn:
    """In a fork: become what the order says, do it, and end."""
    code = 1
    try:
        os.setsid()
        for number in (1, 2):
            os.dup2(given[number - 1], number)
            os.close(given[number - 1])
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["environment"])
        sys.path[:] = order["environment"]["PYTHONPATH"].split(os.pathsep)
        be_called(f"spartan-ng {order['arguments'][0]}")
        numbers = iter(given[2:])
        run([str(next(numbers)) if isinstance(a, int) else a for a in order["arguments"]])
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - a fork must not go on with what the zygote does
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _path() -> str:
    """Children import what we can import: functions of the user's modules may refer to others."""
    return os.pathsep.join(p or os.getcwd() for p in sys.path)


def _read_at_start() -> tuple[tuple[str, str], ...]:
    """What an interpreter reads as it begins, and cannot be told later."""
    found = sorted((k, v) for k, v in os.environ.items() if k.startswith(_READ_AT_START))
    return (*found, ("executable", sys.executable))
