"""Keys, tokens and addresses: who may serve, who may connect."""

import stat

import pytest

from spartan_ng.errors import AuthenticationFailed, OptionError
from spartan_ng.wire.security import Keys, answer_zap, is_loopback, keygen, require_keys


def test_secrets_are_for_their_owner_alone(tmp_path):
    paths = keygen(tmp_path / "keys")
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in paths}
    assert modes == {
        "server.key": 0o644,
        "server.key_secret": 0o600,
        "client.key": 0o644,
        "client.key_secret": 0o600,
    }
    keys = Keys.load(tmp_path / "keys")
    assert keys.server_secret is not None
    assert len(keys.allowed) == 2


def test_keys_are_never_overwritten(tmp_path):
    keygen(tmp_path)
    before = (tmp_path / "client.key_secret").read_bytes()
    with pytest.raises(OptionError, match="exists already"):
        keygen(tmp_path)
    assert (tmp_path / "client.key_secret").read_bytes() == before


def test_a_directory_without_keys(tmp_path):
    with pytest.raises(AuthenticationFailed, match="spartan-ng keygen"):
        Keys.load(tmp_path)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("tcp://127.0.0.1:7077", True),
        ("tcp://127.5.5.5:*", True),
        ("tcp://localhost:1", True),
        ("tcp://[::1]:7", True),
        ("tcp://[::ffff:127.0.0.1]:7", True),
        ("tcp://0.0.0.0:7077", False),
        ("tcp://*:7077", False),
        ("tcp://10.0.0.1:7077", False),
        ("tcp://[::]:7", False),
        ("tcp://no-such-host.invalid:7", False),
    ],
)
def test_loopback(address, expected):
    assert is_loopback(address) is expected


def test_other_addresses_need_keys(tmp_path):
    with pytest.raises(AuthenticationFailed, match="keygen"):
        require_keys("tcp://0.0.0.0:1", None)
    require_keys("tcp://127.0.0.1:1", None)
    keygen(tmp_path)
    require_keys("tcp://0.0.0.0:1", Keys.load(tmp_path))
    (tmp_path / "server.key_secret").unlink()
    with pytest.raises(AuthenticationFailed, match=r"server\.key_secret"):
        require_keys("tcp://0.0.0.0:1", Keys.load(tmp_path))


def test_only_known_keys_are_let_in(tmp_path):
    import zmq

    keygen(tmp_path)
    keys = Keys.load(tmp_path)
    known = zmq.utils.z85.decode(keys.own_public)

    def ask(mechanism, *credentials):
        return answer_zap([b"1.0", b"7", b"", b"10.0.0.2", b"", mechanism, *credentials], keys)[2]

    assert ask(b"CURVE", known) == b"200"
    assert ask(b"CURVE", bytes(32)) == b"400"
    assert ask(b"CURVE", b"short") == b"400"
    assert ask(b"NULL") == b"400"
    assert ask(b"PLAIN", b"user", b"password") == b"400"
