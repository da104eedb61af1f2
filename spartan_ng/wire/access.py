"""Who is let in, and how a process proves who it is: before any of its bytes are looked at.

| address | without keys | with keys |
|---|---|---|
| `ipc://` | processes of the same user, by the kernel's word | the same |
| `tcp://` | nobody, or with `insecure` everybody | who holds a key, by CurveZMQ in both directions |

A socket at an `ipc://` address lies in a folder that only its user can enter, so that whoever connects there
knows the other end, too. ZeroMQ asks the `Authenticator` during the handshake (RFC 27), before there are
messages; what it answers is all that is ever believed about a peer's role.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket as sockets
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import zmq
from msgspec import Struct, field
from zmq.utils import z85

from spartan_ng.errors import AuthenticationFailed, MasterUnreachable, OptionError
from spartan_ng.system.ownership import user_id, why_not_own
from spartan_ng.system.sockets import answers, user_of
from spartan_ng.wire.keys import ROLES, Keys, Pair, Users

_IPC = "ipc://"
_FOLDER = "spartan-ng-"
"""How the names of folders for sockets begin."""
_TCP = re.compile(r"tcp://\S+:(\d+|\*)")
_LAST_PORT = 65535
_MOST_PATH = 100
"""Characters of a socket's path; the kernel takes 107."""

_GONE_S = 5.0
"""How long a worker whose socket is gone is waited for: by then the master knows of one that has ended."""

_OWNER, _ANYBODY = "owner", "anybody"
_GRANTED = {_OWNER: ROLES, _ANYBODY: ROLES, "admin": ("admin", "client")}
"""What else than its own a role may be."""

_SAME_USER, _KEYS, _OPEN = b"same user", b"keys", b"open"
"""ZAP domains: what a socket of ours asks of those who connect."""


class Access(Struct, frozen=True):
    """What a process has to prove who it is with, and what it asks of others."""

    keys: Keys | None = None
    insecure: bool = False
    """Talk over TCP without keys: anybody who reaches a port may run code here."""

    def check(self, address: str) -> None:
        """AuthenticationFailed where others than those who may could be at the two ends of `address`;
        MasterUnreachable where it is none."""
        if address.startswith(_IPC):
            _check_folder(Path(address.removeprefix(_IPC)).parent)
        elif not (found := _TCP.fullmatch(address)) or (found[1] != "*" and int(found[1]) > _LAST_PORT):
            raise MasterUnreachable(
                f"{address!r} is no address: tcp://HOST:PORT, or ipc://FOLDER/NAME; to run on an engine "
                "dask://HOST:PORT, or ray://HOST:PORT"
            )
        elif self.keys is None and not self.insecure:
            raise AuthenticationFailed(
                f"{address} can be reached by others, who could run code here, or pretend to be the master: "
                'make keys with `spartan-ng keygen DIR` and pass them, --keys DIR (in Python keys="DIR"); or '
                "use a socket of your own, ipc://FOLDER/NAME; or let anybody do anything, --insecure (in "
                "Python insecure=True)"
            )

    @property
    def is_open(self) -> bool:
        """Whether anybody is let in who comes over TCP."""
        return self.keys is None and self.insecure

    def connect(self, socket: zmq.Socket[bytes], address: str, server: bytes | None) -> None:
        """Have a socket, before it connects, prove its key, and accept only the holder of `server`."""
        self.check(address)
        if self.keys is not None and not address.startswith(_IPC):
            if not server:
                raise AuthenticationFailed(f"the key of the process at {address} is not known")
            socket.curve_serverkey = server
            socket.curve_publickey = self.keys.own.public
            socket.curve_secretkey = self.keys.own.secret

    def serve(self, socket: zmq.Socket[bytes], address: str, pair: Pair | None) -> None:
        """Have a socket, before it binds, ask about all who connect, and prove its `pair`."""
        self.check(address)
        if address.startswith(_IPC):
            socket.zap_domain = _SAME_USER
        elif self.keys is not None:
            assert pair is not None, "a server with keys has a pair to prove who it is"
            socket.curve_server = True
            socket.curve_secretkey = pair.secret
            socket.zap_domain = _KEYS
        else:
            socket.zap_domain = _OPEN


class Authenticator(Struct):
    """Answers ZeroMQ's question who somebody is."""

    users: Users = field(default_factory=dict)
    """Whose keys open it."""

    def answer(self, request: Sequence[bytes]) -> list[bytes]:
        """The reply to one request of ZeroMQ's authentication protocol (RFC 27)."""
        version, sequence, domain, address, _identity, mechanism, *credentials = request
        user = self._user(domain, address, mechanism, credentials)
        verdict = [b"400", b"not allowed", b"", b""] if user is None else [b"200", b"OK", user.encode(), b""]
        return [version, sequence, *verdict]

    def _user(
        self, domain: bytes, address: bytes, mechanism: bytes, credentials: Sequence[bytes]
    ) -> str | None:
        if domain == _KEYS and mechanism == b"CURVE":
            return self.users.get(z85.encode(credentials[0]).decode())
        if domain == _SAME_USER and mechanism == b"NULL":
            return _OWNER if user_of(address.decode(errors="replace")) == user_id() else None
        return _ANYBODY if domain == _OPEN and mechanism == b"NULL" else None

    def knows(self, user: str) -> bool:
        """Whether somebody who was let in once would be let in now."""
        return user in (_OWNER, _ANYBODY) or user in self.users.values()


def may_be(user: str, role: str) -> bool:
    """Whether the user that the authenticator named may act in a role."""
    proved = user.partition(" ")[0]
    return role in ROLES and role in _GRANTED.get(proved, (proved,))


def own_address() -> str:
    """Where a master of this user serves if nothing else is said."""
    return f"{_IPC}{_own_folder()}/master"


def private_folder() -> Path:
    """A new folder for the sockets of one cluster."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    # The names in it have to fit, too.
    if len(base) > _MOST_PATH // 2:
        base = "/tmp"
    return Path(tempfile.mkdtemp(prefix=_FOLDER, dir=base))


def beside(address: str, name: str) -> str:
    """The address `name` in the folder of another `ipc://` address."""
    return f"{_IPC}{Path(address.removeprefix(_IPC)).parent}/{name}"


def is_local(address: str) -> bool:
    """Whether an address is a socket in a folder."""
    return address.startswith(_IPC)


def why_gone(address: str) -> str:
    """For people, what has become of a local address whose socket somebody has removed; "" of any other."""
    place = address.removeprefix(_IPC)
    if not is_local(address) or os.path.exists(place):
        return ""
    return f": its socket {place} has been removed; XDG_RUNTIME_DIR names another folder for them"


def patience_s(address: str, longest_s: float) -> float:
    """How long somebody at an address is waited for: nobody comes where the socket is gone, which its
    process may have taken away, as the master says then."""
    return min(longest_s, _GONE_S) if why_gone(address) else longest_s


def leave(address: str) -> None:
    """Remove the socket of a local address, and its folder if that is ours and nobody else uses it."""
    if is_local(address):
        place = Path(address.removeprefix(_IPC))
        with suppress(OSError):
            place.unlink(missing_ok=True)
            if place.parent.name.startswith(_FOLDER):
                place.parent.rmdir()


def is_taken(address: str) -> bool:
    """Whether somebody serves at a local address; ZeroMQ would take their place."""
    if not is_local(address):
        return False
    return answers(address.removeprefix(_IPC))


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach a `tcp://host:port` address."""
    host = urlsplit(address).hostname or ""
    # It binds all interfaces, whatever its name would lead to.
    if host == "*":
        return False
    try:
        at = ipaddress.ip_address(host)
    except ValueError:
        return _name_is_loopback(host)
    return bool((getattr(at, "ipv4_mapped", None) or at).is_loopback)


def _name_is_loopback(host: str) -> bool:
    try:
        found = {info[4][0] for info in sockets.getaddrinfo(host, None)}
    except OSError:
        return False
    # A name may have several addresses, and an address of IPv6 the interface behind it.
    return all(ipaddress.ip_address(str(a).split("%")[0]).is_loopback for a in found)


def _own_folder() -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR")
    at = Path(base, "spartan-ng") if base else Path(tempfile.gettempdir(), f"spartan-ng-{user_id()}")
    at.mkdir(mode=0o700, exist_ok=True)
    return at


def _check_folder(folder: Path) -> None:
    try:
        problem = why_not_own(folder, private=True)
    except FileNotFoundError:
        return  # nobody is there, as whoever connects will say
    if problem is not None:
        raise AuthenticationFailed(f"sockets in {folder} are not safe: {problem}")
    if len(str(folder)) > _MOST_PATH - len("/w") - 12:
        raise OptionError(f"{folder} is too long a name for a folder of sockets")
