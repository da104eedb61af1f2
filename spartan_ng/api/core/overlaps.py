"""Windows that lie over each other, a slab of them at a time: what NumPy copies before it multiplies it,
looks for its greatest elements or takes its deviations stays in the cache, and all windows are never made."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.operands import values_here
from spartan_ng.costs.choices import SLAB_BYTES, WINDOW_ELEMENTS, WINDOW_LOOPS


def has_windows(args: Sequence[Any]) -> bool:
    """Whether some of the operands are windows here that lie over each other."""
    known = values_here(tuple(args))
    return known is not None and any(type(a) is np.ndarray and door.is_shown_again(a) for a in known)


def over_each_other(args: Sequence[Any], made: int) -> tuple[Any, ...] | None:
    """NumPy's values of operands that are numbers here, of which some are windows that lie over each other,
    and the others small, where there is room for a result of so many elements; None of others."""
    known = values_here(tuple(args))
    if known is None or not door.is_made_here(8 * made):
        return None
    arrays = [a for a in known if type(a) is np.ndarray]
    rest = [a.nbytes for a in arrays if not door.is_shown_again(a)]
    if len(rest) == len(arrays) or any(a.dtype.kind not in "biufc" for a in arrays):
        return None
    return known if door.is_small(sum(rest)) else None


def contract_windows(
    args: Sequence[Any], terms: Sequence[Sequence[Hashable]], result: Sequence[Hashable]
) -> Any:
    """Einstein's sum of operands among which are windows that lie over each other, axes by their labels: by
    NumPy's loops, as they lie, where these go over the elements of the largest once or twice; by BLAS, slab
    by slab, where they would go more often over windows and a small operand. None of others."""
    if not has_windows(args):
        return None
    places = {c: i for i, c in enumerate(dict.fromkeys(c for term in terms for c in term))}
    lengths: dict[Hashable, int] = {}
    for a, term in zip(args, terms, strict=True):
        for c, length in zip(term, np.shape(a), strict=True):
            if lengths.setdefault(c, length) != length:
                return None
    known = over_each_other(args, prod(lengths[c] for c in result))
    if known is None or not all(lengths.values()):
        return None
    labels, out = [[places[c] for c in term] for term in terms], [places[c] for c in result]
    if prod(lengths.values()) <= WINDOW_LOOPS * max(map(np.size, known)):
        are_lines = labels == [[0, 1], [1]] and out == [0]
        is_short = are_lines and len(known[1]) <= WINDOW_ELEMENTS
        return np.matmul(*known) if is_short else _sum_of(known, labels, out)
    if len(known) != 2 or all(map(door.is_shown_again, known)):
        return None
    one = int(not door.is_shown_again(known[0]))
    windows, term, other = known[one], labels[one], labels[1 - one]
    kept = [i for i, c in enumerate(term) if c in out and c not in other]
    is_product = len(set(term)) == len(term) and not set(term) & set(other) & set(out)
    if not is_product or not kept:
        return None
    kind = np.result_type(*known)
    small = np.asarray(known[1 - one], kind)

    def product(slab: Any) -> Any:
        return _sum_of((np.asarray(slab, kind), small), (term, other), out, optimize=True)

    return slab_by_slab(product, windows, kept, [out.index(term[i]) for i in kept])


def _sum_of(known: Sequence[Any], labels: Sequence[list[int]], out: list[int], **how: Any) -> Any:
    spelled = [x for pair in zip(known, labels, strict=True) for x in pair]
    return np.einsum(*spelled, out, **how)


def along_lines(function: Callable[..., Any], a: Any, axis: Any, keepdims: bool, **how: Any) -> Any:
    """What NumPy's function gives that folds windows that are here, and lie over each other, along one axis;
    None of others."""
    if type(a) is not np.ndarray or type(axis) is not int or not -a.ndim <= axis < a.ndim:
        return None
    kept = [i for i in range(a.ndim) if i != axis % a.ndim]
    if not door.is_shown_again(a) or over_each_other((a,), prod(a.shape[i] for i in kept)) is None:
        return None

    def fold(slab: Any) -> Any:
        return function(slab, axis, keepdims=keepdims, **how)

    return slab_by_slab(fold, a, kept, kept if keepdims else list(range(len(kept))))


def slab_by_slab(function: Callable[[Any], Any], a: Any, kept: Sequence[int], places: Sequence[int]) -> Any:
    """What a function gives that has some axes of an array, `kept`, at `places` of its result, and treats
    what lies along them one by one."""
    along, place = max(zip(kept, places, strict=True), key=lambda pair: a.shape[pair[0]])
    length = a.shape[along]
    step = max(SLAB_BYTES * length // a.nbytes, 1)
    found = None
    for first in range(0, length, step):
        part = slice(first, first + step)
        made = function(a[(slice(None),) * along + (part,)])
        if found is None:
            shape = [length if i == place else n for i, n in enumerate(made.shape)]
            found = np.empty_like(made, shape=shape)
        found[(slice(None),) * place + (part,)] = made
    return found
