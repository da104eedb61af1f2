"""Loops that are written by hand: all of them compile, and numba goes no further than it is asked to."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spartan_ng.kernels.compiled import compile as compiling
from spartan_ng.kernels.compiled import dictionary_loops as dictionaries
from spartan_ng.kernels.compiled.ready_made import source_of

FRONT_END = """
import sys
from spartan_ng.kernels.compiled import child

child._without_blas()
from spartan_ng.kernels.compiled.intrinsics import compiled

@compiled
def kernel(table):
    table[0, 0] = 1

found = child._entry(kernel)
print(found.library.codegen._engine.is_symbol_defined(found.fndesc.llvm_func_name))
print([name for name, module in sys.modules.items() if name.startswith("scipy") and module is not None])
from spartan_ng.kernels.compiled.machine import object_file

assert object_file(found.library.get_llvm_str(), found.fndesc.llvm_func_name, "kernel")
"""
SOURCES = {
    "deviations f4": source_of("deviations", NUMBER="np.float32", NBYTES="4", LIMIT="1e30"),
    "deviations f8": source_of("deviations", NUMBER="np.float64", NBYTES="8", LIMIT="1e300"),
    "least prefix": source_of("prefixes", NUMBER="np.float64", IS_LEAST="True"),
    "greatest prefix": source_of("prefixes", NUMBER="np.float32", IS_LEAST="False"),
    "few lines f4": source_of("few_lines", NUMBER="np.float32", WIDTH="4", COLUMNS="512"),
    "few lines f8": source_of("few_lines"),
    "between bounds f8": source_of("between"),
    "between bounds u1": source_of("between", NUMBER="np.uint8", LEAST="0", WIDTH="1"),
    "many short rows f4": source_of("tall", NUMBER="np.float32", WIDTH="4"),
    "many short rows f8": source_of("tall"),
    "few columns f4": source_of("narrow", NUMBER="np.float32", WIDTH="4"),
    "few columns f8": source_of("narrow"),
    "sums by labels": source_of("group_sums", NUMBER="np.float32"),
    "sparse product": source_of("sparse_product", NUMBER="np.float64"),
    "sparse product by strips": source_of("strips", NUMBER="np.float32", INDEX="np.uint64"),
    "sparse vector": source_of("sparse_vector", NUMBER="np.int64", INDEX="np.uint64"),
    "from the right": dictionaries.from_right("float64"),
    "from the left": dictionaries.from_left("int64"),
    "elements": dictionaries.all_elements("uint64"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_loops_written_by_hand_compile(name):
    kernel = compiling.compiler.kernel(SOURCES[name])
    compiling.compiler.request(kernel)
    assert compiling.compiler.wait()
    assert kernel.function is not None, kernel.failure


@pytest.mark.slow
def test_numba_goes_no_further_than_the_text_and_looks_for_no_blas() -> None:
    """Each function was made ready for Python to call, and SciPy imported: half of a first kernel's time."""
    told = subprocess.run([sys.executable, "-c", FRONT_END], capture_output=True, text=True, check=False)
    assert told.stdout == "False\n[]\n", told.stderr
