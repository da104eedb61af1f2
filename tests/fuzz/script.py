"""A program that shows a fault as a script that runs by itself."""

from __future__ import annotations

import textwrap

from tests.fuzz.generator import Program
from tests.fuzz.program import steps_of, text_of
from tests.fuzz.runner import SMALL_BYTES, Finding, Mode, numpys_errors

_SCRIPT = '''\
"""{title}"""

import contextlib
import warnings

import numpy
import spartan_ng
from scipy import sparse as scipy_sparse

N = numpy
warnings.simplefilter("ignore")
raised = []


@contextlib.contextmanager
def raising():
    """One entry of `raised` for a line, as NumPy raises here."""
    try:
        yield
        raised.append("nothing")
    except Exception as error:
        raised.append(type(error).__name__)


def program(np, sparse, settle):
{body}
    return {{k: v for k, v in locals().items() if k[0] == "a" and k[1:].isdigit()}}


def csr(a):
    return spartan_ng.asarray(scipy_sparse.csr_array(a))


def settle(*arrays):
    spartan_ng.compute(*arrays)
    compiler.wait(60)


wanted = program(numpy, numpy.array, lambda *arrays: None)
print("NumPy raised", raised)
{setup}
for run in range({runs}):
    raised.clear()
    with spartan_ng.config.override(small_bytes={small}, kernels={tier!r}):
        found = program(spartan_ng, csr, settle)
        {together}
        print("spartan_ng raised", raised)
        for name in found:
            value = numpy.asarray(found[name])
            wrong = numpy.asarray(wanted[name])
            same = value.shape == wrong.shape and value.dtype == wrong.dtype
            same = same and numpy.allclose(value, wrong, rtol=1e-3, atol=1e-3, equal_nan=True)
            print(name, "is the same" if same else f"is {{value!r}}, NumPy's {{wrong!r}}")
        compiler.wait(60)
'''


def script(program: Program, finding: Finding, mode: Mode) -> str:
    """The script; its first line says what is wrong."""
    errors = numpys_errors(program)
    raising = frozenset(
        line.text for line, e in zip(steps_of(program.steps), errors, strict=True) if e is not None
    )
    setup = [
        "from spartan_ng.kernels.compiled import select",
        "from spartan_ng.kernels.compiled.compile import compiler",
        "select.HOT_S = 0.0",
    ]
    if mode.workers:
        setup += [
            "import sys",
            "",
            'sys.path.insert(0, ".")  # a checkout, from whose root this runs',
            "from spartan_ng import session",
            "from benchmarks.simulated import SimulatedBackend",
            f"session.use(SimulatedBackend({mode.workers}))",
        ]
    return _SCRIPT.format(
        title=f"{finding.where}: {finding.text} ({mode})".replace("\\", "/").replace('"""', "'''"),
        body=textwrap.indent(text_of(program.steps, raising), "    "),
        setup="\n".join(setup),
        runs=mode.runs,
        small=SMALL_BYTES[mode.small],
        tier=mode.tier,
        together="spartan_ng.compute(*found.values())" if program.seed % 2 else "pass",
    )
