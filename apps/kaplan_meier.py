"""The Kaplan-Meier estimator of survival, on cumulative sums.

Kaplan and Meier (1958); the variance is Greenwood's. With the subjects in the order of their times, who is
still at risk is a suffix sum, and the logarithm of survival a cumulative sum over distinct times
(Distributed cumulative aggregates, BTW '19, section 1: survival analysis).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import spartan_ng as np
from spartan_ng.apps.checks import array
from spartan_ng.apps.estimator import Estimator
from spartan_ng.apps.pictures import Panel


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
    ValueError : shapes do not fit, no subjects, or a duration that is NaN or infinite
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


def subjects(name: str, durations: Any, observed: Any) -> tuple[Any, Any]:
    """Times and events as floats."""
    t = array(durations).astype(np.float64)
    e = np.ones(t.shape) if observed is None else array(observed).astype(np.float64)
    if t.ndim != 1 or t.shape != e.shape:
        raise ValueError(f"{name}: durations of shape {t.shape} and events of shape {e.shape}")
    if t.size == 0:
        raise ValueError(f"{name}: no subjects")
    if not bool((np.isfinite(t) & np.isfinite(e)).all()):
        raise ValueError(f"{name}: a time, or what happened at it, is NaN or infinite")
    return t, e


def starts_of(t: Any) -> Any:
    """Where each distinct value of an ascending array begins."""
    return np.flatnonzero(np.concatenate([np.ones(1, bool), t[1:] != t[:-1]])).compute()


@dataclass(eq=False, repr=False)
class KaplanMeier(Estimator):
    """The estimator with lifelines' ideas; see `kaplan_meier`.

    Attributes after `fit`: `times_`, `at_risk_`, `events_`, `survival_`, `variance_`, and `median_`, the
    first time that no more than half survive.
    """

    _find = staticmethod(kaplan_meier)
    _learned: ClassVar[str] = "survival_"

    def fit(self, durations: Any, observed: Any = None) -> Self:
        """Estimate from subjects."""
        self._learn(kaplan_meier(durations, observed))
        below = self.times_[self.survival_ <= 0.5]
        self.median_ = float(below[0]) if below.size else float("inf")
        return self

    def predict(self, times: Any) -> Any:
        """The probability of surviving each of `times`."""
        self._require_fit()
        steps = np.concatenate([np.ones(1), np.asarray(self.survival_)])
        return steps[np.searchsorted(np.asarray(self.times_), array(times), side="right")]

    def score(self, durations: Any, observed: Any = None) -> float:
        """1 less the largest difference from the curve of these subjects (Kolmogorov and Smirnov's)."""
        theirs = kaplan_meier(durations, observed)
        return 1.0 - float(abs(self.predict(theirs.times) - np.asarray(theirs.survival)).max())

    def quality(self, *data: Any) -> dict[str, float]:
        """The curve's largest standard error."""
        del data
        return {"largest standard error": float(self.variance_.max() ** 0.5)}

    def _panels(self, *data: Any) -> list[Panel]:
        del data
        return [self._curve]

    def _curve(self, axes: Any) -> None:
        start = min(0.0, float(self.times_[0]))  # nobody has had an event yet
        times = [start, *self.times_]
        curve, spread = [1.0, *self.survival_], [0.0, *(2 * self.variance_**0.5)]
        band = [(max(s - d, 0.0), min(s + d, 1.0)) for s, d in zip(curve, spread, strict=True)]
        axes.step(times, curve, where="post")
        axes.fill_between(times, [b[0] for b in band], [b[1] for b in band], step="post", alpha=0.2)
        axes.set(xlabel="time", ylabel="probability of survival", xlim=(start, None), ylim=(0, 1.02))
        axes.set(title="survival and two standard errors")
