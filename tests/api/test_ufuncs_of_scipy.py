"""SciPy's universal functions of our arrays: its own answers, and of few values without a call of Python."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special
from scipy.special import _ufuncs

import spartan_ng as sp
from spartan_ng.api.core import quick

compiled = pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")

UFUNCS = {
    name: f
    for name, f in vars(scipy.special).items()
    if isinstance(f, np.ufunc) and not name.startswith(("obl_", "pro_"))
}
"""Not spheroidal ones: SciPy's own answers differ in signs from call to call."""
KINDS = {
    "doubles": lambda m: m.asarray([0.25, 0.5, 0.75]),
    "singles": lambda m: m.asarray([0.25, 0.5, 0.75], "f4"),
    "integers": lambda m: m.asarray([0, 1, 2]),
    "a column": lambda m: m.asarray([[0.5], [0.25]]),
    "part of one": lambda m: m.asarray(np.linspace(0.1, 0.9, 9))[::3],
    "complex": lambda m: m.asarray([0.5 + 0.25j, 1j]),
    "none": lambda m: m.asarray(np.ones(0)),
}
LESS = frozenset({"doubles", "integers", "a column"})
"""What functions of several arguments are asked for."""


def told(call):
    """What a call gives, or the kind of its error, and the warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = call()
        except TypeError as error:
            return type(error), [str(w.message) for w in heard]
        found = found if isinstance(found, tuple) else (found,)
        assert all(isinstance(x, sp.ndarray | np.generic | np.ndarray) for x in found)
        answers = [(x.dtype, x.shape, np.asarray(x).tobytes()) for x in found]
        return answers, sorted(str(w.message) for w in heard)


@pytest.mark.parametrize("name", UFUNCS)
def test_answers_are_scipys(name):
    """In all kinds, with numbers, into outputs, where a mask says so, and reduced."""
    f = UFUNCS[name]
    for kind, make in KINDS.items():
        if f.nin > 1 and kind not in LESS:
            continue

        def calls(m, make=make):
            rest = [0.5] * (f.nin - 1)
            yield lambda: f(make(m), *rest)
            yield lambda: f(*[make(m)] * f.nin)
            if f.nin > 1:
                yield lambda: f(*rest, make(m))
                yield lambda: f(make(m), *[np.asarray([0.5])] * (f.nin - 1))
            if f.nout == 1:
                yield lambda: f(make(m), *rest, out=m.zeros(make(np).shape, complex))
                yield lambda: f(make(m), *rest, dtype="f4")

        for ours, scipys in zip(calls(sp), calls(np), strict=True):
            assert told(ours) == told(scipys), kind


@compiled
@pytest.mark.parametrize("name", ["psi", "gamma", "erf", "logit", "xlogy", "i0", "betainc", "sici"])
def test_few_values_are_no_call_of_python(name):
    f = UFUNCS[name]
    given = [sp.asarray([0.25, 0.5])] * f.nin
    f(*given)
    calls = []

    def note(frame, event, argument):
        if event == "call":
            calls.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        f(*given)
    finally:
        sys.setprofile(None)
    assert calls == []


def test_functions_of_objects_and_of_whole_arrays_get_what_they_had():
    """These may write to what they are given, or keep it."""
    seen = []

    def kept(x):
        seen.append(type(x))
        return x

    found: Any = np.frompyfunc(kept, 1, 1)(sp.asarray([1.0, 2.0]))
    assert (found.dtype, found.tolist(), seen) == (np.dtype(object), [1.0, 2.0], [float, float])
    assert isinstance(found, sp.ndarray)
    assert not any(f.signature for f in UFUNCS.values() if f.__name__ in dir(_ufuncs))
