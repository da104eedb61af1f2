"""Keys that are no arrays, lists or numbers: sequences, subclasses of NumPy's arrays, objects with an index;
elements that refuse."""

from __future__ import annotations

import array
import itertools
from collections import deque
from collections.abc import Sequence

import numpy
import pytest

import spartan_ng as np
from tests.test_calls import calls


class Two(Sequence):
    """A sequence of one's own."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return [2, 0][i]


class Named(numpy.ndarray):
    """An array class of one's own."""


class Index:
    """An object with an index, or none."""

    def __init__(self, of):
        self._of = of

    def __index__(self):
        return self._of()


def refusing(kind):
    def refuse():
        raise kind("no")

    return Index(refuse)


KEYS = {
    "range": range(2),
    "no range": range(0),
    "range downwards": range(2, -1, -2),
    "range of negative": range(-3, 0, 2),
    "far range": range(2, 5),
    "range beyond all": range(2**70, 2**70 + 2),
    "list": [2, 0],
    "list of NumPy's": [numpy.uint8(2), numpy.int64(0)],
    "far list": [2, 7],
    "list beyond all": [2**70, 1],
    "range of masks": [range(2), [1, 0]],
    "sequence": Two(),
    "queue": deque([1, 2]),
    "array of Python's": array.array("i", [0, 2]),
    "memory": memoryview(bytes([1, 1])),
    "text": "ab",
    "bytes": b"ab",
    "set": {1},
    "dictionary": {0: 1},
    "object": object(),
    "number": 1.0,
    "masked places": numpy.ma.array([2, 0], mask=[False, True]),
    "masked mask": numpy.ma.array([True, False, True], mask=[False, True, False]),
    "subclass": numpy.array([1, 2]).view(Named),
    "mask of a subclass": numpy.array([True, False, True]).view(Named),
    "wrong masked mask": numpy.ma.array([True, False], mask=[False, True]),
    "index": Index(lambda: 1),
    "far index": Index(lambda: 7),
    "index that is none": Index(lambda: "x"),
    **{kind.__name__: refusing(kind) for kind in (KeyError, ValueError, TypeError, ZeroDivisionError)},
}


def outcome(call):
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return type(error)
    return numpy.shape(found), numpy.asarray(found).tolist()


def cases(key):
    """Keys with it."""
    alone = [key, (..., key), (key, ...), (key, None)]
    return [*alone, (key, [1, 0]), ([1, 0], key), (key, range(2)), (key, slice(2)), (slice(2), key), (key, 1)]


def beside_arrays(key, xp):
    """Keys with it and an array of a library's."""
    two = xp.array([1, 0])
    return [
        (key, two),
        (two, key),
        (key, two[:, None]),
        (two, None, key),
        (key, xp.array([True, False, True])),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KEYS)
def test_keys_are_what_numpy_takes_them_for(mode, name):
    for key, shape in itertools.product(cases(KEYS[name]), [(3,), (3, 3)]):
        whole = numpy.arange(float(numpy.prod(shape))).reshape(shape)
        a, ours = whole.copy(), np.array(whole)
        assert outcome(lambda: ours[key]) == outcome(lambda: a[key]), (key, shape)  # noqa: B023
        assert outcome(lambda: ours.__setitem__(key, -1.0)) == outcome(lambda: a.__setitem__(key, -1.0))  # noqa: B023
        assert ours.tolist() == a.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in KEYS if "range" in n or "list" in n])
def test_keys_beside_arrays_are_what_numpy_takes_them_for(mode, name):
    for theirs, ours in zip(*(beside_arrays(KEYS[name], xp) for xp in (numpy, np)), strict=True):
        whole = numpy.arange(9.0).reshape(3, 3)
        a, b = whole.copy(), np.array(whole)
        assert outcome(lambda: b[ours]) == outcome(lambda: a[theirs]), theirs  # noqa: B023
        assert outcome(lambda: b.__setitem__(ours, -1.0)) == outcome(lambda: a.__setitem__(theirs, -1.0))  # noqa: B023
        assert b.tolist() == a.tolist()


@pytest.mark.parametrize("key", [range(60), [*range(0, 60, 2)], range(59, -1, -2)])
def test_ranges_and_lists_beside_arrays_are_no_detour(key):
    a, places = np.ones((60, 3)), np.array([1] * len(key))
    for call in (lambda: a[key, places], lambda: a[key], lambda: a.__setitem__((key, places), 2.0)):
        call()
        asked = {name.rpartition("/")[2].partition(":")[0] for name in calls(call)}
        assert not asked & {"keys.py", "loans.py", "assigning.py"}, asked


class Grumpy:
    """An element that refuses to be added or compared, and counts how often it was asked."""

    asked = 0

    def _refuse(self, other):
        Grumpy.asked += 1
        raise ValueError("not with me")

    __add__ = __radd__ = __lt__ = __gt__ = __mul__ = __rmul__ = _refuse


@pytest.mark.parametrize(
    "call",
    [
        lambda a, c: a.__iadd__(c),
        lambda a, c: a[:].__iadd__(c),
        lambda a, c: a.__imul__(c),
        lambda a, c: a + c,
        lambda a, c: c < a,
        lambda a, c: c * 2,
    ],
)
def test_what_an_element_refuses_is_asked_once(call):
    told = []
    for m in (numpy, np):
        a, c = m.array([1, 2, 3], object), m.array([10, 10, Grumpy()], object)
        Grumpy.asked = 0
        with pytest.raises(ValueError, match="not with me"):
            call(a, c)
        told.append((a.tolist(), Grumpy.asked))
    assert told[0] == told[1]


def test_powers_that_are_refused_are_not_taken_twice(mode):
    told = []
    for m in (numpy, np):
        a = m.array([2, 3, 2], "i1")
        with pytest.raises(ValueError, match="negative"):
            a **= m.array([3, 3, -1], "i1")
        told.append(a.tolist())
    if mode == "eager":
        assert told[0] == told[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", [(4, 3), (3,), (2, 1, 3)])
def test_what_is_stretched_stays_so_when_writes_are_allowed(mode, shape):
    b = np.broadcast_to(np.arange(3.0), shape)
    b.flags.writeable = True
    assert b.shape == shape
    assert b.flags.writeable
    assert b.tolist() == numpy.broadcast_to(numpy.arange(3.0), shape).tolist()
    b.flags.writeable = False
    assert not b.flags.writeable
    assert b.shape == shape
