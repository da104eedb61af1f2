"""Keys and addresses: who may serve, who may connect, and as what."""

import os
import stat

import pytest
import zmq

from spartan_ng.errors import AuthenticationFailed, MasterUnreachable, OptionError
from spartan_ng.wire.access import Access, Authenticator, is_loopback, may_be, private_folder
from spartan_ng.wire.keys import ROLES, Keys, keygen, keygen_for, listed, revoke


@pytest.fixture
def folder(tmp_path):
    keygen(tmp_path / "keys")
    return tmp_path / "keys"


def test_secrets_are_for_their_owner_alone(folder):
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*.key*")}
    secrets = {f"{name}.key_secret" for name in ("server", *ROLES)}
    assert modes == {**dict.fromkeys(secrets, 0o600), **{f"{n}.key": 0o644 for n in ("server", *ROLES)}}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("role", ["server", *ROLES])
def test_each_role_has_a_key_of_its_own(folder, role):
    keys = Keys.load(folder, role)
    users = keys.authorized()
    assert sorted(u.split()[:2] for u in users.values()) == sorted([r, r] for r in ROLES)
    if role == "server":
        assert keys.own.public == keys.server_public
    else:
        assert users[keys.own.public.decode()].startswith(f"{role} {role} ")


def test_keys_are_never_overwritten(folder):
    before = (folder / "client.key_secret").read_bytes()
    with pytest.raises(OptionError, match="exists already"):
        keygen(folder)
    assert (folder / "client.key_secret").read_bytes() == before
    keygen_for(folder, "alice", "client")
    with pytest.raises(OptionError, match="alice has a key"):
        keygen_for(folder, "alice", "admin")


@pytest.mark.parametrize("name", ["server", "authorized", "..", ".", "a/b", "", "-x", "a b", "x" * 65])
def test_names_that_are_none(folder, name):
    with pytest.raises(OptionError, match="name"):
        keygen_for(folder, name, "client")
    with pytest.raises(OptionError, match="name"):
        revoke(folder, name)


def test_a_bundle_has_what_its_holder_needs_and_no_more(folder):
    keygen_for(folder, "alice", "client")
    assert {p.name for p in (folder / "alice").iterdir()} == {"server.key", "client.key_secret"}
    own = Keys.load(folder / "alice", "client").own.public.decode()
    assert Keys.load(folder, "server").authorized()[own].startswith("client alice ")
    for role in ("server", "worker", "admin"):
        with pytest.raises(AuthenticationFailed):
            Keys.load(folder / "alice", role)
    assert ("alice", "client") in listed(folder)
    revoke(folder, "alice")
    assert own not in Keys.load(folder, "server").authorized()
    assert "alice" not in dict(listed(folder))


def test_a_directory_without_keys(tmp_path):
    with pytest.raises(AuthenticationFailed, match="spartan-ng keygen"):
        Keys.load(tmp_path, "client")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_secrets_that_others_may_read_or_write_are_refused(folder, mode):
    (folder / "client.key_secret").chmod(mode)
    with pytest.raises(AuthenticationFailed, match="others may"):
        Keys.load(folder, "client")


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o711, 0o777])
def test_folders_that_others_may_read_or_write_are_refused(folder, mode):
    folder.chmod(mode)
    with pytest.raises(AuthenticationFailed, match="others may"):
        Keys.load(folder, "client")


def test_public_keys_that_others_may_write_let_nobody_in(folder):
    (folder / "authorized" / "client.key").chmod(0o666)
    (folder / "authorized" / "bad.key").write_text("no key")
    (folder / "authorized" / "short.key").write_text(
        'metadata\n    role = "admin"\ncurve\n    public-key = "x"\n'
    )
    assert {u.split()[1] for u in Keys.load(folder, "server").authorized().values()} == {"worker", "admin"}


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


@pytest.mark.parametrize("address", ["tcp://0.0.0.0:1", "tcp://127.0.0.1:1", "tcp://[::1]:1"])
def test_tcp_needs_keys_or_says_that_it_has_none(folder, address):
    with pytest.raises(AuthenticationFailed, match="keygen"):
        Access().check(address)
    Access(Keys.load(folder, "server")).check(address)
    Access(insecure=True).check(address)


@pytest.mark.parametrize("mode", [0o711, 0o750, 0o777, 0o1777])
def test_local_sockets_need_a_folder_of_their_own(tmp_path, mode):
    Access().check(f"ipc://{tmp_path}/master")
    tmp_path.chmod(mode)
    for access in (Access(), Access(insecure=True)):
        with pytest.raises(AuthenticationFailed, match="others may"):
            access.check(f"ipc://{tmp_path}/master")


def test_a_private_folder_is_one():
    folder = private_folder()
    try:
        Access().check(f"ipc://{folder}/master")
    finally:
        folder.rmdir()


def ask(door, domain, address, mechanism, *credentials):
    reply = door.answer([b"1.0", b"7", domain, address, b"", mechanism, *credentials])
    assert reply[:2] == [b"1.0", b"7"]
    return reply[4].decode() if reply[2] == b"200" else None


def test_only_known_keys_are_let_in(folder):
    keys = Keys.load(folder, "client")
    door = Authenticator(Keys.load(folder, "server").authorized())
    known = zmq.utils.z85.decode(keys.own.public)
    ours = f"localhost:{os.geteuid()}:0:1".encode()
    assert str(ask(door, b"keys", b"10.0.0.2", b"CURVE", known)).startswith("client client ")
    assert ask(door, b"keys", b"10.0.0.2", b"CURVE", bytes(32)) is None
    assert ask(door, b"keys", b"10.0.0.2", b"PLAIN", b"user", b"password") is None
    for address in (b"10.0.0.2", ours):  # whatever the address says, a port with keys asks for a key
        assert ask(door, b"keys", address, b"NULL") is None


def test_only_the_own_user_is_let_in_at_a_local_socket():
    door = Authenticator()
    me = os.geteuid()
    assert ask(door, b"same user", f"localhost:{me}:5:77".encode(), b"NULL") == "owner"
    for address in (f"localhost:{me + 1}:{me}:{me}", "", "127.0.0.1", "localhost", "a:b:c:d"):
        assert ask(door, b"same user", address.encode(), b"NULL") is None
    assert ask(door, b"", f"localhost:{me}:5:77".encode(), b"NULL") is None


@pytest.mark.parametrize("wanted", [*ROLES, "server", "owner", "anybody", ""])
@pytest.mark.parametrize("user", ["worker w k", "client c k", "admin a k", "owner", "anybody"])
def test_a_role_is_what_the_door_says(user, wanted):
    kind = user.split()[0]
    allowed = {"worker": {"worker"}, "client": {"client"}, "admin": {"client", "admin"}}
    assert may_be(user, wanted) is (wanted in allowed.get(kind, set(ROLES)))


@pytest.mark.parametrize(
    "address", ["", "10.0.0.1:7077", "tcp://10.0.0.1", "tcp://:", "tcp://10.0.0.1:65536", "unix:///tmp/x"]
)
def test_what_is_no_address_is_said_to_be_none(address):
    for insecure in (False, True):
        with pytest.raises(MasterUnreachable, match=r"is no address: tcp://HOST:PORT.*dask://.*ray://"):
            Access(insecure=insecure).check(address)


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.1:7077", "tcp://*:*", "tcp://[::1]:7077", "tcp://host.org:1"]
)
def test_what_is_an_address_is_taken(address):
    Access(insecure=True).check(address)


def test_who_lacks_keys_is_told_how_to_name_them_on_the_command_line_and_in_python(tmp_path):
    with pytest.raises(AuthenticationFailed, match=r'--keys DIR \(in Python keys="DIR"\)'):
        Access().check("tcp://10.0.0.1:7077")
    with pytest.raises(AuthenticationFailed, match=r'--keys DIR \(in Python keys="DIR"\)'):
        Keys.load(tmp_path / "none", "client")
