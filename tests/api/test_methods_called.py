"""NumPy's functions that call an array's method: of small arrays that is called, with no Python between."""

from __future__ import annotations

import sys
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick

CALLS = """
np.argmax(a)
np.argmax(m, axis=1)
np.argmax(m, 0, keepdims=True)
np.argmin(a)
np.argmin(m, -1)
np.argmin(m, axis=7)
np.argpartition(a, 3)
np.argpartition(m, 2, axis=0)
np.argsort(a)
np.argsort(m, 0)
np.argsort(m, axis=None, stable=True)
np.choose(i % 2, [i, i + 1])
np.choose(i, [i, i + 1])
np.choose(i, [i, i + 1], mode="wrap")
np.nonzero(a > 0.5)
np.nonzero(m)
np.repeat(a, 3)
np.repeat(m, 2, axis=1)
np.repeat(m, 2, 1)
np.repeat(m, i, axis=0)
np.repeat(m, i, -1)
np.repeat(m, -1, 0)
np.repeat(m, 1.5)
np.searchsorted(a, 0.3)
np.searchsorted(a, m, "right")
np.searchsorted(a, [0.3, 2], side="left")
np.searchsorted(m, 0.3)
np.take(a, i)
np.take(m, i, 1)
np.take(m, i, axis=0)
np.take(m, 1 << 70)
np.take(m, 30, 0)
np.angle(m * 1j)
np.angle(m, True)
np.angle(m, deg=True)
np.dot(m, m.T)
np.dot(m, m)
m.dot(2.0)
""".strip().splitlines()
"""Whatever NumPy says of them, an error too."""
OPERANDS = {
    "arrays": lambda space, values: space.array(values),
    "lists": lambda space, values: values.tolist(),
    "masked": lambda space, values: numpy.ma.masked_less(values, values.flat[1]),
    "none": lambda space, values: space.array(values)[..., :0],
}
VALUES = {
    "a": numpy.array([0.1, 0.25, 0.5, 0.75, numpy.nan]),
    "m": numpy.arange(12.0).reshape(3, 4)[:, ::-1],
    "i": numpy.array([0, 2, 1]),
}


def told(space: Any, call: str, kind: str) -> Any:
    """What there is to see of an answer, or of an error."""
    given = {name: OPERANDS[kind](space, x) if name != "i" else space.array(x) for name, x in VALUES.items()}
    try:
        found = eval(call, {"np": space, **given})
    except Exception as error:  # noqa: BLE001 - whatever NumPy raises
        return next(c for c in type(error).__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))
    parts = found if isinstance(found, tuple) else (found,)
    return [
        (numpy.asarray(x).dtype, numpy.shape(x), str(x.tolist()), numpy.ma.isMaskedArray(x)) for x in parts
    ]


@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("call", CALLS)
def test_they_are_numpys(call: str, kind: str) -> None:
    assert told(np, call, kind) == told(numpy, call, kind)


def functions_called(call: str) -> list[str]:
    """Which of Python's functions a call takes."""
    given = {key: np.array(value) for key, value in VALUES.items()}
    code, names = compile(call, "a call", "eval"), {"np": np, **given}
    called: list[str] = []
    eval(code, names)
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        eval(code, names)
    finally:
        sys.setprofile(None)
    return called[1:]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="it is Python that calls")
@pytest.mark.parametrize("name", [function.__name__ for function in quick.METHODS])
def test_no_python_is_between(name: str) -> None:
    """NumPy's own function is Python, and took longer than what it calls."""
    assert functions_called(next(c for c in CALLS if f".{name}(" in c)) == []


@pytest.mark.skipif(not quick.IS_COMPILED, reason="it is Python that calls")
@pytest.mark.parametrize("call", ["np.angle(m)", "np.angle(m[0, 0])"])
def test_an_angle_is_numpys_function_alone(call: str) -> None:
    assert set(functions_called(call)) == {"_angle_dispatcher", "angle"}
