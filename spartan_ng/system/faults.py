"""Files that somebody makes shorter while they are read here: an error, and not the end of the process.

What is compiled (`_faults.c`) says how. Where it is not, or on other systems, the process ends.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from spartan_ng.system.built import built

_module: Any = built("spartan_ng.system._faults", __file__, "_faults.c") if sys.platform == "linux" else None
IS_COMPILED = _module is not None
"""Whether files are guarded."""

if _module is None:

    def guard(address: int, size: int) -> int:
        """Guard whole pages; what names them from then on."""
        return 0

    def release(pages: int) -> None:
        """Guard them no more, before they are another's."""

    def is_spoiled(pages: int) -> bool:
        """Whether somebody has read what was not there."""
        return False

    def any_spoiled() -> bool:
        """Whether that has happened in this process."""
        return False

    def enter() -> None:
        """Say that this thread asks `is_spoiled` behind what it reads."""

    def leave() -> None:
        """As before `enter`."""

    def reads() -> None:
        """Have this thread told while it reads."""

else:
    guard, release, is_spoiled, any_spoiled = (
        _module.guard,
        _module.release,
        _module.is_spoiled,
        _module.any_spoiled,
    )
    enter, leave, reads = _module.enter, _module.leave, _module.reads


def raises(error: type[BaseException]) -> None:
    """Say of which class the error is that threads are told by; it is made without arguments."""
    if _module is not None:
        _module.raises(error, threading.main_thread().ident)
