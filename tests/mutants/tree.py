"""A private copy of the project with all drawn faults in it, and a file of what is known of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.mutants.sites import Site, drawn, switched

CORE = (
    "spartan_ng/kernels",
    "worker",
    "spartan_ng/plan",
    "spartan_ng/optimizer",
    "spartan_ng/graph",
    "spartan_ng/api/ndarray/array.py",
    "spartan_ng/api/core/cell.py",
    "spartan_ng/api/core/dispatch.py",
    "spartan_ng/api/core/forcing.py",
    "spartan_ng/api/core/conversion.py",
    "spartan_ng/api/core/handle.py",
    "spartan_ng/api/core/kinds.py",
    "spartan_ng/api/base/assigning.py",
    "spartan_ng/api/base/indexing.py",
    "spartan_ng/api/core/operands.py",
    "spartan_ng/api/base/reductions.py",
    "spartan_ng/api/elementwise/asked.py",
    "spartan_ng/api/elementwise/universal.py",
    "spartan_ng/api/core/chains.py",
    "spartan_ng/api/core/views.py",
)
"""What is worth a fault by default: the rooms where answers come about, and the core of the API."""
_COMPILED = Path("spartan_ng/kernels/compiled/loops")
"""Read as texts and compiled: a switch cannot be asked for from inside."""
SCHEMA = """
create table site (number integer primary key, body text);
create table test (name text primary key, file text, seconds real, passed integer);
create table reach (number integer, test text);
create table file (name text primary key);
create table taken (name text primary key);
create table verdict (number integer primary key, verdict text, why text, tests integer);
"""


def prepare(
    root: Path, place: Path, paths: Sequence[str], count: int, seed: int, numbers: bool = False
) -> None:
    """Copy the project to `place`, and put `count` faults into the files under `paths`."""
    tree = place / "tree"
    shutil.rmtree(place, ignore_errors=True)
    names = _names(root)
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, tree / name, follow_symlinks=False)
    files = [n for n in names if n.endswith(".py") and is_chosen(Path(n), paths)]
    chosen = drawn(root, files, count, seed, numbers)
    by_path: dict[str, list[tuple[int, Site]]] = defaultdict(list)
    for number, site in enumerate(chosen):
        by_path[site.path].append((number, site))
    for path, those in by_path.items():
        (tree / path).write_text(switched((root / path).read_text(), those))
    with connected(place) as state:
        state.executescript(SCHEMA)
        state.execute("begin")
        state.executemany(
            "insert into site values (?, ?)", ((i, json.dumps(asdict(s))) for i, s in enumerate(chosen))
        )


def renew_tests(root: Path, place: Path, state: sqlite3.Connection) -> None:
    """Put the tests as they are now into a copy; what changed files come by is to be recorded anew."""
    for name in _names(root):
        ours, theirs = root / name, place / "tree" / name
        if not name.startswith("tests/") or name.startswith("tests/mutants/"):
            continue
        if theirs.exists() and theirs.read_bytes() == ours.read_bytes():
            continue
        theirs.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ours, theirs)
        state.execute("delete from reach where test in (select name from test where file = ?)", (name,))
        state.execute("delete from test where file = ?", (name,))
        state.execute("delete from file where name = ?", (name,))


def _names(root: Path) -> list[str]:
    """The project's files, those that are not committed among them."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return [n for n in listed.split("\0") if n and (root / n).exists()]


def is_chosen(name: Path, paths: Sequence[str]) -> bool:
    """Whether faults may be drawn in a file."""
    return any(name.is_relative_to(p) for p in paths) and not name.is_relative_to(_COMPILED)


def connected(place: Path) -> sqlite3.Connection:
    """The file with what is known; each change is kept at once."""
    return sqlite3.connect(place / "state.sqlite", isolation_level=None, timeout=600.0)


def begin(state: sqlite3.Connection) -> None:
    """What is not done is nobody's."""
    state.execute("delete from taken")
    state.execute("insert into taken select name from file")
    state.execute("insert into taken select number from verdict")


def taken(state: sqlite3.Connection, name: str) -> bool:
    """Whether a piece of work is ours now, and nobody else's."""
    return state.execute("insert or ignore into taken values (?)", (name,)).rowcount == 1


def sites_of(state: sqlite3.Connection) -> list[Site]:
    """All faults, by number."""
    return [Site(**json.loads(body)) for (body,) in state.execute("select body from site order by number")]
