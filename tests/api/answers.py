"""What a call gives with our package and with NumPy: a value with its shape and dtype, or an exception."""

from __future__ import annotations

import warnings

import numpy

import spartan_ng as sp


def answer(call, np):
    """What a call gives: arrays, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return values(call(np))
    except Exception as error:  # noqa: BLE001 (it is what is compared)
        return error


def values(result):
    if isinstance(result, tuple | list):
        return [values(r) for r in result]
    return numpy.asarray(result)


def is_like(got, wanted):
    """Whether an exception has one of the classes, or arrays are equal."""
    if isinstance(wanted, Exception):
        return isinstance(got, Exception) and any(c in type(wanted).__mro__[:-2] for c in type(got).__mro__)
    if isinstance(got, Exception):
        return False
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(is_like, got, wanted))
    if isinstance(got, list) or (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return False
    if got.dtype.kind in "fc":
        return numpy.allclose(got, wanted, rtol=1e-6, equal_nan=True)
    return bool((got == wanted).all())


def differences(calls):
    """The calls that give something else than NumPy."""
    found = []
    for name, call in calls:
        got, wanted = answer(call, sp), answer(call, numpy)
        if not is_like(got, wanted):
            found.append(f"{name}: {got!r}, not {wanted!r}")
    return found
