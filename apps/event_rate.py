"""How often events happen now: a rate that forgets, one recurrence over events in the order of their times.

Each event counts half after every half-life: the count is z_i = y_i + 2^(-gap_i / half_life) * z_(i-1)
(Distributed cumulative aggregates, BTW '19, section 3.3: decayed cumulative sums).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array
from spartan_ng.apps.estimator import Estimator
from spartan_ng.apps.kaplan_meier import starts_of, subjects
from spartan_ng.apps.pictures import Panel

_LOG_2 = 0.6931471805599453
CURVE_POINTS = 1000
"""Times at which the rate is drawn."""


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
    ValueError : shapes do not fit, no times, times that do not ascend or are no numbers, no half-life above 0
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


def event_rates(times: Any, events: Any = None, half_life: float = 1.0) -> Rates:
    """How often events happen, the recent ones counting most.

    Parameters
    ----------
    times : when events happened, in any order, shape (n,)
    events : how many events (or what weight of them) there were at each, shape (n,); default is one
    half_life : after which time an event counts half

    Raises
    ------
    ValueError : shapes do not fit, no times, a time that is NaN or infinite, or no half-life above 0
    """
    t, e = subjects("event_rates", times, events)
    order = np.argsort(t, kind="stable")
    t, e = t[order], e[order]
    ascending, rates = np.compute(t, event_rate(t, e, half_life))
    return Rates(ascending, rates)


@dataclass(eq=False, repr=False)
class EventRate(Estimator):
    """The decayed rate as an estimator; see `event_rates`.

    Attributes after `fit`: `times_` and `rates_`, right after each time.
    """

    _find = staticmethod(event_rates)
    _learned: ClassVar[str] = "rates_"
    _measure: ClassVar[str] = "log-likelihood of an event"

    half_life: float = 1.0

    def fit(self, times: Any, events: Any = None) -> Self:
        """Learn from events in any order."""
        return self._learn(event_rates(times, events, **self._options()))

    def predict(self, times: Any) -> Any:
        """The rate at each of `times`, from the events up to and at it; 0 before the first event."""
        asked = array(times).astype(np.float64)
        known = np.asarray(self.times_)
        last = np.searchsorted(known, asked, side="right") - 1
        here = np.maximum(last, 0)
        decayed = np.asarray(self.rates_)[here] * np.exp2((known[here] - asked) / self.half_life)
        return np.where(last < 0, 0.0, decayed)

    def score(self, times: Any, events: Any = None) -> float:
        """How well the rate before each event foretells it: a Poisson process's log-likelihood, per event.

        It is of the rate that these events make; simultaneous ones are one time's, and the first foretells
        only.
        """
        found = event_rates(times, events, **self._options())
        t, e = subjects("EventRate", times, events)
        t, starts = np.asarray(found.times), starts_of(np.asarray(found.times))
        counts = np.segment_sum(e[np.argsort(array(times), kind="stable")], starts)[1:]
        last = np.append(starts[1:], t.size).compute() - 1
        rates, at = np.asarray(found.rates)[last], t[last]
        kept = np.exp2(-(at[1:] - at[:-1]) / self.half_life)
        expected = rates[:-1] * (1 - kept) * (self.half_life / _LOG_2)
        likely = np.special.xlogy(counts, rates[:-1] * kept).sum() - expected.sum()
        total = float(counts.sum())
        return float(likely) / total if total else 0.0

    def _panels(self, *data: Any) -> list[Panel]:
        del data
        return [self._curve]

    def _curve(self, axes: Any) -> None:
        first, last = float(self.times_[0]), float(self.times_[-1])
        grid = np.linspace(first, last, CURVE_POINTS).compute()
        rates = np.asarray(self.predict(grid)).compute()
        axes.plot(grid, rates, linewidth=1.2)
        axes.fill_between(grid, 0, rates, alpha=0.15)
        (ticks,) = pictures.few(np.asarray(self.times_))
        across = axes.get_xaxis_transform()
        axes.vlines(ticks, 0, 0.04, transform=across, color="black", linewidth=0.4, alpha=0.5)
        axes.set(
            xlabel="time",
            ylabel="events per unit of time",
            xlim=(first, last),
            ylim=(0, None),
            title=f"rate with a half-life of {self.half_life:g}",
        )
