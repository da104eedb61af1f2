"""Arrays that others write to, NumPy's or ours, which a call reads where they lie, and has read at its end.

Whoever made such an array, or has its memory (`lent.py`), may write to it as soon as the call is over: what
is computed from it later needs a copy, which takes longer than most steps. So a call that is given a large
one has it on loan. What it makes of it is evaluated before it returns, where that is not much larger than the
copy would be; whatever else still reads it then gets the copy.

An array of ours over NumPy's memory (`asarray`) is on loan, too, until calls have taken as long to read it,
and to write what fuses with nothing then, as the copy would have: from then on it has memory of its own.

Karlin, Manasse, Rudolph, Sleator: Competitive snoopy caching (Algorithmica 1988), renting and buying.

Nobody else's function may be called meanwhile: it may write to the array, and ask for what was made of it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.forcing import compute_nodes
from spartan_ng.api.core.quick import HandleFields
from spartan_ng.arrays import ArrayRef
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.costs.choices import LOAN_READS
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process
from spartan_ng.graph.node import Node, topological
from spartan_ng.scratch import own_copy

_Leaves = dict[int, tuple[Any, Node, Any]]
_GROWTH = 2
"""So many times the bytes on loan, what is evaluated may take: transforms of real numbers are complex. Unless
the next steps fuse with it, it is written once either way."""


class _LendingCall(threading.local):
    """The call that is under way in a thread: arrays on loan to it, leaves over them, and whose they are, by
    identity."""

    leaves: _Leaves | None = None


_call = _LendingCall()


def lends(a: Any) -> bool:
    """Whether an argument is an array of NumPy's, or of ours whose memory others have, that is worth a loan,
    or a sequence that begins with one: of smaller ones NumPy makes something at once."""
    if (type(a) is list or type(a) is tuple) and a:
        a = a[0]
    if isinstance(a, HandleFields) and (a._cell.shared or a._cell.is_rented):  # type: ignore[attr-defined]
        a = a._peek()  # type: ignore[attr-defined]
    return type(a) is np.ndarray and not door.is_small(a.nbytes) and door.is_open()


def leaf_on_loan(value: Any, cell: Any = None) -> Node | None:
    """The leaf over what lies in somebody else's memory, for the call that is under way; None where none is
    that reads it there. It is borrowed by `cell`, if that can have its own."""
    leaves = _call.leaves
    if leaves is None or not lends(value):
        return None
    known = leaves.get(id(value))
    if known is None:
        leaf = build.data(ArrayRef(value.shape, value.dtype, value=value))
        known = leaves[id(value)] = value, leaf, cell
    return known[1]


def on_loan(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """What a function of the package's gives for arguments of which some are large arrays of NumPy's."""
    arguments = [*_flat((*args, *keywords.values()))]
    if _call.leaves is not None or not in_process() or any(map(_may_call_back, arguments)):
        return function(*args, **keywords)
    leaves = _call.leaves = {}
    try:
        found = function(*args, **keywords)
        _call.leaves = None
        if leaves:
            _evaluate(leaves, [*_flat((found,)), *arguments])
    finally:
        _call.leaves = None
        _give_back(leaves)
    return found


def by_key(function: Callable[..., Any], a: Any, key: Any, *more: Any) -> Any:
    """What a function does by a key with the elements of an array, which is on loan to it where others have
    its memory; of a key alone there are as many copies as there were."""
    return on_loan(function, a, key, *more) if lends(a) else function(a, key, *more)


def _may_call_back(a: Any) -> bool:
    return callable(a) and not isinstance(a, type)


def _flat(items: Iterable[Any], depth: int = 2) -> Iterator[Any]:
    """Items, and those of lists and tuples among them, as deep as functions take and give arrays."""
    for item in items:
        if depth and isinstance(item, list | tuple):
            yield from _flat(item, depth - 1)
        else:
            yield item


def _evaluate(leaves: _Leaves, arrays: Iterable[Any]) -> None:
    """Evaluate those of the arrays that read what is on loan, if together they are not much larger."""
    cells = {id(c): c for a in arrays if (c := getattr(a, "_cell", None)) is not None}
    lent = {leaf for _, leaf, _ in leaves.values()}
    nbytes = sum(leaf.nbytes for leaf in lent)
    room = _GROWTH * nbytes
    for cell in cells.values():
        masked = cell.masked  # of what it keeps, which is counted, there may be as much as of all
        if masked is not None and masked.a.nbytes <= room and _readers(lent, [masked.a, masked.mask]):
            cell.node  # noqa: B018
    waiting = {c._node: c for c in cells.values() if c.value is None and c._node is not None}
    readers = _readers(lent, list(waiting))
    written = sum(node.nbytes for node in readers)
    if written > room:
        return
    for _, _, owner in leaves.values():
        if owner is not None:
            owner.rent += 1 + LOAN_READS * written // nbytes
    values = [leaf.data.value for leaf in lent if leaf.data is not None]
    for node, ref in zip(readers, compute_nodes(readers), strict=True):
        if isinstance(ref.value, np.ndarray) and any(np.may_share_memory(ref.value, v) for v in values):
            ref = ArrayRef(ref.shape, ref.dtype, value=own_copy(ref.value))
        waiting[node].adopt(ref, node)


def _readers(lent: set[Node], nodes: list[Node]) -> list[Node]:
    """Those of `nodes` that read what is `lent`."""
    reading = set(lent)
    for node in topological(nodes):
        if not reading.isdisjoint(node.inputs):
            reading.add(node)
    return [node for node in nodes if node in reading]


def _give_back(leaves: _Leaves) -> None:
    """Copy what somebody still reads: the leaves' references are known to nobody else otherwise."""
    refs = [(weakref.ref(leaf.data), cell) for _, leaf, cell in leaves.values()]
    leaves.clear()
    for known, cell in refs:
        ref = known()
        if ref is not None:
            if cell is None:
                ref.value = own_copy(ref.value)
            else:
                cell.keep(ref)
            ref.on_disk = is_mapped(ref.value)
