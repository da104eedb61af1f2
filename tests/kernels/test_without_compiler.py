"""Programs run without numba: interpreted, or in programs of numexpr, and `explain` says why."""

import subprocess
import sys

import pytest

PROGRAM = """
import importlib.metadata, sys
import numpy

MISSING = ("numba", "llvmlite")
sys.modules.update(dict.fromkeys(MISSING))
plain = importlib.metadata.version

def version(name):
    if name in MISSING:
        raise importlib.metadata.PackageNotFoundError(name)
    return plain(name)

importlib.metadata.version = version
import spartan_ng as np
from spartan_ng.kernels.compiled.compile import wait_for_compiles

value = numpy.random.default_rng(0).random((700, 500))
for kernels in ("auto", "compile", "numexpr", "interpret"):
    with np.config.override(small_bytes=0, kernels=kernels):
        for _ in range(2):
            x = np.array(value)
            found = numpy.asarray((numpy.float64(2) * x + 1) ** 2 - x)
            numpy.testing.assert_array_equal(found, (2 * value + 1) ** 2 - value)
            wait_for_compiles()
        print(kernels, str(np.explain((2 * x + 1) ** 2 - x)).splitlines()[-1])
"""


@pytest.mark.slow
def test_programs_run_without_numba():
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    told = dict(line.split(maxsplit=1) for line in found.stdout.splitlines())
    assert told["compile"] == "runs interpreted (numba is not installed)"
    assert "in numexpr's virtual machine" in told["numexpr"]
    assert 'interpreted (config.kernels is "interpret")' in told["interpret"]
