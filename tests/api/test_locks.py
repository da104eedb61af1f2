"""`setflags(write=True)`: NumPy's answer, through whatever views an array is read-only."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy
import pytest

import spartan_ng as np


def _locked(a: Any) -> Any:
    a.setflags(write=False)
    return a


BASES: dict[str, Callable[[Any], Any]] = {
    "its own": lambda np: np.arange(16.0).reshape(4, 4).copy(),
    "locked": lambda np: _locked(np.arange(16.0).reshape(4, 4).copy()),
    "of bytes": lambda np: np.frombuffer(bytes(16), "u1").reshape(4, 4),
    "of a lent one": lambda np: np.asarray(numpy.arange(16.0).reshape(4, 4).copy()),
}
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "row": lambda np, a: a[0],
    "columns": lambda np, a: a[..., 1:],
    "turned": lambda np, a: a.T,
    "stretched": lambda np, a: np.broadcast_to(a, (2, *a.shape)),
    "diagonal": lambda np, a: np.diagonal(a) if a.ndim > 1 else a[:],
    "windows": lambda np, a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=-1),
    "a locked view": lambda np, a: _locked(a[:]),
}


@pytest.mark.parametrize("base", BASES)
def test_who_may_be_written_to_again_is_numpys_answer(base: str) -> None:
    for steps in product([None, *STEPS], STEPS):
        found = []
        for namespace in (np, numpy):
            whole = a = BASES[base](namespace)
            for step in filter(None, steps):
                a = STEPS[step](namespace, a)
            said: list[Any] = [a.flags.writeable]
            for change in (lambda a=a: a.setflags(write=True), lambda a=a: a.fill(7)):
                try:
                    change()
                except ValueError as error:
                    said.append(str(error).split(":")[0])
            found.append([*said, a.flags.writeable, numpy.asarray(a).tolist(), numpy.asarray(whole).tolist()])
        found[0][1:-3] = [str(e)[:60] for e in found[0][1:-3]]
        assert found[0] == found[1], steps
