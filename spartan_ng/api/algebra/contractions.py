"""Einstein's sums: contractions of two operands at a time, along NumPy's path."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, reduce
from itertools import combinations, pairwise, takewhile
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spartan_ng.api.algebra import products
from spartan_ng.api.base import manipulation
from spartan_ng.api.core import door
from spartan_ng.api.core.cell import laid_out
from spartan_ng.api.core.conversion import as_handle, in_order
from spartan_ng.api.core.dispatch import by_numpy, fresh, numpy_function
from spartan_ng.api.core.handle import settle
from spartan_ng.api.core.kinds import are_numbers
from spartan_ng.api.core.layouts import asked_of_tiny, lie
from spartan_ng.api.core.operands import small_values, stored, values_here
from spartan_ng.api.core.overlaps import contract_windows
from spartan_ng.api.core.quick import AS_LOOPS, ASKING, shortened
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.costs.choices import WINDOW_LOOPS, is_one_loop, is_stack_of_lines
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


class _Work(NamedTuple):
    """What a contraction takes.

    Parameters
    ----------
    products : of elements, that NumPy's loops over all indices make
    made : elements of the result
    lines : of how many products of a matrix, with a vector of its own, it is a stack; 0: of others
    is_single : whether it is a product of matrices, or several, and no stack of them
    stacked : elements of a stack that lies along the last axes of two terms and the result
    """

    products: int
    made: int
    lines: int
    is_single: bool
    stacked: int


@lru_cache(maxsize=1024)
def _work(text: str, *shapes: tuple[int, ...]) -> _Work:
    """What spelled terms take."""
    left, arrow, result = _without_ellipses(text.replace(" ", ""), shapes).partition("->")
    terms, lengths = left.split(","), dict[str, int]()
    for term, shape in zip(terms, shapes, strict=False):
        for letter, length in zip(term, shape, strict=False):
            lengths[letter] = max(length, lengths.get(letter, 1))
    kept = set(result) if arrow else {c for c in lengths if left.count(c) == 1}
    ends = [c[::-1] for c in (*terms, result)]
    alike = list(takewhile(lambda c: len({*c}) == 1, zip(*ends, strict=False)))
    few, many = sorted(terms, key=len) if len(terms) == 2 else ("", "")
    stack, rows = set(few) & kept, set(many) - set(few)
    is_of_lines = set(few) < set(many) and len(set(many)) == len(many) and len(set(few)) == len(few)
    is_of_lines = is_of_lines and bool(stack) and stack < set(few) and rows <= kept
    return _Work(
        prod(lengths.values()),
        prod(lengths[c] for c in kept & set(lengths)),
        prod(lengths[c] for c in stack) if is_of_lines else 0,
        not any(kept & set(a) & set(b) for a, b in combinations(terms, 2)),
        prod(lengths.get(c, 1) for c, *_ in alike) if alike and len(terms) == 2 else 0,
    )


def _without_ellipses(text: str, shapes: Sequence[tuple[int, ...]]) -> str:
    """Terms with a letter for each axis that an ellipsis stands for, those of which end together."""
    if "..." not in text:
        return text
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    free = [c for c in string.ascii_letters if c not in text]
    counts = [len(shape) - len(t.replace("...", "")) for t, shape in zip(terms, shapes, strict=False)]
    own = ["".join(free[-n:]) if "..." in t and n > 0 else "" for t, n in zip(terms, counts, strict=False)]
    spelled = ",".join(t.replace("...", o) for t, o in zip(terms, own, strict=False))
    most = max(own, key=len)
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        result = "..." + "".join(sorted(c for c in letters if letters.count(c) == 1))
    return f"{spelled}->{result.replace('...', most)}"


def _adds(text: str, a: Any) -> bool:
    """Whether one operand is added up: what only has its axes in another order, or diagonals, is shown."""
    work = _work(text, np.shape(a))
    return work.made < work.products


def _at_once(text: str, known: Sequence[Any], how: dict[str, Any]) -> Any:
    """What NumPy gives for values that are here: by its loops if they have little to do, add nothing, or go
    once over a stack of matrices in memory, as those of a plan would; by BLAS if that makes single products.
    None for others."""
    work = _work(text, *map(np.shape, known))
    largest = max(known, key=np.size)
    arrays = [a for a in known if isinstance(a, np.ndarray)]
    if not door.is_small(sum(a.nbytes for a in arrays)):
        is_a_stack = work.lines > 0 and work.products == largest.size and not is_mapped(largest)
        is_a_stack = is_a_stack and {a.dtype for a in known} == {largest.dtype} and door.works_here()
        return np.einsum(text, *known, **how) if is_a_stack and is_one_loop(largest, work.lines) else None
    nbytes = work.made * max((a.itemsize for a in arrays), default=1)
    adds_nothing = work.products == work.made and door.is_small(nbytes)
    few = door.is_looped(work.products) or work.products <= WINDOW_LOOPS * np.size(largest)
    if few or adds_nothing or is_stack_of_lines(work.products, work.stacked):
        return np.einsum(text, *known, **how)
    if not work.is_single or how.get("dtype") is not None or not door.is_small(nbytes):
        return None
    if how.get("optimize"):
        found = np.einsum(text, *known, **how)
    else:  # as NumPy's loops have it: all of one dtype before anything is added, and axes in their order
        kind = np.result_type(*(np.asarray(a).dtype for a in known))
        order = asked_of_tiny(known, lambda *tiny: np.einsum(text, *tiny))  # type: ignore[arg-type]
        alike = (np.asarray(a, kind) for a in known)
        found = laid_out(np.einsum(text, *alike, **{**how, "optimize": True}), order)
    return found + 0 if found.dtype.kind in "fc" else found  # NumPy's loops add to zeros: no -0.0


@numpy_function(np.einsum, front=shortened(np.einsum, 12, AS_LOOPS, ASKING | {"optimize"}))
def einsum(
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> ndarray:
    """Einstein's sum: contractions of two operands at a time, along NumPy's path, asked for or not."""
    if len(operands) > 1 and out is dtype is None and order == "K" and casting == "safe":
        text = operands[0]
        here = values_here(operands[1:]) if type(text) is str and door.is_open() else None
        if here is not None and (len(here) > 1 or _adds(text, here[0])):
            with suppress(ValueError):  # ours name the shapes
                found = _at_once(text, here, {"optimize": optimize} if optimize is not False else {})
                if found is not None:
                    return fresh(found)  # type: ignore[no-any-return]
    if order not in ("C", "F", "A", "K", "c", "f", "a", "k", None):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    np.can_cast(np.int8, np.int8, casting)  # type: ignore[arg-type] # NumPy's error for what is no rule
    dtype = None if dtype is None else np.dtype(dtype)
    arrays, terms, result = _einsum_terms(operands)
    if not isinstance(optimize, bool):  # a path, or the name of a way to find one
        np.einsum_path(_spelled(terms, result), *_stand_ins(a.shape for a in arrays), optimize=optimize)
    if order in ("A", "a"):
        order = "F" if all(a._layout().flags.f_contiguous for a in arrays) else "C"
    other = out is not None and out.dtype != np.result_type(*(a.dtype for a in arrays))
    turned = dtype is not None and not dtype.isnative
    if other or turned or not all(are_numbers(a.dtype, dtype) for a in arrays):
        return by_numpy(np.einsum, *operands, out=out, dtype=dtype, order=order, casting=casting)  # type: ignore[no-any-return]
    if len(arrays) == 1 and out is None and set(terms[0]) == set(result):
        shown, term = _diagonals(arrays[0], terms[0])
        if not result:
            return shown[()]  # type: ignore[no-any-return]
        if term != result:
            shown = manipulation.transpose(shown, [term.index(c) for c in result])
        elif shown is arrays[0]:
            shown = shown[...]
        return in_order(shown, order)
    for i, (a, term) in enumerate(zip(arrays, terms, strict=True)):
        if len(set(term)) < len(term) and a.format == "dense" and _are_square(a.shape, term):
            arrays[i], terms[i] = _diagonals(a, term)  # views: nobody reads what lies beside them
    known = None if out is not None else small_values(tuple(arrays), broadcast=False)
    if known is not None:
        how = {"dtype": dtype, "order": order, "casting": casting}
        found = _at_once(_spelled(terms, result), known, how)
        if found is not None:
            return fresh(found)  # type: ignore[no-any-return]
    if dtype is not None and optimize is False:
        for i, a in enumerate(arrays):
            if not np.can_cast(a.dtype, dtype, casting):  # type: ignore[arg-type]
                rule = f"cannot be cast to {dtype} by the rule {casting!r}"
                raise TypeError(f"einsum: operand {i} of {a.dtype} {rule}")
    text = _spelled(terms, result)
    lies = asked_of_tiny(arrays, lambda *tiny: np.einsum(text, *tiny))
    if out is dtype is None and order == "K" and casting == "safe":
        over = contract_windows(arrays, terms, result)
        if over is not None:
            return fresh(laid_out(over, lies) if np.ndim(over) > 1 else over)  # type: ignore[no-any-return]
    kind = dtype if dtype is not None else np.result_type(*(a.dtype for a in arrays))
    node = _contracted([build.cast(a._node(), kind) for a in arrays], terms, result, kind)
    laid = in_order(lie(wrap_node(node), lies), order.upper() if order else order)
    if known is not None and door.is_small(laid.nbytes):
        settle(laid)  # what it is used for is small, too
    return stored("einsum", laid, out, casting="unsafe")


def _contracted(nodes: list[Node], terms: list[str], result: str, kind: np.dtype[Any]) -> Node:
    """The contraction of operands of one dtype, two at a time."""
    for i in range(len(nodes)):
        nodes[i], terms[i] = _alone(nodes[i], terms[i], _needed(terms, i, result))
    while len(nodes) > 1:
        i, j = _next_pair(nodes, terms, result)
        later = "".join(t for k, t in enumerate(terms) if k not in (i, j)) + result
        node, term = _pair(nodes[i], terms[i], nodes[j], terms[j], later, kind)
        for k in sorted((i, j), reverse=True):
            del nodes[k], terms[k]
        nodes.append(node)
        terms.append(term)
    node, term = _alone(nodes[0], terms[0], result)
    negative = node.op in (Op.MAP, Op.FOLD) or (node.fn == "contract" and kind.kind == "c")
    if negative and kind.kind in "fc":  # NumPy adds to zeros: -0.0 becomes 0.0, also of BLAS's complex sums
        node = as_handle(ufuncs.add(wrap_node(node), 0.0))._node()
    return build.transpose(node, [term.index(c) for c in result])


def _spelled(terms: list[str], result: str) -> str:
    """The subscripts in NumPy's letters; the axes of an ellipsis have others here."""
    letters = {c: string.ascii_letters[k] for k, c in enumerate(dict.fromkeys("".join(terms)))}
    return (
        ",".join("".join(letters[c] for c in t) for t in terms) + "->" + "".join(letters[c] for c in result)
    )


def _are_square(shape: tuple[int, ...], term: str) -> bool:
    """Whether axes of one letter have one length."""
    return len(set(zip(term, shape, strict=True))) == len(set(term))


def _diagonals(a: ndarray, term: str) -> tuple[ndarray, str]:
    """The diagonals of letters that are repeated in a term, as a view."""
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            a = manipulation.diagonal_view(a, 0, i, j, writeable=True)
            term = "".join(x for k, x in enumerate(term) if k not in (i, j)) + c
    return a, term


def _einsum_terms(operands: tuple[Any, ...]) -> tuple[list[ndarray], list[str], str]:
    """Arrays, a term of letters for each, and the output's letters, ellipses spelled out."""
    if len(operands) < 2:
        raise ValueError("must provide at least an operand and a subscripts list to einsum")
    if isinstance(operands[0], str):
        text = operands[0].replace(" ", "")
        arrays = [as_handle(a) for a in operands[1:]]
    else:
        arrays = [as_handle(a) for a in operands[0 : len(operands) - len(operands) % 2 : 2]]
        lists = list(operands[1::2]) + ([operands[-1]] if len(operands) % 2 else [])
        if any(not 0 <= i < 52 for one in lists for i in one if i is not Ellipsis):
            raise ValueError(f"einsum: a subscript of {lists} is not within the valid range [0, 52)")
        letters = [
            "".join("..." if i is Ellipsis else chr(65 + i + 6 * (i > 25)) for i in one) for one in lists
        ]
        text = ",".join(letters[: len(arrays)]) + ("->" + letters[-1] if len(operands) % 2 else "")
    terms, result = _terms(text, tuple([a.shape for a in arrays]))
    return arrays, list(terms), result


@lru_cache(maxsize=1024)
def _terms(text: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[str, ...], str]:
    """A term of letters for each operand, and the output's letters, ellipses spelled out."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"einsum: {len(terms)} terms in {text!r} for {len(shapes)} operands")
    spare = [c for c in map(chr, range(0x100, 0x200)) if c not in text] if "..." in text else []
    widest = 0
    for i, (t, shape) in enumerate(zip(terms, shapes, strict=True)):
        if "..." in t:
            extra = len(shape) - len(t.replace("...", ""))
            widest = max(widest, extra)
            terms[i] = t.replace("...", "".join(spare[32 - extra : 32]) if extra else "")
    dots = "".join(spare[32 - widest : 32])
    if arrow:
        if widest and "..." not in right:
            raise ValueError(
                "einsum: output has more dimensions than subscripts given, but no '...' ellipsis"
            )
        result = right.replace("...", dots)
    else:
        joined = "".join(terms)
        result = dots + "".join(sorted(c for c in set(joined) - set(dots) if joined.count(c) == 1))
    for t, shape in zip(terms, shapes, strict=True):
        if len(t) != len(shape):
            raise ShapeError(f"einsum: term {t!r} does not fit an operand of shape {shape}")
    if len(set(result)) != len(result) or any(c not in "".join(terms) for c in result):
        raise ValueError(f"einsum: output {right!r} repeats a letter or has one that no operand has")
    _check_sizes(shapes, terms)
    return tuple(terms), result


def _check_sizes(shapes: Sequence[tuple[int, ...]], terms: list[str]) -> None:
    sizes: dict[str, int] = {}
    for shape, t in zip(shapes, terms, strict=True):
        own: dict[str, int] = {}
        for c, n in zip(t, shape, strict=True):
            if own.setdefault(c, n) != n:
                raise ShapeError(f"einsum: axis {c!r} has lengths {own[c]} and {n} in shape {shape}")
            if sizes.setdefault(c, n) != n and 1 not in (sizes[c], n):
                raise ShapeError(
                    f"einsum: axis {c!r} has length {sizes[c]} and {n} in operands of shapes {list(shapes)}"
                )
            sizes[c] = n if sizes[c] == 1 else sizes[c]


def _needed(terms: list[str], i: int, result: str) -> str:
    return "".join(t for k, t in enumerate(terms) if k != i) + result


def _alone(node: Node, term: str, needed: str) -> tuple[Node, str]:
    """Diagonals of repeated letters, and sums over letters nobody else needs."""
    shown, term = _diagonals(wrap_node(node), term)
    node = shown._node()
    gone = tuple(i for i, c in enumerate(term) if c not in needed)
    if gone:
        node = build.fold("add", node, gone, dtype=node.dtype)
        term = "".join(c for c in term if c in needed)
    return node, term


def _stand_ins(shapes: Iterable[tuple[int, ...]]) -> list[Any]:
    """Arrays of given shapes for NumPy to look at."""
    return [np.broadcast_to(np.float64(0), shape) for shape in shapes]


def _next_pair(nodes: list[Node], terms: list[str], result: str) -> tuple[int, int]:
    """The pair that NumPy's path optimizer takes next."""
    if len(nodes) == 2:
        return 0, 1
    text = _spelled(terms, result)
    path = np.einsum_path(text, *_stand_ins(n.shape for n in nodes), optimize="greedy")[0]
    step = path[1]
    return (step[0], step[1]) if len(step) == 2 else (0, 1)


def _pair(a: Node, term_a: str, b: Node, term_b: str, later: str, kind: np.dtype[Any]) -> tuple[Node, str]:
    """Contract two operands; letters of length 1 in one of them are broadcast."""
    sizes = dict(zip(term_a, a.shape, strict=True))
    for c, n in zip(term_b, b.shape, strict=True):
        sizes[c] = n if sizes.get(c, 1) == 1 else sizes[c]
    a = build.broadcast(a, tuple(sizes[c] for c in term_a))
    b = build.broadcast(b, tuple(sizes[c] for c in term_b))
    order = list(dict.fromkeys(term_a + term_b))
    out = "".join(c for c in order if c in later)
    label = {c: i for i, c in enumerate(order)}
    if all(c in later for c in term_a if c in term_b) and out == "".join(order):
        wide_a = wrap_node(build.reshape(a, a.shape + (1,) * (len(order) - a.ndim)))
        places = [order.index(c) for c in term_b]
        turned = build.transpose(b, list(np.argsort(places)))
        present = sorted(places)
        shape = tuple(turned.shape[present.index(k)] if k in present else 1 for k in range(len(order)))
        product = ufuncs.multiply(wide_a, wrap_node(build.reshape(turned, shape)))
        return as_handle(product)._node(), out
    node = build.contract(
        a,
        b,
        tuple(label[c] for c in term_a),
        tuple(label[c] for c in term_b),
        tuple(label[c] for c in out),
        kind,
    )
    return node, out


einsum_path = np.einsum_path


def _check_chain(arrays: list[ndarray]) -> None:
    """Matrices that fit each other, the first and the last of which may be vectors."""
    for i, a in enumerate(arrays):
        if a.ndim != 2 and not (a.ndim == 1 and i in (0, len(arrays) - 1)):
            raise np.linalg.LinAlgError(
                f"{a.ndim}-dimensional array given. Array must be two-dimensional (shape {a.shape})"
            )
    for a, b in pairwise(arrays):
        if a.shape[-1] != b.shape[0]:
            raise ShapeError(f"shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} != {b.shape[0]}")


@numpy_function(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> ndarray:
    """A chain of products in the order that needs the fewest multiplications."""
    found = [as_handle(a) for a in arrays]
    if len(found) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(found) == 2:
        return products.dot(found[0], found[1], out)
    _check_chain(found)
    known = None if out is not None else small_values(tuple(found), broadcast=False)
    side = max(n for a in found for n in a.shape)
    if known is not None and door.is_little_product(side**2, len(found) * side**3):
        return wrap(np.linalg.multi_dot(known))
    if all(a.size == 1 for a in found):  # whose signs of zeros are those of single products, from the right
        rest = reduce(lambda right, left: products.dot(left, right), reversed(found[1:]))
        return products.dot(found[0], rest, out)
    letters = "abcdefghijklmnopqrstuvwxyz"
    shapes = [a.shape for a in found]
    terms = [letters[i : i + 2] for i in range(len(found))]
    if len(shapes[0]) == 1:
        terms[0] = terms[0][1]
    if len(shapes[-1]) == 1:
        terms[-1] = terms[-1][0]
    free = (terms[0][0] if len(terms[0]) == 2 else "") + (terms[-1][1] if len(terms[-1]) == 2 else "")
    return einsum(",".join(terms) + "->" + free, *found, out=out, order="C")


__all__ = [
    "einsum",
    "einsum_path",
]
