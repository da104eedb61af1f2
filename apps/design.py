"""The points as a linear model reads them: beside their columns one of ones, where it has an intercept.

Nobody stores that column. Joined to the points it would be a copy of all of them, and decompress what
`np.compress_columns` made; its products are an addition and a sum, in the pass that reads the points anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import spartan_ng as np


@dataclass(frozen=True, slots=True)
class Design:
    """The design matrix: points X, shape (n_points, n_features), and ones if the model has an intercept.

    Weights have a row for each of its columns, the intercept's last.
    """

    X: Any
    with_intercept: bool

    @property
    def dtype(self) -> Any:
        """Of the points."""
        return self.X.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Points, and columns with that of ones."""
        return self.X.shape[0], self.X.shape[1] + self.with_intercept

    def times(self, weights: Any) -> Any:
        """The product with weights, shape (columns,) or (columns, k): a predictor of each point."""
        return self.X @ weights[:-1] + weights[-1] if self.with_intercept else self.X @ weights

    def turned_times(self, values: Any) -> Any:
        """The product of its transpose with values of the points, shape (n_points,) or (n_points, k)."""
        sums = self.X.T @ values if values.ndim == 2 else values @ self.X
        return np.concatenate([sums, values.sum(axis=0)[None]]) if self.with_intercept else sums

    def parted(self, weights: Any) -> tuple[Any, Any]:
        """The weights of features, and the intercept, a number for each column of weights: 0 without one."""
        rest, last = (weights[:-1], weights[-1]) if self.with_intercept else (weights, 0 * weights[-1])
        return rest, last if weights.ndim == 2 else float(last)
