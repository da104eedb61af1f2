"""Generated kernels as far as LLVM's text, without numba: the text of a module, of which every type is known.

The sources are a small language, a part of Python's: functions of numbers and arrays, loops over ranges,
arithmetic, and calls of what `intrinsics` and `vectors` have. Types go from the arguments on: there is
nothing to infer, and nothing to import but LLVM, so that the first kernel of a process is there in a third of
the time. What is beyond that (`BeyondError`) is numba's, whose rules this follows; so are the loops that are
written by hand.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from spartan_ng.kernels.compiled.instructions import (
    LOOPS,
    RANGES,
    TYPES,
    BeyondError,
    Contiguous,
    Instructions,
    Value,
    literal,
    type_of,
)

Found = Value | Contiguous
_OURS = "spartan_ng.kernels.compiled."
_KNOWN = ("intrinsics", "vectors")
_CODES = {
    **{f"int{8 * n}": f"i{n}" for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}": f"u{n}" for n in (1, 2, 4, 8)},
    "float32": "f4",
    "float64": "f8",
    "bool_": "b1",
}
"""Codes of dtypes by NumPy's names."""
_NUMBERS = {"inf": math.inf, "nan": math.nan}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_SIGNS: dict[type[ast.AST], str] = {
    **dict(zip(_OPERATORS, ("+", "-", "*", "/", "&", "|", "^", "<<", ">>"), strict=True)),
    **dict(zip(_COMPARISONS, ("<", "<=", ">", ">=", "==", "!="), strict=True)),
}


def lower_to_llvm(name: str, source: str) -> str:
    """The text of LLVM's module with the function `name`, which makes a table of an address and calls the
    source's `kernel`; `BeyondError` where numba has to make it."""
    module = _Module(ast.parse(source))
    table = Contiguous("i8", Value("p", "%place"), (Value("i8", "%lines"), Value("i8", "%columns")))
    called, result = module.function("kernel", [table])
    if result:
        raise BeyondError("a kernel with a result")
    entry = [
        f"define i32 @{name}(ptr %result, ptr %error, i64 %address, i64 %lines, i64 %columns) {{",
        "  %place = inttoptr i64 %address to ptr",
        f"  call void @{called}({_given([table])})",
        "  ret i32 0",
        "}",
    ]
    return "\n".join([*module.declared.values(), *module.texts, *entry, *LOOPS, ""])


def _parts(found: Found) -> list[Value]:
    """The values that stand for a value or an array."""
    return [found] if isinstance(found, Value) else [found.place, *found.sizes]


def _made_of(kind: Found, parts: Sequence[Value]) -> Found:
    """A value or an array, as `kind` is one, of what stands for it."""
    return parts[0] if isinstance(kind, Value) else Contiguous(kind.code, parts[0], tuple(parts[1:]))


def _given(arguments: Sequence[Found]) -> str:
    """Arguments in a call."""
    return ", ".join(f"{type_of(p.code)} {p.text}" for p in chain.from_iterable(map(_parts, arguments)))


@cache
def _vectors() -> ast.Module:
    return ast.parse((Path(__file__).parent / "vectors.py").read_text())


class _Module:
    """A source's functions, those that are called, each once for the types of its arguments."""

    def __init__(self, tree: ast.Module, above: _Module | None = None) -> None:
        self.declared: dict[str, str] = {} if above is None else above.declared
        self.texts: list[str] = [] if above is None else above.texts
        self._is_ours = above is not None
        self._dtypes: dict[str, str] = {}
        self._numbers: dict[str, float] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._others: dict[str, _Module] = {}
        self._made: dict[tuple[Any, ...], tuple[str, str]] = {}
        for statement in tree.body:
            self._take(statement)

    def _take(self, statement: ast.stmt) -> None:
        """Note what a statement of the module defines."""
        match statement:
            case ast.FunctionDef():
                self._functions[statement.name] = statement
            case ast.ImportFrom(module=str(module)) if module.removeprefix(_OURS) in _KNOWN:
                if module == f"{_OURS}vectors":
                    vectors = _Module(_vectors(), self)
                    self._others |= {alias.name: vectors for alias in statement.names}
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=True):
                    self._define(target, value)
            case ast.Assign(targets=[target]):
                self._define(target, statement.value)
            case ast.Expr(value=ast.Constant()) | ast.Import(names=[ast.alias(name="numpy", asname="np")]):
                pass
            case ast.ImportFrom(module="typing" | "__future__") if self._is_ours:
                pass  # of a module that is written by hand, and stands beside this one
            case _:
                raise BeyondError(ast.unparse(statement))

    def _define(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id=name), ast.Attribute(value=ast.Name(id="np"), attr=known) if known in _CODES:
                self._dtypes[name] = _CODES[known]
            case ast.Name(id=name), ast.Attribute(value=ast.Name(id="np"), attr=known) if known in _NUMBERS:
                self._numbers[name] = _NUMBERS[known]
            case ast.Name(id=name), ast.Constant(value=int() | float() as number):
                self._numbers[name] = number
            case (
                ast.Name(id=name),
                ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))]),
            ):
                self._numbers[name] = float(text)
            case _:
                raise BeyondError(ast.unparse(value))

    def dtype(self, name: str) -> str | None:
        """The code of a dtype by the name it has here."""
        return self._dtypes.get(name)

    def number(self, name: str) -> float | None:
        """A constant by its name."""
        return self._numbers.get(name)

    def function(self, name: str, arguments: Sequence[Found]) -> tuple[str, str]:
        """The name of a function for such arguments, and the code of its result, which may be empty."""
        if name in self._others:
            return self._others[name].function(name, arguments)
        definition = self._functions.get(name)
        if definition is None:
            raise BeyondError(f"a call of {name}")
        key = (name, *((a.code, len(_parts(a))) for a in arguments))
        if key not in self._made:
            made = _Function(self, definition, arguments)
            called = f"{name}_{len(self.texts)}"
            kind = type_of(made.result) if made.result else "void"
            head = f"define internal {kind} @{called}({_given(made.arguments)}) alwaysinline {{"
            self.texts.append("\n".join([head, *made.text(), "}"]))
            self._made[key] = called, made.result
        return self._made[key]


class _Function:
    """One function's instructions, statement by statement."""

    def __init__(self, module: _Module, definition: ast.FunctionDef, given: Sequence[Found]) -> None:
        self._module = module
        self._do = Instructions(module.declared)
        self._variables: dict[str, tuple[Found, list[Value]]] = {}
        """By name: what stands for its type, and where its values are kept."""
        self._loops: list[str] = []
        """The blocks that `break` goes on in."""
        self.result = ""
        names = [a.arg for a in definition.args.args]
        if len(names) != len(given):
            raise BeyondError(f"arguments of {definition.name}")
        self.arguments: list[Found] = []
        for name, argument in zip(names, given, strict=True):
            parts = [Value(p.code, f"%{name}.{k}") for k, p in enumerate(_parts(argument))]
            own = _made_of(argument, parts)
            self.arguments.append(own)
            self._set(name, own)
        self._run(definition.body)
        self._do.end("ret void" if not self.result else "unreachable")

    def text(self) -> list[str]:
        """The body."""
        return list(self._do.text())

    # --- variables ------------------------------------------------------------------------------------

    def _set(self, name: str, found: Found) -> None:
        """Give a variable a value, of the type that its first one had."""
        parts = _parts(found)
        if name not in self._variables:
            self._variables[name] = found, [self._do.reserved(type_of(p.code)) for p in parts]
        kind, places = self._variables[name]
        if (type(kind), kind.code, len(places)) != (type(found), found.code, len(parts)):
            raise BeyondError(f"another type of {name}")
        for place, part in zip(places, parts, strict=True):
            self._do.put(place, part)

    def _get(self, name: str) -> Found:
        if name not in self._variables:
            number = self._module.number(name)
            if number is None:
                raise BeyondError(f"the name {name}")
            return literal(number)
        kind, places = self._variables[name]
        parts = [self._do.get(p, k.code) for p, k in zip(places, _parts(kind), strict=True)]
        return _made_of(kind, parts)

    # --- statements -----------------------------------------------------------------------------------

    def _run(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._do.is_open:
                self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        do = self._do
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                every = [self._found(v) for v in values]
                for target, found in zip(targets, every, strict=True):
                    self._assign(target, found)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self._found(value))
            case ast.AugAssign(target=target, op=op, value=value):
                after = self._operation(op, self._value(target), self._value(value))
                self._assign(target, after)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id=kind), args=bounds)):
                with do.apart(kind == "apart") if kind in RANGES else _beyond(statement):
                    self._for(name, [self._integer(b) for b in bounds], statement.body, kind)
            case ast.While(test=test, body=body, orelse=[]):
                head, inside, behind = do.block(), do.block(), do.block()
                do.begin(head)
                do.fork(self._condition(test), inside, behind)
                self._turn(inside, behind, lambda: self._run(body))
                do.branch(head)
                do.begin(behind)
            case ast.If(test=test, body=body, orelse=orelse):
                then, other, behind = do.block(), do.block(), do.block()
                do.fork(self._condition(test), then, other)
                for block, branch in ((then, body), (other, orelse)):
                    do.begin(block)
                    self._run(branch)
                    do.branch(behind)
                do.begin(behind)
            case ast.Break():
                do.branch(self._loops[-1])
            case ast.Return(value=ast.expr() as value):
                self._return(self._value(value))
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=arguments)):
                self._call(name, arguments)
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                _beyond(statement)

    def _return(self, value: Value) -> None:
        if self.result not in ("", value.code):
            raise BeyondError("results of several types")
        self.result = value.code
        self._do.end(f"ret {type_of(value.code)} {value.text}")

    def _assign(self, target: ast.expr, found: Found) -> None:
        match target:
            case ast.Name(id=name):
                self._set(name, found)
            case ast.Subscript(value=array, slice=ast.Slice(lower=None, upper=None, step=None)):
                filled = self._array(array)
                if len(filled.sizes) != 1 or isinstance(found, Contiguous):
                    _beyond(target)
                value = self._do.cast(found, filled.code)
                self._count(
                    [literal(0), filled.sizes[0], literal(1)],
                    lambda i: self._do.store(self._do.element(filled, i), value, filled.code),
                )
            case ast.Subscript(value=array, slice=index) if isinstance(found, Value):
                into = self._array(array)
                self._do.store(self._element(into, index), found, into.code)
            case _:
                _beyond(target)

    def _for(self, name: str, bounds: list[Value], body: Sequence[ast.stmt], kind: str) -> None:
        """A loop over a range; its variable is set before each turn, and its own count is another."""
        low, high = (literal(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) > 2 else literal(1)
        if not isinstance(step.literal, int) or step.literal < 1:
            raise BeyondError("steps down, or of any length")

        def turn(i: Value) -> None:
            self._set(name, i)
            self._run(body)

        self._count([low, high, step], turn, kind)

    def _count(self, bounds: list[Value], turn: Callable[[Value], None], kind: str = "range") -> None:
        do, (low, high, step) = self._do, bounds
        counter = do.reserved("i64")
        do.put(counter, low)
        head, inside, behind = do.block(), do.block(), do.block()
        do.begin(head)
        do.fork(do.compared("<", do.get(counter, "i8"), high), inside, behind)
        self._turn(inside, behind, lambda: turn(do.get(counter, "i8")))
        do.put(counter, do.new("i8", f"add nsw i64 {do.get(counter, 'i8').text}, {step.text}"))
        do.turn_back(head, kind)
        do.begin(behind)

    def _turn(self, inside: str, behind: str, turn: Callable[[], None]) -> None:
        """A loop's body, in which `break` goes on behind it."""
        self._do.begin(inside)
        self._loops.append(behind)
        turn()
        self._loops.pop()

    # --- expressions ----------------------------------------------------------------------------------

    def _found(self, node: ast.expr) -> Found:
        """What an expression comes to."""
        match node:
            case ast.Name(id=name):
                return self._get(name)
            case ast.Constant(value=bool() | int() | float() as number):
                return literal(number)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(op, self._value(left), self._value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self._value(operand)
                return self._do.negative(value) if value.literal is None else literal(-value.literal)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._do.inverted(self._value(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _SIGNS:
                return self._do.compared(_SIGNS[type(op)], self._value(left), self._value(right))
            case ast.Subscript(
                value=ast.Attribute(value=array, attr="shape"), slice=ast.Constant(value=int(k))
            ):
                return self._array(array).sizes[k]
            case ast.Subscript(value=array, slice=index):
                return self._part(self._array(array), index)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                found = self._call(name, arguments)
                return _beyond(node) if found is None else found
            case _:
                return _beyond(node)

    def _value(self, node: ast.expr) -> Value:
        found = self._found(node)
        return found if isinstance(found, Value) else _beyond(node)

    def _integer(self, node: ast.expr) -> Value:
        value = self._value(node)
        return self._do.cast(value, "i8") if value.code[0] in "iu" else _beyond(node)

    def _array(self, node: ast.expr) -> Contiguous:
        found = self._found(node)
        return found if isinstance(found, Contiguous) else _beyond(node)

    def _condition(self, node: ast.expr) -> Value:
        value = self._value(node)
        return value if value.code == "b1" else _beyond(node)

    def _operation(self, op: ast.operator, a: Value, b: Value) -> Value:
        if isinstance(op, ast.FloorDiv):
            return self._do.divided_down(a, b)
        if type(op) not in _SIGNS:
            raise BeyondError(type(op).__name__)
        sign = _SIGNS[type(op)]
        if sign == "*" and type(a.literal) is int and type(b.literal) is int:
            return literal(a.literal * b.literal)
        return self._do.calculated(sign, a, b)

    def _element(self, array: Contiguous, index: ast.expr) -> Value:
        """The place of one element."""
        if not isinstance(index, ast.Tuple):
            if len(array.sizes) != 1:
                _beyond(index)
            return self._do.element(array, self._integer(index))
        if len(index.elts) != len(array.sizes) or len(array.sizes) != 2:
            _beyond(index)
        line, column = (self._integer(i) for i in index.elts)
        if isinstance(column.literal, int) and column.literal < 0:
            _beyond(index)
        first = self._do.calculated("*", line, array.sizes[1])
        return self._do.element(array, self._do.calculated("+", first, column))

    def _part(self, array: Contiguous, index: ast.expr) -> Found:
        """An element, a line of a table, or some neighbours in a line."""
        do = self._do
        if len(array.sizes) == 2:
            match index:
                case ast.Tuple(
                    elts=[
                        line,
                        ast.Slice(lower=ast.Constant(value=int(lo)), upper=ast.Constant(value=int(hi))),
                    ]
                ):
                    size = literal(hi - lo)
                case ast.Tuple():
                    return do.load(self._element(array, index), array.code)
                case _:
                    line, lo, size = index, 0, array.sizes[1]
            first = do.calculated("*", self._integer(line), array.sizes[1])
            return Contiguous(array.code, do.element(array, do.calculated("+", first, literal(lo))), (size,))
        return do.load(self._element(array, index), array.code)

    def _call(self, name: str, nodes: list[ast.expr]) -> Found | None:
        """What a call comes to; None where that is nothing."""
        do = self._do
        if name in ("array_at", "load"):
            return self._in_memory(name, nodes)
        code = self._module.dtype(name)
        arguments = [self._found(n) for n in nodes]
        if code is not None:
            (number,) = arguments
            return do.cast(number, code) if isinstance(number, Value) else _beyond(nodes[0])
        values = [a for a in arguments if isinstance(a, Value)]
        if len(values) == len(arguments):
            if name == "prefetch" and len(values) == 1:
                do.prefetch(values[0])
                return None
            found = do.known(name, values)
            if found is not None:
                return found
        called, result = self._module.function(name, arguments)
        if result:
            return do.new(result, f"call {type_of(result)} @{called}({_given(arguments)})")
        do.say(f"call void @{called}({_given(arguments)})")
        return None

    def _in_memory(self, name: str, nodes: list[ast.expr]) -> Found:
        """`array_at` and `load`, whose last argument is a dtype."""
        code = self._module.dtype(nodes[-1].id) if isinstance(nodes[-1], ast.Name) else None
        if code not in TYPES:
            _beyond(nodes[-1])
        place = self._do.place(self._value(nodes[0]))
        if name == "load":
            return self._do.load(place, code)
        sizes = nodes[1].elts if isinstance(nodes[1], ast.Tuple) else _beyond(nodes[1])
        return Contiguous(code, place, tuple(self._integer(s) for s in sizes))


def _beyond(node: ast.AST) -> NoReturn:
    raise BeyondError(ast.unparse(node))
