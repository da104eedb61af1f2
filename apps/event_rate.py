"""How often events happen now: a rate that forgets, one recurrence over events in the order of their times.

Each event counts half after every half-life: the count is z_i = y_i + 2^(-gap_i / half_life) * z_(i-1)
(Distributed cumulative aggregates, BTW '19, section 3.3: decayed cumulative sums).
"""

from __future__ import annotations

from typing import Any, Self

import click

import spartan_ng as np
from spartan_ng.apps.kaplan_meier import subjects

_LOG_2 = 0.6931471805599453
CURVE_POINTS = 1000
"""Times at which `plot` draws the rate."""


def event_rate(times: Any, events: Any, half_life: float) -> Any:
    """Events per unit of time, each counting half after every `half_life`; at each of the ascending `times`.

    A steady rate r has the decayed count r * half_life / log(2).

    Parameters
    ----------
    times : ascending times, shape (n,)
    events : how many events (or what weight of them) there were at each, shape (n,); None: one
    half_life : in the unit of `times`

    Raises
    ------
    ValueError : shapes do not fit, no times, times that do not ascend or are NaN, or no half-life above 0
    """
    if not half_life > 0:
        raise ValueError(f"event_rate: half_life is {half_life}, it must be positive")
    t, e = subjects("event_rate", times, events)
    gaps = t[1:] - t[:-1]
    if bool((gaps < 0).any()):
        raise ValueError("event_rate: times must ascend")
    weights = np.concatenate([np.zeros(1), np.exp2(-gaps / half_life)])
    return np.cumsumprod(e, weights) * (_LOG_2 / half_life)


class EventRate:
    """The decayed rate as an estimator; see `event_rate`.

    Attributes after `fit`: `times_` and `rates_`, right after each time.
    """

    def __init__(self, half_life: float = 1.0) -> None:
        self.half_life = half_life

    def fit(self, times: Any, events: Any = None) -> Self:
        """Learn from events in any order."""
        t, e = subjects("EventRate", times, events)
        order = np.argsort(t, kind="stable")
        t, e = t[order], e[order]
        self.times_, self.rates_ = np.compute(t, event_rate(t, e, self.half_life))
        return self

    def predict(self, times: Any) -> Any:
        """The rate at each of `times`, from the events up to and at it; 0 before the first event."""
        asked = np.asarray(times).astype(np.float64)
        known = np.asarray(self.times_)
        last = np.searchsorted(known, asked, side="right") - 1
        here = np.maximum(last, 0)
        decayed = np.asarray(self.rates_)[here] * np.exp2((known[here] - asked) / self.half_life)
        return np.where(last < 0, 0.0, decayed)


def plot(model: EventRate, path: str) -> None:
    """Draw the rate over time, and a tick for each time with events, into a file."""
    from matplotlib.figure import Figure

    first, last = float(model.times_[0]), float(model.times_[-1])
    grid = np.linspace(first, last, CURVE_POINTS).compute()
    rates = np.asarray(model.predict(grid)).compute()
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(grid, rates, linewidth=1.2)
    axes.fill_between(grid, 0, rates, alpha=0.15)
    ticks = axes.get_xaxis_transform()
    axes.vlines(model.times_, 0, 0.04, transform=ticks, color="black", linewidth=0.4, alpha=0.5)
    axes.set(
        xlabel="time",
        ylabel="events per unit of time",
        xlim=(first, last),
        ylim=(0, None),
        title=f"rate with a half-life of {model.half_life:g}",
    )
    figure.savefig(path, dpi=110)


@click.command("event-rate")
@click.option("--data", required=True, type=click.Path(exists=True, dir_okay=False), help="Times, .npy.")
@click.option("--events", type=click.Path(exists=True, dir_okay=False), help="Events at each, .npy.")
@click.option("--half-life", required=True, type=float, help="Time after which an event counts half.")
@click.option("--picture", type=click.Path(dir_okay=False), help="Draw the rate into a file.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write times and rates, a .npz file.")
def command(data: str, events: str | None, half_life: float, picture: str | None, output: str | None) -> None:
    """Estimate how often events happen, the recent ones counting most.

    Example: spartan-ng app event-rate --data times.npy --half-life 5
    """
    model = EventRate(half_life)
    try:
        model.fit(np.load(data), np.load(events) if events is not None else None)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    highest = int(model.rates_.argmax())
    click.echo(
        f"{len(model.times_)} times; the rate is {model.rates_[-1]:.6g} at the end, and was highest, "
        f"{model.rates_[highest]:.6g}, at {model.times_[highest]:.6g}"
    )
    if picture is not None:
        plot(model, picture)
        click.echo(f"the rate is drawn in {picture}")
    if output is not None:
        np.savez(output, times=model.times_, rates=model.rates_)
        click.echo(f"the table is in {output}")
