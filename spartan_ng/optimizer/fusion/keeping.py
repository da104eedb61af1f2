"""Intermediate values worth keeping: those that cost more to compute again than to write now.

A value that is fused away costs nothing until somebody asks for it; then the pass that makes it runs again,
from what is stored. Kept, it is written now (which moves each cache line twice: in, and out) and read then.
Both sides are counted as `costs` counts them.

Fusion plans (SystemML), section 4.3, Eq. 4: the longer of read and compute, against write.
"""

from __future__ import annotations

from collections.abc import Container

from spartan_ng.costs import Profile
from spartan_ng.costs.operations import by_blas, of_node
from spartan_ng.costs.traffic import read_bytes, written_bytes
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.ops.folds import FOLDS, ArgFold


def is_dearer_than_writing(node: Node, stored: Container[Node], profile: Profile) -> bool:
    """Whether computing `node` again from data and `stored` nodes takes longer than keeping its value."""
    limit = (written_bytes(node.nbytes) + read_bytes(node.nbytes)) * profile.memory_ps
    read = compute = 0
    seen: set[Node] = set()
    stack = [node]
    while stack and max(read, compute) <= limit:
        here = stack.pop()
        compute += _arithmetic(here) * profile.flop_ps
        for below in here.inputs:
            if below in seen:
                continue
            seen.add(below)
            if below.op is Op.DATA or below in stored:
                visible = here if here.op in VIEWS else below
                read += min(visible.nbytes, below.nbytes) * profile.memory_ps
            else:
                stack.append(below)
    return max(read, compute) > limit


def _arithmetic(node: Node) -> int:
    """A step's operations, without what is done around them: BLAS copies panels, folds call line by line.

    A value that is kept is often another pass, in which all of that is done once more.
    """
    if node.fn == "contract":
        return by_blas(of_node(node), node.size, ())
    if node.op is Op.FOLD and isinstance(FOLDS.get(str(node.fn)), ArgFold):
        return node.inputs[0].size * FOLDS[str(node.fn)].flops
    return of_node(node)
