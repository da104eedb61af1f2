"""Who asks for what an extra brings, and does not have it, is told which; the command says so in one line."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy
import pytest
from click.testing import CliRunner

import spartan_ng as np
from spartan_ng.cli import main
from spartan_ng.errors import MissingLibrary

ROOT = Path(__file__).resolve().parents[1]
DOORS = {
    "np.page": ("aiohttp", "page", lambda: np.page()),
    "its metrics": ("prometheus_client", "page", lambda: np.page()),
    "to zarr": ("zarr", "zarr", lambda: np.save("new.zarr", np.ones(3))),
    "from zarr": ("zarr", "zarr", lambda: np.load("there.zarr")),
    "to HDF5": ("h5py", "hdf5", lambda: np.save("new.h5", np.ones(3))),
    "from HDF5": ("h5py", "hdf5", lambda: np.load("there.h5")),
    "to Parquet": ("pyarrow", "tables", lambda: np.save("new.parquet", np.ones((3, 2)))),
    "from Parquet": ("pyarrow", "tables", lambda: np.load("there.parquet")),
    "from Arrow": ("pyarrow", "tables", lambda: np.load("there.arrow")),
    "from CSV": ("pyarrow", "tables", lambda: np.load("there.csv")),
    "from images": ("imageio", "images", lambda: np.load("there.png")),
    "from a URL": ("fsspec", "remote", lambda: np.load("http://127.0.0.1:9/there.npy")),
    "to dask": ("dask", "dask", lambda: np.to_dask(np.ones(3))),
    "from dask": ("dask", "dask", lambda: np.from_dask(None)),
    "to ray": ("ray", "ray", lambda: np.to_ray(np.ones(3))),
    "from ray": ("ray", "ray", lambda: np.from_ray(None)),
    "to a Ray elsewhere": ("grpc", "ray", lambda: np.connect("ray://127.0.0.1:1")),
}
COMMANDS = {
    "a picture": ("matplotlib", "apps", ["app", "kmeans", "--data", "points.npy", "--picture", "it.png"]),
    "a table": ("pyarrow", "tables", ["app", "kmeans", "--data", "there.csv"]),
    "the demo": ("sklearn", "apps", ["app", "demo", "--workers", "1"]),
    "dask": ("distributed", "dask", ["run", "--on", "dask", "-n", "1", "script.py"]),
    "ray": ("ray", "ray", ["run", "--on", "ray", "-n", "1", "script.py"]),
}


@pytest.fixture
def hidden(monkeypatch, tmp_path):
    """Hides a library, in a folder with files of all kinds."""
    monkeypatch.chdir(tmp_path)
    for name in ("h5", "parquet", "arrow", "csv", "png", "py"):
        (tmp_path / f"there.{name}").write_bytes(b"a,b\n1,2\n")
    (tmp_path / "there.zarr").mkdir()
    (tmp_path / "script.py").touch()
    numpy.save("points.npy", numpy.eye(4))

    def hide(library):
        for name in [*sys.modules, library]:
            if name.partition(".")[0] == library:
                monkeypatch.setitem(sys.modules, name, None)
        for name in [n for n in sys.modules if n.startswith("spartan_ng.backends.engines.kinds.")]:
            monkeypatch.delitem(sys.modules, name)

    return hide


@pytest.mark.parametrize(("library", "extra", "enter"), DOORS.values(), ids=DOORS)
def test_who_lacks_a_library_hears_what_brings_it(hidden, library, extra, enter):
    hidden(library)
    with pytest.raises(MissingLibrary, match=rf"^{library} is needed .*spartan-ng\[{extra}\]"):
        enter()


@pytest.mark.parametrize(("library", "extra", "words"), COMMANDS.values(), ids=COMMANDS)
def test_the_command_says_so_in_one_line_before_it_computes(hidden, library, extra, words):
    hidden(library)
    found = CliRunner().invoke(main, words)
    assert found.exit_code == 1
    assert re.fullmatch(rf"Error: .*{library}.*spartan-ng\[{extra}\].*\n", found.output), found.output


def test_every_extra_that_programs_ask_for_has_a_door_here():
    """The others are asked for by name: `mpi`, notebooks and telemetry."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = {extra for _, extra, _ in (*DOORS.values(), *COMMANDS.values())}
    assert known.keys() - asked == {"bench", "dev", "mpi", "notebooks", "telemetry", "test"}


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("budget", [None, 26_000_000])
@pytest.mark.parametrize("said", ["", "system", "mimalloc"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_under_a_budget_pyarrow_takes_the_systems_memory(
    budget: int | None, said: str, first: str, tmp_path: Path
) -> None:
    """Where the user has neither said otherwise nor imported it before; and nobody finds that said."""
    code = f"""if 1:
        import os, sys
        before = dict(os.environ)
        if {first == "theirs"}:
            import pyarrow
        import spartan_ng as np
        np.config.memory_bytes = {budget}
        np.to_parquet(np.ones((4, 3)), "x.parquet")
        assert dict(os.environ) == before
        import pyarrow
        print(pyarrow.default_memory_pool().backend_name)
    """
    environment = {k: v for k, v in os.environ.items() if k != "ARROW_DEFAULT_MEMORY_POOL"}
    environment |= {"ARROW_DEFAULT_MEMORY_POOL": said} if said else {}
    environment["PYTHONPATH"] = str(ROOT)
    words = [sys.executable, "-c", code]
    found = subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    pool = found.stdout.strip()
    assert pool == said if said else (pool == "system") == (budget is not None and first == "ours")
