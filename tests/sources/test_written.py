"""What is written to arrays that lie outside, and parts of them that NumPy's functions get: nobody reads all
of it into memory for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.sources.reading import read_whole
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((4000, 20)) - 0.5
LIMIT = VALUE.nbytes // 4
CHUNKS = [None, (100, 20), (1000, 1), (300, 7)]


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    with running_on(EmbeddedBackend(2, LIMIT)), config.override(memory_bytes=LIMIT, small_bytes=1 << 10):
        yield


def _twice(m: Any, y: Any) -> None:
    y[5, 5] = 3
    y[6:9] += y[5, 5]


def _seen(m: Any, y: Any) -> None:
    part = y[3:9]
    part[...] = 0
    part += 1


def _stretched(m: Any, y: Any) -> None:
    y[::2][::3].T[1] = numpy.arange(667)


def _smoothed(line: Any) -> Any:
    line[0] = line[1]
    return line.cumsum()


Write = Callable[[Any, Any], Any]
WRITES: dict[str, Write] = {
    "a row": lambda m, y: y.__setitem__(0, 3),
    "an element": lambda m, y: y.__setitem__((3, -1), 3),
    "one after the other": _twice,
    "rows": lambda m, y: y.__setitem__(slice(3, 2000, 7), y[0]),
    "rows by an array": lambda m, y: y.__setitem__([3, 50, 7, 3], 3),
    "a column": lambda m, y: y.__setitem__((slice(None), 0), y[:, 1]),
    "a mask": lambda m, y: y.__setitem__(y > 0.25, 3),
    "rows by a mask": lambda m, y: y.__setitem__(y[:, 0] > 0.25, y[3]),
    "a view": _seen,
    "steps of steps": _stretched,
    "all": lambda m, y: y.__iadd__(1),
    "a flat place": lambda m, y: y.flat.__setitem__(5, 3),
    "put": lambda m, y: m.put(y, [3, 700], 3),
    "add.at": lambda m, y: m.add.at(y, [3, 4, 3], 1),
    "the diagonal": lambda m, y: m.fill_diagonal(y, 1),
    "copyto of a part": lambda m, y: m.copyto(y[:20], 1),
    "put_along_axis": lambda m, y: m.put_along_axis(y, m.argmax(y, 1)[:, None], 0, 1),
    "by a function": lambda m, y: m.apply_along_axis(_smoothed, -1, y[:20]),
    "one line by a function": lambda m, y: m.apply_along_axis(_smoothed, 0, y[7]),
}


@pytest.mark.some(60)
@pytest.mark.filterwarnings("ignore:numpy.apply_along_axis is not distributed")
@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("made", ["itself", "copy", "array"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_read_no_more_than_memory_has_room_for(name: str, made: str, chunks: Any) -> None:
    source = Recorder(VALUE, chunks)
    x = over(source)
    y = {"itself": lambda: x, "copy": lambda: x.copy(), "array": lambda: np.array(x)}[made]()
    expected = VALUE.copy()
    answers = WRITES[name](np, y), WRITES[name](numpy, expected)
    if isinstance(answers[1], numpy.ndarray):
        numpy.testing.assert_array_equal(*answers)
    numpy.testing.assert_array_equal(y.max(axis=0), expected.max(axis=0))
    assert source.largest_bytes <= LIMIT
    numpy.testing.assert_array_equal(numpy.asarray(y), expected)
    if y is not x:
        numpy.testing.assert_array_equal(numpy.asarray(x), VALUE)


@pytest.mark.parametrize("part", [numpy.s_[:20], numpy.s_[:, 3], numpy.s_[5:9, ::4]], ids=str)
def test_functions_of_lines_read_the_lines(part: Any) -> None:
    source = Recorder(VALUE, (10, 1))
    found = np.apply_along_axis(numpy.cumsum, -1, over(source)[part])
    numpy.testing.assert_array_equal(found, numpy.apply_along_axis(numpy.cumsum, -1, VALUE[part]))
    assert source.times.sum() <= 2 * max(VALUE[part].size, len(VALUE[part]) * 20)


@pytest.mark.parametrize("dtype", ["f8", ">i2", "S3", "M8[s]", [("a", "i4"), ("b", "u1")]], ids=str)
@pytest.mark.parametrize(
    "chunks", [None, (7, 2, 5), (1, 1, 1), (100, 100, 100), (40, 1, 1), (1, 9, 1)], ids=str
)
@pytest.mark.parametrize("budget", [1 << 20, 900, 40])
def test_all_is_read_a_few_chunks_at_a_time(dtype: Any, chunks: Any, budget: int) -> None:
    value = (numpy.arange(40 * 9 * 5) % 97).reshape(40, 9, 5).astype(dtype)
    source = Recorder(value, chunks)
    with config.override(memory_bytes=budget):
        found = read_whole(source)
    assert found.dtype == value.dtype
    assert found.tobytes() == value.tobytes()
    assert (source.times == 1).all()
    assert source.largest_bytes <= budget
