"""What a worker makes of what happens on its connection to the master."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import zmq

from spartan_ng.worker.server import WorkerServer


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("event", sorted({*zmq.Event} - {zmq.Event.HANDSHAKE_SUCCEEDED}), ids=str)
def test_a_connection_that_ends_is_left_and_no_other(event: int, connected: bool) -> None:
    """An attempt that fails ends nothing, and what is noted is all else that comes of it."""
    server: Any = SimpleNamespace(_handshake=Mock(), _connected=connected, _leave_master=Mock())
    WorkerServer._connection_event(server, event)
    server._handshake.note.assert_called_once_with(event)
    assert server._leave_master.called == (connected and event == zmq.EVENT_DISCONNECTED)
