"""What NumPy refuses is refused here, too, in words that begin as NumPy's do, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np


def _locked(np: Any) -> Any:
    a = np.arange(3.0)
    a.setflags(write=False)
    return a


REFUSED: dict[str, Callable[[Any], Any]] = {
    "choose out": lambda np: np.choose([0, 1], [[1, 2], [3, 4]], out=np.zeros(3)),
    "fft out text": lambda np: np.fft.fft([1, 2], out=""),
    "fft out list": lambda np: np.fft.rfft([1, 2], out=[0, 0]),
    "fft out shape": lambda np: np.fft.fft(np.ones(3), out=np.zeros(4, complex)),
    "fft out axes": lambda np: np.fft.ifft(np.ones(3), out=np.zeros((1, 3), complex)),
    "fftn out shape": lambda np: np.fft.fftn(np.ones((3, 4)), (2, 2), (0, 1), out=np.zeros((3, 4), complex)),
    "irfft out shape": lambda np: np.fft.irfft(np.ones(3), out=np.zeros(3)),
    "average of a number": lambda np: np.average(np.array(3.0), axis=0),
    "average of a number, weights": lambda np: np.average(np.array(3.0), axis=0, weights=np.array(2.0)),
    "average along an axis twice": lambda np: np.average(np.ones((2, 3)), axis=(0, -2)),
    "put_along_axis line": lambda np: np.put_along_axis(np.zeros(6), np.zeros((2, 1), int), 3, None),
    "put_along_axis axes": lambda np: np.put_along_axis(np.zeros(6), np.zeros((2, 1), int), 3, 0),
    "put_along_axis floats": lambda np: np.put_along_axis(np.zeros(6), np.zeros(2), 3, 0),
    "put_along_axis turned": lambda np: np.put_along_axis(np.zeros((2, 3)).T, np.array([1]), 3, None),
    "setflags view": lambda np: _locked(np)[1:].setflags(write=True),
    "setflags turned": lambda np: _locked(np).reshape(3, 1).T.setflags(write=True),
    "take_along_axis line": lambda np: np.take_along_axis(np.zeros(6), np.zeros((2, 1), int), None),
    "take_along_axis axes": lambda np: np.take_along_axis(np.zeros(6), np.zeros((2, 1), int), 0),
    "take_along_axis floats": lambda np: np.take_along_axis(np.zeros(6), np.zeros(2), 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_words(name, mode):
    with pytest.raises(Exception) as wanted:  # noqa: PT011 (NumPy says which)
        REFUSED[name](numpy)
    with pytest.raises(type(wanted.value)) as got:
        REFUSED[name](np)
    assert str(got.value).startswith(str(wanted.value).rstrip("."))


@pytest.mark.parametrize("name", ["asanyarray", "asarray", "ascontiguousarray", "asfortranarray"])
@pytest.mark.parametrize("keyword", ["like", "device", "copy"])
def test_keywords_of_conversions(name, keyword, mode):
    def said(np):
        try:
            return getattr(np, name)([[1, 2], [3, 4]], **{keyword: None}).tolist()
        except TypeError:
            return TypeError

    assert said(np) == said(numpy)
