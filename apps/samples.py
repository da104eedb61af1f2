"""The files that the apps' examples name, as `--help` and docs/apps.md have them: one folder serves all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy
from scipy import io, sparse

from spartan_ng.launchers.options import OutputFolder

ROWS, COLUMNS, SIDE = 600, 8, 120
GROUPS = 10
"""Groups of points, topics of words, factors of ratings."""


def write(folder: Path) -> None:
    """Write all files into a folder; they are the same each time, and one that is there is left alone."""
    for name, value in files().items():
        path = folder / name
        if path.exists():
            continue
        if path.suffix == ".npy":
            numpy.save(path, value)
        else:
            io.mmwrite(path, sparse.coo_array(value), precision=17)


@click.command("samples", short_help="Write the files that the apps' examples read.")
@click.argument("folder", default=".", type=OutputFolder())
def command(folder: str) -> None:
    """Write the files that the apps' examples read into FOLDER, by default the current one.

    They are small, made up, and the same each time. A file that is there already is left as it is.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    write(Path(folder))
    click.echo(f"{len(files())} files are in {folder}: {', '.join(sorted(files()))}")


def files() -> dict[str, Any]:
    """Arrays by the names of their files."""
    random = numpy.random.default_rng(0)
    return _points(random) | _lives(random) | _options(random) | _systems(random) | _counts(random)


def _points(random: numpy.random.Generator) -> dict[str, Any]:
    """Points, with values, classes and answers of noisy linear rules.

    Their groups overlap, so that random starts end alike.
    """
    places = 0.7 * random.standard_normal((GROUPS, COLUMNS))
    points = places[random.integers(GROUPS, size=ROWS)] + random.standard_normal((ROWS, COLUMNS))
    slopes = random.standard_normal((2, COLUMNS)) / 3
    rules = points @ slopes.T
    return {
        "points.npy": points,
        "values.npy": rules[:, 0] + 3 + 0.5 * random.standard_normal(ROWS),
        "classes.npy": (rules[:, 1] + 0.6 * random.standard_normal(ROWS) > 0).astype(float),
        "answers.npy": (rules[:, 0] + random.standard_normal(ROWS) > 0).astype(float),
    }


def _lives(random: numpy.random.Generator) -> dict[str, Any]:
    """Covariates, whole times whose hazards they change, and events with one in four unseen."""
    covariates = random.standard_normal((ROWS, 4))
    hazards = numpy.exp(covariates @ numpy.linspace(-0.5, 0.5, 4))
    return {
        "covariates.npy": covariates,
        "times.npy": numpy.ceil(50 * random.exponential(size=ROWS) / hazards),
        "seen.npy": random.random(ROWS) > 0.25,
    }


def _options(random: numpy.random.Generator) -> dict[str, Any]:
    """What shares cost, what they cost by the options, and when these end."""
    drawn = random.random((3, ROWS))
    return {
        "spots.npy": 50 + 100 * drawn[0],
        "strikes.npy": 50 + 100 * drawn[1],
        "years.npy": 0.1 + 2 * drawn[2],
    }


def _systems(random: numpy.random.Generator) -> dict[str, Any]:
    """Symmetric matrices, a dense positive definite one and a sparse diagonally dominant one."""
    square = random.standard_normal((SIDE, 2 * SIDE))
    few = sparse.random_array((SIDE, SIDE), density=0.05, rng=random)
    symmetric = few + few.T
    dominant = symmetric + sparse.diags_array(symmetric.sum(axis=1) + random.random(SIDE) + 0.1)
    return {
        "matrix.npy": square @ square.T / SIDE,
        "matrix.mtx": dominant,
        "right.npy": random.standard_normal(SIDE),
    }


def _counts(random: numpy.random.Generator) -> dict[str, Any]:
    """Ratings, words of texts on topics, and links of a web."""
    factors = random.random((SIDE, GROUPS)) @ random.random((GROUPS, SIDE // 2))
    rated = random.random(factors.shape) < 0.4
    topics = random.integers(GROUPS, size=SIDE)
    words = random.poisson(3 * random.dirichlet(numpy.full(SIDE, 0.3), GROUPS)[topics] * SIDE / 100)
    links = random.random((SIDE, SIDE)) < 0.05
    links[:5] = False
    return {
        "ratings.mtx": numpy.ceil(2 * factors / GROUPS * 5) * rated,
        "words.mtx": words.astype(float),
        "topics.npy": topics,
        "links.mtx": links.astype(float),
    }
