"""Programs in processes of their own that find nothing of what earlier starts have left on disk.

Whatever came to a plan before begins to import the session beside the program, which takes as long as that
thread is given a processor, and finds plans and kernels: who counts calls would count others, now and then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from spartan_ng.starts import CACHE_VARIABLE


def first_start(folder: Path, *command: str) -> str:
    """What Python prints for a command, where a folder that is empty has all that is kept."""
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, CACHE_VARIABLE: str(folder)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
