"""The package is what its folders say: the explicit list, the links, the refusal of other names."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = ("apps", "master", "worker")


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _folders() -> set[str]:
    """Every importable folder of the checkout, by the name it is imported under."""
    names = set()
    for top in ("spartan_ng", *OUTSIDE):
        for init in (ROOT / top).rglob("*.py"):
            inside = init.parent.relative_to(ROOT).parts
            if "__pycache__" not in inside:
                names.add(".".join(inside if top == "spartan_ng" else ("spartan_ng", *inside)))
    return names


def test_listed_packages_are_the_folders() -> None:
    assert set(_project()["tool"]["setuptools"]["packages"]) == _folders()


def test_every_python_that_is_named_is_tested() -> None:
    project = _project()
    said = [c.rpartition(" ")[2] for c in project["project"]["classifiers"] if "Python :: 3." in c]
    assert project["tool"]["tox"]["env_list"][: len(said)] == said
    assert project["project"]["requires-python"] == f">={said[0]}"


def test_every_package_has_an_init() -> None:
    directories = _project()["tool"]["setuptools"]["package-dir"]
    for name in _folders():
        top = directories.get(".".join(name.split(".")[:2]))
        path = ROOT / top if top else ROOT
        rest = name.split(".")[2:] if top else name.split(".")
        assert path.joinpath(*rest, "__init__.py").is_file(), name


@pytest.mark.parametrize("name", OUTSIDE)
def test_links_lead_to_the_folders(name: str) -> None:
    link = ROOT / "spartan_ng" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..") / name


@pytest.mark.parametrize("name", OUTSIDE)
def test_folders_refuse_another_name(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"import this package as spartan_ng.{name}" in done.stderr


def test_extras_are_the_documented_ones() -> None:
    assert set(_project()["project"]["optional-dependencies"]) == {
        "apps",
        "test",
        "bench",
        "mpi",
        "telemetry",
        "dev",
        "dask",
        "ray",
        *("hdf5", "images", "notebooks", "page", "remote", "tables", "zarr"),
    }


def test_ci_runs_the_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().rstrip().endswith("make test")


def test_the_version_is_the_installed_one() -> None:
    import spartan_ng

    try:
        expected = metadata.version("spartan-ng")
    except metadata.PackageNotFoundError:
        expected = "0+unknown"
    else:
        assert expected == _project()["project"]["version"], "install again: the version has changed"
    assert spartan_ng.__version__ == expected


LIBRARIES = "scipy zmq numexpr numba llvmlite cloudpickle threadpoolctl tqdm click"
PYTHONS = "socket selectors ssl asyncio multiprocessing json html zipfile subprocess logging"
ROOMS = "session optimizer plan kernels worker wire backends"
PROGRAM = """
import sys
import spartan_ng as np
a = np.arange(12.0).reshape(3, 4)
b = a @ a.T + np.eye(3)
b[1] += np.linalg.inv(b)[0] * a.sum()
np.sort(b[b > 1]), np.random.default_rng(0).random(3), np.fft.fft(a[0]), np.mean(a, axis=0), repr(a)
print(*sys.modules)
"""


@pytest.mark.slow
def test_a_program_of_small_arrays_imports_numpy_and_no_more() -> None:
    """What it never uses is most of the time that an import takes."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    late = {*LIBRARIES.split(), *PYTHONS.split(), *(f"spartan_ng.{room}" for room in ROOMS.split())}
    assert not late & set(done.stdout.split())


def test_no_module_but_those_of_apps_makes_dataclasses() -> None:
    """Each is text that Python compiles as it is imported: 200 were half of a first computation's imports."""
    modules = [path for top in ("spartan_ng", "master", "worker") for path in (ROOT / top).rglob("*.py")]
    assert len(modules) > 300
    assert not [path for path in modules if "dataclass" in path.read_text()]


@pytest.mark.slow
@pytest.mark.parametrize("server", ["spartan_ng.master.server", "spartan_ng.worker.server"])
def test_daemons_start_without_scipy_and_compilers(server) -> None:
    """Most plans need none of them, and each process of a cluster would load them."""
    program = f"import spartan_ng.cli, {server}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"scipy", "numexpr", "numba", "llvmlite"} & set(done.stdout.split())


PLANNED = """
import gc, sys
import spartan_ng as np
begun = []
gc.callbacks.append(lambda phase, about: begun.append(phase))
with np.config.override(small_bytes=0, kernels="interpret"):
    a = np.arange(120.0).reshape(30, 4)
    print(float((np.exp(a[a > 3]) - 1).sum()), np.cumsum(a @ a.T, axis=0).max().compute(), file=sys.stderr)
print(*sys.modules)
print(begun.count("start"))
"""


def alone_in(folder: Path) -> dict[str, str]:
    """The environment of a program that finds no plans nor kernels of earlier ones."""
    return {**os.environ, "SPARTAN_NG_CACHE_DIR": str(folder)}


PASSED = """
import sys, threading
import numpy, spartan_ng as np
called = set()
def note(frame, event, about):
    if event == "call" and frame.f_code.co_name != "<module>":
        called.add(frame.f_code.co_filename)
before = {*sys.modules}
import spartan_ng.session
threading.setprofile(note)
sys.setprofile(note)
with np.config.override(small_bytes=0):
    x, y = (np.asarray(numpy.random.default_rng(i).random(300_000)) for i in range(2))
    a = x.reshape(500, 600)
    np.compute(np.sum(x * y), np.exp(x[x > 0.5]).sum(), a.mean(0))
    np.compute(a.T @ (a @ a[0]), a[:, :500] + a[:, :500].T)
sys.setprofile(None)
for name, module in sorted(sys.modules.items()):
    functions = [f for f in vars(module).values() if hasattr(f, "__code__") and f.__module__ == name]
    if name not in before and name.startswith("spartan_ng.") and functions:
        print(name, module.__file__ in called)
"""


@pytest.mark.slow
def test_a_first_pass_calls_what_it_imports(tmp_path: Path) -> None:
    """Modules whose functions it never calls are for those who do: they were half of what it waited for."""
    done = subprocess.run(
        [sys.executable, "-c", PASSED], env=alone_in(tmp_path), capture_output=True, text=True, check=True
    )
    told = [line.split() for line in done.stdout.splitlines()]
    unused = [name for name, is_called in told if is_called == "False"]
    assert len(told) - len(unused) > 80
    assert len(unused) <= 60, unused


@pytest.mark.slow
def test_a_plan_for_this_process_imports_no_sockets_and_no_scipy(tmp_path: Path) -> None:
    """Nor what only explains it; and Python looks for no garbage among what has just been imported."""
    done = subprocess.run(
        [sys.executable, "-c", PLANNED], env=alone_in(tmp_path), capture_output=True, text=True, check=True
    )
    modules, collections = done.stdout.splitlines()
    late = "scipy zmq numba statistics subprocess threadpoolctl click importlib.metadata spartan_ng.version"
    late += " spartan_ng.listing spartan_ng.plan.explain spartan_ng.plan.explanation spartan_ng.plan.picture"
    assert not set(late.split()) & set(modules.split())
    assert int(collections) <= 8
