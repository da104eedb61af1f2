"""A process that is asked functions one after the other, and started anew where one takes too long."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

_STARTS_S = 60.0


class Asked:
    """`with Asked(workers, file, late_s) as asked: peak, wrong = asked(name)`."""

    def __init__(self, workers: int, file: str, late_s: float) -> None:
        self._words = [sys.executable, "-m", "tests.budgets.asked", str(workers), file]
        self._late_s = late_s
        self._folder = tempfile.TemporaryDirectory(dir=Path(file).parent)
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()
        self._folder.cleanup()
        self._said.close()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            pipe = subprocess.PIPE
            words = [*self._words, self._folder.name]
            # Without a buffer, where a second line would lie and nobody be told that it is there.
            self._process = subprocess.Popen(words, bufsize=0, stdin=pipe, stdout=pipe, stderr=self._said)
            self._line(self._process, _STARTS_S)
        return self._process

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> str:
        assert process.stdout is not None, "it has one"
        there, _, _ = select.select([process.stdout], [], [], seconds)
        return process.stdout.readline().decode() if there else ""

    def __call__(self, name: str) -> dict[str, Any]:
        """What one function has taken: `peak` (bytes), `took` (seconds), `theirs` (NumPy's), and `wrong`,
        which is "" where nothing is, or `refused`."""
        process = self._begun()
        assert process.stdin is not None, "it has one"
        process.stdin.write(f"{name}\n".encode())
        line = self._line(process, self._late_s)
        if not line:
            return {"wrong": self._ended(process)}
        found: dict[str, Any] = json.loads(line)
        if "refused" in found:
            return found
        line = self._line(process, self._late_s)
        if line:
            return {**found, **json.loads(line)}
        self._end()
        return {**found, "wrong": ""}  # NumPy takes longer

    def _ended(self, process: subprocess.Popen[bytes]) -> str:
        """End a process that does not answer; why."""
        died = process.poll() is not None
        self._end()
        self._said.seek(0)
        return f"died: {self._said.read()[-300:]}" if died else f"late: more than {self._late_s:.0f} s"
