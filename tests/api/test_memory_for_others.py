"""An array's memory for what is neither ours nor NumPy's: files, codecs, hashes, ctypes, views by strides."""

from __future__ import annotations

import array
import ctypes
import gzip
import hashlib
import io
import pickle
import platform
import struct
import sys
import wave
import zlib
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import scipy.linalg
import scipy.sparse

import spartan_ng as np
from spartan_ng.api.core.quick import IS_COMPILED
from spartan_ng.config import config

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="what is not compiled is no buffer")


class _Buffer(ctypes.Structure):
    """Python's `Py_buffer`."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        *[(name, ctypes.c_void_p) for name in ("format", "shape", "strides", "suboffsets", "internal")],
    )


_WRITABLE, _STRIDES, _ANY_ORDER = 1, 0x18, 0x80
_get, _release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
_get.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release.argtypes = [ctypes.POINTER(_Buffer)]


class _Held:
    """A buffer as compiled code has it, which asks for strides and to write."""

    def __init__(self, a: Any, flags: int = _WRITABLE | _STRIDES) -> None:
        self._buffer = _Buffer()
        _get(a, self._buffer, flags)

    def write(self, place: int, data: bytes) -> None:
        if place + len(data) <= self._buffer.len:
            ctypes.memmove(self._buffer.buf + place, data, len(data))

    def read(self, place: int, size: int) -> bytes:
        return ctypes.string_at(self._buffer.buf + place, size)

    def give_back(self) -> None:
        _release(self._buffer)


def _as_pythons_array(a: Any) -> bytes:
    made = array.array("b")
    made.frombytes(a)
    return made.tobytes()


def _looked_at(a: Any) -> tuple[Any, ...]:
    with memoryview(a) as seen:
        return seen.format, seen.shape, seen.strides, seen.readonly, seen.nbytes, seen.tobytes()


def _sound_of(a: Any) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 1, 8000, 0, "NONE", ""))
        sound.writeframes(a)
    return file.getvalue()


def _packed(a: Any) -> bytes:
    file = io.BytesIO()
    with gzip.open(file, "wb") as packed:
        packed.write(a)
    return gzip.decompress(file.getvalue())


def _write_by_look(a: Any) -> None:
    memoryview(a).cast("B")[:2] = bytes([8, 8])


def _write_once(a: Any, data: bytes) -> None:
    held = _Held(a)
    held.write(0, data)
    held.give_back()


READERS: dict[str, Callable[[Any], Any]] = {
    "hash": lambda a: hashlib.sha256(a).hexdigest(),
    "checksum": zlib.crc32,
    "compress": lambda a: zlib.decompress(zlib.compress(a)),
    "file": lambda a: (f := io.BytesIO(), f.write(a), f.getvalue())[1:],
    "join": lambda a: b"-".join([a, b"x", a]),
    "array": lambda a: _as_pythons_array(a),
    "text": lambda a: str(a, "latin-1"),
    "unpack": lambda a: struct.unpack_from("B", a),
}
LOOKERS: dict[str, Callable[[Any], Any]] = {
    "look": _looked_at,
    "bytearray": bytearray,
    "sound": _sound_of,
    "gzip": _packed,
    "pickle": lambda a: pickle.PickleBuffer(memoryview(a)).raw().tobytes(),
    "data": lambda a: (a.data.readonly, a.data.tobytes()),
}
"""What asks for all that a buffer may be: some systems tell that Python's classes do, and not NumPy."""
KNOWS_LOOKERS = platform.machine() == "x86_64" and sys.platform == "linux"
if KNOWS_LOOKERS:
    READERS |= LOOKERS
WRITERS: dict[str, Callable[[Any], Any]] = {
    "file": lambda a: io.BytesIO(bytes(range(1, 5))).readinto(a),
    "pack": lambda a: struct.pack_into("BB", a, 1, 7, 9),
    "compiled loops": lambda a: _write_once(a, bytes([3, 3])),
    "data": lambda a: a.data.cast("B").__setitem__(0, 5),
}
if KNOWS_LOOKERS:
    WRITERS["look"] = _write_by_look
MADE: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda xp: xp.zeros((40, 3)),
    "a sum": lambda xp: xp.arange(120.0).reshape(40, 3) + 1,
    "integers": lambda xp: xp.arange(7, dtype=">i2") * 3,
    "truths": lambda xp: xp.arange(9) % 2 == 0,
    "complex": lambda xp: xp.ones(5) * 1j,
    "texts": lambda xp: xp.array(["ab", "c", "defg"]),
    "records": lambda xp: xp.array([(1, 2.0), (3, 4.0)], "i4,f8"),
    "times": lambda xp: xp.array(["2020-01-01", "2021-02-03"], "M8[D]"),
    "rows": lambda xp: xp.arange(60.0).reshape(12, 5)[3:9],
    "columns": lambda xp: xp.arange(60.0).reshape(12, 5)[:, 1:3],
    "turned": lambda xp: xp.arange(60.0).reshape(12, 5).T,
    "backwards": lambda xp: xp.arange(9.0)[::-1],
    "none": lambda xp: xp.zeros((0, 3)),
    "alone": lambda xp: xp.array(2.5),
    "stretched": lambda xp: xp.broadcast_to(xp.arange(3.0), (4, 3)),
}


def _tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whatever NumPy raises
        return type(error)


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("reader", READERS)
def test_it_is_read_as_numpys(reader: str, made: str, small_bytes: int) -> None:
    with config.override(small_bytes=small_bytes):
        ours = _tried(lambda: READERS[reader](MADE[made](np)))
    assert ours == _tried(lambda: READERS[reader](MADE[made](numpy)))


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("writer", WRITERS)
def test_it_is_written_as_numpys(writer: str, made: str, small_bytes: int) -> None:
    """By whoever asks to; what was made of the elements before keeps them, what is made later has others."""

    def program(xp: Any) -> list[Any]:
        a = MADE[made](xp)
        view, before, error = a[:2] if a.ndim else a, xp.copy(a), _tried(lambda: WRITERS[writer](a) and None)
        return [error, *map(numpy.asarray, (a, view, before, xp.copy(a))), a.flags.writeable, a.flags.owndata]

    with config.override(small_bytes=small_bytes):
        ours = program(np)
    for one, other in zip(ours, program(numpy), strict=True):
        if isinstance(other, numpy.ndarray):
            assert one.tobytes() == other.tobytes()
        else:
            assert one == other


class _Looked:
    """The same as a `memoryview`."""

    def __init__(self, a: Any) -> None:
        self._seen = memoryview(a)
        self._bytes = self._seen.cast("B")

    def write(self, place: int, data: bytes) -> None:
        self._bytes[place : place + len(data)] = data

    def read(self, place: int, size: int) -> bytes:
        return self._bytes[place : place + size].tobytes()

    def give_back(self) -> None:
        self._bytes.release()
        self._seen.release()


@pytest.mark.parametrize("of", [_Held, *[_Looked] * KNOWS_LOOKERS])
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
def test_who_holds_it_writes_into_it_until_it_is_given_back(small_bytes: int, of: Any) -> None:
    with config.override(small_bytes=small_bytes):
        a = np.arange(6.0) * 2
        early = a + 1
        held, again = of(a), of(a[1:])
        late = a + 1
        held.write(0, struct.pack("d", 50))
        again.write(0, struct.pack("d", 60))
        assert a.tolist() == [50, 60, 4, 6, 8, 10]
        assert early.tolist() == late.tolist() == [1, 3, 5, 7, 9, 11]
        a[2] = 9
        assert held.read(16, 8) == again.read(8, 8) == struct.pack("d", 9)
        for holder in (held, again, None):
            assert a._cell.shared is (holder is not None)
            if holder is not None:
                holder.give_back()
        assert (a * 2).tolist() == [100, 120, 18, 12, 16, 20]


def test_what_is_lent_for_good_stays_so() -> None:
    a = np.arange(6.0) * 2
    held = _Held(a)
    pointer = a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    held.give_back()
    pointer[3] = 7
    assert a.tolist() == [0, 2, 4, 7, 8, 10]
    assert a._cell.shared
    _Held(a).give_back()
    assert a._cell.shared


def _any_order(a: Any) -> Any:
    return _Held(a, _STRIDES | _ANY_ORDER)


@pytest.mark.parametrize("asks", [numpy.frombuffer, _any_order, lambda a: _Held(a, 0x11C)])
def test_who_wants_all_that_a_buffer_can_be_is_told_the_way_out(asks: Any) -> None:
    with pytest.raises(BufferError, match=r"a\.data .*numpy\.asarray\(a\)"):
        asks(np.arange(3.0))


def test_nobody_keeps_an_address() -> None:
    with pytest.raises(BufferError):
        numpy.ndarray((3,), buffer=np.arange(3.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("asks", [numpy.asarray, *[memoryview, bytearray] * KNOWS_LOOKERS])
def test_a_failure_is_told_once(asks: Any) -> None:
    """NumPy forgets what a buffer's owner raises, and asks again."""
    calls = []

    def failing(box: Any) -> Any:
        calls.append(box)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        asks(np.from_function(failing, (3,)) + 1)
    assert len(calls) == 1


def test_what_is_no_array_of_elements_here_is_shown_and_not_lent() -> None:
    sparse = np.array(scipy.sparse.csr_array([[0.0, 2.0], [3.0, 0.0]]))
    assert sparse.data.readonly
    assert bytes(sparse.data) == numpy.array([[0.0, 2.0], [3.0, 0.0]]).tobytes()
    number = np.sqrt(np.zeros(3)).sum() + 1
    assert bytes(number.data) == struct.pack("d", 1)


KEYS = ["3:", "::2", "::-1", "1:6:3", "None, 2:5", "-3:", ":0"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dtype", ["f8", "i1", ">i4", "M8[s]", "U3", "i2,f8"])
def test_views_given_to_numpy_have_their_strides_and_what_lies_around_them(key: str, dtype: str) -> None:
    theirs = numpy.arange(8).astype("i4").astype(dtype if dtype != "i2,f8" else "f8")
    theirs = numpy.array([(i, i) for i in range(8)], dtype) if "," in dtype else theirs
    ours = np.array(theirs)
    a, b = (eval(f"x[{key}]", {"x": x}) for x in (numpy.asarray(theirs), ours))
    seen = numpy.asarray(b)
    if a.size:
        assert seen.strides == a.strides == b.strides
        stretch = numpy.lib.stride_tricks.as_strided
        back = min(2, a.shape[-1])
        shape, strides = (back, back), (a.strides[-1],) * 2
        assert stretch(b, shape, strides).tolist() == stretch(a, shape, strides).tolist()
    seen[...] = seen[::-1]
    a[...] = a[::-1]
    assert ours.tolist() == theirs.tolist()  # it is no copy


@pytest.mark.parametrize("n", [1, 2, 7, 300, 3000])
@pytest.mark.parametrize("function", [scipy.linalg.circulant, scipy.linalg.toeplitz, scipy.linalg.hankel])
def test_scipys_matrices_of_diagonals(function: Any, n: int) -> None:
    assert numpy.array_equal(function(np.arange(n) + 1.0), function(numpy.arange(n) + 1.0))


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
def test_other_libraries_take_the_elements_as_numpys(small_bytes: int) -> None:
    """And not as a sequence of sequences."""
    pyarrow = pytest.importorskip("pyarrow")
    with config.override(small_bytes=small_bytes):
        a = np.arange(6.0) * 2
        assert pyarrow.array(a).equals(pyarrow.array(numpy.arange(6.0) * 2))
        assert pyarrow.array(a, type=pyarrow.float32()).type == "float"
        with pytest.raises(pyarrow.ArrowInvalid, match="1-dimensional"):
            pyarrow.array(a.reshape(2, 3))
        given = (np.arange(6.0) * 2).to_numpy()
        assert type(given) is numpy.ndarray
        assert given.tolist() == [0, 2, 4, 6, 8, 10]
