"""What may stand in one pass: the only place that says so.

The search asks it of each operator beside what reads it, and of the passes that may end in each; what forms
stages asks it of the stages as they grow, and what merges them, of two that read the same array. A node may
be computed in a pass where

- the pass sees it under one name: all in the pass that read it agree on the labels of its axes;
- block by block no work is repeated: domain dimensions that the node does not follow stay whole in each
  block, and so do those along which it needs whole lines; what is left of the domain is enough to cut;
- its lines, and what it reads whole for every block, fit a core's cache;
- the pass goes as the node has to: in order along a scan, over random numbers as they lie.

Fusion plans (SystemML), section 3.2: the conditions of the templates Cell, Row and (small-sided) Outer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from math import prod

from spartan_ng.arrays import WHOLE
from spartan_ng.costs import Profile
from spartan_ng.graph.formats import is_sparse_product
from spartan_ng.graph.node import Node, Op
from spartan_ng.memory import copied_bytes
from spartan_ng.ops.folds import FOLDS, DeviationFold
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.joins import REDUCING
from spartan_ng.ops.line_work import line_bytes
from spartan_ng.ops.random import RUN_DRAWS, is_stream, is_walk
from spartan_ng.optimizer.fusion.group import Group, Result, is_product, reads_once
from spartan_ng.optimizer.fusion.labels import (
    Labels,
    input_labels,
    is_fusible,
    is_transparent,
    root,
    sums_sparse_rows,
    whole_dimensions,
)
from spartan_ng.optimizer.fusion.sampling import is_sampled_product, is_union
from spartan_ng.sinks.sink import Sink

LINE_BYTES = 1 << 18
"""The longest whole line that a fused row may need for each of its elements: a share of a core's cache."""
SIDE_BYTES = 1 << 20
"""The largest operand that a fused product or lookup may read whole for every block."""
_FEW_STATE_BYTES = 1 << 16
"""Of a result of which all blocks' states may be kept."""
LEAST_TASKS = 64
"""What dimensions that stay whole must leave of a domain to cut."""
LARGEST_BLOCK = 8192
"""The most elements of the domain that one block may be forced to hold by dimensions that stay whole."""
LARGEST_RESULT = 1 << 15
"""The same where all of these are dimensions of a product's result: the sums alone are so many, a line of an
operand has the numbers of one dimension."""
SMALL_REPEAT = 64
"""Elements that may be computed again wherever they are needed."""
BLOCK_REPEAT = 1 << 12
"""The same for every block, which has sixteen times as many: else blocks keep a dimension whole, and are
parts of lines. (`benchmarks.programs`: covariances)"""
MOST_RESULTS = 16
"""Results of one stage."""
_MAPS = 8
"""Steps between a scan and its fold that are looked at."""
MOST_MEMBERS = 100
"""Values that one stage computes on the way."""
_NONE = frozenset[int]()


def whole_if_joined(node: Node, stage: Group, labels: Labels, driven: bool) -> frozenset[int] | None:
    """The stage's dimensions that stay whole for the node where it computes it, as a member, under these
    labels; None where it may not.

    `driven` nodes are needed at the non-zeros of a sparse array alone.
    """
    if stage.alone:
        return None
    if node.op is Op.MAP and node.format == "dense" and stage.scan is None and not stage.separate:
        if labels == tuple(range(len(stage.domain))):
            return _NONE  # cell by cell: what most do
    elif stage.separate or never_joins(node) or is_sparse_product(stage.root):
        return None
    if node.op is Op.INDEX:
        return _NONE
    if node.op is Op.SCAN:
        return _NONE if _takes_scan(node, stage, labels) else None
    if node.op is Op.RANDOM:
        return _NONE if _draws_once(node, stage, labels) else None
    kept = kept_for(node, stage, labels)
    if not driven and unfollowed(stage.domain, labels) and (kept or repeated_along(node, stage, labels)):
        is_single = stage.root.fn == "matrices" and not stage.root.params[1]
        # Of a function of one matrix nothing is cut: each step of its one block is there until that is done.
        if (is_single and node.nbytes > SIDE_BYTES) or _is_cut(stage, node):
            return None
    if stage.scan is not None and (kept or not _is_elementwise(node)):
        return None  # only maps over its domain stand around a scan, or what is computed with every block
    if node.op is not Op.MAP:
        kept |= whole_dimensions(node, labels)
        sampled = driven and is_sampled_product(node)  # visited at single elements: no lines
        if not sampled and (_sums_more(node, stage) or not lines_fit(node, labels)):
            return None
    return kept if kept <= stage.whole or _leaves_blocks(stage, kept) else None


def one_name(node: Node, stage: Group, seen: Iterable[Labels | None]) -> Labels | None:
    """The labels under which a stage makes a value that it sees in several ways.

    As `z` in `z.T @ z`, whose product goes over rows and columns of its result: whole where they differ, so
    that each block has both. None where these dimensions would not stay whole, or where somebody needs all.
    """
    one: Labels | None = None
    for labels in seen:
        if labels is None:
            return None
        own = stage.canonical(labels)
        if one is None or one == own:
            one = own
            continue
        apart = {d for a, b in zip(one, own, strict=True) if a != b for d in (a, b)} - {WHOLE}
        one = tuple([a if a == b else WHOLE for a, b in zip(one, own, strict=True)])
        if not apart <= stage.whole | kept_for(node, stage, one):
            return None
    return one


def never_joins(node: Node) -> bool:
    """Whether no stage but one that ends in the node computes it."""
    if node.format == "csr":
        return is_sparse_product(node) or is_union(node)
    return node.fn in REDUCING or node.fn == "matrices" or (node.op is Op.FOLD and _folds_scan(node))


def _folds_scan(node: Node) -> bool:
    """Whether a fold is one of a scan, or of what is made of one element by element: in a pass of its own it
    does so as the scan comes, and in any other of what the scan has stored."""
    waiting = [node.inputs[0]]
    for below in waiting:
        if below.op is Op.SCAN:
            return True
        if below.op is Op.MAP and len(waiting) < _MAPS:
            for i in below.inputs:
                if i.shape == below.shape:
                    waiting.append(i)  # noqa: PERF401 - a list of its own is a call
    return False


def joins_others(node: Node, profile: Profile) -> bool:
    """Whether a node may be computed in a pass that ends elsewhere at all.

    Several workers do better to cut a product that sums over the rows of a sparse operand there, too.
    """
    if profile.limited and stands_alone(node, profile):
        return False
    return is_fusible(node, profile) and not (profile.workers > 1 and sums_sparse_rows(node))


def stands_alone(node: Node, profile: Profile) -> bool:
    """Whether a function of lines works on so much for one of them that memory, where it is limited, has no
    room for what others make of a line, or for what another such function works on: its pass makes nothing
    else."""
    if node.fn != "along_axis":
        return False
    return line_bytes(node.params, node.shape, node.dtype) > copied_bytes(profile.memory_bytes)


def has_room(stage: Group) -> bool:
    """Whether a stage may get a further result."""
    if stage.separate or stage.alone or stage.scan is not None or stage.closed:
        return False
    if stage.root.format != "dense":
        return False
    if len(stage.more) >= MOST_RESULTS - 1 or len(stage.members) >= MOST_MEMBERS:
        return False
    return not stage.is_product


def may_stand_beside(node: Node) -> bool:
    """Whether a node may be a further result of a stage at all."""
    if node.op is Op.RANDOM or node.format != "dense":
        return False
    return not is_product(node) and {i.format for i in node.inputs} <= {"dense"}


# --- what a block repeats, and holds -------------------------------------------------------------------


@lru_cache(maxsize=4096)
def unfollowed(domain: tuple[int, ...], labels: Labels) -> frozenset[int]:
    """The dimensions of a domain that a node with `labels` does not follow."""
    return frozenset(d for d, n in enumerate(domain) if n > 1 and d not in labels)


def kept_for(node: Node, stage: Group, labels: Labels) -> frozenset[int]:
    """The stage's dimensions that stay whole, so that the node is not computed again for each block."""
    missing = unfollowed(stage.domain, labels)
    return _NONE if missing and _repeats_cheaply(node, BLOCK_REPEAT) else missing


def repeated_along(node: Node, stage: Group, labels: Labels) -> frozenset[int]:
    """The stage's dimensions along which parts would each compute the node, and need what it is made of."""
    missing = unfollowed(stage.domain, labels)
    return _NONE if missing and _repeats_cheaply(node, SMALL_REPEAT) else missing


def _repeats_cheaply(node: Node, most: int) -> bool:
    """Whether a node of `most` elements may be computed again."""
    return node.op is Op.INDEX or (node.op is Op.MAP and prod(node.shape) <= most)


def _leaves_blocks(stage: Group, whole: frozenset[int]) -> bool:
    """Whether a stage can keep these dimensions whole, too: they leave enough of the domain to cut."""
    every = stage.whole | whole
    most = LARGEST_RESULT if stage.root.fn == "contract" and every <= {*stage.out} else LARGEST_BLOCK
    return leaves_enough(stage.domain, every, stage.uncut, most) and not _cuts_chunks(stage, whole)


def _cuts_chunks(stage: Group, whole: Collection[int]) -> bool:
    """Whether blocks with those dimensions whole could not be the chunks that the stage writes to a file: all
    that meets them would have to be in memory."""
    for member, labels in stage.members:
        if not isinstance(member.fn, UserFunction):
            continue
        sink = member.fn.function
        if isinstance(sink, Sink) and sink.chunks is not None:
            return any(
                d in whole and n < stage.domain[d] for d, n in zip(labels, sink.chunks, strict=True) if d >= 0
            )
    return False


def leaves_enough(
    domain: tuple[int, ...],
    whole: Collection[int],
    uncut: Collection[int] = (),
    most: int = LARGEST_BLOCK,
) -> bool:
    """Whether a block may hold the whole dimensions, and what is left is enough to cut."""
    kept = prod([domain[d] for d in whole])
    left = prod([n for d, n in enumerate(domain) if d not in whole and d not in uncut])
    return leaves_tasks(prod(domain), left, kept, most)


def may_keep(
    domain: tuple[int, ...],
    before: Collection[int],
    kept: Collection[int],
    whole: Iterable[int],
    uncut: Collection[int],
) -> bool:
    """Whether what needs `whole` lines may join a pass over a domain, which then keeps `kept` whole, `before`
    till then. Lines that no cache holds are worked on by one function at a time: whatever stands beside it
    makes lines as long, also where it needs none, and memory may have no room for what two make."""
    if kept == before:
        most = LARGEST_BLOCK if frozenset(whole) else LARGEST_RESULT
        return not kept or prod([domain[d] for d in kept]) <= most
    return leaves_enough(domain, kept, uncut)


def leaves_tasks(size: int, left: int, kept: int, most: int = LARGEST_BLOCK) -> bool:
    """Whether a domain of `size` may have blocks of `kept` elements at least, and `most` at most, with `left`
    of it to cut."""
    return left >= min(LEAST_TASKS, size) and kept <= most


def lines_fit(node: Node, labels: Labels) -> bool:
    """Whether the whole axes that the node needs fit the cache for each element of the block."""
    if node.op is Op.MAP:
        return True
    if node.op is Op.FOLD:
        a = node.inputs[0]
        return _folded_lines_fit(a.shape, a.dtype.itemsize, *node.params, labels)
    if _reduced_length(node) > node.size and not reads_once(node):
        return False  # the reduction is the larger dimension: better to cut it
    if node.fn == "along_axis":
        axis, both = node.params[1], (node, *node.inputs)  # what is made of a line may be wider
        return axis == node.ndim - 1 and all(n.shape[-1] * n.dtype.itemsize <= LINE_BYTES for n in both)
    seen = input_labels(node, labels)
    if node.fn in ("take", "search"):
        return node.inputs[0].nbytes <= SIDE_BYTES
    lines = [_line_bytes(i, s) <= LINE_BYTES for i, s in zip(node.inputs, seen, strict=True)]
    return all(lines) and min([i.nbytes for i in node.inputs]) <= SIDE_BYTES


@lru_cache(maxsize=4096)
def _folded_lines_fit(shape: tuple[int, ...], itemsize: int, axes: tuple[int, ...], labels: Labels) -> bool:
    """The same of a fold: they lie together, and are no longer than the result, which is cut in place of
    them."""
    first = len(shape) - len(axes)
    line = prod(shape[first:])
    if axes != tuple(range(first, len(shape))) or line > prod(shape[:first]):
        return False
    return (
        itemsize * line * prod([n for n, d in zip(shape, labels, strict=False) if d == WHOLE]) <= LINE_BYTES
    )


def _sums_more(node: Node, stage: Group) -> bool:
    """Whether a product with a vector sums over more than the stage goes over, as `X.T @ p` of many rows does
    beside its result: in a pass of its own that can be cut, and `p` may be made there."""
    return reads_once(node) and _reduced_length(node) > prod(stage.domain)


def _reduced_length(node: Node) -> int:
    """How many elements make one element of a value that is no fold's."""
    if node.fn == "contract":
        la, _, lo = node.params
        return prod([n for x, n in zip(la, node.inputs[0].shape, strict=True) if x not in lo])
    return 1


def _line_bytes(node: Node, labels: Labels) -> int:
    n = node.dtype.itemsize
    for size, label in zip(node.shape, labels, strict=True):
        if label == WHOLE:
            n *= size
    return n


# --- products, scans and random numbers ----------------------------------------------------------------


def _is_cut(stage: Group, node: Node) -> bool:
    """Whether a stage ends in a large product, whose dimensions workers and blocks want to cut, so that none
    stays whole for the node.

    What is made beside non-zeros may keep one: the product's operand is never stored. Other operands are
    brought into the product's stage where it is cut.
    """
    return stage.is_product and node.format == "dense"


def _takes_scan(node: Node, stage: Group, labels: Labels) -> bool:
    """Whether a stage becomes one pass with the scan: only maps follow it, element by element, to a single
    value, which is stored, or folded, or both."""
    values = passed_values(stage)
    return (
        stage.scan is None
        and stage.domain == node.shape
        and labels == tuple(range(node.ndim))
        and not stage.whole
        and len(values) == 1
        and None not in values
        and all(_is_elementwise(m) for m, _ in stage.members if m is not node)
    )


def passed_values(stage: Group) -> set[Node | None]:
    """What a stage stores or folds, all over its domain; None stands for anything else.

    Passes that make a scan run as one where they pass on the same: one may store it, the others fold it.
    """
    every = tuple(range(len(stage.domain)))
    inputs = root(stage.root).inputs if stage.root.op is Op.FOLD else None
    results = [Result(stage.root, stage.out, inputs), *stage.more]
    values: set[Node | None] = set()
    for r in results:
        folded = r.node.op is Op.FOLD and len(r.node.inputs) == 1
        stored = r.out == every and (_is_elementwise(r.node) or r.node.op is Op.SCAN)
        if folded and r.inputs == (every,) and r.node.inputs[0].format == "dense":
            values.add(r.node.inputs[0])
        else:
            values.add(r.node if stored else None)
    return values


def _is_elementwise(node: Node) -> bool:
    """Whether a block of the value needs the same block of dense operands, and no more."""
    dense = all(n.format == "dense" for n in (node, *node.inputs))
    return dense and (node.op in (Op.MAP, Op.INDEX) or is_transparent(node))


def _draws_once(node: Node, stage: Group, labels: Labels) -> bool:
    """Whether a stage goes over random numbers as they lie: its blocks are those that are drawn well. What
    these of a stream are whole along may be whole in the stage, or no dimension of it."""
    key, around = node.params[0], len(stage.domain)
    if labels != (*range(around), *(WHOLE,) * (node.ndim - around)) or stage.domain != node.shape[:around]:
        return False
    if stage.scan is not None or stage.root.fn == "contract":
        return False
    if is_walk(key) and _has_deviations(stage.root) and stage.root.nbytes > _FEW_STATE_BYTES:
        return False  # in the order of a walk, states of whole lines would be kept, one of each block
    first = min(stage.whole, default=around)
    return first == node.ndim or (is_stream(key) and prod(node.shape[first:]) <= RUN_DRAWS)


def _has_deviations(node: Node) -> bool:
    """Whether a fold's states are combined together at the end, and not one after the other."""
    return node.op is Op.FOLD and isinstance(FOLDS.get(str(node.fn)), DeviationFold)
