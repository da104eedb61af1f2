"""New processes whose first runs are measured, so that they differ by what they run alone.

Each finds the package's byte code written, as installations write it. Each finds memory that the machine has:
a virtual one may have given it back to its host while it was idle, and is given it again page by page, which
takes ten times as long as a program's first touch of a page does otherwise. So another process has touched as
much memory, and ended, just before.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec

_TOUCHED_BYTES = 1 << 30
"""More than the first run of any program measured so makes arrays of."""
_TOUCH = """
import mmap, sys
n = int(sys.argv[1])
memory = mmap.mmap(-1, n, mmap.MAP_PRIVATE)
memory.madvise(mmap.MADV_HUGEPAGE)
memory[:: mmap.PAGESIZE] = bytes(n // mmap.PAGESIZE)
"""
_NO_BYTE_CODE = "PYTHONDONTWRITEBYTECODE"


def run_fresh(
    command: list[str], environment: Mapping[str, str] | None = None, limit_s: float | None = None
) -> str:
    """What a new process of Python prints, which is given these arguments and environment variables.

    Raises subprocess.CalledProcessError where it fails, subprocess.TimeoutExpired where it is not done after
    `limit_s` seconds.
    """
    _write_byte_code()
    subprocess.run([sys.executable, "-S", "-c", _TOUCH, str(_TOUCHED_BYTES)], check=True)
    inherited = {name: value for name, value in os.environ.items() if name != _NO_BYTE_CODE}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=True,
        timeout=limit_s,
        env={**inherited, **(environment or {})},
    ).stdout


@cache
def _write_byte_code() -> None:
    """Once for all processes."""
    package = find_spec("spartan_ng")  # not imported: NumPy's own runs are measured, too
    for folder in (package and package.submodule_search_locations) or ():
        compileall.compile_dir(folder, quiet=2)
