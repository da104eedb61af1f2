"""Values of generated kernels, and LLVM's instructions for what is done to them.

Arithmetic is numba's, whose rules the kernels' sources are written by: integers are worked on in 64 bits,
floats as they are; nothing is assumed about NaN, infinities or signed zeros, and only what accumulates may be
reordered.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ctypes import c_float

from msgspec import Struct

TYPES = {
    "f4": "float",
    "f8": "double",
    "b1": "i1",
    **{f"{kind}{n}": f"i{8 * n}" for kind in "iu" for n in (1, 2, 4, 8)},
}
"""LLVM's types by NumPy's codes; truth values are bytes in memory."""
SUM = "reassoc contract "
"""Flags of the instructions that accumulate."""
_INTRINSICS = {
    **{name: (name, 1) for name in ("floor", "ceil", "trunc", "rint", "sqrt")},
    "magnitude": ("fabs", 1),
    "copysign": ("copysign", 2),
    "fused": ("fmuladd", 3),
    "greatest": ("maximum", 2),
    "least": ("minimum", 2),
}
"""What a source calls LLVM's own functions of floats, and how many operands they take."""
_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INTEGERS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "ashr"}
_ORDERED = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_COMPARED = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


_GROUP = ", !llvm.access.group !0"
LOOPS = (
    "!0 = distinct !{}",
    '!1 = !{!"llvm.loop.parallel_accesses", !0}',
    "!2 = distinct !{!2, !1}",
    '!3 = !{!"llvm.loop.unroll.disable"}',
    "!4 = distinct !{!4, !3}",
)
RANGES = {"range": "", "apart": ", !llvm.loop !2", "lanes": ", !llvm.loop !4"}
"""What the last instruction of a loop says, by the name of its range. Of loops whose turns are `apart`, what
is read and written is in a group, and none of it depends on another turn. Those over `lanes` stay loops until
they become vectors: unrolled before, they are as many numbers."""


class BeyondError(Exception):
    """Something that this translation does not know: numba does."""


class Value(Struct, frozen=True):
    """An operand of LLVM's, and the code of its dtype; "p" is a place in memory."""

    code: str
    text: str
    literal: int | float | bool | None = None
    """What it is, where the source says so."""


class Contiguous(Struct, frozen=True):
    """Contiguous elements from an address on."""

    code: str
    place: Value
    sizes: tuple[Value, ...]


def type_of(code: str) -> str:
    """LLVM's type of a value."""
    return "ptr" if code == "p" else TYPES[code]


def in_memory(code: str) -> str:
    """LLVM's type of an element."""
    return "i8" if code == "b1" else TYPES[code]


def literal(value: float | bool, code: str = "") -> Value:
    """A constant; by default of the dtype that Python's own have."""
    if not code:
        code = "b1" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8"
    if code[0] != "f":
        return Value(code, str(value).lower() if code == "b1" else str(value), value)
    number = c_float(value).value if code == "f4" else float(value)
    if number != number:
        return Value(code, "0x7FF8000000000000", number)
    return Value(code, f"0x{struct.pack('>d', number).hex().upper()}", number)


class Instructions:
    """A function's instructions, in blocks; what they call is declared by `declared`."""

    def __init__(self, declared: dict[str, str]) -> None:
        self.declared = declared
        self._places: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._group = ""
        self.is_open = True
        """Whether the block goes on."""

    def text(self) -> Iterable[str]:
        """All of them, what they keep on the stack first."""
        return ["entry:", *self._places, *self._lines]

    # --- blocks ---------------------------------------------------------------------------------------

    def block(self) -> str:
        """A name for a block."""
        self._count += 1
        return f"b{self._count}"

    def begin(self, block: str) -> None:
        """What follows is in this block, which the one before goes on to if it has no other end."""
        self.branch(block)
        self._lines.append(f"{block}:")
        self.is_open = True

    def branch(self, block: str) -> None:
        """Go on in a block; nothing where the one before has ended."""
        self.end(f"br label %{block}")

    def turn_back(self, head: str, kind: str) -> None:
        """Go on with the next turn of a loop over a range of some kind."""
        self.end(f"br label %{head}{RANGES[kind]}")

    @contextmanager
    def apart(self, are_apart: bool) -> Iterator[None]:
        """Around a loop; `are_apart` says that it reads nothing that another turn of it has written."""
        self._group = _GROUP if are_apart else ""
        yield
        self._group = ""

    def fork(self, condition: Value, then: str, other: str) -> None:
        """Go on in one of two blocks."""
        self.end(f"br i1 {condition.text}, label %{then}, label %{other}")

    def end(self, instruction: str) -> None:
        """End a block, if it has not ended."""
        if self.is_open:
            self._lines.append(f"  {instruction}")
        self.is_open = False

    def say(self, instruction: str) -> None:
        """An instruction without a value."""
        if self.is_open:
            self._lines.append(f"  {instruction}")

    def new(self, code: str, instruction: str) -> Value:
        """An instruction's value."""
        self._count += 1
        self.say(f"%v{self._count} = {instruction}")
        return Value(code, f"%v{self._count}")

    # --- memory ---------------------------------------------------------------------------------------

    def reserved(self, kind: str, align: int = 0) -> Value:
        """A place on the stack, for as long as the function's call lasts."""
        self._count += 1
        self._places.append(f"  %v{self._count} = alloca {kind}" + (f", align {align}" if align else ""))
        return Value("p", f"%v{self._count}")

    def get(self, place: Value, code: str) -> Value:
        """A variable's value."""
        return self.new(code, f"load {type_of(code)}, ptr {place.text}")

    def put(self, place: Value, value: Value) -> None:
        """Set a variable."""
        self.say(f"store {type_of(value.code)} {value.text}, ptr {place.text}")

    def place(self, address: Value) -> Value:
        """The place at an address."""
        if address.code == "p":
            return address
        return self.new("p", f"inttoptr i64 {self.cast(address, 'i8').text} to ptr")

    def element(self, array: Contiguous, index: Value) -> Value:
        """The place of an element, counted along all axes."""
        if isinstance(index.literal, int) and index.literal < 0:
            raise BeyondError("an index from the end")
        kind, number = in_memory(array.code), self.cast(index, "i8").text
        return self.new("p", f"getelementptr inbounds {kind}, ptr {array.place.text}, i64 {number}")

    def load(self, place: Value, code: str) -> Value:
        """An element."""
        found = self.new(code, f"load {in_memory(code)}, ptr {place.text}{self._group}")
        return self.new("b1", f"trunc i8 {found.text} to i1") if code == "b1" else found

    def store(self, place: Value, value: Value, code: str) -> None:
        """Set an element."""
        value = self.cast(value, code)
        if code == "b1":
            value = self.new("u1", f"zext i1 {value.text} to i8")
        self.say(f"store {in_memory(code)} {value.text}, ptr {place.text}{self._group}")

    # --- numbers --------------------------------------------------------------------------------------

    def cast(self, value: Value, code: str) -> Value:
        """A number in another dtype."""
        if value.code == code:
            return value
        if value.literal is not None and code != "b1" and (code[0] == "f" or value.code[0] != "f"):
            number = value.literal
            return literal(float(number) if code[0] == "f" else _wrapped(int(number), code), code)
        name = _conversion(value.code, code)
        if not name:
            return Value(code, value.text)
        return self.new(code, f"{name} {TYPES[value.code]} {value.text} to {TYPES[code]}")

    def calculated(self, sign: str, a: Value, b: Value, flags: str = "") -> Value:
        """A + b, and so on."""
        if a.code == b.code == "b1" and sign in "&|^":
            return self.new("b1", f"{_INTEGERS[sign]} i1 {a.text}, {b.text}")
        code = _common(a, b)
        names = _FLOATS if code[0] == "f" else _INTEGERS
        if sign not in names or "b1" in (a.code, b.code):
            raise BeyondError(f"{a.code} {sign} {b.code}")
        if code == "u8" and sign in ("<<", ">>"):
            raise BeyondError("a shift of unsigned numbers")
        a, b = self.cast(a, code), self.cast(b, code)
        return self.new(code, f"{names[sign]} {flags}{TYPES[code]} {a.text}, {b.text}")

    def divided_down(self, a: Value, b: Value) -> Value:
        """A // b, an integer by a power of two."""
        power = b.literal if isinstance(b.literal, int) else 0
        if a.code[0] == "f" or power < 1 or power & (power - 1):
            raise BeyondError("a quotient that is rounded down")
        return self.calculated(">>", a, literal(power.bit_length() - 1))

    def negative(self, a: Value) -> Value:
        """Minus a."""
        if a.code[0] == "f":
            zero = literal(-0.0, a.code)
            return self.new(a.code, f"fsub {TYPES[a.code]} {zero.text}, {a.text}")
        return self.calculated("-", literal(0, _wide(a.code)), a)

    def inverted(self, a: Value) -> Value:
        """All bits the other way round."""
        return self.calculated("^", a, literal(_wrapped(-1, _wide(a.code)), _wide(a.code)))

    def compared(self, sign: str, a: Value, b: Value) -> Value:
        """A < b, and so on."""
        if "b1" in (a.code, b.code):
            a, b = (self.cast(x, "i8") if x.code == "b1" else x for x in (a, b))
        code = a.code if a.code == b.code else _common(a, b)
        a, b = self.cast(a, code), self.cast(b, code)
        if code[0] == "f":
            return self.new("b1", f"fcmp {_ORDERED[sign]} {TYPES[code]} {a.text}, {b.text}")
        signed = "u" if code[0] == "u" else "s"
        name = {"==": "eq", "!=": "ne"}.get(sign) or signed + _COMPARED[sign]
        return self.new("b1", f"icmp {name} {TYPES[code]} {a.text}, {b.text}")

    def chosen(self, condition: Value, a: Value, b: Value) -> Value:
        """A where the condition holds, else b."""
        if condition.code != "b1" or a.code != b.code:
            raise BeyondError(f"a choice of {a.code} and {b.code} by {condition.code}")
        kind = TYPES[a.code]
        return self.new(a.code, f"select i1 {condition.text}, {kind} {a.text}, {kind} {b.text}")

    def smaller(self, a: Value, b: Value) -> Value:
        """The smaller one of two integers."""
        code = _common(a, b)
        if code[0] == "f":
            raise BeyondError("the smaller one of two floats")
        a, b = self.cast(a, code), self.cast(b, code)
        return self.chosen(self.compared("<", a, b), a, b)

    def known(self, name: str, operands: list[Value]) -> Value | None:
        """What one of `intrinsics` gives of numbers; None where the name is none of those."""
        match name, operands:
            case "min", [a, b]:
                return self.smaller(a, b)
            case "choose", [condition, a, b]:
                return self.chosen(condition, a, b)
            case "accumulate_add", [a, b] if a.code[0] == "f":
                return self.calculated("+", a, self.cast(b, a.code), SUM)
            case "multiply_add", [total, a, b] if total.code[0] == "f":
                product = self.calculated("*", self.cast(a, total.code), self.cast(b, total.code), SUM)
                return self.calculated("+", total, product, SUM)
            case "to_bits", [value]:
                return self.bits(value, "i8")
            case "from_bits", [value]:
                return self.bits(value, "f8")
            case "count_up", [address, step]:
                return self.counted_up(address, step)
            case "local", [Value(literal=int(nbytes))]:
                return self.reserved(f"[{nbytes} x i8]", align=64)
            case _:
                return self.intrinsic(name, operands)

    def intrinsic(self, name: str, operands: list[Value]) -> Value | None:
        """One of LLVM's functions of floats; None where the name is none of those."""
        if name not in _INTRINSICS:
            return None
        own, count = _INTRINSICS[name]
        code = operands[0].code
        if len(operands) != count or code[0] != "f":
            raise BeyondError(f"{name} of {', '.join(v.code for v in operands)}")
        kind, full = TYPES[code], f"llvm.{own}.f{8 * int(code[1])}"
        self.declared[full] = f"declare {kind} @{full}({', '.join([kind] * count)})"
        given = ", ".join(f"{kind} {self.cast(v, code).text}" for v in operands)
        return self.new(code, f"call {kind} @{full}({given})")

    def bits(self, value: Value, code: str) -> Value:
        """The same bits as a number of another kind."""
        if {value.code, code} != {"i8", "f8"}:
            raise BeyondError(f"bits of {value.code}")
        return self.new(code, f"bitcast {TYPES[value.code]} {value.text} to {TYPES[code]}")

    def counted_up(self, address: Value, step: Value) -> Value:
        """What a counter that threads share was before it goes on by a step."""
        number = self.cast(step, "i8").text
        return self.new("i8", f"atomicrmw add ptr {self.place(address).text}, i64 {number} seq_cst")

    def prefetch(self, address: Value) -> None:
        """Ask for data at an address, to read, for all caches."""
        name = "llvm.prefetch.p0"
        self.declared[name] = f"declare void @{name}(ptr, i32, i32, i32)"
        self.say(f"call void @{name}(ptr {self.place(address).text}, i32 0, i32 3, i32 1)")


def _wide(code: str) -> str:
    """What an integer is worked on as."""
    return "u8" if code[0] == "u" else "i8"


def _wrapped(number: int, code: str) -> int:
    """An integer as far as a dtype has room for it."""
    bits = 8 * int(code[1])
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if code[0] == "i" and low >> (bits - 1) else low


def _common(a: Value, b: Value) -> str:
    """The dtype that two numbers are worked on in."""
    if a.code[0] == b.code[0] == "f":
        return max(a.code, b.code)
    if "f" in (a.code[0], b.code[0]):
        number, other = (a, b) if a.code[0] == "f" else (b, a)
        if other.literal is None and number.code == "f4":
            raise BeyondError(f"{a.code} and {b.code}")  # single or double precision, by the integer's size
        return "f8"
    wide = {_wide(a.code), _wide(b.code)}
    if len(wide) == 1:
        return wide.pop()
    unsigned, signed = (a, b) if a.code[0] == "u" else (b, a)
    if unsigned.code != "u8":
        return "i8"
    if isinstance(signed.literal, int) and signed.literal >= 0:
        return "u8"
    raise BeyondError(f"{a.code} and {b.code}")


def _conversion(given: str, wanted: str) -> str:
    """The instruction that makes a number of one dtype one of another; empty where the bits are the same."""
    if wanted in ("b1", "p") or given == "p" or (given[0] == "f" and wanted[0] != "f"):
        raise BeyondError(f"{given} as {wanted}")
    if given[0] == "f":
        return "fpext" if wanted == "f8" else "fptrunc"
    if wanted[0] == "f":
        return "sitofp" if given[0] == "i" else "uitofp"
    if given == "b1":
        return "zext"
    before, after = int(given[1]), int(wanted[1])
    if before == after:
        return ""
    return "trunc" if before > after else "sext" if given[0] == "i" else "zext"
