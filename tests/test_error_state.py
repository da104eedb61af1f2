"""The error state that is read cheaply is NumPy's."""

from __future__ import annotations

import contextvars
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from spartan_ng import error_state
from spartan_ng.error_state import changed_variable, entered


@pytest.fixture(params=["by the variable", "by NumPy"], autouse=True)
def way(request, monkeypatch):
    if request.param == "by NumPy":
        monkeypatch.setattr(error_state, "variable", None)
    return request.param


def agrees():
    return error_state.error_state().kinds == np.geterr()


def test_it_follows_blocks_and_settings():
    assert agrees()
    with np.errstate(divide="raise"):
        assert agrees()
        assert error_state.error_state().is_strict
        with np.errstate(divide="ignore", under="ignore"):
            assert agrees()
            assert not error_state.error_state().is_strict
            assert error_state.error_state().ignored == {"divide", "under"}
        assert agrees()
    assert agrees()
    before = np.seterr(all="call")
    try:
        assert agrees()
        assert error_state.error_state().is_strict
    finally:
        np.seterr(**before)
    assert agrees()
    assert error_state.error_state().ignored == frozenset()


def test_each_thread_and_context_has_its_own():
    found = []
    with np.errstate(invalid="raise"):
        assert agrees()
        thread = threading.Thread(
            target=lambda: found.append((agrees(), error_state.error_state().is_strict))
        )
        thread.start()
        thread.join()
        contextvars.Context().run(lambda: found.append((agrees(), error_state.error_state().is_strict)))
        contextvars.copy_context().run(lambda: found.append((agrees(), error_state.error_state().is_strict)))
        assert agrees()
    assert found == [(True, False), (True, False), (True, True)]


def test_many_states_one_after_the_other():
    for _ in range(50):  # values of the variable come and go, and so may their addresses
        for what in ("raise", "ignore", "warn"):
            with np.errstate(over=what):
                assert agrees()


def test_entering_changes_what_differs_only():
    with entered({"all": "ignore"}):
        assert set(np.geterr().values()) == {"ignore"}
    assert agrees()
    with entered(dict(np.geterr())):
        assert agrees()


def test_the_variable_is_found_only_where_it_is_the_only_one():
    one: contextvars.ContextVar[object] = contextvars.ContextVar("one")
    two: contextvars.ContextVar[object] = contextvars.ContextVar("two")

    @contextmanager
    def setting(*variables):
        tokens = [(v, v.set(object())) for v in variables]
        yield
        for v, token in tokens:
            v.reset(token)

    assert changed_variable(setting(one)) is one
    assert changed_variable(setting()) is None
    assert changed_variable(setting(one, two)) is None
