"""What is written to parts of large arrays by functions: NumPy writes it where it lies, and no pass makes it
elsewhere to be copied."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as sp
from spartan_ng.api.core import forcing, handle
from spartan_ng.config import config
from spartan_ng.session import Session
from tests.api.test_writes import address

PARTS = {
    "rows": lambda a: a[1:],
    "columns": lambda a: a[:, :-1],
    "steps": lambda a: a[::2],
    "back": lambda a: a[::-1],
    "turned": lambda a: a.T,
    "block": lambda a: a[3:20, 2:11],
}
CALLS = {
    "+=": lambda np, t, x, y: t.__iadd__(y),
    "*= number": lambda np, t, x, y: t.__imul__(3),
    "/=": lambda np, t, x, y: t.__itruediv__(y),
    "add": lambda np, t, x, y: np.add(x, y, out=t),
    "add of itself": lambda np, t, x, y: np.add(t, y, out=t),
    "maximum": lambda np, t, x, y: np.maximum(t, x, out=t),
    "where": lambda np, t, x, y: np.subtract(x, y, out=t, where=x > y),
    "sqrt": lambda np, t, x, y: np.negative(x, out=t),
    "row": lambda np, t, x, y: np.multiply(x, y[:1], out=t),
}


@pytest.mark.some(60)
@pytest.mark.parametrize(("part", "call"), list(product(PARTS, CALLS)))
@pytest.mark.parametrize("overlap", [False, True])
def test_parts_are_written_where_they_lie(part, call, overlap, monkeypatch):
    def run(np):
        a = np.array(numpy.arange(600.0).reshape(30, 20) + 1)
        b = a if overlap else np.array(a[::-1] * 2)
        if np is sp:
            sp.compute(a, b)
            place = address(a)
            evaluated = []
            monkeypatch.setattr(Session, "_plan_and_run", lambda *args: evaluated.append(args))
        target = PARTS[part](a)
        x, y = (PARTS[part](v) for v in (b, b))
        given = CALLS[call](np, target, x, y[::-1] if overlap and y.ndim > 1 else y)
        if np is sp:
            monkeypatch.undo()
            assert "where" in call or not evaluated
            assert address(a) == place
        assert given is target
        return numpy.array(a)

    with config.override(small_bytes=100):
        numpy.testing.assert_array_equal(run(sp), run(numpy))


LAZY = {
    "-=": lambda np, t, y: t.__isub__(2 * y),
    "*=": lambda np, t, y: t.__imul__(y + 1),
    "subtract": lambda np, t, y: np.subtract(t, y * 2, out=t),
    "reflected": lambda np, t, y: np.subtract(y * 2, t, out=t),
    "negative": lambda np, t, y: np.negative(y + 1, out=t),
    "row": lambda np, t, y: np.add(t, (y * 3)[:1], out=t),
    "number": lambda np, t, y: t.__isub__(3),
    "number added": lambda np, t, y: np.negative(t, out=t),
    "of itself": lambda np, t, y: t.__iadd__(t * 0.5),
    "of what lies beside": lambda np, t, y: t.__iadd__(t[::-1] * y),
}


@pytest.mark.parametrize("base", ["here", "lazy", "copied"])
@pytest.mark.parametrize(("part", "call"), list(product(PARTS, LAZY)))
def test_what_is_still_to_be_computed_is_computed_alone(part, call, base, monkeypatch):
    """No pass has the function that writes in it, and makes its result elsewhere."""

    def run(np):
        a = np.array(numpy.arange(600.0).reshape(30, 20) + 1)
        b = np.array(numpy.arange(600.0).reshape(30, 20) % 7)
        asked: list[object] = []
        if np is sp:
            sp.compute(a, b)
        a = {"here": lambda: a, "lazy": lambda: a * 3, "copied": a.copy}[base]()
        if np is sp:
            place = address(a) if base == "here" else 0
            own = forcing.compute_nodes

            def noted(nodes):
                asked.extend(n.fn for n in nodes)  # which are leaves afterwards
                return own(nodes)

            monkeypatch.setattr(handle, "compute_nodes", noted)
        target = PARTS[part](a)
        waiting = a * 10
        given = LAZY[call](np, target, PARTS[part](b))
        if np is sp:
            monkeypatch.undo()
            assert base != "here" or address(a) == place
            assert asked or base != "lazy"
            assert not {"subtract", "negative"}.intersection(asked)
        assert given is target
        return numpy.array(a), numpy.array(waiting)

    with config.override(small_bytes=100):
        for found, expected in zip(run(sp), run(numpy), strict=True):
            numpy.testing.assert_array_equal(found, expected)


def test_what_an_evaluation_left_here_is_not_copied_for_its_parts():
    with config.override(small_bytes=100):
        drawn = sp.random.default_rng(0).random((30, 20))
        sp.compute(drawn)
        a = sp.zeros((30, 20))
        sp.compute(a)
        a[1:] = drawn[:-1]
        assert drawn._peek() is not None
        numpy.testing.assert_array_equal(numpy.array(a[1:]), numpy.array(drawn[:-1]))


@pytest.mark.parametrize("other", [[1, 2, 3], (4.0, 5, 6), 2, numpy.float32(3), numpy.arange(3)])
def test_small_parts_take_what_they_took(other, monkeypatch):
    wanted = numpy.arange(12.0).reshape(4, 3)
    a = sp.array(wanted)
    monkeypatch.setattr("spartan_ng.api.ndarray.arithmetic.stored", None)  # nothing is copied
    for x in (a, wanted):
        part = x[1:]
        part += other
    numpy.testing.assert_array_equal(numpy.asarray(a), wanted)


KEYS = (
    slice(1, 4),
    slice(None),
    2,
    -1,
    (slice(1, 5), slice(None, None, 2)),
    (1, slice(2, None)),
    (..., 3),
    None,
)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("layout", ["plain", "view", "read-only", "frozen again"])
def test_a_part_that_is_written_to_its_own_place_is_as_numpy_has_it(key, layout):
    """`a[k] += b` ends with that; of what is not to be written it is an error all the same."""

    def run(np):
        said = []
        a = np.array(numpy.arange(72.0).reshape(9, 8))
        target = a[1:, ::-1] if layout == "view" else a
        if layout == "read-only":
            target.setflags(write=False)
        for change in (lambda x: x.__iadd__(1.5), lambda x: x, lambda x: x + 1):
            try:
                part = target[key]
                target[key] = change(part)
                if layout == "frozen again":
                    target.setflags(write=False)
                    target[key] = part
            except (ValueError, TypeError) as error:
                said.append(type(error))
            said.append(numpy.array(a).tolist())
        return said

    assert run(sp) == run(numpy)


def test_a_part_of_what_has_become_another_array_is_written():
    """The same key of the same array, but what it shows is not there any more."""

    class Index:
        at = 0

        def __index__(self):
            self.at += 1
            return self.at

    def run(np):
        a, b = np.array(numpy.arange(20.0)), np.array(numpy.arange(20.0) * 3)
        key = slice(2, 9)
        part, other = a[key], b[key]
        a[key] = other
        a[key] = part
        inner = a[4:][key]
        a[key] = inner
        moving = slice(Index(), Index(), None)
        a[moving] += 1
        return numpy.array(a).tolist()

    assert run(sp) == run(numpy)
