"""Which compiled kernels may take NumPy's place: those that have computed on a trial what NumPy does.

A kernel proves itself once for what it was laid out for: a stage and its operands' strides, or, where its
source is ready-made, the kinds of operand that its table knows. What has kernels compiled is imported when
the first one is wanted: programs of a few products never do.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spartan_ng.config import config
from spartan_ng.costs.choices import HOT_S, WARM
from spartan_ng.error_state import error_state
from spartan_ng.errors import KernelWarning, OutOfResources

if TYPE_CHECKING:
    from spartan_ng.kernels.compiled.compile import Kernel
    from spartan_ng.kernels.compiled.native import Function


class Trust:
    """Whether kernels have proved themselves, by what they were laid out for."""

    def __init__(self) -> None:
        self._known: dict[Hashable, bool] = {}

    def clear(self) -> None:
        """Ask for all proofs anew."""
        self._known.clear()

    def admit(self, key: Hashable) -> None:
        """Ask for no proof of this, which is known to have given one."""
        self._known[key] = True

    def of(self, key: Hashable, flaw: Callable[[], str], what: str, kernels: Sequence[Kernel]) -> bool:
        """Whether kernels may be used; `flaw` says what they make otherwise than NumPy, empty if nothing.

        What is wrong is told once, with the files that the sources are in. Where neither memory nor disk has
        room for the proof, they are not used this time.
        """
        known = self._known.get(key)
        if known is not None:
            return known
        try:
            with np.errstate(all="ignore"):
                found = flaw()
        except (OutOfResources, MemoryError):
            return False
        self._known[key] = not found
        if found:
            tell_of_flaw(found, what, kernels)
        return not found


def tell_of_flaw(flaw: str, what: str, kernels: Sequence[Kernel]) -> None:
    """Tell whom it concerns what kernels make otherwise than NumPy."""
    from spartan_ng.kernels.compiled.compile import compiler

    files = " and ".join(str(compiler.source_file(k)) for k in kernels)
    warnings.warn(
        f"the compiled kernel of {what} is wrong, and is not used: {flaw}. Its source is {files}",
        KernelWarning,
        stacklevel=3,
    )


class Heat:
    """How much of a kind of work was done while its kernel was not there, which is not worth compiling for a
    little of it."""

    def __init__(self, hot: float) -> None:
        """`hot` is the work after which it is."""
        self._hot = hot
        self._done = 0.0

    def is_warmed(self, work: float) -> bool:
        """So much is to be done now: whether a kernel that lies on disk is worth loading."""
        self._done += work
        return self._done >= self._hot / WARM or config.kernels == "compile"

    def rises_to(self, work: float) -> float:
        """So much has been done in all: how much of it since that was said last."""
        before, self._done = self._done, work
        return work - before

    @property
    def share(self) -> float:
        """What was done, as a part of what a kernel is worth compiling for."""
        return self._done / self._hot

    @property
    def is_hot(self) -> bool:
        """Whether the kernel is worth compiling."""
        return self._done >= self._hot or config.kernels == "compile"


_ready_made = Trust()
_PROVING = threading.RLock()
"""Who proves a ready-made kernel does so alone: threads come to the first product of a pass together."""


def at_hand(
    source: str,
    kind: Hashable,
    flaw: Callable[[Function], str],
    what: str,
    worth_s: float = 0.0,
    heat: Heat | None = None,
) -> Function | None:
    """The compiled function of a ready-made source, or None: NumPy has to do it (for now).

    Parameters
    ----------
    kind : what its table was laid out for; it proves itself once for each
    flaw : what it makes otherwise than NumPy of some of the operands, empty if nothing
    what : for people, what it does
    worth_s : what NumPy has to do first, for so long, where there is none: one on disk is waited for
    heat : of such work; without any it is worth compiling. Until it is, a kernel on disk is used, and one
        that is not there is compiled when the program has ended

    Compiled loops report no floating-point errors: where NumPy's error state asks for more than warnings,
    there is none.
    """
    if not config.compiles or error_state().is_strict:
        return None
    from spartan_ng.kernels.compiled.cache import titled
    from spartan_ng.kernels.compiled.compile import compiler

    kernel = compiler.kernel(titled(what, source))
    if not kernel.settled:
        if heat is not None and not heat.is_hot and not compiler.is_kept(kernel):
            compiler.wish([kernel], heat.share * HOT_S)
            return None
        compiler.request(kernel)
        if config.kernels == "compile":
            compiler.wait()
        elif worth_s:
            compiler.wait_if_kept(kernel, worth_s)
    function = kernel.function
    if function is None:
        return None
    with _PROVING:
        trusted = _ready_made.of((source, kind), lambda: flaw(function), what, [kernel])
    return function if trusted else None
