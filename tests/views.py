"""Random chains of views, writes and reads, against NumPy arrays step by step: a Hypothesis state machine."""

from __future__ import annotations

import numpy
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import spartan_ng as np
from tests.sampling import part

SHAPES = [(), (1,), (5,), (2, 3), (3, 1, 4), (0, 3), (4, 4)]


class Views(RuleBasedStateMachine):
    """Pairs of (ours, NumPy's) that must stay equal whatever is written through whichever of them."""

    pairs = Bundle("pairs")

    def __init__(self) -> None:
        super().__init__()
        self.alive: list = []

    def enter(self, ours, theirs):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        self.alive.append((ours, theirs))
        return ours, theirs

    @initialize(
        target=pairs,
        shape=st.sampled_from(SHAPES),
        dtype=st.sampled_from(["f8", "i8", "i2", "c16", "f4"]),
        made=st.sampled_from(["array", "array", "zeros", "ones"]),
    )
    def base(self, shape, dtype, made):
        if made != "array":
            return self.enter(getattr(np, made)(shape, dtype), getattr(numpy, made)(shape, dtype))
        theirs = numpy.asarray(numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) * 1.5).astype(dtype)
        return self.enter(np.array(theirs), theirs.copy())

    @rule(target=pairs, pair=pairs, data=st.data())
    def basic_view(self, pair, data):
        key = data.draw(hnp.basic_indices(pair[1].shape, allow_newaxis=True, allow_ellipsis=True))
        ours, theirs = pair[0][key], pair[1][key]
        if not isinstance(theirs, numpy.ndarray):
            assert ours == theirs or theirs != theirs
            return pair
        return self.enter(ours, theirs)

    @rule(target=pairs, pair=pairs, data=st.data())
    def transpose(self, pair, data):
        axes = data.draw(st.permutations(range(pair[1].ndim)))
        return self.enter(pair[0].transpose(axes), pair[1].transpose(axes))

    @rule(target=pairs, pair=pairs, data=st.data())
    def reshape(self, pair, data):
        size = pair[1].size
        divisors = [d for d in range(1, size + 1) if size % d == 0] or [1]
        d = data.draw(st.sampled_from(divisors))
        shape = (d, size // d) if size else (0, d)
        return self.enter(pair[0].reshape(shape), pair[1].reshape(shape))

    @rule(pair=pairs, data=st.data())
    def another_shape(self, pair, data):
        ours, theirs = pair
        d = data.draw(st.sampled_from([d for d in range(1, theirs.size + 1) if theirs.size % d == 0] or [1]))
        shape = (d, theirs.size // d)
        if numpy.shares_memory(theirs.reshape(shape), theirs):
            ours.shape = shape
            theirs.shape = shape

    @rule(pair=pairs)
    def allow_writes(self, pair):
        for a in pair:
            a.setflags(write=True)

    @rule(target=pairs, pair=pairs, value=st.integers(-3, 3))
    def product_of_what_stands(self, pair, value):
        if pair[1].size > 100:
            return pair
        ours, theirs = (
            xp.broadcast_to(a[..., None], (*a.shape, 3)) * value
            for xp, a in zip((np, numpy), pair, strict=True)
        )
        return self.enter(ours, theirs)

    @rule(pair=pairs, value=st.integers(-3, 9))
    def put_mask(self, pair, value):
        ours, theirs = pair
        np.putmask(ours, ours == value, [1, value])
        numpy.putmask(theirs, theirs == value, [1, value])

    @rule(pair=pairs, value=st.integers(-9, 9))
    def fill(self, pair, value):
        pair[0][...] = value
        pair[1][...] = value

    @rule(pair=pairs, data=st.data())
    def assign(self, pair, data):
        key = data.draw(hnp.basic_indices(pair[1].shape))
        shape = numpy.shape(pair[1][key])
        new = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) - 3
        pair[0][key] = new
        pair[1][key] = new

    @rule(pair=pairs, other=pairs)
    def assign_array(self, pair, other):
        try:
            if numpy.broadcast_shapes(pair[1].shape, other[1].shape) != pair[1].shape:
                return
        except ValueError:
            return
        if other[1].dtype.kind == "c" and pair[1].dtype.kind != "c":
            return
        pair[0][...] = other[0]
        pair[1][...] = other[1]

    @rule(pair=pairs, data=st.data())
    def assign_fancy(self, pair, data):
        if pair[1].ndim == 0 or pair[1].shape[0] == 0:
            return
        index = data.draw(st.lists(st.integers(-pair[1].shape[0], pair[1].shape[0] - 1), max_size=4))
        pair[0][index] = 7
        pair[1][index] = 7

    @rule(pair=pairs, threshold=st.integers(-2, 9))
    def assign_mask(self, pair, threshold):
        if pair[1].dtype.kind == "c" or pair[1].ndim == 0:
            return
        pair[0][pair[0] > threshold] += 2
        pair[1][pair[1] > threshold] += 2

    @rule(pair=pairs, value=st.integers(-3, 3))
    def add_in_place(self, pair, value):
        ours, theirs = pair
        ours += value
        theirs += value

    @rule(pair=pairs)
    def multiply_in_place_by_self(self, pair):
        ours, theirs = pair
        ours *= ours
        theirs *= theirs

    @rule(target=pairs, pair=pairs)
    def copy(self, pair):
        return self.enter(pair[0].copy(), pair[1].copy())

    @rule(target=pairs, pair=pairs)
    def ufunc(self, pair):
        return self.enter(np.asarray(np.add(pair[0], 1)).copy(), numpy.asarray(pair[1] + 1).copy())

    @rule(target=pairs, pair=pairs)
    def part(self, pair):
        return self.enter(pair[0].real, pair[1].real)

    @rule(pair=pairs, data=st.data())
    def overlapping_add(self, pair, data):
        ours, theirs = pair
        if theirs.ndim == 0 or theirs.shape[0] < 2:
            return
        shift = data.draw(st.integers(1, theirs.shape[0] - 1))
        ours[shift:] += ours[:-shift]
        theirs[shift:] += theirs[:-shift]

    @rule(pair=pairs)
    def turn_in_place(self, pair):
        pair[0][...] = pair[0][..., ::-1] if pair[1].ndim else pair[0]
        pair[1][...] = pair[1][..., ::-1].copy() if pair[1].ndim else pair[1]

    @rule(pair=pairs, data=st.data())
    def add_where(self, pair, data):
        ours, theirs = pair
        mask = data.draw(hnp.arrays(bool, theirs.shape))
        np.add(ours, 1, out=ours, where=mask)
        numpy.add(theirs, 1, out=theirs, where=mask)

    @rule(pair=pairs, value=st.integers(-9, 9), data=st.data())
    def put(self, pair, value, data):
        size = pair[1].size
        if size:
            index = data.draw(st.lists(st.integers(-size, size - 1), max_size=4))
            np.put(pair[0], index, value)
            numpy.put(pair[1], index, value)

    @rule(pair=pairs, data=st.data())
    def sort(self, pair, data):
        ours, theirs = pair
        if theirs.ndim:
            axis = data.draw(st.integers(0, theirs.ndim - 1))
            ours.sort(axis)
            theirs.sort(axis)

    @rule(pair=pairs, data=st.data())
    def read_element(self, pair, data):
        if pair[1].size:
            at = tuple(data.draw(st.integers(0, n - 1)) for n in pair[1].shape)
            numpy.testing.assert_array_equal(pair[0][at].item(), pair[1][at].item())

    @rule(pair=pairs, data=st.data())
    def read_fancy(self, pair, data):
        n = pair[1].shape[0] if pair[1].ndim else 0
        if n:
            index = data.draw(st.lists(st.integers(-n, n - 1), max_size=5))
            numpy.testing.assert_array_equal(pair[0][index], pair[1][index])
            numpy.testing.assert_array_equal(pair[0][pair[0] != 0], pair[1][pair[1] != 0])

    @rule(pair=pairs, value=st.integers(-9, 9))
    def read_diagonal_after_a_write(self, pair, value):
        if pair[1].ndim > 1 and pair[1].size:
            ours, theirs = np.diagonal(pair[0], 1), numpy.diagonal(pair[1], 1)
            pair[0][0] = value
            pair[1][0] = value
            numpy.testing.assert_array_equal(ours, theirs)

    @rule(pair=pairs, order=st.sampled_from("CFAK"))
    def read_in_order(self, pair, order):
        numpy.testing.assert_array_equal(pair[0].ravel(order), pair[1].ravel(order))

    @rule(target=pairs, pair=pairs, order=st.sampled_from("CFK"))
    def copy_in_order(self, pair, order):
        return self.enter(pair[0].copy(order), pair[1].copy(order))

    @rule(pair=pairs, name=st.sampled_from(["max", "any", "argmin", "cumsum"]), data=st.data())
    def fold(self, pair, name, data):
        ours, theirs = pair
        axis = data.draw(st.sampled_from([None, *range(theirs.ndim)]))
        if theirs.size and (name != "cumsum" or theirs.dtype.kind == "i"):
            got, wanted = getattr(np, name)(ours, axis=axis), getattr(numpy, name)(theirs, axis=axis)
            numpy.testing.assert_array_equal(got, wanted)

    @rule(pair=pairs)
    def persist(self, pair):
        pair[0].persist()

    @precondition(lambda self: len(self.bundle("pairs")) > 1)
    @rule(pair=consumes(pairs))
    def forget(self, pair):
        self.alive = [p for p in self.alive if p is not pair]

    @rule(pair=pairs)
    def check(self, pair):
        numpy.testing.assert_array_equal(pair[0].compute(), pair[1])

    def teardown(self):
        for ours, theirs in self.alive:
            numpy.testing.assert_array_equal(ours.compute(), theirs)


def run(examples, steps=25):
    """Random runs of the machine on what is the current backend."""
    slow = list(HealthCheck)
    run_state_machine_as_test(
        Views,
        settings=settings(
            max_examples=part(examples), stateful_step_count=steps, suppress_health_check=slow, deadline=None
        ),
    )
