"""Build numexpr's programs, and run them on blocks in the thread that asks.

numexpr spreads a long expression over threads of its own, one expression at a time, and their number is a
setting of the whole process, the user's. It runs a reduction where it is called, though, so every program
here ends with one: the product of its values along an axis of length one, which is the value itself to the
bit. Nothing of numexpr's state is changed, and our threads run programs at the same time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.virtual.texts import TYPES
from spartan_ng.plan.rows import Row

MOST_OPERANDS = 30
"""numexpr's limit is that of NumPy's iterators, less the result."""


class ProgramRefused(Exception):
    """numexpr does not build the program; the message says why."""


@lru_cache(maxsize=256)
def build_program(text: str, codes: tuple[str, ...], axes: int) -> Any:
    """The program of `text` over operands a0, a1, … with these dtypes' codes; a value has `axes` axes."""
    numexpr = _numexpr()
    if numexpr.use_vml:
        raise ProgramRefused("its vector library rounds in its own way")
    types = [(f"a{k}", TYPES[c]) for k, c in enumerate(codes)]
    try:
        return numexpr.NumExpr(f"prod({text}, axis={axes})", types)
    except (AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise ProgramRefused(f"{type(error).__name__}: {error}") from error


def _numexpr() -> Any:
    """The module; what it logs when it is imported says how many threads it starts, which are not used."""
    log = logging.getLogger("numexpr.utils")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        import numexpr
    finally:
        log.setLevel(level)
    return numexpr


def program(row: Row) -> Callable[[list[Any], Any, Any], Any]:
    """A row of kind "program" as the interpreter calls it; its buffer is filled where numexpr can."""
    text, codes, axes = row.fn, row.params, len(row.shape)
    first = build_program(str(text), codes, axes)
    own = threading.local()  # a program has one set of registers

    def evaluate(regs: list[Any], block: Any, out: Any) -> Any:
        if not out.size:  # numexpr would make an array of another shape
            return out
        machine = getattr(own, "machine", None)
        if machine is None:
            parts = (first.signature, first.tempsig, first.program, first.constants, first.input_names)
            machine = own.machine = type(first)(*parts)
        # Of reductions, the result's elements have to lie one after the other.
        target = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        operands = [np.asarray(dense(regs[a]))[..., None] for a in row.args]
        machine.run(*operands, out=target, order="C", casting="equiv", ex_uses_vml=False)
        return target

    return evaluate
