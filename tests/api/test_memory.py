"""Whose memory it is: buffers that others write to, arrays that overlap, keys of `flat`."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as np

VIEWS = {
    "itself": lambda a: a,
    "slice": lambda a: a[1::2],
    "backwards": lambda a: a[::-1],
    "plane": lambda a: a.reshape(4, 6),
    "turned": lambda a: a.reshape(4, 6).T,
    "row": lambda a: a.reshape(4, 6)[2],
}
WRITES = {
    "all": lambda a: a.__setitem__(..., 7),
    "mask": lambda a: a.__setitem__(a > 5, 0),
    "in place": lambda a: a.__iadd__(1),
    "lazy": lambda a: a.__setitem__(..., a * 2 + 1),
    "places": lambda a: a.__setitem__([0, -1], 9),
}
MAKERS = {
    "frombuffer": lambda np, b: np.frombuffer(b, "i2"),
    "from the middle": lambda np, b: np.frombuffer(b, "i2", 24, 8),
    "ndarray": lambda np, b: np.ndarray(24, "i2", b),
    "strides": lambda np, b: np.ndarray((24,), "i2", b, 4, (4,)),
}


def buffer():
    return bytearray(numpy.arange(60, dtype="i2").tobytes())


@pytest.mark.some(60)
@pytest.mark.parametrize(("maker", "view", "write"), list(itertools.product(MAKERS, VIEWS, WRITES)))
def test_writes_reach_the_buffer(maker, view, write, mode):
    ours, theirs = buffer(), buffer()
    whole = MAKERS[maker](np, ours)[:24]
    for space, b in ((np, ours), (numpy, theirs)):
        WRITES[write](VIEWS[view](MAKERS[maker](space, b)[:24]))
    assert ours == theirs
    assert numpy.array_equal(numpy.asarray(whole), MAKERS[maker](numpy, theirs)[:24])


@pytest.mark.parametrize("maker", MAKERS)
def test_others_writes_are_seen(maker, mode):
    memory = buffer()
    a = MAKERS[maker](np, memory)
    before = a * 2
    kept = numpy.array(MAKERS[maker](numpy, memory)) * 2
    memory[:] = bytes(len(memory))
    assert not numpy.asarray(a).any()
    assert not numpy.asarray(a * 2).any()
    assert numpy.array_equal(numpy.asarray(before), kept)  # what was said before the write stands


@pytest.mark.parametrize("write", WRITES)
def test_bytes_are_not_written_to(write, mode):
    a = np.frombuffer(bytes(buffer()), "i2")
    assert not a.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        WRITES[write](a)


slices = st.builds(slice, *[st.none() | st.integers(-7, 7)] * 2, st.sampled_from([None, 1, 2, 3, -1, -2]))


@given(st.tuples(slices, slices), st.tuples(slices, slices))
def test_overlaps(one, other):
    a, b = np.arange(42).reshape(6, 7), numpy.arange(42).reshape(6, 7)
    assert np.shares_memory(a[one], a[other]) == numpy.shares_memory(b[one], b[other])
    assert np.may_share_memory(a[one], a[other]) == numpy.may_share_memory(b[one], b[other])
    assert not np.may_share_memory(a[one], a.copy())


indices = st.integers(-13, 13)
keys = st.one_of(
    indices,
    slices,
    st.booleans(),
    st.none(),
    st.just(()),
    st.just(...),
    st.lists(indices, max_size=4),
    st.lists(st.booleans(), max_size=4),
    st.lists(st.floats(0, 11), max_size=3),
    st.lists(indices, min_size=1, max_size=4).map(numpy.array),
    st.lists(st.booleans(), min_size=12, max_size=13).map(numpy.array),
    st.tuples(indices, indices),
)


def said(call, a):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return numpy.asarray(call(a))
        except (IndexError, ValueError, TypeError) as error:
            return type(error)


@given(keys, st.lists(st.integers(0, 99), min_size=1, max_size=3))
def test_flat(key, values):
    a, b = np.arange(12).reshape(3, 4), numpy.arange(12).reshape(3, 4)
    for call in (lambda x: x.flat[key], lambda x: (x.flat.__setitem__(key, values), x)[1]):
        got, wanted = said(call, a), said(call, b)
        if isinstance(wanted, type):
            assert isinstance(got, type)
            assert issubclass(got, wanted)
        else:
            assert numpy.array_equal(got, wanted)


@pytest.mark.parametrize("other", ["name", "view", "nobody"])
def test_resize_asks_who_else_looks(other):
    shapes: list[tuple[int, ...] | None] = []
    for space in (np, numpy):
        a = space.arange(3)
        b = {"name": a, "view": a[1:], "nobody": None}[other]
        try:
            a.resize((5,))
        except ValueError:
            shapes.append(None)
        else:
            shapes.append(a.shape)
        del b
    assert shapes[0] == shapes[1]


SEEN = {
    "itself": lambda a: a,
    "part": lambda a: a[2:8] if a.ndim == 1 else a[1:],
    "turned": lambda a: a.T,
    "strided": lambda a: a[::2],
    "one": lambda a: a[:1],
}


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 2, 3)])
def test_as_many_elements_lie_where_they_lay(seen, order, shape):
    """In every shape of as many, views of before and after see what is written."""
    for lengths in [(12,), (4, 3), (6,), (2, 3), (3, 2), (8,), (2, 4), (4, 1), (1,)]:
        said: list[Any] = []
        for space in (np, numpy):
            a = space.array(numpy.arange(12.0).reshape(shape), order=order)
            before, b = a[1:], SEEN[seen](a)
            if b.size != numpy.prod(lengths):
                continue
            try:
                b.resize(lengths)
            except ValueError as error:
                said.append(str(error))
                continue
            after = b[-1:]
            b[0], before[-1] = -1, -2
            flags = b.flags.c_contiguous, b.flags.f_contiguous, b.flags.owndata
            said.append([x.tolist() for x in (a, b, before, after)] + [b.shape, *flags])
        assert said[:1] == said[1:]


@pytest.mark.parametrize("set_before", ["shape", "dtype", "nothing"])
def test_what_owns_its_memory_owns_it_under_another_shape(set_before):
    said = []
    for space in (np, numpy):
        a = space.arange(12.0)
        view = a[2:]
        if set_before == "shape":
            a.shape = (2, 6)
            a.shape = (3, 4)
        elif set_before == "dtype":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                a.dtype = "i8"
        seen = [a.flags.owndata, view.flags.owndata, a.base is None, view.base is a]
        a.resize((2, 2), refcheck=False)
        said.append([*seen, a.shape, a.tolist()])
    assert said[0] == said[1]


@pytest.mark.parametrize("into", ["?", "i1", "i8", "f4", "f8", "c16", "O"])
@pytest.mark.parametrize("call", ["take", "compress"])
def test_elements_are_collected_in_a_copy_of_the_output(call, into):
    for dtype in ("?", "i8", "f8", "c16"):
        said = []
        for space in (np, numpy):
            a, out = space.arange(6).astype(dtype), space.zeros(3, into)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if call == "take":
                        space.take(a, [0, 3, 1], out=out)
                    else:
                        space.compress([True, False, True, True], a, out=out)
                said.append(out.tolist())
            except TypeError:
                said.append(TypeError)
        assert said[0] == said[1], dtype


@pytest.mark.parametrize("dtype", [object, "O", [("a", "O"), ("b", "f8")], "O,O", "f8", "T"])
def test_what_new_memory_holds(dtype):
    assert np.empty(2, dtype).tolist() == (numpy.zeros if dtype == "f8" else numpy.empty)(2, dtype).tolist()
    assert np.zeros(2, dtype).tolist() == numpy.zeros(2, dtype).tolist()


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_axes_of_accumulate(small):
    for axis in ((), (0,), (1,), (0, 1), [0], (5,), 0.0, None, -1):
        said = []
        for space in (np, numpy):
            with np.config.override(small_bytes=small):
                try:
                    said.append(space.add.accumulate(space.ones((2, 3)), axis=axis).tolist())
                except (TypeError, ValueError, IndexError) as error:
                    said.append(next(c for c in (TypeError, IndexError, ValueError) if isinstance(error, c)))
        assert said[0] == said[1], axis


@pytest.mark.parametrize("shown", ["strides", "strides of a part", "windows"])
def test_memory_that_is_shown_many_times_is_copied_once(shown):
    """A step of it was made of a copy of all that is shown, of 800 MB here."""
    n, width = 100_000, 1000
    found = []
    for package in (numpy, np):
        tricks = package.lib.stride_tricks
        x = package.arange(float(n)) % 7
        if shown == "windows":
            frames = tricks.sliding_window_view(x, width, writeable=True)
        else:
            frames = tricks.as_strided(x, (n - width + 1, width), (8, 8))
        with np.config.override(small_bytes=0):
            tracemalloc.start()
            try:
                parts = frames[::500, 3:] if shown == "strides of a part" else frames[::500]
                found.append(numpy.asarray(parts * 2 + 1))
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        x[505] = 100  # what has been computed has the elements of before
        found.append(numpy.asarray(parts[1:3]))
    assert peak < 50_000_000
    for ours, theirs in zip(found[2:], found[:2], strict=True):
        numpy.testing.assert_array_equal(ours, theirs)


def test_sparse_arrays_have_no_memory_to_lend():
    """Nor are they made dense to find that out."""
    s = np.asarray(sparse.eye_array(1_000_000).tocsr())
    with pytest.raises(TypeError, match="csr format"):
        np.lib.stride_tricks.as_strided(s, (3,), (8,))
