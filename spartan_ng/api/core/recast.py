"""The bytes of an array's elements, or some of each, as another dtype: views that are written through."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.api.core.forcing import compute_nodes, value_of
from spartan_ng.arrays import ArrayRef
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.ops.functions import UserFunction

PLAIN = "biufcmM"
"""Kinds whose bytes are looked at where they lie; those of others are gathered."""


class Recast(Struct, frozen=True):
    """The same bytes as elements of another dtype, of which the last axis may have fewer or more."""

    dtype: np.dtype[Any]

    def apply(self, base: Node) -> Node:
        """The bytes of a node's elements."""
        if not self._is_plain(base):
            (ref,) = compute_nodes([base])
            return _leaf(np.array(value_of(ref)).view(self.dtype))
        old, new = base.dtype.itemsize, self.dtype.itemsize
        if old == new:
            return build.map_(_viewing(self.dtype), base, dtype=self.dtype)
        *lead, n = base.shape
        if new < old:
            k = old // new
            parts = [self._field(base, i * new) for i in range(k)]
            deep = [build.reshape(p, (*base.shape, 1)) for p in parts]
            return build.reshape(build.concatenate(deep, len(lead) + 1), (*lead, n * k))
        k, zeros, ones = new // old, (0,) * len(lead), (1,) * len(lead)
        parts = [build.slice_(base, (*zeros, i), (*ones, k), (*lead, n // k)) for i in range(k)]
        return build.map_(_gluing(self.dtype), *parts, dtype=self.dtype)

    def _is_plain(self, base: Node) -> bool:
        return base.ndim > 0 and base.dtype.kind in PLAIN and self.dtype.kind in PLAIN

    def _field(self, base: Node, offset: int) -> Node:
        return build.map_(_reading(self.dtype, offset, "view"), base, dtype=self.dtype)

    def apply_value(self, base: Any) -> Any:
        """NumPy's own view."""
        return base.view(self.dtype)

    def put(self, base: Node, value: Node) -> Node:
        """The bytes of the new elements as the base's; of structured ones there may be more than are seen."""
        if not self._is_plain(base):
            old, new = (value_of(ref) for ref in compute_nodes([base, value]))
            old = np.array(old)
            old.view(self.dtype)[...] = new
            return _leaf(old)
        return build.reshape(Recast(base.dtype).apply(value), base.shape)


class Bytes(Struct, frozen=True):
    """The bytes of each element from an offset on, as another dtype."""

    dtype: np.dtype[Any]
    offset: int

    def apply(self, base: Node) -> Node:
        """Those bytes of a node's elements."""
        return build.map_(_reading(self.dtype, self.offset, "getfield"), base, dtype=self.dtype)

    def apply_value(self, base: Any) -> Any:
        """NumPy's own view."""
        return base.getfield(self.dtype, self.offset)

    def put(self, base: Node, value: Node) -> Node:
        """Elements with new bytes there."""
        value = build.broadcast(build.cast(value, self.dtype), base.shape)
        return build.map_(_writing(self.dtype, self.offset), base, value, dtype=base.dtype)


# A function that is the same one each time is a program's that came before, whose plan is found.


@lru_cache
def _viewing(dtype: np.dtype[Any]) -> UserFunction:
    return UserFunction(lambda x: x.view(dtype).copy(), origin="view")


@lru_cache
def _gluing(dtype: np.dtype[Any]) -> UserFunction:
    return UserFunction(lambda *x: np.stack(x, -1).view(dtype)[..., 0].copy(), origin="view")


@lru_cache
def _reading(dtype: np.dtype[Any], offset: int, origin: str) -> UserFunction:
    return UserFunction(lambda x: x.getfield(dtype, offset).copy(), origin=origin)


@lru_cache
def _writing(dtype: np.dtype[Any], offset: int) -> UserFunction:
    def written(base: Any, value: Any) -> Any:
        out = np.array(np.broadcast_to(base, np.broadcast_shapes(base.shape, value.shape)))
        out.setfield(value, dtype, offset)
        return out

    return UserFunction(written, origin="getfield")


def _leaf(value: Any) -> Node:
    """A value as a node."""
    return build.data(ArrayRef(value.shape, value.dtype, value=value))


__all__ = ["PLAIN", "Bytes", "Recast"]
