"""The wheel and the source distribution are built as they are published, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOT_SOURCES = shutil.ignore_patterns(
    ".*", "__pycache__", "*.so", "build", "dist", "*.egg-info", "node_modules"
)
COMPILER = shutil.which("cc")


def run(installed, folder, *command):
    """What a command says that sees the installed package, and not this checkout."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(installed)},
    ).stdout


@pytest.mark.slow
def test_what_is_published_is_complete_and_runs(tmp_path) -> None:
    """One test, since a build takes a while; the wheel is built from the source distribution."""
    shutil.copytree(ROOT, tmp_path / "sources", symlinks=True, ignore=NOT_SOURCES)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "built", "sources"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "absent from the `packages`" not in done.stderr + done.stdout
    (sources,) = (tmp_path / "built").glob("*.tar.gz")
    check_sources(sources)
    (wheel,) = (tmp_path / "built").glob("*.whl")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    check_modules(installed)
    check_compiled(installed, tmp_path)
    check_session(installed, tmp_path)
    check_command(installed, tmp_path)
    check_numba(installed, tmp_path)


def check_sources(path: Path) -> None:
    """Documents, tests and what the page is made of are there."""
    with tarfile.open(path) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    wanted = [
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "Makefile",
        "pyproject.toml",
    ]
    wanted += [f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")]
    wanted += [
        "setup.py",
        "spartan_ng/api/core/_quick.c",
        "spartan_ng/system/_faults.c",
        "spartan_ng/kernels/_dots.c",
        "spartan_ng/kernels/_sorts.c",
    ]
    wanted += [str(part.relative_to(ROOT)) for part in (ROOT / "spartan_ng").rglob("*.h")]
    wanted += ["apps/kmeans.py", "tests/conftest.py", "deploy/grafana.json", "spartan_ng/web/static/page.js"]
    assert set(wanted) <= names


def check_modules(installed: Path) -> None:
    """All modules are there, and no tests."""
    tops = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"spartan_ng", "spartan_ng_command.py", "spartan_ng_numba.py"}
    for top, inside in (("spartan_ng", ""), ("apps", "apps"), ("master", "master"), ("worker", "worker")):
        for path in (ROOT / top).rglob("*.py"):
            relative = path.relative_to(ROOT / top)
            if relative.parts[0] not in ("apps", "master", "worker"):
                assert (installed / "spartan_ng" / inside / relative).exists(), path
    assert (installed / "spartan_ng" / "py.typed").exists()
    assert len(list((installed / "spartan_ng" / "web" / "static").iterdir())) >= 6


def check_compiled(installed: Path, tmp_path: Path) -> None:
    """What is compiled is there and used, without its text; so is what does without."""
    core = installed / "spartan_ng" / "api" / "core"
    assert not [*core.rglob("*.c"), *core.rglob("*.h")]
    assert bool(list(core.glob("_quick*.so"))) == (COMPILER is not None)
    assert bool(list((installed / "spartan_ng" / "system").glob("_faults*.so"))) == (COMPILER is not None)
    for name in ("_dots", "_sorts"):
        found = list((installed / "spartan_ng" / "kernels").glob(f"{name}*.so"))
        assert bool(found) == (COMPILER is not None)
    program = "from spartan_ng.api.core import quick; print(quick.IS_COMPILED, quick.__file__)"
    said, where = run(installed, tmp_path, "-c", program).split()
    assert Path(where).is_relative_to(installed)
    assert said == str(COMPILER is not None)


@pytest.mark.slow
def test_without_a_compiler_there_is_a_package(tmp_path) -> None:
    """What compiles is optional: the build goes on without it."""
    for room in ("api/core", "system", "kernels"):
        shutil.copytree(ROOT / "spartan_ng" / room, tmp_path / "spartan_ng" / room, ignore=NOT_SOURCES)
    shutil.copy(ROOT / "setup.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tmp_path,
        env={**os.environ, "CC": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(name in done.stdout + done.stderr for name in ("_quick", "_faults", "_dots", "_sorts"))
    assert not list(tmp_path.rglob("*.so"))


def check_session(installed: Path, tmp_path: Path) -> None:
    """The first session of the README."""
    text = (ROOT / "README.md").read_text()
    session = next(b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if b.startswith(">>>"))
    (tmp_path / "session.txt").write_text(session)
    program = (
        "import doctest, spartan_ng; print(spartan_ng.__file__); "
        "print(doctest.testfile('session.txt', module_relative=False, optionflags=doctest.ELLIPSIS))"
    )
    where, found = run(installed, tmp_path, "-c", program).splitlines()
    assert Path(where).is_relative_to(installed)
    assert found.startswith("TestResults(failed=0")


def check_command(installed: Path, tmp_path: Path) -> None:
    """A script on a local cluster, with a page."""
    program = """
import urllib.request
import spartan_ng as np
np.config.small_bytes = 0
url = np.page().url
assert b"<title>" in urllib.request.build_opener(urllib.request.HTTPCookieProcessor).open(url).read()
print(np.arange(100_000.0).sum())
"""
    (tmp_path / "script.py").write_text(program)
    (about,) = metadata.distributions(path=[str(installed)])
    (module,) = {entry.module for entry in about.entry_points.select(name="spartan-ng")}
    said = run(installed, tmp_path, "-m", module, "run", "-n", "2", "--threads", "1", "script.py")
    assert said.splitlines()[-1] == "4999950000.0"


def check_numba(installed: Path, tmp_path: Path) -> None:
    """Who compiles has not asked for the package's way into numba, nor for the package."""
    program = """
import sys, numba, numpy
total = numba.njit(lambda a: a.sum())
assert total(numpy.ones(3)) == 3 and "spartan_ng" not in sys.modules
import spartan_ng as np
print(total(np.ones(3) + 1))
"""
    assert run(installed, tmp_path, "-W", "error", "-c", program) == "6.0\n"
