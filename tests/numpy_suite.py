"""Run the tests of the installed NumPy with this package in NumPy's place.

    python -m tests.numpy_suite [--lazy] [--jobs N] [--slow] [FILES]

FILES are names of test files or parts of their paths ("test_numeric", "lib/"); all without. Each file is a
process of its own. A function passes if all its cases do; one that NumPy skips here does not count. Those
that cannot hold are listed in `outside/numpy_exceptions.toml` with their reasons; the exit code is 1 if
another one fails, or if one of them passes. Left out are the folders that test no arrays: NumPy's build
tools and type stubs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy

from tests.outside.suite import Suite, run

ROOT = Path(numpy.__file__).parent
_NO_ARRAYS = {"distutils", "f2py", "typing", "_pyinstaller"}
EXCEPTIONS = Path(__file__).parent / "outside" / "numpy_exceptions.toml"


def files(wanted: list[str]) -> list[str]:
    """NumPy's test files whose paths have one of the wanted parts."""
    found = sorted(p.relative_to(ROOT) for p in ROOT.rglob("tests/test_*.py"))
    named = [str(p) for p in found if p.parts[0] not in _NO_ARRAYS]
    return [n for n in named if not wanted or any(w in n for w in wanted)]


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.numpy_suite", description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--lazy", action="store_true", help="leave nothing to NumPy because it is small")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--slow", action="store_true", help="with the tests that NumPy marks as slow")
    parser.add_argument("--numpy", action="store_true", help="with NumPy itself: what fails on this machine")
    parser.add_argument("--details", type=Path, help="a file for every failure's last lines")
    asked = parser.parse_args(arguments)
    options = ["--lazy"] if asked.lazy else []
    options += [] if asked.numpy else ["--in-place", str(ROOT)]
    options += [] if asked.slow else ["-m", "not slow"]
    options += ["-W", "ignore:the matrix subclass is not", "-W", "ignore:Importing from numpy.matlib is"]
    environment = {"NPY_AVAILABLE_MEM": "2 GB"}  # tests that need more are skipped
    suite = Suite(ROOT, EXCEPTIONS, options, environment, "lazy" if asked.lazy else "default")
    return run(suite, files(asked.files), asked.jobs, asked.details)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
