"""Where compiled kernels lie on disk: one folder for all that generated code depends on, bounded in size.

It is machine code that will be run: a folder or a file that anybody else owns, or may write, is not used.
Processes read it without locks, see `system.sealed`; what is broken is compiled anew. A lock only keeps
processes, such as the workers of a host, from compiling the same at one time. Sources that a process leaves
when it ends wait there, too, see `heir`. Beside it lies what else later processes find (`starts`,
`kept_plans`); all of it is bounded together.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from spartan_ng.ending import at_end
from spartan_ng.kernels.compiled.native import target
from spartan_ng.starts import CACHE_VARIABLE, KEPT, kept_folder
from spartan_ng.system.files import locked
from spartan_ng.system.machine import processor_kind
from spartan_ng.system.ownership import why_not_own
from spartan_ng.system.sealed import put_sealed, put_whole, read_sealed

MOST_BYTES = 1 << 28
"""What the kernels of all versions may take together, and what lies beside them."""
THINNED_S = 3600.0
"""How long nobody looks at all of them again: there may be tens of thousands."""
_STAMP = "thinned"
"""A file that was touched when somebody has looked last."""
_PREFIX = f"{KEPT}kernel_"
"""What kernels' names begin with."""
_WANTED = ".wanted"
"""Behind a kernel's name: a file with its source, which waits to be compiled."""
_APART_NS = 1 << 10
"""Between the times of these files, which say the order."""
_TITLE = 48
"""Letters of a kernel's title in its name."""
_WORDS = re.compile(r"[a-z0-9]+")
_COMPILED_WITH = (
    *("child.py", "frontend.py", "instructions.py", "intrinsics.py", "lowering.py", "machine.py"),
    *("vectors.py", "loops/dictionary_rows.py"),
)
"""The modules that make machine code of a source, or are part of it."""


def cache_directory() -> Path:
    """The folder for the kernels of this version; a temporary one where the user's cannot be written, or
    where others can, of which a warning says why."""
    base = kept_folder()
    path = base / _version()
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(exist_ok=True, mode=0o700)
        problem = why_not_own(path)
        if problem is None:
            # The only sure test: a disk may be full, or read-only, whatever permissions say.
            with tempfile.TemporaryFile(dir=path):
                pass
    except OSError:
        return _temporary_directory()
    if problem is not None:
        text = f"compiled kernels are not kept: {problem}; {CACHE_VARIABLE} names another folder"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return _temporary_directory()
    return path


def _temporary_directory() -> Path:
    path = Path(tempfile.mkdtemp(prefix="spartan_ng_kernels_"))
    at_end(partial(shutil.rmtree, path, ignore_errors=True))
    return path


def titled(title: str, source: str) -> str:
    """A kernel's source behind what it does, which its name begins with, too."""
    return f'"""{title}"""\n\n{source}'


def kernel_name(source: str) -> str:
    """The name of a kernel's file and function, which debuggers and profilers show: its title in so many
    letters, and its source's hash."""
    title = source.partition('"""\n')[0].removeprefix('"""')
    words = _WORDS.findall(title.lower()) if source.startswith('"""') else []
    digest = hashlib.sha256(source.encode()).hexdigest()[:32]
    return _PREFIX + "_".join(["_".join(words)[:_TITLE].rstrip("_"), digest] if words else [digest])


def find(directory: Path, name: str) -> bytes | None:
    """A kernel's machine code, and note its use; None, and no file left, where it is not there whole, or may
    be somebody else's."""
    return read_sealed(directory / name)


def is_kept(directory: Path, name: str) -> bool:
    """Whether some process has compiled a kernel of that name."""
    return (directory / name).exists()


def has_kernels(directory: Path) -> bool:
    """Whether some process has compiled any."""
    with os.scandir(directory) as entries:
        return any(e.name.startswith(_PREFIX) and "." not in e.name for e in entries)


def keep_code(directory: Path, name: str, code: bytes) -> None:
    """Put a kernel's machine code in place; a disk that has no room for it changes nothing."""
    put_sealed(directory / name, code)


@contextmanager
def turn(directory: Path, name: str) -> Iterator[None]:
    """Around compiling a kernel: processes that want the same one wait here. Where the folder has no locks,
    each compiles it."""
    lock = directory / f"{name}.lock"
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(locked(str(lock)))
            stack.callback(_remove, lock)
        yield


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def keep_source(directory: Path, name: str, source: str) -> Path:
    """Put a kernel's source beside its machine code, for people to read; its file."""
    path = directory / f"{name}.py"
    put_whole(path, source.encode())
    return path


def want(directory: Path, sources: Sequence[str]) -> list[Path]:
    """Put kernels' sources where who compiles them, in this order, will find them; their files."""
    now, files = time.time_ns(), []
    for i, source in enumerate(sources):
        files.append(directory / f"{kernel_name(source)}{_WANTED}")
        put_whole(files[-1], source.encode())
        with suppress(OSError):  # whoever compiles may be faster
            os.utime(files[-1], ns=(now, now - i * _APART_NS))
    return files


def waiting_sources(directory: Path) -> list[Path]:
    """The files of the sources that wait to be compiled, those of the last program first: what it asked for
    is what comes again."""
    with suppress(OSError):  # one may be taken meanwhile
        files = directory.glob(f"{_PREFIX}*{_WANTED}")
        return sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)
    return []


def take_source(file: Path) -> tuple[str, str] | None:
    """The name and the source of a kernel that waits, which does so no longer; None where it is compiled, or
    the file is not what we put there. OSError where it cannot be taken away."""
    # What others have put there is removed unread, and never compiled.
    source = file.read_text() if why_not_own(file) is None else ""
    # Of several that look, one can remove it: that one compiles it.
    file.unlink()
    name = kernel_name(source)
    return None if file.name != f"{name}{_WANTED}" or is_kept(file.parent, name) else (name, source)


def thin_out(directory: Path) -> None:
    """Once in a while, remove what is beyond `MOST_BYTES` of all versions' kernels, and of what lies beside
    them; `directory` is one's."""
    stamp = directory.parent / _STAMP
    with suppress(OSError):
        # A stamp of the future, as of a clock that was set back, is none.
        if stamp.exists() and abs(time.time() - stamp.stat().st_mtime) < THINNED_S:
            return
        stamp.touch()
        _thin_out(directory.parent, MOST_BYTES)


def _thin_out(base: Path, most_bytes: int) -> None:
    """Remove what was used least recently, of any version, until the rest takes less."""
    files: list[tuple[float, int, Path]] = []
    for file in base.rglob(f"{KEPT}*"):
        with suppress(OSError):
            status = file.stat()
            files.append((status.st_mtime, status.st_size, file))  # reading sets the time
    left = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if left <= most_bytes:
            break
        left -= size
        with suppress(OSError):  # others may have been faster
            file.unlink()
            file.parent.rmdir()  # only where nothing is left


def _version() -> str:
    """A name for all that machine code depends on besides a kernel's source."""
    ours = b"".join((Path(__file__).parent / name).read_bytes() for name in _COMPILED_WITH)
    theirs = [f"numpy {np.__version__}", *map(_version_of, ("numba", "llvmlite"))]
    # The system's own word for the processor first: LLVM's takes an import at each start.
    text = " ".join([sys.version, *theirs, processor_kind() or target()])
    return hashlib.sha256(ours + text.encode()).hexdigest()[:16]


def _version_of(library: str) -> str:
    """Which version of a library there is, in its own file's words: it is not imported for that."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        raise ImportError(library)
    file = Path(spec.origin).with_name("_version.py")
    if file.exists():
        return f"{library} {file.read_text()}"
    from importlib.metadata import version

    return f"{library} {version(library)}"
