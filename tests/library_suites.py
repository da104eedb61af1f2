"""Run the tests over array API backends of the installed SciPy or scikit-learn, with this package as backend,
or the installed xarray's tests of chunked arrays but those of its file backends, with arrays of this package
for chunks.

    python -m tests.library_suites {scipy,sklearn,xarray} [--lazy] [--jobs N] [--details FILE] [FILES]

FILES are parts of the paths of test files; all without. A function passes if all its cases do. Those that
cannot hold are listed in `outside/{scipy,sklearn,xarray}_exceptions.toml` with their reasons; the exit code
is 1 if another one fails, or if one of them passes.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path

from tests.outside.backend import NAME
from tests.outside.suite import Suite, run

_CHOSEN = {
    "scipy": (
        ["--backend-of", "scipy", "-m", "array_api_backends and not slow"],
        re.compile(r"def test\w*\([^)]*\bxp\b"),
    ),
    "sklearn": (["--backend-of", "sklearn", "-k", NAME], re.compile("yield_namespace")),
    "xarray": (["--chunked"], re.compile(r"(?s)\A(?!.*xarray\.backends).*\.chunk\(")),
}
"""How pytest is told which tests take backends or chunks, and what is found in the text of their files."""


def files(root: Path, mark: re.Pattern[str], wanted: list[str]) -> list[str]:
    """Test files that may have tests over backends, and whose paths have one of the wanted parts."""
    found = [p for p in sorted(root.rglob("tests/test_*.py")) if mark.search(p.read_text())]
    named = [str(p.relative_to(root)) for p in found]
    return [n for n in named if not wanted or any(w in n for w in wanted)]


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.library_suites", description=__doc__)
    parser.add_argument("library", choices=list(_CHOSEN))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--lazy", action="store_true", help="leave nothing to NumPy because it is small")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--details", type=Path, help="a file for every failure's last lines")
    asked = parser.parse_intermixed_args(arguments)
    chosen, mark = _CHOSEN[asked.library]
    root = Path(str(importlib.import_module(asked.library).__file__)).parent
    options = [*chosen, *(["--lazy"] if asked.lazy else [])]
    exceptions = Path(__file__).parent / "outside" / f"{asked.library}_exceptions.toml"
    mode = "lazy" if asked.lazy else "default"
    suite = Suite(root, exceptions, options, {"SCIPY_ARRAY_API": "1"}, mode)
    return run(suite, files(root, mark, asked.files), asked.jobs, asked.details)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
