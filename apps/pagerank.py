"""PageRank: how often a surfer who follows links, and sometimes jumps, is on each page.

Spartan (ATC '15), section 5; Brin and Page (1998). An iteration is one product with the sparse matrix of
links, which stays in place, and a few sums; pages without links jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import spartan_ng as np
from spartan_ng.apps.estimator import Estimator, points, require_positive
from spartan_ng.progress import steps


@dataclass(frozen=True, slots=True)
class Ranking:
    """What `pagerank` finds.

    Parameters
    ----------
    ranks : each page's share of the visits, their sum 1, shape (n_pages,)
    change : the sum of the last iteration's changes
    n_iter : number of iterations that were run
    """

    ranks: Any
    change: float
    n_iter: int


def pagerank(A: Any, *, damping: float = 0.85, max_iter: int = 100, tol: float = 1e-10) -> Ranking:
    """Rank the pages of a web of links.

    Parameters
    ----------
    A : weights of the links from each row's page to each column's, shape (n_pages, n_pages), usually sparse
    damping : probability of following a link rather than jumping anywhere
    max_iter : upper bound of the number of iterations
    tol : stop when the ranks' changes sum to no more

    Raises
    ------
    ValueError : A is not square or has negative weights, damping is not in [0, 1)
    """
    A = points(A)
    n = A.shape[0]
    if A.shape[0] != A.shape[1] or n == 0:
        raise ValueError(f"pagerank: A has shape {A.shape}; it must be square")
    if not 0 <= damping < 1:
        raise ValueError(f"pagerank: damping is {damping}, it must be in [0, 1)")
    require_positive("pagerank", max_iter=max_iter)
    out, least = A.sum(axis=1), A.min()
    np.persist(out, least)
    if float(least) < 0:
        raise ValueError(f"pagerank: a link has weight {float(least)}")
    linked = out > 0
    scale = np.where(linked, 1 / np.where(linked, out, 1), 0).persist()
    ranks = np.full(n, 1 / n, A.dtype)
    for n_iter in steps(max_iter, "PageRank"):  # noqa: B007 - told in the result
        before = ranks
        followed = damping * ((before * scale) @ A)
        ranks = followed + (1 - followed.sum()) / n
        change = abs(ranks - before).sum()
        np.persist(ranks, change)
        if float(change) <= tol:
            break
    return Ranking(ranks, float(change), n_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class PageRank(Estimator):
    """PageRank as an estimator; see `pagerank`.

    Attributes after `fit`: `ranks_`, `change_`, `n_iter_`, `n_features_in_`.
    """

    _learned: ClassVar[str] = "ranks_"

    damping: float = 0.85
    max_iter: int = 100
    tol: float = 1e-10

    def fit(self, X: Any, y: Any = None) -> Self:
        """Rank the pages of the links X; `y` is ignored."""
        del y
        found = pagerank(X, **self._options())
        return self._learn(found, found.ranks.shape[0])
