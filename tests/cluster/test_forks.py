"""A fork of a connected program goes on by itself, at once, and harms nothing of its parent's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONNECTED = {
    "own": "cluster = np.cluster(2)",
    "engine": """import distributed
cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
np.connect(distributed.Client(cluster))""",
}
PROGRAM = """
import multiprocessing, os, sys, warnings
import numpy
import spartan_ng as np

warnings.simplefilter("ignore")  # forks of programs with threads

def child(kind):
    if kind == "new":
        return float((np.arange(3e6) * 2).sum())
    if kind == "here":
        return float((HERE + 1).sum())
    try:
        return float(THERE.sum())
    except np.errors.MasterUnreachable as error:
        return "a fork" in str(error)

if __name__ == "__main__":
    {connect}
    np.config.small_bytes = 1 << 16
    HERE = np.asarray(numpy.arange(1e6))
    THERE = (np.arange(3e6) * 3).persist()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(child, ["new", "here", "there"]))
    if not (pid := os.fork()):
        {leave}
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(float(THERE.sum()), float((HERE * 2).sum()))
    np.disconnect()
"""
LEAVE = {
    "exits": "os._exit(7)",
    "closes": "cluster.close(); os._exit(7)",
    "disconnects": "np.disconnect(); os._exit(7)",
    "ends": "sys.exit(7)",
}


def _answers(tmp_path: Path, connect: str, leave: str) -> list[str]:
    connect = connect.replace("\n", "\n    ")
    (tmp_path / "p.py").write_text(PROGRAM.format(connect=connect, leave=leave))
    done = subprocess.run([sys.executable, "p.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("on", "leave"), [("own", leave) for leave in LEAVE] + [("engine", "exits"), ("engine", "disconnects")]
)
def test_a_fork_goes_on_alone(tmp_path: Path, on: str, leave: str) -> None:
    assert _answers(tmp_path, CONNECTED[on], LEAVE[leave]) == [
        "[8999997000000.0, 500000500000.0, True]",
        "7",
        "13499995500000.0 999999000000.0",
    ]
