"""The benchmark of npbench's kernels: it runs them with our import, and sees wrong answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import npbench

INFO = {
    "relative_path": "group/scaled",
    "module_name": "scaled",
    "func_name": "kernel",
    "parameters": {"S": {"n": 4, "k": 3}},
    "init": {"func_name": "initialize", "input_args": ["n"], "output_args": ["a"]},
    "input_args": ["k", "a"],
    "array_args": ["a"],
    "output_args": ["a"],
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "npbench" / "benchmarks" / "group" / "scaled"
    folder.mkdir(parents=True)
    (tmp_path / "bench_info").mkdir()
    (tmp_path / "bench_info" / "scaled.json").write_text(json.dumps({"benchmark": INFO}))
    (folder / "scaled.py").write_text(
        "import numpy as np\ndef initialize(n):\n    return np.arange(n * 1.0)\n"
    )
    (folder / "scaled_numpy.py").write_text(
        "import numpy as np\ndef kernel(k, a):\n    a *= k\n"
        "    return np.ndarray.__module__ == 'numpy', a.sum()\n"
    )
    return tmp_path


def test_kernels_run_with_either_import(checkout: Path) -> None:
    ours, theirs = (npbench.Kernel.of(checkout, "scaled", "S", is_ours) for is_ours in (True, False))
    import spartan_ng

    *_, found = ours.call(spartan_ng)
    *_, again = ours.call(spartan_ng)
    *_, expected = theirs.call(spartan_ng)
    assert [f.tolist() for f in found] == [f.tolist() for f in again] == [False, 18.0, [0, 3, 6, 9]]
    assert theirs.differs(expected[1:], found[1:]) == ""
    assert "error" in theirs.differs(expected[1:], [found[1] * 1.1, found[2]])
    assert "float32" in theirs.differs(expected[1:], [found[1], found[2].astype("f4")])
    assert "in place of 2" in theirs.differs(expected[1:], found[2:])


def test_times_say_what_is_wrong(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npbench, "ENOUGH_S", 0.0)
    found = npbench.times(checkout, "scaled", "S", "ours", 0)
    assert found["wrong"], "the kernel gives the name of its namespace"
    assert min(found["cold"], found["warm"], found["seconds"]) > 0
    assert npbench.times(checkout, "scaled", "S", "numpy", 0)["wrong"] == ""
