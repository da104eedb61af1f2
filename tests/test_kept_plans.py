"""Plans that earlier processes left: found by all that they depend on, data alone, without the optimizer."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import grimp
import numpy as np
import pytest
from hypothesis import given
from msgspec import msgpack
from msgspec.structs import replace
from scipy import sparse

import spartan_ng as sp
from spartan_ng import kept_plans as module
from spartan_ng import starts
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.kept_plans import MAKERS, kept_plans
from spartan_ng.kernels.compiled import select
from spartan_ng.kernels.compiled.cache import _thin_out
from spartan_ng.kernels.compiled.compile import compiler
from spartan_ng.ops.functions import UserFunction
from spartan_ng.planner import Planned, Planner
from spartan_ng.starts import CACHE_VARIABLE
from spartan_ng.system.sealed import put_sealed
from spartan_ng.system.signs import signs_of
from spartan_ng.worker import executor
from spartan_ng.worker.scheduling import program
from tests.programs import Program, programs
from tests.sampling import examples
from tests.test_programs import check, running_on

MOST = 64
"""Plans that a process looks for."""
SAYS_NOTHING_OF_PLANS = frozenset(
    {"callers", "config", "errors", "garbage", "sinks", "system", "texts", "tracebacks"}
)
"""What the makers of plans import besides: options (those that count are a plan's settings), errors, sinks
(which are users' functions), what the system has."""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Where plans are kept in a test, which are asked no rules: one that is found was asked them before."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(config, "check", False)
    monkeypatch.setattr(module, "MOST", MOST)
    kept_plans.clear()
    yield tmp_path
    kept_plans.clear()


def planned(*roots: Any, makes: bool, backend: EmbeddedBackend | None = None) -> Planned:
    """What the planner of a new process has for roots, which makes a plan for them or does not; it ends."""
    backend = EmbeddedBackend(2) if backend is None else backend
    kept_plans.clear()
    asked = Planner(backend, recipes=False)
    with patch.object(asked, "_make", wraps=asked._make) as making:
        found, _ = asked.plan([root._node() for root in roots], None, 1)
    backend.close()
    kept_plans.put()
    assert making.called is makes
    return found


def files(folder: Path) -> list[Path]:
    """The plans that are kept."""
    return sorted(folder.rglob("spartan_ng_plan_*"))


PROGRAM = """
import sys
import numpy
import spartan_ng as np
x = np.asarray(numpy.linspace(-1, 1, 300_000)).persist()
y = np.asarray(numpy.linspace(1, 2, 300_000)).persist()
np.config.small_bytes = 0
{line}
print(sorted(m for m in sys.modules if m.startswith(("spartan_ng.optimizer.", "spartan_ng.plan."))))
print(numpy.asarray(found).sum().hex())
"""
LINES = {
    "sum": "found = (x * y * x).sum().compute()",
    "two results": "a, b = np.compute((x * y).sum(), (x - y).max()); found = a + b",
    "map": "found = (x * 2 + y).compute()",
    "mask": "found = x[x > 0].sum().compute()",
    "scan": "found = np.cumsum(x * y).compute()",
    "sort": "found = np.sort(x * y).compute()",
    "loop": "found = x\nfor _ in range(5):\n    found = (found * y - x).compute()",
    "table": "A = x.reshape(3000, 100); found = (A.T @ (A @ y[:100])).compute()",
    "turned": "A = x[:250_000].reshape(500, 500); found = (A + A.T).compute()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_the_next_start_imports_no_optimizer(name: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        CACHE_VARIABLE: str(tmp_path),
        "SPARTAN_NG_CHECK": "0",
        "SPARTAN_NG_KERNELS": "interpret",
    }
    told = []
    for _ in range(2):
        command = [sys.executable, "-c", PROGRAM.format(line=LINES[name])]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout.splitlines())
    (first, value), (second, again) = told
    assert value == again
    assert "spartan_ng.plan.lower" in first
    for part in (
        "plan.lower",
        "plan.cut",
        "plan.peak",
        "optimizer.pipeline",
        "optimizer.fusion.select",
        "algebra",
    ):
        assert part not in second


@examples(40)
@given(program=programs(most=12))
def test_a_plan_that_is_found_is_the_one_that_would_be_made(program: Program) -> None:
    """And computes what NumPy does."""
    plan = Planner.plan

    def compares(self: Planner, roots: Any, order: Any, workers: int) -> Any:
        found, leaves = plan(self, roots, order, workers)
        made = self._make(roots, self._settle(workers)[0], leaves)
        assert replace(found.plan, key="") == replace(made.plan, key="")
        assert (found.leaves, found.outputs, found.measured) == (made.leaves, made.outputs, made.measured)
        return found, leaves

    with pytest.MonkeyPatch.context() as patched, tempfile.TemporaryDirectory() as kept:
        patched.setenv(CACHE_VARIABLE, kept)
        patched.setattr(config, "check", False)
        patched.setattr(module, "MOST", MOST)
        kept_plans.clear()
        with running_on(EmbeddedBackend(2)):
            check(program)
        kept_plans.put()
        kept_plans.clear()
        patched.setattr(Planner, "plan", compares)
        with running_on(EmbeddedBackend(2)):
            check(program)


def test_what_a_plan_depends_on_has_a_place_each(folder: Path) -> None:
    x = np.arange(30_000.0)
    programs_ = {
        "one": lambda: sp.array(x) * 2,
        "another number's type": lambda: sp.array(x) * np.float32(2),
        "another shape": lambda: sp.array(x[1:]) * 2,
        "another dtype": lambda: sp.array(x.astype("f4")) * 2,
        "another function": lambda: sp.array(x) + 2,
        "another axis": lambda: sp.array(x.reshape(100, 300)).sum(axis=0),
        "and one more": lambda: sp.array(x.reshape(100, 300)).sum(axis=1),
        "all": lambda: sp.array(x.reshape(100, 300)).sum(),
    }
    with config.override(small_bytes=0):
        for make in programs_.values():
            planned(make(), makes=True)
        assert len(files(folder)) == len(programs_)
        for make in programs_.values():
            planned(make(), makes=False)
        with config.override(disabled_passes={"algebra"}):
            planned(programs_["one"](), makes=True)
        with config.override(threads=3):
            planned(programs_["one"](), makes=True)
        with config.override(fusion="off"):
            planned(programs_["one"](), makes=True)


def test_what_this_process_alone_knows_is_not_kept(folder: Path) -> None:
    x = sp.array(np.arange(30_000.0))
    places = [0] * 600 + list(range(300)), [*range(600), *range(300)]
    with config.override(small_bytes=0):
        own = build.map_(UserFunction(lambda block: block * 2), x._node(), dtype=np.dtype(float))
        planned(wrap_node(own), makes=True)
        assert not files(folder)
        planned(x * 3, makes=True, backend=EmbeddedBackend(2, 1 << 26))
        assert not files(folder)
        planned(sp.asarray(sparse.csr_array(([1.0] * 900, places))).sum(axis=0), makes=True)
        assert not files(folder)
        with config.override(check=True):
            planned(x * 5, makes=True)
        assert not files(folder)


@pytest.mark.parametrize(
    "how", ["empty", "cut off", "changed", "others may write", "sealed by others", "a function"]
)
def test_what_cannot_be_trusted_is_made_anew(folder: Path, how: str) -> None:
    x = sp.array(np.arange(30_000.0))
    with config.override(small_bytes=0):
        first = planned(x * 3, makes=True)
        (file,) = files(folder)
        content = file.read_bytes()
        if how == "empty":
            file.write_bytes(b"")
        elif how == "cut off":
            file.write_bytes(content[:-1])
        elif how == "changed":
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        elif how == "others may write":
            file.chmod(0o666)
        elif how == "sealed by others":
            put_sealed(file, b"\x93\x01\x02\x03")
        else:
            put_sealed(file, msgpack.encode((msgpack.encode({"u": ["os:system", "", None]}), (), ())))
        again = planned(x * 3, makes=True)
        assert replace(again.plan, key="") == replace(first.plan, key="")
        assert files(folder) == [file], "it was put there anew"
        planned(x * 3, makes=False)


def test_a_folder_of_others_is_left_alone(folder: Path) -> None:
    x = sp.array(np.arange(30_000.0))
    folder.chmod(0o777)
    with config.override(small_bytes=0):
        planned(x * 3, makes=True)
        assert files(folder) == []
        folder.chmod(0o700)
        planned(x * 3, makes=True)
        assert len(files(folder)) == 1


def test_no_folder_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = folder / "file"
    blocked.write_text("")
    monkeypatch.setenv(CACHE_VARIABLE, str(blocked))
    with config.override(small_bytes=0):
        planned(sp.array(np.arange(30_000.0)) * 3, makes=True)


def test_a_process_looks_for_so_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    with config.override(small_bytes=0), running_on(EmbeddedBackend(2)):
        for i in range(6):
            (sp.array(np.arange(30_000.0 + i)) * 2).compute()
    kept_plans.put()
    assert len(files(folder)) == 3


def test_plans_are_bounded_with_the_kernels(folder: Path) -> None:
    with config.override(small_bytes=0):
        for i in range(3):
            planned(sp.array(np.arange(30_000.0 + i)) * 2, makes=True)
    kept = files(folder)
    for age, file in enumerate(kept):
        os.utime(file, (1e9 - age, 1e9 - age))
    beside = starts._record().stat().st_size
    _thin_out(folder, kept[0].stat().st_size + beside)
    assert files(folder) == kept[:1]


def test_a_program_knows_whether_it_has_come_to_plans(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own or another's; what others have come to says nothing of it."""
    with config.override(small_bytes=0):
        known = []
        for age, program in enumerate(("one.py", "two.py", "three.py", "two.py")):
            monkeypatch.setattr(sys, "orig_argv", ["python", program])
            known.append(starts.came_to_plans())
            before = starts.earlier_plans()
            planned(sp.array(np.arange(30_000.0 + age // 2)) * 2, makes=not age % 2)
            assert starts.came_to_plans()
            assert len(starts.earlier_plans()) == 1
            assert starts.earlier_plans() != before
            os.utime(starts._record(), (1e9 + age, 1e9 + age))
        assert known == [False, False, False, True]
        monkeypatch.setattr(starts, "PROGRAMS", 2)
        monkeypatch.setattr(sys, "orig_argv", ["python", "four.py"])
        planned(sp.array(np.arange(40_000.0)) * 2, makes=True)
        for program, is_known in (
            ("one.py", False),
            ("three.py", False),
            ("two.py", True),
            ("four.py", True),
        ):
            monkeypatch.setattr(sys, "orig_argv", ["python", program])
            assert starts.came_to_plans() is is_known


AHEAD = {
    "sum": lambda x, y: [(x * y * x).sum()],
    "two results": lambda x, y: [(x * y).sum(), (x - y).max()],
    "map": lambda x, y: [x * 2 + y],
    "mask": lambda x, y: [x[x > 0].sum()],
    "rows": lambda x, y: [np.exp(x.reshape(100, 300)).sum(axis=1)],
    "product": lambda x, y: [x.reshape(100, 300).T @ (x.reshape(100, 300) @ y[:300])],
    "turned": lambda x, y: [x[:10_000].reshape(100, 100) * 2 + x[:10_000].reshape(100, 100).T],
}


@pytest.mark.parametrize("name", AHEAD)
def test_what_a_program_came_to_is_ready_when_it_starts_again(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its plans, what runs them, and how kernels are laid out for them; who runs them asks for nothing."""
    monkeypatch.setattr(select, "SOON_S", 0.0)
    monkeypatch.setattr(compiler, "wish", lambda kernels, missed_s: None)
    x, y = (sp.array(np.linspace(a, 2, 30_000)) for a in (-1, 1))
    with config.override(small_bytes=0, kernels="auto"):
        roots = [root._node() for root in AHEAD[name](x, y)]
        planned(*AHEAD[name](x, y), makes=True)
        backend = EmbeddedBackend(2)
        asked = Planner(backend, recipes=False)
        with (
            patch.object(program, "load_products") as loading,
            patch.object(program, "find_libraries") as found,
        ):
            asked.load_ahead()
        assert loading.called is (name == "product"), "what multiplies is imported ahead where it is needed"
        assert found.called is loading.called
        with (
            patch.object(kept_plans, "find", side_effect=AssertionError("it was read ahead")),
            patch.object(executor, "Program", side_effect=AssertionError("it was made ahead")),
            patch.object(select, "prepare_stage", side_effect=AssertionError("it was laid out ahead")),
        ):
            known, leaves = asked.plan(roots, None, 1)
            backend.run(known.plan, [leaves[n] for n in known.leaves])
        backend.close()


def test_a_record_of_steps_stays_until_there_are_plans(folder: Path) -> None:
    starts.note_steps()
    for _ in range(2):
        assert starts.earlier_plans() == []
        assert (starts.came_to_steps(), starts.came_to_plans()) == (True, False)
    starts.note_plans(["00" * 32])
    starts.note_steps()
    assert (starts.earlier_plans(), starts.came_to_plans()) == (["00" * 32], True)


def test_what_the_first_plan_takes_is_ready_when_a_program_starts_again(folder: Path) -> None:
    """Memory for its results; not for those of later plans, which may have that of these."""
    x, y = (sp.array(np.linspace(a, 2, 1_000_000)) for a in (-1, 1))
    with config.override(small_bytes=0):
        first, second = x * 2 + y, (x * y - 3).reshape(1000, 1000)
        planned(first, makes=True)
        came_to = starts.earlier_plans()
        planned(second, makes=True)
        starts.note_plans(came_to + starts.earlier_plans())
        backend = EmbeddedBackend(3)
        recycler = backend._recycler
        assert recycler.free_bytes == 0
        Planner(backend, recipes=False).load_ahead()
        assert 8_000_000 <= recycler.free_bytes < 16_000_000
        backend.close()


def test_plans_of_few_versions_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing goes that is not ours."""
    theirs = folder / "plans_2026", folder / f"plans_{'0' * 16}" / "theirs"
    for place in theirs:
        place.mkdir(parents=True)
        os.utime(place.parent, (1, 1))
    for age in range(12):
        monkeypatch.setattr(module, "_version", lambda age=age: f"{age + 1:016}")
        with config.override(small_bytes=0):
            planned(sp.array(np.arange(30_000.0)) * 2, makes=True)
        os.utime(folder / f"plans_{age + 1:016}", (1e9 + age, 1e9 + age))
    kept = sorted(place.parent.name for place in files(folder))
    assert kept == [f"plans_{age + 1:016}" for age in range(12 - module.VERSIONS, 12)]
    assert all(place.is_dir() for place in theirs)


def test_another_version_of_a_file_is_another_sign(tmp_path: Path) -> None:
    room = tmp_path / "room" / "inner"
    room.mkdir(parents=True)
    one = room / "one.py"
    one.write_text("a")
    (room / "__pycache__").mkdir()
    (room / "__pycache__" / "one.py").write_text("")
    found = [signs_of([tmp_path / "room"])]
    one.write_text("ab")
    found.append(signs_of([tmp_path / "room"]))
    os.utime(one, ns=(1, 1))
    found.append(signs_of([tmp_path / "room"]))
    (room / "two.py").write_text("")
    found.append(signs_of([tmp_path / "room"]))
    assert [len(signs) for signs in found] == [1, 1, 1, 2]
    assert len({tuple(signs) for signs in found}) == 4


def test_all_that_makes_plans_is_in_their_version() -> None:
    graph = grimp.build_graph("spartan_ng", exclude_type_checking_imports=True)
    makers = ("optimizer.pipeline", "plan.lessons", "plan.lower", "plan.peak")
    found = set().union(*(graph.find_upstream_modules(f"spartan_ng.{name}") for name in makers))
    rooms = {name.split(".")[1] for name in found if "." in name}
    assert rooms - SAYS_NOTHING_OF_PLANS <= {name.removesuffix(".py") for name in MAKERS}
