"""Where a fault can be put into a module: comparisons, signs of terms and numbers, and/or, a dropped `not`.

These change what the code decides. Constants that are one off, and other operators for `*`, `//`, `%`, shifts
and sets of bits, are asked for by name: most constants are tuned (a share, a limit) or say `strict=`, where
one off is as right, and what survives says nothing about the tests.

All of a module's are there at once, each behind a switch: `a < b` becomes `(a <= b if at(7) else a < b)`.
So the code is written once, a run picks its fault by a number, and the switch tells who comes by.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SWITCH = "_mutant_at"
"""What the switch is called in the code; see `switch`."""
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SIGNS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_UNTOUCHED = frozenset({"annotation", "returns", "decorator_list", "bases"})
"""Fields of nodes that are no part of what runs."""
_COMPILED = frozenset({"compiled", "intrinsic", "overload", "njit"})
"""Decorators of functions that numba compiles: a switch is nothing to it."""


@dataclass(frozen=True, slots=True)
class Site:
    """One fault: the text from (line, column) to (end_line, end_column) of a file becomes `after`.

    Columns count bytes, as `ast` does.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """What people are shown."""
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"


def sites(path: str, text: str, numbers: bool = False) -> list[Site]:
    """All faults that can be put into a module; with `numbers`, constants and other operators, too."""
    return [
        Site(path, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, _shown(node), after)
        for node in _running(ast.parse(text))
        if node.end_lineno is not None and node.end_col_offset is not None
        for after in (*_faults(node), *(_numbers(node) if numbers else ()))
    ]


def drawn(root: Path, paths: Sequence[str], count: int, seed: int, numbers: bool = False) -> list[Site]:
    """`count` faults of the files, each as likely as any other; no two of them at one place.

    A draw of fewer with the same seed is the beginning of a draw of more.
    """
    every = [s for path in paths for s in sites(path, (root / path).read_text(), numbers)]
    random.Random(seed).shuffle(every)
    chosen: list[Site] = []
    for site in every:
        if len(chosen) == count:
            break
        if not any(_overlap(site, other) for other in chosen):
            chosen.append(site)
    return chosen


def switched(text: str, chosen: Sequence[tuple[int, Site]]) -> str:
    """A module's text with numbered faults, each behind its switch."""
    lines = text.encode().splitlines(keepends=True)
    for number, site in sorted(chosen, key=lambda c: (c[1].line, c[1].column), reverse=True):
        first, last = site.line - 1, site.end_line - 1
        head, tail = lines[first][: site.column], lines[last][site.end_column :]
        inside = [*lines[first:last], lines[last][: site.end_column]]
        inside[0] = inside[0][site.column :] if first != last else lines[first][site.column : site.end_column]
        before = b"".join(inside)
        new = f"(({site.after}) if {SWITCH}({number}) else (".encode() + before + b"))"
        lines[first : last + 1] = (head + new + tail).splitlines(keepends=True)
    return _with_import(b"".join(lines).decode())


def _with_import(text: str) -> str:
    """The text with the switch's import, after the docstring and what must come first."""
    body = ast.parse(text).body
    row = 0
    for statement in body:
        is_doc = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (is_doc or is_future):
            break
        row = statement.end_lineno or 0
    lines = text.splitlines(keepends=True)
    lines.insert(row, f"from tests.mutants.switch import at as {SWITCH}\n")
    return "".join(lines)


def _running(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a module that its interpreter evaluates, but for texts with holes and patterns."""
    for field, value in ast.iter_fields(tree):
        if field in _UNTOUCHED:
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.JoinedStr, ast.pattern)):
                continue
            if isinstance(node, ast.FunctionDef) and _is_compiled(node):
                continue
            if isinstance(node, ast.expr):
                yield node
            yield from _running(node)


def _is_compiled(node: ast.FunctionDef) -> bool:
    names = {n.id for d in node.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
    return bool(names & _COMPILED)


def _faults(node: ast.expr) -> Iterator[str]:
    """What an expression may become."""
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARED:
            yield ast.unparse(ast.Compare(left, [_COMPARED[type(op)]()], [right]))
        case ast.BinOp(left, op, right) if type(op) in _SIGNS and not _is_text(left):
            yield ast.unparse(ast.BinOp(left, _SIGNS[type(op)](), right))
        case ast.BoolOp(op, values):
            yield ast.unparse(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield ast.unparse(operand)


def _numbers(node: ast.expr) -> Iterator[str]:
    """What a number or an operator may become that decides nothing by itself."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS and not _is_text(left):
            yield ast.unparse(ast.BinOp(left, _OPERATORS[type(op)](), right))
        case ast.Constant(bool() as value):
            yield repr(not value)
        case ast.Constant(int() as value):
            yield repr(value + 1)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _shown(node: ast.expr) -> str:
    return ast.unparse(node)


def _overlap(a: Site, b: Site) -> bool:
    if a.path != b.path:
        return False
    starts, ends = (a.line, a.column), (a.end_line, a.end_column)
    return starts < (b.end_line, b.end_column) and (b.line, b.column) < ends
