"""Parts of z_i = y_i + w_i * z_(i-1) against the recurrence: every mix of zeros, infinities and NaN."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.ops import frames

ENDS = [-np.inf, -2.0, 0.0, 1.0, np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_every_mix_behind_every_value(rows: int, dtype: str) -> None:
    """All sequences of `rows` rows, joined from the left and from the right, behind nothing and every z."""
    values = ENDS if rows < 3 else [-np.inf, -2.0, 0.0, 1.0, np.inf]
    mixes = np.array(np.meshgrid(*[values] * (2 * rows))).reshape(2 * rows, -1).astype(dtype)
    y, w = mixes[:rows], mixes[rows:]
    singles = [frames.lift(a, b) for a, b in zip(y, w, strict=True)]
    left, right = singles[0], singles[-1]
    for one in singles[1:]:
        left = frames.combine(left, one)
    for one in singles[-2::-1]:
        right = frames.combine(one, right)
    for part in (left, right):
        assert all(x.dtype == dtype for x in part)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(part[0], serial(y, w, None))
            for z in np.array([*ENDS, 2.0, -1.0, 0.5], dtype):
                found = frames.behind(part, np.full(y[0].shape, z))
                np.testing.assert_array_equal(found, serial(y, w, z), err_msg=f"behind {z}")


@pytest.mark.slow
def test_products_of_weights_may_leave_the_range() -> None:
    """An infinity survives a thousand halvings, and a 0 a thousand doublings."""
    n = 2048
    for weight, before in ((0.5, np.inf), (0.5, -np.inf), (2.0, 0.0), (-0.5, np.inf)):
        y, w = np.zeros((n, 1)), np.full((n, 1), weight)
        y[-1] = 3
        parts = [frames.lift(a, b) for a, b in zip(y, w, strict=True)]
        while len(parts) > 1:
            parts = [frames.combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        found = frames.behind(parts[0], np.array([before]))
        np.testing.assert_array_equal(found, serial(y, w, before))


def serial(y: np.ndarray, w: np.ndarray, before: float | None) -> np.ndarray:
    """Row by row."""
    z = None if before is None else np.full(y[0].shape, before, y.dtype)
    for a, b in zip(y, w, strict=True):
        z = a if z is None else a + np.where(b == 0, 0, b * z).astype(y.dtype)
    assert z is not None
    return z
