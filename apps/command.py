"""An app's command, made from its row of the table: its function's signature and docstring say all.

A parameter annotated `Any` is an array in a file, the others are options of their own types; their help is
what the docstring says of them. What the function finds is printed field by field, and saved with `--output`.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
from scipy import sparse

import spartan_ng as np
from spartan_ng import session
from spartan_ng.apps.table import App
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster

_SPELLINGS = {
    "A": "--data",
    "C": "-C",
    "X": "--data",
    "b": "--target",
    "durations": "--times",
    "observed": "--events",
    "y": "--target",
}
"""Parameters whose options have other names; elsewhere underscores become dashes, and `n_` is left out."""
_FILES = (
    "Arrays are read from .npy files and from tables (.csv, .parquet, .arrow, .feather), sparse ones from "
    "Matrix Market's .mtx or SciPy's .npz."
)
_TABLES = frozenset({".csv", ".parquet", ".arrow", ".feather"})
_FEW = 12
"""A vector of so many elements is printed."""


def command_of(app: App) -> click.Command:
    """The click command of an app."""
    function = app.load(app.function)
    summary, told = _documentation(function)
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    arrays = [p.name for p in parameters if hints[p.name] is Any]
    plot = app.load("plot")
    options: list[click.Parameter] = [_option(p, hints[p.name], told.get(p.name, "")) for p in parameters]
    options.append(click.Option(["--output"], type=_writable(), help="Save what was found, a .npz file."))
    if plot is not None:
        options.append(click.Option(["--picture"], type=_writable(), help="Draw what was found, a file."))
    options.append(
        click.Option(["--workers"], type=click.IntRange(min=1), help="Run on a local cluster of so many.")
    )

    def run(output: str | None, workers: int | None, picture: str | None = None, **chosen: Any) -> None:
        with _where(workers):
            try:
                given = {k: _load(v) if k in arrays and v is not None else v for k, v in chosen.items()}
                found = function(**given)
            except ValueError as error:
                raise click.ClickException(str(error)) from error
            _tell(found)
            _warn(found, chosen)
            if picture is not None:
                plot(found, picture)
                click.echo(f"the picture is in {picture}")
            if output is not None:
                np.savez(output, **{f.name: getattr(found, f.name) for f in fields(found)})
                click.echo(f"all of it is in {output}")

    text = f"{summary}\n\n{_FILES}\n\n\b\nExample:\n    spartan-ng app {app.name} {app.example}"
    short = summary.split("\n\n")[0].replace("\n", " ").rstrip(".") + "."
    return click.Command(app.name, params=options, callback=run, help=text, short_help=short)


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The text before the parameters, and what is said of each parameter."""
    text = inspect.getdoc(function) or ""
    summary, _, rest = text.partition("\nParameters\n----------\n")
    told: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", rest.split("\n\n")[0]):
        names, _, words = entry.partition(" : ")
        sentence = " ".join(words.split())
        for name in names.split(", "):
            told[name] = sentence[:1].upper() + sentence[1:].rstrip(".") + "."
    return summary.strip(), told


def _option(parameter: inspect.Parameter, hint: Any, told: str) -> click.Option:
    """The option for a parameter."""
    name = parameter.name
    spelled = _SPELLINGS.get(name, "--" + name.removeprefix("n_").replace("_", "-"))
    kinds = [k for k in (get_args(hint) or (hint,)) if k is not NoneType] if not _is_literal(hint) else [hint]
    choices = [c for k in kinds if _is_literal(k) for c in get_args(k)]
    required = parameter.default is inspect.Parameter.empty
    keywords: dict[str, Any] = {"help": told, "required": required}
    if not required:
        keywords |= {"default": parameter.default, "show_default": parameter.default is not None}
    if hint is Any:
        return click.Option([spelled, name], type=click.Path(exists=True, dir_okay=False), **keywords)
    if choices:
        return click.Option([spelled, name], type=click.Choice(choices), **keywords)
    if kinds == [bool]:
        return click.Option([f"{spelled}/--no-{spelled.removeprefix('--')}", name], **keywords)
    return click.Option([spelled, name], type=kinds[0], **keywords)


def _is_literal(hint: Any) -> bool:
    return get_origin(hint) is Literal


def _writable() -> click.Path:
    return click.Path(dir_okay=False, writable=True)


def _load(path: str) -> Any:
    """The array in a file, by the file's suffix."""
    suffix = Path(path).suffix
    if suffix == ".npy":
        return np.load(path)
    if suffix == ".mtx":
        return np.mmread(path)
    if suffix == ".npz":
        return np.asarray(sparse.load_npz(path))
    if suffix in _TABLES:
        table = np.load(path)
        return table[:, 0] if table.ndim == 2 and table.shape[1] == 1 else table
    known = ", ".join([".npy", ".mtx", *sorted(_TABLES)])
    raise ValueError(f"{path}: cannot read {suffix or 'a file without suffix'}; give {known} or .npz")


@contextmanager
def _where(workers: int | None) -> Iterator[None]:
    """Where the app runs: on a new local cluster, or wherever the session is."""
    if workers is None:
        yield
        return
    cores = len(os.sched_getaffinity(0))
    try:
        with LocalCluster(workers, threads=max(1, cores // workers)) as cluster:
            session.use(cluster)
            yield
    finally:
        session.use(EmbeddedBackend())


def _tell(found: Any) -> None:
    """Print a line for each field: numbers, short vectors, and the shapes of other arrays."""
    names = [f.name for f in fields(found)]
    width = max(map(len, names)) + 2
    for name in names:
        click.echo(f"{name:<{width}}{_shown(getattr(found, name))}")


def _warn(found: Any, chosen: dict[str, Any]) -> None:
    """Say on stderr that the last iteration that was allowed has been run."""
    most = chosen.get("max_iter")
    if most is not None and getattr(found, "n_iter", 0) >= most:
        click.echo(f"Warning: stopped after --max-iter {most} iterations, perhaps too early", err=True)


def _shown(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    array = np.asarray(value)
    if array.ndim == 0:
        return _shown(array.item())
    if array.ndim > 1 or array.size > _FEW:
        return f"array of shape {array.shape}, {array.dtype}"
    return " ".join(f"{x:.6g}" if isinstance(x, int | float) else str(x) for x in array.tolist())
