"""Products, creation, random numbers, files, sparse arrays and the public operators, against NumPy."""

from __future__ import annotations

import pickle
import warnings

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import recfunctions
from scipy import sparse

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.errors import ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::spartan_ng.api.core.dispatch.FallbackWarning")


def same(got, wanted):
    assert got.shape == numpy.shape(wanted)
    assert got.dtype == numpy.asarray(wanted).dtype
    numpy.testing.assert_allclose(got.compute(), wanted, rtol=1e-12)


RNG = numpy.random.default_rng(7)
A, B, V, S = RNG.random((3, 4)), RNG.random((4, 5)), RNG.random(4), RNG.random((2, 3, 4))

PRODUCTS = {
    "matmul": lambda np, a, b, v, s: a @ b,
    "matvec": lambda np, a, b, v, s: a @ v,
    "vecmat": lambda np, a, b, v, s: v @ b,
    "dot vectors": lambda np, a, b, v, s: np.dot(v, v),
    "batch": lambda np, a, b, v, s: s @ b,
    "batch broadcast": lambda np, a, b, v, s: s @ np.swapaxes(s, 1, 2),
    "dot": lambda np, a, b, v, s: np.dot(s, b),
    "inner": lambda np, a, b, v, s: np.inner(a, s),
    "outer": lambda np, a, b, v, s: np.outer(v, a),
    "vdot": lambda np, a, b, v, s: np.vdot(a, a * 2),
    "tensordot": lambda np, a, b, v, s: np.tensordot(s, a, axes=([1, 2], [0, 1])),
    "tensordot 0": lambda np, a, b, v, s: np.tensordot(a, v, axes=0),
    "kron": lambda np, a, b, v, s: np.kron(a, b),
    "cross": lambda np, a, b, v, s: np.cross(a[:, :3], b[:3, :3]),
    "trace": lambda np, a, b, v, s: np.trace(a, 1),
    "norm": lambda np, a, b, v, s: np.linalg.norm(a, axis=1),
    "norm 1": lambda np, a, b, v, s: np.linalg.norm(a, 1),
    "norm inf": lambda np, a, b, v, s: np.linalg.norm(v, np.inf),
    "norm 3": lambda np, a, b, v, s: np.linalg.norm(v, 3),
    "matrix_power": lambda np, a, b, v, s: np.linalg.matrix_power(a[:, :3], 5),
    "multi_dot": lambda np, a, b, v, s: np.linalg.multi_dot([a, b, b.T, v]),
    "solve": lambda np, a, b, v, s: np.linalg.solve(a[:, :3], v[:3]),
    "vecdot": lambda np, a, b, v, s: np.vecdot(a, v),
    "einsum diagonal": lambda np, a, b, v, s: np.einsum("ii->i", a[:, :3]),
    "einsum trace": lambda np, a, b, v, s: np.einsum("ii", a[:, :3]),
    "einsum lists": lambda np, a, b, v, s: np.einsum(a, [0, 1], b, [1, 2], [2, 0]),
    "einsum batch": lambda np, a, b, v, s: np.einsum("bij,bkj->bik", s, s),
}


@pytest.mark.parametrize(
    "text",
    ["ij->ji", "ij->", "ij->j", "ij,jk->ik", "ij,jk", "ij,jk->ijk", "ij,jk->i", "ij,jk,j->k", "ij,jk,j->ik"],
)
def test_einsum(mode, text):
    operands = (A, B, V)[: text.split("->")[0].count(",") + 1]
    same(np.einsum(text, *map(np.array, operands)), numpy.einsum(text, *operands))


@given(st.data())
def test_einsum_with_ellipses(data):
    """The axes of ellipses stand anywhere, and are broadcast; letters are kept or summed over."""
    sizes = {c: data.draw(st.integers(1, 3)) for c in "ijk"}
    wide = data.draw(st.lists(st.integers(1, 3), max_size=2))
    terms, operands = [], []
    for _ in range(data.draw(st.integers(1, 3))):
        letters = data.draw(st.lists(st.sampled_from("ijk"), max_size=2))
        at = data.draw(st.integers(0, len(letters)))
        dots = wide[data.draw(st.integers(0, len(wide))) :]
        dots = [data.draw(st.sampled_from([1, n])) for n in dots]
        terms.append("".join(letters[:at]) + "..." + "".join(letters[at:]))
        shape = [*(sizes[c] for c in letters[:at]), *dots, *(sizes[c] for c in letters[at:])]
        operands.append(numpy.arange(1.0, 1 + numpy.prod(shape, dtype=int)).reshape(shape))
    known = sorted(set("".join(terms)) - {"."})
    kept = data.draw(st.permutations([c for c in known if data.draw(st.booleans())]))
    text = ",".join(terms) + data.draw(st.sampled_from(["", "->..." + "".join(kept)]))
    wanted = numpy.einsum(text, *operands)
    for small_bytes in (0, 1 << 20):
        with np.config.override(small_bytes=small_bytes):
            same(np.einsum(text, *map(np.array, operands)), wanted)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(mode, name):
    same(PRODUCTS[name](np, *map(np.array, (A, B, V, S))), PRODUCTS[name](numpy, A, B, V, S))


def test_product_errors(mode):
    with pytest.raises(ShapeError, match=r"shapes \(3, 4\) and \(3, 4\)"):
        np.array(A) @ np.array(A)
    with pytest.raises(ValueError, match="no axes"):
        np.array(A) @ 2
    with pytest.raises(ValueError, match="einsum"):
        np.einsum("ij,jk->ik", np.array(A), np.array(A))


CREATION = {
    "zeros": lambda np: np.zeros((2, 3), "f4"),
    "ones": lambda np: np.ones(3, int),
    "full": lambda np: np.full((2, 2), 7),
    "full nan": lambda np: np.full(2, np.nan),
    "like": lambda np: np.full_like(np.ones((2, 2), int), 3),
    "arange": lambda np: np.arange(10),
    "arange step": lambda np: np.arange(0, 1, 0.1),
    "arange back": lambda np: np.arange(10, -5, -3),
    "arange f4": lambda np: np.arange(5, dtype="f4"),
    "arange none": lambda np: np.arange(3, 3),
    "linspace": lambda np: np.linspace(0, 1, 13),
    "linspace open": lambda np: np.linspace(2, -1, 7, endpoint=False),
    "linspace int": lambda np: np.linspace(0, 10, 4, dtype=int),
    "logspace": lambda np: np.logspace(0, 2, 5),
    "eye": lambda np: np.eye(3, 4, 1),
    "identity": lambda np: np.identity(3),
    "tri": lambda np: np.tri(3, 4, -1),
    "meshgrid": lambda np: np.meshgrid(np.arange(3), np.arange(4))[0],
    "meshgrid ij": lambda np: np.meshgrid(np.arange(3), np.arange(4), indexing="ij")[1],
    "indices": lambda np: np.indices((2, 3)),
    "fromfunction": lambda np: np.fromfunction(lambda i, j: i * 10 + j, (3, 4)),
    "vander": lambda np: np.vander(np.arange(1, 4), 3),
    "diag": lambda np: np.diag(np.arange(1, 4), 1),
    "ndmin": lambda np: np.array([1, 2], ndmin=3),
    "mgrid": lambda np: np.mgrid[0:2, 0:3],
    "r_": lambda np: np.r_[1:3, 7],
    "array of arrays": lambda np: np.array([np.ones(2), np.zeros(2)]),
    "array of mixed": lambda np: np.array([[np.ones(2).sum(), 1.0]]),
}


@pytest.mark.parametrize("name", CREATION)
def test_creation(mode, name):
    got, wanted = CREATION[name](np), CREATION[name](numpy)
    same(got, wanted)
    numpy.testing.assert_array_equal(got.compute(), wanted)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: g.random((3, 5)),
        lambda g: g.uniform(-2, 3, 7),
        lambda g: g.standard_normal(4),
        lambda g: g.integers(0, 100, 9),
        lambda g: g.integers(5, size=3, dtype="u1"),
        lambda g: g.normal(1, 2, (2, 2)),
        lambda g: g.exponential(2.0, 3),
        lambda g: g.poisson(4, 5),
        lambda g: g.choice(10, 4, replace=False),
        lambda g: g.permutation(6),
        lambda g: g.random(3, dtype="f4"),
        lambda g: g.beta(1, 2, 3),
    ],
)
def test_seeded_numbers_are_numpys_whatever_came_before(mode, draw):
    ours, theirs = np.random.default_rng(5), numpy.random.default_rng(5)
    for before in (
        lambda g: g.random(3),
        lambda g: g.integers(0, 9, 3, dtype="u1"),
        lambda g: g.random((2, 4)),
    ):
        numpy.testing.assert_array_equal(before(ours).compute(), before(theirs))
    for _ in range(2):
        got, wanted = draw(ours), draw(theirs)
        assert got.dtype == wanted.dtype
        numpy.testing.assert_array_equal(got.compute(), wanted)


def test_shuffles_are_numpys(mode):
    for shape in [(7,), (5, 3)]:
        x = numpy.arange(numpy.prod(shape)).reshape(shape)
        a = np.array(x) + 0
        np.random.default_rng(1).shuffle(a)
        numpy.random.default_rng(1).shuffle(x)
        numpy.testing.assert_array_equal(a.compute(), x)


def test_unseeded_numbers(mode):
    g = np.random.default_rng()
    x = g.random((300, 700))
    assert float(abs((x - x).max())) == 0
    assert 0.49 < float(x.mean()) < 0.51
    assert not np.array_equal(g.random(10), g.random(10))
    y = g.normal(5, 2, 200_000)
    assert abs(float(y.mean()) - 5) < 0.05
    assert abs(float(y.std()) - 2) < 0.05


def test_legacy_numbers_after_a_seed(mode):
    np.random.seed(3)
    state = numpy.random.RandomState(3)
    numpy.testing.assert_array_equal(np.random.rand(2, 3).compute(), state.rand(2, 3))
    numpy.testing.assert_array_equal(np.random.randn(4).compute(), state.randn(4))
    numpy.testing.assert_array_equal(np.random.randint(0, 9, 5).compute(), state.randint(0, 9, 5))
    numpy.testing.assert_array_equal(np.random.permutation(5).compute(), state.permutation(5))


def test_files(mode, tmp_path):
    a = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "a.npy", a + 1)
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "a.npy"), numpy.arange(1, 7.0).reshape(2, 3))
    assert np.load(str(tmp_path / "a.npy")).tolist() == (a + 1).tolist()
    np.savez(tmp_path / "b.npz", a, second=a * 2)
    with np.load(tmp_path / "b.npz") as found:
        assert found["arr_0"].tolist() == a.tolist()
        assert found["second"].tolist() == (a * 2).tolist()
    np.mmwrite(tmp_path / "c.mtx", a)
    assert np.mmread(tmp_path / "c.mtx").tolist() == a.tolist()
    np.mmwrite(tmp_path / "d.mtx", np.asarray(sparse.eye_array(3)))
    back = np.mmread(tmp_path / "d.mtx")
    assert back.format == "csr"
    assert back.tolist() == numpy.eye(3).tolist()


def test_sparse_arrays(mode):
    matrix = sparse.random_array((20, 30), density=0.1, rng=numpy.random.default_rng(0)).tocsr()
    dense = matrix.toarray()
    x = np.asarray(matrix)
    assert (x.format, x.shape, x.nnz) == ("csr", (20, 30), matrix.nnz)
    w = RNG.random((30, 4))
    for got, wanted in [
        (x @ np.array(w), dense @ w),
        (np.array(w.T) @ x.T, w.T @ dense.T),
        (x.sum(), dense.sum()),
        (x.sum(axis=0), dense.sum(0)),
        (x * 2, dense * 2),
        (x + x, dense * 2),
        (x * dense, dense * dense),
        (x[3:9], dense[3:9]),
        (x + 1, dense + 1),
        (np.sqrt(x), numpy.sqrt(dense)),
        (x.max(), dense.max()),
    ]:
        value = got.compute()
        value = value.toarray() if sparse.issparse(value) else value
        numpy.testing.assert_allclose(value, wanted, atol=1e-12)
    assert (x * 2).format == "csr"
    assert sparse.issparse((x * 2).tocsr())
    numpy.testing.assert_array_equal(x.toarray(), dense)
    numpy.testing.assert_array_equal(x.todense(), dense)


def test_map(mode):
    a = np.arange(12.0).reshape(3, 4)
    got = np.map(lambda x, y: x * 2 + y, a, np.arange(4.0))
    numpy.testing.assert_array_equal(got.compute(), numpy.arange(12.0).reshape(3, 4) * 2 + numpy.arange(4.0))

    def place(x, extent):
        (top, _), (left, _) = extent
        rows = numpy.arange(top, top + x.shape[0])[:, None]
        return rows * 100.0 + numpy.arange(left, left + x.shape[1])

    numpy.testing.assert_array_equal(
        np.map(place, a, extent=True).compute(), numpy.arange(3)[:, None] * 100.0 + numpy.arange(4)
    )
    assert np.map(lambda x: x > 3, a).dtype == bool


def test_filter_fold_and_scan(mode):
    a = np.arange(12.0).reshape(3, 4)
    x = numpy.arange(12.0).reshape(3, 4)
    assert float(np.filter(lambda t: t > 5, a).sum()) == x[x > 5].sum()
    assert np.filter(a > 5, a).tolist() == x[x > 5].tolist()
    numpy.testing.assert_array_equal(np.fold(numpy.maximum, a, 0).compute(), x.max(0))
    numpy.testing.assert_array_equal(np.fold(lambda p, q: p + q, a, 1).compute(), x.sum(1))
    assert float(np.fold(lambda p, q: p + q, a)) == x.sum()
    numpy.testing.assert_array_equal(np.scan(np.add, a, 1).compute(), x.cumsum(1))
    numpy.testing.assert_array_equal(np.scan(lambda p, q: p + q, a, 0).compute(), x.cumsum(0))
    with pytest.raises(ValueError, match="does not cover"):
        np.filter(a[:2] > 1, a)


def test_join_update_as_in_the_paper(mode):
    def dot_udf(extents, tiles):
        return (0, 0), numpy.dot(*tiles)

    got = np.join_update(dot_udf, np.add, (np.array(A), np.array(B)), (1, 0), (3, 5))
    numpy.testing.assert_allclose(got.compute(), A @ B)

    def rows(extents, tiles):
        yield (extents[0][0][0], 0), tiles[0] @ tiles[1]

    got = np.join_update(rows, np.add, (np.array(A), np.array(B)), (0, -1), (3, 5))
    numpy.testing.assert_allclose(got.compute(), A @ B)
    with pytest.raises(ValueError, match="different lengths"):
        np.join_update(rows, np.add, (np.array(A), np.array(B)), (0, 0), (3, 5))


def test_the_shortcut_is_a_shortcut():
    a, b = np.ones(1000), np.ones(1000)
    assert a._cell.value is not None
    assert (a + b)._cell.value is not None
    with config.override(small_bytes=100):
        assert (a + b)._cell.value is None


class Trap:
    """Fails when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("it was unpickled",))


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_load_unpickles_nothing_unless_asked(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    trap = numpy.empty(1, object)
    trap[0] = Trap()
    (numpy.save if suffix == "npy" else numpy.savez)(path, trap)
    for name in (path, str(path)):
        with pytest.raises(ValueError, match="allow_pickle"):
            np.load(name)["arr_0"]
    pickled = tmp_path / f"b.{suffix}"
    pickled.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(ValueError, match="pickle"):
        np.load(pickled)


def test_names_that_there_are_not_are_said_to_be_none_of_ours():
    with pytest.raises(AttributeError, match="module 'spartan_ng' has no attribute 'lnspace'") as error:
        getattr(np, "lnspace")  # noqa: B009 - it is asked for as any text would be
    assert (error.value.name, error.value.obj) == ("lnspace", np)  # of which Python makes "Did you mean"


@pytest.mark.parametrize("name", [*numpy.__expired_attributes__, *numpy.__former_attrs__, "float_s"])
def test_of_names_that_numpy_had_we_say_what_it_says(name):
    def said(module):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with pytest.raises(AttributeError) as error:
                getattr(module, name)
        message = str(error.value).replace(f"module '{module.__name__}'", "module")
        return message, [(str(w.message), w.category, w.filename) for w in warned]

    assert said(np) == said(numpy)


def test_one_record_array_stands_for_a_list_of_arrays():
    value = numpy.array([(1, (2, 3.0)), (4, (5, 6.0))], [("a", int), ("b", [("c", int), ("d", float)])])
    ours = np.lib.recfunctions
    for name in ("merge_arrays", "stack_arrays"):
        for flat in (value, value["b"], value["a"]):
            expected = getattr(recfunctions, name)(flat)
            found = getattr(ours, name)(np.array(flat))
            assert found.dtype == expected.dtype
            assert numpy.asarray(found).tolist() == expected.tolist()
    flat = ours.merge_arrays(np.array(value), flatten=True)
    assert flat.dtype.names == ("a", "c", "d")


def test_who_takes_numpys_trace_for_a_recording_is_told_of_ours(tmp_path):
    for name in ("run.json", tmp_path / "run.json"):
        with pytest.raises(ValueError, match=r"np.tracing\(.*run.json'\)* records"):
            np.trace(name)
