"""Small arrays that NumPy shuffles, draws from and adds into at once: its numbers, also through views, lists
and what is still to be computed."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np

STATEMENTS = """
g.shuffle(a)
g.shuffle(a[::2])
g.shuffle(a[::-1])
g.shuffle(m)
g.shuffle(m, axis=1)
g.shuffle(m.T)
g.shuffle(m.T, axis=-1)
g.shuffle(m[:, 1])
g.shuffle(o)
g.shuffle(a[:0])
g.shuffle(c)
y = a * 2; g.shuffle(a); y += 1
y = a[2:]; g.shuffle(a)
y = a[2:]; g.shuffle(y)
y = np.broadcast_to(a, (3, 10)); g.shuffle(y)
y = a[:5]; y.flags.writeable = False; g.shuffle(y)
g.shuffle(m, axis=2)
r.shuffle(a)
r.shuffle(a[::2])
r.shuffle(m)
r.shuffle(m.T)
r.shuffle(o)
y = a * 2; r.shuffle(a); y += 1
y = a[:5]; y.flags.writeable = False; r.shuffle(y)
f = r.permutation(a[::2])
f = r.permutation(m.T)
f = r.permutation(o)
f = r.permutation(a[:0])
f = r.permutation(7)
f = r.permutation(-1)
f = g.permutation(0)
f = g.permutation(-1)
f = g.permutation(True)
f = g.choice(a)
f = g.choice(a, ())
f = g.choice(a, 3)
f = g.choice(a, (2, 3), p=b)
f = g.choice([0, 1], p=[0.5, 0.5])
f = g.choice(["x", "y"], 4)
f = g.choice(m)
f = g.choice(m, axis=1); f[...] = 7
f = g.choice(m, 3, axis=-1, replace=False)
f = g.choice(m[:1]); f[...] = 7
f = g.choice(o)
f = g.choice(o, 2)
f = g.choice(t, ())
f = g.choice(a, 20, replace=False)
f = g.choice(a, p=a)
f = g.choice(a[:0])
f = g.choice(a[:0], 0)
f = g.random(np.int64(3))
f = g.random(True)
f = g.random(-1)
f = g.random((2, 3))
f = g.random((2, np.int64(3)))
f = g.random((2, -1))
f = g.random(())
f = g.random([2, 3])
f = g.random(3, np.float32)
f = g.uniform(1, 0.5, 3)
f = g.uniform(a, 2)
f = g.uniform(0, numpy.inf)
f = g.normal(0, -1, 3)
f = g.normal(size=())
f = g.normal(a, 2.0)
f = g.normal(None)
f = g.poisson(a[3], 3)
f = g.integers(3, 3)
f = g.integers(5, endpoint=True)
f = g.integers(0, 9, 3, endpoint=True)
f = g.integers(2.5, 9, 3)
f = g.integers(a[9], 40)
f = g.integers(True)
f = g.integers(10**19)
f = g.integers(0, 9, (2, 2), dtype=np.uint8)
f = r.rand(2, 3)
f = r.rand((3,))
f = r.rand(-1)
f = r.randint(3)
f = r.randint(3, 3)
f = r.randint(2.5, 9, 3)
f = r.randint(0, 5, (2, 2))
f = r.randint(0, 5, 3, np.int8)
np.add.at(a, [0, 1, 1], 1)
np.add.at(a, [], 1)
np.add.at(a, [True] * 5 + [False] * 5, [1, 2, 3, 4, 5])
np.add.at(a, [0, 99], 1)
np.add.at(a, [0, 1], [1, 2, 3])
np.add.at(m, ([0, 1, 1], [1, 2, 2]), a[:3])
np.add.at(m, (slice(None), [0, 0]), 1)
np.add.at(m, (Ellipsis, 0), 1)
np.add.at(m, (None, 0), 1)
np.add.at(m, (i, i[::-1]), 2.5)
np.add.at(m, (), 2.5)
np.add.at(m, i[:2], m[0])
np.add.at(a[::2], [0, 0], 1)
np.add.at(a, i, a)
np.add.at(a, i, a[:4])
np.add.at(i, [0, 0], 1)
np.add.at(i, [0, 0], 1.5)
np.add.at(o, [0, 0], 1)
np.negative.at(a, [0, 0, 1])
np.negative.at(m, (0, [1, 1]))
np.add.at(a, [0])
np.negative.at(a, [0], 1)
np.divmod.at(a, [0], 1)
np.add.at(a, [[0, 1], [1, 1]], 1)
np.add.at(a, [a[1], 2], 1)
y = a * 2; np.add.at(a, [0, 0], 1); y += 1
y = a[:5]; y.flags.writeable = False; np.add.at(y, [0], 1)
f = np.apply_along_axis(np.convolve, 0, m, a[:3], mode="same")
f = np.apply_along_axis(np.sum, 1, m)
f = np.apply_along_axis(np.exp, 1, m)
f = np.apply_along_axis(np.cumsum, 1, m.T)
f = np.apply_along_axis(lambda v: v[::-1], 1, m)
f = np.char.upper(t)
f = np.char.add(t, t)
f = np.strings.str_len(t)
f = np.char.add(t, i)
"""


def _given(xp: Any) -> dict[str, Any]:
    a = numpy.arange(10.0)
    return {
        "np": xp,
        "numpy": numpy,
        "a": xp.array(a),
        "b": xp.array(numpy.full(10, 0.1)),
        "c": xp.array(3.0),
        "i": xp.arange(4),
        "m": xp.array(numpy.arange(12.0).reshape(4, 3)),
        "o": xp.array(["x", 2, None, 4.0, "y"], dtype=object),
        "t": xp.array(["ab", "cde"]),
        "g": xp.random.default_rng(3),
        "r": xp.random.RandomState(3),
    }


@pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("text", STATEMENTS.strip().splitlines())
def test_as_numpy_does(text: str, lazy: bool) -> None:
    """The same elements, the same error, and generators that go on with the same numbers."""
    outcomes = []
    for xp in (numpy, np):
        names = _given(xp)
        with np.config.override(small_bytes=0 if lazy else np.config.small_bytes):
            try:
                exec(text, names)
                error: Any = None
            except Exception as caught:  # noqa: BLE001 - the same is to be raised
                error = type(caught)
            after = {k: numpy.array(names[k]) for k in "abcimotfy" if k in names}
            after |= {"next": numpy.array(names["g"].random()), "legacy": numpy.array(names["r"].rand())}
        outcomes.append((after, error))
    (theirs, raised), (ours, error) = outcomes
    if raised is None or error is None:
        assert error is raised
    else:
        assert issubclass(error, raised) or issubclass(raised, error)
    for name, value in theirs.items():
        assert ours[name].dtype == value.dtype, name
        numpy.testing.assert_array_equal(ours[name], value, err_msg=name)


def test_windows_are_shuffled_where_they_lie() -> None:
    after = []
    for xp in (numpy, np):
        a = xp.array(numpy.arange(10.0))
        xp.random.default_rng(3).shuffle(xp.lib.stride_tricks.sliding_window_view(a, 3, writeable=True))
        after.append(a.tolist())
    assert after[0] == after[1]


def test_our_own_keywords_along_an_axis() -> None:
    m = np.array([[1.0, 3.0, 2.0], [5.0, 4.0, 6.0]])
    found = np.apply_along_axis(np.sort, 1, m, descending=True)
    assert found.tolist() == [[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]]
