"""The demo: k-means on real data, on a local cluster of four workers, with all that it did told.

First the 1,797 handwritten digits that scikit-learn ships, because their true classes are known; they are so
few that a driver would not send them away, so the demo tells it to. Then the 273,280 pixels of a photograph.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import click
from scipy import linalg

import spartan_ng as np
from spartan_ng import session
from spartan_ng.apps import pictures
from spartan_ng.apps.kmeans import Clustering, kmeans, new_centers
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import KEYS_VARIABLE, MASTER_VARIABLE, config
from spartan_ng.extras import needed
from spartan_ng.launchers.options import OutputFile
from spartan_ng.units import size_text, time_text

DIGITS, COLOURS = 10, 24


@dataclass(frozen=True, slots=True)
class Shown:
    """A clustering, with the bytes that moved for it and the seconds it took."""

    X: Any
    found: Clustering
    seconds: float
    moved_bytes: int


def cluster(X: Any, k: int) -> Shown:
    """k-means, timed, its traffic counted."""
    session_ = session.current()
    before, start = session_.moved_bytes, time.perf_counter()
    found = kmeans(X, k, max_iter=300, tol=1e-4, seed=0)  # scikit-learn's rule to stop
    return Shown(X, found, time.perf_counter() - start, session_.moved_bytes - before)


def report(shown: Shown) -> None:
    """What one clustering found and took, and the plan of one iteration, run once more."""
    found = shown.found
    click.echo(f"  inertia            {found.inertia:,.1f} after {found.n_iter} iterations")
    click.echo(f"  time               {time_text(shown.seconds)}")
    click.echo(
        f"  bytes moved        {size_text(shown.moved_bytes)} between workers; the data are ", nl=False
    )
    click.echo(f"{size_text(shown.X.nbytes)}")
    click.echo("  the plan of one iteration:")
    explained = np.explain(*new_centers(shown.X, found.centers), run=True)
    click.echo("    " + str(explained).replace("\n", "\n    "))


def digits() -> tuple[Shown, Any]:
    """Cluster the digits; print how well the clusters fit the true classes."""
    from sklearn import datasets, metrics
    from sklearn.cluster import KMeans

    data = datasets.load_digits()
    click.echo(
        f"\n1. {len(data.data):,} handwritten digits of 64 pixels (scikit-learn's copy), {DIGITS} clusters"
    )
    click.echo("   (so few that the driver would keep them; here it is told to use the workers)")
    shown = cluster(np.asarray(data.data), DIGITS)
    report(shown)
    theirs = KMeans(DIGITS, n_init=1, random_state=0).fit(data.data)
    ours = metrics.adjusted_rand_score(data.target, np.asarray(shown.found.labels).compute())
    click.echo(f"  adjusted Rand      {ours:.3f} against the true digits ", nl=False)
    click.echo(
        f"(scikit-learn's KMeans: {metrics.adjusted_rand_score(data.target, theirs.labels_):.3f}, ", nl=False
    )
    click.echo(f"inertia {theirs.inertia_:,.1f})")
    return shown, data.target


def photograph() -> tuple[Shown, Any]:
    """Cluster the colours of a photograph."""
    from sklearn.datasets import load_sample_image

    image = load_sample_image("china.jpg") / 255.0
    pixels = image.reshape(-1, 3)
    click.echo(f"\n2. {len(pixels):,} pixels of a photograph (scikit-learn's china.jpg), {COLOURS} colours")
    shown = cluster(np.asarray(pixels), COLOURS)
    report(shown)
    return shown, image


def plane(X: Any) -> tuple[Any, Any]:
    """The mean and the two directions of largest variance: (n_features,), (n_features, 2)."""
    mean = X.mean(axis=0)
    centered = X - mean
    mean, covariance = np.compute(mean, centered.T @ centered / X.shape[0])
    _, vectors = linalg.eigh(covariance)
    return mean, vectors[:, :-3:-1]


def plot(digits: Shown, truth: Any, photo: Shown, image: Any, path: str) -> None:
    """Digits in the plane of their two main components with the centers as pictures; the photograph."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    mean, directions = plane(digits.X)
    points, labels = np.compute((digits.X - mean) @ directions, digits.found.labels)
    centers = (digits.found.centers - mean) @ directions
    figure, axes = pyplot.subplot_mosaic(
        [["digits", "before"], ["digits", "after"]],
        figsize=(13, 7.4),
        width_ratios=[1.25, 1],
        layout="constrained",
    )
    left = axes["digits"]
    left.scatter(points[:, 0], points[:, 1], c=labels, cmap="tab10", s=9, alpha=0.6, linewidths=0)
    for k, (center, position) in enumerate(zip(digits.found.centers, centers, strict=True)):
        picture = OffsetImage(center.reshape(8, 8), zoom=4.2, cmap="gray_r")
        frame = {"edgecolor": pyplot.get_cmap("tab10")(k), "linewidth": 2.5, "boxstyle": "square,pad=0.1"}
        left.add_artist(AnnotationBbox(picture, position, bboxprops=frame, pad=0.1))
    left.set_title(
        f"{len(truth):,} digits, {DIGITS} clusters and their centers\n(first two principal components)"
    )
    left.set_xticks([])
    left.set_yticks([])
    few = photo.found.centers[np.compute(photo.found.labels)[0]].reshape(image.shape).clip(0, 1)
    for name, picture, title in (
        ("before", image, f"{image.shape[0] * image.shape[1]:,} pixels"),
        ("after", few, f"the same in {COLOURS} colours, the centers"),
    ):
        axes[name].imshow(picture)
        axes[name].set_title(title)
        axes[name].axis("off")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    click.echo(f"\nThe plot is in {path}.")


def run(backend: Backend, output: str) -> None:
    """The demo on a backend."""
    session.use(backend)
    with config.override(small_bytes=0):
        shown, truth = digits()
        photo, image = photograph()
        plot(shown, truth, photo, image, output)


@click.command("demo", short_help="Run k-means on real data, and tell all about it.")
@click.option("--workers", default=4, show_default=True, type=click.IntRange(min=1), help="Local workers.")
@click.option("--master", envvar=MASTER_VARIABLE, help="Use the cluster of this master instead.")
@click.option("--keys", envvar=KEYS_VARIABLE, type=click.Path(exists=True, file_okay=False), help="Its keys.")
@click.option("--output", default="demo-kmeans.png", show_default=True, type=OutputFile(pictures.check))
def command(workers: int, master: str | None, keys: str | None, output: str) -> None:
    """Run k-means on real data on a local cluster, and tell everything about it."""
    needed("sklearn", "apps")
    if master:
        backend = ClusterBackend.connect(master, keys)
        click.echo(f"The cluster of {master} has {backend.workers} workers.")
        run(backend, output)
        backend.close()
        return
    start = time.perf_counter()
    with LocalCluster(workers) as cluster_:
        click.echo(
            f"A local cluster of {workers} workers runs after {time_text(time.perf_counter() - start)}."
        )
        run(cluster_, output)


if __name__ == "__main__":
    command()
