"""The array API standard: the namespace, its information, and DLPack."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np


def test_namespace(mode):
    a = np.arange(3)
    assert a.__array_namespace__() is np
    assert np.__array_api_version__ >= "2024.12"
    info = np.__array_namespace_info__()
    assert info.default_device() == a.device
    assert info.capabilities()["data-dependent shapes"]
    assert all(getattr(np, name) == kind for name, kind in info.dtypes().items())


def test_dlpack_out_and_in(mode):
    a = np.arange(6.0).reshape(2, 3) * 2
    out = numpy.from_dlpack(a)
    numpy.testing.assert_array_equal(out, numpy.arange(6.0).reshape(2, 3) * 2)
    assert a.__dlpack_device__() == out.__dlpack_device__()
    back = np.from_dlpack(out)
    assert isinstance(back, np.ndarray)
    assert np.array_equal(back, a)


def test_dlpack_copy_is_the_readers_own(mode):
    a = np.ones(3)
    out = numpy.from_dlpack(a, copy=True)
    out[0] = 7
    assert a[0] == 1


def test_vecdot_keeps_small_integers(mode):
    a = numpy.arange(3, dtype="u1")
    assert np.vecdot(np.array(a), np.array(a)).dtype == numpy.vecdot(a, a).dtype


@pytest.mark.parametrize(
    "call",
    [
        lambda np: np.arange(5),
        lambda np: np.arange(stop=5),
        lambda np: np.arange(1, stop=5),
        lambda np: np.arange(1, 5, 2, dtype="f4"),
        lambda np: np.arange(5, step=2),
    ],
)
def test_arange_arguments(mode, call):
    got, wanted = call(np), call(numpy)
    assert got.dtype == wanted.dtype
    numpy.testing.assert_array_equal(got, wanted)


def test_linalg_takes_the_last_axes(mode):
    a = numpy.arange(24.0).reshape(2, 3, 4)
    for name in ("diagonal", "trace"):
        got, wanted = getattr(np.linalg, name)(np.array(a)), getattr(numpy.linalg, name)(a)
        numpy.testing.assert_array_equal(got, wanted)
