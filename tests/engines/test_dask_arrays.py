"""Our arrays as dask's and in its tasks, and its arrays as ours."""

from __future__ import annotations

import numpy
import pytest
from scipy import sparse

import spartan_ng as np
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.errors import ConnectionFailed
from tests.engines.inline import InlineEngine
from tests.test_programs import running_on

rng = numpy.random.default_rng(0)

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
dask_array = pytest.importorskip("dask.array")
dask_engine = pytest.importorskip("spartan_ng.backends.engines.kinds.dask")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["submit", "map", "delayed"])
def test_arrays_are_arguments_of_dasks_own_tasks(on_dask, kind):
    """Those that are there; what waits would be computed in locks that dask's loop waits for."""
    a = numpy.arange(6000.0).reshape(60, 100)
    there, waits = (np.array(a) * 2).persist(), np.array(a) * 2
    given = {
        "submit": lambda x: on_dask.submit(_total, x).result(),
        "map": lambda x: on_dask.gather(on_dask.map(_total, [x]))[0],
        "delayed": lambda x: on_dask.compute(dask.delayed(_total)(x), sync=True),
    }[kind]
    assert given(there) == given(a * 2) == (a * 2).sum()
    with pytest.raises(TypeError, match="serialize") as raised:
        given(waits)
    # of a delayed object dask says what went wrong when it had tried again otherwise
    assert "persist()" in _causes(raised.value) or kind == "delayed"
    assert given(waits.persist()) == (a * 2).sum()


def _total(x):
    return float(numpy.asarray(x).sum())


def _causes(error):
    """What an error, and those that it comes of, say."""
    return "" if error is None else f"{error} {_causes(error.__cause__)}"


def test_dask_knows_arrays_by_their_elements_and_others_by_a_name(on_dask):
    from dask.tokenize import tokenize

    a = numpy.arange(60.0)
    here = np.array(a)
    assert tokenize(here) == tokenize(here) == tokenize(np.array(a))
    here[3] = 7
    assert tokenize(here) != tokenize(np.array(a))
    lazy = np.arange(1e6) * 2
    assert tokenize(lazy) != tokenize(lazy + 1)
    assert lazy._peek() is None


@pytest.mark.parametrize("kind", ["csr", "compressed"])
def test_what_is_not_dense_here_is_to_dask(on_dask, kind):
    x = numpy.random.default_rng(0).integers(0, 5, (600, 50)).astype(float)
    ours = np.compress_columns(x, always=True) if kind == "compressed" else np.asarray(sparse.csr_array(x))
    there = ours.to_dask()  # type: ignore[attr-defined]
    for chunks, expected in ((there, x), (there.sum(axis=0), x.sum(axis=0)), (there.T @ there, x.T @ x)):
        found = on_dask.compute(chunks, sync=True)
        assert isinstance(found, numpy.ndarray)
        numpy.testing.assert_allclose(found, expected)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (60, 7), (2, 50), (4, 5, 6)])
def test_arrays_pass_to_dask_and_back(on_dask, shape):
    x = numpy.arange(float(numpy.prod(shape))).reshape(shape)
    there = dask_array.from_array(x, chunks=3 if shape else -1)
    ours = np.from_dask(there + 1)
    numpy.testing.assert_array_equal(ours, x + 1)
    back = (ours * 2).to_dask()  # type: ignore[attr-defined]
    assert isinstance(back, dask_array.Array)
    assert back.shape == x.shape
    numpy.testing.assert_array_equal(on_dask.compute(back - 1, sync=True), (x + 1) * 2 - 1)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(600, 5), (2, 40), (1,), (0, 3), ()])
def test_what_lies_outside_passes_to_dask_as_it_is(on_dask, shape, tmp_path):
    """Neither the program nor the cluster has read it."""
    zarr = pytest.importorskip("zarr")
    a = rng.random(shape)
    zarr.create_array(tmp_path / "a.zarr", shape=shape, dtype=a.dtype)[...] = a
    x = np.from_zarr(tmp_path / "a.zarr")
    for found in (np.to_dask(x), np.to_dask(x * 1)):
        assert found.shape == shape
        numpy.testing.assert_array_equal(on_dask.compute(found + 1, sync=True), a + 1)
    numpy.testing.assert_array_equal(x, a)


def test_what_lies_on_another_cluster_passes_to_dask(on_dask):
    a = rng.random((600, 50))
    with running_on(EngineBackend(InlineEngine(2))):
        y = (np.array(a) * 2).persist()
        with running_on(EngineBackend(dask_engine.over(on_dask))):
            numpy.testing.assert_array_equal(on_dask.compute(np.to_dask(y), sync=True), a * 2)
            numpy.testing.assert_array_equal(y, a * 2)


def test_chunks_of_unknown_size_are_counted(on_dask):
    x = numpy.arange(50.0)
    there = dask_array.from_array(x, chunks=7)
    numpy.testing.assert_array_equal(np.from_dask(there[there > 20]), x[x > 20])


@pytest.mark.slow
def test_what_is_masked_is_refused_and_not_taken_for_data(on_dask):
    masked = dask_array.ma.masked_greater(dask_array.arange(20.0, chunks=6), 5)
    with pytest.raises(TypeError, match="masked"):
        np.from_dask(masked)
    numpy.testing.assert_array_equal(
        np.from_dask(dask_array.ma.filled(masked, -1)), [*range(6), *(14 * [-1])]
    )
    hidden = dask_array.arange(20.0, chunks=6).map_blocks(numpy.ma.masked_less, 5, meta=numpy.empty(0))
    with pytest.raises(Exception, match="masked"):
        np.from_dask(hidden).compute()


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix"])
def test_sparse_chunks_become_dense(on_dask, form):
    sparse = pytest.importorskip("scipy.sparse")
    x = rng.integers(0, 3, (30, 8)).astype(float)
    there = dask_array.from_array(x, chunks=(7, 8)).map_blocks(getattr(sparse, form))
    numpy.testing.assert_array_equal(np.from_dask(there) + 1, x + 1)


KINDS = ["f4", "i2", "u8", "?", "c8", "f2", "S3", "U4", "M8[ns]", "m8[s]", "i4,f8"]


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", range(40))
def test_arrays_pass_however_they_are_cut(on_dask, seed):
    random = numpy.random.default_rng(seed)
    shape = tuple(random.integers(0, 9, random.integers(1, 4)).tolist())
    x = random.integers(0, 50, shape).astype(random.choice(KINDS[:-1]))
    x = numpy.zeros(shape, KINDS[-1]) if seed % 11 == 0 else x
    cuts = [numpy.sort(random.integers(0, n + 1, 2)) for n in shape]
    chunks = tuple((int(a), int(b - a), int(n - b)) for n, (a, b) in zip(shape, cuts, strict=True))
    found = np.from_dask(dask_array.from_array(x, chunks=chunks))
    assert found.dtype == x.dtype
    numpy.testing.assert_array_equal(found, x)
    numpy.testing.assert_array_equal(on_dask.compute(np.to_dask(found), sync=True), x)


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("kind", [">i4", ">f2", ">f8", ">c16", ">M8[s]", ">m8[ms]", ">U3", ">i4,<f8"])
@pytest.mark.parametrize("shape", [(1,), (3000,), (60, 7), (90, 2000)])
def test_the_order_of_bytes_is_the_programs(on_dask, kind, shape):
    """In what comes to the program, and in what dask makes of it."""
    x = (numpy.arange(numpy.prod(shape, dtype=int)) % 900).reshape(shape).astype(kind)
    made = [
        np.array(x).persist(),
        np.map(numpy.copy, np.array(x), dtype=kind).persist(),
        np.array(x.astype(x.dtype.newbyteorder("="))).astype(kind),
        np.from_dask(dask_array.from_array(x)),
    ]
    for ours in made:
        there = ours.to_dask()  # type: ignore[attr-defined]
        assert there.dtype == ours.dtype == x.dtype
        for found in (numpy.asarray(ours), on_dask.compute(there, sync=True)):
            assert found.dtype == x.dtype
            assert found.tobytes() == x.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("other", [numpy.arange(3), 5, [1], None])
def test_what_is_no_array_of_dasks_is_refused(on_dask, other):
    with pytest.raises(TypeError, match=rf"takes a dask\.array\.Array, not {type(other).__name__}"):
        np.from_dask(other)


@pytest.mark.slow
def test_dasks_arrays_need_dasks_cluster():
    with pytest.raises(ConnectionFailed, match=r"np\.connect\(client\)"):
        np.from_dask(dask_array.ones(3))
    with pytest.raises(ConnectionFailed, match=r"np\.connect\(client\)"):
        np.to_dask(np.ones(3))
