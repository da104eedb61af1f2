"""Modules that are compiled, if they could be, of the text that lies beside them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from zlib import crc32


def built(name: str, beside: str, *files: str) -> ModuleType | None:
    """A compiled module; None where there is none, or one that was compiled of another text than that of some
    files beside another one, in that order."""
    try:
        module = import_module(name)
    except ImportError:
        return None
    try:
        text = b"".join((Path(beside).parent / file).read_bytes() for file in files)
    except OSError:  # an installed package has no sources
        return module
    return module if crc32(text) == module.SOURCE else None
