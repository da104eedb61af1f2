"""How often events happen now: a rate that forgets, one recurrence over events in the order of their times.

Each event counts half after every half-life: the count is z_i = y_i + 2^(-gap_i / half_life) * z_(i-1)
(Distributed cumulative aggregates, BTW '19, section 3.3: decayed cumulative sums).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

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


@dataclass(frozen=True, slots=True)
class Rates:
    """What `event_rates` finds: the rate right after each of the ascending `times`, shape (n,)."""

    times: Any
    rates: Any
    half_life: float


def event_rates(times: Any, events: Any = None, half_life: float = 1.0) -> Rates:
    """How often events happen, the recent ones counting most.

    Parameters
    ----------
    times : when events happened, in any order, shape (n,)
    events : how many events (or what weight of them) there were at each, shape (n,); default is one
    half_life : after which time an event counts half

    Raises
    ------
    ValueError : shapes do not fit, no times, a time that is NaN, or no half-life above 0
    """
    t, e = subjects("event_rates", times, events)
    order = np.argsort(t, kind="stable")
    t, e = t[order], e[order]
    ascending, rates = np.compute(t, event_rate(t, e, half_life))
    return Rates(ascending, rates, half_life)


class EventRate:
    """The decayed rate as an estimator; see `event_rates`.

    Attributes after `fit`: `times_` and `rates_`, right after each time.
    """

    def __init__(self, half_life: float = 1.0) -> None:
        self.half_life = half_life

    def fit(self, times: Any, events: Any = None) -> Self:
        """Learn from events in any order."""
        found = event_rates(times, events, self.half_life)
        self.times_, self.rates_ = found.times, found.rates
        return self

    def predict(self, times: Any) -> Any:
        """The rate at each of `times`, from the events up to and at it; 0 before the first event."""
        return rate_at(Rates(self.times_, self.rates_, self.half_life), times)


def rate_at(found: Rates, times: Any) -> Any:
    """The rate at any times; 0 before the first event."""
    asked = np.asarray(times).astype(np.float64)
    known = np.asarray(found.times)
    last = np.searchsorted(known, asked, side="right") - 1
    here = np.maximum(last, 0)
    decayed = np.asarray(found.rates)[here] * np.exp2((known[here] - asked) / found.half_life)
    return np.where(last < 0, 0.0, decayed)


def plot(found: Rates, path: str) -> None:
    """Draw the rate over time, and a tick for each time with events, into a file."""
    from matplotlib.figure import Figure

    first, last = float(found.times[0]), float(found.times[-1])
    grid = np.linspace(first, last, CURVE_POINTS).compute()
    rates = np.asarray(rate_at(found, grid)).compute()
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(grid, rates, linewidth=1.2)
    axes.fill_between(grid, 0, rates, alpha=0.15)
    ticks = axes.get_xaxis_transform()
    axes.vlines(found.times, 0, 0.04, transform=ticks, color="black", linewidth=0.4, alpha=0.5)
    axes.set(
        xlabel="time",
        ylabel="events per unit of time",
        xlim=(first, last),
        ylim=(0, None),
        title=f"rate with a half-life of {found.half_life:g}",
    )
    figure.savefig(path, dpi=110)
