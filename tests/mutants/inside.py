"""What `python -m tests.mutants` runs in the copy, once for each job."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies
import pytest
import scipy.sparse.linalg
import scipy.special
from tqdm import tqdm

import benchmarks.simulated
from tests.mutants import switch
from tests.mutants.run import judge, record
from tests.mutants.tree import connected, sites_of, taken

IMPORTED = hypothesis.strategies, pytest, scipy.sparse.linalg, scipy.special, benchmarks.simulated
"""What children need not import again."""


def files_of(tests: Sequence[str]) -> list[str]:
    """The test files under some paths."""
    found = [
        f for t in tests for f in ([Path(t)] if Path(t).is_file() else sorted(Path(t).rglob("test_*.py")))
    ]
    return list(dict.fromkeys(map(str, found)))


def main(what: str, place: Path, own: Path, most_s: float, end: float, tests: Sequence[str]) -> None:
    """Do what nobody has done yet of the runs without a fault, or with one, until the end."""
    early = frozenset(switch.reached())
    state = connected(place)
    numbers = range(len(sites_of(state)))
    names = files_of(tests) if what == "record" else [str(n) for n in numbers]
    for name in tqdm(names, what, leave=False):
        if time.time() > end:
            return
        if not taken(state, name):
            continue
        if what == "record":
            record(own, state, name)
        else:
            judge(own, state, int(name), most_s, int(name) in early)


if __name__ == "__main__":
    what_, place_, own_, most_, end_, *tests_ = sys.argv[1:]
    main(what_, Path(place_), Path(own_), float(most_), float(end_), tests_)
