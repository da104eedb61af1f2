"""Seeded numbers that memory has no room for are NumPy's, however many are drawn at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.drawing import streams
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.config import config

SHAPE = (37, 1001)
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "normal": ((2.0, 0.5), {}),
    "uniform": ((-1, 1), {}),
    "standard_normal": ((), {}),
    "exponential": ((3,), {}),
    "gamma": ((0.7,), {"scale": 2}),
    "beta": ((2, 3), {}),
    "binomial": ((40, 0.3), {}),
    "poisson": ((100,), {}),
    "hypergeometric": ((9, 7, 5), {}),
    "standard_t": ((4,), {}),
    "vonmises": ((0, 1), {}),
    "zipf": ((2.5,), {}),
}
MODERN: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "random": ((), {}),
    "standard_normal": ((), {"dtype": "f4"}),
    "standard_exponential": ((), {"dtype": "f4", "method": "inv"}),
    "standard_gamma": ((2,), {"dtype": "f4"}),
    "integers": ((0, 1000), {}),
}
INTEGERS = [(dtype, top) for dtype in ("?", "i1", "u2", "i4", "u4", "i8", "u8") for top in (2, 100, "most")]


@pytest.fixture(autouse=True)
def there_is_little_memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(streams, "PIECE", 1013)
    with config.override(memory_bytes=1 << 16, small_bytes=1 << 10):
        yield


def _check(ours: Any, theirs: Any, name: str, args: Any, keywords: Any) -> None:
    found, wanted = (getattr(g, name)(*args, size=SHAPE, **keywords) for g in (ours, theirs))
    assert found.dtype == wanted.dtype
    numpy.testing.assert_array_equal(found, wanted)
    assert ours.integers(1 << 40) == theirs.integers(1 << 40) if hasattr(ours, "integers") else True
    numpy.testing.assert_array_equal(ours.normal(size=3), theirs.normal(size=3))


@pytest.mark.parametrize("bits", ["PCG64", "MT19937", "Philox"])
@pytest.mark.parametrize("name", [*CALLS, *(f"modern {name}" for name in MODERN)])
def test_long_streams_are_numpys(name: str, bits: str) -> None:
    ours, theirs = (m.Generator(getattr(m, bits)(3)) for m in (np.random, numpy.random))
    args, keywords = MODERN[name.split()[1]] if " " in name else CALLS[name]
    _check(ours, theirs, name.rsplit(maxsplit=1)[-1], args, keywords)


@pytest.mark.parametrize("name", CALLS)
def test_long_streams_of_the_legacy_generator_are_numpys(name: str) -> None:
    _check(np.random.RandomState(3), numpy.random.RandomState(3), name, *CALLS[name])
    for call in (
        lambda m: m.random_sample(SHAPE),
        lambda m: m.rand(*SHAPE),
        lambda m: m.randint(0, 1 << 33, SHAPE),
    ):
        numpy.testing.assert_array_equal(call(np.random.RandomState(3)), call(numpy.random.RandomState(3)))


@pytest.mark.parametrize(("dtype", "top"), INTEGERS)
def test_long_streams_of_integers_of_any_width(dtype: str, top: Any) -> None:
    """Short ones are cut out of longer ones, so that they are drawn in one go."""
    kind = numpy.dtype(dtype)
    most = 2 if kind.kind == "b" else int(numpy.iinfo(kind).max) if top == "most" else top
    _check(np.random.default_rng(3), numpy.random.default_rng(3), "integers", (0, most), {"dtype": dtype})
    ours, theirs = np.random.RandomState(3), numpy.random.RandomState(3)
    _check(ours, theirs, "randint", (0, most), {"dtype": dtype})


def _is_on_disk(x: Any) -> bool:
    value = x._peek()
    return value is not None and is_mapped(value)


def test_long_streams_lie_on_disk() -> None:
    x = np.random.default_rng(0).normal(size=SHAPE)
    assert _is_on_disk(x)
    x[0, 0] = 5
    assert x[0, 0] == 5
    assert x.sum() != np.random.default_rng(0).normal(size=SHAPE).sum()
    assert not _is_on_disk(np.random.default_rng(0).normal(size=100))


def test_a_disk_that_takes_nothing_is_told(tmp_path: Any) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with config.override(disk_folder=str(folder)):
        folder.rmdir()
        with pytest.raises(OSError, match=r"random numbers of .* bytes, which memory has no room for"):
            np.random.default_rng(0).normal(size=SHAPE)


def _chosen(n: int, part: int, shuffle: bool, r: Any, x: Any) -> Any:
    """Around one in so many of the numbers up to `n`, where NumPy changes its way."""
    counts = sorted({max(n // part + more, 1) for more in (-1, 0, 1)} - {n + 1})
    return numpy.concatenate([r.choice(n, count, replace=False, shuffle=shuffle) for count in counts])


ORDERS: dict[str, Any] = {
    "range": lambda r, x: r.permutation(x.size),
    "line": lambda r, x: r.permutation(x),
    "rows": lambda r, x: r.permutation(x.reshape(-1, 3)),
    "numbers": lambda r, x: r.permutation((x * 1000).astype(numpy.int16)),
    "shuffled": lambda r, x: _shuffled(r, x * 1),
    "rows shuffled": lambda r, x: _shuffled(r, x.reshape(-1, 3) * 1),
    "bytes shuffled": lambda r, x: _shuffled(r, (x * 100).astype(numpy.int8)),
    "chosen": lambda r, x: r.choice(x, 1000, replace=False),
    "places chosen": lambda r, x: r.choice(x.size, (7, 11), replace=False),
    "most chosen": lambda r, x: r.choice(x, x.size - 5, replace=False),
}
CHOICES = [
    (n, k, s) for n in (30_000, 10_001, 10_000) for k in (1, 2, 20, 21, 50, 51, n) for s in (True, False)
]
COLUMNS: dict[str, Any] = {
    **{f"{k} parts of {n} chosen, {s}": partial(_chosen, n, k, s) for n, k, s in CHOICES},
    "parts of columns chosen": lambda r, x: r.choice(x.reshape(2, -1), 9000, replace=False, axis=1),
    "permuted": lambda r, x: r.permuted(x.reshape(10, -1)),
    "rows permuted": lambda r, x: r.permuted(x.reshape(10, -1), axis=1),
    "columns permuted": lambda r, x: r.permuted(x.reshape(10, -1), axis=0),
    "permuted in between": lambda r, x: r.permuted((x * 100).astype(numpy.int16).reshape(5, -1, 4), axis=-2),
    "permuted into": lambda r, x: r.permuted(x.reshape(10, -1), axis=1, out=x.reshape(10, -1) * 0),
    "columns": lambda r, x: r.permutation(x.reshape(3, -1), axis=1),
    "columns shuffled": lambda r, x: _shuffled(r, x.reshape(3, -1) * 1, axis=1),
}


def _shuffled(r: Any, x: Any, **axis: Any) -> Any:
    r.shuffle(x, **axis)
    return x


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, kind) for name in ORDERS for kind in ("default_rng", "RandomState"))]
    + [(name, "default_rng") for name in COLUMNS],
)
def test_long_orders_are_numpys(name: str, kind: str) -> None:
    """In the order, and in what is drawn after it."""
    value = numpy.sin(numpy.arange(30_000))
    call = ORDERS.get(name) or COLUMNS[name]
    ours, theirs = (getattr(m.random, kind)(5) for m in (np, numpy))
    found, wanted = call(ours, np.array(value)), call(theirs, value)
    assert found.dtype == wanted.dtype
    numpy.testing.assert_array_equal(found, wanted)
    numpy.testing.assert_array_equal(ours.normal(size=3), theirs.normal(size=3))
