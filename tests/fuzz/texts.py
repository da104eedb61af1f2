"""Programs as source text: expressions of operators and functions, in all that Python puts them into.

What the interpreter does between an operator and the one that takes its result decides what is worked on
together (`spartan_ng/api/core/ahead.py`); so the texts have functions, generators, comprehensions, classes
and lines of all shapes, names for the same memory, operands of other types and other people's classes, and
errors on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from textwrap import indent

ARRAYS = ("a", "b", "c", "a", "b", "v", "w")
"""Of one type and shape; `v` and `w` are parts of `a` and `b`, or these."""
BESIDE = ("row", "column", "mask", "whole", "short", "single", "h.u", "d['u']", "here['a']", "listed[0]")
NUMBERS = (
    "2",
    "0.5",
    "-1",
    "3.0",
    "k",
    "s",
    "t",
    "number",
    "h.n",
    "d['n']",
    "np.pi",
    "1j",
    "True",
    "len(a) * 0.5",
    "t4",
)
FOREIGN = ("o.attribute", "(o + 1)", "(-o)", "o[1]", "(o < 2)", "(3 - o)", "a[o]", "len(o)")
"""What runs code of its own, and gives numbers."""
OPERATORS = ("+", "-", "*", "+", "-", "*", "/", "//", "%", "**", "<", ">=", "==", "!=", "&", "|", "^", "<<")
IN_PLACE = ("+=", "-=", "*=", "/=", "//=", "**=", "&=", "=")
OF_ONE = (
    "exp",
    "sqrt",
    "abs",
    "negative",
    "square",
    "sin",
    "log",
    "isnan",
    "floor",
    "sign",
    "logical_not",
    "tanh",
)
OF_TWO = ("add", "multiply", "maximum", "minimum", "hypot", "arctan2", "power", "less", "logical_and", "fmod")
KEYS = ("...", ":", "1:", ":-1", "::2", "::-1", "None", "0", "-1", "[0, 2]", "mask", "o:", "(..., 0)", "2:9")
ERRORS = ("missing", "d['none']", "a[10**9]", "(1 // 0)", "h.none", "np.ones(3)", "a[:3]", "'text'")


class Text:
    """A random program's statements, one after the other."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0
        self.made = ["a"]

    def statements(self, n: int) -> list[str]:
        """So many statements."""
        return [self._statement(2) for _ in range(n)]

    def _one(self, *of: str) -> str:
        return self.random.choice(of)

    def _is(self, one_of: int) -> bool:
        return self.random.randrange(one_of) == 0

    def _new(self) -> str:
        self.names += 1
        name = f"t{self.names}"
        self.made.append(name)
        return name

    def _name(self) -> str:
        """An array, or what was made before."""
        return self._one(*ARRAYS, self._one(*self.made), self._one(*BESIDE))

    def expression(self, depth: int = 3) -> str:
        """An expression, mostly of arrays."""
        if depth == 0 or self._is(6):
            name = self._name()
            return f"{name}[{self._one('...', ':', '::1')}]" if self._is(9) else name
        how = self.random.randrange(26)
        left = self.expression(depth - 1)
        if how < 3:
            return f"{self._function(OF_ONE)}({left})"
        if how < 5:
            return f"{self._function(OF_TWO)}({left}, {self._other(depth)})"
        if how == 5:
            return (
                f"{self._one('np.where', 'where')}({left} > {self._other(1)}, {left}, {self._other(depth)})"
            )
        if how == 6:
            return f"{self._one('-', '+', '~', '-')}({left})"
        if how == 7:
            return f"({left})**{self._one('2', '-1', '0.5', '3', '2.0', 's')}"
        if how == 8:
            return self._shape(left, depth)
        other = self._other(depth)
        if self._is(3):
            left, other = other, left
        return f"({left}{self._one(' ', ' ', ' ', chr(10) + '        ')}{self._one(*OPERATORS)} {other})"

    def _function(self, of: tuple[str, ...]) -> str:
        name = self._one(*of)
        return self._one(f"np.{name}", f"np.{name}", name, f"h.np.{name}", f"package.{name}")

    def _other(self, depth: int) -> str:
        """Another operand."""
        how = self.random.randrange(14)
        if how < 4:
            return self._one(*NUMBERS)
        if how == 4 and self._is(2):
            return self._one(*FOREIGN)
        if how == 5 and self._is(8):
            return self._one(*ERRORS)
        return self.expression(depth - 1)

    def _shape(self, left: str, depth: int) -> str:
        """Expressions that are no operators between operators."""
        right = self.expression(depth - 1)
        name = self._new()
        self.made.pop()
        if ":=" not in left + right and self._is(4):
            return self._one(
                f"[x * 2 + {self._name()} for x in ({left}, {right})][1]",
                f"next(x - {self._name()} for x in [{left}])",
            )
        return self._one(
            f"({left} if k > 1 else {right})",
            f"(k and {left})",
            f"({name} := {left}) + {name}",
            f"(lambda x, y=a: x * 2 + y)({left})",
            f"identity({left})",
            f"np.add(*[{left}, {right}])",
            f"eval('x * 2 + y', {{'x': {left}, 'y': {right}}})",
            f"({left}).copy()",
            f"({left}).T.T",
            f"({left}, {right})[0]",
            f"{{'x': {left}}}['x']",
            f"recur({left}, 2)",
            f"(np.sqrt if k else np.exp)({left})",
            f"np.add({left}, {right}, dtype=None)",
            f"reduce(np.multiply, [{left}, {right}])",
        )

    def _statement(self, depth: int) -> str:
        simple = (self._assign, self._assign, self._assign, self._write, self._write, self._write, self._call)
        nested = (self._loop, self._try, self._with, self._define, self._generate, self._branch, self._class)
        make: Callable[[int], str] = self.random.choice(simple + (nested if depth else ()))
        return make(depth - 1)

    def _block(self, depth: int) -> str:
        known = list(self.made)
        text = "\n".join(self._statement(depth) for _ in range(self.random.randint(1, 2)))
        self.made = known  # who knows whether it ran
        return indent(text, "    ")

    def _assign(self, depth: int) -> str:
        expression = self.expression()
        if self._is(8):
            left, right = self._new(), self._new()
            return f"{left}, {right} = {expression}, {self.expression()}"
        if self._is(8):
            return f"h.u = {self._one(*ARRAYS)}"
        if self._is(12):
            return f"v = {self._one('a', 'b')}[{self._one('...', ':', '::-1')}]"
        return f"{self._new()} = {expression}"

    def _write(self, depth: int) -> str:
        target, key = self._one(*ARRAYS, *self.made), self._one(*KEYS)
        to = target if self._is(3) else f"{target}[{key}]"
        how = self._one(*IN_PLACE)
        if to == target and how == "=":
            how = "+="
        if how == "**=":  # an error in the midst of integers leaves anything
            return f"{to} **= {self._one('2', '3')}"
        if to == target or key in ("...", ":", "::-1"):
            return f"{to} {how} {self.expression()}"
        key = "" if key in ("mask", "[0, 2]", "None") else f"[{key}]"
        value = f"({self.expression(2)}){key}" if self._is(2) else f"a{key} {self._one(*OPERATORS)} b{key}"
        return f"{to} {how} {value}"

    def _call(self, depth: int) -> str:
        out, left, right = self._one(*ARRAYS), self.expression(2), self.expression(2)
        return self._one(
            f"np.add({left}, {right}, out={out})",
            f"np.multiply({left}, {right}, {out})",
            f"np.copyto({out}, {left})",
            f"{out}.fill(s * 2)",
            f"{out}.flat[3] = 7",
            f"lent[1] = {self._one('2', '5')}",
            f"identity({left})",
            f"assert ({left}).shape",
            f"print(f'{{{self._one(*ARRAYS)} * 2}}'[:0], end='')",
            f"exec('x = {self._one(*ARRAYS)} * 2 + {self._one(*ARRAYS)}', {{**globals(), **locals()}})",
        )

    def _loop(self, depth: int) -> str:
        if self._is(3):
            return (
                f"for x in ({self.expression(2)}, {self.expression(1)}):\n{self._block(depth)}\n    x * 2 + a"
            )
        return f"for i in range(2):\n{self._block(depth)}"

    def _try(self, depth: int) -> str:
        name, error = self._new(), self._one(*ERRORS, "a", "o.attribute")
        first, second = self.expression(2), self.expression(2)
        middle = f"    {name} = {first} {self._one('+', '*', '-')} {error}"
        rest = f"except Exception:\n    {name} = {second}"
        last = f"\nfinally:\n{self._block(depth)}" if self._is(3) else ""
        return f"try:\n{self._block(depth)}\n{middle}\n{rest}{last}"

    def _with(self, depth: int) -> str:
        what = self._one("ignore", "warn", "raise", "call")
        kind = self._one("all", "divide", "invalid", "over")
        return f"with np.errstate({kind}={what!r}, call=called.append_kind):\n{self._block(depth)}"

    def _define(self, depth: int) -> str:
        self.names += 1
        function = f"f{self.names}"
        head = self._one(
            f"def {function}(x, y=a):", f"def {function}(x, *y, c=b):", f"def {function}(x, a=b):"
        )
        body = f"    nonlocal_ = x\n    return {self.expression(2)} + x * {self._one('2', 'a', 's')}"
        return f"{head}\n{body}\n{self._new()} = {function}({self.expression(2)})"

    def _generate(self, depth: int) -> str:
        self.names += 1
        function = f"g{self.names}"
        body = f"    yield {self.expression(2)}\n    x = yield {self.expression(1)}\n    yield x * 2 + a"
        call = self._one(f"list({function}())[0]", f"next({function}()) + a * 2", f"[*{function}()][1]")
        if self._is(3):
            body = f"    return {self.expression(2)}"
            return f"async def {function}():\n{body}\n{self._new()} = awaited({function}())"
        body = body.replace("yield x * 2 + a", "yield a * 2 + b")
        return f"def {function}():\n{body}\n{self._new()} = {call}"

    def _branch(self, depth: int) -> str:
        test = self._one("k > 1", "k < 1", f"({self.expression(1)} == a).any()", "k < s < 10**9")
        return f"if {test}:\n{self._block(depth)}\nelse:\n{self._block(depth)}"

    def _class(self, depth: int) -> str:
        self.names += 1
        name = f"C{self.names}"
        body = f"    made = {self._one('2', 'k')}\n    x = given['a'] * 2 + given['b']"
        method = f"    def method(self, x):\n        return x * self.made + self.x * {self.expression(1)}"
        return f"class {name}:\n{body}\n{method}\n{self._new()} = {name}().method({self.expression(1)})"
