"""Libraries that need not be there, and what brings them."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from spartan_ng.config import config
from spartan_ng.errors import MissingLibrary

_POOL = "ARROW_DEFAULT_MEMORY_POOL"


def needed(module: str, extra: str) -> Any:
    """A module of a library that need not be there; MissingLibrary names the extra that brings it."""
    try:
        if module.startswith("pyarrow") and "pyarrow" not in sys.modules and config.memory_bytes is not None:
            _import_pyarrow()
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingLibrary(
            f"{library} is needed for this and cannot be imported ({error}); "
            f'`pip install "spartan-ng[{extra}]"` brings it',
            name=library,
        ) from error


def _import_pyarrow() -> None:
    """Have it take the system's memory, unless the user has said whose: its own pool keeps a multiple of what
    it uses, which a budget has no room for. It asks for that once, in the environment."""
    said = _POOL in os.environ
    os.environ.setdefault(_POOL, "system")
    try:
        import_module("pyarrow").default_memory_pool()
    finally:
        if not said:
            os.environ.pop(_POOL, None)
