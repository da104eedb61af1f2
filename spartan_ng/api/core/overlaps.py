"""Windows that lie over each other, a slab of them at a time: what NumPy copies before it multiplies it,
looks for its greatest elements or takes its deviations stays in the cache, and all windows are never made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.operands import values_here
from spartan_ng.costs.choices import SLAB_BYTES, WINDOW_ELEMENTS, WINDOW_LOOPS
from spartan_ng.graph.node import Node, Op, sliced
from spartan_ng.graph.windows import are_windows

_SHOWN = frozenset({Op.RESHAPE, Op.TRANSPOSE, Op.SLICE, Op.BROADCAST})
MOST_STEPS = 12
"""Steps from a product to what it is made of, at most, that are looked at. (chosen)"""


def has_windows(args: Sequence[Any]) -> bool:
    """Whether some of the operands are windows here that lie over each other."""
    known = values_here(tuple(args))
    return True in [type(a) is np.ndarray and door.is_shown_again(a) for a in known or ()]


def over_each_other(args: Sequence[Any], made: int) -> tuple[Any, ...] | None:
    """NumPy's values of operands that are numbers here, of which some are windows that lie over each other,
    and the others small, where there is room for a result of so many elements; None of others."""
    known = values_here(tuple(args))
    if known is None:
        return None
    arrays = [a for a in known if type(a) is np.ndarray]
    again = [door.is_shown_again(a) for a in arrays]
    is_made = any(door.is_made_of(a, made) for a, is_again in zip(arrays, again, strict=True) if is_again)
    if not is_made or any(a.dtype.kind not in "biufc" for a in arrays):
        return None
    rest = (a.nbytes for a, is_again in zip(arrays, again, strict=True) if not is_again)
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


def sum_of_products(node: Node, axes: Collection[int]) -> Any:
    """The sum along axes of a product that has yet to be made, of windows that lie over each other and what
    is small: a contraction, too. None of others, and of what is not finite, of which the plan warns."""
    if node.dtype.char not in "fdFDlq" or not node.size or not door.is_open():
        return None
    factors = _factors(node, MOST_STEPS)
    if factors is None or len(factors) < 2 or np.result_type(*factors) != node.dtype:
        return None
    every = range(node.ndim)
    # An axis along which a factor is stretched is none of its own.
    terms = [[i for i in every if f.strides[i] or f.shape[i] == 1] for f in factors]
    own = [f[tuple(slice(None) if i in t else 0 for i in every)] for f, t in zip(factors, terms, strict=True)]
    if not set(axes) <= set().union(*terms) or set().union(*terms) != set(every):
        return None
    found = contract_windows(own, terms, [i for i in every if i not in axes])
    return found if found is not None and np.isfinite(found).all() else None


def _factors(node: Node, steps: int) -> list[Any] | None:
    """The values whose product a node is, each stretched to its shape and as it lies; None where it is none
    of what is here, or takes more steps."""
    if node.op is Op.DATA:
        value = None if node.data is None or node.format != "dense" else node.data.value
        return [value] if type(value) is np.ndarray else None
    if not steps or not (node.op in _SHOWN or node.fn == "multiply" or are_windows(node)):
        return None
    found = [_factors(i, steps - 1) for i in node.inputs[: 1 if node.fn == "take" else 2]]
    if any(f is None for f in found):
        return None
    factors = [f for of_one in found for f in of_one or ()]
    try:
        return [_shown(node, f) for f in factors]
    except ValueError:  # NumPy would have to copy it
        return None


def _shown(node: Node, value: Any) -> Any:
    """What a step that moves no element shows of a value."""
    if node.op is Op.RESHAPE:
        return value.reshape(node.shape, copy=False)
    if node.op is Op.TRANSPOSE:
        return value.transpose(node.params[0])
    if node.op is Op.SLICE:
        return value[sliced(node)]
    if node.fn == "take":
        (axis,), (starts, length) = node.params, node.inputs[1].shape
        shown = np.lib.stride_tricks.sliding_window_view(value, length, axis)
        return np.moveaxis(shown[(slice(None),) * axis + (slice(starts),)], -1, axis + 1)
    return np.broadcast_to(value, node.shape)


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
