"""Explanations in people's words: their variables, why arrays are stored, what would be faster."""

import io
import json
import re
import sys
from itertools import permutations
from typing import Any

import numpy
import pytest
from rich.console import Console

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session as sessions
from spartan_ng.costs import Profile
from spartan_ng.plan.advice import MOST_HINTS, hints
from spartan_ng.plan.fusion import ExplainedFusion
from spartan_ng.web.drawing import describe_plan, described


@pytest.fixture(autouse=True)
def planned():
    """All is planned."""
    with sp.config.override(small_bytes=0):
        yield


@pytest.fixture
def workers():
    """Four workers."""
    before = sessions.current()
    sessions.use(SimulatedBackend(4))
    yield
    sessions._session = before


def names(explained):
    return {slot.name: slot.role for slot in explained.slots if slot.name}


def test_arrays_are_called_as_the_users_variables():
    table = sp.random.default_rng(0).random((4000, 100)).persist()
    square = sp.arange(400_000.0).reshape(4000, 100).persist()
    exponential = sp.exp(table) * square
    totals, largest = exponential.sum(axis=0), exponential.max()
    explained = sp.explain(totals, largest)
    assert names(explained) == {"table": "input", "square": "input", "totals": "output", "largest": "output"}
    assert re.search(r"inputs: (table|square) = %\d+ float64 4000×100", str(explained))
    assert "totals  float64 100" in explained._repr_svg_()
    assert names(sp.explain(exponential.min())) == {"table": "input", "square": "input"}


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_outputs_are_listed_as_they_were_asked_for(order, workers):
    """Whatever the plan's own order is."""
    table = sp.asarray(numpy.ones((400, 100)))
    means = table.mean(axis=0)
    waves, rows, total = sp.sin(means), sp.sort(table[:, 0]), table.sum()
    arrays = {"means": means, "waves": waves, "rows": rows, "total": total}
    asked = [list(arrays)[i] for i in order]
    explained = sp.explain(*(arrays[name] for name in asked), arrays[asked[0]])
    assert [explained.slots[n].name for n in explained.outputs] == asked
    (line,) = [line for line in str(explained).splitlines() if line.startswith("outputs: ")]
    assert re.findall(r"(\w+) = %", line) == asked
    assert [explained.to_dict()["arrays"][n]["name"] for n in explained.to_dict()["outputs"]] == asked


def test_copies_that_workers_keep_are_no_outputs(workers):
    """Nobody asked for them."""
    table = sp.random.default_rng(0).random((4000, 100)).persist()
    explained = sp.explain(sp.sort(table, axis=0), sp.sort(table, axis=1), table.T @ table)
    copies = [slot for slot in explained.slots if slot.role == "copy"]
    assert copies
    assert {slot.name for slot in copies} == {"table"}
    assert len(explained.outputs) == 3
    assert {slot.number for slot in explained.slots if slot.role == "output"} == set(explained.outputs)
    assert "kept for later, cut anew: table = " in str(explained)


class Model:
    """Has an array."""

    def __init__(self):
        self.weights = numpy.random.default_rng(0).random((3000, 100))


def test_what_is_sent_is_called_as_the_program_has_it(workers):
    """Copied or not, in a variable or in what a variable holds; otherwise by the line that reads it."""
    theirs = numpy.random.default_rng(1).random((4000, 100))
    many = [numpy.zeros((400, 1000)), numpy.ones((400, 1000))]
    by_name = {"x": numpy.full((4000, 50), 2.0)}
    model = Model()
    found = [sp.asarray(a) + 1 for a in (theirs, many[1], by_name["x"], model.weights)]
    expected = ["theirs", "many[1]", "by_name['x']", "model.weights"]
    for array, name in zip(found, expected, strict=True):
        explained = sp.explain(array)
        assert [s.name for s in explained.slots if s.role == "input" and s.shape] == [name]
        assert f"hint: {name} goes from this program" in str(explained)
    explained = sp.explain(sp.asarray(theirs[::2]) + 1)
    assert re.search(r"hint: %0 .*, which test_advice.py:\d+ reads, goes from", str(explained))


@pytest.mark.parametrize("given", [(), ("x",), (None,), ([1, "x"],), (sp.ones(3), b"y"), (print,)], ids=repr)
def test_what_is_no_array_is_not_explained(given):
    with pytest.raises(TypeError, match="explain: "):
        sp.explain(*given)


MODES = {
    "auto": "compiled once hot",
    "compile": "compiled",
    "interpret": "interpreted",
    "no numba": "interpreted",
}


@pytest.mark.parametrize("mode", MODES)
def test_what_is_said_to_run_compiled_is_compiled(mode, monkeypatch):
    """And each operator that is not is named, so that nobody takes it for compiled."""
    if mode == "no numba":
        monkeypatch.setitem(sys.modules, "numba", None)
    x = sp.random.default_rng(0).random((400, 100)).persist()
    with sp.config.override(kernels="auto" if mode == "no numba" else mode):
        plain = sp.explain((x * x + 1).sum(axis=0))
        mixed = sp.explain(sp.sort(x * x + 1, axis=1).sum(axis=0))
    runs = [line.strip() for line in str(plain).splitlines() if line.strip().startswith("runs ")]
    assert runs[-1].startswith(f"runs {MODES[mode]}")
    for explained in (plain, mixed):
        for stage in str(explained).split("\n  ")[1:]:
            told = [line for line in stage.splitlines() if line.strip().startswith("runs ")]
            assert not (any("interpreted" in t for t in told) and any("runs compiled" in t for t in told))


def test_a_numpy_array_that_is_read_where_it_lies_has_its_name():
    theirs = numpy.ones((4000, 100))
    assert names(sp.explain(sp.asarray(theirs, copy=False).sum())) == {"theirs": "input"}


def test_what_is_there_is_said_to_be():
    done = sp.arange(100_000.0).persist()
    more = done + 1
    explained = sp.explain(done, more)
    assert called(explained.there) == ["done"]
    assert "computed already: done" in str(explained)
    assert sp.explain(done).stages == ()
    assert sp.explain(more).there == ()
    part = sp.asarray(numpy.arange(100_000.0))[::2]
    solved = sp.linalg.solve(sp.eye(3), sp.ones(3))[:2]
    assert called(sp.explain(part, solved, part + 1).there) == ["part", "solved"]
    assert sp.explain(part, solved).stages == ()


def test_who_computed_what_is_there_is_said():
    program = """
x = np.arange(100_000.0)
done = np.sqrt(x)
total = done.sum()
def worked(a):
    return a.compute()
worked(done)
part = done[:10]
more = done * 2
told = np.explain(part, done, more)
"""
    found: dict[str, Any] = {"np": sp}
    exec(compile(program, "/home/user/program.py", "exec"), found)
    told = found["told"]
    assert [array.by for array in (*told.there, *told.read)] == ["program.py:6"] * 3
    assert called(told.read) == ["done"]
    assert told.there[1].seconds > 0
    assert re.search(r"computed already: part \(by program.py:6 in \d.*\), done \(by program.py:6", str(told))
    assert "computed before" not in str(told)  # it has been said
    assert re.search(
        r"computed before: found\['done'\] \(by program.py:6 in \d.*\)", str(sp.explain(found["more"]))
    )


def test_what_is_small_is_said_to_be_computed_at_once():
    with sp.config.override(small_bytes=10_000):
        small, large = sp.arange(1000.0) + 1, sp.arange(2000.0) + 1
        explained = sp.explain(small, large)
        assert called(sp.explain(sp.ones(3)).there) == ["the array"]
        assert called(sp.explain(small, sp.ones(3), large).there) == ["small", "array 2"]
    assert [array.at_once_bytes for array in explained.there] == [10_000]
    assert "computed already: small (at once: NumPy works on up to 10 kB" in str(explained)
    assert called(sp.explain(small).there) == ["small"]
    assert "at once" not in str(sp.explain(small))


def called(arrays):
    return [array["name"] if isinstance(array, dict) else array.name for array in arrays]


def test_explaining_changes_nothing():
    x = sp.ones(100_000).persist()
    y = sp.zeros(10)
    before = x._cell.value, y._cell._node
    sp.explain(x + 1)
    assert (x._cell.value, y._cell._node) == before
    x[0] = 5
    assert y._cell._node is before[1]


def reasons(explained):
    return {slot.number: slot.why for slot in explained.slots if slot.why}


def test_why_arrays_are_stored(workers):
    x = sp.random.default_rng(0).random((4000, 100)).persist()
    y = sp.exp(x)
    centred = y - y.mean(axis=0)
    for array, word in (
        (sp.sort(y[:, 0] * 2), r"stage \d+ (sorts|merges sorted parts)"),
        (centred.sum(), "sums have to be complete before|parts of a result"),
        (sp.cumsum(y, axis=0).max(), r"stage \d+ scans|parts of a result"),
    ):
        explained = sp.explain(array)
        found = reasons(explained)
        assert any(re.search(word, why) for why in found.values()), found
        between = {slot.number for slot in explained.slots if slot.role == "between"}
        assert set(found) <= between
        for number, why in found.items():
            for stage in map(int, re.findall(r"stage (\d+)", why)):
                assert number in (*explained.stages[stage].reads, *explained.stages[stage].writes)
            assert re.search(rf"%{number}\b.* stored: {re.escape(why)}", str(explained))


def test_each_array_between_stages_says_why(workers):
    image = sp.random.default_rng(0).random((3000, 300))
    blurred = (image[:-2] + image[2:] + image[1:-1]) / 3
    edges = abs(sp.diff(blurred, axis=0))
    normal = edges / edges.max()
    explained = sp.explain(normal, (normal > 0.5).sum(), sp.sort(image[:, 0]))
    found = reasons(explained)
    between = {slot.number for slot in explained.slots if slot.role == "between"}
    assert found.keys() == between
    assert any(re.search(r"reads it again when sums over it are complete", why) for why in found.values())


def test_an_array_that_the_program_sends_is_a_hint(workers):
    theirs = numpy.random.default_rng(0).random((100_000, 30))
    (hint,) = sp.explain(sp.asarray(theirs).sum()).hints
    assert "goes from this program to the workers, 24 MB" in hint.text
    assert 0.01 < hint.gain_seconds < 0.1
    there = sp.random.default_rng(0).random((100_000, 30)).persist()
    assert sp.explain(there.sum()).hints == ()


def test_hints_are_few_and_the_best_come_first():
    sent = {name: nbytes for nbytes, name in enumerate("abcdefgh", 1)}
    found = hints({name: nbytes * 10**8 for name, nbytes in sent.items()}, Profile(workers=2), None)
    assert len(found) == MOST_HINTS
    assert [hint.text[0] for hint in found] == ["h", "g", "f"]
    assert all("predicted to save" in str(hint) for hint in found)
    assert hints({"a": 8}, Profile(workers=2), None) == ()  # a microsecond


def spread(table):
    """Two arrays of which nobody holds the steps that they share."""
    grown = sp.sqrt(sp.exp(table) + sp.sin(table))
    return grown.mean(axis=0), grown.std(axis=0), grown.max()


def test_arrays_that_need_the_same_steps_are_a_hint():
    table = sp.random.default_rng(0).random((400_000, 30)).persist()
    mean, deviation, top = spread(table)
    other = sp.tanh(table)
    hint = next(hint for hint in sp.explain(mean).hints if "same steps" in hint.text)
    assert hint.text.startswith("deviation, top need the same steps: np.compute(..., deviation, top)")
    alone = [sp.explain(each).predicted_seconds for each in (mean, deviation, top)]
    together = sp.explain(mean, deviation, top)
    assert hint.gain_seconds == pytest.approx(sum(alone) - together.predicted_seconds)
    assert together.hints == sp.explain(other).hints == ()
    kept = sp.sort(table, axis=0)
    least, most = kept[0], kept[-1]
    assert sp.explain(least).hints == ()  # who has `kept` finds it sorted when he asks for `most`
    assert most.shape == least.shape


def test_sources_that_are_read_for_each_of_several_arrays_are_a_hint():
    table = sp.from_function(lambda box: numpy.zeros([b - a for a, b in box]), (4_000_000, 30), float)
    low, high = table.min(axis=0), table.max(axis=0)
    (hint,) = sp.explain(low).hints
    assert hint.text.startswith("high needs the same steps")
    assert sp.explain(low, high).hints == ()


def test_an_array_of_which_half_the_bytes_would_do_is_a_hint(workers):
    theirs = sp.asarray(numpy.random.default_rng(0).random((100_000, 30)))
    upload, narrow = sp.explain(theirs.astype(numpy.float32).sum()).hints
    assert "theirs becomes float32 on the workers" in narrow.text
    assert narrow.gain_seconds == pytest.approx(upload.gain_seconds / 2, rel=0.01)
    both = theirs.astype(numpy.float32).sum() + theirs.max()
    assert ["make it there" in hint.text for hint in sp.explain(both).hints] == [True]


def test_what_goes_to_disk_is_a_hint():
    assert hints({}, Profile(), None, disk_bytes=0) == ()
    (hint,) = hints({}, Profile(), None, disk_bytes=10**9)
    assert "1 GB of a worker's arrays go to disk" in hint.text
    assert hint.gain_seconds == pytest.approx(2 * Profile().outside_ns(10**9) / 1e9)


def test_a_policy_that_costs_more_is_a_hint():
    formed = {"cost": 0.1, "no_redundancy": 0.3}
    dearest = {"cost": 0.3, "no_redundancy": 0.1}
    assert hints({}, Profile(), ExplainedFusion("cost", (), dearest)) == ()
    assert hints({}, Profile(), ExplainedFusion("no_redundancy", (), dearest)) == ()
    (hint,) = hints({}, Profile(), ExplainedFusion("no_redundancy", (), formed))
    assert hint.gain_seconds == pytest.approx(0.2)
    assert hints({}, Profile(), ExplainedFusion("cost", (), formed)) == ()
    (hint,) = hints({}, Profile(), ExplainedFusion("no_redundancy", (), {**formed, "all": 0.05}))
    assert hint.gain_seconds == pytest.approx(0.2), "what the policy that is named would save, and no other"


def test_words_are_the_same_in_colour():
    total = sp.exp(sp.arange(100_000.0)).sum()
    explained = sp.explain(total)
    out = io.StringIO()
    Console(file=out, force_terminal=True, soft_wrap=True, width=400).print(explained)
    coloured = out.getvalue()
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured).rstrip("\n") == str(explained)


def test_show_prints_no_colours_where_there_is_no_terminal(capsys):
    explained = sp.explain(sp.arange(100_000.0).sum())
    explained.show()
    assert capsys.readouterr().out == f"{explained}\n"


def test_all_of_it_is_there_for_programs():
    done = sp.ones(100_000).persist()
    told = json.loads(json.dumps(sp.explain(done, done + 1).to_dict()))
    assert called(told["there"]) == ["done"]
    assert told["hints"] == []
    assert {array["name"] for array in told["arrays"]} == {"done", ""}


def test_what_is_stored_on_the_way_has_the_users_names(workers):
    drawn = sp.random.default_rng(0).random((3000, 100))
    scaled = (drawn - drawn.mean(axis=0)) / drawn.std(axis=0)
    other = drawn * 2
    found = sp.explain(scaled.T @ scaled, sp.sort(scaled @ numpy.ones(100)))
    assert set(names(found)) == {"drawn", "scaled"}
    assert "scaled = %" in str(found)
    assert other.shape == drawn.shape


def test_a_plans_description_has_all_of_its_outputs(workers):
    """Also copies that nobody asked for: a page binds them to what a job makes, one by one."""
    table = sp.random.default_rng(0).random((4000, 100)).persist()
    sp.compute(sp.sort(table, axis=0).sum(), sp.sort(table, axis=1).sum(), table.T @ table)
    ran = sessions.current().last_run
    assert ran is not None
    plan = ran[0]
    assert plan.keeps
    found = described(describe_plan(plan))
    assert [*found["outputs"]] == [*plan.outputs]
    assert [*found["inputs"]] == [*plan.inputs]
