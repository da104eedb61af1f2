"""Programs that are one NumPy call: run at once, without a plan.

A plan pays where it fuses, cuts or overlaps something. One operator on operands that are already in this
process, and that no second thread would finish much sooner, has nothing of that: NumPy's own function is
the best kernel there is. Views and operators on a few elements cost next to nothing: they may come along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spartan_ng.arrays import ArrayRef
from spartan_ng.callers import warn_user
from spartan_ng.costs.choices import (
    BLAS_SIDE,
    FEW_THREADS,
    FLAT,
    LONG_SUM,
    LONG_SUM_FLOPS,
    SPARSE_S,
    TINY_BYTES,
)
from spartan_ng.costs.operations import of_node, work_of_node
from spartan_ng.costs.profile import ONE_THREAD
from spartan_ng.costs.tuned import DIRECT_FLOPS, FRESH
from spartan_ng.error_state import Heard, entered, error_state
from spartan_ng.graph.node import OPERATORS, Node, Op, topological
from spartan_ng.graph.windows import are_windows, is_every_start
from spartan_ng.kernels.stepwise import JOINS, OF_WINDOWS, STEPS, is_zero
from spartan_ng.kernels.stored import StoredSteps, is_sparse_graph
from spartan_ng.memory import copied_bytes
from spartan_ng.ops.scans import SCANS

_LYING_OTHERWISE = frozenset({Op.BROADCAST, Op.TRANSPOSE, Op.SLICE})
MOST_NODES = 24
"""Steps, at most, and as many for each product of a matrix and a vector, which takes longer than they do."""


_PLACED = frozenset({"argmax", "argmin"})
_STREAMED = frozenset({"add", "maximum", "minimum", "argmax", "argmin", "logical_or", "logical_and"})
"""Folds that NumPy runs at the memory's speed where they fold everything."""


def run_direct(
    roots: Sequence[Node], most_bytes: int, threads: int = 1 << 10, order: Sequence[Node] | None = None
) -> list[Any] | None:
    """The values of `roots`, or None if a plan for `threads` threads should make them.

    `order` is the roots' graph, where the caller has walked it.

    It should where `most_bytes` is 0, where an operator touches more than that or takes more than
    `DIRECT_FLOPS`, where several touch more than an eighth of that together, and where an operand is not a
    dense value here. A lone fold of everything may touch more where threads are few, and a lone product
    of matrices may, because BLAS has threads of its own, as may several products of matrices and vectors:
    what is done to vectors beside them saves nothing by being fused. With CSR arrays, what a plan takes
    besides its work is weighed against all steps.
    """
    if not most_bytes:
        return None
    order = topological(roots) if order is None else order
    nbytes = {node: node.nbytes for node in order}
    of_vectors = [node for node in order if node.fn == "contract" and _is_of_vector(node, nbytes)]
    if len(order) > MOST_NODES * (1 + len(of_vectors)):
        return None
    tiny = _tiny_bytes(of_vectors, nbytes)
    counted, touched, alone = 0, 0, True
    matrices: dict[Node, tuple[int, Node]] = {}
    for node in order:
        if not _has_step(node):
            return _run_sparse(roots, order) if node.format == "csr" else None
        own = nbytes[node]
        if node.op in OPERATORS or (node in roots and not is_zero(node)):
            touches = [own, *map(nbytes.__getitem__, node.inputs)]
            if max(touches) > tiny:
                counted, touched = counted + 1, touched + sum(touches)
                is_read_alone = node in of_vectors and _is_read_alone(node, matrices, nbytes)
                alone = alone and (is_read_alone or (counted == 1 and _is_stream(node, threads)))
                much = touched > (most_bytes if counted == 1 else most_bytes // 8)
                if not alone and (much or _operations(node) > DIRECT_FLOPS):
                    return None
        elif own > (TINY_BYTES if node.op is Op.INDEX else most_bytes) and _is_made(node):
            return None
        is_copied = node.op is Op.RESHAPE or node.fn == "contract"
        if is_copied and (copied := _copied_bytes(node)) and copied > copied_bytes():
            return None
    return run_stepwise(roots, order)


def _run_sparse(roots: Sequence[Node], order: Sequence[Node]) -> list[Any] | None:
    """The values of a graph with CSR arrays, or None if a plan should make them."""
    stored = StoredSteps(roots, order)
    return run_stepwise(roots, order, stored) if _stepped_s(order, stored) <= SPARSE_S else None


def stepwise_s(roots: Sequence[Node], order: Sequence[Node]) -> float:
    """Seconds that NumPy is predicted to take for `roots`, whose graph is `order`, a call for each step;
    endless where it has none for one."""
    return _stepped_s(order, StoredSteps(roots, order) if is_sparse_graph(order) else None)


def _stepped_s(order: Sequence[Node], stored: StoredSteps | None) -> float:
    """The same, where it is known what CSR arrays are computed at."""
    if stored is not None and not stored.is_whole:
        return math.inf
    for node in order:
        is_outside = node.data is not None and node.data.source is not None
        here = stored if stored is not None and stored.meets(node) else None
        has_step = _has_step(node) if here is None else here.has_step(node)
        if is_outside or 0 in node.shape or not has_step:
            return math.inf
    steps = [node for node in order if stored is not None or node.op in OPERATORS]
    return sum([_stepped_ns(node, stored) for node in steps]) / 1e9


def _stepped_ns(node: Node, stored: StoredSteps | None) -> int:
    """Nanoseconds that NumPy takes for a step, on one thread and with memory that is new; of products that a
    plan would leave to BLAS and its threads, too, those of the memory."""
    if stored is not None and stored.meets(node):
        return ONE_THREAD.compute_ns(*stored.work(node), 1)
    if node.op not in OPERATORS or (node.fn in OF_WINDOWS and (is_every_start(node) or are_windows(node))):
        return 0
    touched = FRESH * node.nbytes + sum([i.nbytes for i in node.inputs])
    operations = 0 if _is_of_matrices(node) else work_of_node(node)
    return ONE_THREAD.compute_ns(operations, touched, 1)


def run_stepwise(
    roots: Sequence[Node],
    order: Sequence[Node],
    stored: StoredSteps | None = None,
    after: Callable[[], object] = bool,
) -> list[Any]:
    """The values of `roots`, whose graph is `order`, step by step, `after` each of which something is done;
    what no later step needs is let go.

    NumPy's warnings become warnings of the caller's line: users' functions are no steps.
    """
    state = error_state()
    heard = Heard() if state.warns else None
    with entered(state.kinds, heard):
        found = _stepwise(roots, order, stored, after)
    for text in heard.texts if heard is not None else ():
        warn_user(text, RuntimeWarning)
    return found


def _stepwise(
    roots: Sequence[Node], order: Sequence[Node], stored: StoredSteps | None, after: Callable[[], object]
) -> list[Any]:
    if stored is None and is_sparse_graph(order):
        stored = StoredSteps(roots, order)
    last: dict[Node, Node] = {}
    stay = set(roots)
    for node in order:
        if node.op is Op.DATA:
            stay.add(node)
        for i in node.inputs:
            last[i] = node
    known: dict[Node, Any] = {}
    leaves: list[Any] = []
    made: Any = None
    for node in order:
        step = STEPS[node.op] if stored is None or not stored.meets(node) else stored.step
        known[node] = made = step(node, *map(known.__getitem__, node.inputs))
        if node.op is Op.DATA:
            leaves.append(made)
        for i in node.inputs:
            if last[i] is node and i not in stay:
                known.pop(i, None)
        after()
    del made
    found: list[Any] = []
    for root in roots:
        if stored is not None and root.format == "csr":
            found.append(stored.owned(root, known[root]))
        else:
            found.append(_owned(known[root], root, (*leaves, *found)))
    return found


def as_array_ref(node: Node, value: Any) -> ArrayRef:
    """A value that a direct run has made, dense or CSR, as what a session gives."""
    ref = ArrayRef(value.shape, value.dtype, value=value, format=node.format)
    ref.nnz, ref.private = (int(value.nnz), False) if node.format == "csr" else (None, True)
    return ref


def _is_made(node: Node) -> bool:
    """Whether NumPy makes an array for a node that is none of the operators: places, and the elements of a
    view that lie otherwise, as those of `repeat` and `tile` do."""
    return node.op is Op.INDEX or (node.op is Op.RESHAPE and node.inputs[0].op in _LYING_OTHERWISE)


def _copied_bytes(node: Node) -> int:
    """Bytes of what is here that NumPy copies before it works on it, whatever they are worked on for: what is
    read in another order than it lies, and factors of another dtype than their product's."""
    if node.op is Op.RESHAPE:
        value = node.inputs[0].data.value if node.inputs[0].data is not None else None
        return node.nbytes if isinstance(value, np.ndarray) and not value.flags.c_contiguous else 0
    if node.fn != "contract":
        return 0
    return sum([i.size * node.dtype.itemsize for i in node.inputs if i.dtype != node.dtype])


def _is_of_vector(product: Node, nbytes: Mapping[Node, int]) -> bool:
    """Whether a product is one of a matrix and a vector: BLAS reads the matrix once."""
    a, b = product.inputs
    floats = product.dtype.char in "fdFD" and 1 in (len(a.shape), len(b.shape))
    return floats and len(product.shape) == 1 and nbytes[product] * FLAT < max(nbytes[a], nbytes[b])


def _is_read_alone(node: Node, matrices: dict[Node, tuple[int, Node]], nbytes: Mapping[Node, int]) -> bool:
    """Whether in a product of a vector and a matrix this is one that no pass reads for another, too: none of
    `matrices`, which have the axis that is summed and the last product; or one along the same axis with what
    is made of that product, and needs all of it."""
    matrix = max(node.inputs, key=nbytes.__getitem__)
    labels = node.params[node.inputs.index(matrix)]
    axis = [x in node.params[2] for x in labels].index(False)
    while matrix.op is Op.TRANSPOSE:
        axis = matrix.params[0][axis]
        (matrix,) = matrix.inputs
    before = matrices.get(matrix)
    matrices[matrix] = axis, node
    return before is None or (before[0] == axis and _is_made_of(node, before[1]))


def _is_made_of(node: Node, step: Node) -> bool:
    """Whether a node comes after a step."""
    seen, waiting = {node}, [node]
    while waiting:
        below = set(waiting.pop().inputs) - seen
        if step in below:
            return True
        seen |= below
        waiting.extend(below)
    return False


def _tiny_bytes(of_vectors: Sequence[Node], nbytes: Mapping[Node, int]) -> int:
    """Bytes that count for nothing: few of them, or few beside the matrices of products with vectors."""
    matrices = [max(map(nbytes.__getitem__, node.inputs)) for node in of_vectors]
    return max(TINY_BYTES, min(matrices, default=0) // FLAT)


def _is_stream(node: Node, threads: int) -> bool:
    """Whether NumPy takes in the operands as fast as our threads would."""
    if _is_of_matrices(node):
        return not _is_long_sum(node)
    is_enough = threads <= FEW_THREADS and not any(map(_is_in_file, node.inputs))
    if node.fn == "contract" and node.size > 1 and _is_along_lines(node):  # not BLAS's, which has threads
        return is_enough
    if node.nbytes > TINY_BYTES:
        return False
    if node.fn == "contract":
        return True
    is_fold = is_enough and node.size == 1 and node.op is Op.FOLD and node.fn in _STREAMED
    return is_fold and (node.fn not in _PLACED or _lies_plain(node.inputs[0]))


def _is_in_file(node: Node) -> bool:
    """Whether a node shows what is mapped from a file: finding its pages takes as long as folding them, and
    threads share that."""
    while node.op is not Op.DATA and len(node.inputs) == 1:
        (node,) = node.inputs
    return node.data is not None and node.data.is_mapped


def _is_along_lines(node: Node) -> bool:
    """Whether a product adds up along lines of two arrays alike, and so reads more than it writes."""
    a, b, _ = node.params
    return set(a) == set(b) and 4 * node.nbytes <= node.inputs[0].nbytes


def _lies_plain(node: Node) -> bool:
    """Whether NumPy looks for an extreme where the elements lie: it copies what lies otherwise as a whole."""
    value = node.data.value if node.data is not None else None
    return (
        isinstance(value, np.ndarray)
        and value.dtype.isnative
        and value.flags.c_contiguous
        and value.flags.aligned
    )


def _is_of_matrices(node: Node) -> bool:
    """Whether a node is a product that keeps BLAS and its threads at work."""
    floats = node.fn == "contract" and node.dtype.char in "fdFD"
    return floats and all(n.ndim == 2 and min(n.shape) >= BLAS_SIDE for n in (node, *node.inputs))


def _is_long_sum(product: Node) -> bool:
    """Whether a product adds up far more than its result has: BLAS's threads wait for each other at every
    panel, and ours, each with its part of the sums, once."""
    operations = of_node(product)
    return operations > LONG_SUM_FLOPS and operations // (2 * product.size) > LONG_SUM * max(product.shape)


def _has_step(node: Node) -> bool:
    """Whether a node is a dense value here, or something that NumPy has one function for."""
    if node.format != "dense" or node.dtype.kind == "O":
        return False
    if node.op is Op.DATA:
        return node.data is not None and isinstance(node.data.value, np.ndarray | np.generic)
    if node.fn == "bincount":
        return len(node.inputs) == 1 or node.inputs[1].ndim == 1
    if node.op is Op.SCAN:
        return node.fn in SCANS and len(node.inputs) == 1
    if node.op is Op.JOIN_UPDATE:
        return isinstance(node.fn, str) and node.fn in JOINS
    return node.op in STEPS and (node.fn is None or isinstance(node.fn, str))


def _operations(node: Node) -> int:
    """Operations that threads of ours would share; BLAS has threads of its own."""
    return 0 if node.fn in ("contract", "matrices") else of_node(node)


def _owned(value: Any, node: Node, others: Sequence[Any]) -> Any:
    """A contiguous array whose memory nobody else has, also none of `others` (leaves and other results)."""
    array = np.asarray(value, node.dtype)
    owner = array if array.base is None else array.base
    own = type(owner) is np.ndarray and owner.flags.owndata and owner.size == array.size
    own = own and array.flags.c_contiguous
    for other in others if own else ():
        own = own and owner is not (other if other.base is None else other.base)
    return array if own else np.array(array, order="C")
