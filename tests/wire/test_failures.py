"""Errors keep their type and message across processes."""

import pickle

import numpy as np
import pytest

from spartan_ng import errors
from spartan_ng.errors import EvaluationError
from spartan_ng.wire.failures import describe_error, rebuild_error


@pytest.mark.parametrize(
    "error",
    [
        IndexError("index 3 is out of bounds"),
        KeyError("name"),
        MemoryError("no"),
        np.linalg.LinAlgError("Singular matrix"),
        np.exceptions.AxisError("axis 3"),
        errors.UserFunctionError("Traceback ..."),
        errors.MemoryBudgetError("12 bytes"),
    ],
)
def test_known_errors_come_back_as_they_were(error):
    back = rebuild_error(*describe_error(error))
    assert type(back) is type(error)
    assert str(back) == str(error)


def test_unknown_errors_are_named():
    class Odd(Exception):
        pass

    back = rebuild_error(*describe_error(Odd("well")))
    assert type(back) is EvaluationError
    assert str(back) == "Odd: well"


@pytest.mark.parametrize(
    "kind", ["ExceptionGroup", "KeyboardInterrupt", "print", "SystemExit", "annotations"]
)
def test_names_that_are_no_plain_errors_are_not_called(kind):
    assert type(rebuild_error(kind, "text")) is EvaluationError


@pytest.mark.parametrize("kind", [UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError])
def test_errors_that_want_more_than_a_message_are_caught_by_their_type(kind):
    back = rebuild_error(kind.__name__, "text")
    again = pickle.loads(pickle.dumps(back))
    for error in (back, again):
        assert isinstance(error, kind)
        assert isinstance(error, EvaluationError)
        assert str(error) == f"{kind.__name__}: text"
