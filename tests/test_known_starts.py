"""Programs that came to plans when they started before: they begin to import the session with the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spartan_ng.config import MASTER_VARIABLE
from spartan_ng.starts import CACHE_VARIABLE


def started(program: str, folder: Path) -> str:
    """What a program tells whose earlier starts have left word of themselves in a folder."""
    environment = {**os.environ, CACHE_VARIABLE: str(folder)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_the_import_begins_with_the_packages_where_the_program_came_to_plans_before(tmp_path: Path) -> None:
    """And is waited for sooner, as it makes none."""
    program = """
import sys
import spartan_ng as np
from spartan_ng import beginning, starts
from spartan_ng.costs.tuned import AGAIN_S, BEGIN_S
print(beginning._importing is not None)
print(*[beginning._is_awaited(2 * takes_s) for takes_s in (AGAIN_S, BEGIN_S, 1.1 * BEGIN_S)])
starts.note_plans(["00" * 32])
"""
    assert started(program, tmp_path) == "False\nTrue True False\n"
    assert started(program, tmp_path) == "True\nTrue False False\n"


@pytest.mark.slow
def test_what_runs_steps_is_imported_with_the_package_where_the_program_came_to_steps_before(
    tmp_path: Path,
) -> None:
    program = """
import sys
import spartan_ng as np
print("spartan_ng.kernels.direct" in sys.modules)
{}
"""
    does = "np.config.small_bytes = 1; print((np.ones(2_000_000) * 2 + 1).sum() > 0)"
    steps, none = (program.format(what) for what in (does, ""))
    assert started(none, tmp_path) == started(none, tmp_path) == "False\n"
    assert started(steps, tmp_path) == "False\nTrue\n"
    assert started(steps, tmp_path) == started(steps, tmp_path) == "True\nTrue\n"
    assert started(none, tmp_path) == "False\n", "another program"


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [
        "print((a * 2 + 1).sum())",
        "np.config.threads = 1; print((a * 2 + 1).sum())",
        "np.config.small_bytes = 0; print((a * 2 + 1).sum())",
        "np.config.memory_bytes = 50_000_000; print((a * 2 + 1).sum())",
        "pid = os.fork(); print((a * 2 + 1).sum(), os.waitpid(pid, 0)[1] if pid else 0)",
        "for _ in range(3): threading.Thread(target=lambda: sys.stdout.write(f'{a.sum() + 1};')).start()",
        "import scipy.sparse, scipy.linalg, scipy.special; print((a * 2 + 1).sum())",
        "sys.exit()",
        "threading.Thread(target=sys.exit).start()",
    ],
)
def test_what_a_program_does_behind_its_import_is_the_same_when_it_starts_again(
    what: str, tmp_path: Path
) -> None:
    """Settings, forks, threads, imports and ends: while the session is being imported beside them."""
    program = f"""
import os, sys, threading
import spartan_ng as np
from spartan_ng.starts import note_plans
note_plans(["00" * 32])
a = np.ones((300, 400))
{what}
"""
    told = started(program, tmp_path)
    for _ in range(2):
        assert started(program, tmp_path) == told


@pytest.mark.slow
def test_who_asks_for_a_cluster_that_is_not_there_is_told_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not a thread that looked for it ahead."""
    monkeypatch.setenv(MASTER_VARIABLE, "tcp://127.0.0.1:9")
    program = """
import spartan_ng as np
from spartan_ng.starts import note_plans
note_plans(["00" * 32])
try:
    (np.ones((3000, 4000)) * 2 + 1).sum().compute()
except np.errors.ConnectionFailed as error:
    print(error)
"""
    told = started(program, tmp_path)
    assert "127.0.0.1:9" in told
    assert started(program, tmp_path) == told
