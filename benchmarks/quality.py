"""What the apps' commands find, beside what scikit-learn, lifelines, statsmodels, SciPy or NumPy find.

Every command runs as `--help` has it, on the files of `samples`, and saves what it found; both sides are
measured by the same few lines of NumPy. Where starts are drawn, means over `SEEDS` starts are compared.
`python -m benchmarks quality` prints the table, and fails where a command is worse by more than `WORSE`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy
from scipy import sparse

from benchmarks.app_measures import (
    Files,
    Found,
    area,
    centred,
    divergence,
    energy,
    explained,
    fuzzy_loss,
    hinge,
    inertia,
    linear,
    log_loss,
    partial_likelihood,
    probit_loss,
    rating_loss,
    reconstruction,
    squares,
    topic_loss,
)
from benchmarks.app_references import (
    asian,
    best_pages,
    curve,
    decayed,
    formula,
    hazards,
    jamshidian,
    kmeans,
    leading,
    linear_model,
    logistic,
    network,
    nmf,
    principal,
    probit,
    separated,
    sklearn,
    solved,
    textbook_als,
    textbook_fuzzy,
    topics,
    uniform,
    visited,
)
from spartan_ng.apps import samples
from spartan_ng.apps.swaption import effects
from spartan_ng.apps.table import APPS

SEEDS = 20
"""Starts, where they are drawn: the means of five differ by more than a hundredth between equal methods."""
WORSE = 0.01
"""By so much a command may be worse than the same method elsewhere."""

Run = Callable[[Sequence[str], Path], None]
"""Runs `spartan-ng` with some arguments in a folder."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How good an app's results are.

    Parameters
    ----------
    measure, reference : what is measured, and who else does the work
    ours : the measure, of what the command found and of the files
    theirs : the same of the reference, given the files and a seed
    better : whether less or more is better, or only the same is right
    drawn : whether starts are drawn, so that means are compared
    """

    measure: str
    reference: str
    ours: Callable[[Found, Files], float]
    theirs: Callable[[Files, int], float]
    better: str = "less"
    drawn: bool = False

    def worse(self, ours: float, theirs: float) -> float:
        """By which share of theirs ours is worse; negative where it is better."""
        difference = {"less": ours - theirs, "more": theirs - ours, "same": abs(ours - theirs)}[self.better]
        return difference / abs(theirs)


QUALITIES: dict[str, Quality] = {
    "als": Quality(
        "loss of ratings",
        "the textbook's",
        lambda found, f: rating_loss(found["user_factors"], found["item_factors"], f, 0.1),
        lambda f, seed: textbook_als(f, 20, 0.1, 15, uniform(f, 20, seed) / 20**0.5),
        drawn=True,
    ),
    "als-cg": Quality(
        "loss of ratings",
        "the textbook's",
        lambda found, f: rating_loss(found["user_factors"], found["item_factors"], f, 0.01),
        lambda f, seed: textbook_als(f, 5, 0.01, 20, uniform(f, 5, seed) - 0.5),
        drawn=True,
    ),
    "autoencoder": Quality("squared error", "scikit-learn", reconstruction, network, drawn=True),
    "black-scholes": Quality(
        "mean call",
        "SciPy",
        lambda found, f: float(found["calls"].mean()),
        lambda f, _: float(formula(f["spots.npy"], f["strikes.npy"], f["years.npy"]).mean()),
        "same",
    ),
    "cholesky": Quality(
        "log determinant",
        "NumPy",
        lambda found, f: 2 * float(numpy.log(found["factor"].diagonal()).sum()),
        lambda f, _: float(numpy.linalg.slogdet(f["matrix.npy"])[1]),
        "same",
    ),
    "conjugate-gradient": Quality(
        "energy", "NumPy", lambda found, f: energy(found["x"], f), lambda f, _: solved(f), "same"
    ),
    "cox": Quality(
        "log-likelihood",
        "lifelines",
        lambda found, f: partial_likelihood(found["coef"], f),
        lambda f, _: hazards(f),
        "more",
    ),
    "event-rate": Quality(
        "mean rate",
        "NumPy",
        lambda found, f: float(found["rates"].mean()),
        lambda f, _: decayed(f, 5.0),
        "same",
    ),
    "fuzzy-kmeans": Quality(
        "objective",
        "the textbook's",
        lambda found, f: fuzzy_loss(found["cluster_centers"], f),
        textbook_fuzzy,
        drawn=True,
    ),
    "glm": Quality(
        "loss", "statsmodels", lambda found, f: probit_loss(*linear(found), f), lambda f, _: probit(f)
    ),
    "gnmf": Quality(
        "squared error",
        "scikit-learn",
        lambda found, f: divergence(found["weights"], found["components"], f, "ratings.mtx", 2),
        lambda f, seed: nmf(f, "ratings.mtx", "frobenius", 2, seed, 1000),
        drawn=True,
    ),
    "jacobi": Quality(
        "energy", "NumPy", lambda found, f: energy(found["x"], f), lambda f, _: solved(f), "same"
    ),
    "kaplan-meier": Quality(
        "mean survival",
        "lifelines",
        lambda found, f: area(found["times"], found["survival"]),
        lambda f, _: curve(f),
        "same",
    ),
    "kl-nmf": Quality(
        "divergence",
        "scikit-learn",
        lambda found, f: divergence(found["weights"], found["components"], f, "words.mtx", 1),
        lambda f, seed: nmf(f, "words.mtx", "kullback-leibler", 1, seed, 200),
        drawn=True,
    ),
    "kmeans": Quality(
        "inertia", "scikit-learn", lambda found, f: inertia(found["cluster_centers"], f), kmeans, drawn=True
    ),
    "l2svm": Quality(
        "loss",
        "scikit-learn",
        lambda found, f: hinge(found["coef"], float(found["intercept"]), f, 50.0, 2),
        lambda f, _: separated(f, 50.0, 2),
    ),
    "linear-regression": Quality(
        "squared error",
        "scikit-learn",
        lambda found, f: squares((found["coef"], found["intercept"]), f),
        lambda f, _: squares(linear_model(sklearn("linear_model.LinearRegression"), f, "values.npy"), f),
    ),
    "logistic-regression": Quality(
        "loss",
        "scikit-learn",
        lambda found, f: log_loss(*linear(found), f, 1.0),
        lambda f, _: logistic(f, 1.0),
    ),
    "mlogreg": Quality(
        "loss",
        "scikit-learn",
        lambda found, f: log_loss(-linear(found)[0], -linear(found)[1], f, 0.1),
        lambda f, _: logistic(f, 0.1),
    ),
    "monte-carlo": Quality(
        "price",
        "NumPy, by control",
        lambda found, f: float(found["price"]),
        lambda f, seed: asian(110, 12, seed),
        "same",
    ),
    "naive-bayes": Quality(
        "loss",
        "scikit-learn",
        lambda found, f: topic_loss(f["words.mtx"] @ found["linear"] + found["constant"], f),
        lambda f, _: topics(f),
    ),
    "pagerank": Quality(
        "the best's share",
        "NumPy",
        lambda found, f: best_pages(found["ranks"]),
        lambda f, _: visited(f),
        "same",
    ),
    "pca": Quality(
        "variance",
        "scikit-learn",
        lambda found, f: explained(found["components"], centred(f)),
        lambda f, _: principal(f),
        "more",
    ),
    "ridge": Quality(
        "loss",
        "scikit-learn",
        lambda found, f: squares((found["coef"], found["intercept"]), f, 0.5),
        lambda f, _: squares(linear_model(sklearn("linear_model.Ridge", alpha=0.5), f, "values.npy"), f, 0.5),
    ),
    "ssvd": Quality(
        "squares",
        "scikit-learn",
        lambda found, f: explained(found["right"], f["matrix.mtx"]),
        lambda f, seed: leading(f, seed, 2),
        "more",
        drawn=True,
    ),
    "svd": Quality(
        "squares",
        "NumPy",
        lambda found, f: explained(found["right"], f["matrix.mtx"]),
        lambda f, _: float((numpy.linalg.svd(f["matrix.mtx"], compute_uv=False)[:20] ** 2).sum()),
        "more",
    ),
    "svm": Quality(
        "loss",
        "scikit-learn",
        lambda found, f: hinge(found["coef"], float(found["intercept"]), f, 0.1, 1),
        lambda f, _: separated(f, 0.1, 1),
    ),
    "swaption": Quality(
        "price",
        "Jamshidian",
        lambda found, f: float(found["price"]),
        lambda f, _: jamshidian(0.035, 0.5, effects(2.0, 10, 0.5, 0.03, 0.01, 0.1, 12)),
        "same",
    ),
}
"""By the names of the apps."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: both measures, and by which share ours is worse."""

    name: str
    ours: float
    theirs: float
    worse: float


def compare(name: str, folder: Path, files: Files, run: Run) -> Row:
    """An app's command as typed, and the reference, on the files in a folder."""
    quality = QUALITIES[name]
    seeds = range(SEEDS) if quality.drawn else [0]
    ours, theirs = [], []
    for seed in seeds:
        typed = ["app", name, *APPS[name].example.split()]
        typed += ["--output", "found.npz"]  # the last one counts
        run([*typed, "--seed", str(seed)] if quality.drawn else typed, folder)
        with numpy.load(folder / "found.npz") as found:
            ours.append(quality.ours(found, files))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of theirs, who may not have converged
            theirs.append(quality.theirs(files, seed))
    mean = float(numpy.mean(ours)), float(numpy.mean(theirs))
    return Row(name, *mean, quality.worse(*mean))


def in_a_process(arguments: Sequence[str], folder: Path) -> None:
    """Run the command as a shell does."""
    command = [sys.executable, "-m", "spartan_ng.cli", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def rows(names: Sequence[str] = tuple(QUALITIES), run: Run = in_a_process) -> Iterator[Row]:
    """A line for each app."""
    files = {k: v.toarray() if sparse.issparse(v) else v for k, v in samples.files().items()}
    with tempfile.TemporaryDirectory() as folder:
        samples.write(Path(folder))
        for name in names:
            yield compare(name, Path(folder), files, run)


def main(names: Sequence[str] = tuple(QUALITIES)) -> str:
    """Print the table, and give it as a section of the results; an error names those that are worse."""
    table = [f"{'app':<21}{'measure':<18}{'beside':<19}{'ours':>12}{'theirs':>12}{'worse by':>10}"]
    click.echo(table[0])
    bad = []
    for row in rows(names):
        quality = QUALITIES[row.name]
        sides = f"{row.ours:>12.5g}{row.theirs:>12.5g}{row.worse:>10.2%}"
        table.append(f"{row.name:<21}{quality.measure:<18}{quality.reference:<19}{sides}")
        click.echo(table[-1])
        bad += [row.name] if row.worse > WORSE else []
    if bad:
        raise click.ClickException(f"worse by more than {WORSE:.0%}: {', '.join(bad)}")
    return "\n".join(["### quality", "", "The apps' commands beside others.", "", "```", *table, "```", ""])


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(QUALITIES))
