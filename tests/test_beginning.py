"""The first programs of a process: NumPy's answers, whether the session is there yet or not."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

import spartan_ng as sp
from spartan_ng import beginning
from spartan_ng.arrays import ArrayRef
from spartan_ng.arrays.sparse import is_csr
from spartan_ng.costs.tuned import BEGIN_S
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.kernels.direct import run_stepwise, stepwise_s
from spartan_ng.kernels.formats import dense
from spartan_ng.starts import CACHE_VARIABLE
from tests.programs import Program, programs
from tests.sampling import examples
from tests.stages import SIZES_A_BODY, drawn
from tests.stages.runner import difference


def run(program: str) -> str:
    """What a program tells that has never been run before."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # kernels may still come
        done = subprocess.run(
            [sys.executable, "-c", HELD + program],
            env={**os.environ, CACHE_VARIABLE: folder},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_program_that_ends_at_once_says_nothing_else() -> None:
    """The import beside it may find that the end has come."""
    program = "import spartan_ng as np; print(float(np.random.RandomState(1).randn(1_000_000, 5).sum()))"
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.endswith("\n")
        assert not done.stderr


HELD = """
import os, sys, threading
import numpy
import spartan_ng as np
from spartan_ng import beginning
go, real = threading.Event(), beginning._import

def held():
    go.wait()
    real()

beginning._import, beginning._ENOUGH_S = held, 0.0
A = numpy.random.default_rng(0).random((3000, 2000))
a = np.array(A)
"""
"""The import begins behind the first program, and waits until it is let go."""


@given(program=programs())
@examples(100)
def test_step_by_step_as_numpy(program: Program) -> None:
    """Where NumPy has a function for each step."""
    with sp.config.override(small_bytes=0), np.errstate(all="ignore"):
        arrays = [a for a in program.run(sp, sp.array) if isinstance(a, sp.ndarray)]
        roots = list(dict.fromkeys(a._node() for a in arrays if a._node().data is None))
        order = topological(roots)
        found = None if math.isinf(stepwise_s(roots, order)) else run_stepwise(roots, order)
        expected = [np.asarray(a) for a in sp.compute(*arrays)] if arrays else []
    if found is None:
        return
    values = dict(zip(roots, found, strict=True))
    for a, theirs in zip(arrays, expected, strict=True):
        ours = values.get(a._node())
        if ours is not None:
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_numpy_answers_until_the_session_is_there() -> None:
    told = run(
        """
found = (a * 2 + 1).sum(axis=0).compute()
assert "spartan_ng.planner" not in sys.modules
numpy.testing.assert_allclose(found, (A * 2 + 1).sum(axis=0))
go.set()
beginning.wait()
from spartan_ng import session
numpy.testing.assert_allclose((a * 2 + 1).sum(axis=0).compute(), found)
print(session.current().last_run is not None)
"""
    )
    assert told == "True\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [
        "config.debug = 1",
        "config.check = True",
        "config.small_bytes = 0",
        "config.kernels = 'interpret'",
        "config.memory_bytes = 1 << 30",
    ],
)
def test_what_is_asked_of_the_session_waits_for_it(what: str) -> None:
    told = run(
        f"np.{what}; go.set(); (a * 2 + 1).sum().compute(); print('spartan_ng.planner' in sys.modules)"
    )
    assert told == "True\n"


@pytest.mark.slow
def test_what_takes_long_waits_for_the_session() -> None:
    told = run(
        """
go.set()
b = a
for _ in range(40):
    b = np.exp(b) / 3
b.sum().compute()
print("spartan_ng.planner" in sys.modules)
"""
    )
    assert told == "True\n"


def test_what_numpy_makes_for_a_first_answer_is_there_for_the_next() -> None:
    """However large and cheap it is: it would be made once more for each."""
    told = run(
        """
beginning._ENOUGH_S = 1e9
b = a * 2 + 1
c = np.broadcast_to(a[0], a.shape) + a[:, :1] * 2
b.mean().compute(), c.max().compute()
print(b._peek() is not None, c._peek() is not None, "spartan_ng.planner" in sys.modules)
numpy.testing.assert_array_equal(b, A * 2 + 1)
numpy.testing.assert_array_equal(c, A[0] + A[:, :1] * 2)
go.set()
"""
    )
    assert told == "True True False\n"


def test_a_step_that_the_program_holds_is_computed_once() -> None:
    told = run(
        """
b = np.sort(a[:500], axis=0)
b.sum().compute()
print(b._peek() is not None)
go.set()
"""
    )
    assert told == "True\n"


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("takes_s", [0.05, 0.1, 0.4])
@pytest.mark.parametrize(
    "what", ["(a * k).sum(axis=0)", "a @ (a[0] * k)", "abs(a[:100] - k)", "np.sort(a[k])"]
)
def test_programs_wait_for_an_import_that_nobody_gives_time(what: str, takes_s: float) -> None:
    """NumPy goes on beside it for twice as long as the import should take, whatever the program asks for."""
    told = run(
        f"""
from types import SimpleNamespace
from spartan_ng.kernels import direct
now, real = [0.0], direct.run_stepwise
def timed(*given, **more):
    found = real(*given, **more)
    now[0] += {takes_s}
    return found
direct.run_stepwise = timed
beginning.time = SimpleNamespace(perf_counter=lambda: now[0])
beginning._begin()
done = 0
while done < 50 and beginning.evaluate([({what.replace("k", "(done + 2)")})._node()], None) is not None:
    done += 1
go.set()
print(done)
"""
    )
    assert 1 <= int(told) <= math.ceil(2 * BEGIN_S / takes_s) + 1
    assert int(told) >= 1 / takes_s * BEGIN_S


@pytest.mark.slow
def test_a_longer_program_does_not_wait_either() -> None:
    """NumPy takes longer than the import, but not longer than that and a plan without kernels."""
    told = run(
        """
b = ((a * 2 + 1) * 3 - 1).sum(axis=0)
from spartan_ng.kernels.direct import stepwise_s
from spartan_ng.graph.node import topological
from spartan_ng.costs.tuned import BEGIN_S
assert BEGIN_S < stepwise_s([b._node()], topological([b._node()])) < 2 * BEGIN_S
numpy.testing.assert_allclose(b.compute(), ((A * 2 + 1) * 3 - 1).sum(axis=0))
print("spartan_ng.planner" in sys.modules)
go.set()
"""
    )
    assert told == "False\n"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["a @ a[0]", "a * 2 + 1", "(a[:300] @ a.T + 1).sum(axis=0)"])
def test_nothing_is_imported_beside_a_program_that_is_short(what: str) -> None:
    """The import begins once NumPy has worked for so long that it may pay."""
    told = run(
        f"""
beginning._ENOUGH_S = 1e9
for _ in range(3):
    ({what}).compute()
print(beginning._importing is None and "spartan_ng.planner" not in sys.modules, beginning._worked_s > 0)
beginning._ENOUGH_S = beginning._worked_s
({what}).compute()
print(beginning._importing is not None)
go.set()
"""
    )
    assert told == "True True\nTrue\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "steps"), [("(((a * 2 + 1) * 3 - 1) / 7).sum(axis=0)", 5), ("(a @ a[0]) * 2.0 + 1", 2)]
)
def test_the_import_begins_within_a_program_that_has_taken_long(what: str, steps: int) -> None:
    """However long it was predicted to take: steps may be several times as fast, and BLAS's threads wait for
    an import beside them."""
    told = run(
        f"""
from types import SimpleNamespace
asked = [0]
def clock():
    asked[0] += 1
    return asked[0] * .1
beginning.time = SimpleNamespace(perf_counter=clock)
beginning._ENOUGH_S = {steps} * .1 - .05
begun, begin = [], beginning._begin
beginning._begin = lambda: begun.append(asked[0] - 1)
({what}).compute()
print(begun[0], begun[-1] > begun[0])
go.set()
"""
    )
    assert told == f"{steps} True\n"


@pytest.mark.slow
def test_the_import_gives_way_and_nobody_after_it() -> None:
    told = run(
        """
own = os.getpriority(os.PRIO_PROCESS, 0)
def given_way(niceness, give=beginning.give_way_here):
    give(niceness)
    print(os.getpriority(os.PRIO_PROCESS, 0) > own or own > 14)
beginning.give_way_here = given_way
(a * 2 + 1).sum().compute()
go.set()
beginning.wait()
others = {*map(int, os.listdir("/proc/self/task"))} - {beginning._importing.native_id}  # it may be ending
print({os.getpriority(os.PRIO_PROCESS, thread) for thread in others} == {own})
"""
    )
    assert told == "True\nTrue\n"


@pytest.mark.slow
def test_a_fork_finds_no_lock_that_is_held() -> None:
    """Nor does one let go of a lock of a module that was imported while the fork waited."""
    told = run(
        """
sys.unraisablehook = lambda error: print(error)
(a * 2 + 1).sum().compute()
go.set()
pid = os.fork()
if not pid:
    total = float((a * 2 + 1).sum())
    os._exit(0 if numpy.isclose(total, (A * 2 + 1).sum()) else 1)
print(os.waitpid(pid, 0)[1])
"""
    )
    assert told == "0\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_kept", [True, False])
def test_what_loads_kernels_is_there_before_the_first_one(is_kept: bool, tmp_path: Path) -> None:
    """Where any lie on disk; and nobody waits for it who waits for the session."""
    told = run(
        f"""
os.environ["SPARTAN_NG_CACHE_DIR"] = {str(tmp_path)!r}
from spartan_ng.kernels.compiled import native
from spartan_ng.kernels.compiled.cache import cache_directory, keep_code, keep_source
name = "spartan_ng_kernel_0"
(keep_code if {is_kept} else keep_source)(cache_directory(), name, b"" if {is_kept} else "")
loading, gate, begin = threading.Event(), threading.Event(), native.begin
def gated():
    loading.set()
    gate.wait()
    begin()
native.begin = gated
native.object_files.are_read_here = lambda: False
(a * 2 + 1).sum().compute()
go.set()
beginning.wait()
print("spartan_ng.session" in sys.modules, "llvmlite.binding" in sys.modules)
if {is_kept}:
    loading.wait()
gate.set()
beginning._importing.join()
print("llvmlite.binding" in sys.modules)
"""
    )
    assert told == f"True False\n{is_kept}\n"


def test_an_array_of_a_file_is_for_the_session() -> None:
    ref = ArrayRef((3,), np.dtype(float), value=np.ones(3), source=object())
    node = build.data(ref)
    assert math.isinf(stepwise_s([node], [node]))


def test_products_that_blas_computes_do_not_wait_for_the_session() -> None:
    """A plan would leave them to BLAS as well; what is done beside them takes less than the import."""
    a, b = (sp.array(np.ones((1200, 1200))) for _ in range(2))
    with sp.config.override(small_bytes=1):
        root = (a @ b * 2.0)._node()
        order = topological([root])
        assert 0 < stepwise_s([root], order) < BEGIN_S
        (found,) = run_stepwise([root], order)
    assert found[0, 0] == 2400.0


@pytest.mark.parametrize("seed", range(8))
def test_what_csr_arrays_store_step_by_step(seed: int) -> None:
    """Graphs over them, without a plan: functions at non-zeros, folds, products, slices, dense forms."""
    done = 0
    for number in range(0, 5 * SIZES_A_BODY, SIZES_A_BODY // 2):
        stage = drawn(number, seed, "csr")
        roots = [v.node for v in stage.results]
        order = topological(roots)
        if math.isinf(stepwise_s(roots, order)):
            continue
        with np.errstate(all="ignore"):
            found = run_stepwise(roots, order)
        for value, got in zip(stage.results, found, strict=True):
            assert is_csr(got) == (value.node.format == "csr")
            assert not difference(value, np.asarray(dense(got)))
        done += 1
    assert done > 2


def test_a_slice_and_a_transpose_of_what_is_stored() -> None:
    """They are matrices of their own, and what is made of them is the program's."""
    elements = np.where(np.arange(60).reshape(6, 10) % 3, 0.0, np.arange(60).reshape(6, 10))
    matrix = sparse.csr_array(elements)
    x = sp.asarray(matrix)
    for whole, expected in (
        (x[1:5:2] * 2.0, elements[1:5:2] * 2.0),
        (x.T * np.arange(6.0), elements.T * np.arange(6.0)),
        ((x[:, 2:9] * x[:, 2:9]).sum(axis=1), (elements[:, 2:9] ** 2).sum(axis=1)),
        (x.T @ np.ones(6), elements.T @ np.ones(6)),
        (x * np.sqrt(x), elements * np.sqrt(elements)),
        (x + 1.0, elements + 1.0),
    ):
        root = whole._node()
        order = topological([root])
        assert stepwise_s([root], order) < BEGIN_S
        (found,) = run_stepwise([root], order)
        if is_csr(found):
            assert not np.shares_memory(found.indices, matrix.indices)
            assert not np.shares_memory(found.data, matrix.data)
            found = found.toarray()
        np.testing.assert_allclose(found, expected)


def test_a_dense_array_that_is_read_at_non_zeros_is_not_made() -> None:
    """A dot product for each of them: the matrix would have 80 GB."""
    n = 100_000
    places = np.arange(n)
    x = sp.asarray(sparse.csr_array((np.ones(n), (places, places[::-1].copy())), (n, n)))
    u, v = (sp.asarray(np.random.default_rng(k).random((n, 3))) for k in range(2))
    root = (x * sp.log(u @ v.T + 1)).sum()._node()
    order = topological([root])
    assert stepwise_s([root], order) < BEGIN_S
    (found,) = run_stepwise([root], order)
    expected = np.log(np.einsum("ij,ij->i", np.asarray(u), np.asarray(v)[::-1]) + 1).sum()
    np.testing.assert_allclose(found, expected)


@pytest.mark.slow
def test_nothing_is_imported_for_short_programs_over_csr_arrays() -> None:
    told = run(
        """
from scipy import sparse
beginning._ENOUGH_S = 1e9
S = sparse.random_array((300, 300), density=0.05, format="csr", random_state=0)
s = np.asarray(S)
numpy.testing.assert_allclose((s * np.log(a[:300] @ a[:300].T)).sum(),
                              S.multiply(numpy.log(A[:300] @ A[:300].T)).sum())
numpy.testing.assert_allclose((s * 2 @ a[0, :300]).compute(), S @ A[0, :300] * 2)
print("spartan_ng.planner" in sys.modules)
go.set()
"""
    )
    assert told == "False\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    ["(a * 2)[:3]", "(a * 2)[:, 5]", "(a * 2 + a[0])[::7, 3]", "(a.T * 2)[5]", "((a + 1) * 2)[4:9, 1]"],
)
def test_of_what_is_read_in_part_nothing_else_is_made(what: str) -> None:
    """Slices, rows and columns of functions, and several elements of one."""
    told = run(
        f"""
from spartan_ng.kernels import stepwise
made, real = [], stepwise.STEPS[stepwise.Op.MAP]
def observed(node, *inputs):
    made.append(node.size)
    return real(node, *inputs)
stepwise.STEPS[stepwise.Op.MAP] = observed
def program(np, a):
    y = {what}
    return y[0] + y[-1]
beginning._ENOUGH_S = 1e9
found = numpy.asarray(program(np, a))
print(max(made) < 3 * max(A.shape), "spartan_ng.planner" in sys.modules)
numpy.testing.assert_allclose(found, program(numpy, A))
go.set()
"""
    )
    assert told == "True False\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "is_work"),
    [
        ("np.random.default_rng(0).standard_normal((1000, 500))", True),
        ("np.random.default_rng(0).integers(9, size=500_000)", True),
        ("np.random.default_rng(0).poisson(2.0, 500_000)", True),
        ("np.random.RandomState(0).rand(1000, 500)", True),
        ("np.random.RandomState(0).randint(9, size=500_000)", True),
        ("np.random.RandomState(0).normal(size=500_000)", True),
        ("np.random.default_rng(0).standard_normal(5)", False),
    ],
)
def test_what_numpy_draws_is_work(what: str, is_work: bool) -> None:
    """The import begins beside it, before the first program that the session would be sooner with."""
    told = run(
        f"""
from spartan_ng.costs.tuned import DRAW_NS
beginning._ENOUGH_S = 500_000 * DRAW_NS / 1e9
assert beginning._importing is None
{what}
print(beginning._importing is not None)
go.set()
"""
    )
    assert told == f"{is_work}\n"


@pytest.mark.slow
def test_what_is_drawn_for_the_session_begins_nothing() -> None:
    told = run(
        """
np.config.kernels = "compile"
np.random.default_rng(0).standard_normal(500_000)
print(beginning._importing is None)
go.set()
"""
    )
    assert told == "True\n"


@pytest.mark.slow
def test_nothing_is_imported_beside_what_a_program_does_at_its_end() -> None:
    """Nobody would wait for that import, which would be cut off."""
    told = run(
        """
import atexit
go.set()

@atexit.register
def at_the_end():
    drawn = np.random.default_rng(0).standard_normal(500_000)
    print(float((drawn * 0 + 1).sum()), beginning._importing is None)
"""
    )
    assert told == "500000.0 True\n"


def test_what_has_no_room_waits_for_the_session() -> None:
    """Zeros and ones are no work: NumPy made them, however large, and a write took all of their memory."""
    one = build.broadcast(build.constant(np.ones(())), (100,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beginning, "_leaves_to_numpy", lambda: True)
        for counted in ("_worked_s", "_beside_s"):
            patch.setattr(beginning, counted, 0.0)
        patch.setattr(beginning, "copy_fits", lambda nbytes: nbytes < 800)
        assert beginning.evaluate([one], None) is None
        part = build.broadcast(build.constant(np.ones(())), (99,))
        assert beginning.evaluate([part], None) is not None


@pytest.mark.slow
@pytest.mark.parametrize("has_drawn", [True, False])
def test_who_has_numpys_generators_has_ours_with_the_package(has_drawn: bool) -> None:
    """Their import is longer than most first draws; who has none waits for NumPy's as well."""
    code = f"""
import sys
import numpy{".random" if has_drawn else ""}
import spartan_ng
print("spartan_ng.api.drawing.generator" in sys.modules, "numpy.random" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{has_drawn} {has_drawn}\n"
