"""NumPy looks for extremes where elements lie; what it would copy as a whole is looked at block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.kernels.direct import run_direct

X = np.random.default_rng(0).random((300, 500))
LIES: dict[str, Any] = {
    "swapped": X.astype(">f8"),
    "turned": X.T,
    "every other": X[:, ::2],
    "apart": np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(X.dtype),
}


def _extreme(x: Any, fold: str = "argmax") -> Any:
    line = build.reshape(build.data(ArrayRef(x.shape, x.dtype, value=x)), (x.size,))
    return run_direct([build.fold(fold, line, (0,))], 1 << 16, 1)


@pytest.mark.parametrize("fold", ["argmax", "argmin"])
def test_plain_elements_are_numpys(fold: str) -> None:
    line = X.reshape(-1)
    assert _extreme(line, fold) == [getattr(np, fold)(line)]


@pytest.mark.parametrize("lies", LIES)
def test_others_are_a_plans(lies: str) -> None:
    assert _extreme(LIES[lies]) is None


@pytest.mark.parametrize(("shape", "axis", "is_cut"), [((40_000, 9), 1, False), ((2, 900_000), 1, True)])
def test_values_are_looked_up_where_lines_are_cut(
    shape: tuple[int, int], axis: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place in a line that no block cuts is the answer."""
    value = np.random.default_rng(1).integers(0, 50, shape).astype(float)
    looked: list[int] = []
    along = np.take_along_axis

    def counted(x: Any, *others: Any) -> Any:
        looked.append(x.size)
        return along(x, *others)

    monkeypatch.setattr(np, "take_along_axis", counted)
    with config.override(small_bytes=0):
        x = sp.array(value)
        # Others beside it, so that no call of NumPy's alone is the program.
        found = [np.asarray(a) for a in sp.compute(x.argmax(axis), x.argmin(axis))]
    assert np.array_equal(found[0], value.argmax(axis))
    assert np.array_equal(found[1], value.argmin(axis))
    assert bool(looked) is is_cut
