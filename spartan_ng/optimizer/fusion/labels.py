"""How the axes of a node's inputs follow the axes of its value: the rules that fusion rests on.

A fused stage runs over a *domain*; a label names the domain dimension that an axis follows, or is `WHOLE`
where every task sees the whole axis. Labels make one notion of what the papers call templates: a chain in
which every axis is labelled is a Cell operator, a matrix-vector product with a `WHOLE` inner axis makes a
Row operator, a product whose three labels are all cut is a cuboid.

Fusion plans (SystemML), Table 1; FuseME (SIGMOD '22), section 3.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from spartan_ng.arrays import WHOLE
from spartan_ng.costs import Profile
from spartan_ng.graph.formats import is_sparse_product
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.ops.joins import REDUCING
from spartan_ng.ops.line_sorts import run_length

Labels = tuple[int, ...]
_NONE = frozenset[int]()
_TURNED = frozenset({Op.TRANSPOSE, Op.BROADCAST})
_ALWAYS = frozenset({Op.MAP, Op.FOLD, Op.SCAN, Op.INDEX, Op.RANDOM})


class Root(NamedTuple):
    """The domain of a stage that ends in a node, and the labels of the node and of its inputs.

    Domain dimensions missing in `out` are reduced; those in `whole` must not be cut.
    """

    domain: tuple[int, ...]
    out: Labels
    inputs: tuple[Labels, ...]
    whole: frozenset[int] = frozenset()


_LONG_LINE_BYTES = 1 << 24
"""A line that is sorted, from which on it may have to be done in parts."""


def is_fusible(node: Node, profile: Profile) -> bool:
    """Whether the node runs inside a fused stage at all (the others are stages of their own kind).

    Where there are several workers, sorting a 1-d array is not left to the one task that would
    see its whole line, and looking up a few rows does not bring all of them to every task. Nor does it read
    all of a source. A line that is long is not sorted in one block, either.
    """
    if node.op is not Op.JOIN_UPDATE:
        return node.op in _ALWAYS
    several = profile.workers > 1
    if is_line_sort(node) and (several or is_long(node, profile)):
        return False
    if is_sparse_take(node) and (several or is_read(node.inputs[0])):
        return False
    return node.fn in REDUCING or node.fn in ("contract", "along_axis", "matrices", "take", "search")


def is_long(node: Node, profile: Profile) -> bool:
    """Whether a line may have to be sorted in parts: it is large, or memory has no room for it beside what is
    made of it, its elements or, of any, indices."""
    (line,) = node.inputs
    if line.nbytes > _LONG_LINE_BYTES:
        return True
    of_indices = node.dtype.itemsize if node.params[0] == "argsort" else 0
    each = line.dtype.itemsize + of_indices
    return profile.limited and run_length(line.size, each, profile.memory_bytes) > 0


def is_line_sort(node: Node) -> bool:
    """Whether the node sorts a 1-d array, which is worth cutting over the workers."""
    return node.fn == "along_axis" and node.ndim == 1 and node.params[0] in ("sort", "argsort")


def is_sparse_take(node: Node) -> bool:
    """Whether the node looks up fewer rows than there are."""
    if node.fn != "take":
        return False
    a, indices = node.inputs
    return 0 < indices.size < a.shape[node.params[0]] and a.format == "dense"


def is_read(node: Node) -> bool:
    """Whether the node shows what a source has."""
    while node.op in VIEWS:
        (node,) = node.inputs
    return node.data is not None and node.data.chunks is not None


def sums_sparse_rows(node: Node) -> bool:
    """Whether the node is a product that sums over the rows of a sparse operand.

    Sparse arrays are cut along their rows: several workers do better to cut such a product there, too, than
    to bring the array to whoever uses the product.
    """
    return _sums_sparse(node, 0)


def sums_sparse_columns(node: Node) -> bool:
    """Whether the node is a product that sums over the columns of a sparse operand.

    A block of some columns is a slice through all its rows: such a product goes over the rows as a whole.
    """
    return _sums_sparse(node, 1)


def _sums_sparse(node: Node, axis: int) -> bool:
    """Whether a product sums over this axis of what a sparse operand stores, under a transpose or not."""
    if node.fn != "contract" or is_sparse_product(node):
        return False
    la, lb, lo = node.params
    for seen, letters in zip(node.inputs, (la, lb), strict=True):
        turned = seen.op is Op.TRANSPOSE and seen.params[0] == (1, 0)
        if seen.format == "csr" and letters[1 - axis if turned else axis] not in lo:
            return True
    return False


def root(node: Node) -> Root:
    """The stage domain that a node asks for when its value is to be stored."""
    if node.op is Op.FOLD:
        a = node.inputs[0]
        labels = tuple(range(a.ndim))
        (axes,) = node.params
        out = tuple(d for d in labels if d not in axes)
        return Root(a.shape, out, (labels,) * len(node.inputs))
    if node.fn == "contract" and not is_sparse_product(node):
        return _contract_root(*node.params, node.inputs[0].shape, node.inputs[1].shape)
    if node.fn in REDUCING:
        rows = node.inputs[-1]
        labels = tuple(range(rows.ndim))
        if node.fn == "between":  # of all elements, wherever they lie
            return Root(rows.shape, (WHOLE,), (labels,))
        return Root(rows.shape, (WHOLE, *labels[1:]), tuple(labels[: i.ndim] for i in node.inputs))
    labels = tuple(range(node.ndim))
    inputs = input_labels(node, labels)
    return Root(node.shape, labels, inputs, whole_dimensions(node, labels))


@lru_cache(maxsize=4096)
def _contract_root(la: Labels, lb: Labels, lo: Labels, left: tuple[int, ...], right: tuple[int, ...]) -> Root:
    """A contraction's domain has one dimension for each letter, in the letters' order."""
    size = dict(zip((*la, *lb), (*left, *right), strict=True))
    letters = sorted(size)
    number = {letter: d for d, letter in enumerate(letters)}
    return Root(
        tuple(size[letter] for letter in letters),
        tuple(number[letter] for letter in lo),
        (tuple(number[x] for x in la), tuple(number[x] for x in lb)),
    )


def whole_dimensions(node: Node, out: Labels) -> frozenset[int]:
    """Domain dimensions that must not be cut for the node to be computed block by block."""
    if node.op is not Op.JOIN_UPDATE:
        return _NONE
    if node.fn == "along_axis" and out[node.params[1]] != WHOLE:
        return frozenset({out[node.params[1]]})
    if node.fn == "matrices" and out[-1] != WHOLE:
        return frozenset({out[-1]})
    return _NONE


def input_labels(node: Node, out: Labels) -> tuple[Labels, ...]:
    """The labels of each input where the node's value has the labels `out`."""
    if node.op is Op.MAP:
        shape = node.shape
        return tuple([out if i.shape == shape else _broadcast_labels(i, node, out) for i in node.inputs])
    if node.op is Op.FOLD:
        (axes,) = node.params
        kept = iter(out)
        labels = tuple([WHOLE if a in axes else next(kept) for a in range(node.inputs[0].ndim)])
        return (labels,) * len(node.inputs)
    if node.op in (Op.INDEX, Op.RANDOM):
        return ()
    if node.op is Op.TRANSPOSE:
        back = [WHOLE] * node.ndim
        for position, axis in enumerate(node.params[0]):
            back[axis] = out[position]
        return (tuple(back),)
    if node.op is Op.BROADCAST:
        return (_broadcast_labels(node.inputs[0], node, out),)
    if node.op is Op.RESHAPE:
        return (_reshape_labels(node, out),)
    if node.fn == "contract":
        la, lb, lo = node.params
        label = dict(zip(lo, out, strict=True))
        return (
            tuple([label.get(letter, WHOLE) for letter in la]),
            tuple([label.get(letter, WHOLE) for letter in lb]),
        )
    if node.fn == "take":
        (axis,) = node.params
        end = axis + node.inputs[1].ndim
        return ((*out[:axis], WHOLE, *out[end:]), out[axis:end])
    if node.fn == "search":
        return ((WHOLE,), out)
    if node.fn == "matrices":
        _, batch, stacked, _ = node.params
        return tuple(
            (*out[:batch], *(WHOLE,) * (i.ndim - batch)) if follows else (WHOLE,) * i.ndim
            for i, follows in zip(node.inputs, stacked, strict=True)
        )
    assert node.op is Op.SCAN or node.fn == "along_axis", f"no label rule for {node}"
    return tuple([out if i.shape == node.shape else _line_labels(node.params[1], out) for i in node.inputs])


def _line_labels(axis: int, out: Labels) -> Labels:
    """Of lines that become shorter or longer ones: all of a line is seen."""
    return (*out[:axis], WHOLE, *out[axis + 1 :])


def _broadcast_labels(operand: Node, node: Node, out: Labels) -> Labels:
    """An operand's axes line up with the last axes; an axis that is stretched is seen whole."""
    return _stretched(operand.shape, node.shape, out)


@lru_cache(maxsize=4096)
def _stretched(shape: tuple[int, ...], over: tuple[int, ...], out: Labels) -> Labels:
    first = len(over) - len(shape)
    return tuple(out[first + i] if n == over[first + i] else WHOLE for i, n in enumerate(shape))


def unit_reshape(node: Node) -> tuple[int, ...] | None:
    """For a reshape that only adds or drops axes of length 1: each new axis's old position, or -1.

    None for any other reshape.
    """
    return _unit_reshape(node.inputs[0].shape, node.shape)


@lru_cache(maxsize=4096)
def _unit_reshape(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    kept = [a for a, n in enumerate(old) if n != 1]
    if [n for n in new if n != 1] != [old[a] for a in kept]:
        return None
    source = iter(kept)
    return tuple(-1 if n == 1 else next(source) for n in new)


def _reshape_labels(node: Node, out: Labels) -> Labels:
    source = unit_reshape(node)
    assert source is not None, "only reshapes over axes of length 1 keep labels"
    label = {old: out[new] for new, old in enumerate(source) if old >= 0}
    return tuple([label.get(a, WHOLE) for a in range(node.inputs[0].ndim)])


def is_transparent(node: Node) -> bool:
    """Whether the node is a view through which labels pass to its input."""
    return node.op in _TURNED or (node.op is Op.RESHAPE and unit_reshape(node) is not None)
