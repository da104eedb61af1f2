"""What generated kernels call: memory by address, sums the compiler may reorder, NumPy's own comparisons.

Only the running sums and products of a fold may be reassociated, which lets the compiler vectorize them; all
other arithmetic stays exactly as written. NaN, infinities and signed zeros keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as untyped_intrinsic
from numba.np import arrayobj


def intrinsic(function: Callable[..., Any]) -> Any:
    """The decorator of numba, with a type."""
    return untyped_intrinsic(function)


def compiled(function: Callable[..., Any]) -> Any:
    """A kernel, or a function for kernels to call: machine code that needs neither Python nor numba to run.

    Arrays are views of memory by address, and nothing is allocated: see `local`.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    return njit(nogil=True, error_model="numpy", **options)(function)


_SUM = ("reassoc", "contract")
"""Flags of the instructions that accumulate; nothing is assumed about NaN or infinity."""


@intrinsic
def array_at(typing_context: Any, address: Any, shape: Any, dtype: Any) -> Any:
    """The contiguous array of a shape and dtype that lies at an address, or in `local` memory."""
    array = types.Array(dtype.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_data_type(array.dtype)
        place = builder.bitcast if address == types.voidptr else builder.inttoptr
        sizes = [
            context.cast(builder, size, kind, types.intp)
            for size, kind in zip(cgutils.unpack_tuple(builder, args[1]), shape, strict=True)
        ]
        step = context.get_constant(types.intp, context.get_abi_sizeof(element))
        strides = [step]
        for size in reversed(sizes[1:]):
            strides.insert(0, builder.mul(strides[0], size))
        out = arrayobj.make_array(array)(context, builder)
        data = place(args[0], element.as_pointer())
        arrayobj.populate_array(out, data=data, shape=sizes, strides=strides, itemsize=step, meminfo=None)
        return out._getvalue()

    return array(address, shape, dtype), generate


@untyped_intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def local(typing_context: Any, nbytes: Any) -> Any:
    """A place for so many bytes (a number in the text) that lasts as long as the function's call."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with builder.goto_entry_block():  # numba's own would store zeros, one byte after the other
            place = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes.literal_value))
        place.align = 64
        return builder.bitcast(place, ir.IntType(8).as_pointer())

    return types.voidptr(nbytes), generate


@intrinsic
def address_of(typing_context: Any, place: Any) -> Any:
    """The address of a `local` place."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(types.voidptr), generate


def _accumulating(instruction: str) -> Any:
    """An operation on two floats that the compiler may reorder with its like."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(*args, flags=_SUM)

        return a(a, a), generate

    return operation


accumulate_add = _accumulating("fadd")
accumulate_multiply = _accumulating("fmul")


@intrinsic
def multiply_add(typing_context: Any, total: Any, a: Any, b: Any) -> Any:
    """Total + a * b as one step of a product's sum."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total_, a_, b_ = args
        return builder.fadd(total_, builder.fmul(a_, b_, flags=_SUM), flags=_SUM)

    return total(total, total, total), generate


def _machine(name: str, operands: int) -> Any:
    """One of LLVM's floating-point intrinsics; those here are one or two instructions, and vectorize."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = args[0].type
        kind = ir.FunctionType(number, [number] * operands)
        function = builder.module.declare_intrinsic(f"llvm.{name}", [number], kind)
        return builder.call(function, args)

    if operands == 1:

        @intrinsic
        def unary(typing_context: Any, a: Any) -> Any:
            return a(a), generate

        return unary

    if operands == 2:

        @intrinsic
        def binary(typing_context: Any, a: Any, b: Any) -> Any:
            return a(a, a), generate

        return binary

    @intrinsic
    def ternary(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        return a(a, a, a), generate

    return ternary


floor = _machine("floor", 1)
ceil = _machine("ceil", 1)
trunc = _machine("trunc", 1)
rint = _machine("rint", 1)
sqrt = _machine("sqrt", 1)
magnitude = _machine("fabs", 1)
copysign = _machine("copysign", 2)
fused = _machine("fmuladd", 3)
"""a * b + c, rounded once where the processor can do that in one instruction."""
greatest = _machine("maximum", 2)
least = _machine("minimum", 2)


@intrinsic
def choose(typing_context: Any, condition: Any, a: Any, b: Any) -> Any:
    """A where the condition holds, else b; both are computed, and no branch is taken."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return (a(condition, a, b) if a == b else None), generate


@intrinsic
def load(typing_context: Any, address: Any, dtype: Any) -> Any:
    """The element at an address."""
    element = dtype.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        model = context.data_model_manager[element]
        place = builder.inttoptr(args[0], model.get_data_type().as_pointer())
        return model.from_data(builder, builder.load(place))

    return element(types.int64, dtype), generate


@intrinsic
def prefetch(typing_context: Any, address: Any) -> Any:
    """Ask for the cache line at an address, which may be any number: nothing is read, and nothing waits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, number = builder.inttoptr(args[0], ir.IntType(8).as_pointer()), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, number(0), number(3), number(1)])  # data, to read, for all caches
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def count_up(typing_context: Any, address: Any, step: Any) -> Any:
    """Add to the 64-bit counter at an address that threads share; what it was before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def to_bits(typing_context: Any, value: Any) -> Any:
    """The bits of a double as an integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def from_bits(typing_context: Any, value: Any) -> Any:
    """The double with these bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate
