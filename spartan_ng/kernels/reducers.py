"""What a reduced result does with its blocks: states, combined in order, and a value at the end.

Where last bits are kept (`ops.order`), a block's state has one element a unit along the folded axes. States
of blocks are put together as they lie (`_gathered`), and only then combined, along trees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import reduce
from operator import itemgetter
from typing import Any

import numpy as np

from spartan_ng.arrays import WHOLE, Box
from spartan_ng.arrays.sparse import csr_array, is_imported
from spartan_ng.compressed import is_compressed
from spartan_ng.costs.choices import GROUP_SUM_ELEMENTS
from spartan_ng.kernels.contract import contract, contract_and_sums
from spartan_ng.kernels.formats import dense, is_sparse_block
from spartan_ng.kernels.sparse_folds import sparse_fold
from spartan_ng.kernels.user import call_user, guarded
from spartan_ng.ops import order
from spartan_ng.ops.by_ufunc import Fold, State
from spartan_ng.ops.folds import FOLDS, ArgFold, DeviationFold, PrefixFold
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.line_states import LINE_STATES, Allocate, Between
from spartan_ng.ops.units import Folded
from spartan_ng.plan.rows import Read, Row, Write
from spartan_ng.plan.stages import Fused, ScanTile

Maker = tuple[int, int]
"""Who makes a sum on the way: the number of a result, and which of its operands is summed."""


class Reducer:
    """The reduced result of a stage, described by the plan's `row`; `labels` are those of its operand."""

    def __init__(
        self,
        row: Row,
        labels: tuple[int, ...] = (),
        units: tuple[Folded, ...] = (),
        shape: tuple[int, ...] = (),
    ) -> None:
        """`units` are those of the write, `shape` is that of the whole operand."""
        self.row = row
        self.labels = labels
        self.units = units
        self.shape = shape
        self.fold = FOLDS[row.fn] if row.kind == "fold" and isinstance(row.fn, str) else None
        self.combines_in_turn = not units and not isinstance(self.fold, DeviationFold)
        """Whether states may be combined one after the other: deviations are better combined together, and
        those of units along trees."""
        self.block: Callable[[list[Any], Box], State] = {
            "fold": self._user_fold if isinstance(row.fn, UserFunction) else self._fold,
            "contract": self._contract,
            "bincount": self._bincount,
            **dict.fromkeys(LINE_STATES, self._line_state),
        }[row.kind]
        """The state of the block at a box of the domain; with units, those of its units."""
        self.counts = row.kind == "bincount" and row.dtype.kind in "iuf" and not units
        """Whether blocks may be added to one state in their turn, instead of having one each."""
        # States of lines are combined from where they lie, which may be another worker's tile.
        self.combines_in_place = row.kind not in LINE_STATES
        """Whether combining may write to the memory of the state that comes first."""
        self.finds = Between(*row.params) if row.kind == "between" else None
        """What finds some of a block's elements: its states are as large as what they have found."""

    def run_state(self, states: Iterable[tuple[Box, State]]) -> Any:
        """What a run of blocks knows of a box of the result: one state, or with units those of its blocks."""
        if self.units:
            return list(states)
        return reduce(self.combine, map(itemgetter(1), states))

    def values(
        self, runs: Sequence[Any], tile: Box, partial: tuple[int, ...], allocate: Allocate = np.empty
    ) -> list[Any]:
        """What all runs over a tile come to, from what `run_state` has said of each, in their order: the
        value, or where the grid has cut dimensions `partial`, the arrays of states, which have axes for them
        before the others. May reuse the memory of the first. States of lines are put together in memory
        from `allocate`."""
        if self.units:
            state = self._gathered([pair for run in runs for pair in run], tile)
            return (
                list(self._subtrees(state, tile, partial)) if partial else [self.finalize(self._total(state))]
            )
        state = self.combine_all(runs)
        if not partial:
            return [self.finalize(state, allocate)]
        if self.row.kind in LINE_STATES:
            state = LINE_STATES[self.row.kind](*self.row.params).stored(state, allocate)
        return [np.asarray(dense(s))[(None,) * len(partial)] for s in state]

    def grown(self, state: State, spans: Sequence[Sequence[order.Span]]) -> State:
        """The state of all subtrees, which lie along the leading axes, as one."""
        for axis in reversed(range(len(spans))):
            state = order.grow(self.combine, state, axis, spans[axis])
        return state

    def _total(self, state: State) -> State:
        """The state of all units as one."""
        for f in reversed(self.units):
            state = order.tree(self.combine, state, f.axis)
        return state

    def _subtrees(self, state: State, tile: Box, partial: tuple[int, ...]) -> State:
        """The states of a tile's units as those of subtrees, with an axis for each dimension in `partial`
        before the others."""
        cut = [f for f in self.units if f.dim in partial]
        for f in reversed(self.units):
            if f not in cut:
                state = order.tree(self.combine, state, f.axis)
            elif f is cut[-1]:
                first, _ = _span(f, tile)
                state = order.climb(self.combine, state, f.axis, first, order.count(f.size, f.length))
        lead = [f.axis - sum(g.axis < f.axis for g in self.units if g not in cut) for f in cut]
        return tuple(np.moveaxis(s, lead, range(len(lead))) for s in state)

    def _gathered(self, states: Sequence[tuple[Box, State]], tile: Box) -> State:
        """The states of all units of a tile, from those of its blocks, for one box of the result."""
        own = [_span(f, tile) for f in self.units]
        shape = list(np.shape(states[0][1][0]))
        for f, (lo, hi) in zip(self.units, own, strict=True):
            shape[f.axis] = hi - lo
        out = tuple(np.empty(shape, s.dtype) for s in states[0][1])
        for box, state in states:
            where = [slice(None)] * len(shape)
            for f, (first, _) in zip(self.units, own, strict=True):
                lo, hi = _span(f, box)
                where[f.axis] = slice(lo - first, hi - first)
            for target, s in zip(out, state, strict=True):
                target[tuple(where)] = s
        return out

    def combine(self, a: State, b: State) -> State:
        """The state of `a`'s blocks followed by `b`'s; may reuse the memory of `a`."""
        if self.fold is not None:
            in_place = len(a) == 1 and not self.units  # that of products has two arrays
            if in_place and isinstance(self.fold, Fold) and isinstance(a[0], np.ndarray) and a[0].ndim:
                return (self.fold.ufunc(a[0], b[0], out=a[0]),)
            return self.fold.combine(a, b)
        if self.row.kind in LINE_STATES:
            return LINE_STATES[self.row.kind](*self.row.params).combine(a, b)
        if isinstance(self.row.fn, UserFunction):
            return (call_user(self.row.fn, "fold", a[0], b[0]),)
        if self.row.dtype.kind == "b":
            return (np.logical_or(a[0], b[0]),)
        if not self.units and isinstance(a[0], np.ndarray) and a[0].ndim and a[0].dtype == self.row.dtype:
            return (np.add(a[0], b[0], out=a[0]),)
        return (a[0] + b[0],)

    def combine_all(self, states: Sequence[State]) -> State:
        """The state of all blocks, in their order; may reuse the memory of the first."""
        # Pair by pair: one after the other, thirty-two states are some four hundred calls of NumPy.
        if isinstance(self.fold, DeviationFold) and len(states) > 2:
            return self.fold.combine_all(states)
        return reduce(self.combine, states)

    def finalize(self, state: State, allocate: Allocate = np.empty) -> Any:
        """The value of a state; a line's is put together in memory from `allocate`."""
        if self.row.kind in LINE_STATES:
            return LINE_STATES[self.row.kind](*self.row.params).value(state, allocate)
        value = state[-1] if self.fold is None else self.fold.finalize(state)
        return dense(value)

    def _fold(self, args: list[Any], box: Box) -> State:
        assert self.fold is not None, "a fold has a row"
        (axes,) = self.row.params
        where = args[1] if len(args) > 1 else None
        x = args[0]
        if self.units:
            return self._units(x, where, axes)
        if not isinstance(x, np.ndarray):
            if is_sparse_block(x) and where is None:
                value = sparse_fold(self.fold.name, x, axes, self.row.dtype)
                if value is not None:
                    return (value,)
            x = dense(x)
        if where is not None:
            where = dense(where)
        if isinstance(self.fold, PrefixFold):
            from spartan_ng.kernels.compiled.prefixes import prefix_state

            state = prefix_state(self.fold.name, x, self.row.dtype)
            if state is not None:
                return state
        if isinstance(self.fold, DeviationFold):
            return self._block_and_sum(args)[1]
        if isinstance(self.fold, ArgFold) and self.shape and x.shape[axes[0]] == self.shape[axes[0]]:
            return self.fold.of_lines(x, axes)
        along = self.labels[axes[0]] if axes else WHOLE
        offset = box[along][0] if along != WHOLE else 0
        return self.fold.block(x, axes, self.row.dtype, where, offset)

    def block_and_sums(self, args: list[Any], wanted: set[int]) -> tuple[State, dict[int, State]]:
        """The state of a block, and those of the sums of the operands `wanted` that are made on the way."""
        if self.row.kind != "contract":
            total, own = self._block_and_sum(args)
            return own, {0: total}
        la, lb, lo = self.row.params
        value, sums = contract_and_sums(args[0], args[1], la, lb, lo, (0 in wanted, 1 in wanted))
        return self._product(value), {i: (x,) for i, x in enumerate(sums) if x is not None}

    def _block_and_sum(self, args: list[Any]) -> tuple[State, State]:
        """Of squared deviations: the state of the sum, which is made on the way, and their own."""
        assert isinstance(self.fold, DeviationFold), "only deviations know their sum"
        (axes,) = self.row.params
        x = dense(args[0])
        if self.units:
            return self.fold.units_and_sums(x, axes, self.row.dtype, self.shape, self._lengths(axes))
        from spartan_ng.kernels.compiled.deviations import sum_and_deviations

        found = sum_and_deviations(x, axes, self.row.dtype)
        return self.fold.block_and_sum(x, axes, self.row.dtype) if found is None else found

    def _units(self, x: Any, where: Any, axes: tuple[int, ...]) -> State:
        """The states of a block's units."""
        assert self.fold is not None, "a fold has a row"
        assert not isinstance(self.fold, ArgFold), "an index does not round"
        if is_sparse_block(x) and where is None:
            state = self._sparse_units(x, axes)
            if state is not None:
                return state
        return self.fold.units(dense(x), axes, self.row.dtype, dense(where), self.shape, self._lengths(axes))

    def _lengths(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The units of folded axes, in the fold's own order of them."""
        lengths = {f.axis: f.length for f in self.units}
        return tuple(lengths[a] for a in axes)

    def _sparse_units(self, x: Any, axes: tuple[int, ...]) -> State | None:
        """The sums of the units of a sparse block, which are rows (or columns of one turned)."""
        assert self.fold is not None, "a fold has a row"
        (axis, length) = next(((f.axis, f.length) for f in self.units if f.length < f.size), (0, x.shape[0]))
        states = []
        for lo in range(0, max(x.shape[axis], 1), max(length, 1)):
            part = x[lo : lo + length] if axis == 0 else x[:, lo : lo + length]
            value = sparse_fold(self.fold.name, part, axes, self.row.dtype)
            if value is None:
                return None
            states.append(np.expand_dims(value, tuple(f.axis for f in self.units)))
        return (np.concatenate(states, axis),)

    def _user_fold(self, args: list[Any], box: Box) -> State:
        (axes,) = self.row.params
        assert isinstance(self.row.fn, UserFunction), "a user's fold has a user's function"
        x = dense(args[0])
        value = fold_axes(guarded(self.row.fn, "fold"), x, axes)
        # Of one element, or from a function that gives one of its own, it is a part of the block's memory.
        return (np.array(value) if np.may_share_memory(value, x) else value,)

    def _contract(self, args: list[Any], box: Box) -> State:
        la, lb, lo = self.row.params
        return self._product(contract(args[0], args[1], la, lb, lo, in_threads=True))

    def _product(self, value: Any) -> State:
        if is_sparse_block(value):
            value = value.toarray()
        if isinstance(value, np.ndarray):
            return (value.astype(self.row.dtype, copy=False),)
        return (value,)

    def _line_state(self, args: list[Any], box: Box) -> State:
        label = self.labels[0]
        if self.finds is not None:
            from spartan_ng.kernels.compiled.between import state_between

            found = state_between(self.finds, dense(args[0]))
            if found is not None:
                return found
        line = LINE_STATES[self.row.kind](*self.row.params)
        return line.state(dense(args[0]), box[label][0] if label != WHOLE else 0)

    def _bincount(self, args: list[Any], box: Box) -> State:
        x, weights = args[0], args[1] if len(args) > 1 else None
        weights = dense(weights) if is_compressed(weights) else weights
        (count,) = self.row.params
        if not self.units or weights is None:
            return self._sums(x, weights, count)
        length = self.units[0].length
        starts = range(0, max(len(x), 1), length)
        parts = [self._sums(x[i : i + length], weights[i : i + length], count) for i in starts]
        return (np.stack([p for (p,) in parts]),)

    def _sums(self, x: Any, weights: Any, length: int) -> State:
        """How often each place below `length` stands in `x`, or the sums of its weights."""
        if weights is None or (weights.ndim == 1 and weights.dtype != np.float64):
            return (np.bincount(x, weights, length).astype(self.row.dtype, copy=False),)
        rows = weights[:, None] if weights.ndim == 1 else weights.reshape(len(x), -1)
        rows = rows.astype(self.row.dtype, copy=False)
        from spartan_ng.kernels.compiled.group_sums import group_sums

        found = group_sums(x, rows, length)
        if found is None and weights.ndim == 1:  # which holds the interpreter, and copies what is read only
            found = np.bincount(x, weights, length).astype(self.row.dtype, copy=False)
        elif found is None:
            found = _sums_by_scipy(x, rows, length)
        return (found.reshape(length, *weights.shape[1:]),)


def _sums_by_scipy(labels: Any, rows: Any, count: int) -> Any:
    """The sums of rows by their labels; of few elements by NumPy, as long as nobody needs SciPy. Both add in
    the order of the rows."""
    if rows.size < GROUP_SUM_ELEMENTS and not is_imported():
        found = np.zeros((count, rows.shape[1]), rows.dtype)
        np.add.at(found, labels, rows)
        return found
    ones, starts = np.ones(len(labels), rows.dtype), np.arange(len(labels) + 1)
    return csr_array((ones, labels, starts), shape=(len(labels), count)).T @ rows


def reducer_of(stage: Fused | ScanTile, write: Write) -> Reducer | None:
    """What folds a result's blocks; None where it is not reduced."""
    if write.reducer is None:
        return None
    first, register = len(stage.reads), write.reducer.args[0]
    operand = stage.reads[register] if register < first else stage.rows[register - first]
    return Reducer(write.reducer, operand.labels, write.units, operand.shape)


def _span(f: Folded, box: Box) -> order.Span:
    """The units that a box has of a folded axis."""
    if f.dim == WHOLE:
        return 0, order.count(f.size, f.length)
    lo, hi = box[f.dim]
    return lo // f.length, max(-(-hi // f.length), lo // f.length + 1)


def sums_on_the_way(stage: Fused) -> dict[int, Maker]:
    """For each result that is a plain sum the result that makes it on the way, if there is one: the squared
    deviations of the same values, or a product with them as an operand."""
    makers: dict[Hashable, Maker] = {}
    for k, write in enumerate(stage.writes):
        row = write.reducer
        if row is None:
            continue
        if isinstance(row.fn, str) and isinstance(FOLDS.get(row.fn), DeviationFold):
            makers[row.args, row.params, row.dtype] = k, 0
        elif row.kind == "contract" and not write.units:
            for key, position in _summed_operands(stage, row):
                makers.setdefault(key, (k, position))
    rows = {k: w.reducer for k, w in enumerate(stage.writes) if w.reducer is not None}
    plain = {k: r for k, r in rows.items() if r.kind == "fold" and r.fn == "add"}
    return {
        k: makers[key]
        for k, r in plain.items()
        if (key := (r.args, r.params, r.dtype)) in makers
        and (not stage.writes[k].units or rows[makers[key][0]].kind == "fold")
    }


def _summed_operands(stage: Fused, row: Row) -> Iterator[tuple[Hashable, int]]:
    """Sums that a product of matrices can make on the way, as folds, with the operand that each is of."""
    la, lb, lo = row.params
    first = len(stage.reads)
    values: list[Read | Row] = [*stage.reads, *stage.rows]
    a, b = (values[r] for r in row.args)
    if len(la) != 2 or len(lb) != 2 or len(lo) != 2 or len(summed := set(la) & set(lb) - set(lo)) != 1:
        return
    (label,) = summed
    m, n = (x.shape[1 - labels.index(label)] for x, labels in ((a, la), (b, lb)))
    from spartan_ng.kernels.compiled.tall import is_worth

    if not is_worth(row.dtype, m, n, a.shape[la.index(label)]):
        return
    for position, labels in enumerate((la, lb)):
        register, axis = row.args[position], labels.index(label)
        yield ((register,), ((axis,),), row.dtype), position
        value = values[register]
        if isinstance(value, Row) and value.kind == "transpose" and value.args[0] >= first:
            yield ((value.args[0],), ((1 - axis,),), row.dtype), position


def block_states(
    reducers: Sequence[Reducer | None],
    sums: dict[int, Maker],
    value: Callable[[int], Any],
    block: Box,
    states: list[State | None],
) -> None:
    """Put the block's state of every reduced result into `states` where it is missing; `sums` as from
    `sums_on_the_way`, `value` gives a register's."""
    known: dict[Maker, State | None] = {}
    for k, reducer in enumerate(reducers):
        if reducer is None or states[k] is not None or k in sums:
            continue
        args = [value(a) for a in reducer.row.args]
        wanted = {position for maker, position in sums.values() if maker == k}
        if not wanted:
            states[k] = reducer.block(args, block)
            continue
        states[k], found = reducer.block_and_sums(args, wanted)
        known |= {(k, position): found.get(position) for position in wanted}
    for k, maker in sums.items():
        reducer, state = reducers[k], known[maker]
        if state is None:  # the product is another's, who knows no sums
            assert reducer is not None, "a sum is reduced"
            state = reducer.block([value(a) for a in reducer.row.args], block)
        states[k] = state


def fold_axes(function: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Fold a block along `axes` by a binary function of arrays: neighbours pairwise, in order."""
    for axis in sorted(axes, reverse=True):
        x = np.moveaxis(x, axis, 0)
        while x.shape[0] > 1:
            even = x.shape[0] // 2 * 2
            pairs = function(x[0:even:2], x[1:even:2])
            x = pairs if even == x.shape[0] else np.concatenate([pairs, x[even:]])
        x = x[0]
    return x
