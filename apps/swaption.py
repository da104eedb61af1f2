"""A payer swaption by Monte Carlo simulation of the forward curve (Heath, Jarrow and Morton).

Spartan (ATC '15), section 5. Forward rates move by normal shocks whose sizes fall with the time to
maturity, f(t, T) by volatility * exp(-reversion * (T - t)). So the logarithms of bond prices at expiry are
linear in a path's shocks, and all paths are one product of the shocks (paths × steps) with their effects
(steps × payments); drifts are what makes every discounted bond a martingale in the simulated steps
(Glasserman, 2004, section 3.6).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import spartan_ng as np
from spartan_ng.apps.checks import require_positive
from spartan_ng.apps.options import Estimate, Simulation, discounted_mean, normals


@dataclass(frozen=True, slots=True)
class Effects:
    """How a path's shocks move a swaption's bonds, from today's flat curve.

    Parameters
    ----------
    today : prices of bonds that pay 1 at expiry and at each payment, shape (n_payments + 1,)
    discount : effect of each step's shock on the logarithm of the discount to expiry, shape (n_steps,)
    bonds : on the logarithms of the bonds' prices at expiry, shape (n_steps, n_payments)
    """

    today: Any
    discount: Any
    bonds: Any


def swaption(
    strike: float = 0.03,
    *,
    expiry: float = 1.0,
    payments: int = 10,
    interval: float = 0.5,
    rate: float = 0.03,
    volatility: float = 0.01,
    reversion: float = 0.1,
    steps: int = 12,
    paths: int = 200_000,
    seed: int | None = 0,
) -> Estimate:
    """Price the right to enter a swap; it pays a fixed rate for the floating one from expiry on.

    Parameters
    ----------
    strike : the fixed yearly rate
    expiry : years until the swap begins
    payments : how many there are
    interval : years between two payments
    rate : today's forward rate, continuously compounded, for all maturities
    volatility : of forward rates close to maturity, for a year
    reversion : how fast volatility falls with the time to maturity, for a year
    steps : in which the curve moves until expiry
    paths : how many to simulate
    seed : seed of the paths; None draws others each time

    Raises
    ------
    ValueError : an option that is not positive
    """
    require_positive("swaption", expiry=expiry, payments=payments, interval=interval, reversion=reversion)
    require_positive("swaption", volatility=volatility, steps=steps, paths=paths)
    found = effects(expiry, payments, interval, rate, volatility, reversion, steps)
    drift, level = drifts(found)
    coupons = np.full(payments, strike * interval).compute()
    coupons[-1] += 1
    Z = np.stack(normals(np.random.default_rng(seed), steps, paths), axis=1)
    bonds = np.exp(level + Z @ found.bonds)
    discount = np.exp(drift + Z @ found.discount)
    return discounted_mean(discount * np.maximum(1 - bonds @ coupons, 0), 1.0)


def effects(
    expiry: float,
    payments: int,
    interval: float,
    rate: float,
    volatility: float,
    reversion: float,
    steps: int,
) -> Effects:
    """The linear effects of shocks at the beginning of each step; small NumPy arrays."""
    starts = np.arange(steps) * (expiry / steps)
    ends = expiry + interval * np.arange(payments + 1)
    decay = np.exp(-reversion * (ends - starts[:, None])) - 1
    spread = -volatility * (expiry / steps) ** 0.5 / reversion
    whole = -spread * decay  # of the logarithm of the bond to each end, seen from the step's start
    today, discount, bonds = np.compute(np.exp(-rate * ends), whole[:, 0], whole[:, 1:] - whole[:, :1])
    return Effects(today, discount, bonds)


def drifts(found: Effects) -> tuple[float, Any]:
    """Constants of the logarithms of the discount and of the bonds: expected discounted bonds are today's."""
    logs = np.log(found.today).compute()
    drift = float(logs[0] - found.discount @ found.discount / 2)
    together = found.bonds + found.discount[:, None]
    return drift, logs[1:] - drift - (together * together).sum(axis=0) / 2


@dataclass(eq=False, repr=False)
class Swaption(Simulation):
    """The simulation as an estimator, which learns a price from its own paths; see `swaption`.

    Attributes after `fit`: `price_`, `standard_error_`.
    """

    _find = staticmethod(swaption)

    strike: float = 0.03
    _: KW_ONLY
    expiry: float = 1.0
    payments: int = 10
    interval: float = 0.5
    rate: float = 0.03
    volatility: float = 0.01
    reversion: float = 0.1
    steps: int = 12
    paths: int = 200_000
    random_state: int | None = 0
