"""The bar: on a terminal and for long work only."""

from __future__ import annotations

import io
import sys

from spartan_ng import progress
from spartan_ng.config import config


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch) -> Terminal:
    """A terminal for stderr (not a fixture: pytest puts its own stderr in place after fixtures)."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_silent_where_stderr_is_no_terminal(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.progress() as bar:
        assert bar is None


def test_option_overrules_the_terminal(monkeypatch) -> None:
    terminal(monkeypatch)
    with config.override(progress=False), progress.progress() as bar:
        assert bar is None


def test_option_shows_a_bar_without_a_terminal(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with config.override(progress=True), progress.progress() as bar:
        assert bar is not None


def test_short_work_shows_nothing(monkeypatch) -> None:
    stream = terminal(monkeypatch)
    bar = progress.Bar(86_400.0)
    bar(1, 2)
    bar(2, 2)
    bar.close()
    assert stream.getvalue() == ""


def test_long_work_shows_how_far_it_is(monkeypatch) -> None:
    stream = terminal(monkeypatch)
    bar = progress.Bar(0.0)
    bar(3, 8)
    bar.close()
    shown = stream.getvalue()
    assert "3/8" in shown
    assert "spartan_ng" in shown
    assert shown.endswith("\r")
