"""What does for few operands what a function of NumPy's does, and sooner."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

QUICKER: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What does at once, for NumPy's values, what a function of NumPy's does, with the same arguments."""


def asking(first: Callable[[Any], Any], called: Callable[..., Any]) -> Callable[..., Any]:
    """`called`, but what `first` gives of an only argument, unless that is None."""

    @functools.wraps(called)
    def call(*args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and not keywords:
            found = first(args[0])
            if found is not None:
                return found
        return called(*args, **keywords)

    return call
