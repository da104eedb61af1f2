"""Which engine an address names, and engines of one's own for a script.

The engines' own packages are imported when somebody asks for them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.config import ENGINES
from spartan_ng.errors import ConnectionFailed


def names_engine(address: Any) -> bool:
    """Whether `address` is an engine's, or a client of one, and not a master's."""
    return not isinstance(address, str) or address.partition("://")[0] in ENGINES


def connect(address: Any, workers: int) -> EngineBackend:
    """The backend at an engine's address, or over a `distributed.Client` or a cluster object of dask's.

    Raises ConnectionFailed, and TypeError for an object that is no client.
    """
    if isinstance(address, str):
        module = _module(address.partition("://")[0])
        return EngineBackend(module.connect(address, workers))
    bases = {base.__module__.partition(".")[0] for base in type(address).__mro__}
    if "distributed" not in bases:
        raise TypeError(
            f"connect() takes an address or a distributed.Client, not {type(address).__name__}; Ray is named "
            '"ray" or "ray://host:10001"'
        )
    return EngineBackend(_module("dask").over(address))


def local(engine: str, workers: int, threads: int) -> AbstractContextManager[dict[str, str]]:
    """A new engine on this machine; gives the environment in which a script runs on it."""
    found: AbstractContextManager[dict[str, str]] = _module(engine).local(workers, threads)
    return found


def _module(engine: str) -> Any:
    try:
        return import_module(f"spartan_ng.backends.engines.kinds.{engine}")
    except ImportError as error:
        raise ConnectionFailed(
            f"{engine} is not installed ({error}): pip install 'spartan-ng[{engine}]'"
        ) from error
