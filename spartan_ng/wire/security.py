"""Who may connect: nothing but loopback without CurveZMQ keys, and a token on loopback.

A directory of keys holds `server.key`, `server.key_secret`, `client.key` and `client.key_secret`. Master
and workers hold all four; a client needs `server.key` and `client.key_secret`. Every `*.key` in a server's
directory may connect, so that further clients are let in by copying their public key there.

A token is a secret that the processes of one `LocalCluster` share through their environment, which only
their user can read. It keeps other users of the machine out without the cost of encryption.
"""

from __future__ import annotations

import ipaddress
import os
import socket as sockets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import zmq
import zmq.auth

from spartan_ng.errors import AuthenticationFailed, OptionError

TOKEN_VARIABLE = "SPARTAN_NG_TOKEN"


@dataclass(frozen=True, slots=True)
class Keys:
    """CurveZMQ keys, in Z85 text. `own` is the pair this process connects with."""

    server_public: bytes
    own_public: bytes
    own_secret: bytes
    server_secret: bytes | None = None
    allowed: frozenset[bytes] = field(default=frozenset())

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Keys:
        """The keys in `directory`, made by `keygen`; AuthenticationFailed if they cannot be read."""
        at = Path(directory).expanduser()
        try:
            server_public, _ = zmq.auth.load_certificate(at / "server.key")
            own_public, own_secret = zmq.auth.load_certificate(at / "client.key_secret")
            server_secret = None
            if (at / "server.key_secret").exists():
                _, server_secret = zmq.auth.load_certificate(at / "server.key_secret")
            allowed = frozenset(zmq.auth.load_certificate(p)[0] for p in sorted(at.glob("*.key")))
        except (OSError, ValueError) as error:
            raise AuthenticationFailed(
                f"no usable keys in {at}: {error}; make them with `spartan-ng keygen {at}`"
            ) from error
        if own_secret is None:
            raise AuthenticationFailed(f"{at / 'client.key_secret'} holds no secret key")
        return cls(server_public, own_public, own_secret, server_secret, allowed)


def keygen(directory: str | os.PathLike[str]) -> list[Path]:
    """Write the certificates of servers and clients; never over existing ones. Secrets get mode 0600."""
    at = Path(directory)
    at.mkdir(parents=True, exist_ok=True, mode=0o700)
    taken = [p for p in (at / "server.key_secret", at / "client.key_secret") if p.exists()]
    if taken:
        raise OptionError(f"keygen: {taken[0]} exists already; choose another directory or remove it")
    before = os.umask(0o077)
    try:
        paths = [Path(p) for name in ("server", "client") for p in zmq.auth.create_certificates(at, name)]
    finally:
        os.umask(before)
    for path in paths:
        path.chmod(0o600 if path.suffix == ".key_secret" else 0o644)
    return paths


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach a `tcp://host:port` address."""
    host = urlsplit(address).hostname or ""
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
    return all(ipaddress.ip_address(str(a).split("%")[0]).is_loopback for a in found)


def require_keys(address: str, keys: Keys | None) -> None:
    """Refuse to serve on `address` where strangers could reach it and no keys protect it."""
    if keys is None and not is_loopback(address):
        raise AuthenticationFailed(
            f"{address} can be reached from other machines, which would let anybody run code here. "
            "Make keys with `spartan-ng keygen DIR` and pass `--keys DIR`, or use a loopback address "
            "such as tcp://127.0.0.1:7077"
        )
    if keys is not None and keys.server_secret is None:
        raise AuthenticationFailed("serving needs server.key_secret in the directory of keys")


def secure_server(socket: zmq.Socket[bytes], keys: Keys | None) -> None:
    """Make a socket, before it binds, accept the holders of allowed keys only."""
    if keys is not None:
        assert keys.server_secret is not None, "require_keys was not called"
        socket.curve_server = True
        socket.curve_secretkey = keys.server_secret
        socket.zap_domain = b"spartan-ng"


def secure_client(socket: zmq.Socket[bytes], keys: Keys | None) -> None:
    """Make a socket, before it connects, prove its key and accept the right server only."""
    if keys is not None:
        socket.curve_serverkey = keys.server_public
        socket.curve_publickey = keys.own_public
        socket.curve_secretkey = keys.own_secret


def answer_zap(request: Sequence[bytes], keys: Keys) -> list[bytes]:
    """The reply to one request of ZeroMQ's authentication protocol (RFC 27): whether a key is allowed."""
    version, sequence, _domain, _address, _identity, mechanism, *credentials = request
    allowed = (
        mechanism == b"CURVE"
        and len(credentials) == 1
        and len(credentials[0]) == 32
        and zmq.utils.z85.encode(credentials[0]) in keys.allowed
    )
    verdict = [b"200", b"OK", b"client", b""] if allowed else [b"400", b"key not allowed", b"", b""]
    return [version, sequence, *verdict]


def token() -> str:
    """The token of this process's cluster, or "" where there is none."""
    return os.environ.get(TOKEN_VARIABLE, "")
