"""What generated kernels call: memory by address, sums the compiler may reorder, NumPy's own comparisons.

Only the running sums and products of a fold may be reassociated, which lets the compiler vectorize them; all
other arithmetic stays exactly as written. NaN, infinities and signed zeros keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as untyped_intrinsic
from numba.np import arrayobj

from spartan_ng.kernels.compiled.frontend import KernelCompiler


def intrinsic(function: Callable[..., Any]) -> Any:
    """The decorator of numba, with a type."""
    return untyped_intrinsic(function)


def compiled(function: Callable[..., Any]) -> Any:
    """A kernel, or a function for kernels to call: machine code that needs neither Python nor numba to run.

    Arrays are views of memory by address, and nothing is allocated: see `local`.
    """
    # Kernels are called by their address alone: wrappers for Python would be compiled for nobody.
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    return njit(nogil=True, error_model="numpy", pipeline_class=KernelCompiler, **options)(function)


apart = range
"""The range of a loop whose turns read nothing that another one writes."""
lanes = range
"""That of a loop over the values of a vector, whose length the text says."""

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
        place = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), nbytes.literal_value))
        # A line of the cache, so that a vector never lies in two.
        place.align = 64
        return builder.bitcast(place, ir.IntType(8).as_pointer())

    return types.voidptr(nbytes), generate


def _accumulating(instruction: str) -> Any:
    """An operation on two floats that the compiler may reorder with its like."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(*args, flags=_SUM)

        return a(a, a), generate

    return operation


accumulate_add = _accumulating("fadd")


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
# LLVM has two pairs: these hand a NaN on, as NumPy's do, `maxnum` and `minnum` drop it.
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
        _prefetched(builder, args[0])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _prefetched(builder: Any, address: Any) -> None:
    place, number = builder.inttoptr(address, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
    builder.call(function, [place, number(0), number(3), number(1)])  # data, to read, for all caches


def vector_bytes() -> int:
    """Bytes of this processor's widest vectors; LookupError where it has none worth spelling out."""
    features = llvm.get_host_cpu_features()
    found = next((n for name, n in (("avx512f", 64), ("avx2", 32)) if features.get(name)), 0)
    if not found:
        raise LookupError("the processor has no wide vectors")
    return found


def tile_adder(lines: int, vectors: int, lanes: int) -> Any:
    """The function that adds to a tile, `lines` by so many vectors of `lanes` numbers, the product of columns
    of two matrices: the tile stays in registers while all rows go by.

    It is called with the addresses of first elements, `a`, `b` and `out`, each with the bytes from line to
    line, with the rows, and with the first of as many cache lines that are asked for meanwhile. LLVM's
    vectorizer finds no such tiles by itself.
    """
    return _tile_function(lines, vectors, lanes, turned=False)


def tile_filler(lines: int, vectors: int, lanes: int) -> Any:
    """As `tile_adder`, of the function that fills a tile with the product of lines of `a`, which go along the
    sum, and columns of `b`, whatever it held."""
    return _tile_function(lines, vectors, lanes, turned=True)


def _tile_function(lines: int, vectors: int, lanes: int, turned: bool) -> Any:
    @intrinsic
    def multiply(
        typing_context: Any,
        dtype: Any,
        a: Any,
        a_line: Any,
        b: Any,
        b_line: Any,
        out: Any,
        out_line: Any,
        rows: Any,
        ahead: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            element = context.get_data_type(dtype.dtype)
            tile = _Tile(builder, element, context.get_abi_sizeof(element), lanes)
            _, a, a_line, b, b_line, out, out_line, rows, ahead = args
            sums = tile.sums(lines, vectors, turned, (a, a_line, b, b_line, rows, ahead))
            tile.store(sums, vectors, (out, out_line), adds=not turned)
            return context.get_dummy_value()

        return types.void(dtype, *(types.int64,) * 8), generate

    return multiply


class _Tile:
    """Instructions for sums of products in registers."""

    def __init__(self, builder: Any, element: Any, nbytes: int, lanes: int) -> None:
        self._builder, self._element, self._nbytes, self._lanes = builder, element, nbytes, lanes
        self._vector = ir.VectorType(element, lanes)

    def sums(self, lines: int, vectors: int, turned: bool, given: Sequence[Any]) -> list[Any]:
        """A loop over rows, one at least; what its products come to, line by line. `given` is as in
        `tile_adder`."""
        a, a_line, b, b_line, rows, ahead = given
        builder, before, number = self._builder, self._builder.block, ir.IntType(64)
        loop, end = builder.append_basic_block("rows"), builder.append_basic_block("sums")
        along, across = (number(self._nbytes), a_line) if turned else (a_line, number(self._nbytes))
        apart = [builder.mul(across, number(i)) for i in range(lines)]
        builder.branch(loop)
        builder.position_at_end(loop)
        steps = ((number(0), number(1)), (a, along), (b, b_line), (ahead, number(64)))
        places = [builder.phi(number) for _ in steps]
        sums = [builder.phi(self._vector) for _ in range(lines * vectors)]
        zero = ir.Constant(self._vector, [0.0] * self._lanes)
        row = [self._loaded(self._at(places[2], v * self._lanes), self._vector) for v in range(vectors)]
        added = []
        for i in range(lines):
            x = _spread(builder, self._loaded(builder.add(places[1], apart[i]), self._element), self._lanes)
            for v in range(vectors):
                product = builder.fmul(x, row[v], flags=_SUM)
                added.append(builder.fadd(sums[i * vectors + v], product, flags=_SUM))
        _prefetched(builder, places[3])
        for place, (first, step) in zip(places, steps, strict=True):
            place.add_incoming(first, before)
            place.add_incoming(builder.add(place, step), loop)
        for total, made in zip(sums, added, strict=True):
            total.add_incoming(zero, before)
            total.add_incoming(made, loop)
        following = builder.add(places[0], number(1))
        builder.cbranch(builder.icmp_signed("<", following, rows), loop, end)
        builder.position_at_end(end)
        return added

    def store(self, sums: Sequence[Any], vectors: int, place: tuple[Any, Any], adds: bool) -> None:
        """Put sums into the lines of a tile, given its address and the bytes from line to line, or add them
        to what is there."""
        builder, (out, out_line) = self._builder, place
        for n, made in enumerate(sums):
            line, v = divmod(n, vectors)
            at = self._at(builder.add(out, builder.mul(out_line, ir.IntType(64)(line))), v * self._lanes)
            total = builder.fadd(self._loaded(at, self._vector), made) if adds else made
            builder.store(total, builder.inttoptr(at, self._vector.as_pointer())).align = self._nbytes

    def _at(self, address: Any, elements: int) -> Any:
        return self._builder.add(address, ir.IntType(64)(elements * self._nbytes))

    def _loaded(self, address: Any, kind: Any) -> Any:
        found = self._builder.load(self._builder.inttoptr(address, kind.as_pointer()))
        found.align = self._nbytes
        return found


def _spread(builder: Any, value: Any, lanes: int) -> Any:
    """A vector of so many equal numbers."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    one = builder.insert_element(undefined, value, ir.IntType(32)(0))
    nowhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(one, undefined, nowhere)


WORD = 64
"""Elements that a word has a bit for."""


def _bits(relation: str) -> Any:
    @intrinsic
    def compare(typing_context: Any, address: Any, bound: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(args[1].type, WORD)
            elements = builder.load(builder.inttoptr(args[0], vector.as_pointer()))
            elements.align = context.get_abi_sizeof(args[1].type)
            if isinstance(bound, types.Float):
                asked = builder.fcmp_ordered
            else:
                asked = builder.icmp_signed if bound.signed else builder.icmp_unsigned
            found = asked(relation, elements, _spread(builder, args[1], WORD))
            return builder.bitcast(found, ir.IntType(WORD))

        return types.int64(types.int64, bound), generate

    return compare


bits_above = _bits(">")
"""Which of the `WORD` elements from an address on are greater than a bound: the first has the lowest bit.
LLVM's vectorizer makes no words of comparisons."""
bits_from = _bits(">=")
"""Which are no less."""


@intrinsic
def ones(typing_context: Any, word: Any) -> Any:
    """How many bits of a word are one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), generate


@intrinsic
def lowest(typing_context: Any, word: Any) -> Any:
    """The place of the lowest bit of a word that is one; some bit is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


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
