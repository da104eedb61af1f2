"""Sums of lines in compiled kernels: NumPy's pairwise order, element after element as they are made.

A line's values go to a buffer of the caller's; whenever there are enough of them for leaves of the tree,
these are added, and what they come to is put into the tree, of which a stack remembers the path. The order
is that of `ops.order`, which is NumPy's: halves down to 128 elements, these in eight lanes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled, intrinsic

LEAF = 128
"""Elements that eight lanes add."""
CAPACITY = 2048 + LEAF
"""Elements of a buffer: as many as are made in one go, twice, and an unfinished leaf."""
DEPTH = 48
"""The most halves under way."""


@intrinsic
def lanes(typing_context: Any, address: Any, count: Any, dtype: Any) -> Any:
    """The sum of `count` times eight elements from an address on, in eight lanes; `count` is 1 at least."""
    element = dtype.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_value_type(element)
        vector = ir.VectorType(kind, 8)
        width = context.get_abi_sizeof(kind)

        def load(number: Any) -> Any:
            at = builder.add(args[0], builder.mul(number, number.type(8 * width)))
            found = builder.load(builder.inttoptr(at, vector.as_pointer()))
            found.align = width
            return found

        total = cgutils.alloca_once(builder, vector)
        builder.store(load(args[1].type(0)), total)
        with cgutils.for_range_slice(builder, args[1].type(1), args[1], args[1].type(1)) as (number, _):
            builder.store(builder.fadd(builder.load(total), load(number)), total)
        found = builder.load(total)
        for n in (8, 4, 2):
            undefined = ir.Constant(found.type, ir.Undefined)
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), n // 2), list(range(k, n, 2))) for k in (0, 1)]
            even, odd = (builder.shuffle_vector(found, undefined, mask) for mask in masks)
            found = builder.fadd(even, odd)
        return builder.extract_element(found, ir.IntType(32)(0))

    return element(types.int64, types.int64, dtype), generate


@compiled
def leaf(address: Any, n: Any, dtype: Any, width: Any) -> Any:
    """The sum of n elements, 128 at most."""
    x = array_at(address, (n,), dtype)
    done = n // 8 * 8
    total = dtype(-0.0)
    if done:  # a choice would ask for lanes that are not there
        total = lanes(address, n // 8, dtype)
    for i in range(done, n):
        total = total + x[i]
    return total


@compiled
def begin(path: Any, rest: Any, n: Any) -> Any:
    """Expect a line of n elements."""
    path[0] = 0  # elements that wait in the buffer
    path[1] = 0  # halves under way
    _descend(path, rest, 0, n)


@compiled
def _descend(path: Any, rest: Any, depth: Any, n: Any) -> Any:
    """Halve what comes next until it is a leaf."""
    while n > LEAF:
        half = n // 2
        half -= half % 8
        rest[depth] = n - half
        path[3 + depth] = 0
        depth += 1
        n = half
    path[1] = depth
    path[2] = n


@compiled
def drain(path: Any, rest: Any, sums: Any, address: Any, dtype: Any, width: Any) -> Any:
    """Add all leaves that the buffer at an address has whole, and move what is left to its front."""
    at, filled = 0, path[0]
    while filled - at >= path[2] > 0:
        total = leaf(address + at * width, path[2], dtype, width)
        at += path[2]
        depth = path[1]
        while depth > 0 and path[2 + depth] != 0:
            total = sums[depth - 1] + total
            depth -= 1
        if depth == 0:
            sums[0] = total
            path[2] = 0
        else:
            sums[depth - 1] = total
            path[2 + depth] = 1
            _descend(path, rest, depth, rest[depth - 1])
    left = filled - at
    buffer = array_at(address, (filled,), dtype)
    for i in range(left):
        buffer[i] = buffer[at + i]
    path[0] = left


@compiled
def finish(path: Any, rest: Any, sums: Any, address: Any, dtype: Any, width: Any) -> Any:
    """The sum of the line."""
    drain(path, rest, sums, address, dtype, width)
    return sums[0]
