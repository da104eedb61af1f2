"""What ZeroMQ's events mean: only who says no, or closes each handshake, refuses."""

import pytest
import zmq

from spartan_ng.errors import AuthenticationFailed, MasterUnreachable
from spartan_ng.wire.connection import Handshake

CONNECTED, DISCONNECTED = zmq.EVENT_CONNECTED, zmq.EVENT_DISCONNECTED
DONE, CLOSED = zmq.EVENT_HANDSHAKE_SUCCEEDED, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
ENDED = [CONNECTED, CLOSED, DISCONNECTED]


@pytest.mark.parametrize(
    ("events", "kind", "said"),
    [
        ([], MasterUnreachable, "no master answers"),
        ([DISCONNECTED], MasterUnreachable, "no master answers"),
        ([CONNECTED], MasterUnreachable, "not let us in"),
        (ENDED, MasterUnreachable, "not let us in"),
        ([*ENDED, CONNECTED], MasterUnreachable, "not let us in"),
        ([CONNECTED, DONE], MasterUnreachable, "nothing answers"),
        ([*ENDED, *ENDED, CONNECTED, DONE], MasterUnreachable, "nothing answers"),
        (ENDED * 3, AuthenticationFailed, "refuses"),
        ([CONNECTED, zmq.EVENT_HANDSHAKE_FAILED_AUTH], AuthenticationFailed, "refuses"),
        ([CONNECTED, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL], AuthenticationFailed, "refuses"),
    ],
)
def test_what_events_mean(events, kind, said):
    handshake = Handshake("tcp://there:1")
    for event in events:
        handshake.note(event)
    assert handshake.failed is (kind is AuthenticationFailed)
    error = handshake.error(5.0)
    assert type(error) is kind
    assert said in str(error)
