"""Elements of few ranks of a line that does not fit: a sample, and a look that counts and collects.

Medians and quantiles of a file need none of it sorted. Runs of elements, drawn from all over the line, say
between which values an element of each rank lies nearly for sure. One look at the line counts how many
elements lie above each of these bounds, so that it is known what was only likely, and collects what lies
between, of which few are wanted: they are found there in the same way. Values that are frequent are counted
by themselves and never collected. Where the sample says that
more lies between than there is room for, some of the ranks are looked for in a look of their own; and where
one alone takes more, or lies elsewhere than the sample said, the line's runs are sorted on disk as for any
other reader.

Floyd and Rivest, "Expected time bounds for selection" (Communications of the ACM 18(3), 1975).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Box, box_of, box_slices
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import config
from spartan_ng.costs.choices import LOOKED_AGAIN, SAMPLED
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.kernels.sorts import by_this_thread, sorted_lines
from spartan_ng.memory import threads
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.line_sorts import run_length
from spartan_ng.ops.line_states import Between, Bound
from spartan_ng.optimizer.rewrite.selection import EndPlaces, Places, put_in, selected_sorts

_CLUSTERS, _CLUSTER = 8192, 128
"""Places of the line that are looked at, and elements at each, at least: a page of a file has more."""
_FEWEST = 256
"""With fewer places a sample says little of lines whose parts are unlike each other."""
_SPARE = 8
"""A sample, and what is collected, take one part in so many of the memory of all."""
_LITTLE = 16
"""A sample is no more than one part in so many of the line."""
_DEVIATIONS, _MORE = 4.0, 8
"""An element is looked for so many standard deviations of its place, and sampled elements, around it."""
_LOOKS = 4
"""So many looks at a line that lies in memory or a mapped file, at most: they take less time than having its
runs sorted on disk. (`benchmarks larger`: quantiles)"""
_FREQUENT = 8
"""What is one in so many of the sampled values between bounds is counted by itself."""

_log = logging.getLogger(__name__)

Compute = Callable[[Node], Callable[..., Any]]
"""Computes a node; what it gives reads the elements of a box, all of them without one."""
Evaluate = Callable[[list[Node]], list[ArrayRef]]
"""Computes nodes together."""


class Cuts(Struct, frozen=True):
    """Bounds in order, and which of the intervals before, between and behind them are wanted."""

    bounds: tuple[Bound, ...]
    wanted: tuple[bool, ...]


class Look(Struct, frozen=True):
    """Ranks that are looked for together, between which bounds, and how many elements lie there at most."""

    ranks: Any
    cuts: Cuts
    most: int


def selected(roots: Sequence[Node], backend: Backend, evaluate: Evaluate) -> Sequence[Node]:
    """`roots` with the places of sorted lines that do not fit put in, where a look finds them."""
    if "select_places" in config.disabled_passes:
        return roots
    memory_bytes, workers = backend.profile.memory_bytes, backend.workers

    def compute(node: Node) -> Callable[..., Any]:
        (ref,) = evaluate([node])

        def read(*box: tuple[int, int]) -> Any:
            wanted: Box = box or box_of(ref.shape)
            if ref.value is None:
                return np.asarray(backend.gather(ref, wanted))
            return np.asarray(ref.value)[box_slices(wanted)]

        return read

    lines: defaultdict[Node, list[tuple[Node, Places]]] = defaultdict(list)
    for sort, selection in selected_sorts(roots).items():
        line = _as_it_lies(sort.inputs[0])
        per_worker = -(-line.size // workers)
        is_large = run_length(per_worker, line.dtype.itemsize, memory_bytes) > 0
        if is_large and isinstance(selection, Places) and _costs_a_part(line):
            lines[line].append((sort, selection))
    found: dict[Node, EndPlaces | Places] = {}
    for line, sorts in lines.items():
        ranks = sorted({r for _, s in sorts for lo, hi in s.spans for r in range(lo, hi)})
        values = _of_ranks(line, np.array(ranks), memory_bytes * workers // _SPARE, compute)
        if values is not None:
            for sort, selection in sorts:
                own = [r for lo, hi in selection.spans for r in range(lo, hi)]
                made = build.constant(values[np.searchsorted(ranks, own)])
                found[sort] = Places(selection.spans, made)
    return put_in(roots, found) if found else list(roots)


def _as_it_lies(line: Node) -> Node:
    """The same elements in another order or shape, where that is how they lie."""
    while line.op in (Op.RESHAPE, Op.TRANSPOSE) and line.inputs[0].ndim:
        (line,) = line.inputs
    return line


def _costs_a_part(line: Node) -> bool:
    """Whether a part of the elements costs a part: they are data, or made of data one by one."""
    return (
        line.dtype.kind in "iuf"
        and line.dtype.isnative
        and all(
            n.format == "dense"
            and n.shape in ((), line.shape)
            and (n.op is Op.DATA or (n.op is Op.MAP and not n.params and not isinstance(n.fn, UserFunction)))
            for n in topological([line])
        )
    )


def _of_ranks(line: Node, ranks: Any, room: int, compute: Compute) -> Any:
    """The elements of ranks of the sorted line; None where looks do not find them."""
    places = _places(line, room)
    if places is None:
        return None
    drawn = compute(_part(line, places))().reshape(places.shape[0], -1)
    at_most = 1 if _is_unpacked(line) else _LOOKS
    looks = planned(drawn, ranks, line.size, room // line.dtype.itemsize, at_most)
    if not looks:
        _log.info("too much lies where a sample has elements of ranks; runs of the line are sorted")
        return None
    values = []
    for look in looks:
        values.append(_of_look(line, look, compute))
        if values[-1] is None:
            _log.info("elements of ranks do not lie where a sample has them; runs of the line are sorted")
            return None
    return np.concatenate(values)


def _is_unpacked(line: Node) -> bool:
    """Whether some of a line's elements are not mapped, and are read, and perhaps unpacked, in each look."""
    return any(n.data is not None and n.data.chunks is not None for n in topological([line]))


def planned(drawn: Any, ranks: Any, size: int, room: int, at_most: int) -> list[Look]:
    """Looks at a line of a size, each with room for so many elements, for all of its ranks; none where it
    takes more looks.

    Parameters
    ----------
    drawn : sampled elements, a row for each place of the line
    ranks : in order
    """
    cuts = bracketed(drawn, ranks / size)
    most = _expected(drawn, cuts, size)
    if most <= room:
        return [Look(ranks, cuts, most)]
    half = len(ranks) // 2
    # The two in the middle, as others that are next to each other, lie between the same bounds.
    half += half > 0 and ranks[half] == ranks[half - 1] + 1
    if at_most == 1 or half in (0, len(ranks)):
        return []
    first, second = (planned(drawn, r, size, room, at_most // 2) for r in (ranks[:half], ranks[half:]))
    return first + second if first and second else []


def _of_look(line: Node, look: Look, compute: Compute) -> Any:
    """The elements of a look's ranks; None where they do not lie where it looks."""
    counts, kept = _looked(line, look.cuts, look.most, compute)
    return None if kept is None else _told(look.ranks, look.cuts, counts, kept)


def _told(ranks: Any, cuts: Cuts, counts: Any, kept: Any) -> Any:
    """The elements of ranks by what a look has counted and kept; None where they lie elsewhere."""
    *above, numbers = counts.tolist()
    below = np.array([0, *(numbers - k for k in above), numbers])
    is_number = ranks < numbers
    intervals = np.searchsorted(below, ranks[is_number], "right") - 1
    tied = _tied(cuts)
    is_wanted = np.array(cuts.wanted)[intervals]
    if not all(w or k in tied for k, w in zip(intervals.tolist(), is_wanted.tolist(), strict=True)):
        return None
    sizes = np.where(cuts.wanted, np.diff(below), 0)
    firsts = below[:-1] - np.cumsum(sizes) + sizes
    found = np.array([tied.get(k, 0) for k in intervals.tolist()], kept.dtype)
    found[is_wanted] = picked(kept, (ranks[is_number] - firsts[intervals])[is_wanted])
    values = np.full(len(ranks), np.nan if kept.dtype.kind == "f" else 0, kept.dtype)
    values[is_number] = found
    return values


def picked(x: Any, ranks: Any) -> Any:
    """The elements of ranks of a vector's sort, none of which is NaN: by a sample of it and a look, as of a
    line, where there are many."""
    if len(x) >= LOOKED_AGAIN:
        drawn = x[np.random.default_rng(len(x)).integers(0, len(x), _sampled(len(x)))]
        cuts = bracketed(drawn[:, None], ranks / len(x))
        look = Between(x.dtype.str, cuts.bounds, cuts.wanted, len(x))
        states = _by_threads(lambda part: look.state(part, 0), np.array_split(x, threads()))
        counts, *found = reduce(look.combine, states)
        kept = np.concatenate(found)
        values = _told(ranks, cuts, counts, kept) if 2 * len(kept) <= len(x) else None
        if values is not None:
            return values
    return sorted_lines(x)[ranks]


def _looked(line: Node, cuts: Cuts, most: int, compute: Compute) -> tuple[Any, Any]:
    """What a look at the line counts, and finds: no more is read than that."""
    look = Between(line.dtype.str, cuts.bounds, cuts.wanted, most)
    read = compute(build.between(line, cuts.bounds, cuts.wanted, most))
    head = read((0, look.head_bytes))
    return look.opened(read((0, look.used_bytes(head))))


def _expected(drawn: Any, cuts: Cuts, size: int) -> int:
    """How many elements lie in the wanted intervals nearly for sure, by what places of a sample have."""
    look = Between(drawn.dtype.str, cuts.bounds, cuts.wanted, 0)
    parts = np.array_split(drawn, threads())
    shares = np.concatenate(_by_threads(lambda part: look.is_wanted(part).mean(axis=1), parts))
    share = shares.mean() + _DEVIATIONS * shares.std() / len(shares) ** 0.5
    return min(size, int(share * size) + _FEWEST)


def _places(line: Node, room: int) -> Node | None:
    """Places along the first axis, some beside each other in each row; None where there are too few.

    Workers are told where rows begin, and count on from there themselves.
    """
    rows, unit = line.shape[0], prod(line.shape[1:])
    run = -(-max(_CLUSTER, _sampled(line.size) // _CLUSTERS) // unit)
    most = min(line.size * line.dtype.itemsize // _LITTLE, room) // (run * unit * line.dtype.itemsize)
    clusters = min(_CLUSTERS, most, rows // run)
    if clusters < _FEWEST:
        return None
    edges = np.arange(clusters + 1, dtype=np.int64) * (rows - run + 1) // clusters
    # The line seeds it: two runs of a program look at the same places.
    starts = np.random.default_rng(line.size).integers(edges[:-1], edges[1:])
    firsts, further = build.constant(starts[:, None]), build.constant(np.arange(run))
    return build.map_("add", firsts, further)


def _by_threads(one: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Calls a function for every item, by all threads: nothing else runs meanwhile."""
    if min(threads(), len(items)) < 2:
        return by_this_thread(one, items)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(one, items))


def _sampled(size: int) -> int:
    """How many of so many elements are sampled."""
    return int(SAMPLED * size ** (2 / 3))


def _part(line: Node, rows: Node) -> Node:
    """Rows of a line that costs a part."""
    if line.op is Op.DATA:
        return build.take(line, rows, 0)
    inputs = tuple(_part(i, rows) if i.ndim else i for i in line.inputs)
    return replace(line, inputs=inputs, shape=(*rows.shape, *line.shape[1:]))


def bracketed(drawn: Any, fractions: Any) -> Cuts:
    """Bounds between which the elements at fractions of the sorted line lie nearly for sure.

    Parameters
    ----------
    drawn : sampled elements, a row for each place of the line
    fractions : of the elements that come before
    """
    values = sorted_lines(drawn.reshape(-1))
    n = len(values)
    numbers = int(np.searchsorted(values, np.nan)) if drawn.dtype.kind == "f" else n
    ats = np.minimum((fractions * n).astype(int), n - 1).tolist()
    # Two that are next to each other, as in the middle, have one element.
    every = list(dict.fromkeys(ats))
    unlike = _by_threads(lambda at: (drawn <= values[at]).mean(axis=1).std() / len(drawn) ** 0.5, every)
    by_place = dict(zip(every, unlike, strict=True))
    """By sampled elements what a rank is off because places are unlike each other."""
    wanted: list[tuple[int, int]] = []
    """Ranges of sampled elements; -1 and `numbers` are before and behind all."""
    for share, at in zip(fractions.tolist(), ats, strict=True):
        off = _DEVIATIONS * max(by_place[at], (share * (1 - share) / n) ** 0.5)
        lo, hi = int(share * n - off * n) - _MORE, int(share * n + off * n) + _MORE + 1
        lo, hi = max(min(lo, numbers - 1), -1), min(hi, numbers)
        if wanted and lo <= wanted[-1][1]:
            wanted[-1] = (min(lo, wanted[-1][0]), max(hi, wanted[-1][1]))
        else:
            wanted.append((lo, hi))
    bounds: dict[Bound, None] = {}
    spans: list[tuple[Any, Any]] = []
    for lo, hi in wanted:
        between = values[max(lo, 0) : min(hi + 1, numbers)]
        found, counts = np.unique(between, return_counts=True)
        first = (values[lo], False) if lo >= 0 else None
        last = (values[hi], True) if hi < numbers else None
        bounds.update(dict.fromkeys(b for b in (first, last) if b is not None))
        for value in found[counts * _FREQUENT >= max(len(between), _FREQUENT**2)]:
            bounds.update({(value, False): None, (value, True): None})
        spans.append((first, last))
    ordered = tuple(sorted(bounds))
    ends = [None, *ordered, None]
    tied = {k for k in range(1, len(ordered)) if ordered[k - 1][0] == ordered[k][0]}
    inside = [
        k not in tied
        and any(
            (a is None or (ends[k] is not None and ends[k] >= a))
            and (b is None or (ends[k + 1] is not None and ends[k + 1] <= b))
            for a, b in spans
        )
        for k in range(len(ordered) + 1)
    ]
    return Cuts(ordered, tuple(inside))


def _tied(cuts: Cuts) -> dict[int, Any]:
    """By their numbers, intervals of one value."""
    return {
        k + 1: a[0]
        for k, (a, b) in enumerate(zip(cuts.bounds, cuts.bounds[1:], strict=False))
        if a[0] == b[0]
    }
