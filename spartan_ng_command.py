"""The command `spartan-ng`, before anything of the package is imported.

`spartan-ng run script.py` is `python script.py`, which this process becomes. Nothing has to be known for
that: so the script imports NumPy and the package itself, if it does, behind what it sets for them in its
environment. This stands outside of the package, whose own import is the longest part of a short program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main() -> None:
    """Become the script, or be the command that the package has."""
    command = script_alone(sys.argv[1:])
    if command is not None and os.name == "posix":  # the package knows how others do it
        os.execv(sys.executable, command)
    from spartan_ng.cli import main as command_line

    command_line()


def script_alone(words: Sequence[str]) -> list[str] | None:
    """Python's command for a script in a process of its own; None where the words ask for something else."""
    match words:
        case ["run", "--as-numpy", script, *arguments] if os.path.isfile(script):
            return interpreting(script, arguments, as_numpy=True)
        case ["run", script, *arguments] if os.path.isfile(script) and not script.startswith("-"):
            return interpreting(script, arguments)
    return None


def interpreting(script: str, arguments: Sequence[str], as_numpy: bool = False) -> list[str]:
    """Python's command for a script, whose name may begin with a dash."""
    how = ("-m", "spartan_ng.as_numpy") if as_numpy else ("--",)
    return [sys.executable, *how, script, *arguments]


if __name__ == "__main__":
    main()
