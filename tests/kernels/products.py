"""What each compiled product is asked: what NumPy gives, of its dtype, in `out` and nowhere beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.kernels.contract import dense_product

RTOL = {"f4": 1e-4, "f8": 1e-11}


def check_product(product: Callable[..., Any] | None, a: Any, b: Any, order: Any) -> Any:
    """What `product` gives of two matrices; None for one that leaves them to others."""
    wanted, found = a @ b, None
    scale = RTOL[a.dtype.str[1:]] * max(float(abs(a).max() * abs(b).max()) * np.sqrt(len(b)), 1.0)
    if product is not None:
        found = product(a, b)
        assert found is not None
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=0, atol=scale)
    around = np.full((wanted.shape[0] + 2, wanted.shape[1] + 2), 7, wanted.dtype, order)
    out = around[1:-1, 1:-1]
    assert dense_product(a, b, out) is out
    np.testing.assert_allclose(out, wanted, rtol=0, atol=scale)
    around[1:-1, 1:-1] = 7
    assert (around == 7).all()
    return found
