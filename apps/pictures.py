"""What people look at, each as a panel of a figure: clusters, curves, errors, spectra, images.

A panel draws into axes of matplotlib's. Of many points a few thousand are drawn, evenly spaced.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from functools import wraps
from math import isqrt
from typing import Any, Concatenate, ParamSpec

import spartan_ng as np
from spartan_ng.extras import needed
from spartan_ng.sinks.places import check_file

P = ParamSpec("P")
Panel = Callable[[Any], None]
"""Draws into axes."""
POINTS = 4000
"""So many points are drawn at most."""
_IMAGES = 16
_SIDE, _DPI = 4.6, 110
_COLOURS = "tab10", "tab20", "viridis"


def picture(draw: Callable[Concatenate[Any, P], None]) -> Callable[P, Panel]:
    """What draws into axes is told now what to show, and the axes when there are any."""

    @wraps(draw)
    def panel(*told: P.args, **options: P.kwargs) -> Panel:
        return lambda axes: draw(axes, *told, **options)

    return panel


def check(path: str) -> None:
    """Before work begins: OSError where no file can be written, ValueError for what is no format here."""
    figures = needed("matplotlib.figure", "apps")
    check_file(path)
    form = os.path.splitext(path)[1].removeprefix(".").lower()
    known = ", ".join(sorted(figures.FigureCanvasBase.get_supported_filetypes()))
    if not form:
        raise ValueError(f"{path} says no format: its name has to end in one of {known}")
    trial = figures.Figure(figsize=(1, 1))
    trial.suptitle("text")
    try:
        trial.savefig(io.BytesIO(), format=form)
    except Exception as error:  # each format has its own, and some need programs
        raise ValueError(
            f"{path}: no picture of format {form} can be drawn here; formats are {known}"
        ) from error


def draw(path: str, title: str, panels: Sequence[Panel]) -> None:
    """One figure of all panels, side by side, into a file; ValueError where there is nothing to draw."""
    figures = needed("matplotlib.figure", "apps")
    if not panels:
        raise ValueError(f"{title} has nothing to draw without data")
    figure = figures.Figure(figsize=(_SIDE * 1.15 * len(panels), _SIDE), layout="constrained")
    figure.suptitle(title)
    for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        panel(axes)
    figure.savefig(path, dpi=_DPI)


def few(*arrays: Any) -> tuple[Any, ...]:
    """Evenly spaced rows of arrays of as many rows, as NumPy arrays."""
    step = -(-arrays[0].shape[0] // POINTS)
    return tuple(np.compute(*(a[::step] for a in arrays), 0)[:-1])


@picture
def convergence(axes: Any, history: Any, what: str, n_iter: int) -> None:
    """What the iterations have lowered, on a logarithmic scale where it falls by much."""
    every = max(1, n_iter // len(history))
    numbers = range(every, every * len(history) + 1, every)
    axes.plot(numbers, history, marker="." if len(history) < 50 else None)
    if min(history) >= 0 and max(history) > 20 * min((v for v in history if v > 0), default=1):
        axes.set_yscale("log", nonpositive="mask")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="iteration", ylabel=what, title="convergence")
    axes.grid(alpha=0.3)


def plane(X: Any) -> tuple[Any, Any]:
    """The mean and the two directions of largest variance of a few points: (n,), (n, 2)."""
    mean = X.mean(axis=0)
    _, _, directions = np.linalg.svd(X - mean, full_matrices=False)
    directions = directions[:2].T
    if directions.shape[1] < 2:
        directions = np.concatenate([directions, 0 * directions], axis=1)
    mean, directions = np.compute(np.asarray(mean), directions)
    return mean, directions


@picture
def clusters(axes: Any, X: Any, predict: Callable[[Any], Any], centers: Any) -> None:
    """Points in the plane of their largest variance, coloured by cluster, and the centers."""
    dense = few(X if X.format == "dense" else X.todense())[0]
    labels = np.asarray(predict(dense)).compute()
    mean, directions = plane(dense)
    flat = (dense - mean) @ directions
    places = (np.asarray(centers).compute() - mean) @ directions
    axes.scatter(*flat.T, c=labels, cmap=_palette(len(places)), s=9, alpha=0.6, linewidths=0)
    axes.scatter(
        *places.T, marker="X", s=90, c=range(len(places)), cmap=_palette(len(places)), edgecolors="black"
    )
    axes.set(
        xlabel="first principal component", ylabel="second principal component",
        title=f"{len(places)} clusters and their centers",
    )  # fmt: skip


def _palette(count: int) -> str:
    return _COLOURS[0] if count <= 10 else _COLOURS[1] if count <= 20 else _COLOURS[2]


@picture
def roc(axes: Any, wrong: Any, right: Any, area: float) -> None:
    """How many are rightly found, against how many wrongly."""
    axes.plot(wrong, right)
    axes.plot([0, 1], [0, 1], linewidth=0.8, linestyle="--", color="gray")
    axes.set(
        xlabel="false positive rate", ylabel="true positive rate", title=f"ROC, area {area:.3f}",
        xlim=(-0.01, 1.01), ylim=(-0.01, 1.01),
    )  # fmt: skip
    axes.set_aspect("equal")


@picture
def confusion(axes: Any, predicted: Any, truth: Any, classes: Any) -> None:
    """How many points of each class are predicted as which."""
    ours, theirs = (np.searchsorted(classes, a) for a in np.compute(predicted, truth))
    counts = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(counts, (theirs, ours), 1)
    counts = counts.compute()
    axes.imshow(counts, cmap="Blues")
    if len(classes) <= 15:
        for i, row in enumerate(counts):
            for j, count in enumerate(row):
                ink = "white" if count > counts.max() / 2 else "black"
                axes.text(j, i, f"{count:,}", ha="center", va="center", color=ink, fontsize=8)
        names = [f"{c:g}" if isinstance(c, float) else str(c) for c in classes.tolist()]
        axes.set_xticks(range(len(classes)), names)
        axes.set_yticks(range(len(classes)), names)
    axes.set(xlabel="predicted class", ylabel="true class", title="confusion")


@picture
def residuals(axes: Any, predicted: Any, truth: Any) -> None:
    """The errors against the predictions: without a pattern where the model fits."""
    expected, given = few(predicted, truth)
    axes.scatter(expected, given - expected, s=9, alpha=0.5, linewidths=0)
    axes.axhline(0, linewidth=0.8, color="black")
    axes.set(xlabel="predicted", ylabel="target - predicted", title="residuals")


@picture
def against(axes: Any, predicted: Any, truth: Any, what: str) -> None:
    """Predicted values against given ones: on the diagonal where they agree."""
    expected, given = few(predicted, truth)
    axes.scatter(given, expected, s=9, alpha=0.4, linewidths=0)
    ends = [min(given.min(), expected.min()), max(given.max(), expected.max())]
    axes.plot(ends, ends, linewidth=0.8, linestyle="--", color="gray")
    axes.set(xlabel=f"given {what}", ylabel=f"predicted {what}", title=what)


@picture
def spectrum(axes: Any, values: Any, what: str, total: float | None = None) -> None:
    """Values that fall, as bars; with a total, also the share that the first ones reach."""
    numbers = range(1, len(values) + 1)
    axes.bar(numbers, values)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="component", ylabel=what, title="spectrum")
    if total:
        shares = axes.twinx()
        shares.plot(numbers, np.cumsum(values).compute() / total, color="tab:orange", marker=".")
        shares.set(ylabel="cumulative share", ylim=(0, 1.05))


@picture
def images(axes: Any, rows: Any, what: str) -> None:
    """Rows as small square images where their length is a square's, else as the lines of one."""
    values = np.asarray(rows)[:_IMAGES].compute()
    side = isqrt(values.shape[1])
    if side * side == values.shape[1] and side >= 4:
        across = min(4, len(values))
        down = -(-len(values) // across)
        sheet = np.full((down * (side + 1), across * (side + 1)), np.nan).compute()
        for k, row in enumerate(values):
            i, j = divmod(k, across)
            sheet[i * (side + 1) :][:side, j * (side + 1) :][:, :side] = row.reshape(side, side)
        axes.imshow(sheet, cmap="gray")
        axes.axis("off")
    else:
        axes.imshow(values, aspect="auto", cmap="viridis", interpolation="nearest")
        axes.set(xlabel="feature", ylabel="component", yticks=range(len(values)))
    left_out = len(rows) - len(values)
    axes.set(title=f"{what}, the first {len(values)} of {len(rows)}" if left_out else what)


@picture
def scatter(axes: Any, points: Any, what: str) -> None:
    """Two coordinates of points."""
    (flat,) = few(points)
    axes.scatter(
        flat[:, 0], flat[:, 1] if flat.shape[1] > 1 else 0 * flat[:, 0], s=9, alpha=0.5, linewidths=0
    )
    axes.set(xlabel="first", ylabel="second", title=what)


@picture
def line(axes: Any, values: Any, what: str, across: str, *, logarithmic: bool = False) -> None:
    """A few of the values of a vector, in their order."""
    (shown,) = few(np.asarray(values))
    step = -(-len(values) // POINTS)
    axes.plot(range(1, len(values) + 1, step), shown, linewidth=1)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log", nonpositive="mask")
    axes.set(xlabel=across, ylabel=what, title=what)
    axes.grid(alpha=0.3)


@picture
def matrix(axes: Any, values: Any, what: str) -> None:
    """The size of a matrix's elements, a few of its rows and columns."""
    step = max(1, values.shape[0] // 400)
    shown = axes.imshow(np.abs(np.asarray(values)[::step, ::step]).compute(), cmap="magma")
    axes.figure.colorbar(shown, ax=axes, shrink=0.8)
    axes.set(title=what, xlabel="column", ylabel="row")


@picture
def intervals(axes: Any, values: Any, errors: Any, what: str) -> None:
    """Values with two standard errors."""
    rows = list(range(len(values)))
    axes.errorbar(values, rows, xerr=2 * errors, fmt="o", capsize=3)
    axes.axvline(0, linewidth=0.8, color="gray")
    axes.set(xlabel=what, ylabel="covariate", yticks=rows, title="weights and two standard errors")


@picture
def prices(axes: Any, strikes: Any, values: Any, errors: Any, what: str) -> None:
    """Prices by strike, with two standard errors."""
    axes.errorbar(strikes, values, yerr=2 * errors, marker=".", capsize=2, linewidth=1)
    axes.set(xlabel="strike", ylabel="price", title=what, ylim=(0, None))
    axes.grid(alpha=0.3)


@picture
def premiums(axes: Any, moneyness: Any, calls: Any, puts: Any) -> None:
    """Options' prices as shares of their strikes, by how far the shares' prices are above these."""
    for name, prices_ in (("calls", calls), ("puts", puts)):
        axes.scatter(*few(moneyness, prices_), s=9, alpha=0.5, linewidths=0, label=name)
    axes.set(xlabel="spot / strike", ylabel="price / strike", title="prices")
    axes.legend()
    axes.grid(alpha=0.3)
