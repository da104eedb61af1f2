"""What a reduced result does with its blocks: states, combined in order, and a value at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from spartan_ng.arrays import Box
from spartan_ng.compressed import is_compressed
from spartan_ng.kernels.compiled import dictionaries
from spartan_ng.kernels.compiled.deviations import sum_and_deviations
from spartan_ng.kernels.compiled.prefixes import prefix_state
from spartan_ng.kernels.contract import contract
from spartan_ng.kernels.formats import dense, is_sparse
from spartan_ng.kernels.user import call_user, guarded
from spartan_ng.ops.folds import FOLDS, DeviationFold, PrefixFold, State
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.plan import WHOLE, Fused, Row, ScanTile, Write


class Reducer:
    """The reduced result of a stage, described by the plan's `row`; `labels` are those of its operand."""

    def __init__(self, row: Row, labels: tuple[int, ...] = ()) -> None:
        self.row = row
        self.labels = labels
        self.fold = FOLDS[row.fn] if row.kind == "fold" and isinstance(row.fn, str) else None
        self._block = {
            "fold": self._user_fold if isinstance(row.fn, UserFunction) else self._fold,
            "contract": self._contract,
            "bincount": self._bincount,
        }[row.kind]

    def block(self, args: list[Any], box: Box) -> State:
        """The state of the block at `box` of the domain."""
        return self._block(args, box)

    def combine(self, a: State, b: State) -> State:
        """The state of `a`'s blocks followed by `b`'s; may reuse the memory of `a`."""
        if self.fold is not None:
            if len(a) == 1 and isinstance(a[0], np.ndarray) and a[0].ndim:
                return (self.fold.ufunc(a[0], b[0], out=a[0]),)  # type: ignore[union-attr]
            return self.fold.combine(a, b)
        if isinstance(self.row.fn, UserFunction):
            return (call_user(self.row.fn, "fold", a[0], b[0]),)
        if self.row.dtype.kind == "b":
            return (np.logical_or(a[0], b[0]),)
        if isinstance(a[0], np.ndarray) and a[0].ndim and a[0].dtype == self.row.dtype:
            return (np.add(a[0], b[0], out=a[0]),)
        return (a[0] + b[0],)

    def combine_all(self, states: Sequence[State]) -> State:
        """The state of all blocks, in their order; may reuse the memory of the first."""
        if isinstance(self.fold, DeviationFold) and len(states) > 2:
            return self.fold.combine_all(states)
        return reduce(self.combine, states)

    def finalize(self, state: State) -> Any:
        """The value of a state."""
        value = state[0] if self.fold is None else self.fold.finalize(state)
        return dense(value)

    def _fold(self, args: list[Any], box: Box) -> State:
        assert self.fold is not None, "a fold has a row"
        (axes,) = self.row.params
        where = args[1] if len(args) > 1 else None
        x = args[0]
        if is_sparse(x) and where is None:
            value = sparse_fold(self.fold.name, x, axes, self.row.dtype)
            if value is not None:
                return (value,)
        x, where = dense(x), dense(where)
        if isinstance(self.fold, PrefixFold):
            state = prefix_state(self.fold.name, x, self.row.dtype)
            if state is not None:
                return state
        if isinstance(self.fold, DeviationFold):
            return self.block_and_sum(args)[1]
        along = self.labels[axes[0]] if axes else WHOLE
        offset = box[along][0] if along != WHOLE else 0
        return self.fold.block(x, axes, self.row.dtype, where, offset)

    def block_and_sum(self, args: list[Any]) -> tuple[State, State]:
        """Of squared deviations: the state of the sum, which is made on the way, and their own."""
        assert isinstance(self.fold, DeviationFold), "only deviations know their sum"
        (axes,) = self.row.params
        x = dense(args[0])
        found = sum_and_deviations(x, axes, self.row.dtype)
        return self.fold.block_and_sum(x, axes, self.row.dtype) if found is None else found

    def _user_fold(self, args: list[Any], box: Box) -> State:
        (axes,) = self.row.params
        assert isinstance(self.row.fn, UserFunction), "a user's fold has a user's function"
        return (fold_axes(guarded(self.row.fn, "fold"), dense(args[0]), axes),)

    def _contract(self, args: list[Any], box: Box) -> State:
        la, lb, lo = self.row.params
        value = contract(args[0], args[1], la, lb, lo, in_threads=True)
        if is_sparse(value):
            value = value.toarray()
        if isinstance(value, np.ndarray):
            return (value.astype(self.row.dtype, copy=False),)
        return (value,)

    def _bincount(self, args: list[Any], box: Box) -> State:
        (length,) = self.row.params
        x, weights = args[0], args[1] if len(args) > 1 else None
        weights = dense(weights) if is_compressed(weights) else weights
        if weights is None or weights.ndim == 1:
            return (np.bincount(x, weights, length).astype(self.row.dtype, copy=False),)
        ones, starts = np.ones(len(x), self.row.dtype), np.arange(len(x) + 1)
        marks = sparse.csc_array((ones, x, starts), shape=(length, len(x)))
        rows = weights.reshape(len(x), -1).astype(self.row.dtype, copy=False)
        return ((marks @ rows).reshape(length, *weights.shape[1:]),)


def reducer_of(stage: Fused | ScanTile, write: Write) -> Reducer | None:
    """What folds a result's blocks; None where it is not reduced."""
    if write.reducer is None:
        return None
    first, register = len(stage.reads), write.reducer.args[0]
    operand = stage.reads[register] if register < first else stage.rows[register - first]
    return Reducer(write.reducer, operand.labels)


def sums_on_the_way(writes: Sequence[Write]) -> dict[int, int]:
    """For each result that is a plain sum the number of the one that is the squared deviations of the same
    values, if there is one: it makes the sum on the way."""
    rows = [w.reducer for w in writes]
    deviations = {
        (r.args, r.params, r.dtype): k
        for k, r in enumerate(rows)
        if r is not None and isinstance(r.fn, str) and isinstance(FOLDS.get(r.fn), DeviationFold)
    }
    return {
        k: deviations[r.args, r.params, r.dtype]
        for k, r in enumerate(rows)
        if r is not None and r.kind == "fold" and r.fn == "add" and (r.args, r.params, r.dtype) in deviations
    }


def block_states(
    reducers: Sequence[Reducer | None],
    sums: dict[int, int],
    value: Callable[[int], Any],
    block: Box,
    states: list[State | None],
) -> None:
    """Put the block's state of every reduced result into `states` where it is missing; `sums` as from
    `sums_on_the_way`, `value` gives a register's."""
    known: dict[int, State] = {}
    for k, reducer in enumerate(reducers):
        if reducer is None or states[k] is not None or k in sums:
            continue
        args = [value(a) for a in reducer.row.args]
        if k in sums.values():
            known[k], states[k] = reducer.block_and_sum(args)
        else:
            states[k] = reducer.block(args, block)
    for k, j in sums.items():
        states[k] = known[j]


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


def sparse_fold(name: str, x: Any, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A fold over a sparse or compressed block; None for those that need the dense one."""
    if not axes:
        return None
    if is_compressed(x):
        return _compressed_fold(name, x, axes, dtype)
    axis = None if len(axes) == 2 else axes[0]
    if name in ("maximum", "minimum") and x.dtype == dtype and dtype.kind != "c":
        found = x.max(axis=axis) if name == "maximum" else x.min(axis=axis)
        return np.asarray(dense(found), dtype)[()]
    if name != "add":
        return None
    return np.asarray(x.sum(axis=axis, dtype=dtype))[()]


def _compressed_fold(name: str, x: Any, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Over rows by distinct values and their counts; a sum of each row is a product with ones."""
    if name == "add" and axes == (0 if x.turned else 1,):
        rows = x.T if x.turned else x
        return dictionaries.multiply(rows.astype(dtype), np.ones(x.width, dtype))
    return x.fold(name, axes, dtype)
