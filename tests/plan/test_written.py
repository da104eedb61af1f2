"""Explanations say in which lines of the user's program the steps were written that a stage does."""

import functools
import gc
import os
import sys
import sysconfig
import threading
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session as sessions
from spartan_ng.api.core.holders import written_at
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.callers import UserLine, listed_places
from spartan_ng.cli import main
from spartan_ng.graph.node import topological
from spartan_ng.ops.functions import UserFunction
from tests.sampling import examples

FUNCTIONS = ("exp", "sin", "tanh", "square", "floor", "cos", "sign", "absolute", "negative", "sqrt")


@pytest.fixture(autouse=True)
def planned():
    """All is planned, and cut for four workers."""
    before = sessions.current()
    sessions.use(SimulatedBackend(4))
    with sp.config.override(small_bytes=0):
        yield
    sessions._session = before


def run(text, file="/home/user/program.py", **names):
    """What a program of the user's has left behind."""
    known = {"np": sp, "numpy": numpy, **names}
    exec(compile(text, file, "exec"), known)
    return known


def written(explained):
    return [stage.written for stage in explained.stages]


def numbers(stage):
    """The numbers of a stage's lines, all of which are in the program."""
    file, spans = stage.written.split(":")
    assert file == "program.py"
    ends = [[*map(int, span.split("-"))] for span in spans.split(", ")]
    return {n for span in ends for n in range(span[0], span[-1] + 1)}


FORMS = {
    "plain": "x = np.{f}(x)",
    "in place": "np.{f}(x, out=x)",
    "numpy": "x = numpy.{f}(x)",
    "lines": "x = (\n    np.{f}(\n        x\n    )\n)",
    "function": "def made(y):\n    return np.{f}(y)\nx = [made(y) for y in [x]][0]",
    "copied": "x = np.{f}(x)\nx = x.copy()",
    "loop": "for y in [x, x]:\n    x = np.{f}(y)",
    "viewed": "x = np.{f}(x)[::-1]",
}
"""Ways to write a call of `f`."""


@examples(25)
@given(
    st.lists(st.tuples(st.sampled_from(FUNCTIONS), st.sampled_from(sorted(FORMS))), min_size=1, max_size=6)
)
def test_a_stages_line_is_the_one_with_its_function(steps):
    lines = ["x = np.random.default_rng(0).random((400, 30))"]
    wrote = {("random", 1)}
    for function, form in steps:
        new = FORMS[form].format(f=function).splitlines()
        wrote.add(
            (function, next(n for n, line in enumerate(new, len(lines) + 1) if f".{function}(" in line))
        )
        lines += new
    x = run("\n".join(lines))["x"]
    with sp.config.override(fusion="off", disabled_passes={"algebra"}):
        explained = sp.explain(x)
    found = {
        (name, line) for stage in explained.stages for name in stage.operators for line in numbers(stage)
    }
    assert found == wrote


def test_lines_of_steps_that_run_in_one_pass_stand_together():
    found = run("""
def centred(x):
    return x - x.mean(axis=0)

table = np.random.default_rng(0).random((4000, 30)).persist()

y = centred(table)
z = np.exp(
    -y[:, 3]
)
total = z.sum()
""")
    explained = sp.explain(found["total"])
    assert written(explained) == ["program.py:3"] * 2 + ["program.py:3, 8-9, 11"] * 2
    assert "     written at program.py:3, 8-9, 11\n" in str(explained)
    assert "program.py:3, 8-9, 11</text>" in explained._repr_svg_()
    assert explained.to_dict()["stages"][-1]["written"] == "program.py:3, 8-9, 11"


def test_what_a_product_has_taken_in_is_written_with_it():
    found = run("""x = np.random.default_rng(0).random((600, 600)).persist()
y = x * 2
z = y @ x
a = np.tanh(z)
""")
    (lines,) = [numbers(s) for s in sp.explain(found["a"]).stages if "matmul" in s.operators]
    assert lines == {2, 3, 4}


def test_what_is_told_of_several_results_of_a_pass_stays_with_them():
    found = run("""x = np.random.default_rng(0).random((4000, 30)).persist()
y = np.exp(x)
least, most = y.min(), y.max()
z = np.sort(np.tanh(x[:, 2]))
""")
    stages = sp.explain(found["least"], found["most"], found["z"]).stages
    both = [stage for stage in stages if stage.kind == "combine" and numbers(stage) == {2, 3}]
    assert len(both) == 2
    for stage in stages:
        assert (stage.kind == "combine") <= (not stage.alternatives)
        assert (numbers(stage) <= {4}) == ("exp" not in stage.operators and stage.kind != "combine")


def test_places_are_told_in_short():
    assert listed_places([]) == ""
    places = [UserLine("b.py", 4), *(UserLine("a.py", n) for n in (9, 3, 4, 5, 9, 7))]
    assert listed_places(places) == "a.py:3-5, 7, 9; b.py:4"
    assert listed_places([UserLine("In[3]", 1), UserLine("In[3]", 2)]) == "In[3]:1-2"


def test_who_lends_arrays_to_libraries_finds_his_own_line():
    found = run("""import functools
x = np.random.default_rng(0).random((400, 30))
y = functools.reduce(np.add, [x, x, x])
z = numpy.mean(y)
""")
    assert {n for stage in sp.explain(found["z"]).stages for n in numbers(stage)} == {2, 3, 4}


def test_what_is_remembered_of_a_line_keeps_no_function_of_the_users():
    found = run("""def made(function):
    return np.map(function, np.random.default_rng(0).random((400, 30)), dtype=float)
""")
    function = lambda tile: tile * 2  # noqa: E731 - of this test alone
    array = found["made"](function)
    gone = weakref.ref(function)
    del function, array
    gc.collect()
    assert gone() is None


SCALED = "def scaled(x):\n    y = x * 2\n    return np.exp(y)"
RUNNING = "import click\ndef begun(function, *given):\n    return function(*given)"
SITE = "/venv/lib/python3.13/site-packages/", "/usr/lib/python3/dist-packages/"


@pytest.mark.parametrize("folder", SITE)
def test_what_a_library_builds_is_written_where_the_user_called_it(folder):
    scaled = run(SCALED, f"{folder}xarray/core.py".replace("/", os.sep))["scaled"]
    begun = run(RUNNING, f"{folder}click/core.py".replace("/", os.sep))["begun"]
    x = sp.random.default_rng(0).random((400, 30)).persist()
    found = run("def main():\n    return lib(x)\ny = begun(main)", lib=scaled, begun=begun, x=x)
    assert set(written(sp.explain(found["y"]))) == {"program.py:2"}


def alone(function, *given):
    """What it gives in a thread that a library has begun, where no program of the user's is on the stack."""
    found: list[Any] = []
    begun = run(
        "def begun():\n    found.append(function(*given))",
        f"{SITE[0]}click/core.py",
        function=function,
        found=found,
        given=given,
    )["begun"]
    thread = threading.Thread(target=begun)
    thread.start()
    thread.join()
    return found[0]


def test_a_tool_that_is_installed_is_told_of_its_own_lines():
    x = sp.random.default_rng(0).random((400, 30)).persist()
    scaled = run(SCALED, f"{SITE[0]}tool/commands.py")["scaled"]
    script = run("def main(x):\n    return scaled(x)", f"{sysconfig.get_path('scripts')}/tool", scaled=scaled)
    for command in (scaled, script["main"]):
        assert set(written(sp.explain(alone(command, x)))) == {"commands.py:2-3"}
    outside = run("def main(x):\n    return scaled(x)", scaled=scaled)["main"]
    assert set(written(sp.explain(alone(outside, x)))) == {"program.py:2"}


@pytest.mark.slow
def test_an_app_from_the_command_line_is_told_of_its_own_lines(tmp_path, monkeypatch):
    places: set[UserLine] = set()
    evaluate = sessions.Session.evaluate

    def told(self, nodes, order=None):
        places.update(written_at(topological(nodes)).values())
        return evaluate(self, nodes, order)

    monkeypatch.setattr(sessions.Session, "evaluate", told)
    points = tmp_path / "points.npy"
    numpy.save(points, numpy.random.default_rng(0).random((40, 3)))
    command = ["app", "kmeans", "--data", str(points), "--clusters", "2"]
    alone(functools.partial(main.main, command, standalone_mode=False))
    apps = {path.name for path in Path(sys.modules["spartan_ng.apps"].__path__[0]).iterdir()}
    assert "kmeans.py" in {place.file for place in places} <= apps


def test_warnings_and_functions_are_told_of_where_the_user_wrote_them():
    library = run("def called(f, x):\n    return f(x)", f"{SITE[0]}tool/core.py")["called"]
    found = run(
        """x = np.ones(4) * 1j
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    y = called(lambda x: x.astype(float), x)
z = called(lambda x: np.map(f, x, dtype=float), y)
""",
        called=library,
        warnings=warnings,
        f=lambda tile: tile,
    )
    assert {(w.filename, w.lineno) for w in found["said"]} == {("/home/user/program.py", 4)}
    (function,) = {n.fn for n in topological([found["z"]._node()]) if isinstance(n.fn, UserFunction)}
    assert function.origin == "/home/user/program.py:5"


def test_a_function_that_is_put_in_again_is_named_by_its_second_line():
    def failing(tile):
        raise ValueError("nothing")

    x = sp.random.default_rng(0).random((400, 30)).persist()
    sessions.use(EmbeddedBackend())
    for line in (1, 2):
        found = run("\n" * (line - 1) + "y = np.map(f, x, dtype=float)", f=failing, x=x)
        with pytest.raises(
            sp.errors.UserFunctionError, match=f"put into the program at /home/user/program.py:{line}\n"
        ):
            found["y"].compute()
