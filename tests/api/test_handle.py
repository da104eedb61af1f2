"""The handle: forcing, copy on write, scalars, printing, protocols."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import warnings
from unittest import mock

import numpy
import pytest
from scipy import sparse

import spartan_ng as np
from spartan_ng.api.core import forcing, handle
from spartan_ng.api.core.dispatch import FallbackWarning
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import evaluation


def test_forcing(mode):
    a = np.arange(6.0).reshape(2, 3)
    assert float(a.sum()) == 15
    assert int(a[1, 2]) == 5
    assert complex(a[0, 1]) == 1
    assert bool(a.any())
    assert [1, 2, 3][np.argmax(np.asarray([0, 5, 1]))] == 2
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert a[1].item(2) == 5
    assert a.item(4) == 4
    assert [row.tolist() for row in a] == a.tolist()
    assert math.isclose(a.mean(), 2.5)
    assert f"{a.sum():.2f}" == "15.00"
    assert len(a) == 2
    assert 4 in a
    with pytest.raises(ValueError, match="ambiguous"):
        bool(a)
    with pytest.raises(TypeError, match="0-dimensional"):
        float(a)
    with pytest.raises(TypeError, match=r"unsized|has no len"):
        len(a.sum())


def test_compute_gives_values_of_the_callers_own(mode):
    a = np.arange(4)
    value = a.compute()
    value[0] = 100
    assert a[0] == 0
    x, y, z = np.compute(a + 1, a.sum(), 3)
    assert isinstance(x, numpy.ndarray)
    assert isinstance(y, numpy.generic)
    assert x.tolist() == [1, 2, 3, 4]
    assert [int(y), z] == [6, 3]
    own = numpy.array(a)
    own[0] = 100
    assert a.tolist() == [0, 1, 2, 3]
    for lent in (numpy.asarray(a), numpy.asarray(a, copy=False)):
        lent[0] += 1
    assert a.tolist() == [2, 1, 2, 3]


def test_a_captured_value_does_not_change_under_the_graph():
    a = np.array(numpy.arange(4.0))
    with config.override(small_bytes=0):
        lazy = a * 2
    a[0] = 50
    a[1:3] += 1
    assert lazy.tolist() == [0, 2, 4, 6]
    assert a.tolist() == [50, 2, 3, 3]


def test_an_uncaptured_value_is_written_in_place():
    a = np.zeros(5)
    memory = a._cell.value
    a[2] = 1
    with config.override(small_bytes=0):
        lazy = a + 1
        del lazy
    gc.collect()
    a[3] = 1
    a += 1
    assert a._cell.value is memory


def test_a_users_numpy_array_is_never_written():
    x = numpy.zeros(3)
    a = np.asarray(x)
    a[0] = 1
    assert x[0] == 0
    assert a[0] == 1


def test_scalars_are_values_not_places(mode):
    total = np.arange(4).sum()
    before = total
    total += 1
    assert [int(before), int(total)] == [6, 7]
    assert hash(before) == hash(6)
    assert {6: "x"}.get(before) == "x"  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="does not support item assignment"):
        total[...] = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(np.arange(2))


def test_printing_is_numpys(mode):
    for x in (
        numpy.arange(6).reshape(2, 3),
        numpy.float64(1.5),
        numpy.zeros((0, 2)),
        numpy.arange(3000.0) / 7,
        numpy.arange(4000).reshape(40, 100),
        numpy.array([True]),
    ):
        a = np.array(x) if isinstance(x, numpy.ndarray) else np.asarray(3.0) / 2
        assert repr(a) == repr(x)
        assert str(a) == str(x)


@pytest.mark.slow
def test_a_large_array_fetches_only_what_it_prints():
    asked: list = []

    def watch(nodes, order):
        refs = real.evaluate(nodes, order)
        asked.extend(r.shape for r in refs)
        return refs

    a = np.arange(10.0**7).reshape(1000, 10000) * 2
    real = evaluation.answer_by(evaluation.Evaluator(watch))
    try:
        text = repr(a)
    finally:
        evaluation.answer_by(real)
    assert text == repr(numpy.arange(10.0**7).reshape(1000, 10000) * 2)
    assert max(numpy.prod(s) for s in asked) <= 49


def test_copies_and_pickles(mode):
    a = np.arange(6.0).reshape(2, 3)[:, ::2]
    for b in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a)), a.copy(), np.array(a)):
        b[0, 0] = 9
        assert a[0, 0] == 0
        assert b.tolist() == [[9, 2], [3, 5]]


def test_a_loop_does_not_repeat_its_past():
    evaluated: list = []

    def count(nodes, order):
        from spartan_ng.graph.node import OPERATORS, topological

        evaluated.append(sum(n.op in OPERATORS for n in topological(nodes)))
        return real.evaluate(nodes, order)

    real = evaluation.answer_by(evaluation.Evaluator(count))
    try:
        with config.override(small_bytes=0):
            x = np.ones(100)
            for _ in range(20):
                x = x * 1.5 - 1
                float(x.sum())
    finally:
        evaluation.answer_by(real)
    assert max(evaluated) <= 8


@pytest.mark.parametrize(
    "nest", [lambda n, a, b: [n, a, b], lambda n, a, b: [[n, a], [b, n]], lambda n, a, b: ((a, n), (a, b))]
)
def test_arrays_among_numbers_are_computed_together(nest, monkeypatch):
    """A list of lazy sums and numbers is one run, and not one for each of them."""
    runs = mock.Mock(wraps=forcing.compute_nodes)
    monkeypatch.setattr(handle, "compute_nodes", runs)
    with np.config.override(small_bytes=0):
        x = np.arange(6.0)
        found = np.array(nest(1.0, x.sum(), (x * 2).sum())).tolist()
    assert found == numpy.array(nest(1.0, 15.0, 30.0)).tolist()
    assert runs.call_count == 1


def test_a_written_cell_does_not_take_back_an_old_value():
    with config.override(small_bytes=0):
        a = np.ones(10)
        b = a.cumsum()
        c = b + 1
        b[0] = 100
        assert float(c.sum()) == 65
        assert float(b.sum()) == 154


@pytest.mark.slow
def test_a_chain_of_many_nodes():
    with config.override(small_bytes=0):
        x = np.zeros(3)
        for _ in range(3000):
            x = x + 1
        assert x.tolist() == [3000, 3000, 3000]


def test_real_and_imag_are_views(mode):
    a = np.array([1 + 2j, 3 - 1j])
    a.real[0] = 5
    a.imag *= 2
    assert a.tolist() == [5 + 4j, 3 - 2j]


def test_attributes(mode):
    a = np.arange(6, dtype="i4").reshape(2, 3)
    assert (a.ndim, a.size, a.itemsize, a.nbytes, a.T.shape, a.mT.shape) == (2, 6, 4, 24, (3, 2), (3, 2))
    assert a.strides == (12, 4)
    assert a.flags.c_contiguous
    assert not a.T.flags.c_contiguous
    a.shape = (3, 2)
    assert a[2].tolist() == [4, 5]
    assert a.flat[3] == 3
    a.flat[::2] = 0
    assert a.tolist() == [[0, 1], [0, 3], [0, 5]]
    with pytest.raises(ShapeError, match=r"cannot reshape array of size 6 \(shape \(3, 2\)\) into shape"):
        a.reshape(4, 2)
    assert isinstance(a, np.ndarray)


def test_fallbacks_warn_once():
    from spartan_ng.api.core import dispatch

    def filled(line, widths, axis, keywords):
        line[: widths[0]] = line[-widths[1] :] = 7

    dispatch._warned.discard("numpy.pad")
    with config.override(small_bytes=0):
        with pytest.warns(FallbackWarning, match="pad is not distributed"):
            found = np.pad(np.arange(3.0), 1, filled)
        assert np.array_equal(np.pad(np.arange(3.0), 1, filled), found)
    assert found.tolist() == [7, 0, 1, 2, 7]


def test_what_this_process_has_is_not_gathered(monkeypatch):
    from spartan_ng.api.core import dispatch

    monkeypatch.setattr(dispatch, "_warned", set())
    with config.override(small_bytes=0), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.apply_along_axis(numpy.cumsum, 0, np.arange(3.0)).tolist() == [0, 1, 3]


def test_what_numpy_does_at_once_is_no_fallback(monkeypatch):
    from spartan_ng.api.core import dispatch

    monkeypatch.setattr(dispatch, "_warned", set())
    words = np.asarray(["a", "bc"])
    with warnings.catch_warnings(), config.override(small_bytes=1000):
        warnings.simplefilter("error")
        assert np.char.upper(words).tolist() == ["A", "BC"]
        assert np.strings.str_len(words).tolist() == [1, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.add(np.ones(3), 1, where=np.ones(3) > 2),
        lambda: np.ones((0, 2)).mean(axis=0),
        lambda: np.var(np.ones((4, 2)), axis=0, ddof=4),
        lambda: np.cov(np.ones((2, 1))),
        lambda: np.polyfit(np.ones(20), np.arange(20.0), 5),
    ],
    ids=["where", "mean", "var", "cov", "polyfit"],
)
def test_warnings_name_the_users_line(call):
    with config.override(small_bytes=0), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    assert __file__ in {w.filename for w in seen}


def test_numpys_arrays_change_no_result(mode):
    """A write to the source after a lazy expression was built, and a write to ours."""
    source = numpy.zeros(4)
    a = np.asarray(source)
    doubled = a * 2
    added = np.ones(4) + source
    source[0] = 9
    assert doubled.tolist() == [0, 0, 0, 0]
    assert added.tolist() == [1, 1, 1, 1]
    a[1] = 7
    assert source.tolist() == [9, 0, 0, 0]


def memory_of(a):
    """The NumPy array in the leaf that stands for an array."""
    leaf = a._node().data
    assert leaf is not None
    return leaf.value


def test_what_nobody_writes_to_is_not_copied():
    with config.override(small_bytes=0):
        source = numpy.zeros(4)
        source.flags.writeable = False
        a = np.asarray(source)
        assert numpy.shares_memory(memory_of(a), source)
        own = np.asarray(numpy.arange(3.0) * 2)
        where = own._cell.value.__array_interface__["data"]
        assert memory_of(own).__array_interface__["data"] == where


@pytest.mark.parametrize("whole", [lambda a: a.view(), lambda a: a[...], lambda a: a[:, :]])
def test_a_view_of_all_of_a_compressed_array_is_planned_as_the_array(whole):
    with np.config.override(small_bytes=0):
        a = np.asarray(sparse.random_array((40, 30), density=0.1, format="csr", rng=0))
        assert whole(a)._node() is a._node()
        assert not whole(a)._views
        assert whole(a).format == "csr"
