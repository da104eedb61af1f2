"""Bring the work around a product into its stage: both sides before it, and what is made of its value.

A stage that only makes an operand of a product runs inside it, cuboid by cuboid. A stage that only turns the
product's value into another of its shape runs behind it: at once where one task sums all of k, else where the
partial sums are combined. Neither operand nor value is stored.

FuseME (SIGMOD '22), section 3.2: L-, R- and O-space of a cuboid-based fused operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from math import prod

from msgspec.structs import replace

from spartan_ng.arrays import WHOLE
from spartan_ng.costs.choices import STACKED_PRODUCT
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.labels import sums_sparse_columns
from spartan_ng.plan.draft import Draft
from spartan_ng.plan.rows import VALUE, Axis, Read, Row

Together = Callable[[Node, Node], bool]
"""Whether the plan generator puts two nodes into one fused operator."""


def absorb_sides(drafts: Sequence[Draft], kept: Collection[int], together: Together) -> list[Draft]:
    """The drafts with side stages inside their products; the slots `kept` are stored in any case."""
    makers = {d.slot: d for d in drafts if _is_inner(d) and d.slot not in kept}
    # Each read counts: a stage that reads a slot in two ways would have to make it twice.
    readers = Counter(slot for d in drafts for slot in _read_slots(d))
    gone: set[int] = set()
    inside: dict[int, Draft] = {}
    for draft in drafts:
        if not ends_in_product(draft):
            continue
        whole = draft
        # With maps inside, a product that sums over a sparse operand's columns goes block by block over all
        # rows and columns, each with a slice of the matrix: nothing is brought before it.
        for read in () if sums_sparse_columns(draft.node) else draft.reads:
            side = makers.get(read.slot)
            # What others read, too, is stored for them, and would be made twice.
            if side is None or readers[read.slot] > 1 or not is_heavy(draft):
                continue
            if is_plain(read, side.node.shape) and together(side.node, draft.node):
                whole = _with_side(whole, read, side)
                gone.add(side.slot)
        inside[draft.slot] = whole
    out: dict[int, Draft] = {}
    for draft in drafts:
        if draft.slot in gone:
            continue
        product = _product_before(draft, inside, readers, kept, together)
        if product is not None:
            # In the later one's place: by then all that its finish reads is there.
            out.pop(product.slot, None)
            out[draft.slot] = _with_after(product, draft)
        else:
            out[draft.slot] = inside.get(draft.slot, draft)
    return list(out.values())


def ends_in_product(draft: Draft) -> bool:
    """Whether the stage ends in a matrix product that sums a dimension."""
    if len(draft.results) > 1 or draft.driver >= 0:
        return False
    row = draft.results[0].reducer
    return row is not None and row.kind == "contract" and draft.node.format == "dense"


def has_product(draft: Draft) -> bool:
    """Whether a stage with one result multiplies matrices."""
    return len(draft.results) == 1 and any(r.kind == "contract" for r in (*draft.rows, *draft.reducers))


def is_heavy(draft: Draft) -> bool:
    """Whether the stage is dominated by one large product, better run on tiles than on blocks.

    A product whose inner dimension is larger than its result streams its operands: blocks along the
    inner dimension share it between threads, which BLAS does not. Of a stack of small products blocks take
    some each.
    """
    rows = [*draft.rows, *draft.reducers]
    if draft.driver >= 0 and not any(row.sampled for row in rows):  # a compressed operand
        return False
    if not draft.stepwise and len(rows) != 1:
        return False
    row = rows[-1]
    if row.kind != "contract" or row.format != "dense" or prod(row.shape) ** 2 < prod(draft.domain):
        return False
    stacked = stacked_dimensions(row)
    one = prod(n for d, n in enumerate(draft.domain) if d not in stacked)
    return not stacked or one >= STACKED_PRODUCT


def stacked_dimensions(row: Row) -> list[int]:
    """The domain's dimensions along which a product's operands and result are stacks."""
    left, right, out = row.params
    pairs = zip(row.labels, out, strict=True)
    return [d for d, label in pairs if d != WHOLE and label in left and label in right]


def is_plain(read: Read, shape: tuple[int, ...]) -> bool:
    """Whether a read shows the whole array, with axes in any order."""
    whole = all((a.start, a.step, a.size) == (0, 1, n) for a, n in zip(read.axes, shape, strict=True))
    if not whole or sorted(read.order) != list(range(len(shape))) or WHOLE in read.labels:
        return False
    return read.shape == tuple(shape[o] for o in read.order)  # else an axis is stretched


def _is_inner(draft: Draft) -> bool:
    if draft.separate or draft.driver >= 0 or len(draft.results) > 1 or draft.reducers:
        return False
    if any(row.kind == "scan" for row in draft.rows):
        return False
    return draft.out == tuple(range(len(draft.domain)))


def _read_slots(draft: Draft) -> list[int]:
    return [r.slot for r in draft.reads]


def _product_before(
    draft: Draft,
    products: dict[int, Draft],
    readers: Counter[int],
    kept: Collection[int],
    together: Together,
) -> Draft | None:
    """The product whose value this stage alone reads, index by index."""
    # What needs whole lines cannot run on a cuboid's piece of the value.
    if not _is_inner(draft) or draft.whole:
        return None
    for read in draft.reads:
        product = products.get(read.slot)
        if product is None or readers[read.slot] > 1 or read.slot in kept:
            continue
        aligned = read.labels == draft.out and is_plain(read, product.node.shape)
        if aligned and together(product.node, draft.node):
            return product
    return None


def _with_side(product: Draft, read: Read, side: Draft) -> Draft:
    """The product with the stage that makes the operand `read` inside."""
    label = {d: a.label for d, a in enumerate(read.axes)} | {WHOLE: WHOLE}
    own = [
        replace(
            r,
            axes=tuple(replace(a, label=label[a.label]) for a in r.axes),
            labels=tuple(label[d] for d in r.labels),
        )
        for r in side.reads
    ]
    reads = list(dict.fromkeys([*(r for r in product.reads if r != read), *own]))
    rows: list[Row] = []
    numbers = {i: reads.index(r) for i, r in enumerate(own)}
    for i, row in enumerate(side.rows, len(own)):
        numbers[i] = len(reads) + len(rows)
        args = tuple(numbers[a] for a in row.args)
        rows.append(replace(row, args=args, labels=tuple(label[d] for d in row.labels)))
    made = numbers[side.results[0].register]
    # The product reads it turned: what is made inside is turned by a row of its own.
    if read.order != tuple(range(len(read.order))):
        made = len(reads) + len(rows)
        turned = Row(
            "transpose",
            None,
            (numbers[side.results[0].register],),
            (read.order,),
            side.node.dtype,
            read.shape,
            read.labels,
        )
        rows.append(replace(turned, format=side.node.format))
    before = {i: made if r == read else reads.index(r) for i, r in enumerate(product.reads)}
    before |= {len(product.reads) + i: len(reads) + len(rows) + i for i in range(len(product.rows))}
    (result,) = product.results
    assert result.reducer is not None, "a product reduces"
    return replace(
        product,
        results=[replace(result, reducer=_renumbered(result.reducer, before))],
        reads=reads,
        rows=[*rows, *(_renumbered(row, before) for row in product.rows)],
        whole=_joined(product.whole, side.whole, label),
        uncut=_joined(product.uncut, side.uncut, label),
        stepwise=True,
        members=(*product.members, *side.members),
    )


def _with_after(product: Draft, after: Draft) -> Draft:
    """One stage of a product and the stage that makes its value into another."""
    (read,) = (r for r in after.reads if r.slot == product.slot)
    (made,), (stored,) = product.results, after.results
    order, row = read.order, made.reducer
    assert row is not None, "a product reduces"
    la, lb, lo = row.params
    turned = replace(
        row,
        params=(la, lb, tuple(lo[o] for o in order)),
        shape=tuple(row.shape[o] for o in order),
        labels=tuple(row.labels[o] for o in order),
    )
    shape = after.node.shape
    axes = tuple(Axis(d, 0, 1, n) for d, n in enumerate(shape))
    plain = tuple(range(len(shape)))
    reads = [*(r for r in after.reads if r != read), Read(VALUE, axes, plain, shape, plain)]
    first = len(reads)
    numbers = {i: first - 1 if r == read else reads.index(r) for i, r in enumerate(after.reads)}
    numbers |= {first + i: first + i for i in range(len(after.rows))}
    out = tuple(made.out[o] for o in order)
    finish = replace(
        after,
        results=[replace(stored, register=numbers[stored.register])],
        reads=reads,
        rows=[_renumbered(r, numbers) for r in after.rows],
    )
    return replace(
        product,
        results=[replace(stored, out=out, register=-1, reducer=turned)],
        after=finish,
        members=(*product.members, *after.members),
    )


def _renumbered(row: Row, numbers: dict[int, int]) -> Row:
    return replace(row, args=tuple(numbers[a] for a in row.args))


def _joined(own: tuple[int, ...], other: tuple[int, ...], label: dict[int, int]) -> tuple[int, ...]:
    return tuple(sorted({*own, *(label[d] for d in other)}))
