"""The apps' commands: what is read, told and written, and that bad input takes one line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from click.testing import CliRunner
from scipy import sparse
from sklearn import datasets

import spartan_ng as np
from benchmarks.app_workloads import WORKLOADS
from spartan_ng.apps.page import page
from spartan_ng.apps.table import APPS
from spartan_ng.cli import main
from spartan_ng.config import ENGINES


def app(*arguments: str):
    return CliRunner().invoke(main, ["app", *arguments])


@pytest.fixture
def iris(tmp_path):
    path = tmp_path / "iris.npy"
    numpy.save(path, datasets.load_iris().data)
    return str(path)


@pytest.mark.parametrize("row", APPS.values(), ids=lambda row: row.name)
def test_help_teaches(row) -> None:
    done = app(row.name, "--help")
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert f"spartan-ng app {row.name} {row.example}" in text
    options = [line.split()[0] for line in done.output.splitlines() if line.startswith("  -")]
    assert all(f" {o} " in f" {text} " for o in row.example.split() if o.startswith("-"))
    assert all(o.split("/")[0].strip("-") for o in options)
    assert isinstance(row.load(row.estimator), type)


@pytest.mark.parametrize("row", APPS.values(), ids=lambda row: row.name)
def test_every_option_has_help(row) -> None:
    from spartan_ng.apps.command import command_of

    assert all(p.help for p in command_of(row).params), row.name


def test_every_app_has_a_workload() -> None:
    assert set(WORKLOADS) == set(APPS)


def test_the_list_names_every_app() -> None:
    listed = app("--help").output
    assert all(name in listed for name in [*APPS, "demo"])
    assert app("no-such-app").exit_code == 2


@pytest.mark.parametrize("words", [["app"], ["app", "--help"], []])
def test_who_asks_for_nothing_gets_the_list(words) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    assert done.stderr == ""
    assert done.stdout == CliRunner().invoke(main, [*words, "--help"]).stdout


def test_the_list_has_a_line_for_each_app() -> None:
    """On a terminal of 80 characters."""
    lines = app().stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == sorted([*APPS, "demo", "samples"])
    assert all(line.endswith(".") and "..." not in line and len(line) < 80 for line in lines)


@pytest.mark.slow
def test_the_examples_of_the_list_run_as_typed(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    typed = re.findall(r"spartan-ng (app .*?)(?:  +\(.*)?$", app().stdout, re.MULTILINE)
    assert len(typed) == 3
    for line in typed:
        done = CliRunner().invoke(main, line.split())
        assert done.exit_code == 0, done.output
    assert {"clusters.png", "clusters.npz"} < {p.name for p in tmp_path.iterdir()}


def test_what_is_found_is_told_and_saved(iris, tmp_path) -> None:
    out = str(tmp_path / "found.npz")
    done = app("kmeans", "--data", iris, "--clusters", "3", "--seed", "0", "--output", out)
    assert done.exit_code == 0, done.output
    assert "inertia                78.8514" in done.output
    assert "cluster_centers        array of shape (3, 4), float64" in done.output
    with numpy.load(out) as found:
        assert found["cluster_centers"].shape == (3, 4)
        assert found["labels"].shape == (150,)


@pytest.mark.slow
def test_pictures_are_drawn(tmp_path) -> None:
    times, picture = tmp_path / "times.npy", tmp_path / "curve.svg"
    numpy.save(times, numpy.arange(1.0, 20))
    done = app("kaplan-meier", "--times", str(times), "--picture", str(picture))
    assert done.exit_code == 0, done.output
    assert picture.stat().st_size > 1000


def test_options_reach_the_function(iris, tmp_path) -> None:
    classes = tmp_path / "classes.npy"
    numpy.save(classes, datasets.load_iris().target > 0)
    given = ["logistic-regression", "--data", iris, "--target", str(classes), "--solver", "gradient"]
    done = app(*given, "--max-iter", "7", "--no-fit-intercept", "-C", "0.5")
    assert done.exit_code == 0, done.output
    assert re.search(r"^n_iter +7$", done.output, re.MULTILINE)
    assert re.search(r"^intercept +0$", done.output, re.MULTILINE)


@pytest.mark.parametrize("arguments", [["--clusters", "999"], ["--clusters", "3", "--max-iter", "0"]])
def test_bad_data_take_one_line(iris, arguments) -> None:
    done = app("kmeans", "--data", iris, *arguments)
    assert done.exit_code == 1
    assert done.output.startswith("Error: kmeans: ")
    assert done.output.count("\n") == 1


def test_sparse_files_are_read(tmp_path) -> None:
    matrix = sparse.random_array((40, 5), density=0.5, rng=0).tocsr()
    path, strange = str(tmp_path / "points.npz"), tmp_path / "points.txt"
    sparse.save_npz(path, matrix)
    assert app("kmeans", "--data", path, "--clusters", "2", "--init", "random").exit_code == 0
    strange.write_text("1 2")
    done = app("kmeans", "--data", str(strange), "--clusters", "2")
    assert done.exit_code == 1
    assert "cannot read .txt" in done.output


def test_tables_are_read(tmp_path) -> None:
    """A table of one column is a vector."""
    X = datasets.load_diabetes().data[:, :3]
    points, values = tmp_path / "points.csv", tmp_path / "values.csv"
    numpy.savetxt(points, X, delimiter=",", header="a,b,c", comments="")
    numpy.savetxt(values, X @ [1.0, 2.0, 3.0] + 4, delimiter=",", header="y", comments="")
    done = app("linear-regression", "--data", str(points), "--target", str(values))
    assert done.exit_code == 0, done.output
    assert "1 2 3" in done.output
    assert re.search(r"^intercept +4$", done.output, re.MULTILINE)


@pytest.mark.parametrize(("most", "warns"), [("2", True), ("300", False)])
def test_who_stops_too_early_says_so(iris, most, warns) -> None:
    done = app("kmeans", "--data", iris, "--clusters", "3", "--seed", "0", "--max-iter", most)
    assert done.exit_code == 0
    assert ("has not converged in 2 iterations" in done.stderr) is warns
    assert "Warning" not in done.stdout


@pytest.mark.slow
def test_a_local_cluster_finds_the_same(iris) -> None:
    given = ["kmeans", "--data", iris, "--clusters", "3", "--seed", "0"]
    assert app(*given, "--workers", "2").output == app(*given).output


@pytest.mark.whole
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_finds_the_same(engine, iris) -> None:
    """In a process of its own, as engines leave threads and settings behind."""
    pytest.importorskip({"dask": "distributed"}.get(engine, engine))
    given = ["kmeans", "--data", iris, "--clusters", "3", "--seed", "0"]
    typed = [sys.executable, "-m", "spartan_ng.cli", "app", *given, "--workers", "2", "--on", engine]
    done = subprocess.run(typed, capture_output=True, text=True, check=True)
    assert done.stdout == app(*given).stdout


_FORMATS = [(".zarr", "zarr", "to_zarr"), (".h5", "h5py", "to_hdf5"), (".parquet", "pyarrow", "to_parquet")]


@pytest.mark.parametrize(("suffix", "library", "to"), _FORMATS)
def test_formats_of_the_sources_are_read(suffix, library, to, iris, tmp_path) -> None:
    """What `np.load` reads, an app reads."""
    pytest.importorskip(library)
    path, X = str(tmp_path / f"points{suffix}"), np.asarray(datasets.load_iris().data)
    write: Callable[[Any, str], None] = getattr(np, to)
    write(X, path)
    given = ["kmeans", "--clusters", "3", "--seed", "0", "--data"]
    assert app(*given, path).output == app(*given, iris).output


def test_the_documentation_lists_the_table() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    assert (root / "docs" / "apps.md").read_text() == page(), (
        "run python -m spartan_ng.apps.page > docs/apps.md"
    )
