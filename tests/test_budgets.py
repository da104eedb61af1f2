"""A drawn part of `python -m tests.budgets`: NumPy's answers within a quarter of the array."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

import pytest

from tests.budgets.__main__ import ask_functions, ask_lines, ask_program, ask_together, made, outcome
from tests.budgets.asking import Asked
from tests.budgets.functions import OVER as LONG
from tests.budgets.functions import programs
from tests.budgets.operations import BY_PLACES, OPERATIONS, OVER
from tests.budgets.pieces import PIECES


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["mapped", "computed", "columns", "chunked", "grouped"])
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in OVER])
def test_a_program_keeps_to_its_budget(name: str, kind: str, tmp_path: Path) -> None:
    """160 MB under a budget of 40 MB: what the process has for itself, by the kernel's word; the command asks
    for 1.2 times the budget."""
    peak, wrong = outcome(name, kind, 0, made(str(tmp_path)), bound=1.5)
    assert not wrong, f"{wrong}, {peak:,} bytes"


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["mapped", "computed"])
@pytest.mark.parametrize("name", BY_PLACES)
def test_a_program_over_places_keeps_to_its_budget(name: str, kind: str, tmp_path: Path) -> None:
    """The same of two lines."""
    peak, wrong = outcome(name, kind, 0, made(str(tmp_path)), bound=1.5)
    assert not wrong, f"{wrong}, {peak:,} bytes"


@pytest.mark.slow
def test_functions_of_numpys_keep_to_their_budget(tmp_path: Path) -> None:
    """A few of all that `python -m tests.budgets --functions` asks."""
    names = random.sample([name for name in programs() if name not in LONG], 4)
    for name, peak, wrong in ask_functions(names, 0, made(str(tmp_path)), math.inf, 600.0, bound=1.5):
        assert not wrong or wrong.startswith("refused"), f"{name}: {wrong}, {peak:,} bytes"


def test_lines_that_come_together_are_heard(tmp_path: Path) -> None:
    """Else who asks waits until it is late."""
    said = json.dumps({"peak": 1}) + "\n" + json.dumps({"theirs": 2, "wrong": ""})
    program = f"import sys\nprint('ready', flush=True)\nfor _ in sys.stdin: print({said!r}, flush=True)"
    with Asked(0, str(tmp_path / "x.npy"), 60.0) as asked:
        asked._words = [sys.executable, "-c", program]
        assert asked("anything") == {"peak": 1, "theirs": 2, "wrong": ""}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_whole_program_keeps_to_its_budget(workers: int, tmp_path: Path) -> None:
    """A piece of what `python -m tests.budgets --programs` draws."""
    piece = random.choice([*PIECES])
    wrong = ask_program(random.randrange(1000), workers, str(tmp_path), piece, bound=1.5)
    assert not wrong or "refused" in wrong, wrong


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("number", range(40))
def test_results_asked_together_keep_to_their_budget(number: int, tmp_path: Path) -> None:
    """What stands beside each other in a plan was never asked of more than a few kinds."""
    wrong = ask_together(number, 0, str(tmp_path), bound=1.5)
    assert not wrong or "refused" in wrong, wrong


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(("number", "name"), [(2, "argsort"), (20, "inverse"), *((n, "") for n in range(40))])
def test_functions_of_long_lines_keep_to_their_budget(number: int, name: str, tmp_path: Path) -> None:
    """What they make may be wider than what they read: indices of bytes were eight times what was counted,
    where runs were merged, and where NumPy did at once what is small as bytes."""
    wrong = ask_lines(number, 0, str(tmp_path), name)
    assert not wrong or "refused" in wrong, wrong


@pytest.mark.slow
def test_where_groups_begin_takes_no_memory(tmp_path: Path) -> None:
    """Folds of segments mark where each begins, in a line that is as long as the elements."""
    wrong = ask_program(2, 0, str(tmp_path), "groups sorted", bound=1.5)
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["sums at places", "counted"])
def test_what_threads_work_on_is_projected(piece: str, tmp_path: Path) -> None:
    """Counting copies what may not be written to, as a file mapped for reading; sorting copies all."""
    wrong = ask_program(2, 0, str(tmp_path), piece, bound=1.5)
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("piece", ["wide folds", "wide counts"])
def test_states_of_wide_results_do_not_come_beside_them(piece: str, number: int, tmp_path: Path) -> None:
    """Blocks of one row had states as large as they were, and each block of a file as many counts as the
    result has."""
    wrong = ask_program(number, 0, str(tmp_path), piece)
    assert not wrong, wrong


@pytest.mark.slow
def test_states_of_wide_results_come_together_in_parts(tmp_path: Path) -> None:
    """Each worker had all states of its part, put together, and a copy: three times the budget."""
    wrong = ask_program(2, 2, str(tmp_path), "wide counts")
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("number", range(12))
def test_what_no_block_cuts_is_projected_and_has_room(number: int, tmp_path: Path) -> None:
    """Each thread worked on a sum as large as the product."""
    wrong = ask_program(number, 0, str(tmp_path), "products of what is made")
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 9])
def test_neither_long_lines_nor_what_is_done_at_once_takes_more(number: int, tmp_path: Path) -> None:
    """One line was sorted as a block beside its copy, 1.2 of the budget; and NumPy's transforms of a quarter
    of the budget took 1.7 of it."""
    wrong = ask_program(number, 0, str(tmp_path), "transforms of columns")
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("number", [0, 2, 4])
def test_differences_from_rows_are_worked_on_in_blocks(number: int, tmp_path: Path) -> None:
    """All of the array was one block, nine times the budget; then each result had a state as large beside it,
    and two in the trial of its kernel."""
    wrong = ask_program(number, 0, str(tmp_path), "distances", bound=1.0)
    assert not wrong, wrong


@pytest.mark.slow
def test_loops_over_many_arrays_keep_no_tables_of_them(tmp_path: Path) -> None:
    """A convolution with fifty weights is one pass over as many shifted reads."""
    wrong = ask_program(42, 0, str(tmp_path), "convolved")
    assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("number", [0, 10])
def test_what_lies_as_columns_is_not_copied(number: int, tmp_path: Path) -> None:
    """Transforms and sorts along columns of a file that lies so were made in C's order, and then copied."""
    wrong = ask_program(number, 0, str(tmp_path), "transforms of columns")
    assert not wrong, wrong


@pytest.mark.slow
def test_functions_are_asked_by_their_names() -> None:
    names = programs()
    assert {"nanmean(planes, axis=0)", "linalg.norm(x)", "fft.fft(line)", "array.sort(x)"} <= set(names)
    assert {"select(x > .5, x < .2)", "convolve(few, line)", "unstack(planes)"} <= set(names)
    assert len(set(names)) == len(names) > 1000
