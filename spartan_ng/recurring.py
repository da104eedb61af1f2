"""Expressions of small arrays that come again and again: when a loop is compiled for them.

The plain case in C (`api/core/plain/recurring.h`) counts what they have taken, and asks here. What lies on
disk is taken; what does not is compiled as stages are, once NumPy's loops have taken that long, by the
compiler's process in the background, or after the program's end.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from spartan_ng.api.core.quick import learn_recurring
from spartan_ng.beginning import import_beside
from spartan_ng.config import config
from spartan_ng.costs.choices import HOT_S, RECURRING
from spartan_ng.costs.tuned import KERNELS_S, RECURRING_S

if TYPE_CHECKING:
    from spartan_ng.kernels.compiled.compile import Kernel
    from spartan_ng.kernels.compiled.trust import Heat

_importing: threading.Thread | None = None
_is_loaded = False
"""Whether that thread has imported what makes kernels."""
_kernels: dict[Any, tuple[Kernel, Heat] | None] = {}
"""By what expressions are alike in, with the seconds that NumPy's loops took in their place; None where
nothing can be compiled."""


def _address_of(expression: tuple[Any, ...], done: float, is_wrong: int) -> int:
    """The address of an expression's kernel; 0 as long as there is none, -1 where there will be none.

    Parameters
    ----------
    expression : functions, dtypes and letters, as `kernels.compiled.recurring.loop_source` takes them
    done : operations on elements that NumPy's loops have done
    is_wrong : whether the kernel has made other bits than NumPy's loops
    """
    seconds = done * RECURRING_S
    if not (_is_loaded or _is_waited_for()):
        if seconds >= KERNELS_S:
            _begin()
        return 0
    from spartan_ng.kernels.compiled import native
    from spartan_ng.kernels.compiled.compile import compiler
    from spartan_ng.kernels.compiled.recurring import loop_source
    from spartan_ng.kernels.compiled.trust import Heat, tell_of_flaw

    if expression not in _kernels:
        source = loop_source(*expression)
        _kernels[expression] = None if source is None else (compiler.kernel(source), Heat(HOT_S))
    known = _kernels[expression]
    if known is None or known[0].failure:
        return -1
    kernel, heat = known
    if is_wrong:
        tell_of_flaw("it makes other bits", " > ".join(name for name, _, _ in expression[0]), [kernel])
        return -1
    if kernel.function is None:
        # As of stages, which a program may have besides.
        compiler.missed_s += heat.rises_to(seconds)
        pays = heat.is_hot and (compiler.pays or _is_waited_for())
        if not (pays or compiler.is_kept(kernel)):
            compiler.wish([kernel], seconds)
            return 0
        try:
            compiler.request(kernel)
        except RuntimeError:  # no thread begins any more
            return -1
        if _is_waited_for():
            compiler.wait()
    return 0 if kernel.function is None else native.address_of(kernel.function)


def _begin() -> None:
    """Import what makes kernels beside the program."""
    global _importing
    if _importing is None:
        with suppress(RuntimeError):  # no thread begins any more
            _importing = import_beside(_load)


def _load() -> None:
    global _is_loaded
    import spartan_ng.kernels.compiled.compile
    import spartan_ng.kernels.compiled.recurring
    import spartan_ng.kernels.compiled.trust

    if threading.main_thread().is_alive():
        spartan_ng.kernels.compiled.compile.compiler.load_ahead()
    _is_loaded = True


def _is_waited_for() -> bool:
    return config.kernels == "compile"


def compile_recurring(least: float = RECURRING) -> None:
    """Have kernels for expressions that come again: asked for from so many operations on elements on."""
    learn_recurring(_address_of, least)
