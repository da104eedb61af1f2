"""A kernel is trusted after it has proved itself, and a proof that finds no room proves nothing."""

from __future__ import annotations

import pytest

from spartan_ng.errors import OutOfResources
from spartan_ng.kernels.compiled.trust import Trust


@pytest.mark.parametrize("error", [MemoryError, OutOfResources])
def test_a_proof_without_room_is_made_another_time(error: type[Exception]) -> None:
    """The kernel is not used meanwhile; whoever works without it says what has no room."""
    trust = Trust()

    def flaw() -> str:
        raise error("no room")

    assert not trust.of("kernel", flaw, "a sum", ())
    assert trust.of("kernel", lambda: "", "a sum", ())
    assert trust.of("kernel", flaw, "a sum", ())  # it is known by now
