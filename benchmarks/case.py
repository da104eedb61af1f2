"""One workload and its sides: what is given, what each system does with it, and what is promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

Inputs = Mapping[str, Any]
Run = Callable[[], Any]
"""One measured run; gives a value that NumPy can compare."""
Side = Callable[[Inputs], Run]
"""Puts the inputs into a system's own form (not measured); gives the run."""


def no_backends() -> AbstractContextManager[Mapping[str, Any]]:
    """Nothing: the case runs where the process's session runs."""
    return nullcontext({})


@dataclass(frozen=True, slots=True)
class Case:
    """A workload.

    Parameters
    ----------
    name, title : the command's name for it, and what it is
    inputs : makes the NumPy inputs
    sides : the systems by name; the first is the one the others are compared with
    bytes_read : bytes of memory traffic that no system can avoid; 0 where memory is not the limit
    rounds : number of interleaved rounds
    ratio_limit : promised upper bound of spartan_ng's time over the first side's
    seconds_limit : promised upper bound of spartan_ng's time, in seconds
    backends : makes the backends of a case that needs its own; they reach the sides as inputs["backends"]
    rtol : relative tolerance of the comparison of results
    """

    name: str
    title: str
    inputs: Callable[[], Inputs]
    sides: Mapping[str, Side]
    bytes_read: int = 0
    rounds: int = 7
    ratio_limit: float | None = None
    seconds_limit: float | None = None
    backends: Callable[[], AbstractContextManager[Mapping[str, Any]]] = no_backends
    rtol: float = 1e-9


OURS = "spartan_ng"
"""The name of our own side."""
