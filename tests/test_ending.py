"""What a process closes as it ends."""

import subprocess
import sys

import pytest

SCRIPT = """
import atexit
from spartan_ng.ending import at_end, not_at_end

def say(word):
    print(word)

def fail():
    raise ValueError("cannot be closed")

gone = lambda: say("gone")
at_end(gone)
at_end(lambda: say("first come"))
atexit.register(say, "the program's own")
at_end(fail)
at_end(lambda: say("last come"))
not_at_end(gone)
not_at_end(gone)
"""


@pytest.mark.slow
def test_the_programs_own_functions_are_called_first_and_all_of_ours():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["the program's own", "last come", "first come"]
    assert "cannot be closed" in done.stderr
