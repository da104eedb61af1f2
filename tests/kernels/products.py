"""What each compiled product is asked: what NumPy gives, of its dtype, in `out` and nowhere beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from spartan_ng.config import config
from spartan_ng.kernels.compiled import ready_made, trust
from spartan_ng.kernels.contract import dense_product

RTOL = {"f4": 1e-4, "f8": 1e-11}
VECTORS = ("the processor's", "of 32 bytes")


@contextmanager
def every_product_compiled(place: ModuleType, vectors: str = VECTORS[0], **bounds: int) -> Iterator[None]:
    """Let a module's kernel make all its products, whatever its `bounds`, also for processors whose vectors
    are shorter."""
    real = ready_made.source_of
    with pytest.MonkeyPatch.context() as patch, config.override(kernels="compile"):
        for name, bound in bounds.items():
            patch.setattr(place, name, bound)
        if vectors == "of 32 bytes":
            patch.setattr(place, "source_of", lambda name, **given: real(name, BYTES="32", **given))
        yield


def check_first_products(patch: pytest.MonkeyPatch, place: ModuleType, work: int, a: Any, b: Any) -> None:
    """A module asks for no kernel before the third of products of so much `work`."""
    patch.setattr(place, "_heat", trust.Heat(3 * work))
    asked: list[str] = []
    patch.setattr(place, "at_hand", lambda source, *rest, heat: asked.append(source))
    with config.override(kernels="auto"):
        assert [place.product(a, b) is None and len(asked) for _ in range(4)] == [0, 0, 1, 2]


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
