"""What is wrong with a call is one error: what was tried before, and handled, is not shown with it.

Each public function is called with operands that do not fit, small ones and such as are planned.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb
from typing import Any

import pytest

import spartan_ng as np
from spartan_ng.callers import is_ours
from spartan_ng.config import config

WRITERS = frozenset({"save", "savez", "savez_compressed", "savetxt"})
PRINTERS = frozenset({"info", "show_config", "test", "get_include"})
OWN = frozenset({"cluster", "connect", "disconnect", "page", "tracing", "resumable", "checkpoint", "restore"})
LEFT_OUT = WRITERS | PRINTERS | OWN
SYMBOLS = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge"
IN_PLACE = "iadd isub imul itruediv imatmul getitem"


def _functions(module: Any, prefix: str = "") -> dict[str, Any]:
    names = [n for n in dir(module) if not n.startswith("_") and n not in LEFT_OUT]
    found = {prefix + n: getattr(module, n) for n in names}
    return {n: f for n, f in found.items() if callable(f) and not isinstance(f, type)}


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    CALLS = {
        **{f"operator {n}": getattr(operator, n) for n in f"{SYMBOLS} {IN_PLACE}".split()},
        **_functions(np),
        **_functions(np.linalg, "linalg."),
        **_functions(np.fft, "fft."),
    }


def _mistakes() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    a, b, whole = np.ones((3, 4)), np.ones((2, 5)), np.arange(6).reshape(2, 3)
    return [
        ((a, b), {}),
        ((a, a.T[:2]), {}),
        ((whole, whole), {}),
        ((a, "x"), {}),
        ((a,), {"axis": 7}),
        ((a, a), {"out": b}),
        ((a,), {"dtype": "no dtype"}),
        ((a, b, b), {}),
        (([a, b],), {}),
    ]


def _handled(call: Callable[[], Any]) -> BaseException | None:
    """What is shown with the error that a call raises, and has been handled by this package."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever a wrong call raises
        context = None if error.__suppress_context__ else error.__context__
        if context is not None and any(is_ours(f.filename) for f in extract_tb(context.__traceback__)):
            return context
    return None


@pytest.mark.some(150)
@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_an_error_stands_alone(
    name: str, planned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # "x" is a file, to some
    with warnings.catch_warnings(), config.override(small_bytes=0 if planned else config.small_bytes):
        warnings.simplefilter("ignore")
        for args, keywords in _mistakes():
            shown = _handled(lambda a=args, k=keywords: np.compute(CALLS[name](*a, **k)))  # type: ignore[misc]
            assert shown is None, (args, keywords)
