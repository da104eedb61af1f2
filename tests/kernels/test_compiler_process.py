"""The compiler's process: what it needs and leaves alone, how it ends, and how what it makes is called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.kernels.compiled import compile as compiling
from spartan_ng.kernels.compiled import native
from spartan_ng.kernels.compiled import process as process_module
from spartan_ng.kernels.compiled.compile import Compiler
from spartan_ng.kernels.compiled.process import MOST_DEATHS, CompileError, CompilerProcess
from spartan_ng.starts import CACHE_VARIABLE
from spartan_ng.system import object_files
from tests.waiting import until

HEAD = """\
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled, local


@compiled
def kernel(table):
    """
STORE = HEAD + "table[0, 0] = {}\n"
SET = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "MY_PYTHON", "PYTHONHOME", "PYTHONPLATLIBDIR")
UNSET = ("PYTHONPATH", "PYTHONWARNINGS", "NUMBA_DISABLE_JIT")
"""Variables that reach the process, and those that do not."""
ENDLESS = "open({!r}, 'w').close()\nwhile True:\n    pass\n"
"""Keeps the compiler busy for ever, once it has made a file."""


@pytest.fixture(scope="module")
def shared():
    """A process for tests that leave it as it was."""
    one = CompilerProcess()
    yield one
    one.stop()


@pytest.fixture
def process():
    one = CompilerProcess()
    yield one
    one.stop()


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    one = Compiler()
    yield one
    one.stop()


def requested(compiler, source):
    kernel = compiler.kernel(source)
    compiler.request(kernel)
    return kernel


def compiled(compiler, source):
    kernel = requested(compiler, source)
    assert compiler.wait()
    return kernel


def result(function):
    table = np.zeros((1, 3), np.int64)
    function(table)
    return table[0, 0]


def is_there(pid):
    """Whether a process runs; one that has ended may still have to be waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_process_compiles_one_kernel_after_the_other(shared):
    for value in (3, 4):
        name = f"kernel_{value}"
        assert result(native.load_code(name, shared.compile(name, STORE.format(value)))) == value


@pytest.mark.slow
def test_what_it_makes_is_the_same_every_time(shared):
    codes = [shared.compile("kernel", STORE.format(5)) for _ in range(2)]
    shared.rest()
    codes.append(shared.compile("kernel", STORE.format(5)))
    assert codes[0] == codes[1] == codes[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("table[0, 0] = undefined", "undefined"),
        ("table[0, 0] = np.zeros(3)[0]", "zeros"),
        ("print(table[0, 0])", "LookupError: the kernel calls"),
        ("if", "SyntaxError"),
    ],
)
def test_what_cannot_be_compiled_says_why(shared, text, words):
    with pytest.raises(CompileError, match=words):
        shared.compile("kernel", HEAD + text + "\n")
    assert result(native.load_code("kernel", shared.compile("kernel", STORE.format(6)))) == 6


@given(st.dictionaries(st.sampled_from(SET + UNSET), st.text("abc/:", max_size=5)))
def test_it_has_all_variables_but_the_interpreters_and_numbas(variables):
    """What a system needs to load libraries, or says where files go, reaches it."""
    asked = {}

    def started(command, **options):
        asked.update(options["env"])
        raise OSError("not now")

    told = patch.dict(os.environ, variables, clear=True)
    with told, patch.object(subprocess, "Popen", started), pytest.raises(CompileError, match="not now"):
        process_module._started()
    assert asked == {k: v for k, v in variables.items() if k in SET}


@pytest.mark.slow
def test_it_prints_nothing_and_reads_no_settings(monkeypatch, tmp_path, capfd, process):
    for name, value in {
        "PYTHONWARNINGS": "error",
        "PYTHONPATH": str(tmp_path),
        "PYTHONINSPECT": "1",
        "NUMBA_DISABLE_JIT": "1",
        "NUMBA_DUMP_ASSEMBLY": "1",
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "numba.py").write_text("raise ImportError('not this one')")
    (tmp_path / ".numba_config.yaml").write_text("disable_jit: 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    loud = STORE.format(8) + "\nprint('loud', flush=True)\n"
    assert result(native.load_code("kernel", process.compile("kernel", loud))) == 8
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_it_starts_where_the_working_directory_is_gone(monkeypatch, tmp_path, process):
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    there.rmdir()
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert process.compile("kernel", STORE.format(1))


@pytest.mark.parametrize("executable", ["", None, "/nowhere/python3", "/bin/false"])
def test_without_an_interpreter_nothing_is_compiled(monkeypatch, compiler, executable):
    monkeypatch.setattr(sys, "executable", executable)
    kernel = compiled(compiler, STORE.format(1))
    assert kernel.function is None
    assert kernel.reason.startswith("the compiler")


def test_frozen_programs_do_not_start_themselves(monkeypatch, process):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(CompileError, match="no interpreter to start"):
        process.compile("kernel", STORE.format(1))


@pytest.mark.slow
@pytest.mark.some(1)
def test_a_killed_process_is_followed_by_another(compiler, tmp_path):
    assert compiled(compiler, STORE.format(1)).function is not None
    busy = tmp_path / "busy"
    slow, next_one = requested(compiler, ENDLESS.format(str(busy))), requested(compiler, STORE.format(2))
    pid = compiler._process._process.pid
    until(busy.exists)
    os.kill(pid, signal.SIGKILL)
    assert compiler.wait()
    assert slow.failure == "the compiler's process was killed by SIGKILL"
    assert result(next_one.function) == 2
    until(lambda: not is_there(pid))


def test_a_process_that_always_dies_is_left_alone(monkeypatch, compiler, tmp_path):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho start >> {tmp_path}/starts\nexit 3\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    found = [compiled(compiler, STORE.format(i)).failure for i in range(MOST_DEATHS + 2)]
    assert found[:MOST_DEATHS] == ["the compiler's process ended with status 3"] * MOST_DEATHS
    assert found[MOST_DEATHS:] == [f"the compiler's process died {MOST_DEATHS} times in a row"] * 2
    assert len((tmp_path / "starts").read_text().split()) == MOST_DEATHS


@pytest.mark.slow
def test_an_idle_process_ends_and_comes_back(monkeypatch, compiler):
    monkeypatch.setattr(compiling, "IDLE_S", 0.05)
    assert compiled(compiler, STORE.format(1)).function is not None
    until(lambda: compiler._process._process is None)
    assert result(compiled(compiler, STORE.format(2)).function) == 2


@pytest.mark.slow
def test_a_process_that_has_compiled_many_kernels_is_followed_by_another(monkeypatch, process):
    monkeypatch.setattr(process_module, "MOST_KERNELS", 3)
    pids = []
    for value in range(1, 7):
        assert result(native.load_code("kernel", process.compile("kernel", STORE.format(value)))) == value
        pids.append(process._process.pid if process._process is not None else None)
    assert pids[0] == pids[1] != pids[3] == pids[4]
    assert pids[2] is pids[5] is None


def test_an_interrupt_does_not_reach_it(shared):
    shared.compile("kernel", STORE.format(1))
    pid = shared._process.pid
    assert os.getpgid(pid) != os.getpgrp()
    assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.slow
def test_it_inherits_no_files(tmp_path, process):
    with (tmp_path / "open").open("w") as f:
        os.set_inheritable(f.fileno(), True)
        process.compile("kernel", STORE.format(1))
        held = [p.resolve() for p in Path(f"/proc/{process._process.pid}/fd").iterdir()]
    assert tmp_path / "open" not in held


PROGRAM = f"""
import os, signal, sys
from spartan_ng.kernels.compiled.compile import compiler
from tests.waiting import until
ready = compiler.kernel({STORE.format(1)!r})
compiler.request(ready)
assert compiler.wait(86_400.0) and ready.function is not None, ready.failure
busy = sys.argv[1]
compiler.request(compiler.kernel({ENDLESS!r}.format(busy)))
until(lambda: os.path.exists(busy))
print(compiler._process._process.pid, flush=True)
"""


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize(
    "end",
    ["", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "os.fork() or signal.pause(); os._exit(0)"],
)
def test_it_ends_with_its_parent_whatever_it_is_doing(tmp_path, end):
    paths = os.pathsep.join(p or "." for p in sys.path)
    done = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM + end, str(tmp_path / "busy")],
        env={**os.environ, CACHE_VARIABLE: str(tmp_path), "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert done.stdout is not None
        pid = int(done.stdout.readline())
        done.wait()
        until(lambda: not is_there(pid))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(done.pid, signal.SIGKILL)
        _, errors = done.communicate()
    assert not errors


@pytest.mark.slow
def test_a_forked_process_compiles_for_itself(tmp_path):
    program = f"""
import os
from spartan_ng.kernels.compiled.compile import compiler
compiler.request(compiler.kernel({STORE.format(1)!r}))
pid = os.fork()
kernel = compiler.kernel({STORE.format(1)!r})
compiler.request(kernel)
assert compiler.wait(86_400.0) and kernel.function is not None, kernel.failure
if pid:
    assert os.waitpid(pid, 0)[1] == 0
"""
    paths = os.pathsep.join(p or "." for p in sys.path)
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", program],
        env={**os.environ, CACHE_VARIABLE: str(tmp_path), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("loads", [True, False])
def test_the_process_that_computes_never_imports_the_compiler(tmp_path, loads):
    """Nor what loads machine code, where the system's is loaded without it: with it the same kernels run."""
    own = loads and object_files.are_read_here()
    program = """
import sys
import numpy
import spartan_ng as np
assert not {"numba", "llvmlite"} & set(sys.modules)
from spartan_ng.system import object_files
if not OWN:
    object_files.are_read_here = lambda: False
from spartan_ng.config import config
config.small_bytes = 0
x = np.asarray(numpy.arange(10000.0))
for kernels in ("compile", "compile", "auto"):
    config.kernels = kernels
    assert float((np.exp(-x) * x).sum()) > 0
    assert float((x * x - x).max()) > 0
from spartan_ng.kernels.compiled.compile import compiler
print(sum(k.function is not None for k in compiler._kernels.values()))
print("numba" in sys.modules, "llvmlite" in sys.modules)
"""
    paths = os.pathsep.join(p or "." for p in sys.path)
    environment = {**os.environ, CACHE_VARIABLE: str(tmp_path), "PYTHONPATH": paths}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("OWN", str(own))],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.stderr
        ready, modules = done.stdout.splitlines()
        assert int(ready) > 1
        assert modules == f"False {not own}"


def test_threads_call_a_kernel_side_by_side(shared):
    lines = "here = array_at(local(64), (8,), np.int64)", "here[:] = table[0, 1]", "table[0, 0] = here.sum()"
    source = HEAD + "\n    ".join([*lines, ""])
    function = native.load_code("kernel", shared.compile("kernel", source))
    tables = [np.array([[0, i, 0]]) for i in range(4)]

    def call(table):
        for _ in range(1000):
            function(table)

    threads = [threading.Thread(target=call, args=(t,)) for t in tables]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [t[0, 0] for t in tables] == [0, 8, 16, 24]


@pytest.mark.parametrize("table", [np.zeros((4, 3), np.int64)[:, ::2], np.zeros((3, 4), np.int64).T])
def test_tables_are_contiguous(shared, table):
    function = native.load_code("kernel", shared.compile("kernel", STORE.format(1)))
    with pytest.raises((TypeError, ValueError, BufferError)):
        function(table)


def test_what_is_done_meanwhile_may_fail(shared):
    """The answer that nobody has read is nobody else's."""

    def fails():
        raise KeyError("meanwhile")

    done = []
    shared.compile("kernel", STORE.format(4), lambda: done.append(1))
    with pytest.raises(KeyError):
        shared.compile("kernel", STORE.format(5), fails)
    assert done == [1]
    assert result(native.load_code("kernel", shared.compile("kernel", STORE.format(6)))) == 6


@pytest.mark.slow
def test_the_loader_is_not_waited_for_before_the_compiler_has_its_work(tmp_path):
    """The folder's name asks neither LLVM nor the list of what is installed."""
    program = """
import sys
from spartan_ng.kernels.compiled import compile as compiling
seen, real = [], compiling.CompilerProcess.compile
def observed(*given):
    seen.append([name for name in ("llvmlite.binding", "importlib.metadata") if name in sys.modules])
    return real(*given)
compiling.CompilerProcess.compile = observed
import numpy, spartan_ng as np
with np.config.override(kernels="compile", small_bytes=0):
    np.exp(np.asarray(numpy.ones(1000)) * 2).sum().compute()
print(seen[0])
"""
    environment = {**os.environ, CACHE_VARIABLE: str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr
