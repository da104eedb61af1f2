"""The Kaplan-Meier estimator of survival, and event rates that forget, on cumulative sums.

Kaplan and Meier (1958); the variance is Greenwood's. With the subjects in the order of their times, who is
still at risk is a suffix sum, and the logarithm of survival a cumulative sum over distinct times
(Distributed cumulative aggregates, BTW '19, section 1: survival analysis). Decayed rates are a recurrence
of its section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import spartan_ng as np


@dataclass(frozen=True, slots=True)
class Survival:
    """What `kaplan_meier` finds, one row for each distinct time.

    Parameters
    ----------
    times : distinct times, ascending
    at_risk : subjects whose time is not before it
    events : events at it
    survival : estimated probability of no event up to and at it
    variance : Greenwood's variance of `survival`
    """

    times: Any
    at_risk: Any
    events: Any
    survival: Any
    variance: Any


def kaplan_meier(durations: Any, observed: Any = None) -> Survival:
    """Estimate the probability of surviving each time.

    Parameters
    ----------
    durations : time until the event, or until the subject was lost from sight, shape (n,)
    observed : whether the event was seen, shape (n,); default is always

    Raises
    ------
    ValueError : shapes do not fit, no subjects, or a duration that is NaN
    """
    t, e = subjects("kaplan_meier", durations, observed)
    order = np.argsort(t, kind="stable")
    t, e = t[order], e[order]
    starts = starts_of(t)
    events = np.segment_sum(e, starts)
    at_risk = np.asarray(t.shape[0] - starts).astype(np.float64)
    with_none_left = at_risk == events
    left = np.where(with_none_left, 1.0, at_risk - events)
    survival = np.cumprod(1.0 - events / at_risk)
    spread = np.cumsum(np.where(with_none_left, 0.0, events / (at_risk * left)))
    found = np.compute(t[np.asarray(starts)], at_risk, events, survival, survival * survival * spread)
    return Survival(*found)


def event_rate(times: Any, events: Any, half_life: float) -> Any:
    """Events per unit of time, each counting half after every `half_life`; at each of the ascending `times`.

    The decayed count of events is z_i = events_i + 2^(-(t_i - t_(i-1)) / half_life) * z_(i-1); a steady
    rate r has the count r * half_life / log(2).
    """
    if half_life <= 0:
        raise ValueError(f"event_rate: half_life is {half_life}, it must be positive")
    t, e = subjects("event_rate", times, events)
    gaps = t[1:] - t[:-1]
    if bool((gaps < 0).any()):
        raise ValueError("event_rate: times must ascend")
    weights = np.concatenate([np.zeros(1), np.exp2(-gaps / half_life)])
    return np.cumsumprod(e, weights) * (float(np.log(np.asarray(2.0))) / half_life)


def subjects(name: str, durations: Any, observed: Any) -> tuple[Any, Any]:
    """Times and events as floats."""
    t = np.asarray(durations).astype(np.float64)
    e = np.ones(t.shape) if observed is None else np.asarray(observed).astype(np.float64)
    if t.ndim != 1 or t.shape != e.shape:
        raise ValueError(f"{name}: durations of shape {t.shape} and events of shape {e.shape}")
    if t.size == 0:
        raise ValueError(f"{name}: no subjects")
    if bool(np.isnan(t).any()):
        raise ValueError(f"{name}: a time is NaN")
    return t, e


def starts_of(t: Any) -> Any:
    """Where each distinct value of an ascending array begins."""
    return np.flatnonzero(np.concatenate([np.ones(1, bool), t[1:] != t[:-1]])).compute()


class KaplanMeier:
    """The estimator with lifelines' ideas; see `kaplan_meier`.

    Attributes after `fit`: `survival_` (a `Survival`), `median_`.
    """

    def fit(self, durations: Any, observed: Any = None) -> Self:
        """Estimate from subjects."""
        self.survival_ = kaplan_meier(durations, observed)
        below = self.survival_.times[self.survival_.survival <= 0.5]
        self.median_ = float(below[0]) if below.size else float("inf")
        return self

    def predict(self, times: Any) -> Any:
        """The probability of surviving each of `times`."""
        found = self.survival_
        steps = np.concatenate([np.ones(1), np.asarray(found.survival)])
        return steps[np.searchsorted(np.asarray(found.times), np.asarray(times), side="right")]


def plot(survival: Survival, path: str) -> None:
    """Draw the curve and two standard errors around it into a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    spread = 2 * survival.variance**0.5
    axes.step(survival.times, survival.survival, where="post")
    axes.fill_between(
        survival.times, survival.survival - spread, survival.survival + spread, step="post", alpha=0.2
    )
    axes.set(xlabel="time", ylabel="probability of survival", ylim=(0, 1.02))
    figure.savefig(path)
