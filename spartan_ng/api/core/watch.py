"""Lines of the user's that take long to plan, and little to compute, are told so: once each."""

from __future__ import annotations

from spartan_ng.callers import user_line, warn_user
from spartan_ng.errors import PerformanceWarning

TIMES, SECONDS = 10.0, 1.0
"""A line is slow where all but its work takes so many times as long as the work, and so long in all."""
_QUICK_S = 1e-4
"""Evaluations that take less are not looked at: to find the line takes a part of that."""
_LINES = 1000


class Watch:
    """What the evaluations of each line have taken."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], tuple[int, float, float]] = {}

    def note(self, seconds: float, worked_s: float) -> None:
        """Count an evaluation of `seconds`, of which stages took `worked_s`."""
        if seconds - worked_s < _QUICK_S:
            return
        line = user_line()
        runs, rest, work = self._lines.get(line, (0, 0.0, 0.0))
        runs, rest, work = runs + 1, rest + seconds - worked_s, work + worked_s
        if len(self._lines) > _LINES:
            self._lines.clear()
        self._lines[line] = runs, rest, work
        if runs > 1 and rest > SECONDS and rest > TIMES * work:
            self._lines[line] = runs, float("-inf"), work  # once is enough
            warn_user(
                f"evaluated {runs} times, this line took {rest:.1f} s to plan and hand out {work:.2g} s of "
                "work. If it is a loop over elements or small parts of a lazy array, call "
                "np.compute(array) before the loop; if each step adds to one expression, evaluate it every "
                "few steps. np.explain(array) shows the plan",
                PerformanceWarning,
            )
