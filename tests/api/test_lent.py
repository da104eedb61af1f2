"""Memory that NumPy's arrays and ours have together: programs that write into both, as with NumPy alone."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import scipy.linalg
import scipy.ndimage

import spartan_ng as np
from spartan_ng.config import config

SIZES = [0, 64, 1 << 20]
"""Of `config.small_bytes`: all is planned; arrays of the programs here are large; all is NumPy's at once."""


def _floats(xp: Any) -> Any:
    return xp.arange(24.0).reshape(4, 6) * 3 % 11


MADE: dict[str, Callable[[Any], Any]] = {
    "computed": _floats,
    "blank": lambda xp: xp.zeros((4, 6)),
    "made": lambda xp: xp.array(numpy.arange(24.0).reshape(4, 6)),
    "filtered": lambda xp: (x := _floats(xp).ravel() * 1)[x >= 0].reshape(4, 6),
    "columns": lambda xp: xp.asfortranarray(_floats(xp)),
    "turned": lambda xp: (_floats(xp).reshape(6, 4) + 1).T,
    "part": lambda xp: xp.arange(60.0).reshape(6, 10)[1:5, 2:8],
    "over a buffer": lambda xp: xp.frombuffer(bytearray(numpy.arange(24.0).tobytes())).reshape(4, 6),
    "copied": lambda xp: (x := xp.array(numpy.arange(24.0).reshape(4, 6)), x.sum(), x.copy())[2],
    "of a copy": lambda xp: (x := _floats(xp), x.copy(), x)[2],
    "copied in order": lambda xp: _floats(xp).copy("F"),
    "a copy's copy": lambda xp: xp.array(_floats(xp).copy()),
    "cast": lambda xp: (_floats(xp) > 3).astype(float),
    "drawn": lambda xp: xp.floor(xp.random.default_rng(0).random((4, 6)) * 9),
    "persisted": lambda xp: _persisted(_floats(xp) + 1),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda a: a[1:],
    "one row": lambda a: a[0],
    "every second": lambda a: a[..., ::2],
    "backwards": lambda a: a[::-1],
    "turned": lambda a: a.T,
    "more axes": lambda a: a[None],
    "all": lambda a: a[...],
    "bytes": lambda a: a.view("i8"),
    "flat": lambda a: a.reshape(-1),
    "diagonal": lambda a: a.diagonal() if a.ndim > 1 else a,
}
BUILT: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda xp, a: a * 2,
    "both": lambda xp, a: a + a[::-1],
    "chain": lambda xp, a: xp.maximum(a * 2 - 1, 3) / 4,
    "sum": lambda xp, a: a.sum(),
    "sums": lambda xp, a: xp.sum(a, axis=0) + 1,
    "mean": lambda xp, a: xp.mean(a),
    "least": lambda xp, a: a.min(axis=-1),
    "place": lambda xp, a: a.argmax(),
    "sums so far": lambda xp, a: xp.cumsum(a),
    "sorted": lambda xp, a: xp.sort(a),
    "order": lambda xp, a: a.argsort(kind="stable"),
    "where": lambda xp, a: xp.where(a > 3, a, 0),
    "mask": lambda xp, a: a[a > 3],
    "mask of a mask": lambda xp, a: (b := a[a > 3])[b > 5] * 2,
    "rows": lambda xp, a: a[[0, -1]],
    "places": lambda xp, a: xp.arange(300.0)[abs(a.astype(int)) % 300],
    "taken": lambda xp, a: xp.take(a, [0, 0], axis=0),
    "joined": lambda xp, a: xp.concatenate([a, a]),
    "stacked": lambda xp, a: xp.stack([a, a + 1]),
    "in a list": lambda xp, a: xp.array([a, a]),
    "product": lambda xp, a: a @ a.T,
    "lines": lambda xp, a: xp.tensordot(a, a, a.ndim),
    "einsum": lambda xp, a: xp.einsum("...i,...i->...i", a, a),
    "transform": lambda xp, a: xp.fft.fft(a).real,
    "norm": lambda xp, a: xp.linalg.norm(a),
    "median": lambda xp, a: xp.median(a),
    "distinct": lambda xp, a: xp.unique(a),
    "bins": lambda xp, a: xp.histogram(a, bins=3, range=(0, 60))[0],
    "found": lambda xp, a: xp.searchsorted(xp.arange(9.0), a.ravel()),
    "sought": lambda xp, a: xp.searchsorted(a.ravel(), xp.arange(9.0)),
    "steps": lambda xp, a: xp.diff(a),
    "padded": lambda xp, a: xp.pad(a, 1),
    "rolled": lambda xp, a: xp.roll(a, 1),
    "repeated": lambda xp, a: xp.repeat(a, 2),
    "tiled": lambda xp, a: xp.tile(a, 2),
    "filled": lambda xp, a: xp.full((2, *a.shape), a),
    "like": lambda xp, a: xp.full_like(a, a),
    "copy": lambda xp, a: a.copy(),
    "array": lambda xp, a: xp.array(a),
    "cast": lambda xp, a: a.astype("f4"),
    "same cast": lambda xp, a: xp.asarray(a, "f8") * 1,
    "stretched": lambda xp, a: xp.broadcast_to(a, (2, *a.shape)) + 0,
    "choose": lambda xp, a: xp.select([a > 5, a > 2], [a, -a], 0),
    "clipped": lambda xp, a: xp.clip(a, 2, 5),
    "interpolated": lambda xp, a: xp.interp(a, [0, 50], [0, 5]),
    "by a function": lambda xp, a: xp.apply_along_axis(lambda line: line * 2, -1, a),
    "outer": lambda xp, a: xp.multiply.outer(a, xp.arange(2.0)),
    "folded": lambda xp, a: xp.add.reduce(a, axis=-1),
    "any": lambda xp, a: (a > 50).any(),
    "count": lambda xp, a: xp.count_nonzero(a),
    "list": lambda xp, a: xp.asarray(a.tolist()),
    "splits": lambda xp, a: xp.array_split(a, 2)[0] + 1,
}
WRITTEN: dict[str, Callable[[Any, Any, float], Any]] = {
    "all": lambda xp, a, x: a.__setitem__(..., x),
    "a part": lambda xp, a, x: a.__setitem__(slice(0, 1), x),
    "a mask": lambda xp, a, x: a.__setitem__(a > 4, x),
    "places": lambda xp, a, x: a.__setitem__([0, 0], x),
    "an array": lambda xp, a, x: a.__setitem__(..., xp.full(a.shape, x)),
    "more": lambda xp, a, x: a.__iadd__(x),
    "itself": lambda xp, a, x: a.__isub__(a * 2),
    "out": lambda xp, a, x: xp.multiply(a, x, out=a),
    "out of a fold": lambda xp, a, x: xp.cumsum(a, axis=0, out=a),
    "at": lambda xp, a, x: xp.add.at(a, [0, 0], x),
    "fill": lambda xp, a, x: a.fill(x),
    "put": lambda xp, a, x: a.put([0, 1], x),
    "copyto": lambda xp, a, x: xp.copyto(a, x),
    "sort": lambda xp, a, x: a.sort(),
    "flat": lambda xp, a, x: a.flat.__setitem__(0, x),
}
BY_OTHERS: dict[str, Callable[[Any, float], Any]] = {
    "all": lambda n, x: n.fill(x),
    "an element": lambda n, x: n.flat.__setitem__(0, x),
    "more": lambda n, x: n.__iadd__(x),
    "a part": lambda n, x: n[:1].__setitem__(..., x),
}


def _persisted(a: Any) -> Any:
    return a.persist() if hasattr(a, "persist") else a


def _tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whatever NumPy raises
        return type(error).__name__


class _Program:
    """A program of some steps, the same for NumPy and for us."""

    def __init__(self, xp: Any, seed: int) -> None:
        self.xp, self.draw = xp, random.Random(seed)
        made = MADE[self.draw.choice([*MADE])](xp)
        self.arrays, self.lent, self.found = [made], list[Any](), list[Any]()
        self.told: list[str] = []

    def step(self) -> None:
        draw, xp = self.draw, self.xp
        kind = draw.choice(["view", "lend", "lend", "end", "build", "build", "ours", "theirs", "theirs"])
        a, x = draw.choice(self.arrays), float(draw.randint(1, 60))
        tables: dict[str, Any] = {"view": VIEWS, "build": BUILT, "ours": WRITTEN, "theirs": BY_OTHERS}
        name = draw.choice([*tables.get(kind, "-")])
        which, of_view = draw.randrange(1 << 16), draw.random() < 0.3
        self.told.append(f"{kind} {name} {x}")
        if kind == "view":
            view = _tried(lambda: VIEWS[name](a))
            if not isinstance(view, str) and view.ndim and view.dtype == "f8":
                self.arrays.append(view)
        elif kind == "lend":
            lent = numpy.asarray(a)
            assert lent.flags.writeable == a.flags.writeable
            assert lent.strides == a.strides
            self.lent.append(lent[::-1] if of_view else lent)
        elif kind == "end" and self.lent:
            del self.lent[which % len(self.lent)]
        elif kind == "build":
            self.found.append(_tried(lambda: BUILT[name](xp, a)))
        elif kind == "ours":
            self.found.append(_tried(lambda: WRITTEN[name](xp, a, x) is None))
        elif kind == "theirs" and self.lent:
            lent = self.lent[which % len(self.lent)]
            self.found.append(_tried(lambda: BY_OTHERS[name](lent, x) is None))

    def all(self) -> list[Any]:
        return [*self.arrays, *self.lent, *self.found]


def _told(a: Any) -> Any:
    return a if isinstance(a, str | bool) else (numpy.array(a).tolist(), str(a.dtype), a.shape)


@pytest.mark.parametrize("small_bytes", SIZES)
@pytest.mark.parametrize("part", range(8))
def test_programs_that_write_into_both(part: int, small_bytes: int) -> None:
    for seed in range(part, 80, 8):
        ours, theirs = _Program(np, seed), _Program(numpy, seed)
        with config.override(small_bytes=small_bytes), numpy.errstate(all="ignore"):
            for _ in range(14):
                ours.step()
                theirs.step()
                last = (ours.lent or [None])[-1], (theirs.lent or [None])[-1]
                assert numpy.array_equal(*last), (seed, ours.told)
            for one, other in zip(ours.all(), theirs.all(), strict=True):
                assert _told(one) == _told(other), (seed, ours.told)


@pytest.mark.some(24)
@pytest.mark.parametrize("small_bytes", SIZES)
@pytest.mark.parametrize("built", BUILT)
def test_what_is_built_has_the_elements_of_its_time(built: str, small_bytes: int) -> None:
    """Before the memory is lent and while it is; of arrays, and of views of them."""
    with config.override(small_bytes=small_bytes), numpy.errstate(all="ignore"):
        for made in MADE.values():
            for view in (lambda a: a, lambda a: a[1:], lambda a: a.T):
                a, b = view(made(np)), view(made(numpy))
                found, wanted = [BUILT[built](np, a)], [BUILT[built](numpy, b)]
                lent, own = numpy.asarray(a), numpy.asarray(b)
                for x in (50.0, 7.0):
                    found.append(BUILT[built](np, a))
                    wanted.append(BUILT[built](numpy, b))
                    lent[0] = own[0] = x
                    a[1:] += 1
                    b[1:] += 1
                del lent
                found += [BUILT[built](np, a), a]
                wanted += [BUILT[built](numpy, b), b]
                assert [*map(_told, found)] == [*map(_told, wanted)]


KINDS: dict[str, Callable[[Any], Any]] = {
    "integers": lambda xp: xp.arange(7, dtype=">i2") * 3,
    "truths": lambda xp: xp.arange(9) % 2 == 0,
    "complex": lambda xp: xp.arange(5) * 1j,
    "its part": lambda xp: (xp.arange(5) * 1j).real,
    "texts": lambda xp: xp.array(["ab", "c", "defg"]),
    "records": lambda xp: xp.array([(1, 2.0), (3, 4.0), (5, 6.0)], "i4,f8"),
    "a field": lambda xp: xp.array([(1, 2.0), (3, 4.0), (5, 6.0)], "i4,f8")["f1"],
    "times": lambda xp: xp.array(["2020-01-01", "2021-02-03"], "M8[D]"),
    "objects": lambda xp: xp.array([1, None, "x"], object),
    "none": lambda xp: xp.zeros((0, 3)),
    "alone": lambda xp: xp.array(2.5),
    "stretched": lambda xp: xp.broadcast_to(xp.arange(3.0), (4, 3)),
    "stretched to write": lambda xp: xp.broadcast_arrays(xp.arange(3.0), xp.zeros((2, 1)))[0],
    "windows": lambda xp: xp.lib.stride_tricks.sliding_window_view(xp.arange(5.0), 3),
    "by strides": lambda xp: xp.lib.stride_tricks.as_strided(xp.arange(6.0), (4, 3), (8, 8)),
    "read only": lambda xp: xp.frombuffer(b"12345678"),
    "locked": lambda xp: _locked(xp.arange(4.0) + 1),
}


def _locked(a: Any) -> Any:
    a.flags.writeable = False
    return a


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("small_bytes", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_elements_of_any_kind(kind: str, small_bytes: int) -> None:
    def program(xp: Any) -> list[Any]:
        a = KINDS[kind](xp)
        view, lent = a[...], numpy.asarray(a)
        same = (
            lent.dtype,
            lent.shape,
            lent.strides,
            lent.flags.writeable,
            lent.flags.writeable and a.flags.owndata,
        )
        first = lent.flat[-1] if lent.size else 0
        error = _tried(lambda: lent.__setitem__((0,) * lent.ndim, first) is None)
        return [same, error, numpy.array(a).tolist(), numpy.array(view).tolist(), numpy.array(lent).tolist()]

    with config.override(small_bytes=small_bytes):
        assert program(np) == program(numpy)


@pytest.mark.parametrize("small_bytes", SIZES)
def test_it_ends_with_the_last_that_looks_at_it(small_bytes: int) -> None:
    with config.override(small_bytes=small_bytes):
        a = np.arange(6.0) * 2
        one, other = numpy.asarray(a), numpy.asarray(a[1:])
        part = other[1:].reshape(2, 2).T
        assert numpy.shares_memory(one, part)
        assert not one.flags.owndata
        part.flags.writeable = False
        part.flags.writeable = True  # as of a view of NumPy's
        del one, other
        assert a._cell.lent == 1
        part[0, 0] = 9.0
        assert a.tolist() == [0, 2, 9, 6, 8, 10]
        del part
        gc.collect()
        assert (a._cell.shared, a._cell.lent) == (False, 0)
        lent = numpy.asarray(a)
        pointer = a.ctypes.data
        del lent
        assert a._cell.shared  # for good
        assert numpy.asarray(a).ctypes.data == pointer
        kept = numpy.asarray(np.arange(5.0) * 2)
        gc.collect()
        assert kept.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("small_bytes", SIZES)
def test_other_libraries_write_into_it(small_bytes: int) -> None:
    def program(xp: Any) -> list[Any]:
        a = xp.arange(64.0).reshape(8, 8) % 5 + xp.eye(8) * 20
        b = xp.zeros((8, 8))
        scipy.ndimage.gaussian_filter(a, 1, output=b)
        early = b * 2
        scipy.ndimage.uniform_filter(b, 3, output=b)
        scipy.linalg.lu_factor(a, overwrite_a=True)
        numpy.random.RandomState(0).shuffle(numpy.asarray(b[0]))
        options: Any = {"op_flags": ["readwrite"]}
        iterator: Any = numpy.nditer(numpy.asarray(b[1:2]), **options)
        for x in iterator:
            x[...] = 3
        return [early, b, b[0] + 1]

    with config.override(small_bytes=small_bytes):
        for one, other in zip(program(np), program(numpy), strict=True):
            numpy.testing.assert_array_equal(one, other)


def test_a_loop_over_what_is_lent_copies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators, folds and products of a large array read it where it lies, as long as others have it."""
    from spartan_ng.api.core import cell, loans

    copied: list[int] = []

    def counting(name: str, module: Any) -> None:
        copy = getattr(module, name)

        def counted(value: Any) -> Any:
            copied.append(value.nbytes)
            return copy(value)

        monkeypatch.setattr(module, name, counted)

    counting("_memory_copied", cell)
    counting("own_copy", loans)
    with config.override(small_bytes=64):
        a = np.arange(24.0).reshape(4, 6) * 2
        lent = numpy.asarray(a)
        for x in range(3):
            lent[0, 0] = x
            found = [
                a * 2,
                a[1:] + 1,
                np.sin(a),
                a.sum(),
                a.sum(axis=0),
                np.sum(a),
                a.mean(),
                a @ a.T,
                a.dot(a.T),
            ]
            wanted = [
                lent * 2,
                lent[1:] + 1,
                numpy.sin(lent),
                lent.sum(),
                lent.sum(axis=0),
                lent.sum(),
                lent.mean(),
                lent @ lent.T,
                lent @ lent.T,
            ]
            for one, other in zip(found, wanted, strict=True):
                numpy.testing.assert_allclose(one, other, rtol=1e-14)
    assert not copied


@pytest.mark.parametrize("small_bytes", SIZES)
def test_reading_it_copies_nothing(small_bytes: int) -> None:
    with config.override(small_bytes=small_bytes):
        a = np.arange(6.0) * 2
        address = numpy.asarray(a).ctypes.data
        for _ in range(3):
            assert numpy.asarray(a).ctypes.data == address
            assert float((a * 2)[1]) == 4
            assert numpy.asarray(a[1:]).ctypes.data == address + 8
            assert numpy.array(a).ctypes.data != address
            assert a.to_numpy().ctypes.data != address
