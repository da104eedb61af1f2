"""NumPy looks for extremes where elements lie; what it would copy as a whole is looked at block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spartan_ng.arrays import ArrayRef
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
