"""European options by Black and Scholes's formula, and European and Asian ones by Monte Carlo simulation.

Spartan (ATC '15), section 5; Black and Scholes (1973), Glasserman (2004). The formula is one pass over the
options. The simulation is one pass over nothing: paths are drawn, priced and summed block by block and
never stored.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from math import exp, log, pi
from typing import Any, ClassVar, Literal, Self, get_args

import spartan_ng as np
from spartan_ng.apps.estimator import Estimator, require_positive

Kind = Literal["call", "put"]
Payoff = Literal["european", "asian"]


@dataclass(frozen=True, slots=True)
class Prices:
    """What `black_scholes` finds.

    Parameters
    ----------
    calls, puts : prices of options to buy and to sell, shape (n_options,); on the workers
    """

    calls: Any
    puts: Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a simulation finds.

    Parameters
    ----------
    price : the mean of the discounted payoffs
    standard_error : of the price
    """

    price: float
    standard_error: float


def black_scholes(
    spot: Any, strike: Any, years: Any, *, rate: float = 0.02, volatility: float = 0.3
) -> Prices:
    """Price European options on shares that pay no dividends.

    Parameters
    ----------
    spot : what the shares cost now, shape (n_options,)
    strike : what they cost by the options, shape (n_options,)
    years : until the options end, shape (n_options,)
    rate : yearly interest without risk, continuously compounded
    volatility : of the shares, for a year

    Raises
    ------
    ValueError : shapes differ, or the volatility is not positive
    """
    S, K, T = (np.asarray(a) for a in (spot, strike, years))
    if not S.shape == K.shape == T.shape:
        raise ValueError(f"black_scholes: spot, strike and years have shapes {S.shape}, {K.shape}, {T.shape}")
    require_positive("black_scholes", volatility=volatility)
    spread = volatility * np.sqrt(T)
    upper = (np.log(S / K) + (rate + volatility * volatility / 2) * T) / spread
    lower = upper - spread
    discounted = K * np.exp(-rate * T)
    calls = S * np.special.ndtr(upper) - discounted * np.special.ndtr(lower)
    puts = discounted * np.special.ndtr(-lower) - S * np.special.ndtr(-upper)
    np.persist(calls, puts)
    return Prices(calls, puts)


def monte_carlo(
    spot: float = 100.0,
    strike: float = 100.0,
    years: float = 1.0,
    *,
    rate: float = 0.02,
    volatility: float = 0.3,
    kind: Kind = "call",
    payoff: Payoff = "european",
    steps: int = 1,
    paths: int = 1_000_000,
    seed: int | None = 0,
) -> Estimate:
    """Price one option by simulating what its share may cost; each path is also run mirrored.

    Parameters
    ----------
    spot : what the share costs now
    strike : what it costs by the option
    years : until the option ends
    rate : yearly interest without risk, continuously compounded
    volatility : of the share, for a year
    kind : "call" to buy, "put" to sell
    payoff : "european" for the price at the end, "asian" for the mean price of the steps
    steps : of a path
    paths : how many to simulate
    seed : seed of the paths; None draws others each time

    Raises
    ------
    ValueError : an option that is unknown or not positive
    """
    require_positive("monte_carlo", spot=spot, strike=strike, years=years, volatility=volatility)
    require_positive("monte_carlo", steps=steps, paths=paths)
    if kind not in get_args(Kind) or payoff not in get_args(Payoff):
        raise ValueError(f"monte_carlo: kind={kind!r} or payoff={payoff!r} is unknown")
    step = years / steps
    drift, spread = (rate - volatility * volatility / 2) * step, volatility * step**0.5
    Z = normals(np.random.default_rng(seed), steps, paths)
    sign = 1.0 if kind == "call" else -1.0
    both = []
    for mirror in (1.0, -1.0):
        level, total = log(spot) + np.zeros(paths), np.zeros(paths)
        for z in Z:
            level = level + (drift + (mirror * spread) * z)
            total = total + np.exp(level)
        price = np.exp(level) if payoff == "european" else total / steps
        both.append(np.maximum(sign * (price - strike), 0))
    return discounted_mean((both[0] + both[1]) / 2, exp(-rate * years))


def normals(random: Any, count: int, paths: int) -> list[Any]:
    """`count` vectors of standard normal numbers, drawn in parallel from the generator's uniform ones; lazy.

    Box and Muller's transform gives them in pairs; a seeded generator jumps in its stream for each worker.
    """
    out: list[Any] = []
    for _ in range(-(-count // 2)):
        radius = np.sqrt(-2 * np.log1p(-random.random(paths)))
        angle = (2 * pi) * random.random(paths)
        out += [radius * np.cos(angle), radius * np.sin(angle)]
    return out[:count]


def discounted_mean(payoffs: Any, discount: float) -> Estimate:
    """The mean payoff, discounted, and its standard error."""
    mean, variance = np.compute(payoffs.mean(), payoffs.var())
    return Estimate(discount * float(mean), discount * (float(variance) / payoffs.size) ** 0.5)


@dataclass(eq=False, repr=False, kw_only=True)
class BlackScholes(Estimator):
    """The formula as an estimator: `predict` prices calls from columns of spots, strikes and years.

    There is nothing to learn from data; `fit` checks X.
    """

    _kind: ClassVar[str | None] = "regressor"
    _learned: ClassVar[str] = "n_features_in_"

    rate: float = 0.02
    volatility: float = 0.3

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that X has three columns; `y` is ignored."""
        del y
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 3:
            raise ValueError(f"BlackScholes: X has shape {X.shape}; its columns are spots, strikes, years")
        self.n_features_in_ = 3
        return self

    def predict(self, X: Any) -> Any:
        """The calls' prices, shape (n_options,)."""
        X = self._seen(X)
        return black_scholes(X[:, 0], X[:, 1], X[:, 2], **self._options()).calls


@dataclass(eq=False, repr=False)
class MonteCarlo(Estimator):
    """The simulation as an estimator, which learns a price from its own paths; see `monte_carlo`.

    Attributes after `fit`: `price_`, `standard_error_`.
    """

    _learned: ClassVar[str] = "price_"

    spot: float = 100.0
    strike: float = 100.0
    years: float = 1.0
    _: KW_ONLY
    rate: float = 0.02
    volatility: float = 0.3
    kind: Kind = "call"
    payoff: Payoff = "european"
    steps: int = 1
    paths: int = 1_000_000
    random_state: int | None = 0

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Simulate; `X` and `y` are ignored."""
        del X, y
        return self._learn(monte_carlo(**self._options()))
