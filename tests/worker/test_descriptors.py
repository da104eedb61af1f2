"""A worker that has no descriptors left, and will have none."""

from spartan_ng.worker import descriptors
from spartan_ng.worker.descriptors import Lack


def test_only_a_lack_that_lasts_counts(monkeypatch):
    monkeypatch.setattr(descriptors, "_LOOKS", 3)
    monkeypatch.setattr(descriptors, "_ENOUGH", 1 << 30)  # more than there ever are
    monkeypatch.setattr("os.open", none_left)
    lack = Lack()
    assert [lack.lasts(False, 0) for _ in range(4)] == [False, False, True, True]
    assert not lack.lasts(True, 0)
    assert not lack.lasts(False, 0)
    assert not lack.lasts(False, 1 << 30)
    assert [lack.lasts(False, 0) for _ in range(3)] == [False, False, True]


def none_left(path, flags):
    raise OSError(24, "Too many open files")


def test_who_has_descriptors_lacks_none():
    lack = Lack()
    assert not any(lack.lasts(False, 0) for _ in range(100))
