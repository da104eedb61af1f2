"""A file under another shape is the same file: it is read where it is used, and nothing is put together."""

from __future__ import annotations

import pickle
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import Op
from spartan_ng.sources import MappedFile

X = numpy.arange(24_000.0).reshape(60, 400)


@pytest.fixture
def file(tmp_path: Any) -> str:
    numpy.save(tmp_path / "x.npy", X)
    return str(tmp_path / "x.npy")


OPENED: dict[str, Any] = {
    "load": lambda m, file: m.load(file),
    "mmap_mode": lambda m, file: m.load(file, mmap_mode="r"),
}


@pytest.mark.parametrize("how", OPENED)
def test_it_is_a_leaf_and_the_same_one_each_time(how: str, file: str) -> None:
    with config.override(small_bytes=1000):
        node = OPENED[how](np, file)._node()
        shown = build.reshape(node, (6, 10, 400))
        assert shown.op is Op.DATA
        assert build.reshape(node, (6, 10, 400)) is shown
        assert build.reshape(shown, (60, 400)).op is Op.DATA
        assert shown.data is not None
        assert numpy.shares_memory(shown.data.value, node.data.value)


def test_what_may_be_written_to_and_what_lies_otherwise_is_none(tmp_path: Any) -> None:
    numpy.save(tmp_path / "f.npy", numpy.asfortranarray(X))
    with config.override(small_bytes=1000):
        for x in (np.asarray(X.copy()), np.load(tmp_path / "f.npy")):
            assert build.reshape(x._node(), (6, 4000)).op is Op.RESHAPE


@pytest.mark.parametrize("how", OPENED)
@pytest.mark.parametrize("fold", ["sum", "std", "nanmean", "argmax", "cumsum", "sort"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_folds_of_it(how: str, fold: str, axis: int, file: str) -> None:
    with config.override(small_bytes=1000, memory_bytes=100_000):
        found = getattr(np, fold)(OPENED[how](np, file).reshape(6, 10, 400), axis=axis)
        numpy.testing.assert_allclose(found.compute(), getattr(numpy, fold)(X.reshape(6, 10, 400), axis=axis))


def test_it_keeps_what_it_was_when_the_array_is_written_to(file: str) -> None:
    with config.override(small_bytes=1000):
        x = np.load(file)
        planes = x.reshape(6, 10, 400) * 1
        view = x.reshape(6, 10, 400)
        x[0, 0] = 7
        assert float(planes[0, 0, 0]) == 0
        assert float(view[0, 0, 0]) == 7
        assert float(view.sum()) == X.sum() + 7


def test_the_source_travels(file: str) -> None:
    with open(file, "rb") as opened:
        numpy.lib.format.read_magic(opened)
        numpy.lib.format.read_array_header_1_0(opened)
        source = MappedFile(file, X.shape, X.dtype, opened.tell()).reshaped((6, 4000))
    assert source is not None
    again = pickle.loads(pickle.dumps(source))
    assert again.shape == (6, 4000)
    numpy.testing.assert_array_equal(again.mapped(), X.reshape(6, 4000))
    assert again.is_current()


@pytest.mark.slow
def test_workers_read_it(file: str) -> None:
    with np.cluster(2), config.override(small_bytes=1000):
        x = np.load(file).reshape(6, 10, 400)
        numpy.testing.assert_allclose(np.std(x, axis=0).compute(), X.reshape(6, 10, 400).std(axis=0))
        numpy.testing.assert_allclose(np.nanmean(x, axis=1).compute(), X.reshape(6, 10, 400).mean(axis=1))


def test_a_shape_that_no_array_has_is_refused_in_words(tmp_path) -> None:
    path = tmp_path / "x.npy"
    numpy.save(path, numpy.arange(300_000.0))
    written = path.read_bytes()
    path.write_bytes(written.replace(b"(300000,)", b"(-30000,)"))
    with pytest.raises(ValueError, match=r"\w") as theirs:
        numpy.load(path)
    for small_bytes in (1000, 1 << 20):
        with config.override(small_bytes=small_bytes), pytest.raises(ValueError, match=r"\w") as ours:
            np.load(path)
        assert str(ours.value) == str(theirs.value)
    with pytest.raises(ValueError, match=r"its shape is \(-30000,"):
        np.load([path, path])
