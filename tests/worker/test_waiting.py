"""Answers that come just as whoever waits for them has looked at the clock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from spartan_ng.worker.executor import Executor
from spartan_ng.worker.scheduling.lending import _answer


class JustLate(Future[Any]):
    """Done as soon as somebody has waited in vain."""

    def __init__(self, settle: Callable[[Future[Any]], None]) -> None:
        super().__init__()
        self._settle = settle

    def result(self, timeout: float | None = None) -> Any:
        """The result, or no result yet, and then at once."""
        if not self.done():
            self._settle(self)
            raise TimeoutError
        return super().result(timeout)


def _executor_waits(future: Future[Any]) -> Any:
    run: Any = SimpleNamespace(program=SimpleNamespace(lends=frozenset(), is_shared=False))
    return Executor._wait(SimpleNamespace(), run, future, 0)  # type: ignore[arg-type]


def _borrower_waits(future: Future[Any]) -> Any:
    nothing: Any = SimpleNamespace()
    return _answer(nothing, nothing, future, lambda: False)


@pytest.mark.parametrize("wait", [_executor_waits, _borrower_waits])
def test_what_comes_when_time_is_up_is_taken(wait: Callable[[Future[Any]], Any]) -> None:
    assert wait(JustLate(lambda f: f.set_result("here"))) == "here"
    with pytest.raises(KeyError, match="of its own"):
        wait(JustLate(lambda f: f.set_exception(KeyError("of its own"))))
    with pytest.raises(TimeoutError, match="of its own"):
        wait(JustLate(lambda f: f.set_exception(TimeoutError("of its own"))))
