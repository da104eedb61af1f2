"""What a part of z_i = y_i + w_i * z_(i-1) does to the z before it, exactly, whatever its weights are.

Distributed cumulative aggregates (BTW '19), section 3.3. A weight of 0 is a frame boundary: nothing passes.
Table 1 has two numbers for a part, the value behind nothing and the product of the weights, and z becomes
value + slope * z. That does not hold where a weight, or what is before the part, is infinite. Five do:

    value   the part's last z behind nothing (its first weight has nothing to weigh)
    slope   the product of its weights, exactly 0 if one of them is
    up      the last z behind +infinity
    down    the last z behind -infinity
    root    the z that is exactly 0 where it meets the first infinite weight; NaN where there is none

Why these are enough. With a weight of 0 the part is constant, and `up` and `down` are equal. Without one,
each step takes infinities to infinities or NaN, opposite ones to opposite ones unless one becomes NaN, and
NaN to NaN: a z that is infinite before the part becomes `up` or `down`, NaN stays. A finite z stays
value + slope * z up to the first infinite weight, which asks for its sign alone: beyond the root it goes
where the infinity on its side goes, and at the root 0 * infinity is NaN, and remains so. An infinite y makes
all finite z equal to itself; it is the value from there on, and -value / slope is the infinity that leaves
every finite z on the right side of the root. Where `up` and `down` are both NaN, so is all that follows.

Rounding is that of sums and products in another order, as in every parallel scan; products of finite weights
that leave the range of the dtype count as 0 and infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Part = tuple[Any, ...]
"""(value, slope, up, down, root)."""


def lift(y: Any, w: Any) -> Part:
    """The part of one row."""
    ends = np.array([np.inf, -np.inf], y.dtype)
    with np.errstate(invalid="ignore"):
        up, down = (y + weighted(w, end) for end in ends)
    return y, w, up, down, np.where(np.isfinite(w), np.nan, 0).astype(y.dtype)


def combine(before: Part, after: Part) -> Part:
    """The part of two neighbours together."""
    value, slope, up, down, root = before
    ends = [behind(after, z) for z in (value, up, down)]
    with np.errstate(all="ignore"):
        product = slope * after[1]
        product = np.where(after[1] == 0, np.zeros_like(product), product)
        lost = np.isnan(product) & ~np.isnan(slope)  # what has left the range first decides
        product = np.where(lost, np.copysign(slope, np.copysign(1, slope) * after[1]), product)
        own = np.where(np.isnan(root), (after[4] - value) / slope, root)
    return ends[0], product, ends[1], ends[2], own


def behind(part: Part, z: Any) -> Any:
    """What becomes of the `z` before a part."""
    value, slope, up, down, root = part
    nan = np.array(np.nan, value.dtype)
    with np.errstate(all="ignore"):
        passed = value + np.where((slope == 0) | (z == 0), np.zeros_like(value), slope * z)
    sided = np.where(z > root, up, np.where(z < root, down, nan))
    ended = np.where(z > 0, up, np.where(z < 0, down, nan))
    constant = (up == down) | (np.isnan(up) & np.isnan(down))
    found = np.where(np.isnan(root), passed, sided)
    return np.where(constant, up, np.where(np.isfinite(z), found, ended))


def weighted(w: Any, z: Any) -> Any:
    """W * z, where a weight of 0 lets nothing of z pass, were it infinite or NaN."""
    return w * np.where(w == 0, np.zeros((), z.dtype), z)
