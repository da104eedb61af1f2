"""What others could have written is not the user's own, whoever may write it and wherever it lies."""

import itertools
import os
import stat

import pytest

from spartan_ng.system.ownership import why_not_own

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OTHERS = stat.S_IRWXG | stat.S_IRWXO
root = pytest.mark.skipif(os.geteuid() != 0, reason="files of other users can only be made by root")


@pytest.mark.some(100)
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("mode", [m | r for m, r in itertools.product((0o600, 0o700), range(0o100))])
def test_modes(tmp_path, folder, private, mode):
    path = tmp_path / "it"
    path.mkdir() if folder else path.write_text("")
    path.chmod(mode)
    assert (why_not_own(path, private) is None) is not bool(mode & (OTHERS if private else OTHERS_WRITE))


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize(("mode", "own"), [(0o755, True), (0o777, False), (0o775, False), (0o1777, True)])
def test_folders_above(tmp_path, depth, mode, own):
    path = tmp_path.joinpath("open", *"abc"[:depth], "it")
    path.parent.mkdir(parents=True)
    path.write_text("")
    (tmp_path / "open").chmod(mode)
    assert (why_not_own(path) is None) is own


def test_links_are_not_followed(tmp_path):
    (tmp_path / "it").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "it")
    assert "symbolic link" in str(why_not_own(tmp_path / "link"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "it").write_text("")
    (tmp_path / "away").symlink_to(tmp_path / "folder")
    assert why_not_own(tmp_path / "away" / "it") is None  # the link itself is in a folder of ours
    (tmp_path / "folder").chmod(0o777)
    assert "above" in str(why_not_own(tmp_path / "away" / "it"))


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        why_not_own(tmp_path / "it")


@root
@pytest.mark.parametrize("above", [0, 1, 2])
def test_other_users(tmp_path, above):
    path = tmp_path / "a" / "b" / "it"
    path.parent.mkdir(parents=True)
    path.write_text("")
    os.chown([path, *path.parents][above], 12345, -1)
    assert "12345" in str(why_not_own(path))
