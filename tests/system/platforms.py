"""Which names of the standard library a system has: by typeshed's stubs, which mypy brings."""

import ast
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import mypy

STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"
MODULES = ("os", "signal", "socket", "select", "mmap", "time", "fcntl", "resource", "pwd", "grp", "termios")
"""Those that have names which not every system has."""


@cache
def names(module: str, platform: str) -> frozenset[str]:
    """The public names of a module on a platform, as `sys.platform` calls it."""
    path = STUBS / f"{module}.pyi"
    tree = ast.parse((path if path.exists() else STUBS / module / "__init__.pyi").read_text())
    return frozenset(_bound(tree.body, platform))


def lacking(module: str, platform: str) -> frozenset[str]:
    """What Linux has of a module, and the platform has not."""
    return names(module, "linux") - names(module, platform)


def _bound(body: list[ast.stmt], platform: str):
    for line in body:
        match line:
            case ast.If():
                yield from _bound(line.body if _holds(line.test, platform) else line.orelse, platform)
            case ast.FunctionDef() | ast.ClassDef():
                yield line.name
            case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                yield name
            case ast.ImportFrom(module=str(source), names=[ast.alias("*")]):
                yield from names(source, platform)
            case ast.ImportFrom(names=given):
                yield from (alias.name for alias in given if alias.asname == alias.name)  # told on


def _holds(test: ast.expr, platform: str) -> bool:
    known = SimpleNamespace(platform=platform, version_info=sys.version_info)
    return bool(eval(ast.unparse(test), {"sys": known, "TYPE_CHECKING": True}))
