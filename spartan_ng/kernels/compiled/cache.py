"""Where compiled kernels lie on disk: one folder for all that generated code depends on, bounded in size.

Processes share it without locks. Files are put in place whole, and what cannot be read, whoever broke it, is
removed and compiled anew; so a folder that is deleted, or thinned out, under a process does no harm.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import numpy as np

CACHE_VARIABLE = "SPARTAN_NG_CACHE_DIR"
"""Environment variable with the directory of compiled kernels."""
MOST_BYTES = 1 << 28
"""What the kernels of all versions may take together, when a process begins to compile."""


def cache_directory() -> Path:
    """The folder for the kernels of this version; a temporary one where the user's cannot be written."""
    root = os.environ.get(CACHE_VARIABLE)
    base = Path(root) if root else Path.home() / ".cache" / "spartan_ng" / "kernels"
    path = base / _version()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="spartan_ng_kernels_"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        return path
    _thin_out(base, MOST_BYTES)
    return path


def put_source(path: Path, source: str) -> None:
    """Put a generated module in place, unless it is there already."""
    with suppress(OSError):
        if path.read_text() == source:
            return
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(descriptor, "w") as f:
        f.write(source)
    os.replace(temporary, path)


def machine_code(path: Path) -> list[Path]:
    """The files that numba and Python have put beside a generated module."""
    return list((path.parent / "__pycache__").glob(f"{path.stem}.*"))


def remember_use(path: Path) -> None:
    """Note that a kernel was of use; the module's own time is part of what its machine code is known by."""
    for file in machine_code(path):
        with suppress(OSError):
            os.utime(file)


def forget(files: list[Path]) -> None:
    """Remove files; others may have been faster."""
    for file in files:
        with suppress(OSError):
            file.unlink()


def _thin_out(base: Path, most_bytes: int) -> None:
    """Remove the kernels that were used least recently, of any version, until the others take less."""
    files: dict[str, list[Path]] = defaultdict(list)
    used: dict[str, float] = defaultdict(float)
    size: dict[str, int] = defaultdict(int)
    for file in (*base.glob("*/spartan_ng_kernel_*"), *base.glob("*/__pycache__/spartan_ng_kernel_*")):
        name = f"{file.relative_to(base).parts[0]}/{file.name.partition('.')[0]}"
        with suppress(OSError):
            status = file.stat()
            files[name].append(file)
            used[name] = max(used[name], status.st_mtime)
            size[name] += status.st_size
    left = sum(size.values())
    for name in sorted(used, key=used.__getitem__):
        if left <= most_bytes:
            break
        forget(files[name])
        left -= size[name]
        for folder in sorted({f.parent for f in files[name]}, reverse=True):  # what lies deeper first
            with suppress(OSError):
                folder.rmdir()  # only where nothing is left


def _version() -> str:
    """A name for all that machine code depends on besides a kernel's source."""
    import llvmlite
    import numba

    intrinsics = b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py")))
    text = f"{sys.version} numba {numba.__version__} llvmlite {llvmlite.__version__} numpy {np.__version__}"
    return hashlib.sha256(intrinsics + text.encode()).hexdigest()[:16]
