"""What programs leave to be compiled after their end, and who does it; when what is kept is used at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import get_context
from pathlib import Path

import pytest

from spartan_ng.config import config, environment_variable
from spartan_ng.kernels.compiled import compile as compiling
from spartan_ng.kernels.compiled import heir, trust
from spartan_ng.kernels.compiled.cache import (
    find,
    keep_code,
    kernel_name,
    waiting_sources,
    want,
)
from spartan_ng.kernels.compiled.compile import Compiler, Kernel
from spartan_ng.kernels.compiled.process import CompilerProcess
from spartan_ng.starts import CACHE_VARIABLE
from spartan_ng.system.files import locked
from tests.waiting import until

SHORT = """\
import numpy
import spartan_ng as np
from spartan_ng.kernels.compiled.compile import compiler

np.config.threads, np.config.small_bytes = 2, 0
x = np.asarray(numpy.arange(8_000_000.0) % 7)
float((x * 3 + x / 5 - x * x).sum())
compiler.wait()
wishes = len(compiler._wishes) + len(compiler._later)
print(sum(k.function is not None for k in compiler._kernels.values()), wishes)
"""
"""A program that works for less than it would take to compile for it. What it asks for it has in the end: how
long it waits for that while it works is a matter of how busy the machine is."""


def run(tmp_path: Path, settings: Mapping[str, str] | None = None) -> list[int]:
    """The kernels that the program asked for and has, and those that it wished for; its folder is its own."""
    told = {**os.environ, CACHE_VARIABLE: str(tmp_path), **(settings or {})}
    done = subprocess.run([sys.executable, "-c", SHORT], env=told, capture_output=True, text=True, check=True)
    assert not done.stderr
    return [int(n) for n in done.stdout.split()]


def kept(tmp_path: Path) -> list[Path]:
    return [f for f in tmp_path.glob("*/spartan_ng_kernel_*") if not f.suffix]


@pytest.mark.slow
def test_a_short_program_has_its_kernels_from_the_second_start_on(tmp_path: Path) -> None:
    assert run(tmp_path) == [0, 1]
    until(lambda: kept(tmp_path) and not list(tmp_path.glob("*/*.wanted")))
    assert run(tmp_path) == [1, 0]
    (code,) = kept(tmp_path)
    assert code.with_suffix(".py").exists()


@pytest.mark.slow
def test_one_start_compiles_all_ahead(tmp_path: Path) -> None:
    assert run(tmp_path, {environment_variable("kernels"): "compile"}) == [1, 0]
    assert run(tmp_path) == [1, 0]


def coded(name: str, source: str) -> bytes:
    if "bad" in source:
        raise ValueError(source)
    return f"{source}code".encode()


def inherited(folder: Path) -> None:
    """What an heir does, in a process of its own: it bounds that."""
    process = get_context("fork").Process(target=heir.inherit, args=(folder, coded))
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.mark.slow
def test_an_heir_compiles_all_that_waits(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    want(tmp_path, ["a = 1\n", "bad\n", "b = 2\n", "c = 3\n"])
    keep_code(tmp_path, kernel_name("c = 3\n"), b"long there")
    inherited(tmp_path)
    assert not waiting_sources(tmp_path)
    found = [find(tmp_path, kernel_name(s)) for s in ("a = 1\n", "bad\n", "b = 2\n", "c = 3\n")]
    assert found == [b"a = 1\ncode", None, b"b = 2\ncode", b"long there"]


def test_there_is_one_heir_at_a_time(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    want(tmp_path, ["a = 1\n"])
    with locked(str(tmp_path / heir.LOCK)):
        inherited(tmp_path)
        assert len(waiting_sources(tmp_path)) == 1
    inherited(tmp_path)
    assert not waiting_sources(tmp_path)


def test_an_heir_does_little_at_a_time_and_the_hottest_of_the_last_program_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program has wished for a hundred of is not compiled beside its next start, all at once."""
    tmp_path.chmod(0o700)
    want(tmp_path, ["old = 1\n", "old = 2\n"])
    monkeypatch.setattr(compiling, "start_heir", lambda folder: None)
    one = Compiler()
    monkeypatch.setattr(one, "_directory", tmp_path)
    for source, missed_s in (("cool = 1\n", 0.1), ("hot = 1\n", 3.0), ("warm = 1\n", 0.5)):
        one.wish([one.kernel(source)], missed_s)
    one.wish([one.kernel("cool = 1\n")], 0.2)
    one.end()
    monkeypatch.setattr(heir, "ENOUGH_CPU_S", 0.0)
    order = ["hot = 1\n", "warm = 1\n", "cool = 1\n", "old = 1\n", "old = 2\n"]
    for left in range(len(order) - 1, -1, -1):
        inherited(tmp_path)
        assert [file.read_text() for file in waiting_sources(tmp_path)] == order[-left:][:left]


def test_nothing_waits_that_is_not_what_it_is_called(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    changed, others = want(tmp_path, ["a = 1\n", "b = 2\n"])
    changed.write_text("a = 2\n")
    others.chmod(0o666)
    inherited(tmp_path)
    assert not waiting_sources(tmp_path)
    assert not any(find(tmp_path, kernel_name(f"{s}\n")) for s in ("a = 1", "a = 2", "b = 2"))


@pytest.mark.parametrize("free", [True, False])
def test_who_does_not_wait_for_a_lock_is_told(free: bool, tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    if free:
        with locked(path, waits=False) as mine:
            assert mine
        return
    with locked(path), locked(path, waits=False) as mine:
        assert not mine


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_warm_kernel_is_used_if_it_lies_on_disk_and_wished_for_if_not(
    is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not warm is neither; a hot one is compiled."""
    asked: list[str] = []

    class Noted:
        kernel = staticmethod(Kernel)
        is_kept = staticmethod(lambda kernel: is_kept)
        wish = staticmethod(lambda kernels, missed_s: asked.append("wish"))
        request = staticmethod(lambda kernel: asked.append("request"))

    monkeypatch.setattr(compiling, "compiler", Noted)
    monkeypatch.setattr(trust, "WARM", 8)
    heat, found = trust.Heat(80), []
    with config.override(kernels="auto"):
        for work in (9, 1, 69, 1):
            if heat.is_warmed(work):
                assert trust.at_hand("a = 1\n", None, lambda f: "", "a kernel", heat=heat) is None
            found.append(asked[-1:])
    warm = "request" if is_kept else "wish"
    assert found == [[], [warm], [warm], ["request"]]


@pytest.mark.parametrize(
    ("has_compiled", "expected_s", "waits_s"),
    [(False, 1.2, None), (False, 2.0, 0.5), (True, 0.1, None), (True, 1.2, 0.3)],
)
def test_a_compiler_that_is_there_is_waited_for_in_shorter_runs(
    has_compiled: bool, expected_s: float, waits_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run waits for a quarter of its time, where the kernels are expected by then."""
    waited: list[float] = []
    one = Compiler()
    monkeypatch.setattr(CompilerProcess, "has_compiled", has_compiled)
    monkeypatch.setattr(one, "is_kept", lambda kernel: False)
    monkeypatch.setattr(one, "_wait_for", lambda kernels, timeout_s: waited.append(timeout_s))
    one.wait_if_worth([Kernel("a = 1\n")], expected_s)
    assert waited == ([] if waits_s is None else [waits_s])
