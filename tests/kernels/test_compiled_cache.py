"""The compiler's process and caches, and the rule that chooses between interpreter and compiled loops."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs.choices import HOT_S, MISSED
from spartan_ng.errors import OptionError
from spartan_ng.graph import build
from spartan_ng.kernels.compiled import cache
from spartan_ng.kernels.compiled.cache import (
    _thin_out,
    cache_directory,
    find,
    keep_code,
    kernel_name,
    thin_out,
)
from spartan_ng.kernels.compiled.compile import Compiler, compiler, wait_for_compiles
from spartan_ng.kernels.compiled.process import CompilerProcess
from spartan_ng.kernels.compiled.select import Tier
from spartan_ng.plan.stages import Fused
from spartan_ng.starts import CACHE_VARIABLE
from spartan_ng.system import object_files
from tests.test_programs import running_on
from tests.waiting import Gate, until

SOURCE = """\
from spartan_ng.kernels.compiled.intrinsics import compiled


@compiled
def kernel(table):
    table[0, 0] = {value}
"""


@pytest.fixture
def a_compiler():
    """Makes compilers that know nothing of each other, as other processes have them, over one process."""
    made: list[Compiler] = []

    def make():
        made.append(Compiler())
        made[-1]._process = made[0]._process
        return made[-1]

    yield make
    for one in made:
        one.stop()


def run(program, cache):
    """What a Python process prints."""
    paths = os.pathsep.join(p or "." for p in sys.path)
    environment = {**os.environ, CACHE_VARIABLE: str(cache), "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.strip()


def call(kernel):
    table = np.zeros((1, 1), np.int64)
    kernel.function(table)
    return table[0, 0]


@pytest.mark.slow
def test_processes_that_want_a_kernel_at_one_time_compile_it_once(a_compiler, monkeypatch, tmp_path):
    """Each worker of a host compiled all kernels of a plan by itself."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "kernels"))
    looks = []

    def looked(directory, name):
        looks.append(name)
        return find(directory, name)

    monkeypatch.setattr("spartan_ng.kernels.compiled.compile.find", looked)
    with Gate(tmp_path / "gate") as gate:
        one, other = a_compiler(), a_compiler()
        compiling = one._process.compile

        def held(*given):
            gate.enter()
            return compiling(*given)

        monkeypatch.setattr(one._process, "compile", held)
        kernels = [c.kernel(SOURCE.format(value=5)) for c in (one, other)]
        one.request(kernels[0])
        until(lambda: gate.arrived or kernels[0].settled)
        assert not kernels[0].failure
        other.request(kernels[1])
        until(lambda: len(looks) > 2)  # the first one's two, and the other's
        gate.open()
        assert one.wait()
        assert other.wait()
        assert [call(k) for k in kernels] == [5, 5]
        assert len(gate.arrived) == 1
    assert not list(tmp_path.rglob("*.lock"))


@pytest.mark.slow
def test_without_locks_every_process_compiles(a_compiler, monkeypatch, tmp_path):
    def no_locks(path):
        raise OSError("no locks here")

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(cache, "locked", no_locks)
    one = a_compiler()
    kernel = one.kernel(SOURCE.format(value=6))
    one.request(kernel)
    assert one.wait()
    assert call(kernel) == 6


@pytest.mark.slow
def test_a_kernel_is_compiled_once(a_compiler, monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    one = a_compiler()
    kernel = one.kernel(SOURCE.format(value=7))
    assert not kernel.settled
    assert one.kernel(SOURCE.format(value=7)) is kernel
    one.request(kernel)
    assert one.wait()
    assert call(kernel) == 7
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.slow
def test_a_kernel_that_lies_on_disk_is_waited_for_where_that_is_sooner(a_compiler, monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    source = SOURCE.format(value=12)
    for one in (a_compiler(), a_compiler()):
        kernel = one.kernel(source)
        is_there = any(tmp_path.rglob(kernel_name(source)))
        one.request(kernel)
        one.wait_if_kept(kernel, one.patience_s)
        assert kernel.settled or not is_there
        assert one.wait()
        call(kernel)
    assert is_there


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("source", ["this is no Python", SOURCE.format(value="undefined_name")])
def test_a_failing_compile_is_remembered(a_compiler, monkeypatch, tmp_path, source):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    one = a_compiler()
    bad, good = one.kernel(source), one.kernel(SOURCE.format(value=8))
    one.request(bad)
    one.request(good)
    assert one.wait()
    assert bad.failure
    assert bad.function is None
    assert call(good) == 8


def test_a_directory_that_cannot_be_written_is_replaced(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv(CACHE_VARIABLE, str(blocked))
    path = cache_directory()
    assert path.is_dir()
    assert tmp_path not in path.parents


@pytest.mark.parametrize("what", ["folder", "file", "folder above"])
def test_what_others_could_have_written_is_not_run(tmp_path, monkeypatch, what):
    base = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(base))
    path = cache_directory()
    keep_code(path, kernel_name("source"), b"code")
    assert find(path, kernel_name("source")) == b"code"
    at = {"folder": path, "file": path / kernel_name("source"), "folder above": base}[what]
    at.chmod(0o777)
    if what == "file":
        assert find(path, kernel_name("source")) is None
        assert not at.exists()
        return
    with pytest.warns(RuntimeWarning, match="others may write"):
        other = cache_directory()
    assert tmp_path not in other.parents
    assert stat.S_IMODE(other.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_another_user_has_planted_is_not_run(tmp_path, monkeypatch, what):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    path = cache_directory()
    keep_code(path, kernel_name("source"), b"code")
    os.chown(path if what == "folder" else path / kernel_name("source"), 65534, 65534)
    if what == "file":
        assert find(path, kernel_name("source")) is None
        return
    with pytest.warns(RuntimeWarning, match="another user"):
        assert cache_directory() != path


def broken(content, how):
    """What may become of a file."""
    changed = bytearray(content)
    changed[-1] ^= 1
    return {"empty": b"", "foreign": b"garbage", "truncated": content[:-20], "changed": changed}[how]


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["empty", "foreign", "truncated", "changed"])
def test_broken_files_are_compiled_anew(a_compiler, monkeypatch, tmp_path, how):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    found = []
    for _ in range(3):
        one = a_compiler()  # as another process would: it has loaded nothing
        kernel = one.kernel(SOURCE.format(value=11))
        one.request(kernel)
        assert one.wait()
        assert not kernel.failure
        assert call(kernel) == 11
        file, source = sorted(tmp_path.rglob("spartan_ng_kernel_*"))
        assert source.name == f"{file.name}.py"
        assert source.read_text() == kernel.source
        found.append(file.read_bytes())
        file.write_bytes(broken(found[-1], how))
    assert found[0] == found[1] == found[2]


@pytest.mark.skipif(not object_files.are_read_here(), reason="LLVM loads kernels")
def test_a_kernel_on_disk_is_loaded_by_who_asks_for_it(tmp_path, monkeypatch, a_compiler):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for _ in range(2):
        one = a_compiler()
        kernel = one.kernel(SOURCE.format(value=12))
        one.request(kernel)
        found, thread = kernel.function, one._thread
        assert one.wait()
        assert call(kernel) == 12
    assert found is not None
    assert thread is None, "nothing is compiled"


def test_a_compiled_run_cuts_no_blocks_for_the_interpreter():
    x = sp.array(np.arange(20_000.0))
    cuts = []
    for kernels in ("compile", "interpret"):
        backend = EmbeddedBackend(2)
        with running_on(backend), config.override(small_bytes=0, kernels=kernels):
            np.testing.assert_array_equal((x * 2 + 1).compute(), np.arange(20_000.0) * 2 + 1)
            (program,) = backend._executor._programs.values()
            cuts.append([task.cut is None for task in program.tasks if task.box is not None])
    assert cuts == [[True], [False]]


def test_kernels_used_least_recently_go_first(tmp_path):
    for age, name in enumerate("abcd"):
        (tmp_path / name).mkdir()
        for end in ("", ".left.tmp"):
            file = tmp_path / name / f"spartan_ng_kernel_{name}{end}"
            file.write_bytes(bytes(100))
            os.utime(file, (10_000 - age, 10_000 - age))
    _thin_out(tmp_path, 400)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.slow
def test_another_process_finds_the_machine_code(tmp_path):
    program = f"""
from spartan_ng.kernels.compiled.compile import compiler
kernel = compiler.kernel({SOURCE.format(value=9)!r})
compiler.request(kernel)
assert compiler.wait(86_400.0) and kernel.function is not None, kernel.failure
print(compiler._process._process is None)
"""
    assert [run(program, tmp_path) for _ in range(2)] == ["False", "True"]


@pytest.mark.slow
def test_a_long_first_run_waits_for_its_kernels(tmp_path):
    """For those on disk, and for others where they pay; a short one is interpreted."""
    program = """
import numpy, spartan_ng as np
from spartan_ng.kernels import predicting
from spartan_ng.kernels.compiled import select
from spartan_ng.kernels.compiled.compile import compiler

np.config.small_bytes = 0
predicting.INTERPRETED_FLOPS_S = SPEED
chosen = []
choose = select.Tier.choose

def noted(*args):
    found = choose(*args)
    chosen.append(found is not None)
    return found

select.Tier.choose = noted
x = np.array(numpy.arange(100_000.0))
assert float((x * 2 + 1).max()) == 199_999.0
print(chosen[0], compiler._process._process is not None)
"""
    found = [run(program.replace("SPEED", s), tmp_path) for s in ("1e12", "1.0", "1e5", "1e12")]
    assert found == ["False False", "True True", "True False", "False False"]


def test_all_kernels_are_looked_at_once_in_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 150)
    folder = tmp_path / "version"
    folder.mkdir()
    for k in range(4):
        keep_code(folder, f"spartan_ng_kernel_{k}", bytes(68))
        thin_out(folder)
        assert len(list(folder.iterdir())) == k + 1  # the first look, at one of them, was the only one
    os.utime(tmp_path / "thinned", (0, 0))
    thin_out(folder)
    assert len(list(folder.iterdir())) == 1


def plan_of(node):
    plan = session.current().plan([node])[0].plan
    (stage,) = [s for s in plan.stages if isinstance(s, Fused)]
    return Tier(stage, tuple((0, n) for n in stage.domain))


def product_sum(n, factor):
    x = np.arange(n, dtype=float)
    a = build.constant(x)
    return build.fold("add", build.map_("multiply", build.map_("add", a, build.constant(factor)), a), (0,)), x


def operands(x):
    return [x, np.array(2.0)]


QUIET = {"divide": "ignore", "over": "warn"}


def test_the_first_runs_are_interpreted_and_hot_stages_compiled():
    node, x = product_sum(1000, 2.0)
    tier = plan_of(node)
    with config.override(kernels="auto"):
        assert tier.choose(operands(x), QUIET) is None
        tier.record(HOT_S / 2)
        assert tier.choose(operands(x), QUIET) is None
        tier.record(MISSED * HOT_S)
        tier.choose(operands(x), QUIET)  # asks for the kernel, whether it is there already or not
        assert wait_for_compiles()
        assert tier.choose(operands(x), QUIET) is not None


def test_modes():
    node, x = product_sum(1000, 2.0)
    tier = plan_of(node)
    with config.override(kernels="compile"):
        assert tier.choose(operands(x), QUIET) is not None
        assert tier.choose(operands(x), {"divide": "raise"}) is None
    with config.override(kernels="interpret"):
        assert tier.choose(operands(x), QUIET) is None
    with pytest.raises(OptionError, match="kernels"):
        config.kernels = "sometimes"


def test_a_failed_kernel_leaves_the_stage_interpreted(monkeypatch):
    node, x = product_sum(1001, 3.0)
    with config.override(kernels="compile"):
        first = session.evaluate([node])[0].value
        for kernel in compiler._kernels.values():
            monkeypatch.setattr(kernel, "failure", "broken")
            monkeypatch.setattr(kernel, "function", None)
        again = session.evaluate([node])[0].value
    np.testing.assert_allclose([first, again], ((x + 3.0) * x).sum(), rtol=1e-14)


def test_a_changed_scalar_needs_no_new_kernel():
    with config.override(kernels="compile"):
        for factor in (1.0, 2.0, 3.0):
            node, x = product_sum(5000, factor)
            np.testing.assert_allclose(
                session.evaluate([node])[0].value, ((x + factor) * x).sum(), rtol=1e-13
            )
            if factor == 1.0:
                known = len(compiler._kernels)
    assert len(compiler._kernels) == known


@pytest.mark.parametrize("is_there", [False, True])
def test_a_compiler_is_started_for_what_all_stages_missed(noted_compiler, monkeypatch, is_there):
    """A short program has its processors for itself; where a compiler is there, it is asked."""
    _, asked = noted_compiler
    monkeypatch.setattr(CompilerProcess, "is_there", is_there)
    with config.override(kernels="auto"):
        for factor in range(MISSED + 2):
            a = build.constant(np.arange(1000.0 + factor))
            node = build.map_(
                "subtract", build.map_("hypot", a, build.constant(2.0)), a
            )  # nobody else's kernel
            tier = plan_of(build.fold("add", node, (0,)))
            tier.record(1.01 * HOT_S)
            tier.choose(operands(np.arange(1000.0 + factor)), QUIET)
    early = "now" if is_there else "later"
    assert asked == [early] * (MISSED - 1) + ["now"] * 3
