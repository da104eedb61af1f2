"""The fuzzer finds faults that are planted, makes their programs short, and writes scripts that run."""

from __future__ import annotations

import faulthandler
import os
import random
import re
import subprocess
import sys
import threading
from typing import Any

import numpy
import pytest
from click.testing import CliRunner

import spartan_ng
from tests.fuzz import campaign as campaigns
from tests.fuzz import found, jobs, numbers, without_axes
from tests.fuzz.__main__ import main
from tests.fuzz.calls import CALLS
from tests.fuzz.campaign import Campaign
from tests.fuzz.chooser import WRONG, Nothing
from tests.fuzz.drawing import PLACES, Draw
from tests.fuzz.generator import generate, judged
from tests.fuzz.minimizer import minimize
from tests.fuzz.oracle import Values, is_sound, mismatch
from tests.fuzz.program import Line, Loop, Rounding, Step, numpys, text_of
from tests.fuzz.runner import SMALL_BYTES, Finding, Mode, check, compare, numpys_errors, running
from tests.fuzz.script import script
from tests.fuzz.triplet import Triplet
from tests.sampling import part

WHOLE = (
    Line("a0 = np.array(N.arange(12).reshape(3, 4))"),
    Line("a1 = a0 * 2"),
    Line("a2 = np.flip(a1)"),
    Line("a3 = a2[1:]"),
    Loop((Line("a3[...] = a3 + a0[1:]"), Line("settle(a3)")), 3),
    Line("a4 = np.sum(a3, axis=0)", Rounding.SUMS),
    Line("a5 = np.sort(a0, axis=9)"),
)
CAMPAIGNS = [
    (Mode("default"), 110, WRONG),
    (Mode("lazy", "interpret"), 80, WRONG),
    (Mode("mixed", "interpret"), 50, WRONG),
    (Mode("lazy", "interpret", workers=3), 50, WRONG),
    (Mode("lazy", "auto", kernels=2), 10, WRONG),
    (Mode("default"), 200, 0.5),
    (Mode("lazy", "interpret"), 80, 0.5),
]
INTERPRETED = Mode(tier="interpret")


def _right(a, axis=None):
    return a


def _raises(a, axis=None):
    raise KeyError("flip")


@pytest.mark.parametrize(("fault", "kind"), [(_right, "wrong values"), (_raises, "raised KeyError")])
def test_a_planted_fault_is_found_and_made_short(monkeypatch, fault, kind):
    program = judged(1, WHOLE)
    assert program is not None
    with running(INTERPRETED):
        assert check(program, INTERPRETED, numpys_errors(program)) is None
        monkeypatch.setattr(spartan_ng, "flip", fault)
        finding = check(program, INTERPRETED, numpys_errors(program))
        assert finding is not None
        assert finding.kind == kind
        short, _ = minimize(program, finding, INTERPRETED)
    assert "np.flip" in text_of(short.steps)
    assert len(short.steps) <= 2


@pytest.mark.slow
def test_what_moves_in_opposite_directions_is_rounded_all_the_same():
    """Of a sum of two rounded numbers the last bit may be another, however the draws move the two."""
    lines: list[Step] = [
        Line("a0 = np.array([[0.5, 0.7], [0.9, 0.8]])"),
        Line("a1 = a0 @ a0[0]", Rounding.SUMS),
        Line("a2 = max((a1[1:] + a1[:-1]).tolist())"),
    ]
    exact = 0
    for seed in range(40):
        program = judged(seed, lines)
        assert program is not None
        wanted = program.expected["a2"]
        exact += wanted.plain == wanted.up == wanted.down
        beside = numpy.nextafter(wanted.plain, 9)
        assert compare("a2", beside, program) is None
        assert compare("a2", wanted.plain + 1e-9, program) is not None
    assert exact


def test_an_error_that_does_not_come_is_found(monkeypatch):
    program = judged(1, WHOLE)
    assert program is not None
    monkeypatch.setattr(spartan_ng, "sort", _right)
    with running(INTERPRETED):
        finding = check(program, INTERPRETED, numpys_errors(program))
    assert finding is not None
    assert finding.kind == "raised nothing for AxisError"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("mode", "programs", "wrong"), CAMPAIGNS, ids=lambda v: f"{v}".replace(" ", "-").replace(",", "")
)
def test_random_programs_are_numpys(mode, programs, wrong):
    """Other programs in each run but a merge's; a failure says how to run its program again."""
    first = random.randrange(1 << 31)
    campaign = Campaign(mode, first, part(programs), calls=(5, 25), wrong=wrong)
    print(f"the first seed is {campaign.first}")
    for failed in campaign.failures():
        pytest.fail(f"{failed}\n\n{failed.script}")


def _serve_faults(pipe, stacks, limit_s):
    """A campaign's process in which the second program stands, and the fourth brings it down."""
    armed: list[Any] = []

    def check_but_two(program, mode, errors):
        if program.seed == 2:
            (options,) = armed[-1:]
            faulthandler.cancel_dump_traceback_later()
            later(0.001, **options)
            threading.Event().wait()
        if program.seed == 4:
            os.abort()

    later = faulthandler.dump_traceback_later
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faulthandler, "dump_traceback_later", lambda s, **options: armed.append(options))
        patch.setattr(campaigns, "check", check_but_two)
        jobs.serve(pipe, stacks, limit_s)


@pytest.mark.slow
def test_programs_that_stand_or_end_their_process_are_faults(monkeypatch):
    monkeypatch.setattr(jobs, "serve", _serve_faults)
    campaign = Campaign(Mode("default", "interpret"), 1, 5, calls=(5, 6))
    turns = list(jobs.turns(campaign, 1, keep_going=True, limit_s=1e6))
    assert [(t.ran, [f.seed for f in t.found]) for t in turns] == [(2, [2]), (2, [4]), (1, [])]
    stood, ended = (f for t in turns for f in t.found)
    assert stood.kind == "stood"
    assert "in check_but_two" in stood.text
    assert "--seed 2 --programs 1" in stood.text
    assert ended.kind == "ended its process with status -6"
    assert "in check_but_two" in ended.text


@pytest.mark.parametrize("processes", [0, 1])
def test_no_turn_begins_once_the_time_is_over(processes):
    """Each would start the workers of its own, if there are any."""
    campaign = Campaign(Mode("default", "interpret"), 1, 1000, seconds=0.0)
    assert not list(jobs.turns(campaign, processes, keep_going=True, limit_s=1e6))


@pytest.mark.slow
def test_a_script_runs_by_itself(tmp_path):
    program = judged(1, WHOLE)
    assert program is not None
    finding = Finding("wrong values", "a1", "as an example")
    file = tmp_path / "found.py"
    file.write_text(script(program, finding, INTERPRETED))
    ran = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True)
    assert ran.stdout.count("is the same") == 5
    assert ran.stdout.count("raised ['AxisError']") == 2


def test_every_place_of_every_row_has_its_word():
    words = {w for c in CALLS for w in _words(c.text)}
    assert words <= PLACES.keys() | {"out"}, words - PLACES.keys()


NO_NUMBERS = {
    "files": "fromfile fromregex fromstring genfromtxt load loadtxt save savetxt savez savez_compressed",
    "methods for files and pickles": "dump dumps tofile",
    "settings": "get_include get_printoptions getbufsize geterr geterrcall printoptions set_printoptions "
    "setbufsize seterr seterrcall setflags show_config show_runtime info test",
    "texts": "base_repr binary_repr einsum_path format_float_positional format_float_scientific mintypecode "
    "typename",
    "dates": "busday_count busday_offset datetime_as_string datetime_data is_busday isnat",
    "NumPy's matrices": "asmatrix bmat",
    "layouts, as far as they are known": "isfortran",
    "iterators of iterators": "nested_iters",
}
"""What no program calls: what it gives is no array of numbers, or depends on more than the program."""


def test_every_function_of_numpys_is_in_some_row():
    called = {name for call in CALLS for name in _names(call.text)}
    left_out = {name for names in NO_NUMBERS.values() for name in names.split()}
    for theirs, ours in (
        (numpy, spartan_ng),
        (numpy.linalg, spartan_ng.linalg),
        (numpy.fft, spartan_ng.fft),
        (numpy.ndarray, spartan_ng.ndarray),
    ):
        public = {
            n
            for n in dir(theirs)
            if n[0] != "_" and callable(getattr(theirs, n)) and not isinstance(getattr(theirs, n), type)
        }
        assert {n for n in public if hasattr(ours, n)} - called - left_out == set(), theirs.__name__
    assert not left_out & called


def _names(row):
    """All names that stand in a row, whatever is drawn for its places."""
    texts = [""]
    for i, text in enumerate(re.split(r"\{([^{}]*)\}", row)):
        choices = [text] if i % 2 == 0 else text.split("|") if "|" in text else ["0"]
        texts = [t + c for t in texts for c in choices]
    return {name for t in texts for name in re.findall(r"[A-Za-z_]\w*", t)}


@pytest.mark.whole
def test_programs_draw_nearly_all_rows():
    rows = {c.text for c in CALLS}
    seen: set[str] = set()

    class Seen(Draw):
        def text(self, row):
            found = super().text(row)
            seen.add(row)
            return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.fuzz.generator.Draw", Seen)
        for seed in range(120):
            generate(seed, 10, 30)
    assert len(seen) > 0.9 * len(rows), sorted(rows - seen)


def _words(row):
    return [w for part in row.split("{")[1:] if "|" not in (w := part.split("}")[0])]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_programs_are_those_of_their_seeds(seed):
    assert text_of(generate(seed).steps) == text_of(generate(seed).steps)


def test_what_rounding_decides_is_in_no_program():
    thirds = Line("a0 = np.array([1.0, 2.0]) / 3", Rounding.ALWAYS)
    assert judged(1, (thirds, Line("a1 = a0 * 3 == [1, 2]"))) is None
    assert judged(1, (thirds, Line("a1 = np.floor(a0 * 3)"))) is None
    assert judged(1, (thirds, Line("a1 = a0 > 0.5"))) is not None


def test_what_rounding_does_not_reach_must_be_equal():
    a = numpy.array([1.0, numpy.nan, numpy.inf])
    beside = a * (1 + 2.0**-52)
    exact, rounded = Values(a, a, a), Values(a, a * (1 + 1e-13), a * (1 - 1e-13))
    assert mismatch(a, exact) is None
    assert mismatch(beside, exact) is not None
    assert mismatch(a.astype("f4"), exact) is not None
    assert is_sound(a, rounded.up)
    assert mismatch(beside, rounded) is None
    assert mismatch(a * (1 + 1e-9), rounded) is not None
    assert not is_sound(a, a[::-1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("call", ["sum({})", "cumsum({})", "dot({}, N.ones(1000, 'f4'))", "mean({}) * 1000"])
@pytest.mark.parametrize("kept", [1, 1e-3])
def test_sums_may_be_a_few_units_of_their_conditions_away(call, dtype, kept):
    """The sum of magnitudes in the last bits of the dtype that is added up in, also where it cancels."""
    draw = f"(N.random.default_rng(3).random(1000) * (1 - 2j)).astype({dtype!r})"
    text = draw if kept == 1 else f"N.append({draw}[:500], {draw}[:500] * {kept - 1})"
    program = judged(1, [Line(f"a0 = np.array({text})"), Line(f"a1 = np.{call.format('a0')}", Rounding.SUMS)])
    assert program is not None
    values = program.expected["a1"]
    unit = numpy.finfo(dtype).eps * numpy.abs(program.expected["a0"].plain).sum().astype(dtype)
    for sign in (1, -1):
        assert mismatch(values.plain + numpy.asarray(sign * 2 * unit, dtype), values) is None
        assert mismatch(values.plain + numpy.asarray(sign * 50 * unit, dtype), values) is not None


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize(
    "call",
    [
        "cumsum(a0)",
        "sum(a0.reshape(-1, 2), axis=0)",
        "add.reduceat(a0, [0, 9])",
        "histogram(N.arange(a0.size), bins=[0, 9, a0.size], weights=a0)[0]",
        "var(a0)",
    ],
)
def test_what_is_nearer_than_numpys_is_allowed(call, dtype):
    """Where NumPy adds one element after the other, a tree gives what is thousands of units away."""
    for n in (1000, 20_000):
        lines = (
            Line(f"a0 = np.array((N.random.default_rng(1).random({n}) + 0.1j).astype({dtype!r}))"),
            Line(f"a1 = np.{call}", Rounding.SUMS),
        )
        program = judged(1, lines)
        assert program is not None
        environment = numpys()
        environment["a0"] = program.expected["a0"].plain.astype("c32" if dtype == "c8" else "f16")
        exec(lines[1].text, environment)
        values = program.expected["a1"]
        assert mismatch(environment["a1"].astype(values.plain.dtype), values) is None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_programs_with_sparse_arrays_ask_for_no_infinity_and_no_text():
    csr = Line("a0 = sparse(N.eye(3))")
    assert judged(1, (csr, Line("a1 = a0 @ np.ones(3)"))) is not None
    assert judged(1, (csr, Line("a1 = np.ones(3) / 0", Rounding.ALWAYS))) is None
    assert judged(1, (Line("a1 = np.array(N.inf)"), csr)) is None
    assert judged(1, (csr, Line("a1 = sum(str(a0).encode())"))) is None


@pytest.mark.parametrize("call", ["mean(a0)", "sum(a0)", "average(a0)", "fft.fft(a0)[:1]"])
def test_what_cancels_to_nothing_is_in_no_program(call):
    lines = [Line("a0 = np.array(N.append(N.arange(9) / 7, -N.arange(9) / 7))")]
    assert judged(1, [*lines, Line("a1 = np.sum(a0 * 7)", Rounding.SUMS)]) is None
    assert judged(1, [*lines, Line(f"a1 = np.{call}", Rounding.ALWAYS)]) is None


def test_a_place_that_nothing_fits_draws_another_call():
    import random

    with pytest.raises(Nothing):
        Draw(random.Random(1), numpys(), 9).text("np.sort({array})")


def test_the_command_says_what_it_found(monkeypatch):
    options = ["--programs", "3", "--seed", "5", "--tier", "interpret", "--mode", "default", "--jobs", "0"]
    monkeypatch.setattr(spartan_ng, "array", lambda a, *rest, **keywords: numpy.zeros(3))
    found = CliRunner().invoke(main, options)
    assert found.exit_code == 1
    assert "seed 5" in found.output
    assert "def program(np, sparse, settle):" in found.output


@pytest.mark.some(40)
@pytest.mark.parametrize("small", SMALL_BYTES)
@pytest.mark.parametrize("text", found.programs())
def test_what_was_found_once_is_numpys(text, small):
    program = judged(1, [Line(part, Rounding.SUMS) for part in text.split("; ")])
    assert program is not None
    mode = Mode(small, "interpret")
    with running(mode):
        assert check(program, mode, numpys_errors(program)) is None


@pytest.mark.slow
@pytest.mark.parametrize("small", SMALL_BYTES)
def test_numbers_are_held_as_numpy_holds_them(small, some):
    """Set, put, filled, padded, compared: what an array's dtype makes of numbers that it may not hold."""
    mode = Mode(small, "interpret")
    wrong = []
    with running(mode):
        for parts in some(list(numbers.programs()), 300):
            program = numbers.program_of(*parts)
            found = None if program is None else check(program, mode, numpys_errors(program))
            if found is not None:
                wrong.append(f"{parts}: {found.kind}: {found.text}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("small", SMALL_BYTES)
def test_every_row_takes_operands_without_axes_as_numpy_does(small, some):
    """Arrays and numbers: what is given back is one or the other, too, and what is refused has its error."""
    mode = Mode(small, "interpret")
    first = random.randrange(1 << 31)
    wrong = []
    with running(mode):
        for call in some(dict.fromkeys(CALLS), 100):
            for seed in range(first, first + part(8)):
                program = without_axes.program_of(call, seed)
                if program is None:
                    continue
                found = check(program, mode, numpys_errors(program))
                if found is not None:
                    wrong.append(f"{found.kind}: {found.where}: {found.text}\n{text_of(program.steps)}")
    assert not wrong, "\n\n".join(wrong)


def test_moves_of_operands_and_of_results_do_not_cancel() -> None:
    """A value that all three runs share is taken for exact."""
    drawn = Line("a0 = np.random.default_rng(1).triangular(-1, 0, 1, size=(4,))", Rounding.ALWAYS)
    summed = Line("a1 = np.add.reduce(a0, axis=0, keepdims=True)", Rounding.SUMS)
    for seed in range(100):
        runs = Triplet(seed, 100)
        assert runs.run(drawn)
        assert runs.run(summed)
        found = runs.values()["a1"]
        assert (found.plain != found.up).all()
        assert (found.plain != found.down).all()


@pytest.mark.parametrize("function", ["square({0})", "multiply({0}, {0})", "sinh({0})"])
def test_what_numpy_rounds_by_how_it_lies_is_judged_by_rounding(function):
    """NumPy's loops over what lies backwards have other last bits: so may any other's."""
    text = f"np.{function.format('a1')}"
    runs = Triplet(0, 1000)
    assert runs.run(Line("a0 = (N.random.default_rng(1).random(64) * (1 - 2j) + 0.3).astype('c8')"))
    assert runs.run(Line("a1 = a0[::-1]"))
    assert runs.run(Line(f"a2 = {text}"))
    lies_apart, lies_together = (
        eval(text, {"np": numpy, "a1": a}) for a in (runs.plain["a1"], runs.plain["a1"].copy())
    )
    assert mismatch(lies_together, runs.values()["a2"]) is None
    assert mismatch(lies_apart * (1 + 1e-4), runs.values()["a2"]) is not None
