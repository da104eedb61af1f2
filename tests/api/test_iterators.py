"""`nditer` and `nested_iters` over our arrays: the same program with NumPy and with this package."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from tests.api.test_small_calls import calls_of_ours


def doubled(m, a):
    with m.nditer(a, op_flags=["readwrite"]) as it:
        for x in it:
            x[...] = 2 * x
    return a


def squares(m, a):
    it = m.nditer([a, None])
    for x, y in it:
        y[...] = x * x
    return it.operands[1]


def buffered(m, a):
    for x in m.nditer(a, ["external_loop", "buffered"], [["readwrite"]], [m.float64], casting="same_kind"):
        x[...] = x + 0.5
    return a


def sums(m, a):
    out = m.zeros(a.shape[0])
    flags = [["readonly"], ["readwrite"]]
    axes = [None, [0] + [-1] * (a.ndim - 1)]
    for x, y in m.nditer([a, out], ["reduce_ok"], flags, op_axes=axes):
        y[...] += x
    return out


def indices(m, a):
    it = m.nditer(a, ["multi_index"])
    return [(it.multi_index, int(x)) for x in it]


def rows(m, a):
    outer, inner = m.nested_iters(a, [[0], list(range(1, a.ndim))], op_flags=["readwrite"])
    for _ in outer:
        for y in inner:
            y[...] = outer.multi_index[0] if outer.has_multi_index else 7
    return a


ARRAYS = {
    "C": lambda m: m.arange(6.0).reshape(2, 3),
    "F": lambda m: m.arange(6.0).reshape(3, 2).T,
    "backwards": lambda m: m.arange(6.0).reshape(2, 3)[:, ::-1],
    "computed": lambda m: m.arange(6.0).reshape(2, 3) * 2 + 1,
    "part": lambda m: m.arange(24.0).reshape(2, 3, 4)[:, 1:, ::2],
}
PROGRAMS = [doubled, squares, buffered, sums, indices, rows]


@pytest.mark.parametrize("small", ["default", 0])
@pytest.mark.parametrize("make", ARRAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_iterating(program, make, small):
    with np.config.override(small_bytes=np.config.small_bytes if small == "default" else small):
        ours, theirs = (program(m, ARRAYS[make](m)) for m in (np, numpy))
        if isinstance(theirs, list):
            assert ours == theirs
        else:
            assert type(ours) is np.ndarray
            numpy.testing.assert_array_equal(numpy.asarray(ours), theirs)


def test_operands_are_those_given():
    a = np.arange(3.0)
    it = np.nditer([a, None], op_flags=[["readwrite"], ["writeonly", "allocate"]])
    assert it.operands[0] is a
    assert isinstance(it.operands[1], np.ndarray)
    assert it.copy().operands[0] is a


def test_what_is_only_read_stays_as_it_is():
    for x in np.nditer(np.arange(3)):
        with pytest.raises(ValueError, match="read-only"):
            x[...] = 1
    locked = np.arange(3)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        np.nditer(locked, op_flags=["readwrite"])


WALKED = {
    "lines": lambda m: m.arange(24.0).reshape(2, 3, 4) * 2,
    "turned": lambda m: (m.arange(24.0).reshape(2, 3, 4) * 2).T,
    "strided": lambda m: (m.arange(48.0) * 2)[::-3],
    "complex": lambda m: m.ones((2, 3)) * 1j,
    "texts": lambda m: m.array([["a", "b"], ["c", "d"]]),
    "times": lambda m: m.arange("2020-01-01", "2020-01-05", dtype="M8[D]"),
    "objects": lambda m: m.array([[1, "a"], [None, 2.5]], object),
    "alone": lambda m: m.array(2.5),
    "nothing": lambda m: m.zeros((0, 3)),
    "stretched": lambda m: m.broadcast_to(m.arange(3), (2, 3)),
}


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("made", WALKED)
def test_elements_are_walked_over_as_numpys(made, small_bytes):
    """From where the walk was left, and with what was written meanwhile."""

    def program(m):
        a = WALKED[made](m)
        walk, found = a.flat, []
        for x in walk:
            found.append((x, walk.index, walk.coords))
            if len(found) == 2:
                break
        if a.flags.writeable and a.size > 2:
            a[...] = a.copy()[..., ::-1]
        found += [*walk]
        with pytest.raises(StopIteration):
            next(walk)
        first = walk[0] if a.size else None
        lines = [numpy.asarray(x).tolist() for x in a] if a.ndim else []
        return repr(found), repr([*walk]), repr(first), lines, iter(walk) is walk, len(walk)

    with np.config.override(small_bytes=small_bytes):
        assert program(np) == program(numpy)


@pytest.mark.parametrize("said", ["finished", "index", "iterindex", "iternext", "value"])
def test_no_python_says_where_an_iterator_is(said):
    it = np.nditer(np.arange(6.0), ["c_index"])
    assert calls_of_ours(f"it.{said}", {"it": it}) == []
    it.iterindex = 4
    assert (it.index, it.iternext(), it.iternext(), it.finished) == (4, True, False, True)


def test_an_iterator_is_somewhere_among_all_axes():
    it = np.nditer(np.arange(6).reshape(2, 3), ["multi_index"])
    assert calls_of_ours("it.multi_index", {"it": it}) == []
    it.multi_index = (1, 1)
    assert (int(it.value), it.iternext(), it.multi_index) == (4, True, (1, 2))
