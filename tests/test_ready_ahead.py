"""What the first plan of a process needs is there once the session has been made ready beside the program."""

import subprocess
import sys

import pytest

PROGRAMS = {
    "a product": "x.T @ (x @ v)",
    "a row times a table": "v[:300] * 2 @ x.T",
    "steps": "np.exp(x) * 2 + x",
    "a fold": "(x * x).sum(axis=0)",
    "a mask": "x[x > 0.5].sum()",
    "two results": "np.persist((x * x).sum(), (x + 1).max())",
}

_FIRST_RUN = """
import sys
import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.worker.scheduling import blas

x, v = (np.asarray(np.random.default_rng(0).random(shape)).persist() for shape in ((400, 300), 300))
session.current().planner.load_ahead()
known, looked = set(sys.modules), blas._libraries.cache_info().misses
with config.override(small_bytes=0, threads=2):
    np.persist({program})
print(sorted(set(sys.modules) - known), blas._libraries.cache_info().misses - looked)
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_first_plan_imports_nothing(name, tmp_path, monkeypatch):
    """Nor does it look for libraries: all mappings of the process are read for that."""
    monkeypatch.setenv("SPARTAN_NG_CACHE_DIR", str(tmp_path))
    command = [sys.executable, "-c", _FIRST_RUN.replace("{program}", PROGRAMS[name])]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert told.split() == ["[]", "0"]
