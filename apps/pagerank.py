"""PageRank: how often a surfer who follows links, and sometimes jumps, is on each page.

Spartan (ATC '15), section 5; Brin and Page (1998). An iteration is one product with the sparse matrix of
links, which stays in place, and a few sums; pages without links jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array, points, require_finite, require_positive
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.estimator import Unsupervised
from spartan_ng.apps.pictures import Panel


@dataclass(frozen=True, slots=True)
class Ranking:
    """What `pagerank` finds.

    Parameters
    ----------
    ranks : each page's share of the visits, their sum 1, shape (n_pages,)
    change : the sum of the last iteration's changes
    n_iter : number of iterations that were run
    converged : whether `tol` ended them
    history : each one's changes
    """

    ranks: Any
    change: float
    n_iter: int
    converged: bool
    history: Any


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

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    A = points(A)
    n = A.shape[0]
    if A.shape[0] != A.shape[1] or n == 0:
        raise ValueError(f"pagerank: A has shape {A.shape}; it must be square")
    if not 0 <= damping < 1:
        raise ValueError(f"pagerank: damping is {damping}, it must be in [0, 1)")
    require_positive("pagerank", max_iter=max_iter)
    A, scale = _links(A)
    ranks = np.full(n, 1 / n, A.dtype)
    loop = Iterations("PageRank", max_iter, tol)
    for _ in loop:
        before = ranks
        ranks = _follow(before, A, scale, damping)
        change = abs(ranks - before).sum()
        np.persist(ranks, change)
        loop.saw(float(change))
        loop.converged = float(change) <= tol
    return Ranking(ranks, float(change), loop.n_iter, loop.converged, loop.history)


def _links(A: Any) -> tuple[Any, Any]:
    """The links' weights, and by what a page's are multiplied to sum to 1, or to 0 without links."""
    out, least = A.sum(axis=1), A.min()
    np.persist(out, least)
    if float(least) < 0:
        raise ValueError(f"pagerank: a link has weight {float(least)}")
    require_finite("pagerank", A, out.sum())
    linked = out > 0
    return A, np.where(linked, 1 / np.where(linked, out, 1), 0).persist()


def _follow(ranks: Any, A: Any, scale: Any, damping: float) -> Any:
    """Where the surfer is after one more step; lazy."""
    followed = damping * ((ranks * scale) @ A)
    return followed + (1 - followed.sum()) / ranks.shape[0]


@dataclass(eq=False, repr=False, kw_only=True)
class PageRank(Unsupervised):
    """PageRank as an estimator; see `pagerank`.

    Attributes after `fit`: `ranks_`, `change_`, `n_iter_`, `n_features_in_`.
    """

    _find = staticmethod(pagerank)
    _learned: ClassVar[str] = "ranks_"
    _history: ClassVar[str] = "change of the ranks"
    _sparse: ClassVar[bool] = True

    damping: float = 0.85
    max_iter: int = 100
    tol: float = 1e-10

    def predict(self, pages: Any) -> Any:
        """The ranks of pages, given by their numbers."""
        self._require_fit()
        return np.take(self.ranks_, array(pages).astype(np.int64), axis=0)

    def score(self, X: Any, y: Any = None) -> float:
        """The share of the visits that stays where it is as the surfer of the links X goes on: at most 1."""
        del y
        ranks = np.asarray(self.ranks_)
        return 1.0 - float(abs(_follow(ranks, *_links(self._seen(X)), self.damping) - ranks).sum()) / 2

    def quality(self, *data: Any) -> dict[str, float]:
        """What one more iteration would change."""
        return {"change of one more iteration": 2 * (1.0 - self.score(*data))}

    def _panels(self, *data: Any) -> list[Panel]:
        del data
        return [
            pictures.line(-np.sort(-np.asarray(self.ranks_)), "rank", "page, best first", logarithmic=True)
        ]
