"""`config.debug` logs what ran, errors and profiles name steps, and the page on debugging leads to faults."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import OptionError
from spartan_ng.graph import build
from spartan_ng.kernels import rows
from spartan_ng.kernels.compiled.formulas import FORMULAS
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.optimizer import pipeline
from spartan_ng.texts import renamed
from tests.test_programs import running_on

PAGE = (Path(__file__).parent.parent / "docs" / "debugging.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
A = np.random.default_rng(0).standard_normal((300, 200))


def logged(caplog, level: int) -> str:
    """What a level logs of a program with a sum of maps, and a sort."""
    caplog.clear()
    with caplog.at_level(logging.INFO), config.override(small_bytes=0, debug=level):
        x = sp.array(A)
        sp.compute((x * 2 + 1).sum(), sp.sort(x, axis=0))
    return "\n".join(r.getMessage() for r in caplog.records if r.name == "spartan_ng.debug")


@pytest.mark.parametrize("workers", [0, 3])
def test_each_level_says_more(workers: int, caplog) -> None:
    with running_on(SimulatedBackend(workers) if workers else EmbeddedBackend(2)):
        texts = [logged(caplog, level) for level in range(5)]
    assert texts[0] == ""
    sure = ["planned in", "cut", "predicted", "# in blocks of"]
    for level, text in enumerate(texts[1:]):
        assert [s in text for s in sure] == [k <= level for k in range(4)], text
        assert "multiply > add" in text
    assert len(texts[2].splitlines()) > len(texts[1].splitlines())


def test_work_of_one_call_is_logged(caplog) -> None:
    x = sp.array(np.ones((1000, 200)))
    with running_on(EmbeddedBackend(2)), caplog.at_level(logging.INFO), config.override(debug=1):
        (x.T @ x).compute()
    assert re.search(r"NumPy at once, in .*: <join_update:contract", caplog.text)


@pytest.mark.parametrize("text", ["5", "-1", "yes"])
def test_a_level_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="debug"):
        config.debug = text  # type: ignore[assignment]
    found = subprocess.run(
        [sys.executable, "-c", "import spartan_ng"],
        env={**os.environ, "SPARTAN_NG_DEBUG": text},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "SPARTAN_NG_DEBUG" in found.stderr
    assert found.returncode


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_page_run(command: str, tmp_path) -> None:
    (tmp_path / "program.py").write_text(PYTHON[0])
    setting, rest = re.findall(r"(?:(\w+=\d) )?python (.*)", command)[0]
    extra = dict([setting.split("=")]) if setting else {}
    found = subprocess.run(
        [sys.executable, *rest.split()],
        env={**os.environ, **extra},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(found.stdout.split()[0]) > 0
    level = int(extra.get("SPARTAN_NG_DEBUG", 0))
    assert ("spartan_ng.debug plan" in found.stderr) == (level > 0)
    assert ("@compiled" in found.stderr) == (level == 4)


def mends(expected: np.ndarray, program) -> list[dict]:
    """What the page's own function says."""
    namespace: dict = {"np": sp, "numpy": np, "program": program, "X": A}
    code = next(block for block in PYTHON if "def mends" in block)
    exec(code.partition("\n\nx = ")[0], namespace)
    return namespace["mends"](program, expected)


@pytest.mark.parametrize("name", [n for n, _ in pipeline.PASSES if n != "merge_again"])
def test_the_page_leads_to_a_broken_pass(name: str, monkeypatch) -> None:
    """A pass that negates what it is given is the only one whose absence mends the answer."""
    right = dict(pipeline.PASSES)[name]

    def wrong(roots):
        return [build.map_("negative", root) for root in right(roots)]

    broken = tuple((n, wrong if n == name else step) for n, step in pipeline.PASSES)
    monkeypatch.setattr("spartan_ng.optimizer.pipeline.PASSES", broken)
    with running_on(EmbeddedBackend(2)):
        assert mends(A.sum() + 1, lambda: sp.array(A).sum() + 1) == [{"disabled_passes": {name}}]


@pytest.mark.slow
def test_the_page_leads_to_broken_kernels(monkeypatch) -> None:
    """A loop that goes wrong after its trial: without kernels the answer is right."""
    monkeypatch.setattr("spartan_ng.kernels.compiled.select._flaw", lambda *args: "")
    monkeypatch.setitem(FORMULAS, "add", replace(FORMULAS["add"], text="({0} - {1})"))
    with running_on(EmbeddedBackend(2)), config.override(kernels="compile"):
        found = mends((A * 2 + 1).sum(), lambda: (sp.array(A) * 2 + 1).sum())
    assert {"kernels": "interpret"} in found
    assert {"tiling": "single"} not in found


@pytest.mark.parametrize("kernels", ["compile", "interpret"])
def test_the_page_leads_to_a_broken_step(kernels: str, monkeypatch) -> None:
    """A fault that no switch mends, in a table: the page's steps find it."""
    monkeypatch.setitem(ELEMENTWISE, "hypot", replace(ELEMENTWISE["hypot"], call=np.logaddexp))
    namespace: dict = {"np": sp, "numpy": np}
    exec(next(b for b in PYTHON if "def first_wrong" in b).partition("\n\nassert ")[0], namespace)

    def steps(xp, x):
        yield "doubled", x * 2
        yield "lengths", xp.hypot(x * 2, 3.0)
        yield "sums", xp.hypot(x * 2, 3.0).sum(0)

    with running_on(EmbeddedBackend(2)), config.override(kernels=kernels):
        assert mends(np.hypot(A, 3.0).sum(0), lambda: sp.hypot(sp.array(A), 3.0).sum(0)) == []
        assert namespace["first_wrong"](steps, A) == "lengths"


@pytest.mark.slow
def test_the_page_runs_as_it_is() -> None:
    """Its own assertions hold, each block after those before it."""
    namespace: dict = {"__name__": "page"}
    for block in PYTHON:
        exec(block, namespace)


def test_a_plan_is_told_with_the_lines_that_asked_for_it(caplog) -> None:
    """And its stages with the user's own functions."""

    def spread(line):
        return line.max() - line.min()

    with (
        running_on(SimulatedBackend(2)),
        config.override(small_bytes=0, debug=2),
        caplog.at_level(logging.INFO),
    ):
        sp.apply_along_axis(spread, 1, sp.array(A) * 2).compute()
    told = [r.getMessage() for r in caplog.records if "join_update spread over" in r.getMessage()]
    assert len(told) == 1
    assert re.match(r"plan \d+, for \S*test_debugging\.py:\d+: ", told[0])


def test_errors_name_the_step_and_the_stage(monkeypatch) -> None:
    of_arrays = rows._ufunc

    def broken(row):
        right = of_arrays(row)

        def evaluate(registers, block, out):
            if row.fn == "tanh":
                raise ZeroDivisionError("broken by the test")
            return right(registers, block, out)

        return evaluate

    monkeypatch.setattr(rows, "_ufunc", broken)
    with running_on(EmbeddedBackend(1)), config.override(small_bytes=0, kernels="interpret"):
        x = sp.array(A)
        with pytest.raises(ZeroDivisionError) as found:
            (sp.tanh(x * 2) + 1).sum().compute()
    step, stage = found.value.__notes__
    assert re.search(r"in r\d+ = tanh\(r\d+\), float64 \(300, 200\), on the block", step)
    assert "in stage 0 of 1, 'multiply > tanh > add" in stage
    assert any(f.name.startswith("tanh (stage multiply") for f in found.traceback)


@pytest.mark.parametrize("debug", [0, 1])
def test_an_error_of_a_programs_function_names_its_step(debug):
    def picky(block):
        if block.size > 1 and block.max() > 15:  # not where its dtype is asked for
            raise KeyError("16 is too many")
        return block

    options = config.override(small_bytes=0, debug=debug)
    with running_on(EmbeddedBackend(1)), options, pytest.raises(KeyError) as found:
        (sp.map(picky, sp.arange(20.0)) + 1).sum().compute()
    step, stage = found.value.__notes__
    assert re.search(
        r"in r\d+ = picky\(r\d+\) at .*test_debugging.py:\d+, float64 \(20,\), on the block", step
    )
    assert stage.startswith("in stage 0 of 1, ")


PROFILED = """
import cProfile
import spartan_ng as np
np.config.small_bytes, np.config.kernels = 0, "interpret"
x = np.ones((300, 200))
profile = cProfile.Profile()
profile.runcall(np.compute, np.tanh(x * 2).sum())
profile.create_stats()
print(*(name for _, _, name in profile.stats), sep="\\n")
"""


@pytest.mark.slow
def test_profiles_name_steps_and_kernels() -> None:
    """In a process of its own: a profile of one with many threads was seen to stand still."""
    done = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, check=True)
    assert any(n.startswith("tanh (stage multiply > tanh") for n in done.stdout.splitlines())


def test_a_renamed_function_is_the_same() -> None:
    def outer(k):
        def inner(a, b=2):
            return a + b + k

        return inner

    function = renamed(outer(3), "of another name")
    assert (function(1), function(1, 5), function.__name__) == (6, 9, "of another name")
