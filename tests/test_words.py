"""A word is one thing: a name of a class or a function stands in one module, or says here why in several."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import numpy as np

import spartan_ng

ROOT = Path(spartan_ng.__file__).parents[1]
ROOMS = ("spartan_ng", "master", "worker", "apps")
LONGEST_FILE = 450
LONGEST_FUNCTION = 70
RESULT = "what an app finds, under its field's own word; no two apps are one program's"
PAPER = "the paper's word, in the room that follows the paper"
REPEATED = {
    "Factors": RESULT,
    "Fit": f"{RESULT}; in fusion, how a producer fits into a pass",
    "Estimate": f"{RESULT}; in fusion, what is known of a node before it runs",
    "Solution": f"{RESULT}; in the tiling, one option for each variable",
    "Stage": f"{PAPER}: a fused operator of its plan, and the step of a plan that it becomes",
    "Status": f"{PAPER}: whether an operator may grow; and the message that says who is there",
}
"""Names that stand in several modules, with the reason; none is added without one."""


BUILDER = "what programs call, and the builder of its nodes"
COMMAND = "a command, and what does its work"
EVALUATOR = "whoever evaluates: NumPy at first, then the session, and what asks either"
KIND = "what each kind of engine has, and what asks the kind of an address"
LIBRARY = "the two libraries that arrays are handed to and taken from"
TABLE = "a text of each function, a table for each language"
SOLVER = "one of several that do the same, and are chosen between"
SCRIPT = "a script, by another launcher in each"
REPEATED_FUNCTIONS = {
    "attend": COMMAND,
    "candidates": "what is chosen among: plans of a fusion, tilings of an array",
    "choose": "one of two elements by a condition, in a kernel's text and of blocks; a tiling for each array",
    "compress_columns": "what programs call, and what compresses a matrix",
    "connect": KIND,
    "contract": "a node, and the sum that it stands for",
    "drain": "what is left, until nothing is: an array's blocks, and a worker's tasks",
    "evaluate": EVALUATOR,
    "explain": "what programs call, what plans for it, and what puts a plan into words",
    "expression": TABLE,
    "fold": BUILDER,
    "given": LIBRARY,
    "in_process": EVALUATOR,
    "is_dear": EVALUATOR,
    "is_made": EVALUATOR,
    "is_kept": "a step's values by an evaluation, and a kernel's machine code by the cache",
    "is_sparse_product": "the same of a node and of a stage",
    "join_update": BUILDER,
    "keygen": COMMAND,
    "local": f"{KIND}; in kernels, LLVM's word for memory of a call",
    "main": "where a process begins",
    "matrices": "a node of matrices, and operands as matrices",
    "multiply": "the product of a matrix in one format or another with a dense one",
    "obstacle": TABLE,
    "over": "an array over a source, and an engine over a client",
    "product": SOLVER,
    "recurrence": BUILDER,
    "revoke": COMMAND,
    "run": SCRIPT,
    "scan": BUILDER,
    "search": "elements in a sorted line; the best assignment of a fusion",
    "shares_files": EVALUATOR,
    "solve": SOLVER,
    "taken": LIBRARY,
    "tile_as": BUILDER,
    "to_zarr": "xarray's and ours",
    "uploaded": "a file that goes to a URL, and a tile that has come with a task",
    "work_ahead": EVALUATOR,
    "worker_bytes": EVALUATOR,
}
"""The same of functions."""
NUMPYS = {name for space in (np, np.linalg, np.random, np.fft, np.ndarray) for name in dir(space)}
OF_NUMPYS_NAMES = ("spartan_ng/api/", "spartan_ng/graph/build.py")
"""Where functions are called as NumPy's, whatever else has that name."""
TEXTS = "spartan_ng/kernels/compiled/loops/"
"""Functions that are put into kernels' texts, each file for itself."""


def names(kind: type[ast.ClassDef | ast.FunctionDef]) -> dict[str, set[str]]:
    """The classes or functions of all modules that others may import, and where they stand."""
    found = defaultdict(set)
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            if file.resolve() == file:  # rooms are linked into the package
                for node in ast.parse(file.read_text()).body:
                    if isinstance(node, kind):
                        found[node.name].add(file.relative_to(ROOT).as_posix())
    return found


def several(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Those that stand in several modules."""
    return {name: files for name, files in found.items() if len(files) > 1}


def test_a_file_is_one_idea() -> None:
    """Of no more lines than can be read at a sitting; `spartan_ng` shows the other rooms by links."""
    paths = [p for room in ROOMS for p in (ROOT / room).rglob("*.[pch]*") if p.suffix in (".py", ".c", ".h")]
    assert len(paths) > 500
    lines = {str(p.relative_to(ROOT)): p.read_text().count("\n") for p in paths}
    assert not {path: n for path, n in lines.items() if n > LONGEST_FILE}


def test_a_function_is_one_page() -> None:
    paths = [p for room in ROOMS for p in (ROOT / room).rglob("*.py")]
    found = [
        (str(p.relative_to(ROOT)), node.name, (node.end_lineno or 0) - node.lineno + 1)
        for p in paths
        for node in ast.walk(ast.parse(p.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(found) > 5000
    assert [one for one in found if one[-1] > LONGEST_FUNCTION] == []


def test_a_class_name_stands_for_one_thing() -> None:
    repeated = several(names(ast.ClassDef))
    assert {n: f for n, f in repeated.items() if n not in REPEATED} == {}, (
        "another word, or a reason in REPEATED"
    )
    assert REPEATED.keys() - repeated.keys() == set(), (
        "these stand for one thing now: take them from the list"
    )


def test_a_functions_name_stands_for_one_thing() -> None:
    """Of apps, each a program of its own, and of kernels' texts nobody imports functions."""

    def counts(name: str, file: str) -> bool:
        if file.startswith(("apps/", TEXTS)):
            return False
        return not (name in NUMPYS and file.startswith(OF_NUMPYS_NAMES))

    public = {n: files for n, files in names(ast.FunctionDef).items() if not n.startswith("_")}
    repeated = several({n: {f for f in files if counts(n, f)} for n, files in public.items()})
    assert {n: f for n, f in repeated.items() if n not in REPEATED_FUNCTIONS} == {}, (
        "another word, or a reason in REPEATED_FUNCTIONS"
    )
    assert REPEATED_FUNCTIONS.keys() - repeated.keys() == set(), (
        "these stand for one thing now: take them from the list"
    )
