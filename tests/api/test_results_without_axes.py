"""Results of all calls that programs draw, without axes: arrays are written to, what was copied stays."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import without_axes
from tests.fuzz.calls import CALLS
from tests.fuzz.generator import judged
from tests.fuzz.program import Line, text_of
from tests.fuzz.runner import SMALL_BYTES, Mode, check, numpys_errors, running
from tests.sampling import part

COPIES = ("a4.copy()", "a4.astype(a4.dtype)", "np.array(a4)", "np.copy(a4)", "a4 * 1", "a4[()]")
CALLED = [call for call in dict.fromkeys(CALLS) if not call.statement and "tolist" not in call.text]


@pytest.mark.parametrize("small", SMALL_BYTES)
def test_copies_of_a_result_keep_their_elements(small, some):
    """`a = f(...); b = a.copy(); a += 3`: a number is replaced, an array written to; `b` is what it was."""
    mode = Mode(small, "interpret")
    first = random.randrange(1 << 31)
    wrong = []
    with running(mode):
        for call in some(CALLED, 100):
            for seed in range(first, first + part(4)):
                called = without_axes.program_of(call, seed)
                if (
                    called is None
                    or "a4" not in called.expected
                    or not hasattr(called.expected["a4"].plain, "dtype")
                ):
                    continue
                copied = [Line(f"a{10 + i} = {text}") for i, text in enumerate(COPIES)]
                program = judged(seed, [*called.steps, *copied, Line("a4 += a4")])
                found = None if program is None else check(program, mode, numpys_errors(program))
                if program is not None and found is not None:
                    wrong.append(f"{found.kind}: {found.where}: {found.text}\n{text_of(program.steps)}")
    assert not wrong, "\n\n".join(wrong)
