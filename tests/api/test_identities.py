"""Which object a call gives, of which type, and which warning: what values, dtypes and errors do not show."""

from __future__ import annotations

import datetime
from typing import Any
from unittest import mock

import numpy
import pytest
from numpy.lib import recfunctions

import spartan_ng as np
from tests.api.test_calls_of_numpys_tests import check


def test_a_vectorized_function_is_called_once_an_element():
    for m in (numpy, np):
        double = mock.Mock(side_effect=lambda x: x * 2)
        function = m.vectorize(double)
        function.cache = True
        assert function(m.arange(4)).tolist() == [0, 2, 4, 6]
        assert double.call_count == 4


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Mean of empty slice")
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["nanmedian", "nanquantile", "nanpercentile", "nanmean"])
def test_of_nothing(name, axis):
    for small in (np.config.small_bytes, 0):
        with np.config.override(small_bytes=small):
            check(lambda m: getattr(m, name)(m.zeros((0, 3)), *[0.4] * ("ile" in name), axis=axis))


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.fft.fftn(m.ones((4, 4)), s=(2, 2)),
        lambda m: m.fft.rfftn(m.ones((4, 4)), s=(None, 2), axes=(0, 1)),
        lambda m: m.linalg.qr(m.eye(2), mode="full")[1],
        lambda m: m.linalg.qr(m.eye(2), mode="e"),
    ],
)
def test_what_numpy_deprecates(call):
    found = []
    for m in (numpy, np):
        with np.config.override(small_bytes=0), pytest.warns(DeprecationWarning, match=".") as told:
            found.append((str(numpy.asarray(call(m))), len(told)))
    assert found[0] == found[1]


def test_the_base_of_views_is_one_array():
    """Also where nobody holds the array that they are views of."""
    a = np.arange(6).reshape(2, 3)
    assert a.base is a.base
    assert a.T.base is a.base
    assert np.einsum("ij->ji", a).base is a.base


@pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")
def test_an_operand_that_is_given_back_is_the_same_array():
    records: Any = np.zeros(2, "i4,i4")
    assert recfunctions.stack_arrays((records,)) is records


def test_elements_that_are_arrays():
    a = np.empty(1, object)
    a[0] = np.array([1, 2])
    assert np.take(a, 0).tolist() == [1, 2]
    for generator in (np.random.default_rng(0), np.random.RandomState(0)):
        assert generator.choice(a).tolist() == [1, 2]
    assert np.random.default_rng(0).choice(a, ()).item().tolist() == [1, 2]


@pytest.mark.parametrize("kind", [bool, int])
def test_drawn_numbers_are_pythons_where_they_are_asked_for(kind):
    for m in (numpy, np):
        assert type(m.random.default_rng(0).integers(0, 2, dtype=kind)) is kind


@pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")
def test_lines_may_become_masked_arrays():
    def masked(m):
        return m.apply_along_axis(lambda x: numpy.ma.masked_equal(x, 3), 0, m.arange(6).reshape(3, 2))

    assert type(masked(np)) is type(masked(numpy)) is np.ma.MaskedArray
    assert masked(np).tolist() == masked(numpy).tolist()


def test_no_differences_are_the_argument_itself():
    a: Any = [1, 2]
    assert np.diff(a, n=0) is a


def test_the_public_names_are_what_is_listed():
    assert {n for n in dir(np) if not n.startswith("_")} == {n for n in np.__all__ if not n.startswith("_")}


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("given", [None, 3, [1]])
def test_objects_that_give_no_array(given, copy):
    class Wrong:
        def __array__(self, dtype=None, copy=None):
            return given

    for make in (np.array, np.asarray):
        with pytest.raises(ValueError, match="not producing an array"):
            make(Wrong(), copy=copy)


@pytest.mark.parametrize("tolerance", [{"rtol": 0.5 - 2**-54, "atol": 0}, {"rtol": 0, "atol": 1 - 2**-53}])
@pytest.mark.parametrize("b", [0, 2, 2.0, numpy.float32(2), numpy.float64(2), 1 - 2**-53])
def test_tolerances_are_weak_numbers(b, tolerance):
    for small in (np.config.small_bytes, 0):
        with np.config.override(small_bytes=small):
            check(lambda m: m.isclose(m.ones(3, "f4"), b, **tolerance))


def test_other_libraries_draw_from_the_global_state():
    """SciPy and scikit-learn know NumPy's: a seed is for all, and each draws what comes next."""
    for seed, draw in ((np.random.seed, numpy.random), (numpy.random.seed, np.random)):
        seed(3)
        drawn = [float(m.random.rand()) for m in (np, numpy, np)]
        seed(3)
        numpy.testing.assert_array_equal(drawn, draw.rand(3))


def test_assertions_take_objects_that_give_arrays_of_ours():
    class Shown:
        def __array__(self, dtype=None, copy=None):
            return np.asarray([1.0, 2.0])

    np.testing.assert_allclose(Shown(), [1, 2])
    np.testing.assert_array_equal(actual=[1, 2], desired=Shown())
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(Shown(), [1, 3])


def test_the_global_state_is_seeded_whatever_its_bits_are():
    for m in (numpy, np):
        before = m.random.get_bit_generator()
        try:
            m.random.set_bit_generator(m.random.PCG64(0))
            m.random.seed(98765)
            found = m.random.randint(0, 2**30, 10).tolist()
            assert found == numpy.random.RandomState(numpy.random.PCG64(98765)).randint(0, 2**30, 10).tolist()
        finally:
            m.random.set_bit_generator(before)


def test_objects_that_are_arrays_are_permuted():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.arange(5)

    for make in (np.random.default_rng, np.random.RandomState):
        assert make(1).permutation(Wrapped()).tolist() == make(1).permutation(np.arange(5)).tolist()


@pytest.mark.parametrize(("low", "high"), [(0, -1), (3, 2), (0, 0), (5, 5)])
def test_bounds_of_integers(low, high):
    for endpoint in (False, True):
        said: list[Any] = []
        for m in (numpy, np):
            try:
                said.append(m.random.default_rng(0).integers(low, high, endpoint=endpoint) is None)
            except ValueError as error:
                said.append(str(error))
        assert said[0] == said[1]


def test_an_object_adds_to_itself_in_place():
    for small in (np.config.small_bytes, 0):
        with np.config.override(small_bytes=small):
            a = np.array(0, dtype=object)
            a[...] += 1
            assert a == 1


@pytest.mark.parametrize("copy", [None, True, False])
def test_objects_are_told_whether_to_copy(copy):
    for make in (np.array, np.asarray):
        kept, copied = np.ones(3), np.ones(3)
        told = []

        class Wrapped:
            def __array__(self, dtype=None, copy=None):
                told.append(copy)  # noqa: B023
                return copied if copy else kept  # noqa: B023

        assert make(Wrapped(), copy=copy) is (copied if copy else kept)
        assert told == [copy]


@pytest.mark.filterwarnings("ignore:Indexing flat iterators:DeprecationWarning")
@pytest.mark.parametrize("value", [1, 2.5, [1, 2], [7], "x", "3", [[1]], None, [], [1.5, 2]])
@pytest.mark.parametrize("key", [True, False, 0, -1, slice(2), [0, 1]])
def test_what_flat_elements_take(key, value):
    def call(m):
        a = m.arange(3)
        a.flat[key] = value
        return a

    check(call)


def test_a_truth_value_as_a_flat_place_is_deprecated_once():
    for m in (numpy, np):
        with pytest.warns(DeprecationWarning, match="flat iterators") as told:
            m.arange(3).flat[True] = 10
        assert len(told) == 1


@pytest.mark.parametrize("casting", ["same_kind", "unsafe"])
@pytest.mark.parametrize("unit", ["D", "m", None])
def test_dates_as_text_in_a_zone(unit, casting):
    zone = datetime.timezone(datetime.timedelta(hours=-8))
    with np.config.override(small_bytes=0):
        check(lambda m: m.datetime_as_string(m.array(["2010-03-15T06:30"], "M8[m]"), unit, zone, casting))


def test_a_third_operand_of_maximum_is_deprecated():
    for module in (np, numpy):
        with pytest.warns(DeprecationWarning, match="maximum"):
            module.maximum(module.ones(2), 1, module.zeros(2))


@pytest.mark.parametrize("dtype", ["F", "D", "G"])
@pytest.mark.parametrize("small", [None, 0])
def test_parts_of_numbers(dtype, small):
    """They are numbers."""
    with np.config.override(**({} if small is None else {"small_bytes": small})):
        for part in ("real", "imag"):
            check(lambda m, p=part: getattr(m.array([2.2 - 1.1j], dtype)[0].byteswap(), p).byteswap())
            check(lambda m, p=part: getattr((m.ones(3, dtype) * 2j).sum(), p))
            assert isinstance(getattr(np.ones(3, dtype).sum(), part), numpy.generic)


def test_rules_and_signatures():
    for call in (
        lambda m: m.einsum("i", [1, 2], casting="blah"),
        lambda m: m.add(3, 4, signature=b"ii-i"),
        lambda m: m.add(3, 4, signature="%^->#"),
        lambda m: m.add.reduce(),
        lambda m: m.add.reduce([1, 2], out="invalid"),
    ):
        check(call)
