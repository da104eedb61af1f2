"""NumPy's error state (`np.errstate`, `np.seterr`) over arrays that are computed later.

Two rules join the two. Where a statement asks to be told of floating-point errors by an exception, a call, a
print or a log, its functions are NumPy's own on the driver, at once: the error is seen where NumPy shows it,
once, on every backend. Where a statement asks not to be told, the values it builds are computed without
telling, even if that happens after the block. Under NumPy's default, warnings, everything stays lazy: a
warning is given when the values are computed, if it is by NumPy's loops and in this process. Functions of
filtered arrays tell of nothing: they are computed of what their mask leaves out, too, where NumPy is not.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from spartan_ng.error_state import error_state
from spartan_ng.graph.node import Node

T = TypeVar("T")
_quiet: dict[weakref.ref[Node], frozenset[str]] = {}
"""The kinds of errors that were ignored where a lazy node was built, as long as it lives."""
_KINDS = frozenset({"divide", "over", "under", "invalid"})


def note(node: Node) -> None:
    """Remember what is ignored where `node` is built."""
    ignored = error_state().ignored
    if ignored:
        _quiet[weakref.ref(node, _quiet.pop)] = ignored


def quieten(node: Node) -> None:
    """Tell nobody of errors in `node`: NumPy does not compute some of its elements."""
    _quiet[weakref.ref(node, _quiet.pop)] = _KINDS


def as_noted(nodes: Iterable[Node], function: Callable[..., T], *args: Any) -> T:
    """What a function gives in the error state to compute nodes in: what was ignored where one of them was
    built stays ignored."""
    if not _quiet:
        return function(*args)
    found = map(_quiet.get, map(weakref.ref, nodes))
    ignored = frozenset[str]().union(*filter(None, found))
    with np.errstate(**dict.fromkeys(ignored, "ignore")):  # type: ignore[arg-type]
        return function(*args)
