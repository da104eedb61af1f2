"""Harrell's concordance: how often, of two subjects, the one with the greater risk has its event first.

Harrell et al. (1982). With the subjects in the order of their times, those that outlive one are a suffix,
which is a few aligned blocks of doubling sizes; in a sorted block the lesser risks are found by bisection.
That counts all pairs in n * log(n)² steps.
"""

from __future__ import annotations

from typing import Any

import numpy


def concordance(times: Any, seen: Any, risks: Any) -> float:
    """The share of comparable pairs whose risks are in the order of their events; a tie of risks is half.

    A pair is comparable if the event of one was seen while the other was still at risk.

    Parameters
    ----------
    times : time until the event, or until the subject was lost from sight, shape (n,)
    seen : whether the event was seen, shape (n,)
    risks : shape (n,)

    Raises
    ------
    ValueError : no pair is comparable
    """
    times, seen, risks = numpy.asarray(times), numpy.asarray(seen).astype(bool), numpy.asarray(risks)
    order = numpy.lexsort((~seen, times))
    times, seen = times[order], seen[order]
    n = len(times)
    ranks = numpy.unique(risks[order], return_inverse=True)[1]
    outlived = numpy.searchsorted(times, times, side="right")
    censored = numpy.add.accumulate(~seen)
    at_the_time = censored[outlived - 1] - censored  # lost from sight at the time of an event: after it
    first = (outlived - at_the_time)[seen]
    lesser, up_to = (_below(ranks, first, ranks[seen], side) for side in ("left", "right"))
    pairs = int((n - first).sum())
    if not pairs:
        raise ValueError("concordance: no two subjects can be compared")
    return float((lesser + up_to).sum()) / 2 / pairs


def _below(ranks: Any, first: Any, limits: Any, side: Any) -> Any:
    """How many of `ranks[first:]` are below each limit ("left"), or not above it ("right")."""
    n = len(ranks)
    size = 1 << max(n - 1, 0).bit_length()
    padded = numpy.full(size, n, numpy.int64)
    padded[:n] = ranks
    counts, at, width = numpy.zeros(len(first), numpy.int64), first.copy(), 1
    while width < size:
        here = (at & width) != 0
        block = at[here] // width
        keys = (
            numpy.sort(padded.reshape(-1, width)) + numpy.arange(size // width)[:, None] * (n + 1)
        ).ravel()
        found = numpy.searchsorted(keys, limits[here] + block * (n + 1), side=side)
        counts[here] += found - block * width
        at[here] += width
        width *= 2
    whole = first == 0
    counts[whole] = numpy.searchsorted(numpy.sort(ranks), limits[whole], side=side)
    return counts
