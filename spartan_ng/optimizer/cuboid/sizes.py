"""How much of a matrix there is, and how much of an operator has to be computed: non-zeros and masks.

Non-zeros are those that tiling expects (`optimizer.sizes`). Where a sparse operand decides that, what stands
beside it is needed at the non-zeros only: the mask goes down through elementwise operators and transposes to
the product below.

"On Optimizing Operator Fusion Plans", section 4 (sparsity exploitation); FuseME (SIGMOD '22), section 2.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from spartan_ng.arrays.sparse import INDEX_BYTES
from spartan_ng.costs.operations import flops
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.sizes import expected_nonzeros


def count_nonzeros(order: Sequence[Node]) -> dict[Node, int]:
    """The non-zeros of every node, as far as they are known; `order` is topological."""
    sparse = expected_nonzeros(order, {})
    return {n: int(sparse.get(n, n.size)) for n in order}


def count_cells(order: Sequence[Node], nonzeros: Mapping[Node, int], top: Node) -> dict[Node, int]:
    """The cells of every node that `top` needs; `order` is topological and ends in `top`'s inputs first."""
    needed: dict[Node, int] = {top: nonzeros[top]}
    # Readers come first, so that all that is wanted of a node is known when it is its turn.
    for node in reversed(order):
        if node in needed:
            for i, cells in zip(node.inputs, _demanded(node, needed[node], nonzeros), strict=True):
                needed[i] = max(needed.get(i, 0), cells)
    return needed


def _demanded(node: Node, cells: int, nonzeros: Mapping[Node, int]) -> list[int]:
    """How many cells of each input are looked at where `cells` of the node are wanted."""
    if node.op is Op.TRANSPOSE:
        return [cells]
    if node.op is not Op.MAP:
        # Folds, products and the like look at all of what they read.
        return [i.size for i in node.inputs]
    return [min(cells, nonzeros[node]) if i.shape == node.shape else i.size for i in node.inputs]


def matrix_bytes(node: Node, nonzeros: Mapping[Node, int], index_bytes: int = INDEX_BYTES) -> int:
    """Bytes of a matrix in its format."""
    if node.format == "csr":
        return nonzeros[node] * (node.dtype.itemsize + index_bytes)
    return node.size * node.dtype.itemsize


def operations(node: Node, cells: int, nonzeros: Mapping[Node, int]) -> int:
    """Floating-point operations of an operator of which `cells` cells are wanted."""
    if node.fn == "contract":
        left, right = node.inputs
        la, _, lo = node.params
        summed = prod(n for x, n in zip(la, left.shape, strict=True) if x not in lo)
        whole = flops(node.op.value, node.fn, node.params, node.shape, cells * summed, node.dtype)
        # A sum skips what is zero on either side: the sparser one decides.
        return min(whole * nonzeros[i] // max(i.size, 1) for i in (left, right))
    if node.fn == "along_axis":  # what a line costs depends on how long it is
        whole = flops(node.op.value, node.fn, node.params, node.shape, node.size, node.dtype)
        return whole * cells // max(node.size, 1)
    taken = nonzeros[node.inputs[0]] if node.op is Op.FOLD else cells
    return flops(node.op.value, node.fn, node.params, (cells,), taken, node.dtype)


def is_dense_product(node: Node) -> bool:
    """Whether the node is a dense product of two matrices that sums one dimension."""
    if node.fn != "contract" or node.format != "dense":
        return False
    la, lb, lo = node.params
    return sum(x not in lo for x in la) == 1 and len(la) == len(lb) == len(lo) == 2


def sub_order(members: Collection[Node], order: Sequence[Node]) -> list[Node]:
    """The members in topological order."""
    chosen = set(members)
    return [n for n in order if n in chosen]
