"""CurveZMQ keys with roles: a pair for the master, and one for everybody whom it lets in.

The master's folder holds `server.key_secret` and, in `authorized/`, the public key of each holder,
`NAME.key`, with its role in it. Whoever connects needs `server.key` and a secret key of their own:
`worker.key_secret`, `client.key_secret` or `admin.key_secret`. A key is revoked by removing it from
`authorized/`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import zmq.auth
from msgspec import Struct
from zmq.utils import z85

from spartan_ng.errors import AuthenticationFailed, OptionError
from spartan_ng.system.ownership import why_not_own

ROLES = ("worker", "client", "admin")
"""What a key may be for; an admin is a client who may stop the cluster."""

_AUTHORIZED = "authorized"
_KEY_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_RESERVED = frozenset({"server", _AUTHORIZED})

Users = dict[str, str]
"""Who may connect: by the public key, "role name key" as it is known to the rest of the program."""


class Pair(Struct, frozen=True):
    """A key pair, in Z85 text."""

    public: bytes
    secret: bytes

    @classmethod
    def fresh(cls) -> Pair:
        """A pair that nobody has seen before."""
        return cls(*zmq.curve_keypair())


class Keys(Struct, frozen=True):
    """What one process has of a folder of keys."""

    server_public: bytes
    own: Pair
    """The pair of the role that was asked for; the master's is the server's."""
    folder: Path

    @classmethod
    def load(cls, directory: str | os.PathLike[str], role: str) -> Keys:
        """The keys of a "server", "worker", "client" or "admin" in `directory`.

        Raises AuthenticationFailed where they are missing, or where others may read or change them.
        """
        at = Path(directory).expanduser().resolve()
        secret = at / f"{role}.key_secret"
        try:
            problem = why_not_own(at, private=True) or why_not_own(secret, private=True)
            if problem is None:
                public, own = zmq.auth.load_certificate(secret)
                server, _ = zmq.auth.load_certificate(at / "server.key")
        except (OSError, ValueError) as error:
            raise AuthenticationFailed(
                f"no usable {role} keys in {at}: {error}; `spartan-ng keygen DIR` makes them for the master, "
                f"whose server.key and {role}.key_secret belong in the folder that you name: --keys DIR (in "
                'Python keys="DIR")'
            ) from error
        if problem is not None:
            raise AuthenticationFailed(
                f"the keys in {at} are not used, they may be known to others: {problem}"
            )
        if own is None:
            raise AuthenticationFailed(f"{secret} holds no secret key")
        return cls(server, Pair(public, own), at)

    def authorized(self) -> Users:
        """Who may connect now. Files that are no keys, or that others may write, let nobody in."""
        users: Users = {}
        for path in sorted((self.folder / _AUTHORIZED).glob("*.key")):
            entry = _entry(path)
            if entry is not None:
                users[entry[1]] = f"{entry[0]} {path.stem} {entry[1]}"
        return users


def keygen(directory: str | os.PathLike[str]) -> list[Path]:
    """Write the master's pair, and one for the workers, for a client and for an admin; never over others."""
    at = _folder(directory)
    taken = [p for p in (at / f"{n}.key_secret" for n in ("server", *ROLES)) if p.exists()]
    if taken:
        raise OptionError(f"keygen: {taken[0]} exists already; choose another directory or remove it")
    server = Pair.fresh()
    paths = [_write_secret(at / "server.key_secret", server), _write_public(at / "server.key", server.public)]
    return paths + [path for role in ROLES for path in _authorize(at, at, role, role)]


def keygen_for(directory: str | os.PathLike[str], name: str, role: str) -> list[Path]:
    """Let in one more: `directory/name` is what its holder needs, and nobody else has."""
    at = Path(directory)
    if not (at / "server.key").exists():
        raise OptionError(f"keygen: {at} holds no server's key; make it with `spartan-ng keygen {at}`")
    _check_name(name)
    if (at / name).exists() or (at / _AUTHORIZED / f"{name}.key").exists():
        raise OptionError(f"keygen: {name} has a key already; revoke it first, or choose another name")
    bundle = _folder(at / name)
    (bundle / "server.key").write_bytes((at / "server.key").read_bytes())
    return [bundle / "server.key", *_authorize(at, bundle, name, role)]


def bundle(directory: str | os.PathLike[str], role: str) -> dict[str, str]:
    """The files that a holder of the folder's key for `role` needs, by name: their text."""
    return {name: (Path(directory) / name).read_text("ascii") for name in _bundled(role)}


def write_bundle(directory: str | os.PathLike[str], role: str, files: Mapping[str, str]) -> None:
    """Write what `bundle` gives into a folder of the holder's."""
    at = _folder(directory)
    for name in _bundled(role):
        _write(at / name, files.get(name, ""), 0o600)


def _bundled(role: str) -> tuple[str, str]:
    return "server.key", f"{role}.key_secret"


def revoke(directory: str | os.PathLike[str], name: str) -> Path:
    """Let the holder of a key in no more; masters notice by themselves."""
    _check_name(name)
    path = Path(directory) / _AUTHORIZED / f"{name}.key"
    try:
        path.unlink()
    except FileNotFoundError:
        known = ", ".join(n for n, _ in listed(directory)) or "nobody"
        raise OptionError(f"revoke: {name} has no key here; {known} may connect") from None
    return path


def listed(directory: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """`(name, role)` of all who may connect."""
    found = [(p.stem, _entry(p)) for p in sorted((Path(directory) / _AUTHORIZED).glob("*.key"))]
    return [(name, entry[0]) for name, entry in found if entry is not None]


def _entry(path: Path) -> tuple[str, str] | None:
    """The role and the public key in a file of `authorized/`."""
    try:
        if why_not_own(path) is not None:
            return None
        text = path.read_text("ascii")
        public, _ = zmq.auth.load_certificate(path)
        role = re.search(r'^\s*role = "(\w+)"$', text, re.MULTILINE)
        is_key = len(z85.decode(public)) == _KEY_BYTES
    except (OSError, ValueError):
        return None
    if role is None or role[1] not in ROLES or not is_key:
        return None
    return role[1], public.decode()


def _authorize(at: Path, bundle: Path, name: str, role: str) -> list[Path]:
    pair = Pair.fresh()
    secret = _write_secret(bundle / f"{role}.key_secret", pair)
    return [secret, _write_public(_folder(at / _AUTHORIZED) / f"{name}.key", pair.public, role)]


def _folder(directory: str | os.PathLike[str]) -> Path:
    at = Path(directory)
    at.mkdir(parents=True, exist_ok=True, mode=0o700)
    return at


def _write_secret(path: Path, pair: Pair) -> Path:
    return _write(path, _text(pair.public, None, pair.secret), 0o600)


def _write_public(path: Path, public: bytes, role: str | None = None) -> Path:
    return _write(path, _text(public, role, None), 0o644)


def _text(public: bytes, role: str | None, secret: bytes | None) -> str:
    """A certificate as `zmq.auth` reads it (ZPL, ZeroMQ's RFC 4)."""
    lines = ["metadata", *([f'    role = "{role}"'] if role else []), "curve"]
    lines.append(f'    public-key = "{public.decode()}"')
    if secret is not None:
        lines.append(f'    secret-key = "{secret.decode()}"')
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str, mode: int) -> Path:
    """A new file that is whole, and has its mode, from the first moment on."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    os.replace(temporary, path)
    return path


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise OptionError(f"{name!r} is no name for a key: letters, digits, dots, dashes and underscores are")
