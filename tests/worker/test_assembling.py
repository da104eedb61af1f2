"""What is put together of regions is copied by all threads, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy
import pytest

import spartan_ng as np
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.worker.blocks import BlockThreads
from spartan_ng.worker.stages import assembling
from tests.test_programs import running_on

STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rolled": lambda m, a, b: m.roll(a, 5, axis=1),
    "rolled along lines": lambda m, a, b: m.roll(a, -3, axis=0),
    "joined": lambda m, a, b: m.concatenate([a, b]),
    "joined along lines": lambda m, a, b: m.concatenate([a, b, a], axis=-1),
    "stacked": lambda m, a, b: m.stack([a, b], axis=1),
}
TYPES: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: x,
    "narrow": lambda x: (x * 100).astype(numpy.uint8),
    "turned": lambda x: numpy.ascontiguousarray(x.T).T,
    "of one long line": lambda x: x.reshape(1, -1),
    "of objects": lambda x: x.astype(object),
}


@pytest.fixture(autouse=True)
def lazy() -> Iterator[None]:
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        yield


def copied(make: Callable[[], Any]) -> tuple[Any, list[int], list[bool]]:
    """An answer, the bytes of each piece that was copied for it, and whether those of a stage were shared."""
    pieces: list[int] = []
    shared: list[bool] = []
    copy, parallel = assembling._copied, BlockThreads.parallel

    def copying(piece: Any) -> None:
        pieces.append(piece[0].nbytes)
        copy(piece)

    def sharing(self: Any, run: Any, items: Any, make: Any, small: bool, *args: Any, **keywords: Any) -> Any:
        shared.append(not small)
        return parallel(self, run, items, make, small, *args, **keywords)

    with (
        patch.object(assembling, "_copied", copying),
        patch.object(assembling, "block_bytes", lambda: 1 << 12),
        patch.object(BlockThreads, "parallel", sharing),
    ):
        return numpy.asarray(make()), pieces, shared


@pytest.mark.parametrize("of", TYPES)
@pytest.mark.parametrize("name", STEPS)
def test_threads_share_the_pieces(name: str, of: str) -> None:
    rng = numpy.random.default_rng(0)
    x, y = (TYPES[of](rng.random((90, 70))) for _ in range(2))
    a, b = np.array(x), np.array(y)
    found, pieces, shared = copied(lambda: STEPS[name](np, a, b))
    expected = STEPS[name](numpy, x, y)
    assert found.dtype == expected.dtype
    numpy.testing.assert_array_equal(found, expected)
    if of == "of objects":
        assert not any(shared), "they are counted under the interpreter's lock"
    elif pieces:
        assert sum(pieces) == expected.nbytes
        assert max(pieces) <= 1 << 12
        assert True in shared


def test_what_is_written_comes_after_what_was_there() -> None:
    """Each piece of the one lies under pieces of the other."""
    x = numpy.random.default_rng(0).random((90, 70))
    y = x * 2
    expected = y.copy()
    y[10:60:2, 3:] = x[:25, 3:]
    for _ in range(20):
        a = np.array(x)
        b = a * 2
        with config.override(disabled_passes={"fuse"}):

            def written(a: Any = a, b: Any = b) -> Any:
                b[10:60:2, 3:] = a[:25, 3:] * 1
                return b

            found, _, _ = copied(written)
        numpy.testing.assert_array_equal(found, y)
    assert not numpy.array_equal(expected, y)
