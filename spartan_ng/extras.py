"""Libraries that need not be there, and what brings them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spartan_ng.errors import MissingLibrary


def needed(module: str, extra: str) -> Any:
    """A module of a library that need not be there; MissingLibrary names the extra that brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingLibrary(
            f"{library} is needed for this and cannot be imported ({error}); "
            f'`pip install "spartan-ng[{extra}]"` brings it',
            name=library,
        ) from error
