"""What cannot be written is refused before work begins: by commands in one line, by functions unevaluated."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import click
import numpy
import pytest
from click.testing import CliRunner

import spartan_ng as np
from spartan_ng.apps import pictures, samples
from spartan_ng.apps.kmeans import KMeans
from spartan_ng.cli import main
from spartan_ng.config import config
from spartan_ng.launchers.options import OutputFile, OutputFolder

READ = {("revoke", "directory")}
READ |= {(name, "keys") for name in ("drain", "master", "scale", "status", "stop", "worker")}
"""Folders of keys, which are said to be missing where they are read."""


def commands(group: click.Group, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands, with the words that call them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, *words, name)
        else:
            yield (*words, name), found


OUTPUTS = [
    pytest.param(words, one, id=" ".join((*words, str(one.name))))
    for words, command in commands(main)
    for one in command.params
    if isinstance(one.type, OutputFile)
]


def refused(words: tuple[str, ...], one: click.Parameter, path: str) -> str:
    """What a command says that is asked for an output at `path`, and nothing else."""
    done = CliRunner().invoke(
        main, [*words, *one.opts[-1:], path] if one.opts[0][0] == "-" else [*words, path]
    )
    assert done.exit_code == 2, done.output
    said = [line for line in done.output.splitlines() if line.startswith("Error: ")]
    assert len(said) == 1
    assert said == done.output.splitlines()[-1:]
    assert path in said[0]
    return said[0]


def test_every_path_that_need_not_be_there_is_checked() -> None:
    """A new option for an output is an `OutputFile`, so that the tests below ask it."""
    unchecked = {
        (words[-1], str(p.name))
        for words, command in commands(main)
        for p in command.params
        if isinstance(p.type, click.Path) and not isinstance(p.type, OutputFile) and not p.type.exists
    }
    assert unchecked == READ
    assert len(OUTPUTS) > 50


@pytest.mark.parametrize(("words", "one"), OUTPUTS)
def test_outputs_that_cannot_be_written_take_one_line(words, one, tmp_path) -> None:
    name = "out" if isinstance(one.type, OutputFolder) else "out.npz" if one.name == "output" else "out.png"
    (tmp_path / "file").touch()
    (tmp_path / name).mkdir()
    assert "Not a directory" in refused(words, one, str(tmp_path / "file" / name)) or name != "out"
    if name != "out":
        assert "No such file or directory" in refused(words, one, str(tmp_path / "none" / name))
        assert "Is a directory" in refused(words, one, str(tmp_path / name))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("words", "one"), OUTPUTS)
def test_outputs_of_no_known_kind_take_one_line(words, one, tmp_path) -> None:
    """Nothing is written under another name than was asked for."""
    if isinstance(one.type, OutputFolder) or words[-1] == "run":
        pytest.skip("any name will do")
    refused(words, one, str(tmp_path / "out.unknown"))
    refused(words, one, str(tmp_path / "out"))
    assert not list(tmp_path.iterdir())


def test_samples_are_written_where_folders_are_made(tmp_path) -> None:
    done = CliRunner().invoke(main, ["app", "samples", str(tmp_path / "new" / "folder")])
    assert done.exit_code == 0, done.output
    assert {p.name for p in (tmp_path / "new" / "folder").iterdir()} == set(samples.files())


def formats() -> list[str]:
    from matplotlib.figure import FigureCanvasBase

    return sorted(FigureCanvasBase.get_supported_filetypes())


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("form", formats())
def test_formats_are_drawn_or_refused_before(form, tmp_path) -> None:
    """One that needs a program which is not here is known before work begins."""
    path = str(tmp_path / f"out.{form}")
    X = numpy.random.default_rng(0).random((20, 3))
    try:
        pictures.check(path)
    except ValueError:
        assert form == "pgf"
        return
    KMeans(2).fit(X).plot(path, X)
    assert os.path.getsize(path) > 0


WRITERS: dict[str, tuple[Callable[[str, Any], None], str]] = {
    "save": (np.save, "x.npy"),
    "savez": (np.savez, "x.npz"),
    "savez_compressed": (np.savez_compressed, "x.npz"),
    "savetxt": (np.savetxt, "x.txt"),
    "mmwrite": (np.mmwrite, "x.mtx"),
    "to_zarr": (lambda path, a: np.to_zarr(a, path), "x.zarr"),
    "to_hdf5": (lambda path, a: np.to_hdf5(a, path), "x.h5"),
    "to_parquet": (lambda path, a: np.to_parquet(a, path), "x.parquet"),
    "tofile": (lambda path, a: a.tofile(path), "x.bin"),
    "dump": (lambda path, a: a.dump(path), "x.pickle"),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("large", [False, True])
def test_functions_refuse_before_they_evaluate(name, large, tmp_path, monkeypatch) -> None:
    """With the error that NumPy has for it, which names the path."""
    write, file = WRITERS[name]
    evaluated = []
    if large:
        monkeypatch.setattr("spartan_ng.api.files.saving.goes_in_parts", lambda a: True)
    (tmp_path / "file").touch()

    def noting(tile):
        evaluated.append(tile.shape)
        return tile

    with config.override(small_bytes=0):
        a = np.map(noting, np.ones((40, 30)), dtype=float)
        for folder, error in (("none", FileNotFoundError), ("file", NotADirectoryError)):
            path = str(tmp_path / folder / file)
            with pytest.raises(error) as refused:
                write(path, a)
            assert refused.value.filename == path
    assert not evaluated
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_trace_that_cannot_be_written_is_refused_before_the_block(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        np.tracing(tmp_path / "none" / "run.json")


def test_the_programs_own_error_is_not_hidden_by_what_is_written_at_the_end(tmp_path) -> None:
    (tmp_path / "there").mkdir()

    def fails() -> None:
        with np.tracing(tmp_path / "there" / "run.json"), np.resumable(tmp_path / "state") as state:
            state.update(w=np.ones(3))
            (tmp_path / "there").rmdir()
            (tmp_path / "state").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as found:
        fails()
    assert len(found.value.__notes__) == 2
