"""What later processes find is whole and this user's own, or it is not read, and gone."""

import os

import pytest

from spartan_ng.system.sealed import put_sealed, read_sealed


def _cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def _turned(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _link_to(target):
    def place(path):
        path.unlink()
        path.symlink_to(target)

    return place


def _pipe(path):
    path.unlink()
    os.mkfifo(path)


BROKEN = {
    "cut": _cut,
    "one bit": _turned,
    "empty": lambda path: path.write_bytes(b""),
    "others may write it": lambda path: path.chmod(0o666),
    "a link to itself": lambda path: _link_to(path)(path),
    "a link to what has no end": _link_to("/dev/zero"),
    "a link to a full device": _link_to("/dev/full"),
    "a pipe that nobody writes to": _pipe,
}


@pytest.fixture
def path(tmp_path):
    tmp_path.chmod(0o700)
    put_sealed(tmp_path / "kept", b"what was left")
    return tmp_path / "kept"


def test_what_was_left_is_found(path):
    assert read_sealed(path) == b"what was left"
    assert path.exists()


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_not_whole_is_not_read_and_gone(path, how):
    BROKEN[how](path)
    assert read_sealed(path) is None
    assert not os.path.lexists(path)


def test_neither_a_folder_nor_what_is_not_there_is_read(path):
    assert read_sealed(path.parent / "nothing") is None
    folder = path.parent / "folder"
    folder.mkdir()
    assert read_sealed(folder) is None
    assert folder.is_dir()
