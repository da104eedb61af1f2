"""What the interpreter does with an operator's or a function's result, read in the code (`plain/ahead.h`).

Between an operator and the one that takes its result from the stack, the interpreter makes the other operand,
other arguments or the key of variables, attributes, constants, keys, operators and calls of our functions: no
other function is called, and nothing is stored. Attributes, keys and operators of what is no array and no
number run anybody's code. Code of other shapes, and instructions that are not known here, have no answer but
no.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from dis import findlabels
from functools import cached_property, lru_cache
from opcode import hasjabs, hasjrel, opmap
from operator import itemgetter
from types import CodeType
from typing import NamedTuple

from spartan_ng.api.core.quick import NAMES_LINES, QuickFunction

NOT_TAKEN, TAKEN, BESIDE_RESULT, BESIDE_LOCAL, BESIDE_GLOBAL, BESIDE_NAME = range(1, 7)
INTO_LOCAL, INTO_GLOBAL, INTO_NAME = range(7, 10)
"""What becomes of a result, as `plain/ahead.h` numbers it: nothing that is known; it is the left operand of
another operator, or the only one, or an argument, or stands beside a constant; or beside the result of one
more operator, or a variable, or a part of it; or it is written into a variable, or a part of it."""
MOST_CALLED, MOST_USED = 3, 12
"""Functions that are called until a result is taken; variables that are asked for, with those."""
FUNCTION, PACKAGE, BUILTIN, OPERAND, PART = range(5)
Used = tuple[int, int, int]
"""What has to be so: a variable, as one of the kinds `BESIDE_LOCAL` to `BESIDE_NAME` and a number, that is a
function of ours, or the package, whose function it is, or that is none, so that Python's own is called; or an
array or a number, or else operators and keys may be anybody's code; or that which the result beside is made
of, by operators and keys alone: that one is ours or a number, too, if all of these are."""
Ahead = tuple[int, int, int, bool, tuple[Used, ...]]
_NOTHING: Ahead = (NOT_TAKEN, 0, 0, False, ())
_INPLACE = range(13, 26)
"""The operators that write to their left operand, among those of `BINARY_OP`."""
_NOT_COMPILED = frozenset({17, 21})
"""`@=` and `**=`, which are methods."""


def _numbered(**effects: tuple[int, int]) -> dict[int, tuple[int, int]]:
    return {opmap[name]: effect for name, effect in effects.items() if name in opmap}


def _those(*names: str) -> frozenset[int]:
    return frozenset(opmap[name] for name in names if name in opmap)


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
        LOAD_METHOD=(1, 2),
        LOAD_CONST=(0, 1),
        LOAD_SMALL_INT=(0, 1),
        PUSH_NULL=(0, 1),
        PRECALL=(0, 0),
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
_COUNTED = _those("BUILD_SLICE", "BUILD_TUPLE")
_NO_INSTRUCTIONS = _those("CACHE", "NOP", "EXTENDED_ARG")
_JUMPS = re.compile(b"[" + re.escape(bytes(code for code in {*hasjrel, *hasjabs} if code < 256)) + b"]")
_BUILTINS = frozenset({"len"})
"""Functions of Python's whose code may be anybody's, as that of attributes."""
_CONSTANTS = _those("LOAD_CONST", "LOAD_SMALL_INT")
_PARTS = _those("BINARY_SUBSCR", "BINARY_SLICE")
_VARIABLES = {
    opmap[name]: kind
    for name, kind in (
        ("LOAD_FAST", BESIDE_LOCAL),
        ("LOAD_FAST_CHECK", BESIDE_LOCAL),
        ("LOAD_FAST_BORROW", BESIDE_LOCAL),
        ("LOAD_DEREF", BESIDE_LOCAL),
        ("LOAD_GLOBAL", BESIDE_GLOBAL),
        ("LOAD_NAME", BESIDE_NAME),
    )
    if name in opmap
}
_WORK = _PARTS | _those("BINARY_OP", "COMPARE_OP", "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT")
_MADE = _WORK | _CONSTANTS | _COUNTED | _VARIABLES.keys()
_INTO = INTO_LOCAL - BESIDE_LOCAL
_BINARY, _COMPARE, _CALL, _COPY, _GLOBAL, _ATTRIBUTE, _NULL, _EXTENDED = (
    opmap[name]
    for name in (
        *("BINARY_OP", "COMPARE_OP", "CALL", "COPY", "LOAD_GLOBAL", "LOAD_ATTR", "PUSH_NULL"),
        "EXTENDED_ARG",
    )
)
_UNARY = _those("UNARY_NEGATIVE", "UNARY_INVERT")
_METHOD = opmap["LOAD_METHOD"] if opmap.get("LOAD_METHOD", 256) < 256 else _ATTRIBUTE
"""What loads a function to be called: `LOAD_ATTR` says so by its lowest bit, as `LOAD_GLOBAL` does."""


class _Instruction(NamedTuple):
    place: int
    operation: int
    argument: int
    is_label: bool
    """Whether another one jumps here."""

    def effect(self) -> tuple[int, int] | None:
        """What it takes from the stack, and gives; None if it is not known here."""
        if self.operation in _COUNTED:
            return self.argument, 1
        if self.operation == _CALL:
            return self.argument + 2, 1
        if self.operation == _COPY:
            return 0, 1
        effect = _EFFECTS.get(self.operation)
        return effect if effect is None or not self.is_of_call() else (effect[0], 2)

    def is_of_call(self) -> bool:
        """Whether it loads what is called, and says so."""
        is_marked = self.operation == _GLOBAL or self.operation == _ATTRIBUTE == _METHOD
        return is_marked and bool(self.argument & 1)

    def is_operator(self) -> bool:
        """Whether it has a new result."""
        is_new = self.operation == _BINARY and self.argument < _INPLACE.start
        return is_new or self.operation in (_COMPARE, _CALL) or self.operation in _UNARY

    def is_in_place(self) -> bool:
        """Whether it writes to its left operand."""
        return self.operation == _BINARY and self.argument in _INPLACE

    def is_work(self) -> bool:
        """Whether it is what its operands say: an operator, or a key's part."""
        return self.operation in _WORK

    def number(self) -> int:
        """The number of the variable or the name that it loads."""
        is_marked = self.operation == _GLOBAL or self.operation == _ATTRIBUTE == _METHOD
        return self.argument >> 1 if is_marked else self.argument


_Variables = frozenset[tuple[int, int]]


class _Value:
    """A value on the stack: what has made it, of which other one, and of which variables by operators, keys
    and functions of ours alone, None if by anything else."""

    __slots__ = ("by", "is_plain", "of", "variables")

    def __init__(self, by: _Instruction, operands: _Stack) -> None:
        self.by, self.of = by, operands[0] if operands else None
        variable = self.variable()
        self.is_plain: bool = by.operation in _MADE and all(
            value is not None and value.is_plain for value in operands
        )
        """Whether operators and keys have made it, of variables and constants."""
        if by.operation == _ATTRIBUTE:
            self.variables = None
        else:
            arguments = operands[2:] if by.operation == _CALL else operands
            self.variables = _variables(arguments) if variable is None else frozenset({variable})

    def variable(self) -> tuple[int, int] | None:
        """Which variable it is, if it is one."""
        kind = _VARIABLES.get(self.by.operation)
        return None if kind is None else (kind, self.by.number())

    def whole(self) -> _Value:
        """What it is a part of, by its key; itself otherwise."""
        return self if self.of is None or self.by.operation not in _PARTS else self.of.whole()


_Stack = list[_Value | None]


def _variables(operands: _Stack) -> _Variables | None:
    """What values are made of."""
    found: set[tuple[int, int]] = set()
    for value in operands:
        if value is None or value.variables is None:
            return None
        found |= value.variables
    return frozenset(found)


def read_ahead(code: CodeType, at: int) -> Ahead:
    """What becomes of the result of the operator or the call at an offset of the code: one of the numbers
    above, the number of the variable, the offset of what takes it, whether anybody's code runs before, as
    that of attributes and lengths, and what has to be ours for that."""
    text = _text_of(code)
    here = text.at(at)
    if here is None or not text[here].is_operator():
        return _NOTHING
    stack = text.stack_after(here)
    ours, runs_any = stack[-1], False
    called: dict[Used, None] = {}
    worked_on: set[tuple[int, int]] = set()
    for place in range(here + 1, len(text)):
        instruction = text[place]
        effect = instruction.effect()
        is_in_line = NAMES_LINES or text.line(place) == text.line(here)
        if effect is None or instruction.is_label or (instruction.is_operator() and not is_in_line):
            return _NOTHING
        operands = _operands(stack, effect[0])
        is_taken = ours in operands
        if instruction.operation == _CALL:
            function = _function(operands, code)
            if function is None or (is_taken and function[2] == BUILTIN):
                return _NOTHING
            called[function] = None
            runs_any = runs_any or function[2] == BUILTIN
        if is_taken:
            if not is_in_line or len(called) > MOST_CALLED:
                return _NOTHING
            used = (*called, *((*variable, OPERAND) for variable in sorted(worked_on)))
            kind, number, parts = _taken_by(instruction, operands, ours)
            used += parts if len(used) + len(parts) <= MOST_USED else ()
            return kind, number, instruction.place, runs_any or len(used) > MOST_USED, used[:MOST_USED]
        if instruction.operation == _ATTRIBUTE and not instruction.is_of_call():
            runs_any = True
        elif instruction.is_work():
            variables = _variables(operands)
            runs_any = runs_any or variables is None
            worked_on |= variables or frozenset()
        stack = text.stack_after(place)
        if stack.count(ours) != 1:
            return _NOTHING
    return _NOTHING


_Taken = tuple[int, int, tuple[Used, ...]]
_NOT: _Taken = (NOT_TAKEN, 0, ())


def _taken_by(taker: _Instruction, operands: _Stack, ours: _Value | None) -> _Taken:
    """How an instruction takes a result that is among its operands, and the variables that the result beside
    it is made of."""
    if taker.operation in _STORES:
        return _beside(operands[1], _INTO) if operands[0] is ours else _NOT
    if taker.operation == _CALL:
        return (TAKEN, 0, ()) if ours in operands[2:] else _NOT
    left = operands[0]
    if taker.is_in_place():
        return _NOT if left is ours or taker.argument in _NOT_COMPILED else _beside(left, _INTO)
    if left is None or not taker.is_operator():
        return _NOT
    if left is ours or left.by.operation in _CONSTANTS:
        return TAKEN, 0, ()
    is_made = left.by.is_operator()
    if taker.operation == _COMPARE:  # an ordinary array asks what is pending first, for its reverse
        return (BESIDE_RESULT, 0, ()) if is_made else _NOT
    return (BESIDE_RESULT, 0, _parts(left)) if is_made else _beside(left, 0)


def _parts(value: _Value | None) -> tuple[Used, ...]:
    """The variables that a result is made of, if nothing else has part in it."""
    is_plain = value is not None and value.is_plain and value.variables is not None
    return tuple((*v, PART) for v in sorted(value.variables or ())) if value is not None and is_plain else ()


def _beside(value: _Value | None, further: int) -> _Taken:
    variable = None if value is None else value.whole().variable()
    return _NOT if variable is None else (variable[0] + further, variable[1], ())


def _function(operands: _Stack, code: CodeType) -> Used | None:
    """What has to be ours for a call to be one of our functions, whose results may be left for later."""
    first, second = operands[:2]
    if first is None or second is None:
        return None
    if first.by is second.by and first.by.operation == _METHOD and first.of is not None:
        package = first.of.variable()
        known = _is_function(code.co_names[first.by.number()]) and package is not None
        return (*package, PACKAGE) if known and package is not None else None
    if first.by is not second.by:
        second = second if first.by.operation == _NULL else first if second.by.operation == _NULL else None
    variable = None if second is None else second.variable()
    if variable is None:
        return None
    is_builtin = variable[0] != BESIDE_LOCAL and code.co_names[variable[1]] in _BUILTINS
    return (*variable, BUILTIN if is_builtin else FUNCTION)


def _is_function(name: str) -> bool:
    """Whether the package has a universal function of this name with one result, or chooses by it."""
    found = vars(sys.modules["spartan_ng"]).get(name)
    return (isinstance(found, QuickFunction) and found.nout == 1) or (name == "where" and found is not None)


class _Text:
    """A code's instructions, and what they leave on the stack, of those that somebody asks for: a function
    may have a thousand lines, and few operators that are looked at."""

    def __init__(self, code: CodeType) -> None:
        self._units = code.co_code
        self.places = [p for p in range(0, len(self._units), 2) if self._units[p] not in _NO_INSTRUCTIONS]
        self._labels = _labels(self._units)
        self._code = code
        self._read: dict[int, _Instruction] = {}
        self._stacks: dict[int, _Stack] = {}

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: int) -> _Instruction:
        """An instruction by its number; what stands before its operation is part of it."""
        known = self._read.get(number)
        if known is None:
            place, units = self.places[number], self._units
            before = self.places[number - 1] if number else -2
            is_label = not self._labels.isdisjoint(range(before + 2, place + 2, 2))
            known = _Instruction(place, units[place], _argument(units, place), is_label)
            self._read[number] = known
        return known

    def at(self, place: int) -> int | None:
        """The number of the instruction at an offset of the code."""
        number = bisect_left(self.places, place)
        return number if number < len(self) and self.places[number] == place else None

    @cached_property
    def _lines(self) -> list[tuple[int, int, int | None]]:
        return [*self._code.co_lines()]

    def line(self, number: int) -> int | None:
        """The line of the text that an instruction is of."""
        return self._lines[bisect_right(self._lines, self.places[number], key=itemgetter(0)) - 1][2]

    def stack_after(self, here: int) -> _Stack:
        """The top of the stack after an instruction, as far as those before it tell that are known."""
        first = here
        while first > 0 and not self[first].is_label and self[first - 1].effect() is not None:
            if first in self._stacks:
                break
            first -= 1
        stack: _Stack = []
        for place in range(first, here + 1):
            known = self._stacks.get(place)
            if known is None:
                effect = self[place].effect()
                assert effect is not None, "what is known ends before"
                known = self._stacks[place] = _put(stack, self[place], effect)
            stack = known
        return stack


def _argument(units: bytes, place: int) -> int:
    """The argument of the instruction at an offset, with what it is extended by."""
    argument, shift = units[place + 1], 8
    while place > 0 and units[place - 2] == _EXTENDED:
        place -= 2
        argument |= units[place + 1] << shift
        shift += 8
    return argument


def _labels(units: bytes) -> frozenset[int]:
    """The offsets that are jumped to: jumps are few, and `dis` reads each by itself."""
    found = []
    for jump in _JUMPS.finditer(units[::2]):
        begin = end = 2 * jump.start()
        while begin > 0 and units[begin - 2] == _EXTENDED:
            begin -= 2
        found += [begin + label for label in findlabels(units[begin : end + 2])]  # type: ignore[arg-type]
    return frozenset(found)


def _operands(stack: _Stack, taken: int) -> _Stack:
    """The values on top of the stack, None for those that are not known."""
    known = stack[max(len(stack) - taken, 0) :]
    return [*[None] * (taken - len(known)), *known]


def _put(stack: _Stack, instruction: _Instruction, effect: tuple[int, int]) -> _Stack:
    """What an instruction leaves of the stack."""
    taken, given = effect
    if instruction.operation == _COPY:
        return [*stack, _operands(stack, instruction.argument)[0]]
    made = _Value(instruction, _operands(stack, taken))
    return [*stack[: max(len(stack) - taken, 0)], *[made] * given]


_text_of = lru_cache(maxsize=8)(_Text)
