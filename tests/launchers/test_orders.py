"""What workers are told, and what is left of it."""

from __future__ import annotations

import os
import subprocess

import pytest

from spartan_ng.errors import ConnectionFailed
from spartan_ng.launchers.orders import Order, Wishes, read_line, take
from spartan_ng.wire.keys import Keys, bundle, keygen, write_bundle
from tests.launchers.conftest import COMMAND, Place
from tests.waiting import until


def order(**wishes) -> Order:
    return Order("tcp://127.0.0.1:9", {"server.key": 'a\n"b"', "worker.key_secret": "é"}, Wishes(**wishes))


@pytest.mark.parametrize(
    "wishes", [{}, {"threads": 3, "share": 2, "memory": 1 << 40, "path": ("/a b", "/c")}]
)
def test_an_order_is_one_line_that_says_it_all(wishes):
    one = order(**wishes)
    assert one.line().count(b"\n") == 1
    assert take(one.line()) == one


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}\n", b"[]\n", b'{"master": 1}\n', order().line()[:-9], b"\xff\n"]
)
def test_what_is_no_order_is_refused(line):
    with pytest.raises(ConnectionFailed, match="no order"):
        take(line)


def test_what_follows_a_line_stays_in_the_pipe():
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo")
    assert read_line(reading) == b"one\n"
    assert os.read(reading, 10) == b"two"
    os.close(writing)
    assert read_line(reading) == b""
    os.close(reading)


def test_a_bundle_is_what_its_holder_needs_and_no_more(tmp_path):
    keygen(tmp_path / "master")
    write_bundle(tmp_path / "worker", "worker", bundle(tmp_path / "master", "worker"))
    assert Keys.load(tmp_path / "worker", "worker").own == Keys.load(tmp_path / "master", "worker").own
    assert sorted(os.listdir(tmp_path / "worker")) == ["server.key", "worker.key_secret"]


@pytest.mark.slow
def test_an_attendant_leaves_no_keys_when_its_input_closes(place: Place):
    keygen(place.folder / "keys")
    one = Order("tcp://127.0.0.1:9", bundle(place.folder / "keys", "worker"), Wishes(threads=1))
    with subprocess.Popen([*COMMAND, "attend"], stdin=subprocess.PIPE, env=place.environment) as running:
        assert running.stdin is not None, "it was asked for"
        running.stdin.write(one.line())
        running.stdin.flush()
        until(lambda: list(place.sockets.glob("*/worker.key_secret")))
        assert running.poll() is None
        running.stdin.close()
    assert not os.listdir(place.sockets)
