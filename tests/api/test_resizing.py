"""np.resize: elements over and over, each written once, however few there are of them."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.places import resizing
from spartan_ng.config import config


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "i1", "c16", "?", "M8[s]", "U2", ">f4", "O"])
@pytest.mark.parametrize("n", [1, 2, 3, 1000, 32_768, 40_000])
def test_elements_are_repeated_as_by_numpy(n: int, dtype: str, lazy: bool) -> None:
    x = (numpy.arange(n) % 100).astype(dtype if dtype != "U2" else "i8").astype(dtype)
    for given in (x, x[::-1], numpy.stack([x, x])):
        for size in (0, 1, n, n + 1, 3 * n + 2, 100_001, (2, 50_003)):
            wanted = numpy.resize(given, size)
            with config.override(small_bytes=0 if lazy else config.small_bytes):
                found = np.resize(np.asarray(given), size)
                assert found.dtype == wanted.dtype
                assert numpy.array_equal(numpy.asarray(found), wanted)


@pytest.mark.parametrize("unit", [8, 24, 100])
def test_what_is_written_at_a_time_changes_nothing(unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resizing, "_UNIT_BYTES", unit)
    for n in (1, 2, 3, 7):
        x = numpy.arange(float(n))
        for size in range(n, 60):
            assert numpy.array_equal(resizing._again_and_again(x, size), numpy.resize(x, size))


@pytest.mark.parametrize("lazy", [False, True])
def test_what_may_only_be_read_owns_its_memory(lazy: bool) -> None:
    found = []
    with config.override(small_bytes=0 if lazy else config.small_bytes):
        for xp in (numpy, np):
            a = xp.arange(6.0)
            a.flags.writeable = False
            told = [a.base is None, a.flags.owndata]
            a.resize(3, refcheck=False)
            with pytest.raises(ValueError, match="read-only"):
                a[0, 0] = 1  # also where there are no such elements
            found.append((*told, a.tolist(), a.flags.writeable, a.flags.owndata))
    assert found[0] == found[1]


@pytest.mark.parametrize("times", [0, 1, 3, [0], [2], numpy.array([0]), numpy.array([2]), numpy.int64(0)])
@pytest.mark.parametrize("one", [2.0, 3, True, 1j, "a", None, numpy.float64(2), numpy.array(2.0), [2.0], []])
def test_numbers_are_repeated(one, times):
    """What is no array has no length of elements, also where nothing of it is asked for; each many times, as
    what reads beside an object may find anything there."""
    expected = numpy.repeat(numpy.asarray(one), times)
    for kind in (lambda a: a, np.array, lambda a: np.array(a)[()]):
        for _ in range(40):
            found = np.repeat(kind(one), times)
        assert found.dtype == expected.dtype
        numpy.testing.assert_array_equal(found, expected)
