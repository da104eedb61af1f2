"""Run the public conformance suite of the array API standard over our namespace.

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests SUITE
    pip install ndindex pytest-json-report
    python -m tests.standard_suite SUITE [--lazy] [pytest's arguments, as -k fft]

The suite's second checkout, of the standard itself, comes as its submodule. Hypothesis draws as many examples
as the suite asks for (100), but does not shrink, which takes hours where a test fails. No test is left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, settings

_LAZY = "SPARTAN_NG_SUITE_LAZY"


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """As a plugin of the suite's own run: no shrinking, and, if asked for, nothing done at once by NumPy."""
    assert settings.default is not None, "the suite has set a profile"
    phases = [p for p in settings.default.phases if p not in (Phase.shrink, Phase.explain)]
    settings.register_profile("unshrunk", parent=settings.default, phases=phases, deadline=None)
    settings.load_profile("unshrunk")
    if os.environ.get(_LAZY):
        from spartan_ng.config import config

        config.small_bytes = 0


def main(suite: str, *arguments: str) -> int:
    """Run the suite in `suite`; pytest's exit code."""
    here = str(Path(__file__).resolve().parents[1])
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "spartan_ng.api.standard",
        "PYTHONPATH": os.pathsep.join(p for p in (here, os.environ.get("PYTHONPATH")) if p),
    }
    if "--lazy" in arguments:
        environment[_LAZY] = "1"
    rest = [a for a in arguments if a != "--lazy"]
    if not any(".py" in a for a in rest):  # its other folder tests the suite itself
        rest.append("array_api_tests")
    command = [sys.executable, "-m", "pytest", "-p", "tests.standard_suite", "-q", "-rs", *rest]
    return subprocess.run(command, cwd=suite, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
