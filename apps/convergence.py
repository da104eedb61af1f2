"""Iterations that know whether they have converged, remember how they went, and warn who stops too early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import spartan_ng as np
from spartan_ng.apps.errors import ConvergenceWarning, warn
from spartan_ng.progress import steps


def warn_of_equal_points(found: int, wanted: int) -> None:
    """Warn where there are less clusters than wanted."""
    if found < wanted:
        warn(
            f"Number of distinct clusters ({found}) found smaller than n_clusters ({wanted}). Possibly due "
            "to duplicate points in X.",
            ConvergenceWarning,
        )


class Iterations:
    """The numbers 1 to `most`, until the loop's body says that it has converged.

    Parameters
    ----------
    name : of the algorithm, for the bar and the warning
    most : upper bound of the number of iterations
    tol : by which the body decides; 0 asks for exactly `most` iterations, and then nothing warns
    option : what the caller knows `most` by
    """

    def __init__(self, name: str, most: int, tol: float, option: str = "max_iter") -> None:
        self._name, self.most, self._tol, self._option = name, most, tol, option
        self._seen: list[float] = []
        self.n_iter = 0
        self.converged = False

    def __iter__(self) -> Iterator[int]:
        numbers = steps(self.most, self._name)
        while not self.converged:
            number = next(numbers, None)
            if number is None:
                self._warn()
                return
            self.n_iter = number
            yield number

    def saw(self, value: float) -> None:
        """Remember what the iteration is to lower (or raise), for `history`."""
        self._seen.append(float(value))

    @property
    def history(self) -> Any:
        """What was seen, a NumPy array."""
        return np.asarray(self._seen, np.float64).compute()

    def ended(self, n_iter: int, converged: bool) -> None:
        """Take over how a loop of somebody else's went."""
        self.n_iter, self.converged = n_iter, converged
        if not converged:
            self._warn()

    def _warn(self) -> None:
        if not self._tol > 0:
            return
        warn(
            f"{self._name} has not converged in {self.most} iterations ({self._option}={self.most}, "
            f"tol={self._tol:g}): allow more, or scale the data",
            ConvergenceWarning,
        )
