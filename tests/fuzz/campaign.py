"""Programs one after the other, each judged, and what was wrong with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.fuzz.chooser import WRONG
from tests.fuzz.generator import Program, generate
from tests.fuzz.minimizer import minimize
from tests.fuzz.runner import Finding, Mode, check, numpys_errors, running
from tests.fuzz.script import script

Calls = tuple[int, int]


@dataclass(frozen=True)
class Failed:
    """A program as short as it gets, what is wrong with it, and how to see it again."""

    program: Program
    finding: Finding
    mode: Mode
    command: str

    @property
    def script(self) -> str:
        """A script that shows the fault by itself."""
        return f"# {self.command}\n{script(self.program, self.finding, self.mode)}"

    def __str__(self) -> str:
        return f"{self.command}\n    {self.finding.kind}: {self.finding.where}: {self.finding.text}"


@dataclass
class Campaign:
    """Programs with consecutive seeds in one mode, and what has come of them until now.

    Parameters
    ----------
    calls : the least and the most calls of a program
    seconds : stop after so long, with as many programs as have run; None: when all have run
    wrong : how many of the operands are drawn without regard to what fits
    """

    mode: Mode
    first: int
    programs: int
    calls: Calls = (5, 60)
    seconds: float | None = None
    wrong: float = WRONG
    ran: int = 0
    kernels: int = 0

    def failures(self, begun: Callable[[int], None] = lambda seed: None) -> Iterator[Failed]:
        """Run the programs; each that fails, made short.

        `begun` is told each program's seed before it is drawn, and again before it is made short.
        """
        end = float("inf") if self.seconds is None else time.monotonic() + self.seconds
        with running(self.mode) as ration:
            for seed in range(self.first, self.first + self.programs):
                if time.monotonic() > end:
                    break
                begun(seed)
                program = generate(seed, *self.calls, self.wrong)
                ration.left = ration.most
                finding = check(program, self.mode, numpys_errors(program))
                self.ran += 1
                self.kernels = ration.compiled
                if finding is not None:
                    begun(seed)
                    short, shown = minimize(program, finding, self.mode)
                    yield Failed(short, shown, self.mode, self.again(seed))

    def again(self, seed: int) -> str:
        """The command that runs one program again."""
        calls = f"--calls {self.calls[0]} {self.calls[1]} --wrong {self.wrong}"
        return f"python -m tests.fuzz --seed {seed} --programs 1 {calls} {self.mode.options}"
