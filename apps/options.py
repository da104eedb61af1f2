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
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array, points, require_finite, require_positive
from spartan_ng.apps.estimator import Estimator, Regressor, determination
from spartan_ng.apps.pictures import Panel

Kind = Literal["call", "put"]
Payoff = Literal["european", "asian"]
_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
_DRAWN = 20_000
"""A simulation's picture has prices at these shares of its strike, of so many paths."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What `black_scholes` finds.

    Parameters
    ----------
    calls, puts : prices of options to buy and to sell, shape (n_options,); on the workers
    parity : by how much calls - puts differ from spots - discounted strikes at most, as a share of the spots
    """

    calls: Any
    puts: Any
    parity: float


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
    ValueError : shapes differ, the volatility is not positive, or something is NaN or infinite
    """
    S, K, T = (array(a) for a in (spot, strike, years))
    if not S.shape == K.shape == T.shape:
        raise ValueError(f"black_scholes: spot, strike and years have shapes {S.shape}, {K.shape}, {T.shape}")
    require_positive("black_scholes", volatility=volatility)
    spread = volatility * np.sqrt(T)
    upper = (np.log(S / K) + (rate + volatility * volatility / 2) * T) / spread
    lower = upper - spread
    discounted = K * np.exp(-rate * T)
    calls = S * np.special.ndtr(upper) - discounted * np.special.ndtr(lower)
    puts = discounted * np.special.ndtr(-lower) - S * np.special.ndtr(-upper)
    parity = (abs(calls - puts - (S - discounted)) / S).max()
    np.persist(calls, puts, parity)
    require_finite("black_scholes", S, parity)
    return Prices(calls, puts, float(parity))


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
class BlackScholes(Regressor):
    """The formula as an estimator: `predict` prices calls from columns of spots, strikes and years.

    There is nothing to learn: `fit` prices what it is given.
    Attributes after `fit`: `calls_`, `puts_`, `parity_`, `n_features_in_`.
    """

    _find = staticmethod(black_scholes)
    _learned: ClassVar[str] = "calls_"

    rate: float = 0.02
    volatility: float = 0.3

    def fit(self, X: Any, strike: Any = None, years: Any = None) -> Self:
        """Price options: from three columns, or from spots, strikes and years; `strike` alone is ignored."""
        columns = _columns(X) if years is None else (X, strike, years)
        return self._learn(black_scholes(*columns, **self._options()), 3)

    def predict(self, X: Any) -> Any:
        """The calls' prices, shape (n_options,)."""
        return black_scholes(*_columns(self._seen(X)), **self._options()).calls

    def quality(self, *data: Any) -> dict[str, float]:
        """How far prices are from put-call parity."""
        del data
        return {}

    def _panels(self, *data: Any) -> list[Panel]:
        if not data:
            return []
        X, strike, years = (*data, None, None)[:3]
        S, K, _ = _columns(X) if years is None else (array(a) for a in (X, strike, years))
        return [pictures.premiums(S / K, self.calls_ / K, self.puts_ / K)]


def _columns(X: Any) -> tuple[Any, Any, Any]:
    X = points(X)
    if X.shape[1] != 3:
        raise ValueError(f"BlackScholes: X has shape {X.shape}; its columns are spots, strikes, years")
    return X[:, 0], X[:, 1], X[:, 2]


class Simulation(Estimator):
    """What estimators of simulated prices share: they learn a price from paths of their own."""

    _learned: ClassVar[str] = "price_"

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Simulate; `X` and `y` are ignored."""
        del X, y
        return self._learn(type(self)._find(**self._options()))

    def predict(self, strikes: Any) -> Any:
        """The prices at other strikes, from the same paths where they are seeded; shape (n_strikes,)."""
        return np.asarray([found.price for found in self._at(strikes)])

    def score(self, strikes: Any, prices: Any) -> float:
        """The coefficient of determination of prices that are known for strikes."""
        return determination(array(prices), self.predict(strikes))

    def quality(self, *data: Any) -> dict[str, float]:
        """How far the price may be off, as a share of it: two standard errors."""
        del data
        return {"relative error": 2 * self.standard_error_ / self.price_} if self.price_ else {}

    def _at(self, strikes: Any) -> list[Estimate]:
        options = self._options()
        flat = array(strikes).ravel().compute().tolist()
        return [type(self)._find(**{**options, "strike": strike}) for strike in flat]

    def _panels(self, *data: Any) -> list[Panel]:
        del data
        strikes = [float(share) * self.strike for share in _SHARES]
        few = type(self)(**{**self.get_params(), "paths": min(self.paths, _DRAWN)})
        found = few._at(strikes)
        values, errors = (
            np.asarray(a).compute() for a in zip(*((f.price, f.standard_error) for f in found), strict=True)
        )
        return [pictures.prices(strikes, values, errors, "price and two standard errors")]


@dataclass(eq=False, repr=False)
class MonteCarlo(Simulation):
    """The simulation as an estimator, which learns a price from its own paths; see `monte_carlo`.

    Attributes after `fit`: `price_`, `standard_error_`.
    """

    _find = staticmethod(monte_carlo)

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
