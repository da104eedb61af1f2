"""Whose memory pyarrow takes for what it unpacks.

Elements of columns are in the system's memory, if it is told so. Pages of Parquet files are in the default
pool of the process all the same, and so is what it packs: where the program had imported pyarrow before us,
that is a pool of its own, which keeps several megabytes of each thread that has read something, in use or
not. Under a budget that has no room for so many, one thread reads, and packs, for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from spartan_ng.config import config
from spartan_ng.extras import needed
from spartan_ng.memory import READERS, budget_bytes
from spartan_ng.system.processes import after_fork

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
_POOLS = Lock()
_THREADS_BYTES = 1 << 23
"""What pyarrow's own pool keeps of a thread,"""
_POOL_SHARE = 16
"""and what it may keep of all that read: one part in so many of the memory."""


@contextmanager
def in_systems_pool() -> Iterator[None]:
    """While a reader is made that takes its memory from the default pool of its time."""
    arrow = needed("pyarrow", "tables")
    with _POOLS:
        before = arrow.default_memory_pool()
        arrow.set_memory_pool(arrow.system_memory_pool())
        try:
            yield
        finally:
            arrow.set_memory_pool(before)


def unpacked(call: Callable[..., T], *args: Any, **keywords: Any) -> T:
    """What a call of pyarrow gives that reads pages of a Parquet file, or packs them: from the thread that
    does so for all, where others have no room for it."""
    if not pool_bytes():
        return call(*args, **keywords)
    return _reader().submit(_alone, call, args, keywords).result()


def each_unpacked(batches: Iterable[T]) -> Iterator[T]:
    """What an iterator of pyarrow's gives, in the same way."""
    left = iter(batches)
    while (found := unpacked(next, left, None)) is not None:
        yield found


def pool_bytes() -> int:
    """What pyarrow's own pool keeps of the one thread that takes anything of it; 0 where all may."""
    is_bounded = config.memory_bytes is not None and budget_bytes() < READERS * _THREADS_BYTES * _POOL_SHARE
    is_own = is_bounded and needed("pyarrow", "tables").default_memory_pool().backend_name != "system"
    return _THREADS_BYTES if is_own else 0


def free_unused() -> None:
    """Have the default pool give back what it has of this thread's that nobody uses."""
    needed("pyarrow", "tables").default_memory_pool().release_unused()


def _alone(call: Callable[..., T], args: Any, keywords: Any) -> T:
    try:
        return call(*args, **keywords)
    finally:
        free_unused()


@cache
def _reader() -> ThreadPoolExecutor:
    """Of one thread, with which a fork does not come."""
    from concurrent.futures import ThreadPoolExecutor  # few programs read tables

    return ThreadPoolExecutor(1, "tables")


after_fork(_reader.cache_clear)
