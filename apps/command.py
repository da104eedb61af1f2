"""An app's command, made from its row of the table: its function's signature and docstring say all.

A parameter annotated `Any` is an array in a file, the others are options of their own types; their help is
what the docstring says of them. The command fits the app's estimator or loads one, tells what was learned
and how good it is, predicts, draws and saves.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

import spartan_ng as np
from spartan_ng import session
from spartan_ng.apps import files, models, pictures
from spartan_ng.apps.errors import ConvergenceWarning
from spartan_ng.apps.estimator import Classifier
from spartan_ng.apps.files import GivenArray
from spartan_ng.apps.table import App
from spartan_ng.backends import engines
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import ENGINES, MASTER_VARIABLE
from spartan_ng.launchers.options import OutputFile
from spartan_ng.system import machine

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
_UNTOLD = "history", "n_features_in"
_LINE = 55
"""Characters of a list beside the apps' names, on a terminal of 80."""
_FEW = 12
"""A vector of so many elements is printed."""


def command_of(app: App) -> click.Command:
    """The click command of an app."""
    function, estimator = app.load(app.function), app.load(app.estimator)
    summary, told = _documentation(function)
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    arrays = [p.name for p in parameters if hints[p.name] is Any]
    data = [p for p in parameters if p.name in arrays and p.name not in estimator.parameters()]
    options: list[click.Parameter] = [_option(p, hints[p.name], told.get(p.name, "")) for p in parameters]

    def run(
        output: str | None,
        load: str | None,
        predict: tuple[str, ...],
        picture: str | None,
        workers: int | None,
        on: str | None,
        **chosen: Any,
    ) -> None:
        lacking = [_spelled(p.name) for p in data if p.default is p.empty and not chosen[p.name]]
        if lacking and load is None:
            raise click.UsageError(f"Missing option '{lacking[0]}'; only with --load it may be left out.")
        chosen |= {k: chosen[k] or None for k in arrays}
        named = {**{k: chosen[k] for k in arrays}, "predict": predict or None}
        read: dict[str, GivenArray] = {}
        with _where(workers, on), _warnings_told():
            try:
                for name, paths in named.items():
                    if paths is not None:
                        are_classes = name == "y" and issubclass(estimator, Classifier)
                        found = files.load(*paths, are_classes=are_classes)
                        read[name] = GivenArray(_spelled(name), ", ".join(paths), found)
                given = {k: read[k].array if k in read else v for k, v in chosen.items()}
                asked = read["predict"].array if "predict" in read else None
                values = [given.pop(p.name) for p in data]
                model = estimator.load(load) if load else _fitted(estimator, values, given)
                known = [] if lacking else values
                told = model.learned()
                try:
                    told |= model.quality(*known) if known or not data else {}
                    told |= {} if asked is None else {"predicted": _predicted(model, asked)}
                    _tell(told)
                finally:  # what was learned is kept, whatever the data to judge it are
                    if output is not None:
                        model.save(output, **{k: told[k] for k in ("predicted",) if k in told})
                        click.echo(f"all of it is in {output}")
                if picture is not None:
                    model.plot(picture, *known)
                    click.echo(f"the picture is in {picture}")
            except (OSError, ValueError, TypeError) as error:
                raise click.ClickException(files.told(error, read)) from error

    text = f"{summary}\n\n{files.FORMATS}\n\n\b\nExample:\n    spartan-ng app {app.name} {app.example}"
    return click.Command(
        app.name, params=[*options, *_common()], callback=run, help=text, short_help=_short(summary)
    )


def _short(summary: str) -> str:
    """What a line of a list has room for: the first sentence, up to where it goes into details."""
    sentence = " ".join(summary.split("\n\n", maxsplit=1)[0].split())
    found = re.sub(r" \(.*?\)", "", sentence).partition("; ")[0].rstrip(".")
    while len(found) >= _LINE and ", " in found:
        found = found.rpartition(", ")[0]
    return found + "."


def _common() -> list[click.Option]:
    """What all apps can do."""
    load = "Take the model in this file, in place of fitting one; data given with it are judged by it."
    predict = "Predict for what is in this file: points, times or strikes; --output saves it, too."
    return [
        click.Option(["--load"], type=click.Path(exists=True, dir_okay=False), help=load),
        click.Option(["--predict"], metavar="FILE", multiple=True, help=predict),
        click.Option(
            ["--output", "--save", "output"],
            type=OutputFile(models.check),
            help="Save the model and all that was found, a .npz file.",
        ),
        click.Option(
            ["--picture", "--plot", "picture"],
            type=OutputFile(pictures.check),
            help="Draw what was found: a .png, .svg, .pdf or another format of matplotlib's.",
        ),
        click.Option(["--workers"], type=click.IntRange(min=1), help="Run on a local cluster of so many."),
        click.Option(
            ["--on"], type=click.Choice(ENGINES), help="Run on a new dask or Ray with --workers instead."
        ),
    ]


def _fitted(estimator: Any, data: list[Any], options: dict[str, Any]) -> Any:
    """The estimator of these options, fitted to the data."""
    if "seed" in options:
        options["random_state"] = options.pop("seed")
    return estimator(**options).fit(*data)


def _predicted(model: Any, given: Any) -> Any:
    """What the model says of rows, or turns them into."""
    return model.predict(given) if hasattr(model, "predict") else model.transform(given)


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
    spelled = _spelled(name)
    kinds = [k for k in (get_args(hint) or (hint,)) if k is not NoneType] if not _is_literal(hint) else [hint]
    choices = [c for k in kinds if _is_literal(k) for c in get_args(k)]
    keywords: dict[str, Any] = {"help": told}
    if parameter.default is not inspect.Parameter.empty:
        keywords |= {"default": parameter.default, "show_default": parameter.default is not None}
    elif hint is Any:
        keywords["help"] += "  [required without --load]"
    else:
        keywords["required"] = True
    if hint is Any:
        return click.Option([spelled, name], metavar="FILE", multiple=True, **keywords)
    if choices:
        return click.Option([spelled, name], type=click.Choice(choices), **keywords)
    if kinds == [bool]:
        return click.Option([f"{spelled}/--no-{spelled.removeprefix('--')}", name], **keywords)
    return click.Option([spelled, name], type=kinds[0], **keywords)


def _spelled(name: str) -> str:
    """The option of a parameter."""
    return _SPELLINGS.get(name, "--" + name.removeprefix("n_").replace("_", "-"))


def _is_literal(hint: Any) -> bool:
    return get_origin(hint) is Literal


@contextmanager
def _where(workers: int | None, engine: str | None) -> Iterator[None]:
    """Where the app runs: on a new local cluster or engine, or wherever the session is."""
    if workers is None:
        if engine is not None:
            raise click.UsageError(f"--on {engine} needs --workers")
        yield
        return
    threads = max(1, machine.cores() // workers)
    try:
        if engine is None:
            with LocalCluster(workers, threads=threads) as cluster:
                session.use(cluster)
                yield
        else:
            with engines.local(engine, workers, threads) as environment:
                session.connect(environment[MASTER_VARIABLE])
                yield
                session.embed()  # before the engine goes
    finally:
        session.use(EmbeddedBackend())


@contextmanager
def _warnings_told() -> Iterator[None]:
    """Warnings as lines on stderr; those of floating-point numbers only where no error follows from them."""
    late: dict[str, None] = {}

    def tell(message: Any, category: Any, *place: Any, **more: Any) -> None:
        if issubclass(category, RuntimeWarning):
            late[str(message)] = None
        else:
            click.echo(f"Warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = tell
        yield
    for text in late:
        click.echo(f"Warning: {text}", err=True)


def _tell(found: dict[str, Any]) -> None:
    """Print a line for each: numbers, short vectors, and the shapes of other arrays."""
    width = max(map(len, found)) + 2
    for name, value in found.items():
        if name not in _UNTOLD and value is not None:
            click.echo(f"{name:<{width}}{_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
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
