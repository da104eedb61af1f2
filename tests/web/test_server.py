"""The page's server: who has the link sees all, who has not learns nothing."""

import json
import socket
import urllib.error
import urllib.request
from collections import deque
from contextlib import ExitStack, suppress
from itertools import count

import pytest

from spartan_ng.config import PAGE_TOKEN_VARIABLE
from spartan_ng.errors import ConnectionFailed, OptionError
from spartan_ng.web import door
from spartan_ng.web.board import Board
from spartan_ng.web.drawing import described
from spartan_ng.web.server import PageServer


@pytest.fixture
def board():
    board = Board("title")
    board.worker_came("w0", 0, "label", 4, 1000)
    return board


@pytest.fixture
def server(board):
    server = PageServer(board)
    yield server
    server.close()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


def ask(server, path, method="GET", token=None, **headers):
    """Status, headers and body of an answer."""
    request = urllib.request.Request(server.address + path, method=method, headers=headers)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.build_opener(_Stay).open(request) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


PATHS = [
    "",
    "state",
    "events",
    "plan?key=x",
    "plan.json",
    "metrics",
    "static/page.js",
    "no/such/path",
    "static/../x",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS"])
def test_a_stranger_learns_nothing(server, path, method):
    wrong = {"Cookie": f"spartan_ng_{server.address.rsplit(':', 1)[1][:-1]}=x", "Authorization": "Bearer x"}
    for headers in ({}, wrong):
        status, found, body = ask(
            server, path + ("&" if "?" in path else "?") + "token=no", method, **headers
        )
        assert (status, body) == (401, b"")
        assert {name.lower() for name in found} == {"content-length", "connection"}


def connected(server):
    return socket.create_connection(("127.0.0.1", int(server.address.rsplit(":", 1)[1][:-1])))


def heard(plain):
    """All that comes until the other end closes the connection."""
    found = b""
    with suppress(ConnectionResetError):  # it has not read all that was sent
        while more := plain.recv(1 << 16):
            found += more
    return found


MALFORMED = {
    "no path": b"GET * HTTP/1.1\r\n\r\n",
    "a space in the path": b"GET /a b HTTP/1.1\r\n\r\n",
    "one word": b"GET\r\n\r\n",
    "nothing": b"\r\n\r\n",
    "a NUL": b"GET /\0 HTTP/1.1\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n",
    "a length below 0": b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    "many fields": b"GET /?" + b"token=x&" * 200 + b" HTTP/1.1\r\n\r\n",
    "another HTTP": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a tunnel": b"CONNECT x:80 HTTP/1.1\r\nAuthorization: Bearer\r\nCookie: x\r\n\r\n",
    "no text": bytes(range(128, 256)) + b"\r\n\r\n",
    "no end": b"x" * (door.HEAD_BYTES + 1),
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED.keys())
def test_strangers_hear_the_same_whatever_they_send(server, sent):
    with connected(server) as plain:
        plain.sendall(sent)
        assert heard(plain) == door.NO


def test_a_strangers_body_is_not_read(server):
    with connected(server) as plain:
        plain.sendall(b"POST /x HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
        endless = (bytes(1 << 16) for _ in count())
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            deque(map(plain.sendall, endless), maxlen=0)


def test_strangers_who_say_nothing_make_room_for_others(server, monkeypatch):
    monkeypatch.setattr(door, "STRANGERS", 5)
    with ExitStack() as stack:
        plain = [stack.enter_context(connected(server)) for _ in range(12)]
        for one in plain[:7]:
            assert heard(one) == b""
        assert ask(server, "state", token=server.token)[0] == 200
        plain[-1].sendall(b"\r\n\r\n")
        assert heard(plain[-1]) == door.NO


def test_strangers_who_say_too_little_are_cut_off(server, monkeypatch):
    monkeypatch.setattr(door, "HEAD_S", 0.01)
    with connected(server) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert heard(plain) == b""


def test_a_head_may_come_in_parts(server):
    with connected(server) as plain:
        for part in (b"GET /state HT", b"TP/1.1\r\nAuthorization: Bea", f"rer {server.token}\r\n".encode()):
            plain.sendall(part)
        plain.sendall(b"Host: x\r\nConnection: close\r\n\r\n")
        assert heard(plain).startswith(b"HTTP/1.1 200 OK")


def test_what_goes_wrong_again_and_again_fills_no_log(server, caplog):
    for _ in range(100):
        server._failed(server._loop, {"message": "there are no descriptors left"})
    assert 1 <= caplog.text.count("no descriptors left") <= 10


def test_the_link_opens_the_page_and_leaves_no_token_in_its_address(server):
    status, found, _ = ask(server, f"?token={server.token}")
    assert (status, found["Location"]) == (303, "/")
    cookie, *rest = found["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= set(rest)
    status, found, body = ask(server, "", Cookie=cookie)
    assert status == 200
    assert b"<title>" in body
    assert server.token.encode() not in body
    assert "default-src 'none'" in found["Content-Security-Policy"]
    assert found["Referrer-Policy"] == "no-referrer"


def test_all_that_the_page_needs_is_served_here(server):
    _, _, page = ask(server, "", token=server.token)
    text = page.decode()
    assert "://" not in text.replace("http://www.w3.org", "")
    for name in (
        "uPlot.min.css",
        "page.css",
        "uPlot.iife.min.js",
        "charts.js",
        "flames.js",
        "page.js",
        "uPlot.LICENSE",
    ):
        status, _, body = ask(server, f"static/{name}", token=server.token)
        assert status == 200, name
        assert body, name
        assert name in text or name == "uPlot.LICENSE"
    assert ask(server, "static/page.html", token=server.token)[0] == 404
    assert ask(server, "static/..%2fserver.py", token=server.token)[0] == 404


def test_state_is_json_and_follows_versions(server, board):
    first = json.loads(ask(server, "state", token=server.token)[2])
    assert first["rows"]["workers"]["w0"]["label"] == "label"
    board.vitals("w0", used=9)
    then = json.loads(ask(server, f"state?since={first['version']}", token=server.token)[2])
    assert then["rows"] == {"workers": {"w0": {**first["rows"]["workers"]["w0"], "used": 9}}}
    for bad in ("x", "-1", "1e3", "9" * 30):
        assert ask(server, f"state?since={bad}", token=server.token)[0] == 400


@pytest.mark.slow
def test_events_come_as_they_happen(server, board):
    request = urllib.request.Request(
        f"{server.address}events", headers={"Authorization": f"Bearer {server.token}"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        first = json.loads(answer.readline().removeprefix(b"data: "))
        assert answer.readline() == b"\n"
        board.logged("here", "info", "<script>")
        then = json.loads(answer.readline().removeprefix(b"data: "))
        assert [row["text"] for row in then["rows"]["logs"].values()] == ["<script>"]
        assert then["version"] > first["version"]
        server.close()
        assert answer.read().strip() == b""


def test_a_port_that_is_taken_is_an_error(board):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConnectionFailed, match="no page at"):
        PageServer(board, port=taken.getsockname()[1])


def test_the_environment_may_set_the_token(board, monkeypatch):
    monkeypatch.setenv(PAGE_TOKEN_VARIABLE, "a token & more of it; 32 characters")
    server = PageServer(board)
    try:
        assert ask(server, "state", token=server.token)[0] == 200
        assert ask(server, f"?{server.url.partition('?')[2]}")[0] == 303
    finally:
        server.close()
    monkeypatch.setenv(PAGE_TOKEN_VARIABLE, "short")
    with pytest.raises(OptionError, match="5 characters; 32"):
        PageServer(board)


STAGE = {
    "number": 0,
    "kind": "fused",
    "operators": ["<script>alert(1)</script>"],
    "domain": [3],
    "grid": "1",
    "reads": [0],
    "writes": [1],
    "predicted_bytes": 0,
    "predicted_seconds": 0.1,
    "measured_bytes": None,
    "measured_seconds": None,
}
ARRAY = {"shape": [3], "dtype": "float64", "tiling": "1", "format": "dense", "nbytes": 24, "role": "between"}


def description(**changes):
    arrays = [{"number": n, **ARRAY} for n in range(2)]
    found = {"workers": 1, "arrays": arrays, "stages": [STAGE], "inputs": [0], "outputs": [1], **changes}
    return json.dumps(found).encode()


def test_what_a_client_says_of_its_plan_is_drawn_and_escaped(server, board):
    board.described("c:p", described(description()))
    status, found, body = ask(server, "plan?key=c:p", token=server.token)
    assert (status, found["Content-Type"].partition(";")[0]) == (200, "image/svg+xml")
    assert b"<script" not in body
    assert b"&lt;script&gt;" in body
    assert b'data-stage="0"' in body
    assert json.loads(ask(server, "plan.json?key=c:p", token=server.token)[2])["workers"] == 1
    assert ask(server, "plan?key=c:q", token=server.token)[0] == 404


@pytest.mark.parametrize(
    "changes",
    [
        {"stages": [{**STAGE, "reads": [5]}]},
        {"outputs": [-1]},
        {"stages": [{**STAGE, "operators": "text"}]},
        {"arrays": [{"number": 0}]},
        {"workers": "1"},
        {"stages": [{**STAGE, "kind": "no such"}]},
        {"arrays": [{"number": n, **ARRAY, "role": "no such"} for n in range(2)]},
    ],
)
def test_what_is_no_description_is_refused(changes):
    with pytest.raises(ValueError, match=r"Expected|required|a description"):
        described(description(**changes))
