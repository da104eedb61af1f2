"""Seeded numbers that memory has no room for are NumPy's, however many are drawn at a time."""

from __future__ import annotations

import copy
import pickle
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import scratch
from spartan_ng.api.drawing import streams
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import OutOfResources
from spartan_ng.ops import walks
from tests.put_aside import put_aside
from tests.test_programs import running_on

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
    monkeypatch.setattr(walks, "PIECE", 1013)
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


def test_long_streams_are_stored_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Because they are folded, masked, or read in part; what is written to is an array of its own."""
    x = np.random.default_rng(0).normal(size=SHAPE)
    wanted = numpy.random.default_rng(0).normal(size=SHAPE)
    monkeypatch.setattr(scratch, "nameless", lambda: pytest.fail("a file was made"))
    for fold in (
        lambda a: a.mean(),
        lambda a: a.std(axis=0),
        lambda a: (a * 2 + 1).max(axis=1),
        lambda a: a[a > 1].sum(),
        lambda a: (a > 0.5).mean(axis=0),
        lambda a: a[3:30:4].sum(axis=1),
        lambda a: a.reshape(-1, 7).mean(axis=0),
    ):
        numpy.testing.assert_allclose(fold(x), fold(wanted), rtol=1e-12)
    monkeypatch.undo()
    x[0, 0] = 5
    assert x[0, 0] == 5
    assert x.sum() != np.random.default_rng(0).normal(size=SHAPE).sum()


PASSES: dict[str, Any] = {
    "centred": lambda m, x: ((x - x.mean()) ** 2).sum(),
    "centred columns": lambda m, x: abs(x - x.mean(axis=0)).max(axis=0),
    "deviations of columns": lambda m, x: x.reshape(60, -1).std(axis=0),
    "deviations of rows": lambda m, x: x.var(axis=1),
    "products": lambda m, x: x @ x.T[:, :9],
    "vectors": lambda m, x: x.T @ m.arange(600.0),
    "turned": lambda m, x: (x.T * 2).max(axis=1),
    "bounds": lambda m, x: m.histogram_bin_edges(x, 5),
    "histogram": lambda m, x: m.histogram(x, bins=7)[0],
    "differences": lambda m, x: m.diff(x, axis=0).sum(axis=1),
    "squares": lambda m, x: x.reshape(-1, 10).T @ x.reshape(-1, 10) if x.dtype.kind == "f" else x.sum(),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["normal", "random", "narrow"])
@pytest.mark.parametrize("name", PASSES)
def test_passes_over_what_is_drawn_store_none_of_it(name: str, kind: str, workers: int) -> None:
    """As of a file; what was folded twice, multiplied or turned lay on disk."""
    ours, theirs = np.random.default_rng(5), numpy.random.default_rng(5)
    draw = {
        "normal": lambda g: g.normal(size=(600, 1001)),
        "random": lambda g: g.random((600, 1001)),
        "narrow": lambda g: g.integers(0, 200, (600, 1001), "u1"),
    }[kind]
    profile = Profile(memory_bytes=1 << 20, limited=True)
    with (
        running_on(SimulatedBackend(workers, profile)) if workers else nullcontext(),
        config.override(memory_bytes=1 << 20),
        put_aside() as aside,
    ):
        x, y = draw(ours), draw(theirs)
        found, wanted = PASSES[name](np, x), PASSES[name](numpy, y)
        numpy.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)
        numpy.testing.assert_array_equal(ours.normal(size=3), theirs.normal(size=3))
    assert sum(aside) < y.nbytes // 2, aside


def test_a_column_takes_no_walk_through_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    draw = walks._Cursor.draw

    def counted(self: Any, n: int) -> Any:
        counts.append(n)
        return draw(self, n)

    monkeypatch.setattr(walks._Cursor, "draw", counted)
    wanted = numpy.random.default_rng(5).normal(size=SHAPE[::-1])
    x = np.random.default_rng(5).normal(size=SHAPE[::-1])
    numpy.testing.assert_allclose(np.median(x, axis=0), numpy.median(wanted, axis=0))
    assert sum(counts) <= 3 * wanted.size


def test_each_number_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the way to all of them, and a part takes no more than the way to its end; what is asked for again
    begins near it."""
    counts: list[int] = []
    draw = walks._Cursor.draw

    def counted(self: Any, n: int) -> Any:
        counts.append(n)
        return draw(self, n)

    monkeypatch.setattr(walks._Cursor, "draw", counted)
    monkeypatch.setattr(walks, "PIECE", 1 << 10)
    n = SHAPE[0] * SHAPE[1]
    g = np.random.default_rng(11)
    x = g.normal(size=SHAPE)
    assert sum(counts) == 0
    float(x[:5].sum())
    assert sum(counts) <= 6 * SHAPE[1]
    float(x.mean())
    assert sum(counts) <= 1.5 * n
    before = sum(counts)
    g.normal()  # somebody has been at the end
    float(x[30, 7])
    assert sum(counts) - before <= 4 << 10


OTHERS: dict[str, Any] = {
    "default_rng": lambda m: m.default_rng(3),
    "spawned": lambda m: m.default_rng(3).spawn(2)[1],
    "shared": lambda m: m.default_rng(m.default_rng(3)),
    "of legacy": lambda m: m.default_rng(m.RandomState(3)),
    **{
        f"{kind} {bits}": lambda m, kind=kind, bits=bits: getattr(m, kind)(getattr(m, bits)(3))
        for kind in ("Generator", "RandomState")
        for bits in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
    },
}
BETWEEN: dict[str, Any] = {
    "number": lambda g: g.normal(),
    "few": lambda g: g.standard_normal(3),
    "many": lambda g: g.uniform(size=SHAPE).sum(),
    "bytes": lambda g: list(g.bytes(5)),
    "pickled": lambda g: pickle.loads(pickle.dumps(g)).normal(size=3),
    "copied": lambda g: copy.deepcopy(g).normal(size=3),
    "shuffled": lambda g: g.permutation(5),
    "bits": lambda g: g._bit_generator.random_raw(),
    "again": lambda g: g.poisson(3, SHAPE).sum() + g.normal(size=SHAPE).max(),
    "chosen": lambda g: g.choice(7, SHAPE).sum(),
    "chosen by weights": lambda g: g.choice(3, SHAPE, p=[0.1, 0.3, 0.6]).sum(),
    "of an array": lambda g: g.choice(numpy.arange(5) ** 2, SHAPE).sum(),
}


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("kind", OTHERS)
def test_a_generator_goes_on_behind_what_nobody_has_drawn(kind: str, is_read: bool) -> None:
    for name, call in BETWEEN.items():
        ours, theirs = OTHERS[kind](np.random), OTHERS[kind](numpy.random)
        x, y = ours.gamma(2, size=SHAPE), theirs.gamma(2, size=SHAPE)
        if is_read:
            numpy.testing.assert_allclose(x.sum(axis=0), y.sum(axis=0))
        numpy.testing.assert_allclose(call(ours), call(theirs), err_msg=name, rtol=1e-12)
        numpy.testing.assert_array_equal(ours.normal(size=3), theirs.normal(size=3), err_msg=name)
        numpy.testing.assert_array_equal(x, y)


def test_who_else_draws_from_the_bits_goes_on_behind_them() -> None:
    ours, theirs = (m.PCG64(5) for m in (np.random, numpy.random))
    x, y = np.random.Generator(ours).normal(size=SHAPE), numpy.random.Generator(theirs).normal(size=SHAPE)
    assert ours.random_raw() == theirs.random_raw()
    numpy.testing.assert_array_equal(x, y)
    numpy.random.seed(4)
    y, last = numpy.random.normal(size=SHAPE), numpy.random.normal()
    np.random.seed(4)
    x = np.random.normal(size=SHAPE)
    assert numpy.random.normal() == last  # NumPy's own functions have that state, too
    numpy.testing.assert_array_equal(x, y)


def test_what_begins_anew_walks_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.RandomState(3)
    state = r.get_state()
    monkeypatch.setattr(walks.Passage, "end", lambda *args: pytest.fail("it walked"))
    r.normal(size=SHAPE)
    r.seed(4)
    r.normal(size=SHAPE)
    r.set_state(state)
    assert r.normal() == numpy.random.RandomState(3).normal()


@pytest.mark.parametrize("name", ["normal", "poisson", "integers"])
def test_parameters_of_arrays(name: str) -> None:
    """Each row of numbers has them."""
    args = {
        "normal": (numpy.arange(1001.0), 2),
        "poisson": (numpy.arange(1001) % 7,),
        "integers": (0, [5] * 1001),
    }
    ours, theirs = np.random.default_rng(3), numpy.random.default_rng(3)
    numpy.testing.assert_array_equal(
        getattr(ours, name)(*args[name], size=SHAPE), getattr(theirs, name)(*args[name], size=SHAPE)
    )
    assert ours.normal() == theirs.normal()
    with pytest.raises(ValueError, match="broadcast"):
        ours.normal(numpy.arange(7.0), size=SHAPE)


ROWS: dict[str, Any] = {
    "multinomial": lambda g, size: g.multinomial(20, [0.2, 0.3, 0.5], size),
    "dirichlet": lambda g, size: g.dirichlet([0.5, 2, 3], size),
    "hypergeometric": lambda g, size: g.multivariate_hypergeometric([30, 40, 50], 40, size),
}


@pytest.mark.parametrize("kind", ["default_rng", "RandomState"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_drawn_as_one_are_drawn_where_they_are_worked_on(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = (getattr(m.random, kind)(5) for m in (np, numpy))
    if name == "hypergeometric" and kind == "RandomState":
        pytest.skip("it has none")
    monkeypatch.setattr(scratch, "nameless", lambda: pytest.fail("a file was made"))
    for size in (9001, (37, 401), (1001, 5, 3)):
        found, wanted = (ROWS[name](g, size) for g in (ours, theirs))
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        numpy.testing.assert_allclose(found.mean(axis=0), wanted.mean(axis=0), rtol=1e-12)
        numpy.testing.assert_allclose(found[..., 1].sum(), wanted[..., 1].sum(), rtol=1e-12)
        numpy.testing.assert_array_equal(ours.normal(size=3), theirs.normal(size=3))
    monkeypatch.undo()
    numpy.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="negative"):
        ROWS["dirichlet"](ours, (-1, 9001))
    ours.dirichlet([1.0, 2.0], 10**12)


def test_what_has_no_room_at_all_says_so() -> None:
    for g in (np.random.default_rng(0), np.random.RandomState(0)):
        with pytest.raises(OutOfResources, match="in one go"):
            g.normal(numpy.ones(10**6), size=(10**6, 10**6))


def test_a_disk_that_takes_nothing_is_told(tmp_path: Any) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    x = np.random.default_rng(0).normal(size=SHAPE)
    with config.override(disk_folder=str(folder)):
        folder.rmdir()
        with pytest.raises(OSError, match="gone"):
            x.persist()
        assert float(x.mean()) == pytest.approx(numpy.random.default_rng(0).normal(size=SHAPE).mean())


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shape", [(37037,), SHAPE, (7, 11, 481), (37037, 1), (4630, 8)])
def test_workers_walk_to_their_parts(shape: tuple[int, ...], workers: int) -> None:
    """Along any axis, in any order."""
    wanted = numpy.random.default_rng(2).exponential(size=shape)
    with running_on(SimulatedBackend(workers)):
        x = np.random.default_rng(2).exponential(size=shape)
        for axis in (None, *range(len(shape))):
            numpy.testing.assert_allclose(x.sum(axis=axis), wanted.sum(axis=axis), rtol=1e-12)
            numpy.testing.assert_array_equal(x.argmax(axis=axis), wanted.argmax(axis=axis))
            numpy.testing.assert_allclose(x.var(axis=axis), wanted.var(axis=axis), rtol=1e-9, atol=1e-12)
        numpy.testing.assert_allclose(np.cumsum(x, axis=0), numpy.cumsum(wanted, axis=0), rtol=1e-12)
        numpy.testing.assert_array_equal(x.T * 2, wanted.T * 2)
        numpy.testing.assert_array_equal(x[::-3], wanted[::-3])
        y = np.random.default_rng(2).exponential(size=shape) * np.random.default_rng(7).poisson(3, shape)
        numpy.testing.assert_array_equal(y, wanted * numpy.random.default_rng(7).poisson(3, shape))


def test_seconds_are_those_of_one_generator() -> None:
    """However many threads and workers there are."""
    for workers in (1, 4):
        with running_on(SimulatedBackend(workers)):
            found = np.explain(np.random.default_rng(0).normal(size=(10**6, 10**6)).mean())
            assert found.predicted_seconds >= 10**12 * 1e-8


@pytest.mark.parametrize("suffix", ["npy", "zarr"])
def test_they_are_written_as_they_are_drawn(suffix: str, tmp_path: Any) -> None:
    x = np.random.default_rng(2).normal(size=SHAPE)
    file = tmp_path / f"x.{suffix}"
    np.save(file, x * 2) if suffix == "npy" else np.to_zarr(x * 2, file)
    numpy.testing.assert_array_equal(np.load(file), numpy.random.default_rng(2).normal(size=SHAPE) * 2)


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
