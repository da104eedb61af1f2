"""What the interpreter does with an operator's result, read in the code (`plain/ahead.h`).

Between an operator and the one that takes its result from the stack, the interpreter makes the other operand
or the key of variables, attributes, constants, keys and operators: no function is called, and nothing is
stored. Code of other shapes, and instructions that are not known here, have no answer but no.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from itertools import islice
from opcode import opmap
from operator import attrgetter
from types import CodeType
from typing import NamedTuple

NOT_TAKEN, TAKEN, BESIDE_RESULT, BESIDE_LOCAL, BESIDE_GLOBAL, BESIDE_NAME = range(1, 7)
INTO_LOCAL, INTO_GLOBAL, INTO_NAME = range(7, 10)
"""What becomes of a result, as `plain/ahead.h` numbers it: nothing that is known; it is the left operand of
another operator, or the only one, or stands beside a constant; or beside the result of one more operator, or
a variable; or it is written into a variable."""
_INPLACE = range(13, 26)
"""The operators that write to their left operand, among those of `BINARY_OP`."""


def _numbered(**effects: tuple[int, int]) -> dict[int, tuple[int, int]]:
    return {opmap[name]: effect for name, effect in effects.items() if name in opmap}


_STORES = _numbered(STORE_SUBSCR=(3, 0), STORE_SLICE=(4, 0))
_EFFECTS = (
    _numbered(
        LOAD_FAST=(0, 1),
        LOAD_FAST_CHECK=(0, 1),
        LOAD_FAST_BORROW=(0, 1),
        LOAD_GLOBAL=(0, 1),
        LOAD_NAME=(0, 1),
        LOAD_DEREF=(0, 1),
        LOAD_ATTR=(1, 1),
        LOAD_CONST=(0, 1),
        LOAD_SMALL_INT=(0, 1),
        BINARY_SUBSCR=(2, 1),
        BINARY_SLICE=(3, 1),
        BINARY_OP=(2, 1),
        UNARY_NEGATIVE=(1, 1),
        UNARY_POSITIVE=(1, 1),
        UNARY_INVERT=(1, 1),
        COMPARE_OP=(2, 1),
    )
    | _STORES
)
"""What an instruction takes from the stack, and what it puts there."""
_COUNTED = frozenset(opmap[name] for name in ("BUILD_SLICE", "BUILD_TUPLE"))
_SILENT = frozenset(opmap[name] for name in ("CACHE", "NOP") if name in opmap)
_CONSTANTS = frozenset(opmap[name] for name in ("LOAD_CONST", "LOAD_SMALL_INT") if name in opmap)
_BESIDE = {
    opmap[name]: kind
    for name, kind in (
        ("LOAD_FAST", BESIDE_LOCAL),
        ("LOAD_FAST_CHECK", BESIDE_LOCAL),
        ("LOAD_FAST_BORROW", BESIDE_LOCAL),
        ("LOAD_GLOBAL", BESIDE_GLOBAL),
        ("LOAD_NAME", BESIDE_NAME),
    )
    if name in opmap
}
_INTO = INTO_LOCAL - BESIDE_LOCAL
_BINARY, _COMPARE, _MINUS, _GLOBAL, _ATTRIBUTE, _EXTENDED = (
    opmap[name]
    for name in ("BINARY_OP", "COMPARE_OP", "UNARY_NEGATIVE", "LOAD_GLOBAL", "LOAD_ATTR", "EXTENDED_ARG")
)
_HAS_METHODS = "LOAD_METHOD" not in opmap
"""Whether `LOAD_ATTR` says by its lowest bit that a call follows, as `LOAD_GLOBAL` does."""


class _Instruction(NamedTuple):
    place: int
    operation: int
    argument: int
    line: int | None

    def effect(self) -> tuple[int, int] | None:
        """What it takes from the stack, and gives; None if it is not known here."""
        if self.operation in _COUNTED:
            return self.argument, 1
        if self.argument & 1 and (
            self.operation == _GLOBAL or (self.operation == _ATTRIBUTE and _HAS_METHODS)
        ):
            return None  # of a call
        return _EFFECTS.get(self.operation)

    def is_operator(self) -> bool:
        """Whether it has a new result."""
        is_new = self.operation == _BINARY and self.argument < _INPLACE.start
        return is_new or self.operation in (_COMPARE, _MINUS)

    def is_in_place(self) -> bool:
        """Whether it writes to its left operand."""
        return self.operation == _BINARY and self.argument in _INPLACE

    def variable(self) -> int:
        """The number of the variable that it loads."""
        return self.argument >> 1 if self.operation == _GLOBAL else self.argument


def read_ahead(code: CodeType, at: int) -> tuple[int, int, int, int]:
    """What becomes of the result of the operator at an offset of the code: one of the numbers above, the
    number of the variable, the offset of the operator that takes it, and how many attributes are loaded
    before, whose code may be anybody's."""
    instructions = _instructions(code)
    here = bisect_left(instructions, at, key=attrgetter("place"))
    nothing = (NOT_TAKEN, 0, 0, 0)
    if here == len(instructions) or instructions[here].place != at or not instructions[here].is_operator():
        return nothing
    above = attributes = 0
    first: _Instruction | None = None
    for instruction in islice(instructions, here + 1, None):
        effect = instruction.effect()
        if effect is None:
            return nothing
        taken, given = effect
        attributes += instruction.operation == _ATTRIBUTE
        if taken > above:
            if instruction.line != instructions[here].line:  # which warnings name
                return nothing
            kind, number = _taken_by(instruction, above, first, _before(instructions, here))
            return kind, number, instruction.place, attributes
        if above == 0:
            first = instruction if given == 1 else None
        elif taken == above:
            first = None
        above += given - taken
    return nothing


def _taken_by(
    taker: _Instruction, above: int, first: _Instruction | None, left: _Instruction | None
) -> tuple[int, int]:
    """How an instruction takes a result with so many values above it, the first of them loaded by `first`,
    and one below, which `left` has made."""
    if taker.operation in _STORES:
        is_value = above == _STORES[taker.operation][0] - 1
        return _beside(first, _INTO) if is_value and first is not None else (NOT_TAKEN, 0)
    if taker.is_operator() and (above == 1 or taker.operation == _MINUS):
        return TAKEN, 0
    if left is None or not (taker.is_operator() or taker.is_in_place()):
        return NOT_TAKEN, 0
    if taker.is_in_place():
        return _beside(left, _INTO)
    if left.operation in _CONSTANTS:
        return TAKEN, 0
    return (BESIDE_RESULT, 0) if left.is_operator() else _beside(left, 0)


def _beside(instruction: _Instruction, further: int) -> tuple[int, int]:
    kind = _BESIDE.get(instruction.operation)
    return (NOT_TAKEN, 0) if kind is None else (kind + further, instruction.variable())


def _before(instructions: list[_Instruction], here: int) -> _Instruction | None:
    """The instruction before those that make the result of the one `here`."""
    needed = 1
    for k in range(here, 0, -1):
        effect = instructions[k].effect()
        if effect is None or effect[1] != 1:
            return None
        needed += effect[0] - 1
        if needed == 0:
            return instructions[k - 1]
    return None


@lru_cache(maxsize=8)
def _instructions(code: CodeType) -> list[_Instruction]:
    units, found, extended = code.co_code, [], 0
    for begin, end, line in code.co_lines():
        for place in range(begin, end, 2):
            operation, argument = units[place], units[place + 1] | extended
            extended = argument << 8 if operation == _EXTENDED else 0
            if operation != _EXTENDED and operation not in _SILENT:
                found.append(_Instruction(place, operation, argument, line))
    return found
